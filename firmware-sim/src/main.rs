//! `lorgnette-sim`: glasses without glass, on the command line.

mod cli;

fn main() -> std::process::ExitCode {
    cli::run()
}
