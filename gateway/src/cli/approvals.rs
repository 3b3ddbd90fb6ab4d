//! `lorgnette approvals`.

use anyhow::{Result, bail};
use clap::Subcommand;

use super::usage::{Since, parse_since};
use crate::{
    approvals::Event,
    config::Config,
    control::{Answer, Request, client::ask},
    units::number_of,
};

/// List, watch and answer questions that wait for a wearer's consent.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the questions that are open.
    List {
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show open questions, then each new question and answer.
    Watch {
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show past decisions, newest first: who answered, how, and when.
    History {
        /// Name of the user; default: all users.
        #[arg(long)]
        user: Option<String>,
        /// How far back: a number and `m`, `h` or `d`, or `all`.
        #[arg(long, default_value = "30d", value_parser = parse_since)]
        since: Since,
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Approve in the wearer's place: the call runs with exactly these arguments.
    Approve {
        /// Number of the question.
        id: u64,
    },
    /// Refuse in the wearer's place.
    Deny {
        /// Number of the question.
        id: u64,
    },
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let request = match &arguments.command {
        Command::History { user, since, json } => {
            let request = Request::Decisions { user: user.clone(), since_wall_ms: since.wall_ms() };
            return history(ask(&config.data_dir, &request)?, *json);
        }
        &Command::Watch { json } => {
            return super::watch(config, &Request::WatchApprovals, |answer| show(answer, json));
        }
        Command::List { .. } => Request::Approvals,
        &Command::Approve { id } => Request::AnswerApproval { id, yes: true },
        &Command::Deny { id } => Request::AnswerApproval { id, yes: false },
    };
    match ask(&config.data_dir, &request)? {
        Answer::Done { message } => println!("{message}"),
        Answer::Approvals { approvals } if approvals.is_empty() => println!("no question is open"),
        answer @ Answer::Approvals { .. } => {
            show(answer, matches!(arguments.command, Command::List { json: true }));
        }
        answer => bail!("unexpected answer: {answer:?}"),
    }
    Ok(())
}

fn history(answer: Answer, json: bool) -> Result<()> {
    let Answer::Decisions { decisions, left_out } = answer else {
        bail!("unexpected answer: {answer:?}");
    };
    if decisions.is_empty() && !json {
        println!("no recorded decisions");
    }
    for record in decisions {
        let Some(approval) = &record.approval else { continue };
        if json {
            println!("{}", serde_json::to_string(&record)?);
            continue;
        }
        let time = jiff::Timestamp::from_millisecond(approval.wall_ms).unwrap_or_default();
        let (outcome, by) = (word(&approval.outcome), word(&approval.by));
        let device = approval.device.as_deref().unwrap_or("none");
        let seconds = approval.took_ms as f64 / 1_000.0;
        println!("{time:.0}  {outcome} by {by} after {seconds:.1} s  {}", record.tool);
        let program = record.program.as_ref().map(|of| format!(", program of call {}", of.id)).unwrap_or_default();
        println!("    user {}, glasses {device}, source {}{program}", record.user, record.source);
    }
    if let Some(line) = cut(left_out, json) {
        println!("{line}");
    }
    Ok(())
}

/// The last line of a list that lacks so many decisions.
fn cut(left_out: usize, json: bool) -> Option<String> {
    match (left_out, json) {
        (0, _) => None,
        (_, true) => Some(serde_json::json!({"left_out": left_out}).to_string()),
        (_, false) => Some(format!("left out: {}", number_of(left_out, "older decision"))),
    }
}

/// The serialised form of a plain enum.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// Whether to continue.
fn show(answer: Answer, json: bool) -> bool {
    let Answer::Approvals { approvals } = answer else {
        return false;
    };
    approvals.iter().for_each(|event| println!("{}", line(event, json)));
    true
}

fn line(event: &Event, json: bool) -> String {
    if json {
        return serde_json::to_string(event).unwrap_or_default();
    }
    let Event { id, timestamp: time, user, device, provider, capability, function, message, .. } = event;
    match &event.outcome {
        Some(outcome) => format!("{id}  {time}  {outcome} by {}", event.by.as_deref().unwrap_or("nobody")),
        None => format!(
            "{id}  {time}  {}\n    {provider} {capability}: {function}{}\n    user {user}, glasses {}",
            message.replace('\n', "\n    "),
            event.run.as_ref().map(|run| format!(", called by the program of call {run}")).unwrap_or_default(),
            device.as_deref().unwrap_or("none: only an operator can answer")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_cut_says_so_in_its_last_line() {
        for (left_out, json, line) in [
            (0, false, None),
            (0, true, None),
            (1, false, Some("left out: 1 older decision")),
            (12, false, Some("left out: 12 older decisions")),
            (12, true, Some(r#"{"left_out":12}"#)),
        ] {
            assert_eq!(cut(left_out, json).as_deref(), line);
        }
    }
}
