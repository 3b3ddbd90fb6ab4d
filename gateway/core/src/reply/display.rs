//! The display of the answer: text that fits, at a readable pace, as growing revisions.

use alloc::{format, string::String, vec::Vec};
use core::num::NonZeroU16;

use crate::{
    agent::phrases::YOU_CAN_SAY,
    context::Context,
    display::wrap,
    output::{Output, Stage},
    timers::Timer,
    vocab::{Content, DisplaySize, Priority, Turn},
};

/// Reading time of a character: about 20 characters a second, as of a slow silent reader.
const READ_MS_PER_CHAR: u32 = 50;
/// Shortest time that a page is shown.
const PAGE_MS_MIN: u32 = 2_500;
/// Content of a tool or an announcement is shown at least as long as the words that accompany it may take.
const SHOWN_MS_MIN: u32 = 10_000;
/// Longest time that anything is shown after it is complete.
const STANDS_MS_MAX: u32 = 30_000;

/// The assistant's part of the display.
#[derive(Debug, Default)]
pub(crate) struct AnswerDisplay {
    answer: String,
    page: usize,
    turn: Option<Turn>,
    /// Whether any of the answer was visible.
    drawn: bool,
    /// The priority with which it is shown.
    holds: Option<Priority>,
    dirty: bool,
    /// Whether the answer is complete: its last page expires by itself.
    whole: bool,
    /// A tool shows something of its own: the answer is only spoken.
    taken: bool,
    /// Something is said between the pages of a complete answer, which go on.
    between: bool,
    /// Whether the page was, or may have been, covered by something else, or not sent.
    covered: bool,
    /// The reading time of the page, in milliseconds.
    read_ms: u32,
    /// Suggestions of what the wearer may say next.
    follow_ups: Vec<String>,
}

impl AnswerDisplay {
    /// Begins a new answer.
    pub(super) fn begin(&mut self, cx: &mut Context, turn: Option<Turn>) {
        // A page with another one behind it has no end of its own.
        if self.is_paging(cx) {
            cx.release(Priority::Assistant);
        }
        self.answer.clear();
        self.page = 0;
        self.turn = turn;
        self.drawn = false;
        self.holds = None;
        self.dirty = false;
        self.whole = false;
        self.taken = false;
        self.between = false;
        self.covered = false;
        self.follow_ups.clear();
        cx.disarm(Timer::DisplayDue);
        cx.disarm(Timer::PageDue);
    }

    /// Begins what is no answer: pages that are still to come go on, and its words are not shown.
    pub(super) fn begin_between(&mut self, cx: &mut Context) {
        if self.is_paging(cx) {
            self.between = true;
            self.covered = true;
            self.taken = true;
        } else {
            self.begin(cx, None);
        }
    }

    /// Whether what is said now stands between the pages of an answer.
    pub(super) fn is_between(&self) -> bool {
        self.between
    }

    /// Whether further pages of an answer are to come.
    pub(crate) fn is_paging(&self, cx: &Context) -> bool {
        cx.armed(Timer::PageDue)
    }

    /// The whole answer, if not all of its pages were shown.
    pub(super) fn unread(&self, cx: &Context) -> Option<String> {
        self.is_paging(cx).then(|| String::from(self.answer.trim()))
    }

    /// What is said next is not shown.
    pub(super) fn say_only(&mut self) {
        self.taken = true;
    }

    /// Sets the follow-ups, which are shown after the answer's last page if there is room.
    pub(super) fn suggest(&mut self, follow_ups: Vec<String>) {
        self.follow_ups = follow_ups;
    }

    /// Adds text of the answer. Drawn at most every `display_interval_ms`.
    pub(super) fn push(&mut self, cx: &mut Context, text: &str) {
        if cx.display.is_none() || self.taken {
            return;
        }
        self.answer.push_str(text);
        self.dirty = true;
        if !cx.armed(Timer::DisplayDue) {
            self.draw(cx);
            cx.arm(Timer::DisplayDue, cx.config.display_interval_ms);
        }
    }

    /// Separates the following text from the last word.
    pub(super) fn space(&mut self) {
        if !self.answer.is_empty() {
            self.answer.push(' ');
        }
    }

    pub(crate) fn handle_display_due(&mut self, cx: &mut Context) {
        if self.dirty {
            self.draw(cx);
            cx.arm(Timer::DisplayDue, cx.config.display_interval_ms);
        }
    }

    pub(crate) fn handle_page_due(&mut self, cx: &mut Context) {
        let is_covered = !cx.linked || cx.is_claimed(Priority::Notice) || cx.is_claimed(Priority::Approval);
        // A page that was covered comes back, and is read to its end first.
        if core::mem::replace(&mut self.covered, is_covered) || is_covered {
            return cx.arm(Timer::PageDue, if is_covered { PAGE_MS_MIN } else { self.read_ms });
        }
        self.page += 1;
        self.draw(cx);
    }

    /// The link is back: the page may come only now, and is read to its end first.
    pub(super) fn handle_resumed(&mut self, cx: &Context) {
        self.covered |= self.is_paging(cx);
    }

    /// The answer is complete: the rest is drawn and expires by itself.
    pub(super) fn complete(&mut self, cx: &mut Context) {
        cx.disarm(Timer::DisplayDue);
        if self.answer.trim().is_empty() || self.taken {
            return;
        }
        self.whole = true;
        self.draw(cx);
    }

    /// Shows content of a tool, or a notice, on these pages. `keeps`: spoken text does not replace it.
    pub(super) fn show(&mut self, cx: &mut Context, mut pages: Vec<Content>, priority: Priority, keeps: bool) {
        let (Some(size), Some(last)) = (cx.display, pages.pop()) else {
            return;
        };
        let stands_ms = stands_ms(chars(&last)).max(SHOWN_MS_MIN);
        let timed = |page: Content| (reading_ms(&page), page);
        let pages = pages.into_iter().map(timed).chain([(stands_ms, last)]);
        let mut pages = pages.map(|(ms, page)| (fit(page, size), ms));
        let Some((first, first_ms)) = pages.next() else {
            return;
        };
        let (first, further) = ((first, Some(first_ms)), pages.collect());
        if self.between {
            cx.claim_pages(priority, first, further);
            return;
        }
        self.taken = keeps;
        self.dirty = false;
        // Further pages of the words before it do not replace it either; words behind it begin anew.
        cx.disarm(Timer::DisplayDue);
        cx.disarm(Timer::PageDue);
        self.answer.clear();
        self.page = 0;
        self.put(cx, priority, first, further);
    }

    /// Removes the answer from the display.
    pub(super) fn clear(&mut self, cx: &mut Context) {
        cx.disarm(Timer::DisplayDue);
        cx.disarm(Timer::PageDue);
        self.dirty = false;
        if core::mem::take(&mut self.between) {
            cx.release(Priority::Notice);
        }
        if let Some(priority) = self.holds.take() {
            cx.release(priority);
        }
    }

    fn draw(&mut self, cx: &mut Context) {
        let Some(size) = cx.display else {
            return;
        };
        self.dirty = false;
        let lines = wrap(self.answer.trim_start(), size);
        let rows = size.lines_max();
        let start = self.page.saturating_mul(rows);
        let end = lines.len().min(start.saturating_add(rows));
        let mut text = join(lines.get(start..end));
        let more = end < lines.len();
        if text.trim().is_empty() {
            return;
        }
        if self.whole && !more {
            let offered = offer(&self.follow_ups, size, rows.saturating_sub(end - start));
            if let Some((line, count)) = offered {
                text.push('\n');
                text.push_str(&line);
                if let Some(turn) = self.turn {
                    cx.push(Output::FollowUpsOffered { turn, count });
                }
            }
        }
        let chars = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        if more && !cx.armed(Timer::PageDue) {
            self.read_ms = chars.saturating_mul(READ_MS_PER_CHAR).max(PAGE_MS_MIN);
            cx.arm(Timer::PageDue, self.read_ms);
        }
        let duration_ms = (self.whole && !more).then(|| stands_ms(chars));
        self.put(cx, Priority::Assistant, (Content::Text { text }, duration_ms), Vec::new());
    }

    fn put(
        &mut self,
        cx: &mut Context,
        priority: Priority,
        first: (Content, Option<u32>),
        further: Vec<(Content, u32)>,
    ) {
        self.holds = Some(priority);
        let seen = cx.claim_pages(priority, first, further);
        if let Some(turn) = self.turn.filter(|_| seen && !self.drawn) {
            cx.mark(turn, Stage::FirstDisplay);
        }
        self.drawn |= seen;
    }
}

/// As many of the sentences as fit into this many rows, with their number.
fn offer(follow_ups: &[String], size: DisplaySize, rows: usize) -> Option<(String, u8)> {
    (1..=follow_ups.len()).rev().find_map(|count| {
        let sentences: Vec<String> = follow_ups.iter().take(count).map(|sentence| format!("\"{sentence}\"")).collect();
        let line = format!("{YOU_CAN_SAY} {}", sentences.join(", "));
        let lines = wrap(&line, size);
        (lines.len() <= rows).then(|| (lines.join("\n"), u8::try_from(count).unwrap_or(u8::MAX)))
    })
}

/// How long a text of this many characters is shown, in milliseconds.
fn stands_ms(chars: u32) -> u32 {
    chars.saturating_mul(READ_MS_PER_CHAR).saturating_add(PAGE_MS_MIN).min(STANDS_MS_MAX)
}

/// Number of characters of a layout.
fn chars(content: &Content) -> u32 {
    let chars: usize = content.texts().iter().map(|text| text.chars().count()).sum();
    u32::try_from(chars).unwrap_or(u32::MAX)
}

/// Reading time of a page, in milliseconds.
pub(crate) fn reading_ms(content: &Content) -> u32 {
    chars(content).saturating_mul(READ_MS_PER_CHAR).max(PAGE_MS_MIN)
}

/// A title and the whole text below it, on as many pages as the display needs; at least one.
pub(crate) fn cards(title: &str, text: &str, size: Option<DisplaySize>) -> Vec<Content> {
    let whole = || alloc::vec![Content::Card { title: String::from(title), text: String::from(text) }];
    let grid = size.and_then(|size| size.grid().filter(|(_, rows)| *rows > 1).map(|grid| (size, grid)));
    let Some((size, (columns, rows))) = grid else {
        return whole();
    };
    let lines = wrap(text, size);
    let pages: Vec<&[String]> = lines.chunks(usize::from(rows) - 1).collect();
    if pages.len() < 2 && title.chars().count() <= usize::from(columns) {
        return whole();
    }
    let count = pages.len().max(1);
    let page = |(at, lines): (usize, &&[String])| {
        let number = if count > 1 { format!(" {}/{count}", at + 1) } else { String::new() };
        let room = usize::from(columns).saturating_sub(number.chars().count());
        let mut title: String = if title.chars().count() > room {
            title.chars().take(room.saturating_sub(1)).chain(['…']).collect()
        } else {
            String::from(title)
        };
        title.push_str(&number);
        Content::Card { title, text: lines.join("\n") }
    };
    let none: &[String] = &[];
    if pages.is_empty() { alloc::vec![page((0, &none))] } else { pages.iter().enumerate().map(page).collect() }
}

/// Cuts a layout to the size of the display.
fn fit(content: Content, size: DisplaySize) -> Content {
    let rows = size.lines_max();
    match content {
        Content::Text { text } => Content::Text { text: first_lines(&text, size, rows) },
        Content::Card { title, text } => Content::Card {
            title: first_lines(&title, size, 1),
            text: first_lines(&text, size, rows.saturating_sub(1)),
        },
        Content::Countdown { title, left_ms } => Content::Countdown { title: first_lines(&title, size, 1), left_ms },
        Content::Double { top, bottom } => Content::Double {
            top: first_lines(&top, size, rows.div_ceil(2)),
            bottom: first_lines(&bottom, size, rows / 2),
        },
        Content::Dashboard { left, right } => {
            let columns = size.columns.and_then(|columns| NonZeroU16::new(columns.get().div_ceil(2)));
            let half = DisplaySize { columns, ..size };
            Content::Dashboard { left: first_lines(&left, half, rows), right: first_lines(&right, half, rows) }
        }
        Content::Bitmap { bitmap, text } => Content::Bitmap { bitmap, text: first_lines(&text, size, rows) },
    }
}

fn first_lines(text: &str, size: DisplaySize, rows: usize) -> String {
    let lines = wrap(text, size);
    join(lines.get(..rows.min(lines.len())))
}

fn join(lines: Option<&[String]>) -> String {
    lines.unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn layouts_are_cut_to_the_size() {
        let size = DisplaySize::new(5, 3);
        let long = "a b c d e f g h i j k l m n o p".to_string();
        assert_eq!(
            fit(Content::Card { title: long.clone(), text: long.clone() }, size),
            Content::Card { title: "a b c".into(), text: "a b c\nd e f".into() }
        );
        assert_eq!(
            fit(Content::Double { top: long.clone(), bottom: long.clone() }, size),
            Content::Double { top: "a b c\nd e f".into(), bottom: "a b c".into() }
        );
        assert_eq!(
            fit(Content::Dashboard { left: long.clone(), right: long.clone() }, size),
            Content::Dashboard { left: "a b\nc d\ne f".into(), right: "a b\nc d\ne f".into() }
        );
        assert_eq!(fit(Content::Text { text: long }, size), Content::Text { text: "a b c\nd e f\ng h i".into() });
    }

    #[test]
    fn what_has_no_known_size_is_not_cut() {
        let long = "a b c d e f g h i j k l m n o p\nq".to_string();
        for (columns, rows) in [(0, 0), (0, 3)] {
            let size = DisplaySize::new(columns, rows);
            for content in [
                Content::Text { text: long.clone() },
                Content::Double { top: long.clone(), bottom: long.clone() },
                Content::Dashboard { left: long.clone(), right: long.clone() },
            ] {
                assert_eq!(fit(content.clone(), size), content, "{columns} {rows}");
            }
        }
        let Content::Text { text } = fit(Content::Text { text: long }, DisplaySize::new(5, 0)) else {
            panic!("the layout stays");
        };
        assert_eq!(text.lines().count(), 7, "broken, and all of it");
    }

    #[test]
    fn two_blocks_share_the_rows() {
        let long = "a b c d e f g h i j k l m n o p".to_string();
        for (rows, top, bottom) in [(4, 2, 2), (5, 3, 2), (1, 1, 0)] {
            let size = DisplaySize::new(5, rows);
            let content = Content::Double { top: long.clone(), bottom: long.clone() };
            let Content::Double { top: above, bottom: below } = fit(content, size) else {
                panic!("the layout stays");
            };
            assert_eq!((above.lines().count(), below.lines().count()), (top, bottom));
        }
    }

    #[test]
    fn all_of_a_layout_is_read() {
        let (one, two) = ("äbc".to_string(), "defgh".to_string());
        for (content, expected) in [
            (Content::Text { text: one.clone() }, 3),
            (Content::Card { title: one.clone(), text: two.clone() }, 8),
            (Content::Double { top: one, bottom: two }, 8),
        ] {
            assert_eq!(chars(&content), expected);
        }
    }

    #[test]
    fn a_text_stands_as_long_as_reading_takes() {
        assert_eq!(stands_ms(0), 2_500);
        assert_eq!(stands_ms(100), 7_500);
        assert_eq!(stands_ms(u32::MAX), 30_000);
    }
}
