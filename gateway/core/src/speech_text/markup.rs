//! Removes markup from a model's text while it streams: markdown, tags, emoji. The rest is shown and spoken; code
//! blocks are only shown. The pronunciation of numbers, units and addresses belongs to speech synthesis.
//!
//! It works character by character and waits only as long as the markup requires: emphasis waits for the next
//! character, a link for its end. Output is final, so that speech may begin at once. The dialect is CommonMark
//! (spec.commonmark.org, 0.31) with GitHub's tables, task lists and strikethrough, as far as models write it. Pairs of
//! emphasis are not matched: an opening mark that is never closed is removed as well.

use alloc::{
    string::{String, ToString as _},
    vec::Vec,
};

use super::marks::{ENTITIES, LINE_MARKS, TAGS, WAITING_CHARS_MAX, closing, is_mark, is_silent};

/// A stretch of text without markup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextRun {
    pub(crate) text: String,
    /// Code is not spoken.
    pub(crate) spoken: bool,
}

/// Removes markup from text that comes in pieces. Text that may become markup with the next piece is held back.
#[derive(Debug)]
pub(crate) struct Markup {
    /// Undecided text.
    rest: Vec<char>,
    line_begins: bool,
    /// The character of the fence that closes the code block.
    fence: Option<char>,
    heading: bool,
    /// Number of backticks that close the code in this line; 0: none is open.
    code: usize,
    /// Whether a formula is open.
    math: bool,
    /// Whether `|` separates cells in this line, and in the following ones.
    row: bool,
    table: bool,
    /// Whether `|` is text in this line.
    plain_pipes: bool,
    /// What precedes the next character: a space, the border of a cell; and whether an emoji was removed there.
    space: bool,
    cell: bool,
    dropped: bool,
    /// Whether the last character may end a clause; whether the space after it was emitted.
    ended: bool,
    spaced: bool,
    /// Whether the line has any text.
    wrote: bool,
    /// The previous character of the input.
    before: char,
    /// Whether the current word is an address: its characters are no markup.
    address: bool,
    word: String,
    pieces: Vec<TextRun>,
}

impl Default for Markup {
    fn default() -> Self {
        Self {
            rest: Vec::new(),
            line_begins: true,
            fence: None,
            heading: false,
            code: 0,
            math: false,
            row: false,
            table: false,
            plain_pipes: false,
            space: false,
            cell: false,
            dropped: false,
            ended: false,
            spaced: false,
            wrote: false,
            before: ' ',
            address: false,
            word: String::new(),
            pieces: Vec::new(),
        }
    }
}

impl Markup {
    /// Adds text; returns what is decided now.
    pub(crate) fn push(&mut self, text: &str) -> Vec<TextRun> {
        self.rest.extend(text.chars());
        self.go_on(false)
    }

    /// The text has ended, or something else comes before it continues.
    pub(crate) fn finish(&mut self) -> Vec<TextRun> {
        let pieces = self.go_on(true);
        *self = Self::default();
        pieces
    }

    fn go_on(&mut self, whole: bool) -> Vec<TextRun> {
        let mut rest = core::mem::take(&mut self.rest);
        let mut done = 0;
        while let Some(left) = rest.get(done..).filter(|left| !left.is_empty()) {
            // Waiting indefinitely is worse than a mark that remains.
            let whole = whole || left.len() > WAITING_CHARS_MAX;
            let taken = if self.line_begins { self.line_start(left, whole) } else { self.letter(left, whole) };
            match taken {
                Some(Taken::Done(count)) => {
                    self.before = left.get(count.saturating_sub(1)).copied().unwrap_or(' ');
                    done += count.max(1);
                }
                Some(Taken::Instead { count, text }) => {
                    // The text inside a mark is read as if the mark was absent.
                    let tail = rest.split_off((done + count).min(rest.len()));
                    rest.truncate(done);
                    rest.extend(text);
                    rest.extend(tail);
                    self.before = ' ';
                }
                None => break,
            }
        }
        self.rest = rest.split_off(done.min(rest.len()));
        core::mem::take(&mut self.pieces)
    }

    /// Marks at the beginning of a line; `None`: more text is needed.
    fn line_start(&mut self, left: &[char], whole: bool) -> Option<Taken> {
        let marks = left.iter().take_while(|letter| LINE_MARKS.contains(**letter)).count();
        let ends = match left.get(marks) {
            Some(letter) => *letter == '\n',
            None if whole => true,
            None => return None,
        };
        let head: String = left.iter().take(marks).collect();
        let head = head.trim();
        let fence = ["```", "~~~"].iter().any(|mark| head.starts_with(mark)).then(|| head.chars().next()).flatten();
        if let Some(mark) = fence.filter(|mark| self.fence.is_none_or(|open| open == *mark)) {
            let line = left.iter().position(|letter| *letter == '\n');
            let length = match line {
                Some(end) => end + 1,
                None if whole => left.len(),
                None => return None,
            };
            // Three backticks may also be code within a line.
            let more = left.get(marks..length).unwrap_or_default().contains(&'`');
            if !more && (self.fence.is_none() || ends) {
                self.fence = if self.fence.is_none() { Some(mark) } else { None };
                return Some(Taken::Done(length));
            }
        }
        if self.fence.is_some() {
            self.line_begins = false;
            return Some(Taken::Done(0).or_letter(self, left));
        }
        if ends {
            // A thematic break, the underline of a title, or the delimiter row of a table.
            self.table |= head.contains('|') && head.contains('-');
            return Some(Taken::Done(marks + usize::from(marks < left.len())));
        }
        self.line_begins = false;
        let skipped = self.skip_marks(left);
        Some(if skipped == 0 { Taken::Done(0).or_letter(self, left) } else { Taken::Done(skipped) })
    }

    /// Number of characters of list marks, quotes and headings; text follows them in the line.
    fn skip_marks(&mut self, left: &[char]) -> usize {
        let mut at = 0;
        let mut listed = false;
        loop {
            while left.get(at).is_some_and(|letter| matches!(letter, ' ' | '\t')) {
                at += 1;
            }
            let spaced = |count: usize| left.get(at + count).is_some_and(|letter| matches!(letter, ' ' | '\t'));
            match left.get(at) {
                Some('>') => at += 1,
                Some('-' | '*' | '+' | '•') if spaced(1) => {
                    listed = true;
                    at += 2;
                }
                Some('[') if listed && matches!(left.get(at + 1..at + 3), Some([' ' | 'x' | 'X', ']'])) => at += 3,
                Some('#') => {
                    let count = left.iter().skip(at).take_while(|letter| **letter == '#').count();
                    if !spaced(count) {
                        return at;
                    }
                    self.heading = true;
                    at += count + 1;
                }
                Some('|') => {
                    self.row = true;
                    return at + 1;
                }
                _ => return at,
            }
        }
    }

    /// The next character or mark within a line; `None`: more text is needed.
    fn letter(&mut self, left: &[char], whole: bool) -> Option<Taken> {
        let letter = *left.first()?;
        if letter == '\n' {
            self.end_line();
            return Some(Taken::Done(1));
        }
        if self.fence.is_some() {
            self.say_raw(letter);
            return Some(Taken::Done(1));
        }
        let run = left.iter().take_while(|other| **other == letter).count();
        // The character after a run of the same mark decides.
        let next = match left.get(run) {
            Some(next) => Some(*next),
            None if whole => Some('\n'),
            None => None,
        };
        if letter == '`' {
            next?;
            match self.code {
                0 => self.code = run,
                open if open == run => self.code = 0,
                _ => (0..run).for_each(|_| self.say(letter)),
            }
            return Some(Taken::Done(run));
        }
        if letter.is_whitespace() {
            self.end_word();
            // The space after a clause shows its end, so that it is emitted at once.
            if self.ended && !self.cell {
                self.write(" ");
                self.ended = false;
                self.spaced = true;
            } else if !self.spaced {
                self.space = true;
            }
            return Some(Taken::Done(1));
        }
        if self.code > 0 {
            self.say(letter);
            return Some(Taken::Done(1));
        }
        self.mark(left, (letter, run), next, whole)
    }

    /// A character outside of code that may be markup: `run` equal ones, followed by `next`, if known.
    fn mark(&mut self, left: &[char], (letter, run): (char, usize), next: Option<char>, whole: bool) -> Option<Taken> {
        match letter {
            '\\' => {
                let escaped = left.get(1).copied().or(whole.then_some('\n'))?;
                if escaped.is_ascii_punctuation() {
                    self.say(escaped);
                    return Some(Taken::Done(2));
                }
                self.say(letter);
                Some(Taken::Done(1))
            }
            '*' | '_' if !self.address => {
                if is_mark(letter, run, self.before, next?) {
                    return Some(Taken::Done(run));
                }
                (0..run).for_each(|_| self.say(letter));
                Some(Taken::Done(run))
            }
            '~' if next.is_none() => None,
            '~' if run > 1 => Some(Taken::Done(run)),
            // A formula is enclosed in two of them; an amount has a digit after one.
            '$' if next.is_none() => None,
            '$' if self.math
                || (self.before.is_whitespace() && next.is_some_and(|next| next.is_alphabetic() || next == '\\')) =>
            {
                self.math = !self.math;
                Some(Taken::Done(run))
            }
            '#' if self.heading && self.space && next? == '\n' => Some(Taken::Done(run)),
            '|' => self.pipe(left, whole),
            '!' if left.get(1) == Some(&'[') => match self.link(left.get(1..)?, whole)? {
                Some((count, text)) => Some(Taken::Instead { count: count + 1, text }),
                None => Some(Taken::Done(1).or_letter(self, left)),
            },
            '!' if left.len() == 1 && !whole => None,
            '[' if left.len() == 1 && !whole => None,
            // `array[0](1)` is no link; a footnote `[^1]` follows its word directly.
            '[' if !self.before.is_alphanumeric() || left.get(1) == Some(&'^') => match self.link(left, whole)? {
                Some((count, text)) => Some(Taken::Instead { count, text }),
                None => Some(Taken::Done(1).or_letter(self, left)),
            },
            '<' => self.tag(left, whole),
            '&' => self.entity(left, whole),
            _ if is_silent(letter) => {
                self.dropped = true;
                Some(Taken::Done(1))
            }
            _ => {
                self.say(letter);
                Some(Taken::Done(1))
            }
        }
    }

    /// The border of a cell, or text: the line below decides about a line.
    fn pipe(&mut self, left: &[char], whole: bool) -> Option<Taken> {
        if !self.row && !self.table && !self.plain_pipes {
            let line = left.iter().position(|letter| *letter == '\n');
            let below = line.map(|end| left.get(end + 1..).unwrap_or_default());
            let below = match below {
                Some(below) => below,
                None if whole => &[],
                None => return None,
            };
            let length = below.iter().take_while(|letter| "-|: \t".contains(**letter)).count();
            match below.get(length) {
                None if !whole => return None,
                None | Some('\n') => {
                    let marks = below.get(..length).unwrap_or_default();
                    self.row = marks.contains(&'-') && marks.contains(&'|');
                }
                Some(_) => {}
            }
            self.plain_pipes = !self.row;
        }
        if self.plain_pipes {
            self.say('|');
        } else {
            self.row = true;
            self.cell = self.wrote;
            self.end_word();
        }
        Some(Taken::Done(1))
    }

    /// The length of a link and its text; `Some(None)`: it is no link.
    fn link(&self, left: &[char], whole: bool) -> Option<Option<(usize, Vec<char>)>> {
        let Some(end) = closing(left, '[', ']', whole)? else {
            return Some(None);
        };
        let words = left.get(1..end).unwrap_or_default();
        if words.first() == Some(&'^') {
            return Some(Some((end + 1, Vec::new())));
        }
        let behind = left.get(end + 1..).unwrap_or_default();
        match behind.first() {
            None if !whole => None,
            Some('(') => match closing(behind, '(', ')', whole)? {
                Some(length) => Some(Some((end + 1 + length + 1, words.to_vec()))),
                None => Some(None),
            },
            _ => Some(None),
        }
    }

    fn tag(&mut self, left: &[char], whole: bool) -> Option<Taken> {
        let opens = match left.get(1) {
            Some(next) => next.is_ascii_alphabetic() || *next == '/',
            None if whole => false,
            None => return None,
        };
        let end = left.iter().skip(1).position(|letter| matches!(letter, '>' | '<' | '\n')).map(|at| at + 1);
        let closed = match end {
            _ if !opens => None,
            Some(end) => (left.get(end) == Some(&'>')).then_some(end),
            None if whole => None,
            None => return None,
        };
        let Some(end) = closed else {
            return Some(Taken::Done(1).or_letter(self, left));
        };
        let inside = left.get(1..end).unwrap_or_default();
        let text: String = inside.iter().collect();
        let spaced = inside.iter().any(|letter| letter.is_whitespace());
        if !spaced && (text.contains("://") || text.contains('@')) {
            return Some(Taken::Instead { count: end + 1, text: inside.to_vec() });
        }
        let name = text.trim_matches('/').split([' ', '/']).next().unwrap_or_default().to_lowercase();
        let bare = !text.trim_end_matches('/').trim_end().contains(' ') || text.contains('=');
        if !bare || !TAGS.contains(&name.as_str()) {
            return Some(Taken::Done(1).or_letter(self, left));
        }
        if matches!(name.as_str(), "br" | "p" | "li" | "tr" | "div") {
            self.break_line();
        }
        Some(Taken::Done(end + 1))
    }

    fn entity(&mut self, left: &[char], whole: bool) -> Option<Taken> {
        let name: String = left
            .iter()
            .skip(1)
            .take_while(|letter| letter.is_ascii_alphanumeric() || **letter == '#')
            .take(6)
            .collect();
        let behind = left.get(1 + name.len());
        if behind.is_none() && !whole && name.len() < 6 {
            return None;
        }
        let known = ENTITIES.iter().find(|(entity, _)| *entity == name).filter(|_| behind == Some(&';'));
        match known {
            Some((_, ' ')) => self.space = true,
            Some((_, sign)) => self.say(*sign),
            None => return Some(Taken::Done(1).or_letter(self, left)),
        }
        Some(Taken::Done(name.len() + 2))
    }

    fn say(&mut self, letter: char) {
        if core::mem::take(&mut self.cell) {
            self.write(", ");
        } else if self.space && self.wrote && !(self.dropped && ",.!?;:".contains(letter)) {
            self.write(" ");
        }
        self.space = false;
        self.dropped = false;
        if self.word.len() < 16 {
            self.word.push(letter);
            self.address |= self.word.ends_with("://") || self.word == "www.";
        }
        self.address |= letter == '@';
        self.write(letter.encode_utf8(&mut [0; 4]));
        self.wrote = true;
        self.spaced = false;
        self.ended = ".!?…。,;:–—\"”)".contains(letter);
    }

    /// Emits a character of code unchanged.
    fn say_raw(&mut self, letter: char) {
        self.write(letter.encode_utf8(&mut [0; 4]));
        self.wrote = true;
    }

    fn write(&mut self, text: &str) {
        let spoken = self.fence.is_none();
        match self.pieces.last_mut() {
            Some(last) if last.spoken == spoken => last.text.push_str(text),
            _ => self.pieces.push(TextRun { text: text.to_string(), spoken }),
        }
    }

    fn end_word(&mut self) {
        self.word.clear();
        self.address = false;
    }

    fn break_line(&mut self) {
        if core::mem::take(&mut self.wrote) {
            self.write("\n");
        }
        self.space = false;
        self.ended = false;
        self.spaced = false;
        self.cell = false;
        self.dropped = false;
        self.end_word();
    }

    fn end_line(&mut self) {
        self.break_line();
        self.table &= self.row;
        self.line_begins = true;
        self.heading = false;
        self.code = 0;
        self.math = false;
        self.row = false;
        self.plain_pipes = false;
    }
}

/// What was done with the first characters.
enum Taken {
    /// This many are processed.
    Done(usize),
    /// This many are replaced by `text`, which is read again.
    Instead { count: usize, text: Vec<char> },
}

impl Taken {
    /// The first character is text after all.
    fn or_letter(self, markup: &mut Markup, left: &[char]) -> Self {
        match (self, left.first()) {
            (Self::Done(1), Some(letter)) => {
                markup.say(*letter);
                Self::Done(1)
            }
            // Nothing is consumed: the line continues as text.
            _ => Self::Instead { count: 0, text: Vec::new() },
        }
    }
}

#[cfg(test)]
#[path = "markup_tests.rs"]
mod tests;
