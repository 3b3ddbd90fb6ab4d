//! Whether words so far lack their end, by their form. English only.

use alloc::vec::Vec;

use super::commands;

/// Words that end neither a sentence nor a question.
const NEVER_LAST: &[&str] = &["a", "an", "the", "my", "your", "our", "their", "every", "each", "and", "or", "i", "we"];
/// Words that do not end a finished sentence. A question may: "what is it for?"
const TRAILING: &[&str] = &[
    "his", "its", "but", "because", "if", "when", "while", "until", "unless", "whether", "than", "as", "to", "for",
    "of", "at", "in", "with", "from", "by", "into", "about", "between", "during", "without", "very", "uh", "um",
    "called", "named", "saying", "they", "plus", "minus", "times",
];
/// Words that end a sentence only after a word of [`ASKING`]: "tell me what time it is".
const LINKING: &[&str] =
    &["is", "are", "was", "were", "will", "would", "can", "could", "should", "does", "i'm", "it's"];
const ASKING: &[&str] = &["what", "where", "when", "who", "how", "which", "why", "whose", "if", "whether"];
/// Verbs that a question begins with, before its subject. Behind the second ones a noun may be all: "where is the bank".
const DOING: &[&str] = &["do", "does", "did", "can", "could", "will", "would", "should", "shall", "must"];
const BEING: &[&str] = &["is", "are", "was", "were", "has", "have"];
const PRONOUNS: &[&str] = &["i", "you", "he", "she", "it", "we", "they"];
const DETERMINERS: &[&str] = &["the", "my", "your", "our", "his", "her", "their"];
/// Verbs, and words of which one has to follow.
const COMPLEMENTS: &[(&[&str], &[&str])] = &[
    (&["divide", "multiply"], &["by", "with", "and", "times", "over"]),
    (&["convert"], &["to", "into", "in"]),
    (&["compare"], &["and", "with", "to", "these", "those", "them"]),
    (&["put"], &["in", "into", "on", "onto", "to", "up", "down", "off", "away", "back", "out", "under", "through"]),
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
    "what's",
    "who is",
    "who's",
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
    "would it be",
    "was it",
    "what if",
];
/// Words that begin a clause before the main one.
const BEFORE_MAIN: &[&str] =
    &["if", "when", "while", "once", "because", "although", "whenever", "as", "since", "before", "after"];
/// Words after one of those that make a clause of it: "when is the next train" is a question.
const SUBJECTS: &[&str] = &[
    "i", "i'm", "you", "we", "they", "he", "she", "it", "it's", "my", "the", "our", "your", "there", "someone", "soon",
];
/// Words that begin a time or a place before what happens there: "tomorrow at eight".
const SETTINGS: &[&str] = &["at", "on", "in", "tomorrow", "tonight", "next", "every", "from", "until", "between"];
/// Words of a clause or a setting before the main one; a longer text has its main clause, too.
const CLAUSE_WORDS_MAX: usize = 7;
const SETTING_WORDS_MAX: usize = 4;
/// Nouns that announce what they name: "translate the word".
const ANNOUNCING: &[&str] = &["word", "words", "term", "name", "sentence", "phrase", "address", "title", "following"];
/// Words that tell of a number to be dictated.
const DICTATED: &[&str] = &["number", "code", "call", "dial", "pin", "phone", "password", "digits", "reference"];

/// Whether the text clearly lacks its end.
pub(super) fn trails_off(text: &str) -> bool {
    let text = text.trim_end();
    if text.ends_with([',', '-', '…', ':', ';']) || text.ends_with("...") {
        return true;
    }
    let is_question = text.ends_with('?');
    let said = commands::plain(text);
    let (first, last) = (said.split(' ').next().unwrap_or_default(), said.rsplit(' ').next().unwrap_or_default());
    let never = NEVER_LAST.contains(&last) || (ASKING.contains(&first) && AUXILIARY.contains(&last));
    if never || OPENINGS.contains(&said.as_str()) || lacks_predicate(&said) {
        return true;
    }
    let ends_in = |words: &&str| said.strip_suffix(words).is_some_and(|left| left.is_empty() || left.ends_with(' '));
    if is_question {
        return false;
    }
    if lacks_complement(&said) || lacks_clause(&said) {
        return true;
    }
    let asks = || said.split(' ').any(|word| ASKING.contains(&word));
    UNFINISHED.iter().any(ends_in) || TRAILING.contains(&last) || (LINKING.contains(&last) && !asks())
}

/// Whether a question ends with its subject: "is the water", "why did the Romans", "how many people". The recogniser writes
/// a question mark there as well.
fn lacks_predicate(said: &str) -> bool {
    let words: Vec<&str> = said.split(' ').collect();
    let asked = match words.as_slice() {
        ["how", "many" | "much", "more" | "longer" | "left" | "further"] => return false,
        ["how", "many" | "much", _] | ["what", "kind" | "sort" | "type", "of", _] => return true,
        ["whose", thing] => return *thing != "turn",
        ["what" | "which", "time" | "day" | "year", rest @ ..] => rest,
        ["how", "long" | "far" | "often" | "much" | "many" | "soon" | "old", rest @ ..] => rest,
        [first, rest @ ..] if ASKING.contains(first) => rest,
        _ => &[],
    };
    match (asked, words.as_slice()) {
        // "Where is the bank" is whole.
        ([verb, subject @ ..], _) if !asked.is_empty() => DOING.contains(verb) && is_subject(subject),
        (_, [verb, subject @ ..]) => (DOING.contains(verb) || BEING.contains(verb)) && is_noun(subject),
        _ => false,
    }
}

/// Whether the words are a pronoun or a short noun phrase.
fn is_subject(words: &[&str]) -> bool {
    matches!(words, [word] if PRONOUNS.contains(word)) || is_noun(words)
}

fn is_noun(words: &[&str]) -> bool {
    matches!(words, [first, _] if DETERMINERS.contains(first))
}

/// Whether a verb lacks what it is never without: "divide 144", "put the word rhubarb".
fn lacks_complement(said: &str) -> bool {
    let mut words = said.split(' ').skip_while(|word| *word == "please");
    let first = words.next().unwrap_or_default();
    let needed = COMPLEMENTS.iter().find(|(verbs, _)| verbs.contains(&first));
    needed.is_some_and(|(_, needed)| !words.any(|word| needed.contains(&word)))
}

/// Whether the words end with the subject of a clause: "whether he", "remember that the bakery".
fn lacks_clause(said: &str) -> bool {
    let words: Vec<&str> = said.split(' ').collect();
    match words.as_slice() {
        // "Is that the bank", "is that it".
        [first, ..] if BEING.contains(first) => false,
        [.., before, last] if PRONOUNS.contains(last) => {
            words.len() > 2 && (ASKING.contains(before) || *before == "that" || *before == "because")
        }
        [_, .., "that" | "because" | "whether" | "if", first, _] => DETERMINERS.contains(first),
        _ => false,
    }
}

/// Whether the words so far are often followed by more, though they may be all: a clause or a time before the main
/// clause, a noun that announces its text.
pub(super) fn may_go_on(text: &str) -> bool {
    let said = commands::plain(text);
    if text.trim_end().ends_with('?') {
        return false;
    }
    let count = said.split(' ').count();
    let (first, last) = (said.split(' ').next().unwrap_or_default(), said.rsplit(' ').next().unwrap_or_default());
    let second = said.split(' ').nth(1).unwrap_or_default();
    // "Tomorrow" may be all that is said, and one word alone is never waited for long.
    if count == 1 {
        return false;
    }
    let clause = BEFORE_MAIN.contains(&first) && SUBJECTS.contains(&second) && count <= CLAUSE_WORDS_MAX;
    let setting = SETTINGS.contains(&first) && count <= SETTING_WORDS_MAX;
    clause || setting || ANNOUNCING.contains(&last)
}

/// Whether the words end in digits, or single letters behind them, of a longer number.
pub(super) fn is_dictating(text: &str) -> bool {
    let said = commands::plain(text);
    let is_digits = |word: &str| !word.is_empty() && word.chars().all(|letter| letter.is_ascii_digit());
    let is_part = |word: &&str| is_digits(word) || word.chars().count() == 1;
    let parts = said.rsplit(' ').take_while(is_part);
    let (count, digits) = parts.fold((0, 0), |(all, digits), word| (all + 1, digits + usize::from(is_digits(word))));
    digits > 0 && (count > 1 || said.split(' ').any(|word| DICTATED.contains(&word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_without_its_verb_and_a_verb_without_its_complement_are_unfinished() {
        for text in [
            "Is the soup.",
            "Did your brothers?",
            "Why do the swans.",
            "How long can we.",
            "What day does the market?",
            "How many chairs.",
            "What sort of music?",
            "Whose bicycle.",
            "Multiply 12.",
            "Convert four litres.",
            "Put the ladder.",
            "Ask Eva whether she.",
            "Remember that the gate.",
            "Tell me what they.",
        ] {
            assert!(trails_off(text), "{text}");
        }
        for text in [
            "Where is the bank?",
            "Is it far?",
            "How much is it?",
            "Is the soup hot?",
            "Why do swans hiss?",
            "Is this vegan?",
            "Is that the bank.",
            "How much longer?",
            "Divide 12 by 4.",
            "Put it away.",
            "Remember that the gate is open.",
            "Who are you?",
            "Do that.",
            "Which day is it?",
        ] {
            assert!(!trails_off(text), "{text}");
        }
    }

    #[test]
    fn a_clause_or_a_time_may_come_before_the_main_clause() {
        for (text, expected) in [
            ("When I get home.", true),
            ("Tomorrow at eight.", true),
            ("Translate the word.", true),
            ("Tomorrow.", false),
            ("When is the next train?", false),
        ] {
            assert_eq!(may_go_on(text), expected, "{text}");
        }
    }
}
