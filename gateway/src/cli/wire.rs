//! `lorgnette wire`.

use anyhow::{Context as _, Result, anyhow};
use clap::Subcommand;
use device_protocol::json::describe;

/// Decode frames of the device protocol.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the contents of a frame, or where it is wrong.
    Decode {
        /// The envelope in hexadecimal; spaces are ignored.
        #[arg(required = true)]
        hex: Vec<String>,
    },
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
    let Command::Decode { hex } = &arguments.command;
    let digits: String = hex.concat().chars().filter(|c| !c.is_whitespace()).collect();
    let bytes = (0..digits.len())
        .step_by(2)
        .map(|at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect::<Option<Vec<u8>>>()
        .context("this is not hexadecimal: pairs of the digits 0-9 and a-f are needed")?;
    let described = describe(&bytes);
    print!("{}", described.head);
    let message = described.body.map_err(|error| anyhow!("this frame is wrong: {error}"))?;
    println!("{message}");
    Ok(())
}
