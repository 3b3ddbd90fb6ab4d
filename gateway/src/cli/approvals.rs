//! `lorgnette approvals`.

use std::io::Write as _;

use anyhow::{Result, bail};
use clap::Subcommand;

use crate::{
    config::Checked,
    control::{
        Answer, Request,
        client::{ask, follow},
    },
    effects::questions::Event,
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
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Show what is open, then every question and every answer as it comes.
    Watch {
        /// One JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Agree in the wearer's place: the call goes ahead with exactly these arguments.
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

pub(super) fn run(config: &Checked, arguments: &Arguments) -> Result<()> {
    let request = match arguments.command {
        Command::Watch { json } => {
            return follow(&config.data_dir, &Request::WatchApprovals, |answer| show(answer, json));
        }
        Command::List { .. } => Request::Approvals,
        Command::Approve { id } => Request::AnswerApproval { id, yes: true },
        Command::Deny { id } => Request::AnswerApproval { id, yes: false },
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

/// False where nobody reads any more.
fn show(answer: Answer, json: bool) -> bool {
    let Answer::Approvals { approvals } = answer else {
        return false;
    };
    let mut out = std::io::stdout().lock();
    approvals.iter().all(|event| writeln!(out, "{}", line(event, json)).and_then(|()| out.flush()).is_ok())
}

fn line(event: &Event, json: bool) -> String {
    if json {
        return serde_json::to_string(event).unwrap_or_default();
    }
    let Event { id, time, user, device, source, capability, function, parameters, message, .. } = event;
    match &event.outcome {
        Some(outcome) => format!("{id}  {time}  {outcome}"),
        None => format!(
            "{id}  {time}  {message}\n    {source} {capability}: {function} {parameters}\n    user {user}, glasses {device}"
        ),
    }
}
