//! Rules for markup characters: emphasis, links, tags; and characters that cannot be spoken.

/// Limit of characters that wait for the end of a link, a tag or a row; beyond it the character is text.
pub(super) const WAITING_CHARS_MAX: usize = 400;
/// Characters that may precede the first word of a line.
pub(super) const LINE_MARKS: &str = " \t#>-*+•=_~`|:[]xX";
/// Tags that models write in markdown.
pub(super) const TAGS: &[&str] = &[
    "a", "b", "br", "code", "div", "em", "h1", "h2", "h3", "i", "li", "ol", "p", "pre", "s", "small", "span", "strong",
    "sub", "sup", "table", "td", "th", "tr", "u", "ul",
];
/// Entities and their characters.
pub(super) const ENTITIES: &[(&str, char)] =
    &[("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\''), ("#39", '\''), ("nbsp", ' ')];

/// Whether a run of `*` or `_` is emphasis: it touches a word on one side.
pub(super) fn is_mark(letter: char, run: usize, before: char, next: char) -> bool {
    let open = |other: char| other.is_whitespace();
    if open(before) && open(next) {
        return run > 2;
    }
    let inside = before.is_alphanumeric() && next.is_alphanumeric();
    !inside || (letter == '*' && run > 1)
}

/// Index of the bracket that closes the first one. `None`: more text is needed; `Some(None)`: not closed.
pub(super) fn closing(left: &[char], open: char, close: char, whole: bool) -> Option<Option<usize>> {
    let mut depth = 0_usize;
    for (at, letter) in left.iter().enumerate() {
        if *letter == open {
            depth += 1;
        } else if *letter == close {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return Some(Some(at));
            }
        } else if *letter == '\n' {
            return Some(None);
        }
    }
    whole.then_some(None)
}

/// Emoji, their joiners and selectors, other invisible characters and controls: they cannot be spoken, and the glasses
/// have no glyphs for them.
pub(super) fn is_silent(letter: char) -> bool {
    matches!(letter,
        '\u{0}'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{20e3}'
        | '\u{2300}'..='\u{23ff}' | '\u{25a0}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{1f000}'..='\u{1faff}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
#[path = "marks_tests.rs"]
mod tests;
