//! `cargo xtask bench`: runs the measurement programs of the crates, `CRATE/benches/NAME.rs`.

use std::fs;
use std::path::Path;

use crate::cargo::cargo;
use crate::needs;
use crate::places::Places;
use crate::process::{self, Failure};
use crate::speech;

/// Folders of the workspace's crates; each is a package with that manifest.
const CRATES: [&str; 9] = [
    "device-protocol",
    "audio",
    "gateway",
    "gateway/core",
    "gateway/chat",
    "tools",
    "firmware-sim",
    "tests",
    "tests/sqlite",
];

/// The program that needs speech in other languages, with its texts.
const LANGUAGES: &str = "languages";
/// The one that needs it without.
const WAKE_FALSE: &str = "wake_false";

struct Bench {
    name: String,
    manifest: String,
    about: String,
}

/// Lists the programs, or runs the named one with the remaining arguments.
pub(crate) fn run(places: &Places, arguments: &[String]) -> Result<(), Failure> {
    let benches = find(&places.root)?;
    let Some((name, rest)) = arguments.split_first() else {
        for bench in &benches {
            println!("{:24} {}", bench.name, bench.about);
        }
        return Ok(());
    };
    let bench = benches.iter().find(|bench| &bench.name == name).ok_or_else(|| {
        let names: Vec<&str> = benches.iter().map(|bench| bench.name.as_str()).collect();
        Failure::new(format!("no bench is called `{name}`; there are: {}", names.join(", ")))
    })?;
    needs::require(&[&needs::BUILD])?;
    match name.as_str() {
        LANGUAGES => speech::fetch_texts(places)?,
        WAKE_FALSE => {
            speech::fetch(places)?;
            speech::fetch_for_wake_words(places)?;
        }
        _ => {}
    }
    let mut command = cargo(places, &["bench", "--locked", "--manifest-path", &bench.manifest]);
    command.args(["--bench", name, "--"]).args(rest);
    process::run(&mut command)
}

fn find(root: &Path) -> Result<Vec<Bench>, Failure> {
    let mut benches = Vec::new();
    for folder in CRATES {
        let Ok(entries) = fs::read_dir(root.join(folder).join("benches")) else {
            continue;
        };
        for entry in entries {
            let file = entry.map_err(Failure::at(root))?.path();
            if file.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let source = fs::read_to_string(&file).map_err(Failure::at(&file))?;
            let about = source.lines().next().unwrap_or_default().trim_start_matches("//!");
            benches.push(Bench {
                name: file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
                manifest: format!("{folder}/Cargo.toml"),
                about: about.trim().to_owned(),
            });
        }
    }
    benches.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(benches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benches_are_found_by_file_and_described_by_their_first_line() {
        let root = std::env::temp_dir().join(format!("xtask-bench-{}", std::process::id()));
        let folder = root.join("audio/benches");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("listener_cost.rs"), "//! Microseconds per frame.\n").unwrap();
        fs::write(folder.join("notes.txt"), "not a program").unwrap();
        let found = find(&root).unwrap();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "listener_cost");
        assert_eq!(found[0].manifest, "audio/Cargo.toml");
        assert_eq!(found[0].about, "Microseconds per frame.");
    }
}
