//! For which processors the programs are compiled.
//!
//! Only the speech engine (ggml) is compiled for more than the oldest processor of an architecture; all Rust code looks
//! at run time for what else there is. So a program can say itself that a processor lacks something
//! (`audio::asr::missing_instructions`), before the engine runs.

use std::env::consts::ARCH;
use std::path::PathBuf;

use crate::cargo::{self, cargo};
use crate::places::Places;
use crate::process::{self, Failure};

pub(super) const PROGRAMS: [&str; 2] = ["lorgnette", "lorgnette-sim"];

/// What ggml uses of x86-64-v3, which is nearly every x86 processor since 2013 (Haswell, Excavator) but Atoms.
const X86_64_V3: [(&str, &str); 7] = [
    ("GGML_NATIVE", "OFF"),
    ("GGML_SSE42", "ON"),
    ("GGML_AVX", "ON"),
    ("GGML_AVX2", "ON"),
    ("GGML_BMI2", "ON"),
    ("GGML_F16C", "ON"),
    ("GGML_FMA", "ON"),
];
/// The oldest processor of another architecture.
const OLDEST: [(&str, &str); 1] = [("GGML_NATIVE", "OFF")];

/// A level of processors, and a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Release build for other machines: x86-64-v3, or the oldest processor of another architecture.
    Portable,
    /// Release build for this very processor.
    Native,
    /// The development build, which is native, to check the recipe.
    Development,
}

impl Level {
    /// In file names.
    pub(super) fn name(self) -> String {
        match self {
            Self::Portable if ARCH == "x86_64" => "x86-64-v3".to_owned(),
            Self::Portable => ARCH.to_owned(),
            Self::Native => format!("{ARCH}-native"),
            Self::Development => format!("{ARCH}-dev"),
        }
    }

    /// In the version of a Debian package, where `~` sorts before the release and `+` behind it.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Portable => "",
            Self::Native => "+native",
            Self::Development => "~dev",
        }
    }

    /// On which machines it runs, in a sentence.
    pub(super) fn demand(self) -> &'static str {
        match self {
            Self::Portable if ARCH == "x86_64" => "It needs a processor of level x86-64-v3 (AVX2, BMI2, F16C and FMA).",
            Self::Portable => "It runs on every processor of the architecture.",
            Self::Native | Self::Development => "It runs on machines with the processor of the build machine only.",
        }
    }

    /// Where cargo puts the program of this name.
    pub(super) fn program(self, places: &Places, name: &str) -> PathBuf {
        match self {
            Self::Portable => self.target(places).join("release").join(name),
            Self::Native => places.target.join("release").join(name),
            Self::Development => places.built(name),
        }
    }

    /// Portable code has a folder of its own: cargo does not notice that ggml is to be compiled otherwise.
    fn target(self, places: &Places) -> PathBuf {
        match self {
            Self::Portable => places.target.join(self.name()),
            Self::Native | Self::Development => places.target.clone(),
        }
    }

    pub(super) fn build(self, places: &Places) -> Result<(), Failure> {
        if self == Self::Development {
            return cargo::build_programs(places, &PROGRAMS, &[]);
        }
        let mut command = cargo(places, &["build", "--release", "--locked", "-p", "gateway", "-p", "firmware-sim"]);
        command.env("CARGO_TARGET_DIR", self.target(places));
        if self == Self::Portable {
            let portable: &[(&str, &str)] = if ARCH == "x86_64" { &X86_64_V3 } else { &OLDEST };
            command.envs(portable.iter().copied());
        }
        process::run(command.args(["--bins"]))
    }
}
