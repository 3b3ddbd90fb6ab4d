//! What `lorgnette top` shows, and how.

use jiff::{Timestamp, tz::TimeZone};
use ratatui::{
    buffer::Buffer,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Paragraph, Widget as _},
};
use serde_json::Value;
use tools::inspection::logs::{LogEntry, LogLevel};

use crate::{
    clock,
    control::status::Status,
    telemetry::spans::{columns, kinds, share},
    text::in_one_line,
    units::{ago, bytes},
};

/// Lines of the block with the numbers of the box: its content and its border.
const BOX_LINES: u16 = 8;
/// Lines of the sessions, at most.
const SESSION_LINES_MAX: usize = 10;
/// Columns of the percentiles of turns.
const TURN_COLUMNS: u16 = 46;
/// Percentiles that are shown.
const SHARES: [usize; 4] = [50, 90, 95, 99];

/// Of a stage of turns: its name, how many turns came through it, and its percentiles in microseconds.
type Shares = (&'static str, usize, [Option<u64>; SHARES.len()]);

/// What there is to show.
pub(super) struct Screen {
    pub(super) status: Box<Status>,
    pub(super) turns: Vec<Value>,
    /// Newest first.
    pub(super) logs: Vec<LogEntry>,
    /// Why this is not of now.
    pub(super) fault: Option<String>,
}

fn title(text: &str) -> Block<'_> {
    Block::bordered().title(text)
}

fn shares_of(turns: &[&Value]) -> Vec<Shares> {
    let of_column = |(title, sorted): (&'static str, Vec<u64>)| {
        (title, sorted.len(), SHARES.map(|percent| share(&sorted, percent)))
    };
    columns(turns.iter().copied()).into_iter().map(of_column).collect()
}

fn milliseconds(us: Option<u64>) -> String {
    us.map_or_else(|| "-".to_owned(), |us| format!("{:.0}", us as f64 / 1_000.0))
}

impl Screen {
    /// Draws it; what does not fit is left out, the oldest lines of the log first. `keys`: what a key does, if there are any.
    pub(super) fn draw(&self, area: Rect, buffer: &mut Buffer, keys: &str) {
        // There is room for one kind.
        let [spoken, typed] = kinds(&self.turns);
        let of_turns = if spoken.turns.is_empty() && !typed.turns.is_empty() { typed } else { spoken };
        let shares = shares_of(&of_turns.turns);
        let sessions = self.sessions();
        let lines = |count: usize| u16::try_from(count + 2).unwrap_or(u16::MAX);
        let middle = BOX_LINES.max(lines(shares.len() + 1));
        let [head, of_sessions, numbers, log] = Layout::vertical([
            Constraint::Length(lines(self.head("").len()) - 2),
            Constraint::Length(lines(sessions.len())),
            Constraint::Length(middle),
            Constraint::Min(3),
        ])
        .areas(area);
        Paragraph::new(self.head(keys)).render(head, buffer);
        let name = format!(" sessions: {} of {} ", self.status.sessions.len(), self.status.sessions_max);
        Paragraph::new(sessions).block(title(&name)).render(of_sessions, buffer);
        let name = format!(" {} turns: {}, ms after {} ", of_turns.name, of_turns.turns.len(), of_turns.from);
        let [of_turns, of_box] =
            Layout::horizontal([Constraint::Length(TURN_COLUMNS), Constraint::Min(20)]).areas(numbers);
        Paragraph::new(turns(&shares)).block(title(&name)).render(of_turns, buffer);
        Paragraph::new(self.numbers()).block(title(" box and queues ")).render(of_box, buffer);
        let shown = usize::from(log.height.saturating_sub(2));
        Paragraph::new(self.log(shown)).block(title(" log ")).render(log, buffer);
    }

    fn head(&self, keys: &str) -> Vec<Line<'_>> {
        let Status { version, up_s, problems, .. } = self.status.as_ref();
        let red = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        let mut lines = vec![Line::raw(format!("lorgnette {version}, up for {}{keys}", ago(*up_s)))];
        lines.extend(self.fault.iter().map(|fault| Line::styled(format!("NOT OF NOW: {}", in_one_line(fault)), red)));
        let problem = |part: &str, why: &str| Line::styled(format!("PROBLEM {part}: {}", in_one_line(why)), red);
        lines.extend(problems.iter().map(|found| problem(&found.part, &found.why)));
        lines
    }

    fn sessions(&self) -> Vec<Line<'_>> {
        let sessions = &self.status.sessions;
        let mut lines: Vec<Line<'_>> = sessions
            .iter()
            .take(SESSION_LINES_MAX)
            .map(|(user, name, session)| {
                let turn = session.turn.map_or_else(|| "-".to_owned(), |turn| format!("turn {turn}"));
                let battery = session.battery_percent.map_or_else(String::new, |percent| format!("{percent} %"));
                let state = session.lost_s.map_or_else(|| ago(session.for_s), |lost| format!("lost {}", ago(lost)));
                let (name, user) = (in_one_line(name), in_one_line(user));
                Line::raw(format!("{name:<24} {user:<16} {:<5} {state:<12} {turn:<10} {battery}", session.transport))
            })
            .collect();
        let more = sessions.len().saturating_sub(SESSION_LINES_MAX);
        if more > 0 {
            lines.push(Line::raw(format!("and {more} more")));
        }
        if lines.is_empty() {
            lines.push(Line::raw("nobody is connected"));
        }
        lines
    }

    fn numbers(&self) -> Vec<Line<'_>> {
        let status = self.status.as_ref();
        let mut lines = Vec::new();
        if let Some([one, five, fifteen]) = status.load {
            lines.push(format!("load    {one:.2} {five:.2} {fifteen:.2} of {} cores", status.cores));
        }
        if let Some(memory) = status.memory {
            let (own, free, all) = (memory.gateway_bytes, memory.available_bytes, memory.total_bytes);
            lines.push(format!("memory  {} own, {} of {} free", bytes(own), bytes(free), bytes(all)));
        }
        if let Some((free, all)) = status.disk {
            lines.push(format!("disk    {} of {} free", bytes(free), bytes(all)));
        }
        if let Some(temperature) = status.temperature_c {
            lines.push(format!("heat    {temperature:.0} °C"));
        }
        let heard = &status.recogniser;
        lines.push(format!("decodes {} of {} threads, {} wait", heard.running, heard.workers, heard.waiting));
        let busy = status.queues.iter().filter(|queue| queue.waiting > 0 || queue.refused > 0);
        lines.extend(busy.map(|queue| format!("{}: {} wait, {} refused", queue.name, queue.waiting, queue.refused)));
        lines.into_iter().map(Line::raw).collect()
    }

    /// The newest lines, the newest last.
    fn log(&self, shown: usize) -> Vec<Line<'_>> {
        let zone = clock::zone();
        self.logs.iter().take(shown).rev().map(|entry| line(entry, &zone)).collect()
    }
}

fn line<'a>(entry: &'a LogEntry, zone: &TimeZone) -> Line<'a> {
    let at = Timestamp::from_millisecond(entry.wall_ms).map(|at| at.to_zoned(zone.clone()));
    let at = at.map_or_else(|_| String::new(), |at| at.strftime("%H:%M:%S").to_string());
    let colour = match entry.level {
        LogLevel::Error => Color::Red,
        LogLevel::Warn => Color::Yellow,
        LogLevel::Info => Color::Reset,
    };
    let level = Span::styled(format!("{:<5} ", entry.level.name()), Style::new().fg(colour));
    Line::from(vec![Span::raw(format!("{at} ")), level, Span::raw(in_one_line(&entry.message))])
}

fn turns(shares: &[Shares]) -> Vec<Line<'static>> {
    let head = format!("{:<8} {:>5} {:>6} {:>6} {:>6} {:>6}", "stage", "turns", "p50", "p90", "p95", "p99");
    let row = |(stage, count, shares): &Shares| {
        let [p50, p90, p95, p99] = shares.map(milliseconds);
        Line::raw(format!("{stage:<8} {count:>5} {p50:>6} {p90:>6} {p95:>6} {p99:>6}"))
    };
    std::iter::once(Line::styled(head, Style::new().add_modifier(Modifier::BOLD)))
        .chain(shares.iter().map(row))
        .collect()
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend};
    use serde_json::json;

    use super::{super::text_of, *};

    fn screen(sessions: usize) -> Screen {
        let session = json!(["ann", "Ann's \u{1b}[31mglasses", {"transport": "quic", "peer": "10.0.0.2:5", "for_s": 65,
            "firmware": "1", "battery_percent": 80, "turn": 7}]);
        let status = json!({
            "version": "1.2.3", "up_s": 7_200, "web": "127.0.0.1:8460", "quic": null,
            "problems": [{"part": "disk", "why": "it is full"}],
            "sessions": vec![session; sessions],
            "sessions_max": 128, "waiting": 0, "users": 1, "users_max": 64, "questions": 0, "models": [],
            "recogniser": {"model": "m", "workers": 2, "running": 1, "waiting": 3}, "mcp": [], "apps": 0, "apps_running": 0,
            "store": null, "disk": [1_073_741_824_u64, 2_147_483_648_u64],
            "queues": [{"name": "synthesis", "waiting": 2, "refused": 0}, {"name": "files", "waiting": 0, "refused": 0}],
            "cores": 4, "load": [0.5, 0.25, 0.75]
        });
        let entry = |number: i64| LogEntry {
            wall_ms: number,
            level: LogLevel::Warn,
            context: "gateway".to_owned(),
            source: "gateway".to_owned(),
            message: format!("line {number}\nof the log"),
        };
        let turns = vec![json!({"final_us": 1_000, "first_display_us": 51_000})];
        let status = serde_json::from_value(status).unwrap();
        Screen { status: Box::new(status), turns, logs: (0..50).rev().map(entry).collect(), fault: None }
    }

    fn drawn(screen: &Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame.area(), frame.buffer_mut(), "; q ends this")).unwrap();
        text_of(terminal.backend().buffer())
    }

    #[test]
    fn all_parts_are_on_the_screen() {
        let text = drawn(&screen(1), 110, 40);
        for part in [
            "lorgnette 1.2.3, up for 2 h 0 min",
            "PROBLEM disk: it is full",
            "sessions: 1 of 128",
            "turn 7",
            "80 %",
            "load    0.50 0.25 0.75 of 4 cores",
            "disk    1.0 GiB of 2.0 GiB free",
            "decodes 1 of 2 threads, 3 wait",
            "synthesis: 2 wait",
            "typed turns: 1, ms after the text",
            "line 49",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(text.lines().any(|line| line.contains("display") && line.contains("50")), "{text}");
        assert!(!text.contains("files:") && !text.contains('\u{1b}'), "{text}");
        // Once somebody has spoken, what is typed has no part in the times.
        let mut both = screen(1);
        both.turns.push(json!({"last_voice_us": 1_000, "final_us": 301_000, "first_display_us": 701_000}));
        let both = drawn(&both, 110, 40);
        assert!(both.contains("spoken turns: 1, ms after the last word"), "{both}");
        let of_display = both.lines().find(|line| line.contains("display")).unwrap();
        assert!(of_display.contains(" 700 ") && !of_display.contains(" 50 "), "{both}");
        // The newest line is the last one.
        let at = |part: &str| text.lines().position(|line| line.contains(part));
        assert!(at("line 48") < at("line 49"), "{text}");
    }

    #[test]
    fn any_size_of_a_terminal_is_drawn() {
        let screen = Screen { fault: Some("no gateway runs".to_owned()), ..screen(0) };
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            drawn(&screen, width, height);
        }
        assert!(drawn(&screen, 80, 24).contains("NOT OF NOW: no gateway runs"));
        assert!(drawn(&self::screen(30), 110, 60).contains("and 20 more"));
    }
}
