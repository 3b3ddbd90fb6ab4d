//! `cargo xtask fetch`: the models, by the product's own command, and speech for the tests.

use std::process::Command;

use crate::cargo;
use crate::places::Places;
use crate::process::{self, Failure};
use crate::speech;
use crate::steps::step;

/// Fetches everything; instant when it is all there.
pub(crate) fn run(places: &Places) -> Result<(), Failure> {
    step("build lorgnette", || cargo::build_programs(places, &["lorgnette"], &[]))?;
    models(places)?;
    step("fetch test speech", || speech::fetch(places))
}

/// The models alone; `lorgnette` has to be built already.
pub(crate) fn models(places: &Places) -> Result<(), Failure> {
    step("fetch models", || {
        process::run(
            Command::new(places.built("lorgnette")).args(["models", "fetch"]).env("LORGNETTE_MODELS", &places.models),
        )
    })
}
