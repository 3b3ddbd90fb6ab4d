//! The lines of a text on a display.

use alloc::{string::String, vec::Vec};

use crate::vocab::DisplaySize;

/// Lines that fit the width, broken between words if possible; without a known width, the lines of the text.
pub(crate) fn wrap(text: &str, size: DisplaySize) -> Vec<String> {
    let columns = size.columns.map_or(usize::MAX, |columns| usize::from(columns.get()));
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        let mut width = 0;
        for word in paragraph.split_whitespace() {
            let letters = word.chars().count();
            if width > 0 && width + 1 + letters > columns {
                lines.push(core::mem::take(&mut line));
                width = 0;
            }
            if width > 0 {
                line.push(' ');
                width += 1;
            }
            for letter in word.chars() {
                if width == columns {
                    lines.push(core::mem::take(&mut line));
                    width = 0;
                }
                line.push(letter);
                width += 1;
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_never_exceed_the_width() {
        let wrap = |text: &str, columns: u16| wrap(text, DisplaySize::new(columns, 1));
        assert_eq!(wrap("one two  three\n\nfour", 0), ["one two three", "four"]);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("one two", 6), ["one", "two"]);
        assert_eq!(wrap("one two", 7), ["one two"]);
        assert_eq!(wrap("one\n\ntwo", 8), ["one", "two"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("ab abcdefghij", 4), ["ab", "abcd", "efgh", "ij"]);
        assert_eq!(wrap("äöü ß", 5), ["äöü ß"]);
        assert_eq!(wrap("", 5), Vec::<String>::new());
    }
}
