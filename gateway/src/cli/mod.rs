//! The commands. All that touch a running gateway are clients of its control socket.

#[macro_use]
mod out;

mod approvals;
mod apps;
mod ask;
mod backup;
mod capabilities;
mod check;
mod code;
mod completions;
mod conformance;
mod console;
mod conversations;
mod devices;
mod doctor;
mod firmware;
mod invite;
mod login;
mod logs;
mod mcp;
mod models;
mod notify;
mod passphrase;
mod reload;
mod replay;
mod secret;
mod serve;
mod setup;
mod signals;
mod skills;
mod spending;
mod status;
mod tools;
mod top;
mod transcribe;
mod turns;
mod upgrade;
mod usage;
mod users;
mod version;
mod wake;
mod wire;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

use crate::{
    config::{self, Config},
    control::{Answer, Request, client::follow},
    environment,
    units::number_of,
};

/// Edge gateway for smart glasses.
#[derive(Parser)]
#[command(name = "lorgnette", version)]
pub struct Arguments {
    /// Configuration file; default: /etc/lorgnette/config.toml if this program is installed in /usr, else none
    /// (`lorgnette check --example` shows the default values).
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
    /// Write everything that the gateway keeps into one encrypted file, also while it runs.
    Backup(backup::Backup),
    /// Compile the tools that programs may call into modules with TypeScript declarations; list and show these.
    Capabilities(capabilities::Arguments),
    /// Show the programs that models ran, run them again, and keep them as routines.
    Code(code::Arguments),
    /// Check a configuration and say what is wrong, where, and what to do.
    Check(check::Arguments),
    /// Install, list, try, debug and remove mini-apps.
    Apps(apps::Arguments),
    /// Print the completions of a shell.
    Completions(completions::Arguments),
    /// Judge glasses by PROTOCOL.md, rule by rule.
    Conformance(conformance::Arguments),
    /// Print a one-time link to the console, the pages for operators.
    Console(console::Arguments),
    /// List, show, search, export and erase conversations.
    Conversations(conversations::Arguments),
    /// List, pair, invite, rename and revoke devices.
    Devices(devices::Arguments),
    /// Examine this box: what is wrong, where, and what to do; how many devices it carries.
    Doctor(doctor::Arguments),
    /// Keep firmware for glasses that its maker has signed, roll it out, and show what became of it.
    Firmware(firmware::Arguments),
    /// Log in to a model's provider, or store its key.
    Login(login::Arguments),
    /// Show the stored log of the gateway.
    Logs(logs::Arguments),
    /// Write the man pages of all commands into a folder.
    #[command(hide = true)]
    Man(completions::Man),
    /// Speak MCP over standard input and output, for a client that starts this command; or look after MCP servers.
    Mcp(mcp::Arguments),
    /// Fetch, list, verify, import and export the models.
    Models(models::Arguments),
    /// Have the running gateway read its configuration again, and say what counts now and what needs a restart.
    Reload(reload::Arguments),
    /// List recorded sessions, and play one again: what was decided, when, and whether it is decided so again.
    Replay(replay::Arguments),
    /// Restore a backup into an empty data folder, or check one.
    Restore(backup::Restore),
    /// Show the offered skills, and problems with others.
    Skills(skills::Arguments),
    /// Show the use of models, today or on the last days: tokens and money.
    Spending(spending::Arguments),
    /// Show how the gateway is: sessions, users, models, recognition, MCP servers, disk.
    Status(status::Arguments),
    /// Watch the gateway at work: sessions, turns, queues, load, memory, the latest lines of the log.
    Top(top::Arguments),
    /// Transcribe a WAV file as the gateway would hear it.
    Transcribe(transcribe::Arguments),
    /// Show the latest turns with the time of each stage.
    Turns(turns::Arguments),
    /// List, call, allow and deny tools.
    Tools(tools::Arguments),
    /// Replace the running gateway by another program without dropping a session.
    Upgrade(upgrade::Arguments),
    /// Show the calls of tools.
    Usage(usage::Arguments),
    /// List users, export and erase everything of one.
    Users(users::Arguments),
    /// Show the versions of this program and its formats, and whether it can replace the running gateway.
    Version(version::Arguments),
    /// Make and try wake phrases that are recognised by their sound.
    Wake(wake::Arguments),
    /// Decode frames of the device protocol.
    Wire(wire::Arguments),
}

/// The configuration of an installed gateway.
const SYSTEM_CONFIG: &str = environment::CONFIG;
/// Where a program is installed for all users. One in any other place has no configuration unless it is named.
const SYSTEM_PROGRAMS: [&str; 2] = ["/usr/bin", "/usr/local/bin"];

/// Runs a command; errors go to standard error.
pub fn run(arguments: Arguments) -> ExitCode {
    match supported().and_then(|()| execute(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lorgnette: {}", in_one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// Checks that this processor can run the speech engine, which would otherwise end the process without a word.
fn supported() -> Result<()> {
    let missing = audio::asr::missing_instructions();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "this program was compiled for another processor: this one lacks {}. Compile it on this machine \
         (`cargo xtask dist --native`); packages need a processor of level x86-64-v3, with AVX2, BMI2, F16C and FMA",
        missing.join(", ")
    )
}

fn execute(arguments: Arguments) -> Result<()> {
    let config = arguments.config.or_else(system_config);
    match arguments.command {
        Command::Serve(arguments) => load(config).and_then(|config| serve::run(config, &arguments)),
        Command::Setup(arguments) => setup::run(config, arguments),
        Command::Ask(arguments) => load(config).and_then(|config| ask::run(&config, &arguments)),
        Command::Approvals(arguments) => load(config).and_then(|config| approvals::run(&config, &arguments)),
        Command::Backup(arguments) => load(config).and_then(|config| backup::run(&config, &arguments)),
        Command::Reload(arguments) => load(config).and_then(|config| reload::run(&config, &arguments)),
        Command::Replay(arguments) => load(config).and_then(|config| replay::run(&config, &arguments)),
        Command::Restore(arguments) => load(config).and_then(|config| backup::restore(&config, &arguments)),
        Command::Capabilities(arguments) => load(config).and_then(|config| capabilities::run(&config, arguments)),
        Command::Code(arguments) => load(config).and_then(|config| code::run(&config, arguments)),
        Command::Check(arguments) => check::run(config, &arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Conformance(arguments) => load(config).and_then(|config| conformance::run(&config, &arguments)),
        Command::Man(arguments) => completions::write_pages(&arguments),
        Command::Console(arguments) => load(config).and_then(|config| console::run(&config, &arguments)),
        Command::Conversations(arguments) => load(config).and_then(|config| conversations::run(&config, arguments)),
        Command::Skills(arguments) => load(config).and_then(|config| skills::run(&config, &arguments)),
        Command::Spending(arguments) => load(config).and_then(|config| spending::run(&config, &arguments)),
        Command::Users(arguments) => load(config).and_then(|config| users::run(&config, arguments)),
        Command::Devices(arguments) => load(config).and_then(|config| devices::run(&config, arguments)),
        Command::Firmware(arguments) => load(config).and_then(|config| firmware::run(&config, arguments)),
        Command::Doctor(arguments) => doctor::run(config, &arguments),
        Command::Apps(arguments) => load(config).and_then(|config| apps::run(&config, arguments)),
        Command::Login(arguments) => load(config).and_then(|config| login::run(&config, &arguments)),
        Command::Logs(arguments) => load(config).and_then(|config| logs::run(&config, &arguments)),
        Command::Mcp(arguments) => load(config).and_then(|config| mcp::run(&config, arguments)),
        Command::Status(arguments) => load(config).and_then(|config| status::run(&config, &arguments)),
        Command::Models(arguments) => load(config).and_then(|config| models::run(&config, arguments)),
        Command::Top(arguments) => load(config).and_then(|config| top::run(&config, &arguments)),
        Command::Transcribe(arguments) => load(config).and_then(|config| transcribe::run(&config, &arguments)),
        Command::Turns(arguments) => load(config).and_then(|config| turns::run(&config, &arguments)),
        Command::Tools(arguments) => load(config).and_then(|config| tools::run(&config, arguments)),
        Command::Usage(arguments) => load(config).and_then(|config| usage::run(&config, &arguments)),
        Command::Upgrade(arguments) => load(config).and_then(|config| upgrade::run(&config, &arguments)),
        Command::Version(arguments) => version::run(config.as_deref(), &arguments),
        Command::Wake(arguments) => load(config).and_then(|config| wake::run(&config, &arguments)),
        Command::Wire(arguments) => wire::run(&arguments),
    }
}

/// The installed configuration, if this program is installed, too.
fn system_config() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let is_installed = SYSTEM_PROGRAMS.iter().any(|folder| program.parent() == Some(Path::new(folder)));
    environment::installed().filter(|_| is_installed).map(Path::to_path_buf)
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

/// Shows what the gateway sends after a request, until this program is interrupted; `show`: whether it understood it. Where
/// nothing more comes, that is an error: whoever watches would wait for what is never shown.
fn watch(config: &Config, request: &Request, mut show: impl FnMut(Answer) -> bool) -> Result<()> {
    let mut is_understood = true;
    follow(&config.data_dir, request, |answer| {
        is_understood = show(answer);
        is_understood
    })?;
    if !is_understood {
        bail!("unexpected answer");
    }
    bail!("the gateway sends no more: it has stopped, or what it sent was not read in time")
}

fn load(path: Option<PathBuf>) -> Result<Config> {
    match config::load(path.as_deref()) {
        Ok(config) => Ok(config),
        Err(problems) => {
            for problem in &problems {
                eprintln!("{problem}");
            }
            bail!("the configuration has {}", number_of(problems.len(), "problem"));
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
