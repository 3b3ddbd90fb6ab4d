//! The commands. All that touch a running gateway are clients of its control socket.

#[macro_use]
mod out;

mod approvals;
mod apps;
mod ask;
mod capabilities;
mod check;
mod code;
mod conversations;
mod devices;
mod invite;
mod login;
mod mcp;
mod models;
mod notify;
mod serve;
mod setup;
mod skills;
mod spending;
mod status;
mod tools;
mod transcribe;
mod turns;
mod units;
mod usage;
mod users;
mod wire;

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

use crate::config::{self, Config};

/// Edge gateway for smart glasses.
#[derive(Parser)]
#[command(name = "lorgnette", version)]
pub struct Arguments {
    /// Configuration file; default: none (`lorgnette check --example` shows the default values).
    #[arg(long, short, global = true, env = "LORGNETTE_CONFIG")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the gateway.
    Serve(serve::Arguments),
    /// Ask five questions and write a configuration.
    Setup(setup::Arguments),
    /// Ask the assistant in text.
    Ask(ask::Arguments),
    /// List, watch and answer questions that wait for a wearer's consent.
    Approvals(approvals::Arguments),
    /// Compile the tools that programs may call into modules with TypeScript declarations; list and show these.
    Capabilities(capabilities::Arguments),
    /// Show the programs that models ran, run them again, and keep them as routines.
    Code(code::Arguments),
    /// Check a configuration and say what is wrong, where, and what to do.
    Check(check::Arguments),
    /// Install, list, try, debug and remove mini-apps.
    Apps(apps::Arguments),
    /// List, show, search, export and erase conversations.
    Conversations(conversations::Arguments),
    /// List, pair, invite, rename and revoke devices.
    Devices(devices::Arguments),
    /// Log in to a model's provider, or store its key.
    Login(login::Arguments),
    /// Speak MCP over standard input and output, for a client that starts this command; or look after MCP servers.
    Mcp(mcp::Arguments),
    /// Fetch, list, verify and import the models.
    Models(models::Arguments),
    /// Show the offered skills, and problems with others.
    Skills(skills::Arguments),
    /// Show the use of models, today or on the last days: tokens and money.
    Spending(spending::Arguments),
    /// Show how the gateway is: sessions, users, models, recognition, MCP servers, disk.
    Status(status::Arguments),
    /// Transcribe a WAV file as the gateway would hear it.
    Transcribe(transcribe::Arguments),
    /// Show the latest turns with the time of each stage.
    Turns(turns::Arguments),
    /// List, call, allow and deny tools.
    Tools(tools::Arguments),
    /// Show the calls of tools.
    Usage(usage::Arguments),
    /// List users, export and erase everything of one.
    Users(users::Arguments),
    /// Decode frames of the device protocol.
    Wire(wire::Arguments),
}

/// Runs a command; errors go to standard error.
pub fn run(arguments: Arguments) -> ExitCode {
    let config = arguments.config;
    let result = match arguments.command {
        Command::Serve(arguments) => load(config).and_then(|config| serve::run(config, &arguments)),
        Command::Setup(arguments) => setup::run(config, arguments),
        Command::Ask(arguments) => load(config).and_then(|config| ask::run(&config, &arguments)),
        Command::Approvals(arguments) => load(config).and_then(|config| approvals::run(&config, &arguments)),
        Command::Capabilities(arguments) => load(config).and_then(|config| capabilities::run(&config, arguments)),
        Command::Code(arguments) => load(config).and_then(|config| code::run(&config, arguments)),
        Command::Check(arguments) => check::run(config, &arguments),
        Command::Conversations(arguments) => load(config).and_then(|config| conversations::run(&config, arguments)),
        Command::Skills(arguments) => load(config).and_then(|config| skills::run(&config, &arguments)),
        Command::Spending(arguments) => load(config).and_then(|config| spending::run(&config, &arguments)),
        Command::Users(arguments) => load(config).and_then(|config| users::run(&config, arguments)),
        Command::Devices(arguments) => load(config).and_then(|config| devices::run(&config, arguments)),
        Command::Apps(arguments) => load(config).and_then(|config| apps::run(&config, arguments)),
        Command::Login(arguments) => load(config).and_then(|config| login::run(&config, &arguments)),
        Command::Mcp(arguments) => load(config).and_then(|config| mcp::run(&config, arguments)),
        Command::Status(arguments) => load(config).and_then(|config| status::run(&config, &arguments)),
        Command::Models(arguments) => load(config).and_then(|config| models::run(&config, arguments)),
        Command::Transcribe(arguments) => load(config).and_then(|config| transcribe::run(&config, &arguments)),
        Command::Turns(arguments) => load(config).and_then(|config| turns::run(&config, &arguments)),
        Command::Tools(arguments) => load(config).and_then(|config| tools::run(&config, arguments)),
        Command::Usage(arguments) => load(config).and_then(|config| usage::run(&config, &arguments)),
        Command::Wire(arguments) => wire::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lorgnette: {}", in_one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error with its causes; a cause that is already part of the text is not repeated.
fn in_one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

fn load(path: Option<PathBuf>) -> Result<Config> {
    match config::load(path.as_deref()) {
        Ok(config) => Ok(config),
        Err(problems) => {
            for problem in &problems {
                eprintln!("{problem}");
            }
            bail!("the configuration has {} problem(s)", problems.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, anyhow};
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow!("no such file").context("reading a.toml: no such file; make it").context("starting");
        assert_eq!(in_one_line(&error), "starting: reading a.toml: no such file; make it");
        let error = Err::<(), _>(anyhow!("it is damaged")).context("reading a.toml").unwrap_err();
        assert_eq!(in_one_line(&error), "reading a.toml: it is damaged");
    }

    #[test]
    fn the_help_speaks_to_its_reader() {
        let command = Arguments::command();
        assert_eq!(command.get_about().map(ToString::to_string).as_deref(), Some("Edge gateway for smart glasses"));
        command.debug_assert();
    }
}
