//! Judges and peers from package registries, each in a folder of its own under `.cache`, where a later run finds it.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

/// A folder of the cache, which nobody else installs into for as long as this lives. Every test is a process of
/// its own, so that a lock within one process would not hold the others back.
pub struct Cache {
    folder: PathBuf,
    _lock: File,
}

impl Cache {
    /// Waits until the folder `name` is free.
    pub fn lock(name: &str) -> Self {
        let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache");
        let folder = all.join(name);
        std::fs::create_dir_all(&folder).expect("the cache");
        let folder = folder.canonicalize().expect("the cache");
        let lock = File::create(all.join(format!("{name}.lock"))).expect("a lock");
        lock.lock().expect("the lock");
        Self { folder, _lock: lock }
    }

    /// Where it is, without links.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Has `install` done unless it was done before for the same `wanted`.
    pub fn once(&self, wanted: &str, install: impl FnOnce(&Path)) {
        let done = self.folder.join("installed");
        if std::fs::read_to_string(&done).is_ok_and(|found| found == wanted) {
            return;
        }
        install(&self.folder);
        std::fs::write(&done, wanted).expect("the mark");
    }
}

/// Runs a command that must succeed; `needs` tells what a machine lacks on which it does not.
pub fn run(command: &mut Command, needs: &str) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; needs {needs}"));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {words}; needs {needs}");
}
