//! Clauses that have only their subject, and questions and noun phrases without a main verb.

use super::words::{
    ADVERBS, ASKING, BEING, DEMONSTRATIVES, DETERMINERS, DOING, OBJECTIVE, PRONOUNS, WEEKDAYS, after_noun, is_article,
    is_auxiliary, is_indefinite, is_noun_phrase, is_preposition,
};

/// Words that begin a clause behind the main one.
const CONJUNCTIONS: &[&str] = &["that", "because", "whether", "if", "where", "when", "who", "how", "which", "why"];
/// Words that tell what is thought or said in a clause with "that".
const REPORTING: &[&str] = &[
    "note", "remember", "mind", "know", "think", "believe", "say", "said", "hope", "forget", "sure", "true", "me",
    "him", "her", "us", "them",
];
const RELATIVE: &[&str] = &["who", "which", "that", "where"];
/// Words behind the verb of a relative clause: "the film we saw yesterday".
const PARTICLES: &[&str] = &[
    "yesterday",
    "today",
    "last",
    "upstairs",
    "there",
    "here",
    "in",
    "at",
    "to",
    "for",
    "about",
    "from",
    "with",
    "on",
    "out",
    "up",
];
/// What one does, other than of whom one asks: "do the dishes".
const DONE: &[&str] = &["dishes", "others", "exercises", "numbers", "taxes", "chores", "groceries", "stairs", "maths"];
/// Words that end a short question: "what else".
const SHORT: &[&str] = &["else", "now", "next", "then", "one", "ones", "happened", "about"];

/// Whether the words end with the subject of a clause: "note that the bakery", "in the film where the robot".
pub(super) fn lacks_verb(words: &[&str], ends_with_name: bool) -> bool {
    match words {
        // "Is that the bank".
        [first, ..] if BEING.contains(first) => false,
        [.., "because" | "if" | "whether", "there"] => true,
        [.., verb, "that", subject] if REPORTING.contains(verb) => ends_with_name || *subject == "there",
        [_, rest @ ..] => (0..rest.len()).any(|at| begins_clause(&rest[at..])),
        [] => false,
    }
}

/// Whether the words are a conjunction and a subject.
fn begins_clause(words: &[&str]) -> bool {
    match words {
        // "I like that a lot".
        ["that", "a" | "an", ..] => false,
        [first, subject @ ..] => CONJUNCTIONS.contains(first) && is_noun_phrase(subject),
        [] => false,
    }
}

/// Whether a question has its auxiliary verb and its subject only: "does the train to Oslo", "when did Mozart".
pub(super) fn lacks_main_verb(words: &[&str], is_question: bool, ends_with_name: bool) -> bool {
    match words {
        ["why", "should" | "would", subject] if is_indefinite(subject) => false,
        // "Why do that" is whole.
        [adverb, "do", subject] if ADVERBS.contains(adverb) => !DEMONSTRATIVES.contains(subject),
        [adverb, auxiliary, _] if ADVERBS.contains(adverb) && DOING.contains(auxiliary) => true,
        ["what", "does", _] => true,
        ["does" | "did", subject] => !PRONOUNS.contains(subject) && !DEMONSTRATIVES.contains(subject),
        ["can" | "could" | "should" | "would", _] => ends_with_name,
        ["do", determiner, noun] if !is_question => {
            DETERMINERS.contains(determiner) && noun.ends_with('s') && !noun.ends_with("ss") && !DONE.contains(noun)
        }
        ["do", ..] => false,
        [adverb, auxiliary, subject @ ..] if ADVERBS.contains(adverb) => {
            DOING.contains(auxiliary) && is_noun_phrase(subject)
        }
        [auxiliary, subject @ ..] => DOING.contains(auxiliary) && is_noun_phrase(subject),
        [] => false,
    }
}

/// Whether a question has no subject behind its verb, or neither: "what skills do", "how far is", "what time tomorrow".
pub(super) fn lacks_question(words: &[&str], is_question: bool) -> bool {
    match words {
        ["what" | "which", "time" | "day", "tomorrow" | "tonight" | "today"]
        | ["what" | "which", "time" | "day", "next" | "this", _] => true,
        ["what" | "which", "time" | "day", "on", day] => WEEKDAYS.contains(day),
        ["which", last] | ["which", "one", last] if is_auxiliary(last) => false,
        ["who", last] => matches!(*last, "is" | "are"),
        [first, middle @ .., last] if ASKING.contains(first) && is_auxiliary(last) => {
            // With its subject in front it is an indirect one: "what it is".
            let may_end = |word: &&str| {
                is_auxiliary(word)
                    || PRONOUNS.contains(word)
                    || DEMONSTRATIVES.contains(word)
                    || *word == "to"
                    || word.contains('\'')
            };
            !matches!(*first, "who" | "if" | "whether") && *last != "be" && !middle.iter().any(may_end)
        }
        _ if is_question => false,
        ["how", "long", .., "before" | "until" | "since"] => true,
        ["how", "much" | "many" | "long" | "old" | "far" | "often" | "soon"] => true,
        ["what" | "which", noun] => !SHORT.contains(noun),
        [.., "me" | "wonder", "what" | "which" | "whose"] => true,
        _ => false,
    }
}

/// Whether the words are a noun phrase with a relative clause, and no main clause: "the woman who lives upstairs".
pub(super) fn is_noun_with_clause(words: &[&str]) -> bool {
    let [article, noun, rest @ ..] = words else { return false };
    let rest = match rest {
        // "A friend of mine who".
        ["of", _, rest @ ..] => rest,
        _ => rest,
    };
    let [relative, clause @ ..] = rest else { return false };
    if !is_article(article) || is_auxiliary(noun) || !RELATIVE.contains(relative) {
        return false;
    }
    let predicate = match clause {
        [subject, predicate @ ..] if PRONOUNS.contains(subject) => Some(predicate),
        _ => after_noun(clause),
    };
    match (predicate, clause) {
        (Some([_]), _) => true,
        (Some(predicate), _) => matches!(predicate, [_, last] if PARTICLES.contains(last)),
        // A second verb would be the main one: "the man who called asked for you".
        (None, [verb, complement @ ..]) if !is_auxiliary(verb) && !complement.iter().any(|word| is_auxiliary(word)) => {
            match complement {
                [word] => !word.ends_with("ed"),
                [first, _] | [first, _, _] => {
                    is_preposition(first) || is_article(first) || OBJECTIVE.contains(first) || *first == "next"
                }
                _ => false,
            }
        }
        _ => false,
    }
}
