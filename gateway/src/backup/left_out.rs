//! What lies in a data folder and is not in its backup: told by the command that makes it, kept in the manifest, and told
//! again by a restore, when it may be missed.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::PATH_BYTES_MAX;
use crate::text::{crop, in_one_line};

/// Paths that are kept; of the others only the number is. People read the list.
const PATHS_MAX: usize = 50;

/// What a backup leaves out without being asked to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// The first ones, by path.
    first: Vec<Omission>,
    /// How many there are beside these.
    more: usize,
}

/// Something that is left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Omission {
    /// Its path within the data folder, or the start of it.
    path: String,
    why: Why,
}

/// Why something is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Why {
    /// It is neither a file nor a folder.
    Kind,
    /// A manifest takes no such path.
    Name,
    /// It is renamed when it is whole.
    Unfinished,
}

impl Omission {
    pub(super) fn new(path: &str, why: Why) -> Self {
        Self { path: crop(path, PATH_BYTES_MAX).to_owned(), why }
    }
}

impl LeftOut {
    pub(super) fn of(mut all: Vec<Omission>) -> Self {
        all.sort();
        let more = all.len().saturating_sub(PATHS_MAX);
        all.truncate(PATHS_MAX);
        Self { first: all, more }
    }

    /// Checks the bounds of what a manifest says.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(self.first.len() <= PATHS_MAX, "it names more than {PATHS_MAX} paths that were left out");
        let is_short = |omission: &Omission| omission.path.len() <= PATH_BYTES_MAX;
        ensure!(self.first.iter().all(is_short), "a path that was left out is longer than {PATH_BYTES_MAX} bytes");
        Ok(())
    }

    /// Lines for people; none where nothing is left out.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.first.is_empty() {
            lines.push("left out, although in the data folder:".to_owned());
        }
        lines.extend(self.first.iter().map(|Omission { path, why }| {
            let why = match why {
                Why::Kind => "a link, or something else that is neither a file nor a folder",
                Why::Name => "its path has control characters, is no text, or is too long",
                Why::Unfinished => "not written to its end",
            };
            format!("  {}: {why}", in_one_line(path))
        }));
        if self.more > 0 {
            lines.push(format!("  and {} more", self.more));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_bounded_and_a_terminal_does_not_act_on_it() {
        assert_eq!(LeftOut::of(Vec::new()).lines(), Vec::<String>::new());
        let long = "x".repeat(2 * PATH_BYTES_MAX);
        let all = [("b\u{1b}[2J", Why::Name), ("a", Why::Kind), (long.as_str(), Why::Name)];
        let lines = LeftOut::of(all.map(|(path, why)| Omission::new(path, why)).into()).lines();
        assert!(lines[1].starts_with("  a: a link") && lines[2].starts_with("  b\\u001b[2J: "), "{lines:?}");
        let many = |count: usize| -> Vec<Omission> {
            (0..count).map(|n| Omission::new(&format!("{n:04}"), Why::Unfinished)).collect()
        };
        let told = LeftOut::of(many(PATHS_MAX + 7));
        told.check().unwrap();
        assert_eq!(told.lines().last().map(String::as_str), Some("  and 7 more"));
        assert!(LeftOut { first: many(PATHS_MAX + 1), more: 0 }.check().is_err());
        assert!(LeftOut { first: vec![Omission { path: long, why: Why::Name }], more: 0 }.check().is_err());
    }
}
