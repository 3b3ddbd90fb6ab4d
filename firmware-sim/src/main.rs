//! `lorgnette-sim`: simulated glasses on the command line.

mod cli;

fn main() -> std::process::ExitCode {
    cli::run()
}
