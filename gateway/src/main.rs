//! The `lorgnette` binary.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    gateway::cli::run(gateway::cli::Arguments::parse())
}
