//! `lorgnette conversations`.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use serde_json::Value;

use crate::{
    clock,
    config::Config,
    control::{Answer, Request, client, memory::MemoryRequest},
    units::number_of,
};

/// How long an erasure may take: it copies a store of up to a gigabyte.
pub(super) const ERASE_WAIT: Duration = Duration::from_secs(600);

/// List, show, search, export and erase conversations.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show a user's conversations, oldest first.
    List {
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show a conversation.
    Show {
        /// Number of the conversation, as `conversations list` shows it.
        id: u64,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Find messages that contain all of these words.
    Search {
        /// The words; several need no quotes.
        #[arg(required = true)]
        words: Vec<String>,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Export a conversation, or all, as JSON (one object per line) or as text.
    Export {
        /// Its number; without one: all.
        id: Option<u64>,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// As plain text without tool calls.
        #[arg(long)]
        text: bool,
        /// Output file, readable by its owner only; default: standard output.
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Erase a conversation, or all, from the disk.
    Erase {
        /// Number of the conversation, as `conversations list` shows it.
        #[arg(required_unless_present = "all")]
        id: Option<u64>,
        /// All of them.
        #[arg(long, conflicts_with = "id")]
        all: bool,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
}

pub(super) fn run(config: &Config, arguments: Arguments) -> Result<()> {
    match arguments.command {
        Command::List { user, json } => {
            let all = records(config, MemoryRequest::Conversations { user })?;
            for one in &all {
                if json {
                    println!("{one}");
                } else {
                    println!(
                        "{:>6}  {}  {:>5}  {}",
                        number(one, "id"),
                        when(one, "last_wall_ms"),
                        number(one, "messages"),
                        words(one, "title")
                    );
                }
            }
            if !json {
                println!("{}: number, last said, messages, title", number_of(all.len(), "conversation"));
            }
        }
        Command::Show { id, user } => {
            for one in records(config, MemoryRequest::Conversation { user, id })? {
                print!("{}", readable(&one));
            }
        }
        Command::Search { words: query, user } => {
            let found = records(config, MemoryRequest::Search { user, query: query.join(" ") })?;
            if found.is_empty() {
                println!("nothing was said with all of these words");
            }
            for place in found {
                let (id, who) = (number(&place, "conversation"), words(&place, "by"));
                println!("{id:>6}  {}  {who}: {}", when(&place, "wall_ms"), words(&place, "text"));
            }
        }
        Command::Export { id, user, text, out } => {
            let ids = match id {
                Some(id) => vec![id],
                None => records(config, MemoryRequest::Conversations { user: user.clone() })?
                    .iter()
                    .map(|one| number(one, "id"))
                    .collect(),
            };
            let mut written = String::new();
            for id in ids {
                for one in records(config, MemoryRequest::Conversation { user: user.clone(), id })? {
                    written.push_str(&if text { format!("{}\n", readable(&one)) } else { format!("{one}\n") });
                }
            }
            match out {
                Some(path) => write_private(&path, written.as_bytes())?,
                None => print!("{written}"),
            }
        }
        Command::Erase { id, all: _, user } => {
            let request = Request::Memory { request: MemoryRequest::EraseConversations { user, id } };
            told(client::ask_within(&config.data_dir, &request, ERASE_WAIT)?)?;
        }
    }
    Ok(())
}

/// Reports success.
pub(super) fn told(answer: Answer) -> Result<()> {
    match answer {
        Answer::Done { message } => println!("{message}"),
        answer => bail!("unexpected answer: {answer:?}"),
    }
    Ok(())
}

pub(super) fn records(config: &Config, request: MemoryRequest) -> Result<Vec<Value>> {
    match client::ask(&config.data_dir, &Request::Memory { request })? {
        Answer::Records { records } => Ok(records),
        answer => bail!("unexpected answer: {answer:?}"),
    }
}

/// Writes a file that only its owner may read; an existing one is not overwritten.
pub(super) fn write_private(path: &PathBuf, bytes: &[u8]) -> Result<()> {
    use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _};
    let open = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file =
        open.with_context(|| format!("making {}; a file that is there is not written over", path.display()))?;
    file.write_all(bytes).with_context(|| format!("writing {}", path.display()))
}

pub(super) fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or(0)
}

pub(super) fn words<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn when(value: &Value, key: &str) -> String {
    date(value[key].as_i64().unwrap_or(0))
}

/// A moment in the gateway's zone, to the minute.
pub(super) fn date(wall_ms: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(wall_ms).unwrap_or_default().to_zoned(clock::zone());
    moment.strftime("%Y-%m-%d %H:%M").to_string()
}

/// The messages without calls and results.
fn readable(conversation: &Value) -> String {
    let title = words(conversation, "title");
    let mut out =
        format!("# {title}\n{}, conversation {}\n\n", when(conversation, "began_wall_ms"), number(conversation, "id"));
    if let Some(summary) = conversation["summary"]["text"].as_str() {
        out.push_str(&format!("What the model is told of the beginning: {summary}\n\n"));
    }
    for said in conversation["messages"].as_array().into_iter().flatten() {
        let message = &said["message"];
        let who = match words(message, "role") {
            "user" => "You",
            "assistant" => "Lorgnette",
            _ => continue,
        };
        let parts = message["parts"].as_array().into_iter().flatten();
        let text: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
        if !text.is_empty() {
            out.push_str(&format!("{who}: {}\n", text.join("")));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_was_said_is_readable() {
        let text = |role: &str, text: &str| json!({"wall_ms": 0, "message": {"role": role, "parts": [{"type": "text", "text": text}]}});
        let call =
            json!({"wall_ms": 0, "message": {"role": "assistant", "parts": [{"type": "tool_call", "call": {}}]}});
        let messages =
            json!([text("user", "Hi"), call, text("tool", "x"), text("assistant", "Hello."), text("system", "y")]);
        let mut conversation = json!({"id": 7, "title": "Hi", "began_wall_ms": 0, "messages": messages});
        let summed = json!({"text": "They met.", "covers": 2});
        conversation["summary"] = summed;
        assert!(super::readable(&conversation).contains("of the beginning: They met.\n\nYou: Hi"));
        conversation["summary"] = Value::Null;
        let readable = readable(&conversation);
        assert!(readable.starts_with("# Hi\n") && readable.contains("conversation 7\n"), "{readable}");
        assert!(readable.ends_with("\n\nYou: Hi\nLorgnette: Hello.\n"), "{readable}");
    }
}
