//! `lorgnette ask`.

use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};

use anyhow::{Result, bail};

use crate::{
    config::Checked,
    control::{
        Answer, Request,
        ask::{Event, Reply},
        client,
    },
};

/// Ask the assistant as a user, in text: the same history, tools and questions as with glasses. Ctrl-C cancels the turn.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// What to ask; several words need no quotes.
    #[arg(required = true)]
    words: Vec<String>,
    /// Whose assistant.
    #[arg(long, default_value = "wearer")]
    user: String,
    /// One JSON object for each event, instead of text; questions are answered with `--yes` or `--no` then.
    #[arg(long)]
    json: bool,
    /// Say yes to every question.
    #[arg(long, conflicts_with = "no")]
    yes: bool,
    /// Say no to every question.
    #[arg(long)]
    no: bool,
}

pub(super) fn run(config: &Checked, arguments: &Arguments) -> Result<()> {
    let request = Request::Ask { user: arguments.user.clone(), text: arguments.words.join(" ") };
    let mut stream = client::send(&config.data_dir, &request)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut page = Page::default();
    loop {
        let event = match client::next(&mut reader)? {
            Some(Answer::Asked { event }) => event,
            Some(answer) => bail!("unexpected answer: {answer:?}"),
            None => bail!("the gateway went away before the answer was complete"),
        };
        if arguments.json {
            let mut out = std::io::stdout().lock();
            writeln!(out, "{}", serde_json::to_string(&event)?)?;
            out.flush()?;
        } else {
            page.print(&event)?;
        }
        match event {
            Event::Question { id, .. } => {
                let reply = Reply { question: id, yes: agrees(arguments)? };
                let mut line = serde_json::to_vec(&reply)?;
                line.push(b'\n');
                stream.write_all(&line)?;
            }
            Event::Done => return Ok(()),
            Event::Ended { message } => bail!("the gateway ended the session: {message}"),
            _ => {}
        }
    }
}

/// Where nobody can be asked, nobody has agreed.
fn agrees(arguments: &Arguments) -> Result<bool> {
    if arguments.yes || arguments.no || arguments.json || !std::io::stdin().is_terminal() {
        return Ok(arguments.yes);
    }
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// What stands on the terminal.
#[derive(Default)]
struct Page {
    /// Whether the line under way has text.
    open: bool,
}

impl Page {
    fn print(&mut self, event: &Event) -> Result<()> {
        let mut out = std::io::stdout().lock();
        match event {
            Event::Text { text, anew } => {
                if *anew && self.open {
                    writeln!(out)?;
                }
                write!(out, "{text}")?;
                self.open = !text.ends_with('\n');
            }
            Event::Shown { title, text } => {
                self.end_line(&mut out)?;
                for line in [title, text].into_iter().flat_map(|part| part.lines()) {
                    writeln!(out, "| {line}")?;
                }
            }
            Event::Tool { label, state } if state == "started" => self.aside(&format!("[{label}]"))?,
            Event::Tool { label, state } if state == "failed" => self.aside(&format!("[{label} failed]"))?,
            Event::Tool { .. } => {}
            Event::Question { tool, text, expires_ms, .. } => {
                self.end_line(&mut out)?;
                write!(out, "{text} ({tool}; yes or no, {} s) ", expires_ms / 1_000)?;
                self.open = true;
            }
            Event::Settled { yes, .. } => {
                self.end_line(&mut out)?;
                writeln!(out, "{}", if *yes { "Agreed." } else { "Not agreed." })?;
            }
            Event::Done | Event::Ended { .. } => self.end_line(&mut out)?,
        }
        out.flush()?;
        Ok(())
    }

    fn end_line(&mut self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        if std::mem::take(&mut self.open) {
            writeln!(out)?;
        }
        Ok(())
    }

    /// What is no part of the answer does not stand in its way.
    fn aside(&self, text: &str) -> std::io::Result<()> {
        writeln!(std::io::stderr().lock(), "{text}")
    }
}
