//! Whole dialogues on a virtual clock: each scenario of `dialogues/*.txt` is a test, named after file and title. The
//! grammar is in `dialogues/README.md`.

mod script;
mod world;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let trials = files().iter().flat_map(|file| scenarios(file)).collect::<Vec<_>>();
    let names: BTreeSet<&str> = trials.iter().map(Trial::name).collect();
    assert_eq!(names.len(), trials.len(), "two scenarios of a file have one title");
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The scenario files, sorted.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialogues");
    let entries = fs::read_dir(&folder).expect("the folder of the scenarios");
    let paths = entries.map(|entry| entry.expect("an entry of the folder").path());
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|end| end == "txt")).collect();
    files.sort();
    assert!(!files.is_empty(), "no scenarios in {}", folder.display());
    files
}

fn scenarios(file: &Path) -> Vec<Trial> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let group = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let scenarios = script::scenarios(&text);
    assert!(!scenarios.is_empty(), "no scenario in {}", file.display());
    let trial = |scenario: script::Scenario| {
        let name = format!("{group}::{}", snake(&scenario.title));
        Trial::test(name, move || script::run(&scenario).map_err(Failed::from))
    };
    scenarios.into_iter().map(trial).collect()
}

/// A title as a test name without quotes.
fn snake(title: &str) -> String {
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}
