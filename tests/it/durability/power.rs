//! Power loss: writes that were not yet synced are undone after the gateway was killed.

use std::{
    fs::{self, OpenOptions},
    io::{Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

pub const FORGETFUL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/durability/forgetful.c");

/// Compiles a library to be loaded into the gateway.
pub fn compile(folder: &Path, source: &str) -> PathBuf {
    let library = folder.join("preload.so");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .args([library.as_os_str(), source.as_ref()])
        .arg("-ldl")
        .output()
        .unwrap_or_else(|error| panic!("cc: {error}; this test needs a C compiler: apt-get install gcc"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

/// A write that can be undone.
struct Undo {
    offset: u64,
    size: u64,
    before: Vec<u8>,
}

fn parse(mut journal: &[u8]) -> Vec<Undo> {
    let mut undos = Vec::new();
    let number = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().expect("eight"));
    while !journal.is_empty() {
        // The gateway may have been killed while it wrote a record: then the write itself did not happen.
        let Some((head, rest)) = journal.split_at_checked(24) else { break };
        let kept = usize::try_from(number(head, 1)).expect("a size");
        let Some((before, rest)) = rest.split_at_checked(kept) else { break };
        undos.push(Undo { offset: number(head, 0), size: number(head, 2), before: before.to_vec() });
        journal = rest;
    }
    undos
}

/// Undoes everything that was not synced; returns the number of these writes.
pub fn lose_power(journal: &Path, store: &Path) -> usize {
    let undos = parse(&fs::read(journal).expect("the journal"));
    let mut file = OpenOptions::new().write(true).open(store.join("data.mdb")).expect("the store");
    for undo in undos.iter().rev() {
        file.seek(SeekFrom::Start(undo.offset)).expect("seek");
        file.write_all(&undo.before).expect("write");
        file.set_len(undo.size).expect("its size before");
    }
    file.sync_all().expect("sync");
    // The lock file holds only processes and readers: after a power loss there are none.
    drop(fs::remove_file(store.join("lock.mdb")));
    undos.len()
}

/// Numbers of journalled writes and of syncs.
pub fn counts(journal: &Path) -> (u64, u64) {
    let bytes = fs::read(journal.with_extension("journal.count")).expect("the counts");
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
    (number(0), number(8))
}
