//! Closed classes of English words, and the short phrases that they begin.

/// Words that begin a question or an indirect question.
pub(super) const ASKING: &[&str] = &["what", "where", "when", "who", "how", "which", "why", "whose", "if", "whether"];
/// Of these the adverbs: they ask for no thing, so that none of them is the object of a verb.
pub(super) const ADVERBS: &[&str] = &["how", "when", "where", "why"];
/// Verbs that a question begins with, before its subject. Behind those of `BEING` a noun may be all: "where is the bank".
pub(super) const DOING: &[&str] = &["do", "does", "did", "can", "could", "will", "would", "should", "shall", "must"];
pub(super) const BEING: &[&str] = &["is", "are", "was", "were", "has", "have"];
pub(super) const PRONOUNS: &[&str] = &["i", "you", "he", "she", "it", "we", "they"];
/// Forms of pronouns that are no subject.
pub(super) const OBJECTIVE: &[&str] = &["self", "me", "him", "her", "us", "them"];
pub(super) const DEMONSTRATIVES: &[&str] = &["this", "that", "these", "those", "it", "there", "so"];
pub(super) const DETERMINERS: &[&str] = &["the", "my", "your", "our", "his", "her", "their"];
/// Words behind which a relative clause often has no pronoun: "is there anything I should know of".
const INDEFINITE: &[&str] = &[
    "something",
    "anything",
    "nothing",
    "everything",
    "someone",
    "anyone",
    "everyone",
    "somewhere",
    "anywhere",
    "all",
    "thing",
    "things",
];
const PREPOSITIONS: &[&str] =
    &["on", "in", "at", "of", "near", "under", "behind", "above", "from", "with", "for", "to"];
pub(super) const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
pub(super) const WEEKDAYS: &[&str] = &["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const NUMBERS: &[&str] = &[
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
    "hundred",
    "thousand",
];

/// Whether the word begins a question, with its verb or without: "what", "what's".
pub(super) fn asks(word: &str) -> bool {
    ASKING.contains(&word.strip_suffix("'s").unwrap_or(word))
}

/// Whether the word may stand for an object that is missed behind it (the filler of a gap): "what did she buy".
pub(super) fn is_filler(word: &str) -> bool {
    asks(word) || word == "that" || is_indefinite(word)
}

pub(super) fn is_indefinite(word: &str) -> bool {
    INDEFINITE.contains(&word)
}

pub(super) fn is_auxiliary(word: &str) -> bool {
    DOING.contains(&word) || BEING.contains(&word) || matches!(word, "am" | "be")
}

pub(super) fn is_article(word: &str) -> bool {
    DETERMINERS.contains(&word) || matches!(word, "a" | "an")
}

pub(super) fn is_preposition(word: &str) -> bool {
    PREPOSITIONS.contains(&word)
}

pub(super) fn is_number(word: &str) -> bool {
    NUMBERS.contains(&word) || (!word.is_empty() && word.bytes().all(|letter| letter.is_ascii_digit()))
}

/// The words behind an article and its noun.
pub(super) fn after_noun<'a, 'b>(words: &'a [&'b str]) -> Option<&'a [&'b str]> {
    match words {
        [article, _, rest @ ..] if is_article(article) => Some(rest),
        _ => None,
    }
}

/// Whether the words are a noun phrase with or without one of a preposition: "the key", "the key under the mat".
pub(super) fn is_noun_phrase(words: &[&str]) -> bool {
    match after_noun(words) {
        Some([]) => true,
        Some([preposition, noun @ ..]) => {
            is_preposition(preposition) && (noun.len() == 1 || after_noun(noun).is_some_and(<[_]>::is_empty))
        }
        None => false,
    }
}
