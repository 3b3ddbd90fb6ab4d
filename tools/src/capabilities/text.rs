//! Text in generated TypeScript: string literals, property names and comments, out of which no foreign text leads.

use std::fmt::Write as _;

use crate::{limits::SUMMARY_BYTES_MAX, reply::cut, wording::is_hidden};

/// A string literal in single quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_line_end(c) || is_hidden(c) => drop(write!(out, "\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// A property's name, in quotes unless it is an identifier.
pub(super) fn property(name: &str) -> String {
    let letter = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$');
    match name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit()) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A JSDoc comment before a line with this indentation, with a line break at its end; empty if there is no text.
pub(super) fn doc(paragraphs: &[&str], indent: usize, bytes_max: usize) -> String {
    let text = cut(paragraphs.join("\n").trim(), bytes_max);
    let text: String = text.chars().map(|c| if is_line_end(c) { '\n' } else { c }).collect();
    let lines: Vec<String> = text.lines().map(harmless).filter(|line| !line.is_empty()).collect();
    let space = " ".repeat(indent);
    match lines.as_slice() {
        [] => String::new(),
        [line] => format!("{space}/** {line} */\n"),
        lines => {
            let body: String = lines.iter().map(|line| format!("{space} * {line}\n")).collect();
            format!("{space}/**\n{body}{space} */\n")
        }
    }
}

/// The first sentence of a text, on one line.
pub(super) fn first_sentence(text: &str) -> String {
    let line = text.split(is_line_end).map(harmless).find(|line| !line.is_empty()).unwrap_or_default();
    let sentence = line.split_once(". ").map_or(line.clone(), |(first, _)| format!("{first}."));
    cut(&sentence, SUMMARY_BYTES_MAX)
}

/// A line that neither ends a comment nor instructs the compiler.
fn harmless(line: &str) -> String {
    let visible: String = line.chars().filter(|c| *c == '\t' || !is_hidden(*c)).collect();
    visible.trim().replace("*/", "*\\/").replace("@ts-", "@ ts-")
}

/// Characters that end a line in JavaScript.
fn is_line_end(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_keep_their_text_and_nothing_else_happens() {
        for (text, literal) in [
            ("celsius", "'celsius'"),
            ("it's", "'it\\'s'"),
            ("a\\", "'a\\\\'"),
            ("a\r\nb\tc", "'a\\u{d}\\nb\\tc'"),
            ("\u{2028}\u{0}\u{202e}", "'\\u{2028}\\u{0}\\u{202e}'"),
            ("grün 天", "'grün 天'"),
        ] {
            assert_eq!(quoted(text), literal);
        }
    }

    #[test]
    fn names_are_quoted_unless_they_are_identifiers() {
        for (name, written) in
            [("a_1$", "a_1$"), ("delete", "delete"), ("1a", "'1a'"), ("a-b", "'a-b'"), ("", "''"), ("größe", "'größe'")]
        {
            assert_eq!(property(name), written);
        }
    }

    #[test]
    fn a_summary_is_the_first_sentence() {
        for (text, summary) in [
            ("Weather of a place. By hour.", "Weather of a place."),
            ("\n\u{202e}\n Weather\r\nBy hour.", "Weather"),
            ("Version 1.5 of it", "Version 1.5 of it"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), summary);
        }
        assert!(first_sentence(&"x".repeat(1_000)).len() <= SUMMARY_BYTES_MAX);
    }

    #[test]
    fn comments_stay_comments() {
        assert_eq!(doc(&["One line."], 2, 100), "  /** One line. */\n");
        assert_eq!(doc(&["One.", "Two."], 0, 100), "/**\n * One.\n * Two.\n */\n");
        assert_eq!(doc(&["", "  \n\u{0}\n"], 2, 100), "");
        assert_eq!(doc(&["a */ b **/"], 0, 100), "/** a *\\/ b **\\/ */\n");
        assert_eq!(doc(&["a\u{2028}*\u{0}/\r@ts-nocheck"], 0, 100), "/**\n * a\n * *\\/\n * @ ts-nocheck\n */\n");
        assert_eq!(doc(&["\u{202e}right"], 0, 100), "/** right */\n");
        assert_eq!(doc(&["twelve bytes"], 0, 8), "/** twelv… */\n");
    }
}
