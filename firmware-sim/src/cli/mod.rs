//! The commands and their common parts.

mod completions;
mod conformance;
mod demo;
mod find;
mod firmware;
mod fleet;
mod options;
mod pair;
mod say;
mod script;
mod show;

use std::process::ExitCode;

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, Subcommand};

/// Simulated smart glasses for the Lorgnette gateway.
#[derive(Parser)]
#[command(name = "lorgnette-sim", version)]
struct Arguments {
    #[command(flatten)]
    common: options::Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Connect, show the pairing code, and wait until the gateway welcomes the glasses.
    Pair(pair::Arguments),
    /// Say sentences and show what comes back.
    Say(say::Arguments),
    /// Run a script of steps.
    Script(script::Arguments),
    /// Sign firmware, and run glasses that take it from the gateway.
    Firmware(firmware::Arguments),
    /// Run many glasses at once. Each is paired the first time, one after the other: type the codes that are shown.
    Fleet(fleet::Arguments),
    /// Judge a gateway by PROTOCOL.md, rule by rule.
    Conformance(conformance::Arguments),
    /// Show the product: five spoken turns over both transports.
    Demo(demo::Arguments),
    /// Print the completions of a shell.
    Completions(completions::Arguments),
    /// Write the man pages of all commands into a folder.
    #[command(hide = true)]
    Man(completions::Man),
}

impl Command {
    /// Whether it plays glasses.
    fn has_glasses(&self) -> bool {
        match self {
            Self::Completions(_) | Self::Man(_) => false,
            Self::Firmware(arguments) => arguments.has_glasses(),
            _ => true,
        }
    }

    /// Refuses options that mean nothing to it: nobody should wait for what they do elsewhere.
    fn check(&self, common: &options::Common) -> Result<()> {
        let is_demo = matches!(self, Self::Demo(_));
        ensure!(
            common.heard.is_none() || matches!(self, Self::Say(_) | Self::Script(_)),
            "--heard is for `say` and `script`; `demo` keeps a file for each turn in the folder of --out"
        );
        ensure!(!is_demo || !(common.json || common.quiet), "`demo` is for people: it has neither --json nor --quiet");
        Ok(())
    }
}

pub(crate) fn run() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_env("LORGNETTE_LOG"))
        .with_writer(std::io::stderr)
        .init();
    match block_on(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lorgnette-sim: {}", in_one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// An error and its causes; a cause whose text is already quoted is not repeated.
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

fn block_on(arguments: Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    let Arguments { mut common, command } = arguments;
    command.check(&common)?;
    if command.has_glasses() {
        common.announce_state();
    }
    let result = runtime.block_on(async {
        match &command {
            Command::Pair(pair::Arguments { invite: Some(invitation) }) => find::invited(&mut common, invitation)?,
            _ => find::gateway(&mut common).await?,
        }
        match command {
            Command::Pair(_) => pair::run(&common).await,
            Command::Say(arguments) => say::run(&common, &arguments).await,
            Command::Script(arguments) => script::run(&common, &arguments).await,
            Command::Firmware(arguments) => firmware::run(&common, &arguments).await,
            Command::Fleet(arguments) => fleet::run(&common, &arguments).await,
            Command::Conformance(arguments) => conformance::run(&common, &arguments).await,
            Command::Demo(arguments) => demo::run(&common, &arguments).await,
            Command::Completions(arguments) => completions::run(&arguments),
            Command::Man(arguments) => completions::write_pages(&arguments),
        }
    });
    // A synthesis that is still running is abandoned.
    runtime.shutdown_background();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_taken(words: &str) -> bool {
        let Arguments { common, command } = Arguments::try_parse_from(words.split(' ')).unwrap();
        command.check(&common).is_ok()
    }

    #[test]
    fn options_that_mean_nothing_to_a_command_are_refused() {
        let demo = "lorgnette-sim demo --gateway-ws ws://[::1]:1/glasses --gateway-quic quic://[::1]:1";
        assert!(is_taken(demo) && is_taken(&format!("{demo} --out kept")));
        for option in ["--heard kept", "--json", "--quiet"] {
            assert!(!is_taken(&format!("{demo} {option}")), "{option}");
        }
        for command in ["say --heard a.wav", "script steps --heard a.wav", "pair --json"] {
            assert!(is_taken(&format!("lorgnette-sim {command}")), "{command}");
        }
        assert!(!is_taken("lorgnette-sim pair --heard a.wav"));
    }
}
