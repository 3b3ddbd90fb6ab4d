//! Paths: the checkout, the target folder of this CPU, models, test speech.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::Failure;

/// Folders used by more than one command. Absolute.
pub(crate) struct Places {
    /// Root of the checkout.
    pub(crate) root: PathBuf,
    /// Cargo's target folder for everything but `xtask` itself.
    pub(crate) target: PathBuf,
    /// Model files; the tested program finds them by the same rule.
    pub(crate) models: PathBuf,
    /// Test speech, one folder per package.
    pub(crate) speech: PathBuf,
    /// Tools and downloads of this checkout; ignored by git.
    pub(crate) cache: PathBuf,
}

impl Places {
    pub(crate) fn find() -> Result<Self, Failure> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .ok_or_else(|| Failure::new("xtask lies outside a checkout"))?
            .to_path_buf();
        let target = match env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty()) {
            Some(folder) => env::current_dir().map_err(Failure::at(&root))?.join(folder),
            None => root.join("target").join(native_name()),
        };
        Ok(Self {
            target,
            models: data_folder("LORGNETTE_MODELS", "models")?,
            speech: data_folder("LORGNETTE_SPEECH", "speech")?,
            cache: root.join(".cache"),
            root,
        })
    }

    /// Path of a program built with the development profile.
    pub(crate) fn built(&self, program: &str) -> PathBuf {
        self.target.join("debug").join(program)
    }

    /// Path of a built example.
    pub(crate) fn example(&self, name: &str) -> PathBuf {
        self.target.join("debug/examples").join(name)
    }
}

fn data_folder(variable: &str, name: &str) -> Result<PathBuf, Failure> {
    data_folder_from(name, |key| {
        let key = if key == "OWN" { variable } else { key };
        env::var_os(key).filter(|value| !value.is_empty()).map(PathBuf::from)
    })
    .ok_or_else(|| Failure::new(format!("neither {variable} nor HOME is set: set {variable}")))
}

/// `OWN` is the folder's own variable. A relative `XDG_DATA_HOME` is ignored, as its specification requires.
fn data_folder_from(name: &str, value: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(folder) = value("OWN") {
        return Some(folder);
    }
    let data = value("XDG_DATA_HOME")
        .filter(|folder| folder.is_absolute())
        .or_else(|| value("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("lorgnette").join(name))
}

/// Whisper is compiled for the CPU of the build machine, and aborts with an illegal instruction on a lesser one. So a
/// target folder that is shared or copied between machines must not be reused.
fn native_name() -> String {
    let described = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    native_name_of(&described)
}

fn native_name_of(cpuinfo: &str) -> String {
    let features = cpuinfo
        .lines()
        .find_map(|line| {
            let (key, value) = line.split_once(':')?;
            matches!(key.trim(), "flags" | "Features").then(|| value.trim())
        })
        .unwrap_or(env::consts::OS);
    let mut features: Vec<&str> = features.split_whitespace().collect();
    features.sort_unstable();
    features.push(env::consts::ARCH);
    format!("native-{:08x}", fnv_1a(features.join(" ").as_bytes()))
}

/// FNV-1a, 32 bits (RFC 9923): stable across toolchains, unlike the standard library's hasher.
pub(crate) fn fnv_1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_1a_gives_the_published_values() {
        assert_eq!(fnv_1a(b""), 0x811c_9dc5);
        assert_eq!(fnv_1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv_1a(b"foobar"), 0xbf9c_f968);
    }

    #[test]
    fn the_target_folder_follows_the_cpu_features_and_not_their_order() {
        let one = native_name_of("processor\t: 0\nflags\t\t: sse2 avx2\n");
        assert_eq!(one, native_name_of("processor\t: 7\nflags\t\t: avx2 sse2\n"));
        assert_ne!(one, native_name_of("processor\t: 0\nflags\t\t: sse2\n"));
        assert_ne!(one, native_name_of("Features : asimd\n"));
    }

    #[test]
    fn data_folders_follow_the_environment() {
        let with = |own: Option<&str>, xdg: Option<&str>, home: Option<&str>| {
            data_folder_from("models", |key| {
                match key {
                    "OWN" => own,
                    "XDG_DATA_HOME" => xdg,
                    _ => home,
                }
                .map(PathBuf::from)
            })
        };
        assert_eq!(with(Some("/m"), Some("/x"), None), Some("/m".into()));
        assert_eq!(with(None, Some("/x"), Some("/h")), Some("/x/lorgnette/models".into()));
        let from_home: PathBuf = "/h/.local/share/lorgnette/models".into();
        assert_eq!(with(None, None, Some("/h")), Some(from_home.clone()));
        assert_eq!(with(None, Some("relative"), Some("/h")), Some(from_home));
        assert_eq!(with(None, None, None), None);
    }
}
