//! Rules of the workspace that the test run enforces (ARCHITECTURE.md states them).
//!
//! Each rule is a function that returns a list of complaints, and has a test with a bad sample, which shows that it can
//! fail.

mod cycles;
mod documents;
mod layers;
mod links;
mod manifests;
mod providers;
mod rust_sources;
mod seeds;
mod stub_docs;
mod text;
mod tree;
mod use_trees;

use tree::File;

/// Shows all complaints at once, and fails if there is one.
#[track_caller]
fn no_complaints(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// Applies one rule to every Rust file of the checkout.
#[track_caller]
fn every_rust_file(rule: impl Fn(&File) -> Vec<String>) {
    let files = tree::files();
    let judged: Vec<&File> = files.iter().filter(|file| file.path.ends_with(".rs")).collect();
    assert!(judged.len() > 10, "only {} Rust files were found", judged.len());
    no_complaints(&judged.into_iter().flat_map(rule).collect::<Vec<_>>());
}
