//! Words that need what follows: weak forms of auxiliary verbs, adjectives behind an article, verbs of intending.

use super::words::{ASKING, DETERMINERS, OBJECTIVE, PRONOUNS, asks, is_filler};

/// Adjectives that need a noun behind "a".
const ADJECTIVES: &[&str] = &[
    "good", "better", "new", "nice", "great", "big", "small", "quick", "short", "long", "cheap", "easy", "simple",
    "healthy", "large", "free",
];
/// Adjectives that need a noun behind "the" and "my", too: "the latest" does not.
const ATTRIBUTIVE: &[&str] = &["current", "entire", "main", "upcoming", "new"];
const SEEMING: &[&str] = &["looks", "sounds", "feels", "seems", "tastes", "smells"];

/// Whether the words end in one that needs what follows.
pub(super) fn ends_open(words: &[&str], is_question: bool) -> bool {
    let has_filler = || words.iter().any(|word| is_filler(word));
    match words {
        [.., last] if is_contracted(last) => true,
        // An order: the word before is no subject.
        [.., before, "don't"] => OBJECTIVE.contains(before),
        ["can" | "could" | "would" | "will", .., "why" | "how"] => words.contains(&"explain"),
        [.., "a" | "an", adjective] => ADJECTIVES.contains(adjective),
        ["where" | "where's" | "find" | "show" | "navigate", .., "the", "nearest" | "closest"] => true,
        [.., determiner, adjective] if DETERMINERS.contains(determiner) => ATTRIBUTIVE.contains(adjective),
        // "How much is 15 percent of": what there is a part of does not come before it.
        [.., "percent" | "half" | "third" | "quarter", "of"] => true,
        [.., part, "of"] => part.bytes().all(|byte| byte.is_ascii_digit()),
        [before @ .., "able" | "supposed"] => !before.is_empty() && !before.contains(&"if"),
        [first, .., before, last]
            if matches!(*first, "i" | "i'm" | "i've" | "we" | "we're" | "we've") && intends(before, last) =>
        {
            !has_filler()
        }
        _ if is_question => false,
        [.., "now", "and", "then"] => false,
        [_, .., "and" | "but" | "or", "then" | "also" | "maybe"] => true,
        [.., "wanna" | "gonna"] => true,
        [.., seems, "like"] => SEEMING.contains(seems) && !words.iter().any(|word| asks(word)),
        [.., "going" | "want" | "wants" | "need" | "needs", "to", "be"] => !has_filler(),
        [.., "has" | "have" | "it's" | "i've" | "we've", "been"] => !has_filler() && !words.contains(&"as"),
        _ => false,
    }
}

/// Whether the word is a pronoun or a question word with an auxiliary verb: at an end that verb is not contracted.
fn is_contracted(word: &str) -> bool {
    match word.split_once('\'') {
        Some((subject, "m" | "re" | "ve" | "ll" | "d")) => PRONOUNS.contains(&subject),
        Some((subject, "s")) => {
            matches!(subject, "it" | "he" | "she" | "that" | "there" | "here") || ASKING.contains(&subject)
        }
        _ => false,
    }
}

/// Whether these are the words of an intention: "I've been trying", "I was hoping".
fn intends(before: &str, last: &str) -> bool {
    match last {
        "wondering" | "hoping" | "considering" => true,
        "trying" | "planning" | "intending" => matches!(before, "been" | "was" | "were" | "only"),
        _ => false,
    }
}
