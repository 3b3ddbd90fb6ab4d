//! Takes the marks off a model's text while it streams: markdown, tags, emoji. What is left is shown and said; code
//! blocks are shown only. How figures, units and addresses are *said* is the voice's part.
//!
//! Character by character with as little waiting as the marks allow: an emphasis waits for the next letter, a link
//! for its end. What is given once is never taken back, so that speech may begin at once. The dialect is CommonMark
//! (spec.commonmark.org, 0.31) with GitHub's tables, task lists and strikethrough, as far as models write it; pairs
//! of emphasis are not matched, since an opening mark that is never closed is no less a mark.

use alloc::{
    string::{String, ToString as _},
    vec::Vec,
};

use super::marks::{ENTITIES, LINE_MARKS, TAGS, WAITING_CHARS_MAX, closing, is_mark, is_silent};

/// A stretch of clean text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// Code is for the eye alone.
    pub(crate) spoken: bool,
}

/// Takes the markup out of text that comes in pieces. What may become a mark with the next piece is kept back.
#[derive(Debug)]
pub(crate) struct Markup {
    /// What was not decided yet.
    rest: Vec<char>,
    line_begins: bool,
    /// The mark that closes the code block.
    fence: Option<char>,
    heading: bool,
    /// Length of the backticks that close the code in this line.
    code: usize,
    /// Whether a formula is under way.
    math: bool,
    /// Whether `|` parts cells in this line, and in those that follow.
    row: bool,
    table: bool,
    /// Whether `|` is just a sign in this line.
    plain_pipes: bool,
    /// What comes before the next letter: a space, the border of a cell; and whether a picture was left out there.
    space: bool,
    cell: bool,
    dropped: bool,
    /// Whether the last letter may end a clause; whether the space behind it was given.
    ended: bool,
    spaced: bool,
    /// Whether the line has any text.
    wrote: bool,
    /// The letter before, as it was written.
    before: char,
    /// Whether the word under way is an address: its marks are its own.
    address: bool,
    word: String,
    pieces: Vec<Piece>,
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
    /// Adds text; returns what is clean now.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Piece> {
        self.rest.extend(text.chars());
        self.go_on(false)
    }

    /// The text has ended, or something else comes before it goes on.
    pub(crate) fn finish(&mut self) -> Vec<Piece> {
        let pieces = self.go_on(true);
        *self = Self::default();
        pieces
    }

    fn go_on(&mut self, whole: bool) -> Vec<Piece> {
        let mut rest = core::mem::take(&mut self.rest);
        let mut done = 0;
        while let Some(left) = rest.get(done..).filter(|left| !left.is_empty()) {
            // Waiting indefinitely is worse than a mark that stays.
            let whole = whole || left.len() > WAITING_CHARS_MAX;
            let taken = if self.line_begins { self.line_start(left, whole) } else { self.letter(left, whole) };
            match taken {
                Some(Taken::Done(count)) => {
                    self.before = left.get(count.saturating_sub(1)).copied().unwrap_or(' ');
                    done += count.max(1);
                }
                Some(Taken::Instead { count, text }) => {
                    // What stands inside a mark is read as if the mark was not there.
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

    /// Marks at the beginning of a line; `None`: more must be known.
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
            // A rule, the line below a title, the line between the head and the rows of a table.
            self.table |= head.contains('|') && head.contains('-');
            return Some(Taken::Done(marks + usize::from(marks < left.len())));
        }
        self.line_begins = false;
        let skipped = self.skip_marks(left);
        Some(if skipped == 0 { Taken::Done(0).or_letter(self, left) } else { Taken::Done(skipped) })
    }

    /// Letters of list marks, quotes and headings; the line has text behind them.
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

    /// The next letter or mark within a line; `None`: more must be known.
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
        // What comes after a run of the same mark decides.
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
            // A clause is known to have ended by the space behind it: that one is not kept waiting.
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

    /// A letter outside of code that may be a mark: `run` of them stand here, and `next` behind them, where it is known.
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
            // A formula stands between two of them; money has a figure behind one.
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
            // `array[0](1)` is no link; a note `[^1]` stands right behind its word.
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

    /// The border of a cell, or just a sign: what a line means is known from the one below it.
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

    /// The length of a link and its words; `Some(None)`: it is none.
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

    /// As it stands: code.
    fn say_raw(&mut self, letter: char) {
        self.write(letter.encode_utf8(&mut [0; 4]));
        self.wrote = true;
    }

    fn write(&mut self, text: &str) {
        let spoken = self.fence.is_none();
        match self.pieces.last_mut() {
            Some(last) if last.spoken == spoken => last.text.push_str(text),
            _ => self.pieces.push(Piece { text: text.to_string(), spoken }),
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

/// What became of the letters.
enum Taken {
    /// So many are dealt with.
    Done(usize),
    /// So many are read as if these stood in their place.
    Instead { count: usize, text: Vec<char> },
}

impl Taken {
    /// The first letter is no mark after all.
    fn or_letter(self, markup: &mut Markup, left: &[char]) -> Self {
        match (self, left.first()) {
            (Self::Done(1), Some(letter)) => {
                markup.say(*letter);
                Self::Done(1)
            }
            // Nothing is taken yet: the line goes on as text.
            _ => Self::Instead { count: 0, text: Vec::new() },
        }
    }
}

#[cfg(test)]
#[path = "markup_tests.rs"]
mod tests;
