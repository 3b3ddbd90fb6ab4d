//! Which letters are marks: of emphasis, of links, of tags; and what nobody can say.

/// Characters that wait at most for the end of a link, a tag or a row; more is no mark.
pub(super) const WAITING_CHARS_MAX: usize = 400;
/// What a line may begin with before its first word.
pub(super) const LINE_MARKS: &str = " \t#>-*+•=_~`|:[]xX";
/// Tags that models write into markdown.
pub(super) const TAGS: &[&str] = &[
    "a", "b", "br", "code", "div", "em", "h1", "h2", "h3", "i", "li", "ol", "p", "pre", "s", "small", "span", "strong",
    "sub", "sup", "table", "td", "th", "tr", "u", "ul",
];
/// Entities, and what they stand for.
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

/// Where what is opened by the first letter is closed. `None`: more must be known; `Some(None)`: nowhere.
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

/// Emoji, their joiners and selectors, other invisible characters and controls: nobody can say them, and no glasses
/// have their pictures.
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
