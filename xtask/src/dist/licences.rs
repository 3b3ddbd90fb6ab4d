//! The licences of all code in the programs, in one text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::crates::{self, Crate};
use crate::places::Places;
use crate::process::Failure;

/// Some crates come without a file, but under a licence whose text is always the same.
const STANDARD: [(&str, &str); 3] =
    [("Apache-2.0", "LICENSE-APACHE"), ("MIT", "LICENSE-MIT"), ("BSD-3-Clause", "deploy/licences/BSD-3-Clause")];

/// A list of the crates with their licences, then every licence text with the crates that it comes from.
///
/// # Errors
/// A crate has neither a licence file nor a licence of [`STANDARD`].
pub(super) fn text(places: &Places, crates: &[Crate]) -> Result<String, Failure> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut list = String::from(
        "Code in these programs, with its licences (SPDX)\n\n\
         The standard library of Rust  MIT OR Apache-2.0\n",
    );
    for one in crates {
        let name = format!("{} {}", one.name, one.version);
        let _ = writeln!(list, "{name:30}  {}", one.licence);
        if one.is_ours() {
            continue;
        }
        let folder = one.folder()?;
        let files = crates::licence_files(&folder)?;
        for file in &files {
            let bytes = fs::read(file).map_err(Failure::at(file))?;
            let shown = file.strip_prefix(&folder).unwrap_or(file).display().to_string();
            add(&mut texts, &String::from_utf8_lossy(&bytes), format!("{name} ({shown})"));
        }
        if files.is_empty() {
            let file = standard(&one.licence).ok_or_else(|| {
                Failure::new(format!("{name} ({}) comes without a licence file; see {}", one.licence, folder.display()))
            })?;
            let path = places.root.join(file);
            let own = fs::read_to_string(&path).map_err(Failure::at(&path))?;
            // The holders of the copyright are others.
            let terms = own.lines().skip_while(|line| line.starts_with("Copyright") || line.is_empty());
            let source = format!("{name} (comes without a file; by {})", authors(&folder)?);
            add(&mut texts, &terms.collect::<Vec<_>>().join("\n"), source);
        }
    }
    for (text, sources) in texts {
        let _ = write!(list, "\n{}\n{}\n\n{text}\n", "=".repeat(80), sources.join("\n"));
    }
    Ok(list)
}

/// Texts that differ in the ends of lines only are one.
fn add(texts: &mut BTreeMap<String, Vec<String>>, text: &str, source: String) {
    let text: Vec<&str> = text.lines().map(str::trim_end).collect();
    texts.entry(text.join("\n").trim_matches('\n').to_owned()).or_default().push(source);
}

/// Who wrote a crate, by its manifest.
fn authors(folder: &Path) -> Result<String, Failure> {
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(Failure::at(&manifest))?;
    let list = text.split_once("\nauthors = [").and_then(|(_, rest)| rest.split_once(']'));
    let names: Vec<&str> = list.map_or("", |(list, _)| list).split('"').skip(1).step_by(2).collect();
    Ok(if names.is_empty() { "its contributors".to_owned() } else { names.join(", ") })
}

/// The file with the text of a licence that may be chosen.
fn standard(licence: &str) -> Option<&'static str> {
    let choices: Vec<&str> = licence.split(" OR ").map(|choice| choice.trim_matches(['(', ')'])).collect();
    STANDARD.iter().find(|(name, _)| choices.contains(name)).map(|(_, file)| *file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_listed_once() {
        let mut texts = BTreeMap::new();
        add(&mut texts, "Be kind.\r\n", "a 1.0.0 (LICENSE)".into());
        add(&mut texts, "\nBe kind.", "b 1.0.0 (COPYING)".into());
        add(&mut texts, "Be bold.", "c 1.0.0 (LICENSE)".into());
        assert_eq!(texts.len(), 2);
        assert_eq!(texts["Be kind."], ["a 1.0.0 (LICENSE)", "b 1.0.0 (COPYING)"]);
    }

    #[test]
    fn only_a_licence_that_may_be_chosen_has_a_standard_text() {
        assert_eq!(standard("MIT OR Apache-2.0"), Some("LICENSE-APACHE"));
        assert_eq!(standard("MIT"), Some("LICENSE-MIT"));
        assert_eq!(standard("Apache-2.0 AND ISC"), None);
        assert_eq!(standard("ISC"), None);
    }
}
