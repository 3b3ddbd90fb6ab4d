//! The example of the configuration with other values: its comments stay.

use anyhow::{Result, bail};

/// A configuration, line by line.
pub(super) struct Document(Vec<String>);

impl Document {
    /// Of this text.
    pub(super) fn new(text: &str) -> Self {
        Self(text.lines().map(str::to_owned).collect())
    }

    /// Sets a key of a section ("": the beginning of the file) to a value in TOML. A key that stands in a comment is
    /// taken out of it; one that stands nowhere follows the section's head.
    ///
    /// # Errors
    /// There is no such section.
    pub(super) fn set(&mut self, section: &str, key: &str, value: &str) -> Result<()> {
        let line = format!("{key} = {value}");
        let head = format!("[{section}]");
        let is_head = |line: &String| line.trim_start_matches("# ").starts_with('[');
        let begin = match section {
            "" => 0,
            _ => match self.0.iter().position(|line| *line == head) {
                Some(at) => at + 1,
                None => bail!("the configuration has no section {head}"),
            },
        };
        let end = self.0[begin..].iter().position(is_head).map_or(self.0.len(), |length| begin + length);
        let written = format!("{key} = ");
        let stands = |line: &String| line.trim_start_matches("# ").starts_with(&written);
        match self.0[begin..end].iter().position(stands) {
            Some(at) => self.0[begin + at] = line,
            None => self.0.insert(begin, line),
        }
        Ok(())
    }

    /// All lines, with a line break behind each.
    pub(super) fn into_text(self) -> String {
        self.0.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_set_where_it_stands() {
        let mut document =
            Document::new("# Name.\nname = \"x\"\n\n[a]\n# First.\n# one = 1\ntwo = 2\n# [[b]]\n# one = 1\n");
        document.set("", "name", "\"y\"").unwrap();
        document.set("a", "one", "7").unwrap();
        document.set("a", "three", "3").unwrap();
        assert!(document.set("c", "one", "1").is_err());
        let wanted = "# Name.\nname = \"y\"\n\n[a]\nthree = 3\n# First.\none = 7\ntwo = 2\n# [[b]]\n# one = 1\n";
        assert_eq!(document.into_text(), wanted);
    }
}
