//! `cargo xtask fetch`: the models, by the product's own command, and speech for the tests.

use std::process::Command;

use crate::cargo;
use crate::places::Places;
use crate::process::{self, Failure};
use crate::speech;
use crate::steps::step;

/// Models that no default configuration needs, but tests and measurements do.
const FOR_TESTS: [&str; 3] = ["all-minilm-l6-v2", "smart-turn-v3.2", "wake-embedding"];

/// Fetches everything; immediate if everything is present.
pub(crate) fn run(places: &Places) -> Result<(), Failure> {
    step("build lorgnette", || cargo::build_programs(places, &["lorgnette"], &[]))?;
    models(places)?;
    models_for_tests(places)?;
    step("fetch test speech", || speech::fetch(places))
}

/// Only the default models; `lorgnette` must be built already.
pub(crate) fn models(places: &Places) -> Result<(), Failure> {
    step("fetch models", || fetch(places, &[]))
}

/// The other models; `lorgnette` must be built already.
pub(crate) fn models_for_tests(places: &Places) -> Result<(), Failure> {
    step("fetch models for tests", || fetch(places, &FOR_TESTS))
}

fn fetch(places: &Places, ids: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new(places.built("lorgnette"));
    process::run(command.args(["models", "fetch"]).args(ids).env("LORGNETTE_MODELS", &places.models))
}
