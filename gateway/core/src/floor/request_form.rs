//! Whether a sentence is a request, judged by its form. English only, like everything that the core understands by
//! itself.

use super::commands;

/// Words that a question or a request begins with.
const OPENINGS: &[&str] = &[
    "what",
    "what's",
    "whats",
    "who",
    "who's",
    "whose",
    "whom",
    "where",
    "where's",
    "when",
    "when's",
    "why",
    "why's",
    "how",
    "how's",
    "which",
    "is",
    "isn't",
    "are",
    "aren't",
    "was",
    "were",
    "do",
    "don't",
    "does",
    "doesn't",
    "did",
    "can",
    "can't",
    "could",
    "will",
    "would",
    "should",
    "shall",
    "may",
    "has",
    "have",
    "tell",
    "show",
    "give",
    "say",
    "read",
    "find",
    "look",
    "search",
    "check",
    "explain",
    "describe",
    "translate",
    "spell",
    "calculate",
    "compare",
    "list",
    "name",
    "summarise",
    "summarize",
    "write",
    "add",
    "remove",
    "delete",
    "make",
    "set",
    "turn",
    "switch",
    "open",
    "close",
    "start",
    "stop",
    "play",
    "pause",
    "send",
    "call",
    "text",
    "remind",
    "remember",
    "cancel",
    "change",
    "go",
    "let",
    "let's",
    "help",
    "repeat",
    "try",
    "use",
    "take",
    "put",
    "book",
    "order",
    "please",
];
/// Words before an opening that carry no meaning for it.
const FRONT: &[&str] =
    &["and", "but", "so", "okay", "ok", "then", "now", "also", "well", "yes", "yeah", "no", "alright"];
/// Openings that continue the previous request.
const GOES_ON: &[&str] =
    &["and in ", "and for ", "and on ", "and at ", "and of ", "and the ", "and my ", "and tomorrow"];
/// Most words of a question or a request spoken at once; anything longer is narration.
const WORDS_MAX: usize = 40;

/// Whether a sentence is a question or a request.
pub(crate) fn is_request(text: &str) -> bool {
    let said = commands::plain(text);
    if said.split(' ').count() > WORDS_MAX {
        return false;
    }
    if text.trim_end().ends_with('?') || continues(&said) {
        return true;
    }
    let mut words = said.split(' ').skip_while(|word| FRONT.contains(word));
    let first = words.next().unwrap_or_default();
    // A single word is usually an exclamation.
    words.next().is_some() && OPENINGS.contains(&first)
}

/// Whether a sentence is only more of the previous request: "and in Berlin".
pub(crate) fn is_more_of_it(text: &str) -> bool {
    continues(&commands::plain(text))
}

fn continues(said: &str) -> bool {
    GOES_ON.iter().any(|words| said.starts_with(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_requests_are_known_by_their_form() {
        for (text, expected) in [
            ("And of Italy?", true),
            ("and in Berlin", true),
            ("How far is that", true),
            ("Okay, tell me more.", true),
            ("No, turn it off.", true),
            ("Please go on.", true),
            ("Yes.", false),
            ("Thank you very much.", false),
            ("That was great.", false),
            ("I know.", false),
            ("Play!", false),
            ("He said he would come tomorrow.", false),
            ("So I told him.", false),
            ("", false),
            ("?", true),
        ] {
            assert_eq!(is_request(text), expected, "{text}");
        }
        assert!(!is_request(&alloc::format!("what {}?", "and then ".repeat(20))), "a tale");
    }
}
