//! The committed fuzz corpus and the golden vectors, replayed with the check of the fuzz target.
#![cfg(feature = "json")]

mod check;

use std::fs;
use std::path::Path;

#[test]
fn the_corpus_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/decode");
    let paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(paths.len() >= 40, "{} inputs", paths.len());
    for path in paths {
        check::peer_bytes(&fs::read(&path).unwrap());
    }
}
