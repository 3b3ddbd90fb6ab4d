//! Runs cargo, always with the same target folder, lock file and feature set.

use std::process::Command;

use crate::places::Places;
use crate::process::{self, Failure};

/// `cargo WORDS...` in the checkout.
///
/// The outer `cargo xtask` sets variables about *this* crate for its children, and some build scripts watch those
/// variables: if left in place, they would cause needless rebuilds.
pub(crate) fn cargo(places: &Places, words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(words)
        .current_dir(&places.root)
        .env("CARGO_TARGET_DIR", &places.target)
        .env("LORGNETTE_MODELS", &places.models)
        .env("LORGNETTE_SPEECH", &places.speech);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name.as_ref());
        }
    }
    command
}

/// Builds programs and examples with the features of the whole workspace, so that the demo, the tests and the checks
/// share the compiled code.
pub(crate) fn build_programs(places: &Places, programs: &[&str], examples: &[&str]) -> Result<(), Failure> {
    let mut command = cargo(places, &["build", "--workspace", "--locked"]);
    for program in programs {
        command.args(["--bin", program]);
    }
    for example in examples {
        command.args(["--example", example]);
    }
    process::run(&mut command)
}
