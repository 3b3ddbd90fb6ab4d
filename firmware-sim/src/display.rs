//! The display: two views, precedence of contents, and drawing of a view as lines of text.
//!
//! Rules (PROTOCOL.md, section 11): a higher priority covers a lower one; among equals the latest is visible. When a
//! `show` ends, the previous content returns; a `replace` removes what it covers. A revision below the last one of the
//! view is stale.

use device_protocol::down::Display;
use device_protocol::{DisplayAction, Layout, View};

use crate::picture::Picture;

/// Size of a display whose size is not reported to the gateway.
const COLUMNS_UNTOLD: usize = 40;
const ROWS_UNTOLD: usize = 6;

/// Contents that one view keeps below the visible one.
const CONTENTS_MAX: usize = 16;

#[derive(Clone, Debug)]
struct Item {
    priority: u8,
    /// Order of arrival.
    order: u64,
    ends_us: Option<u64>,
    text: Text,
    countdown: Option<Countdown>,
}

/// The time left until an event.
#[derive(Clone, Copy, Debug)]
struct Countdown {
    due_us: u64,
    /// As displayed.
    left_s: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    layout: Layout,
    first: String,
    second: String,
    permille: u16,
    picture: Option<Picture>,
}

#[derive(Clone, Debug, Default)]
struct ViewState {
    revision: u32,
    items: Vec<Item>,
}

/// Outcome of a display frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Applied.
    Taken,
    /// Older than the visible content.
    Stale,
    /// A view or an action that these glasses do not know.
    Unknown,
}

/// The display with both views.
#[derive(Clone, Debug)]
pub struct Screen {
    columns: usize,
    rows: usize,
    arrivals: u64,
    main: ViewState,
    dashboard: ViewState,
}

impl Screen {
    /// An empty display of this size in characters; 0: a size that is not reported, drawn with the default.
    pub fn new(columns: u16, rows: u16) -> Self {
        let or = |told: u16, own: usize| if told == 0 { own } else { usize::from(told) };
        Self {
            columns: or(columns, COLUMNS_UNTOLD),
            rows: or(rows, ROWS_UNTOLD),
            arrivals: 0,
            main: ViewState::default(),
            dashboard: ViewState::default(),
        }
    }

    /// Clears everything: a new session restarts its revisions.
    pub fn reset(&mut self) {
        self.main = ViewState::default();
        self.dashboard = ViewState::default();
    }

    /// Applies a frame.
    pub fn handle(&mut self, now_us: u64, frame: &Display<'_>) -> Outcome {
        let order = self.arrivals;
        self.arrivals += 1;
        let view = match frame.view {
            View::Main => &mut self.main,
            View::Dashboard => &mut self.dashboard,
            View::Other(_) => return Outcome::Unknown,
        };
        if frame.revision < view.revision {
            return Outcome::Stale;
        }
        view.revision = frame.revision;
        view.expire(now_us);
        match frame.action {
            DisplayAction::Clear => {
                view.items.clear();
                return Outcome::Taken;
            }
            DisplayAction::Replace => view.items.retain(|item| item.priority > frame.priority),
            DisplayAction::Show => {}
            DisplayAction::Other(_) => return Outcome::Unknown,
        }
        if view.items.len() == CONTENTS_MAX {
            view.items.remove(0);
        }
        let ends_us = (frame.duration_ms > 0).then(|| now_us + u64::from(frame.duration_ms) * 1_000);
        let counts = frame.countdown_ms > 0 && frame.content.layout == Layout::ReferenceCard;
        let countdown = counts.then(|| Countdown { due_us: now_us + u64::from(frame.countdown_ms) * 1_000, left_s: 0 });
        let mut item = Item { priority: frame.priority, order, ends_us, text: Text::from(frame), countdown };
        item.count(now_us);
        view.items.push(item);
        Outcome::Taken
    }

    /// When a content ends next, or a countdown changes.
    pub fn poll_timeout(&self) -> Option<u64> {
        let items = self.main.items.iter().chain(&self.dashboard.items);
        items.flat_map(|item| [item.ends_us, item.countdown.map(|countdown| countdown.next_us())]).flatten().min()
    }

    /// Removes ended contents and updates countdowns; returns true if a content ended.
    pub fn handle_timeout(&mut self, now_us: u64) -> bool {
        let main = self.main.expire(now_us);
        self.dashboard.expire(now_us) || main
    }

    /// The text that a view shows, without layout; empty: nothing.
    pub fn text(&self, view: View) -> String {
        let Some(text) = self.view(view).and_then(ViewState::visible) else {
            return String::new();
        };
        let parts = [text.first.as_str(), text.second.as_str()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// The view with exactly the lines and columns of the display.
    pub fn draw(&self, view: View) -> Vec<String> {
        let text = self.view(view).and_then(ViewState::visible);
        let mut lines = text.map_or_else(Vec::new, |text| self.lay_out(text));
        lines.resize(self.rows, String::new());
        for line in &mut lines {
            let missing = self.columns.saturating_sub(line.chars().count());
            line.extend(std::iter::repeat_n(' ', missing));
        }
        lines
    }

    fn view(&self, view: View) -> Option<&ViewState> {
        match view {
            View::Main => Some(&self.main),
            View::Dashboard => Some(&self.dashboard),
            View::Other(_) => None,
        }
    }

    fn lay_out(&self, text: &Text) -> Vec<String> {
        let columns = self.columns;
        if let Some(picture) = &text.picture {
            return picture.draw(columns, self.rows);
        }
        let mut lines = match text.layout {
            Layout::Dashboard => {
                let left = columns / 2;
                let (first, second) = (wrap(&text.first, left), wrap(&text.second, columns - left));
                let rows = first.len().max(second.len());
                let at = |lines: &[String], row: usize| lines.get(row).cloned().unwrap_or_default();
                (0..rows).map(|row| format!("{:<left$}{}", at(&first, row), at(&second, row))).collect()
            }
            Layout::Progress => {
                let mut lines = wrap(&text.first, columns);
                let filled = columns * usize::from(text.permille.min(1_000)) / 1_000;
                lines.push("█".repeat(filled) + &"░".repeat(columns - filled));
                lines
            }
            // An unknown layout is shown as text, both parts one below the other.
            Layout::TextWall | Layout::ReferenceCard | Layout::DoubleText | Layout::Bitmap | Layout::Other(_) => {
                let mut lines = wrap(&text.first, columns);
                if !text.second.is_empty() {
                    lines.extend(wrap(&text.second, columns));
                }
                lines
            }
        };
        if lines.len() > self.rows {
            lines.truncate(self.rows);
            // An ellipsis shows the wearer that something is cut.
            if let Some(last) = lines.last_mut() {
                *last = last.trim_end().chars().take(columns - 1).collect::<String>() + "…";
            }
        }
        lines
    }
}

impl ViewState {
    fn visible(&self) -> Option<&Text> {
        self.items.iter().max_by_key(|item| (item.priority, item.order)).map(|item| &item.text)
    }

    fn expire(&mut self, now_us: u64) -> bool {
        let before = self.items.len();
        self.items.iter_mut().for_each(|item| item.count(now_us));
        self.items.retain(|item| item.ends_us.is_none_or(|ends| ends > now_us));
        self.items.len() != before
    }
}

impl Item {
    /// Updates the time left, in whole seconds, rounded up.
    fn count(&mut self, now_us: u64) {
        let Some(countdown) = &mut self.countdown else {
            return;
        };
        countdown.left_s = countdown.due_us.saturating_sub(now_us).div_ceil(1_000_000);
        let (hours, minutes, seconds) = (countdown.left_s / 3_600, countdown.left_s / 60 % 60, countdown.left_s % 60);
        self.text.second =
            if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") };
        self.countdown.take_if(|countdown| countdown.left_s == 0);
    }
}

impl Countdown {
    /// When the displayed time changes next.
    fn next_us(&self) -> u64 {
        self.due_us.saturating_sub((self.left_s.max(1) - 1) * 1_000_000)
    }
}

impl From<&Display<'_>> for Text {
    fn from(frame: &Display<'_>) -> Self {
        let content = &frame.content;
        let picture = frame.bitmap.as_ref().filter(|_| content.layout == Layout::Bitmap).and_then(Picture::new);
        Self {
            picture,
            layout: content.layout,
            first: plain(content.first),
            second: plain(content.second),
            permille: content.permille,
        }
    }
}

/// Removes control characters except the line feed, for the display and the terminal.
fn plain(text: &str) -> String {
    text.chars().filter(|c| *c == '\n' || !c.is_control()).collect()
}

/// Breaks at spaces, and within words that are longer than a line.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        let mut width = 0;
        for word in paragraph.split(' ') {
            let mut word: Vec<char> = word.chars().collect();
            if width > 0 && width + 1 + word.len() > columns {
                lines.push(std::mem::take(&mut line));
                width = 0;
            } else if width > 0 {
                line.push(' ');
                width += 1;
            }
            while word.len() > columns {
                lines.push(word.drain(..columns).collect());
            }
            width += word.len();
            line.extend(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use device_protocol::down::{Bitmap, Content};

    use super::*;

    fn frame(action: DisplayAction, priority: u8, duration_ms: u32, revision: u32, text: &str) -> Display<'_> {
        Display {
            action,
            view: View::Main,
            priority,
            duration_ms,
            revision,
            content: Content::text_wall(text),
            bitmap: None,
            countdown_ms: 0,
        }
    }

    fn screen() -> Screen {
        Screen::new(10, 3)
    }

    #[test]
    fn a_higher_priority_covers_and_what_was_there_comes_back() {
        let mut screen = screen();
        assert_eq!(screen.handle(0, &frame(DisplayAction::Show, 10, 0, 1, "answer")), Outcome::Taken);
        screen.handle(0, &frame(DisplayAction::Show, 200, 1_000, 2, "alarm"));
        screen.handle(0, &frame(DisplayAction::Show, 5, 0, 3, "beneath"));
        assert_eq!(screen.text(View::Main), "alarm");
        assert_eq!(screen.poll_timeout(), Some(1_000_000));
        assert!(!screen.handle_timeout(999_999));
        assert!(screen.handle_timeout(1_000_000));
        assert_eq!(screen.text(View::Main), "answer");
    }

    #[test]
    fn of_equal_priority_the_latest_is_seen_and_show_gives_way() {
        let mut screen = screen();
        screen.handle(0, &frame(DisplayAction::Show, 10, 0, 1, "one"));
        screen.handle(0, &frame(DisplayAction::Show, 10, 500, 2, "two"));
        assert_eq!(screen.text(View::Main), "two");
        screen.handle_timeout(500_000);
        assert_eq!(screen.text(View::Main), "one");
    }

    #[test]
    fn replace_does_away_with_what_it_covers() {
        let mut screen = screen();
        screen.handle(0, &frame(DisplayAction::Show, 10, 0, 1, "one"));
        screen.handle(0, &frame(DisplayAction::Replace, 10, 500, 2, "two"));
        screen.handle_timeout(500_000);
        assert_eq!(screen.text(View::Main), "");
    }

    #[test]
    fn replace_below_a_higher_priority_waits_for_its_end() {
        let mut screen = screen();
        screen.handle(0, &frame(DisplayAction::Show, 200, 500, 1, "alarm"));
        screen.handle(0, &frame(DisplayAction::Replace, 10, 0, 2, "answer"));
        assert_eq!(screen.text(View::Main), "alarm");
        screen.handle_timeout(500_000);
        assert_eq!(screen.text(View::Main), "answer");
    }

    #[test]
    fn stale_revisions_are_ignored_for_each_view_by_itself() {
        let mut screen = screen();
        screen.handle(0, &frame(DisplayAction::Show, 10, 0, 5, "new"));
        assert_eq!(screen.handle(0, &frame(DisplayAction::Show, 200, 0, 4, "old")), Outcome::Stale);
        assert_eq!(screen.handle(0, &frame(DisplayAction::Clear, 0, 0, 4, "")), Outcome::Stale);
        let dashboard = Display { view: View::Dashboard, ..frame(DisplayAction::Show, 1, 0, 1, "12:00") };
        assert_eq!(screen.handle(0, &dashboard), Outcome::Taken);
        assert_eq!((screen.text(View::Main), screen.text(View::Dashboard)), ("new".into(), "12:00".into()));
        // Equal is not lower: the same revision may be sent again.
        assert_eq!(screen.handle(0, &frame(DisplayAction::Clear, 0, 0, 5, "")), Outcome::Taken);
        assert_eq!(screen.text(View::Main), "");
    }

    #[test]
    fn duration_runs_from_arrival() {
        let mut screen = screen();
        screen.handle(7_000_000, &frame(DisplayAction::Show, 10, 2_000, 1, "x"));
        assert_eq!(screen.poll_timeout(), Some(9_000_000));
    }

    #[test]
    fn text_is_wrapped_and_cut_to_the_grid() {
        let mut screen = screen();
        screen.handle(0, &frame(DisplayAction::Show, 1, 0, 1, "Your timer is set for ten minutes now"));
        assert_eq!(screen.draw(View::Main), ["Your timer", "is set for", "ten…      "]);
        screen.handle(0, &frame(DisplayAction::Show, 1, 0, 2, "a\u{1b}[2Jb\nincomprehensible"));
        assert_eq!(screen.draw(View::Main), ["a[2Jb     ", "incomprehe", "nsible    "]);
    }

    #[test]
    fn layouts_have_their_own_drawing() {
        let mut screen = screen();
        for (revision, content, drawn) in [
            (1, Content::dashboard("12:00", "80%"), ["12:00  80%".replace("  ", "") + "  ", String::new()]),
            (2, Content::progress("copy", 500), ["copy      ".to_owned(), "█████░░░░░".to_owned()]),
            (3, Content::reference_card("Title", "text"), ["Title     ".to_owned(), "text      ".to_owned()]),
        ] {
            let show = frame(DisplayAction::Show, 1, 0, revision, "");
            screen.handle(0, &Display { content, ..show });
            let lines = screen.draw(View::Main);
            assert_eq!(lines[0], drawn[0]);
            assert_eq!(lines[1].trim_end(), drawn[1].trim_end());
        }
    }

    #[test]
    fn a_card_counts_down_to_zero() {
        let mut screen = screen();
        let show = frame(DisplayAction::Show, 1, 0, 1, "");
        let content = Content::reference_card("Timer", "1:01:01");
        screen.handle(0, &Display { content, countdown_ms: 3_660_500, ..show });
        for (at_us, shown) in [
            (0, "1:01:01"),
            (500_000, "1:01:00"),
            (1_499_999, "1:01:00"),
            (61_500_000, "59:59"),
            (3_659_499_999, "0:02"),
            (3_660_499_999, "0:01"),
            (3_660_500_000, "0:00"),
        ] {
            screen.handle_timeout(at_us);
            assert_eq!(screen.text(View::Main), format!("Timer\n{shown}"), "at {at_us}");
            assert!(screen.poll_timeout().is_none_or(|next| next > at_us && next <= at_us + 1_000_000), "at {at_us}");
        }
        assert_eq!(screen.poll_timeout(), None);
    }

    #[test]
    fn a_picture_is_drawn_and_one_that_is_not_whole_is_told_in_words() {
        let mut screen = screen();
        let show =
            |revision| Display { content: Content::bitmap("a bar"), ..frame(DisplayAction::Show, 1, 0, revision, "") };
        let bitmap = Bitmap { width_px: 8, height_px: 4, pixels: &[0xff; 4] };
        screen.handle(0, &Display { bitmap: Some(bitmap), ..show(1) });
        assert_eq!(
            screen.draw(View::Main)[1],
            "\u{2800}\u{2800}\u{2800}\u{28ff}\u{28ff}\u{28ff}\u{28ff}\u{2800}\u{2800}\u{2800}"
        );
        assert_eq!(screen.text(View::Main), "a bar");
        let short = Bitmap { pixels: &[0xff; 3], ..bitmap };
        for (revision, bitmap) in [(2, Some(short)), (3, None)] {
            screen.handle(0, &Display { bitmap, ..show(revision) });
            assert_eq!(screen.draw(View::Main)[0], "a bar     ");
        }
    }

    #[test]
    fn a_flood_of_contents_is_bounded() {
        let mut screen = screen();
        for revision in 0..1_000 {
            screen.handle(0, &frame(DisplayAction::Show, 1, 0, revision, "x"));
        }
        assert_eq!(screen.main.items.len(), CONTENTS_MAX);
    }
}
