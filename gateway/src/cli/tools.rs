//! `lorgnette tools`.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use chat_models::intents::Explanation;
use clap::Subcommand;
use serde_json::{Value, json};
use tools::spoken::sentence;

use crate::{
    config::Config,
    control::{Answer, Offered, Request, client},
    ports::settings::class_names,
};

/// How long a call may take: the longest question and the longest call after it.
const CALL_WAIT: Duration = Duration::from_secs(320);
/// Characters of a description in the list.
const DESCRIPTION_CHARS: usize = 70;

/// List, call, allow and deny tools.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the tools that a user is offered now.
    List {
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// All details, one JSON object per line.
        #[arg(long)]
        json: bool,
        /// Instead of the tools: what could not be converted from the definitions of apps and MCP servers, and tools
        /// that the configuration names and nobody is offered.
        #[arg(long)]
        reports: bool,
    },
    /// Call a tool, with limits, questions and the record of calls as in a turn.
    Call {
        /// Full name.
        name: String,
        /// The arguments: a JSON object.
        #[arg(default_value = "{}")]
        arguments: String,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// The whole result as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show which tool the offline engine would call for a sentence, with its arguments, and why no other.
    Explain {
        /// The sentence, without wake word.
        text: String,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Apply changed tools at once, also in running turns.
    Apply {
        /// Name of the user; default: all users.
        #[arg(long)]
        user: Option<String>,
    },
    /// Switch a tool on again.
    Allow {
        /// Full name, or the beginning of names and a `*`, as it was switched off.
        name: String,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Switch a tool off: it is neither offered nor called.
    Deny {
        /// Full name, or the beginning of names and a `*`.
        name: String,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
}

pub(super) fn run(config: &Config, arguments: Arguments) -> Result<()> {
    let data_dir = &config.data_dir;
    match arguments.command {
        Command::List { json, reports: true, .. } => match client::ask(data_dir, &Request::ToolReports)? {
            Answer::ToolReports { reports } => report(&reports, json),
            answer => bail!("unexpected answer: {answer:?}"),
        },
        Command::List { user, json, .. } => match client::ask(data_dir, &Request::Tools { user })? {
            Answer::Tools { tools } => list(&tools, json),
            answer => bail!("unexpected answer: {answer:?}"),
        },
        Command::Call { name, arguments, user, json } => {
            let arguments: Value = serde_json::from_str(&arguments).with_context(|| {
                format!("the arguments must be a JSON object such as {{\"text\": \"x\"}}: {arguments}")
            })?;
            match client::ask_within(data_dir, &Request::CallTool { user, name, arguments }, CALL_WAIT)? {
                Answer::ToolResult { result, attachments } => {
                    if json {
                        println!("{}", json!({"result": result, "attachments": attachments}));
                    } else {
                        if result.error.as_ref().is_none_or(|error| error.message != result.content) {
                            println!("{}", result.for_model());
                        }
                        attachments.iter().for_each(|part| println!("[{part}]"));
                    }
                    match result.error {
                        Some(error) => {
                            let code = serde_json::to_value(error.code)?;
                            let again = if error.retryable { " It may be tried again." } else { "" };
                            bail!("{}: {}{again}", code.as_str().unwrap_or("FAILED"), sentence(&error.message))
                        }
                        None => Ok(()),
                    }
                }
                answer => bail!("unexpected answer: {answer:?}"),
            }
        }
        Command::Explain { text, user, json } => {
            match client::ask(data_dir, &Request::ExplainSentence { text, user })? {
                Answer::Explained { explanation } if json => println!("{}", serde_json::to_string(&explanation)?),
                Answer::Explained { explanation } => explain(&explanation),
                answer => bail!("unexpected answer: {answer:?}"),
            }
            Ok(())
        }
        Command::Apply { user } => switch(config, Request::ApplyTools { user }),
        Command::Allow { name, user } => switch(config, Request::SwitchTool { user, name, on: true }),
        Command::Deny { name, user } => switch(config, Request::SwitchTool { user, name, on: false }),
    }
}

fn explain(explanation: &Explanation) {
    let asks = !explanation.said.is_empty();
    for call in &explanation.calls {
        println!("{}{} {}", if asks { "perhaps " } else { "" }, call.tool, call.arguments);
        if let Some(template) = &call.template {
            println!("  by {template:?}");
        }
    }
    if asks {
        println!("{}the answer: {}", if explanation.calls.is_empty() { "no tool; " } else { "" }, explanation.said);
    }
    println!("read {}", explanation.how);
    if let Some(why) = &explanation.why {
        println!("{why}");
    }
    for near in &explanation.near {
        println!("not {}: {}", near.tool, near.reason);
        if let Some(template) = &near.template {
            println!("  {template:?}");
        }
    }
}

fn report(reports: &[(String, Vec<String>)], json: bool) -> Result<()> {
    for (source, notes) in reports {
        if json {
            println!("{}", json!({"source": source, "notes": notes}));
        } else {
            println!("{source}");
            notes.iter().for_each(|note| println!("  {note}"));
        }
    }
    if reports.is_empty() && !json {
        println!("every definition was carried over whole");
    }
    Ok(())
}

fn switch(config: &Config, request: Request) -> Result<()> {
    match client::ask(&config.data_dir, &request)? {
        Answer::Done { message } => println!("{message}"),
        answer => bail!("unexpected answer: {answer:?}"),
    }
    Ok(())
}

/// The classes of clients that may use the tool, unless all may.
fn clients(tool: &Offered) -> String {
    let by = if tool.clients_configured { ", by the configuration" } else { "" };
    let classes = tool.spec.clients.as_deref();
    classes.map_or_else(String::new, |classes| format!(" (for {}{by})", class_names(classes)))
}

fn list(tools: &[Offered], json: bool) -> Result<()> {
    if json {
        for tool in tools {
            println!("{}", serde_json::to_string(tool)?);
        }
        return Ok(());
    }
    let width = tools.iter().map(|tool| tool.spec.name.len()).max().unwrap_or(0);
    for tool in tools {
        let flags = tool.spec.flags;
        let marks: String =
            [(tool.off, 'x'), (!flags.read_only, 'w'), (flags.requires_approval, '?'), (flags.persistent, 'l')]
                .map(|(holds, mark)| if holds { mark } else { '-' })
                .iter()
                .collect();
        let first = tool.spec.description.lines().next().unwrap_or_default();
        let short: String = first.chars().take(DESCRIPTION_CHARS).collect();
        println!("{marks}  {:<width$}  {:<10}  {short}{}", tool.spec.name, tool.source, clients(tool));
    }
    println!("x: switched off, w: changes something, ?: asks first, l: recorded; {} tools", tools.len());
    Ok(())
}
