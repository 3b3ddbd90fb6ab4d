//! `lorgnette top`: the gateway at work, on a screen that is drawn anew every second. Where the output is no terminal, one
//! screen as text.

mod screen;

use std::{
    io::{self, IsTerminal as _, Stdout, Write as _, stdin, stdout},
    path::Path,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use ratatui::{Terminal, buffer::Buffer, layout::Rect};
use ratatui_crossterm::{
    CrosstermBackend,
    crossterm::{
        cursor::Show,
        event::{self, Event, KeyCode, KeyModifiers},
        execute,
        terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
    },
};
use tools::inspection::logs::LogFilter;

use self::screen::Screen;
use crate::{
    config::Config,
    control::{Answer, Request, client::ask},
};

/// Between two screens.
const EVERY: Duration = Duration::from_secs(1);
/// Lines of the log that are read: more than fit.
const LOG_MAX: usize = 50;
/// Turns that count for the percentiles: all that the gateway has in memory.
const TURNS_MAX: usize = 256;
/// Columns and lines of a screen that is printed.
const PRINTED: Rect = Rect { x: 0, y: 0, width: 110, height: 40 };

/// Watch the gateway at work; q ends it. Where the output is no terminal, one screen is printed.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Print one screen, also on a terminal.
    #[arg(long)]
    once: bool,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let first = read(&config.data_dir)?;
    if arguments.once || !stdout().is_terminal() || !stdin().is_terminal() {
        let mut buffer = Buffer::empty(PRINTED);
        first.draw(PRINTED, &mut buffer, "");
        stdout().write_all(text_of(&buffer).as_bytes())?;
        return Ok(());
    }
    let _taken = Taken::over().context("taking over the terminal")?;
    let mut terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
    watch(&mut terminal, &config.data_dir, first)
}

/// A terminal that shows its second screen and passes on each key; it is as it was when this goes.
struct Taken;

impl Taken {
    fn over() -> io::Result<Self> {
        enable_raw_mode()?;
        let taken = Self;
        execute!(stdout(), EnterAlternateScreen)?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Nothing is left to do about a terminal that went away.
        let _left = execute!(stdout(), LeaveAlternateScreen, Show);
        let _cooked = disable_raw_mode();
    }
}

fn watch(terminal: &mut Terminal<CrosstermBackend<Stdout>>, data_dir: &Path, first: Screen) -> Result<()> {
    let mut screen = first;
    loop {
        terminal.draw(|frame| screen.draw(frame.area(), frame.buffer_mut(), "; q ends this"))?;
        // A key that does nothing draws the next screen a little earlier.
        if event::poll(EVERY)?
            && let Event::Key(key) = event::read()?
            && (matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
                || (key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)))
        {
            return Ok(());
        }
        // A gateway that is replaced or started again answers a little later.
        match read(data_dir) {
            Ok(new) => screen = new,
            Err(error) => screen.fault = Some(format!("{error:#}")),
        }
    }
}

/// What there is to show.
fn read(data_dir: &Path) -> Result<Screen> {
    let Answer::Status { status } = ask(data_dir, &Request::Status)? else { bail!("unexpected answer") };
    let Answer::Turns { turns } = ask(data_dir, &Request::Turns { count: TURNS_MAX })? else {
        bail!("unexpected answer");
    };
    let request = Request::Logs { filter: LogFilter::default(), limit: LOG_MAX, cursor: None };
    let Answer::Logs { logs, .. } = ask(data_dir, &request)? else { bail!("unexpected answer") };
    Ok(Screen { status, turns, logs, fault: None })
}

/// The characters of a screen, without blanks at the ends.
fn text_of(buffer: &Buffer) -> String {
    let area = buffer.area;
    let mut text = String::new();
    for y in area.top()..area.bottom() {
        let line: String = (area.left()..area.right()).map(|x| buffer[(x, y)].symbol()).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}
