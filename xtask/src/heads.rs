//! `cargo xtask heads`: the heads of the shipped wake phrases, by `lorgnette wake train`, into the models folder, where the
//! gateway finds them. A head that misses the aims is left out. Beside each head is its recipe: while that is unchanged, the
//! head is not made again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo;
use crate::fetch::{self, WAKE_SPEECH};
use crate::needs;
use crate::places::{Places, fnv_1a};
use crate::process::{self, Failure};
use crate::steps::step;

/// An example of a configuration with its defaults, and its line with the wake phrases.
const EXAMPLE: &str = include_str!("../../gateway/src/config/example.toml");
const PHRASES_KEY: &str = "wake_phrases = [";
/// What makes a head and judges it.
const SOURCES: &str = "audio/src/wake";

pub(crate) fn run(places: &Places) -> Result<(), Failure> {
    needs::require(&[&needs::BUILD, &needs::FETCH, &needs::VOICES])?;
    step("build lorgnette", || cargo::build_programs(places, &["lorgnette"], &[]))?;
    fetch::models(places)?;
    fetch::models_for_tests(places)?;
    let folder = places.models.join("wake");
    if !WAKE_SPEECH.iter().all(|name| folder.join(name).is_file()) {
        fetch::wake_speech(places)?;
    }
    let ingredients = ingredients(places, &folder)?;
    let mut outcomes = Vec::new();
    for phrase in &phrases(EXAMPLE) {
        let recipe = format!("lorgnette wake train \"{phrase}\" --only-good, with {ingredients:08x}");
        let train = |out: &Path| {
            let mut command = Command::new(places.built("lorgnette"));
            command.args(["wake", "train", phrase.as_str(), "--only-good", "--out"]).arg(out);
            process::run(command.env("LORGNETTE_MODELS", &places.models))
        };
        outcomes.push(step(&format!("head of \"{phrase}\""), || provide(&folder, phrase, &recipe, train))?);
    }
    outcomes.iter().for_each(|outcome| println!("{outcome}"));
    Ok(())
}

/// The shipped wake phrases.
fn phrases(example: &str) -> Vec<String> {
    let list = example.lines().find_map(|line| line.strip_prefix(PHRASES_KEY)?.strip_suffix(']'));
    list.into_iter().flat_map(|list| list.split(',')).map(|phrase| phrase.trim().trim_matches('"').to_owned()).collect()
}

/// A hash of what a head is made of besides its phrase: the sources, and the real speech.
fn ingredients(places: &Places, folder: &Path) -> Result<u32, Failure> {
    let mut files = Vec::new();
    sources(&places.root.join(SOURCES), &mut files)?;
    files.sort();
    files.extend(WAKE_SPEECH.map(|name| folder.join(name)));
    let mut all = Vec::new();
    for file in &files {
        all.extend(fs::read(file).map_err(Failure::at(file))?);
    }
    Ok(fnv_1a(&all))
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder).map_err(Failure::at(folder))? {
        let path = entry.map_err(Failure::at(folder))?.path();
        if path.is_dir() {
            sources(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Has the head of a phrase made, unless it is there, or was left out, by the same recipe; returns what came of it. `train`
/// writes the file that it is given, if the head is good.
fn provide(
    folder: &Path,
    phrase: &str,
    recipe: &str,
    train: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<String, Failure> {
    let name = phrase.replace(' ', "_");
    let (head, record) = (folder.join(format!("{name}.onnx")), folder.join(format!("{name}.recipe")));
    let left_out = format!("{recipe}\nleft out: it misses an aim\n");
    let recorded = fs::read_to_string(&record).unwrap_or_default();
    if head.is_file() {
        let file = fs::read(&head).map_err(Failure::at(&head))?;
        if !recorded.ends_with(&kept(&file)) {
            return Ok(format!("{phrase}: {} was not made by this command, and stays", head.display()));
        }
        if recorded.starts_with(&format!("{recipe}\n")) {
            return Ok(format!("{phrase}: {} is there already", head.display()));
        }
    } else if recorded == left_out {
        return Ok(format!("{phrase}: left out already, since it misses an aim"));
    }
    let making = folder.join("making");
    // A run that was stopped may have left something.
    if making.exists() {
        fs::remove_dir_all(&making).map_err(Failure::at(&making))?;
    }
    fs::create_dir_all(&making).map_err(Failure::at(&making))?;
    let made = making.join(format!("{name}.onnx"));
    let outcome = train(&made).and_then(|()| {
        let is_good = made.is_file();
        let outcome = match is_good {
            true => format!("{recipe}\n{}", kept(&fs::read(&made).map_err(Failure::at(&made))?)),
            false => left_out,
        };
        // In this order: a run that is stopped in between makes the head again, and none stays without its record.
        if head.is_file() {
            fs::remove_file(&head).map_err(Failure::at(&head))?;
        }
        fs::write(&record, outcome).map_err(Failure::at(&record))?;
        if is_good {
            fs::rename(&made, &head).map_err(Failure::at(&head))?;
        }
        let picture = made.with_extension("svg");
        if picture.is_file() {
            let place = head.with_extension("svg");
            fs::rename(&picture, &place).map_err(Failure::at(&place))?;
        }
        Ok(match is_good {
            true => format!("{phrase}: made, {}", head.display()),
            false => format!("{phrase}: left out, since it misses an aim; it is known by its text"),
        })
    });
    fs::remove_dir_all(&making).map_err(Failure::at(&making))?;
    outcome
}

/// The end of the record of a head that was kept: a head with another hash was made by something else.
fn kept(head: &[u8]) -> String {
    format!("kept {:08x}\n", fnv_1a(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good(out: &Path) -> Result<(), Failure> {
        fs::write(out, "head").map_err(Failure::at(out))
    }

    fn bad(_: &Path) -> Result<(), Failure> {
        Ok(())
    }

    fn unasked(_: &Path) -> Result<(), Failure> {
        panic!("it was made again")
    }

    #[test]
    fn phrases_are_those_of_the_example() {
        assert_eq!(phrases(EXAMPLE), ["hey mentra", "ok mentra", "mentra"]);
    }

    #[test]
    fn a_head_is_made_once_for_each_recipe_and_kept_where_it_is_good() {
        let folder = std::env::temp_dir().join(format!("xtask-heads-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let head = folder.join("hey_mentra.onnx");
        let made = |recipe: &str, train: fn(&Path) -> Result<(), Failure>| {
            provide(&folder, "hey mentra", recipe, train).map(|_| head.is_file()).map_err(|failure| failure.to_string())
        };
        assert_eq!(made("one", good), Ok(true));
        assert_eq!(made("one", unasked), Ok(true));
        // Another recipe, and the head is no longer good.
        assert_eq!(made("two", bad), Ok(false));
        assert_eq!(made("two", unasked), Ok(false));
        assert_eq!(made("three", |_| Err(Failure::new("stopped"))), Err("stopped".to_owned()));
        assert_eq!(made("three", good), Ok(true));
        // Those that somebody else has made: in the place of one that was kept, of one that was left out, and of none.
        fs::write(&head, "another").unwrap();
        assert_eq!(made("four", unasked), Ok(true));
        fs::remove_file(&head).unwrap();
        assert_eq!(made("four", bad), Ok(false));
        fs::write(&head, "another").unwrap();
        assert_eq!(made("four", unasked), Ok(true));
        fs::remove_file(folder.join("hey_mentra.recipe")).unwrap();
        assert_eq!(made("four", unasked), Ok(true));
        fs::remove_dir_all(&folder).unwrap();
    }
}
