//! Seeds of failures that property tests have found: each belongs to a source file, which replays it.

use super::tree::File;
use super::{no_complaints, tree};

const FOLDER: &str = "/proptest-regressions/";
const ENDING: &str = ".proptest-regressions";

/// The source file whose tests read these seeds: of `src`, a folder beside it has them; of other folders, the file
/// itself stands beside its seeds.
fn source_of(path: &str) -> Option<String> {
    match path.split_once(FOLDER) {
        Some((package, seeds)) => Some(format!("{package}/src/{}.rs", seeds.strip_suffix(".txt")?)),
        None => Some(format!("{}.rs", path.strip_suffix(ENDING)?)),
    }
}

fn seeds_of_nothing(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    for File { path, .. } in files.iter().filter(|file| file.path.contains("proptest-regressions")) {
        let reads = |source: String| files.iter().any(|file| file.path == source && file.text.contains("proptest!"));
        if !source_of(path).is_some_and(reads) {
            complaints
                .push(format!("{path}: no source with property tests has this name, so nothing replays its seeds"));
        }
    }
    complaints
}

#[test]
fn seeds_are_replayed() {
    let files = tree::files();
    assert!(files.iter().any(|file| source_of(&file.path).is_some()), "no seeds were found");
    no_complaints(&seeds_of_nothing(&files));
}

#[test]
fn seeds_that_a_renamed_source_has_left_behind_are_found() {
    let beside = |seeds: &str, source: &str, text: &str| {
        seeds_of_nothing(&[File::new(seeds, "cc 1"), File::new(source, text)]).len()
    };
    let (inside, outside) = ("a/b/proptest-regressions/c/d.txt", "a/tests/e.proptest-regressions");
    assert_eq!(beside(inside, "a/b/src/c/d.rs", "proptest! {"), 0);
    assert_eq!(beside(outside, "a/tests/e.rs", "proptest! {"), 0);
    assert_eq!(beside(inside, "a/b/src/d.rs", "proptest! {"), 1);
    assert_eq!(beside(inside, "a/b/src/c/d.rs", "fn d() {"), 1);
    assert_eq!(beside(outside, "a/src/e.rs", "proptest! {"), 1);
    assert_eq!(beside("a/b/proptest-regressions/c/d", "a/b/src/c/d.rs", "proptest! {"), 1);
}
