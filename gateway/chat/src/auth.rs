//! A provider's key: read from the environment or a file, never shown.

use std::{fmt, io, path::Path};

use thiserror::Error;

/// Longest key or token in bytes; a file that holds more is none. Tokens that carry claims are the longest.
const KEY_BYTES_MAX: usize = 16 * 1024;

/// Why there is no key.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The variable is not set.
    #[error("the environment variable {0} is not set; set it to the provider's key")]
    Unset(String),
    /// The file cannot be read.
    #[error("the key file {0} cannot be read: {1}")]
    Unreadable(String, io::Error),
    /// There is something, but no key.
    #[error("{0} holds no usable key: it must be one line of printable ASCII")]
    Unusable(String),
}

/// A secret. Its debug form hides it; [`Key::redact`] takes it out of other people's texts.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    /// From an environment variable.
    pub fn from_env(variable: &str) -> Result<Self, KeyError> {
        let value = std::env::var(variable).map_err(|_| KeyError::Unset(variable.to_owned()))?;
        Self::checked(&value, variable)
    }

    /// From a file that holds nothing else.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let name = path.display().to_string();
        let value = std::fs::read_to_string(path).map_err(|error| KeyError::Unreadable(name.clone(), error))?;
        Self::checked(&value, &name)
    }

    /// From a text at hand.
    pub fn new(value: &str) -> Result<Self, KeyError> {
        Self::checked(value, "the given text")
    }

    fn checked(value: &str, source: &str) -> Result<Self, KeyError> {
        let value = value.trim();
        let usable = (1..=KEY_BYTES_MAX).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_graphic());
        if usable { Ok(Self(value.to_owned())) } else { Err(KeyError::Unusable(source.to_owned())) }
    }

    /// The secret itself, for the one header that carries it.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }

    /// The text without the secret: providers quote keys in their errors.
    pub fn redact(&self, text: &str) -> String {
        text.replace(&self.0, "[key]")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key([hidden])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_and_hidden() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "sk-planted-123\n").expect("written");
        let key = Key::from_file(file.path()).expect("a key");
        assert_eq!(key.secret(), "sk-planted-123");
        assert!(!format!("{key:?}").contains("planted"));
        assert_eq!(key.redact("bad sk-planted-123!"), "bad [key]!");
        for bad in ["", "two words", "sp\u{e4}t", "a\nb"] {
            assert!(Key::new(bad).is_err(), "{bad}");
        }
        assert!(Key::from_env("LORGNETTE_NO_SUCH_VARIABLE").is_err());
        assert!(Key::from_file(Path::new("/nonexistent")).is_err());
    }
}
