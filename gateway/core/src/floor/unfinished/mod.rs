//! Whether words so far lack their end, by their form: the form of English, other than of what is written behind them and
//! of digits.

mod clauses;
mod endings;
mod objects;
mod words;

use alloc::vec::Vec;

use super::commands;
use words::{ASKING, BEING, DETERMINERS, DOING, PRONOUNS};

/// Words that end neither a sentence nor a question.
const NEVER_LAST: &[&str] = &["a", "an", "the", "my", "your", "our", "their", "every", "each", "and", "or", "i", "we"];
/// Words that do not end a finished sentence. A question may: "what is it for?"
const TRAILING: &[&str] = &[
    "his", "its", "but", "because", "if", "when", "while", "until", "unless", "whether", "than", "as", "to", "for",
    "of", "at", "in", "with", "from", "by", "into", "about", "between", "during", "without", "very", "uh", "um",
    "called", "named", "saying", "they", "plus", "minus",
];
/// Words that end a sentence only after a word of [`ASKING`]: "tell me what time it is".
const LINKING: &[&str] = &["is", "are", "was", "were", "will", "would", "can", "could", "should", "does"];
/// Verbs, and words of which one has to follow.
const COMPLEMENTS: &[(&[&str], &[&str])] = &[
    (
        &["divide", "multiply"],
        &["by", "with", "and", "times", "over", "in", "into", "between", "among", "up", "equally"],
    ),
    (&["convert"], &["to", "into", "in"]),
    (
        &["compare"],
        &["and", "with", "to", "against", "versus", "vs", "or", "these", "those", "them", "both", "all", "two"],
    ),
    (
        &["put"],
        &[
            "in", "inside", "into", "on", "onto", "to", "at", "up", "down", "off", "away", "back", "out", "outside",
            "under", "over", "above", "below", "through", "between", "behind", "before", "after", "beside", "near",
            "next", "around", "with", "together", "aside", "here", "there",
        ],
    ),
];
/// Auxiliary verbs that a question does not end in: "when was", "what time does".
const AUXILIARY: &[&str] = &["was", "were", "does", "did", "should", "would", "could", "shall", "has"];
/// What lacks its object, as the last words.
const UNFINISHED: &[&str] = &[
    "remind me",
    "tell me",
    "show me",
    "give me",
    "send me",
    "ask me",
    "wake me",
    "what is",
    "who is",
    "how about",
    "what about",
    "let me",
    "i want",
    "i need",
    "i would like",
    "i'd like",
    "i wonder",
    "i think",
    "i mean",
    "i meant",
    "true that",
    "think that",
    "sure that",
    "know that",
    "hope that",
    "get me",
    "bring me",
    "find me",
    "read me",
    "i'd love",
    "i would love",
    "like to know",
    "love to know",
    "curious to know",
];
/// What lacks everything else, as all words.
const OPENINGS: &[&str] = &[
    "can you",
    "could you",
    "would you",
    "will you",
    "please",
    "do you",
    "did you",
    "are you",
    "have you",
    "is there",
    "are there",
    "are there any",
    "is it",
    "is it true that",
    "would it be",
    "was it",
    "what if",
    "do you think that",
    "always call me",
    "never call me",
    "look up",
    "bring up",
    "pull up",
    "write down",
    "jot down",
    "note down",
    "put on",
    "find out",
];
/// Words that begin a clause before the main one.
const BEFORE_MAIN: &[&str] = &[
    "if", "when", "while", "once", "because", "although", "whenever", "as", "since", "before", "after", "suppose",
    "assuming",
];
/// Words after one of those that make a clause of it: "when is the next train" is a question.
const SUBJECTS: &[&str] = &[
    "i", "i'm", "you", "we", "they", "he", "she", "it", "it's", "my", "the", "our", "your", "there", "someone", "soon",
];
/// What recognisers write at the end of a text for "the", "a", "my", "to", "and" and "an", and prepositions that a question may end with.
const MISTAKEN: &[&str] = &[
    "that", "there", "they", "them", "then", "than", "mine", "too", "two", "on", "in", "at", "of", "for", "with", "up",
];
/// Conjunctions that begin no question, so that any word makes a clause of them except [`ELLIPTIC`] ones: "if so".
const CONDITIONS: &[&str] = &["if", "unless", "because", "although", "though", "whenever", "while"];
const ELLIPTIC: &[&str] = &["so", "not", "possible", "necessary", "needed", "only", "any", "anything", "ever"];
/// Words that begin a time, a place or another circumstance before what happens there: "tomorrow at eight".
const SETTINGS: &[&str] = &[
    "at", "on", "in", "tomorrow", "tonight", "from", "until", "between", "during", "despite", "unlike", "besides",
    "apart", "due",
];
/// Words that begin a time if a word with one of these [`PERIODS`] at its end follows: "next Monday", but not "next slide".
const RECURRING: &[&str] = &["next", "every"];
const PERIODS: &[&str] = &[
    "second", "minute", "hour", "day", "night", "noon", "morning", "evening", "week", "weekend", "month", "year",
    "time",
];
/// Words of a clause or a setting before the main one; a longer text has its main clause, too.
const CLAUSE_WORDS_MAX: usize = 7;
const SETTING_WORDS_MAX: usize = 4;
/// Nouns that announce what they name, behind "the": "translate the word". "Spell that word" is whole.
const ANNOUNCING: &[&str] = &["word", "words", "term", "name", "sentence", "phrase", "address", "title", "following"];
/// Words that tell of a number to be dictated.
const DICTATED: &[&str] = &["number", "code", "call", "dial", "pin", "phone", "password", "digits", "reference"];

/// Whether what is written behind the words tells that they are not all, in any language.
pub(super) fn is_left_open(text: &str) -> bool {
    text.trim_end().ends_with([',', '-', ':', ';'])
}

/// Whether an ellipsis is written behind the words: the recogniser heard them break off.
pub(super) fn breaks_off(text: &str) -> bool {
    let said = text.trim_end_matches(|sign: char| sign.is_whitespace() || matches!(sign, '?' | '!'));
    said.ends_with("...") || said.ends_with('…')
}

/// Whether the words, or the last of them, never are or end a sentence: true of an answer and of an understood command, too.
pub(super) fn trails_off(text: &str) -> bool {
    let is_question = text.trim_end().ends_with('?');
    let said = commands::plain(text);
    if is_whole(&said) {
        return false;
    }
    let (first, last) = (said.split(' ').next().unwrap_or_default(), said.rsplit(' ').next().unwrap_or_default());
    let never = NEVER_LAST.contains(&last) || (ASKING.contains(&first) && AUXILIARY.contains(&last));
    let without_courtesy = said.trim_start_matches("please ").trim_end_matches(" please");
    let words: Vec<&str> = said.split(' ').collect();
    if never
        || OPENINGS.contains(&without_courtesy)
        || endings::ends_open(&words, is_question)
        || objects::lacks_object(&words, is_question)
        || clauses::lacks_verb(&words, ends_with_name(text))
    {
        return true;
    }
    let ends_in = |words: &&str| said.strip_suffix(words).is_some_and(|left| left.is_empty() || left.ends_with(' '));
    if is_question {
        return false;
    }
    let asks = || words.iter().any(|word| ASKING.contains(word));
    UNFINISHED.iter().any(ends_in) || TRAILING.contains(&last) || (LINKING.contains(&last) && !asks())
}

/// Whether this is a whole question though it ends with a pronoun, as half a question does, or a clause by itself.
fn is_whole(said: &str) -> bool {
    matches!(
        said,
        "where am i" | "where are we" | "who am i" | "who are we" | "if you like" | "if you want" | "if you can"
    ) || ["why should ", "why would "]
        .iter()
        .any(|why| said.strip_prefix(why).is_some_and(|who| PRONOUNS.contains(&who)))
}

/// Whether the last word sounds like one with which no sentence ends, or is one: "the" is written as "that" or "there", "to" as "too".
pub(super) fn may_be_unfinished_word(text: &str) -> bool {
    let said = commands::plain(text);
    MISTAKEN.contains(&said.rsplit(' ').next().unwrap_or_default())
}

/// Whether the words have the form of a beginning: a question without its verb or that ends with its subject, a verb without
/// its complement, a noun with a clause but no verb, a clause or a time before the main clause, a noun that announces its
/// text. Some of these may be all that is said, so they count only where the words are neither understood nor an answer.
pub(super) fn is_beginning(text: &str) -> bool {
    let said = commands::plain(text);
    let words: Vec<&str> = said.split(' ').collect();
    let is_question = text.trim_end().ends_with('?');
    if is_whole(&said) {
        return false;
    }
    let is_name = ends_with_name(text);
    lacks_predicate(&words, is_question)
        || clauses::lacks_main_verb(&words, is_question, is_name)
        || clauses::lacks_question(&words, is_question)
        || clauses::is_noun_with_clause(&words)
        || (!is_question
            && (lacks_complement(&words, is_name)
                || lacks_message(&words, is_name)
                || lacks_clause(&words)
                || is_before_main(&words)))
}

/// Whether a question ends with its subject: "is the water", "why did the Romans", "how many people". The recogniser writes
/// a question mark there as well.
fn lacks_predicate(words: &[&str], is_question: bool) -> bool {
    let asked = match words {
        ["how", "many" | "much", "more" | "longer" | "left" | "further"] => return false,
        ["how", "many" | "much", _] | ["what", "kind" | "sort" | "type", "of", _] => return true,
        ["whose", thing] => return *thing != "turn",
        ["what" | "which", "time" | "day" | "year", rest @ ..] => rest,
        ["how", "long" | "far" | "often" | "much" | "many" | "soon" | "old", rest @ ..] => rest,
        [first, rest @ ..] if ASKING.contains(first) => rest,
        _ => &[],
    };
    match (asked, words) {
        // "Where is the bank" is whole.
        ([verb, subject @ ..], _) => DOING.contains(verb) && is_subject(subject),
        // "Do the dishes" is an order.
        ([], ["do" | "have", ..]) if !is_question => false,
        ([], [verb, subject @ ..]) => (DOING.contains(verb) || BEING.contains(verb)) && is_noun(subject),
        ([], []) => false,
    }
}

/// Whether the words are a pronoun or a short noun phrase.
fn is_subject(words: &[&str]) -> bool {
    matches!(words, [word] if PRONOUNS.contains(word)) || is_noun(words)
}

fn is_noun(words: &[&str]) -> bool {
    matches!(words, [first, _] if DETERMINERS.contains(first))
}

/// Whether a verb lacks what it is seldom without: "divide 144", "put the word rhubarb". `is_name`: the last word is a name.
fn lacks_complement(words: &[&str], is_name: bool) -> bool {
    let mut words = words.iter().copied().skip_while(|word| *word == "please");
    let first = words.next().unwrap_or_default();
    let Some((_, needed)) = COMPLEMENTS.iter().find(|(verbs, _)| verbs.contains(&first)) else {
        return false;
    };
    // "Compare prices" is whole, "compare Paris" is not.
    let are_several = first == "compare" && !is_name && words.clone().last().is_some_and(|last| last.ends_with('s'));
    !are_several && !words.any(|word| needed.contains(&word))
}

/// Whether the words tell whom to write to, and not what.
fn lacks_message(words: &[&str], is_name: bool) -> bool {
    match words {
        ["text" | "message" | "email", _] => is_name,
        ["text" | "message" | "email", who @ ..] => is_noun(who),
        _ => false,
    }
}

fn ends_with_name(text: &str) -> bool {
    text.split_whitespace().next_back().is_some_and(|last| last.starts_with(char::is_uppercase))
}

/// Whether the words end with a pronoun that is the subject of a clause: "whether he".
fn lacks_clause(words: &[&str]) -> bool {
    match words {
        // "Is that the bank", "is that it".
        [first, ..] if BEING.contains(first) => false,
        [.., before, last] if PRONOUNS.contains(last) => {
            words.len() > 2 && (ASKING.contains(before) || *before == "that" || *before == "because")
        }
        _ => false,
    }
}

/// Whether the words are a clause or a time before the main clause, or end with a noun that announces its text.
fn is_before_main(words: &[&str]) -> bool {
    let [first, second, ..] = words else {
        // "Tomorrow" alone may be all.
        return false;
    };
    let [.., before, last] = words else { return false };
    // Nobody is polite in the middle: "tomorrow at eight, please".
    if *last == "please" {
        return false;
    }
    let condition = CONDITIONS.contains(first) && !ELLIPTIC.contains(second) && words.len() > 2;
    let clause =
        (condition || (BEFORE_MAIN.contains(first) && SUBJECTS.contains(second))) && words.len() <= CLAUSE_WORDS_MAX;
    let recurs = || words.iter().any(|word| PERIODS.iter().any(|period| word.trim_end_matches('s').ends_with(period)));
    let about = matches!((*first, *second), ("as", "for") | ("instead", "of") | ("according", "to"));
    let setting = (about || SETTINGS.contains(first) || (RECURRING.contains(first) && recurs()))
        && words.len() <= SETTING_WORDS_MAX;
    clause || setting || (*before == "the" && ANNOUNCING.contains(last))
}

/// Whether the words end in digits, or single letters behind them, of a longer number, in any language.
pub(super) fn is_dictating(text: &str) -> bool {
    let said = commands::plain(text);
    // A time is whole: "at 2 p.m.", "à 8 h".
    if [" a m", " p m", " h"].iter().any(|end| said.ends_with(end)) {
        return false;
    }
    let is_digits = |word: &str| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_digit());
    let is_part = |word: &&str| is_digits(word) || word.chars().count() == 1;
    let parts = said.rsplit(' ').take_while(is_part);
    let (count, digits) = parts.fold((0, 0), |(all, digits), word| (all + 1, digits + usize::from(is_digits(word))));
    digits > 0 && (count > 1 || said.split(' ').any(|word| DICTATED.contains(&word)))
}

#[cfg(test)]
mod tests;
