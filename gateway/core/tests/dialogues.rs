//! Whole dialogues on a virtual clock, read from `dialogues/*.txt`; the grammar is in
//! `dialogues/README.md`.

mod script;
mod world;

use std::{fs, path::Path};

/// Runs every scenario of a file; all failures are reported at once.
fn run(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialogues").join(file);
    let text = fs::read_to_string(&path).expect("the scenarios are there");
    let failures: Vec<String> =
        script::scenarios(&text).into_iter().filter_map(|scenario| script::run(&scenario).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn turns() {
    run("turns.txt");
}

#[test]
fn steps() {
    run("steps.txt");
}

#[test]
fn moment() {
    run("moment.txt");
}

#[test]
fn endpoint() {
    run("endpoint.txt");
}

#[test]
fn addressing() {
    run("addressing.txt");
}

#[test]
fn doubt() {
    run("doubt.txt");
}

#[test]
fn questions() {
    run("questions.txt");
}

#[test]
fn timers() {
    run("timers.txt");
}

#[test]
fn talk() {
    run("talk.txt");
}

#[test]
fn interruptions() {
    run("interruptions.txt");
}

#[test]
fn worth() {
    run("worth.txt");
}

#[test]
fn again() {
    run("again.txt");
}

#[test]
fn failures() {
    run("failures.txt");
}

#[test]
fn models() {
    run("models.txt");
}

#[test]
fn apply_now() {
    run("apply_now.txt");
}

#[test]
fn budgets() {
    run("budgets.txt");
}

#[test]
fn assistant() {
    run("assistant.txt");
}

#[test]
fn announcements() {
    run("announcements.txt");
}

#[test]
fn approvals() {
    run("approvals.txt");
}

#[test]
fn outside() {
    run("outside.txt");
}

#[test]
fn links() {
    run("links.txt");
}

#[test]
fn display() {
    run("display.txt");
}

#[test]
fn apps() {
    run("apps.txt");
}

#[test]
fn there_are_at_least_forty_scenarios() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialogues");
    let count: usize = fs::read_dir(folder)
        .expect("the folder is there")
        .filter_map(|entry| fs::read_to_string(entry.expect("readable").path()).ok())
        .map(|text| script::scenarios(&text).len())
        .sum();
    assert!(count >= 40, "{count}");
}
