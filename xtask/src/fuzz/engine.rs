//! Builds libFuzzer and the program that runs a target under it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    cargo::cargo,
    places::Places,
    process::{self, Failure},
};

/// The program with libFuzzer and all targets, and the folder of models that they read.
pub(super) struct Engine {
    program: PathBuf,
    models: PathBuf,
}

impl Engine {
    /// libFuzzer is a build of its own: its build script would change features of the product's build scripts, and with
    /// that compile Whisper anew. The program shares the product's built dependencies; only the workspace's own crates
    /// are compiled once more, with coverage and optimised, and with checks of overflow.
    pub(super) fn build(places: &Places) -> Result<Self, Failure> {
        let fuzz = places.root.join("tests/fuzz");
        let own = places.target.join("fuzz/engine");
        let manifest = fuzz.join("engine/Cargo.toml").display().to_string();
        let mut engine = cargo(places, &["build", "--quiet", "--locked", "--manifest-path", &manifest]);
        process::run(engine.env("CARGO_TARGET_DIR", &own))?;
        let library = library(&own.join("debug/build"))?;
        let mut program = cargo(
            places,
            &["build", "--quiet", "--workspace", "--locked", "--features", "fuzz/libfuzzer", "--bin", "fuzzer"],
        );
        program
            .env("LIBFUZZER_DIR", library)
            .env("RUSTC_WORKSPACE_WRAPPER", fuzz.join("rustc-with-coverage"))
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
            .env("CARGO_INCREMENTAL", "0");
        process::run(&mut program)?;
        Ok(Self { program: places.built("fuzzer"), models: places.models.clone() })
    }

    /// The program with a target.
    pub(super) fn command(&self, target: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env("LORGNETTE_FUZZ_TARGET", target).env("LORGNETTE_MODELS", &self.models);
        command
    }
}

/// The folder of the newest `libfuzzer.a`: a build with another toolchain leaves an old one behind.
fn library(builds: &Path) -> Result<PathBuf, Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir(builds).map_err(Failure::at(builds))? {
        let folder = entry.map_err(Failure::at(builds))?.path().join("out");
        if let Ok(file) = fs::metadata(folder.join("libfuzzer.a")) {
            found.push((file.modified().map_err(Failure::at(&folder))?, folder));
        }
    }
    let newest = found.into_iter().max().map(|(_, folder)| folder);
    newest.ok_or_else(|| Failure::new(format!("no libfuzzer.a below {}", builds.display())))
}
