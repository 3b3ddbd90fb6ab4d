//! Text from elsewhere: which characters a name may have, and how the others are shown.

use std::borrow::Cow;

/// The longest start of `text` that has at most `bytes_max` bytes.
pub(crate) fn crop(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or("")
}

/// Whether a terminal would act on the character, or a reader would be misled by it: control characters, other ends of
/// lines, and what turns the direction of writing.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether every character of a text shows as itself: what a name must be.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.chars().any(is_hidden)
}

/// The text in one line, with `\u001b` and the like in place of what is hidden.
pub(crate) fn in_one_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// The text with its own lines and tabs, and `\u001b` and the like in place of what else is hidden. Within JSON this
/// is the same JSON.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t'))
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let hidden = |c: char| is_hidden(c) && !keep(c);
    if !text.chars().any(hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match hidden(c) {
            // All of them have four digits.
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_acts_on_is_written_out() {
        let evil = "Good\u{1b}[2J\u{9b}31m\u{7}\r\u{202e}abc\u{2066}x\ny\tz";
        assert!(!is_plain(evil));
        assert_eq!(shown(evil), "Good\\u001b[2J\\u009b31m\\u0007\\u000d\\u202eabc\\u2066x\ny\tz");
        assert_eq!(in_one_line("a\nb\u{2028}c"), "a\\u000ab\\u2028c");
        for name in ["Anna's glasses", "Brille von Jörg", "眼鏡", "👩‍👩‍👧", "", "نظارات"] {
            assert!(is_plain(name), "{name}");
            assert!(matches!(in_one_line(name), Cow::Borrowed(same) if same == name));
        }
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = serde_json::json!({"a\u{9b}": "b\u{202e}\u{1b}\n\u{7f}"});
        let text = value.to_string();
        let shown = shown(&text);
        assert!(is_plain(&shown), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn a_shell_reads_a_word_as_it_was() {
        for (word, shown) in [("ann", "ann"), ("", "''"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("$x", "'$x'")] {
            assert_eq!(quoted(word), shown);
        }
    }
}
