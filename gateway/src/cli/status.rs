//! `lorgnette status`.

use anyhow::{Result, bail};

use super::said::{ago, bytes};
use crate::{
    config::Checked,
    control::{Answer, Request, client::ask, status::Status},
    text::in_one_line,
};

/// Show how the gateway is: sessions, users, models, recognition, MCP servers, disk.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(config: &Checked, arguments: &Arguments) -> Result<()> {
    let Answer::Status { status } = ask(&config.data_dir, &Request::Status)? else {
        bail!("unexpected answer");
    };
    if arguments.json {
        println!("{}", serde_json::to_string(&status)?);
    } else {
        show(&status);
    }
    match status.problems.len() {
        0 => Ok(()),
        count => bail!("{count} problem(s), which stand above"),
    }
}

fn show(status: &Status) {
    let quic = status.quic.as_deref().unwrap_or("off");
    println!("lorgnette {}, up for {}, web {}, quic {quic}", status.version, ago(status.up_s), status.web);
    for problem in &status.problems {
        println!("problem     {}: {}", problem.part, problem.why);
    }
    let waiting = if status.waiting == 0 { String::new() } else { format!(", {} wait for pairing", status.waiting) };
    println!("sessions    {} of {}{waiting}", status.sessions.len(), status.sessions_max);
    for (user, name, session) in &status.sessions {
        let (name, user) = (in_one_line(name), in_one_line(user));
        println!("            {name} (user {user}), {}", super::devices::session(session));
    }
    println!("users       {} of {}", status.users, status.users_max);
    println!("answers     {}", status.models.join(", then "));
    let heard = &status.recogniser;
    println!(
        "recognition {}: {} of {} thread(s) busy, {} waiting",
        heard.model, heard.running, heard.workers, heard.waiting
    );
    println!("apps        {} installed, {} running", status.apps, status.apps_running);
    if status.questions > 0 {
        println!("questions   {} open; `lorgnette approvals list` shows them", status.questions);
    }
    if status.mcp.is_empty() {
        println!("mcp         no servers");
    }
    for server in &status.mcp {
        println!("mcp         {}", super::mcp::line(server));
    }
    if let Some((used, most)) = status.store {
        println!("store       {} of {}", bytes(used), bytes(most));
    }
    if let Some((free, all)) = status.disk {
        println!("disk        {} free of {}", bytes(free), bytes(all));
    }
}
