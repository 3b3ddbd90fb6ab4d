//! What lacks its object: a transitive verb, a preposition, the "to" of an infinitive, an operator of arithmetic.
//!
//! An object that a question word or a relative clause has in front is not missing: "what did she buy", "the train I take".

use alloc::vec::Vec;

use super::words::{
    ADVERBS, BEING, DETERMINERS, DOING, MONTHS, PRONOUNS, WEEKDAYS, after_noun, asks, is_article, is_filler, is_number,
};

/// Verbs that are never without an object (strictly transitive ones).
const TRANSITIVE: &[&str] = &[
    "buy", "bring", "find", "get", "make", "put", "take", "use", "give", "send", "want", "need", "contain", "include",
    "offer", "provide", "feature", "require", "involve", "replace", "serve", "cover", "support", "allow", "border",
    "enable", "produce", "obtain", "locate", "remove",
];
const TRANSITIVE_PAST: &[&str] =
    &["bought", "brought", "found", "made", "got", "put", "used", "gave", "took", "sent", "needed", "wanted"];
const TRANSITIVE_GERUNDS: &[&str] = &[
    "buying",
    "bringing",
    "finding",
    "getting",
    "making",
    "putting",
    "using",
    "visiting",
    "giving",
    "sending",
    "taking",
    "replacing",
    "having",
    "adding",
    "renting",
    "booking",
    "adopting",
    "hiring",
];
const NEGATED: &[&str] = &["don't", "doesn't", "didn't", "can't", "couldn't", "won't"];
/// Words before the infinitive of what the wearer wants.
const WANTING: &[&str] = &["want", "need", "like", "love", "have", "going", "trying", "decided"];
/// Words between subject and verb that change nothing.
const BETWEEN: &[&str] = &["please", "just", "already", "also", "recently"];
/// Words that end no yes/no question.
const STRANDED: &[&str] = &[
    "than", "of", "between", "during", "into", "because", "if", "whether", "unless", "from", "very", "called", "named",
];
/// Nouns whose "of" a question may end in: "what is the painting of?"
const DEPICTING: &[&str] = &["picture", "painting", "photo", "statue", "drawing"];

/// Whether an object is missing at the end.
pub(super) fn lacks_object(words: &[&str], is_question: bool) -> bool {
    lacks_direct_object(words)
        || lacks_complement(words)
        || lacks_operand(words)
        || (is_question && (lacks_infinitive(words) || strands(words)))
}

/// "A hotel that offers", "the recipe needs", "remind me to bring", "I'm thinking about buying", "how do I get".
fn lacks_direct_object(words: &[&str]) -> bool {
    // The subject of a relative clause is its pronoun, so that this is not its object.
    if let [first, middle @ .., relative @ ("that" | "which" | "who"), verb] = words {
        let asked = BEING.contains(first) || asks(first) || middle.iter().any(|word| asks(word));
        let has = matches!(*verb, "has" | "have") && *relative != "who";
        return !asked && (has || is_transitive(verb) || TRANSITIVE_PAST.contains(verb));
    }
    let said: Vec<&str> = words.iter().copied().filter(|word| !BETWEEN.contains(word)).collect();
    let is_first_person = |word: &str| matches!(uncontracted(word), "i" | "we");
    let lacks = match said.as_slice() {
        [article, noun, verb] if DETERMINERS.contains(article) => {
            TRANSITIVE_PAST.contains(verb) || (!noun.ends_with('s') && verb.ends_with('s') && is_transitive(verb))
        }
        [pronoun, verb] if PRONOUNS.contains(pronoun) => {
            TRANSITIVE_PAST.contains(verb) || (is_first_person(pronoun) && TRANSITIVE.contains(verb))
        }
        [pronoun, negated, verb] if PRONOUNS.contains(pronoun) && NEGATED.contains(negated) => {
            TRANSITIVE.contains(verb)
        }
        ["remind", "me", "to", verb] => TRANSITIVE.contains(verb),
        [first, .., wanting, "to", verb] if is_first_person(first) && WANTING.contains(wanting) => {
            said.len() <= 5 && TRANSITIVE.contains(verb)
        }
        ["how" | "what", "about", gerund] => TRANSITIVE_GERUNDS.contains(gerund),
        [first, middle @ .., "about" | "of" | "on" | "for" | "without" | "to", gerund] => {
            PRONOUNS.contains(&uncontracted(first))
                && TRANSITIVE_GERUNDS.contains(gerund)
                && !middle.iter().any(|word| is_filler(word))
        }
        _ => false,
    };
    lacks || asks_without_object(&said)
}

/// Whether the verb is a transitive one in the present.
fn is_transitive(verb: &str) -> bool {
    TRANSITIVE.contains(&verb.strip_suffix('s').unwrap_or(verb))
}

/// The word without the verb that is contracted with it: "I'm" is "I" with one.
fn uncontracted(word: &str) -> &str {
    word.split('\'').next().unwrap_or(word)
}

/// Whether a yes/no question, or one for a time, a place or a way, ends in its transitive verb: "can I use", "where do I find".
fn asks_without_object(said: &[&str]) -> bool {
    let clause = match said {
        [adverb, rest @ ..] if ADVERBS.contains(adverb) => rest,
        _ => said,
    };
    let [auxiliary, subject @ .., verb] = clause else { return false };
    let is_subject = match subject {
        [noun] => !is_article(noun) && !asks(noun),
        _ => after_noun(subject).is_some_and(<[_]>::is_empty),
    };
    // "Should I have?" is whole.
    let has = *verb == "have" && matches!(*auxiliary, "do" | "does" | "did" | "can");
    DOING.contains(auxiliary) && is_subject && (has || TRANSITIVE.contains(verb))
}

/// Whether a preposition lacks its noun, or has one that needs another: "on May", "between Monday", "what is the capital of".
fn lacks_complement(words: &[&str]) -> bool {
    match words {
        ["what's" | "who's", "the", noun, "of"] | ["what" | "who", "is" | "are" | "was", "the", noun, "of"] => {
            !DEPICTING.contains(noun)
        }
        ["between", number] if is_number(number) => true,
        [.., "on", month] => MONTHS.contains(month),
        [.., "between", time] => WEEKDAYS.contains(time) || MONTHS.contains(time),
        [.., "difference", "between"] => true,
        _ => false,
    }
}

/// Whether a calculation lacks its last number: "what is 7 times". Behind anything else "7 times" may tell how often.
fn lacks_operand(words: &[&str]) -> bool {
    match words {
        [.., "percent" | "root", "of"] => true,
        [.., number, "plus" | "minus"] | [.., number, "divided" | "multiplied", "by"] => is_number(number),
        ["what's" | "calculate", numbers @ .., "times"]
        | ["what", "is", numbers @ .., "times"]
        | ["how", "much", "is", numbers @ .., "times"] => {
            !numbers.is_empty() && numbers.iter().all(|word| is_number(word) || matches!(*word, "plus" | "minus"))
        }
        _ => false,
    }
}

/// Whether the "to" at the end of a question lacks its verb: "is it going to". "Where is he going to" is whole, and so is
/// "do I have to", whose verb was said before (ellipsis).
fn lacks_infinitive(words: &[&str]) -> bool {
    let [first, .., before, "to"] = words else { return false };
    match *before {
        _ if matches!(*first, "why" | "how") => false,
        "able" | "about" | "ready" | "supposed" => *first != "who",
        "going" => !asks(first),
        "want" | "need" | "like" | "have" => matches!(*first, "what" | "where" | "when" | "which"),
        _ => false,
    }
}

/// Whether a question ends in a preposition or a conjunction, and nothing before may be its object: "is Paris bigger than",
/// "how do I get to".
fn strands(words: &[&str]) -> bool {
    // "Is this the hotel we stayed at" has a relative clause without a pronoun, "someone to talk to" an infinitive.
    let may_have =
        |word: &&str| is_filler(word) || PRONOUNS.contains(&uncontracted(word)) || matches!(*word, "to" | "be");
    match words {
        ["how", auxiliary, _, middle @ .., last] if DOING.contains(auxiliary) => {
            matches!(*last, "to" | "from" | "of" | "into" | "than" | "between") && !middle.iter().any(may_have)
        }
        [first, second, middle @ .., last] if DOING.contains(first) || BEING.contains(first) => {
            STRANDED.contains(last) && !is_filler(second) && !middle.iter().any(may_have)
        }
        _ => false,
    }
}
