//! The `lorgnette` binary.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    // Before anything else: a child that runs a program has as little around it as possible.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == code_sandbox::ARGUMENT) {
        return code_sandbox::child_main();
    }
    audio::codec::silence_contained_panics();
    gateway::cli::run(gateway::cli::Arguments::parse())
}
