//! `lorgnette ask`.

use std::{
    io::{BufRead as _, BufReader, IsTerminal as _, Write as _},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context as _, Result, bail};

use crate::{
    config::Config,
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
    /// Name of the user.
    #[arg(long, default_value = "wearer")]
    user: String,
    /// One JSON object per event, instead of text; questions are treated as without a terminal.
    #[arg(long)]
    json: bool,
    /// Say yes to every question. Without a terminal a question waits for `lorgnette approvals approve`.
    #[arg(long, conflicts_with = "no")]
    yes: bool,
    /// Say no to every question.
    #[arg(long)]
    no: bool,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let request = Request::Ask { user: arguments.user.clone(), text: arguments.words.join(" ") };
    let stream = client::send(&config.data_dir, &request)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut wearer = Wearer::of(arguments, stream);
    let mut page = Page::default();
    // Whether there was a question that only others can answer, and whether one was not answered with yes.
    let (mut waits, mut refused) = (None, false);
    loop {
        let event = match client::next(&mut reader)? {
            Some(Answer::Asked { event }) => event,
            Some(answer) => bail!("unexpected answer: {answer:?}"),
            None => bail!("the gateway went away before the answer was complete"),
        };
        if arguments.json {
            println!("{}", serde_json::to_string(&event)?);
        } else {
            page.print(&event);
        }
        match event {
            Event::Question { id, .. } if !wearer.ask(id)? => {
                waits = Some(id);
                eprintln!(
                    "[nobody here can say yes: `lorgnette approvals approve {id}` does, or ask again with --yes]"
                );
            }
            Event::Settled { id, yes } => {
                wearer.settled(id);
                refused |= !yes && waits == Some(id);
            }
            Event::Done => break,
            Event::Ended { message } => bail!("the gateway ended the session: {message}"),
            _ => {}
        }
    }
    if refused {
        bail!("a yes was needed, and nobody gave it: ask again with --yes");
    }
    Ok(())
}

/// Who answers questions in this command.
enum Wearer {
    /// The same answer to each question.
    Decided(bool, UnixStream),
    /// The user at the terminal.
    AtTerminal(Terminal),
    /// Nobody here; others may answer elsewhere.
    Absent,
}

impl Wearer {
    fn of(arguments: &Arguments, stream: UnixStream) -> Self {
        if arguments.yes || arguments.no {
            Self::Decided(arguments.yes, stream)
        } else if arguments.json || !std::io::stdin().is_terminal() {
            Self::Absent
        } else {
            Self::AtTerminal(Terminal { prompt: Arc::default(), stream: Some(stream) })
        }
    }

    /// Obtains an answer to a question; `false` if nobody here can give one.
    fn ask(&mut self, id: u32) -> Result<bool> {
        match self {
            Self::Decided(yes, stream) => reply(stream, id, *yes),
            Self::AtTerminal(terminal) => return terminal.ask(id),
            Self::Absent => return Ok(false),
        }
        Ok(true)
    }

    /// The question has been answered, here or elsewhere.
    fn settled(&mut self, id: u32) {
        if let Self::AtTerminal(terminal) = self {
            lock(&terminal.prompt).question.take_if(|open| *open == id);
        }
    }
}

/// The user at the terminal. Reading from it cannot be interrupted, so a thread does it that ends with the process.
/// Messages of the gateway, such as an answer from elsewhere, do not wait for it.
struct Terminal {
    prompt: Arc<Mutex<Prompt>>,
    /// Present until the thread takes it.
    stream: Option<UnixStream>,
}

#[derive(Default)]
struct Prompt {
    /// The question that waits for a line.
    question: Option<u32>,
    /// The input has ended.
    is_over: bool,
}

impl Terminal {
    fn ask(&mut self, id: u32) -> Result<bool> {
        {
            let mut prompt = lock(&self.prompt);
            if prompt.is_over {
                return Ok(false);
            }
            prompt.question = Some(id);
        }
        let Some(mut stream) = self.stream.take() else { return Ok(true) };
        let prompt = self.prompt.clone();
        let read = move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                let yes = match line.trim().to_lowercase().as_str() {
                    "y" | "yes" => true,
                    "n" | "no" => false,
                    _ => {
                        if lock(&prompt).question.is_some() {
                            print!("yes or no? ");
                        }
                        continue;
                    }
                };
                let question = lock(&prompt).question.take();
                if let Some(id) = question {
                    reply(&mut stream, id, yes);
                }
            }
            let mut prompt = lock(&prompt);
            prompt.is_over = true;
            // The end of the input counts as a no.
            if let Some(id) = prompt.question.take() {
                reply(&mut stream, id, false);
            }
        };
        std::thread::Builder::new().name("ask-stdin".to_owned()).spawn(read).context("reading the terminal")?;
        Ok(true)
    }
}

fn lock(prompt: &Mutex<Prompt>) -> MutexGuard<'_, Prompt> {
    prompt.lock().unwrap_or_else(PoisonError::into_inner)
}

/// If the gateway refuses it, its next event says why.
fn reply(stream: &mut UnixStream, question: u32, yes: bool) {
    if let Ok(mut line) = serde_json::to_vec(&Reply { question, yes }) {
        line.push(b'\n');
        drop(stream.write_all(&line));
    }
}

/// What the terminal shows.
#[derive(Default)]
struct Page {
    /// Whether the current line has text.
    open: bool,
    /// Whether anything was written.
    has_output: bool,
}

impl Page {
    fn print(&mut self, event: &Event) {
        if matches!(event, Event::Done) && !self.has_output {
            eprintln!("[done; the assistant says nothing to this]");
        }
        self.has_output = true;
        match event {
            Event::Text { text, anew } => {
                if *anew {
                    self.end_line();
                }
                print!("{text}");
                self.open = !text.ends_with('\n');
            }
            Event::Shown { title, text } => {
                self.end_line();
                for line in [title, text].into_iter().flat_map(|part| part.lines()) {
                    println!("| {line}");
                }
            }
            // Other output goes on a line of its own.
            Event::Tool { label, state, .. } if state == "started" => eprintln!("[{label}]"),
            Event::Tool { label, state, why: Some(why) } => eprintln!("[{label} {state}: {why}]"),
            Event::Tool { state, .. } if state == "finished" => {}
            Event::Tool { label, state, .. } => eprintln!("[{label} {state}]"),
            Event::Question { title, text, expires_ms, .. } => {
                self.end_line();
                println!("{title}");
                for line in text.lines() {
                    println!("  {line}");
                }
                print!("(yes or no, {} s) ", expires_ms / 1_000);
                self.open = true;
            }
            Event::Settled { yes, .. } => {
                self.end_line();
                println!("{}", if *yes { "Agreed." } else { "Not agreed." });
            }
            Event::Done | Event::Ended { .. } => self.end_line(),
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.open) {
            println!();
        }
    }
}
