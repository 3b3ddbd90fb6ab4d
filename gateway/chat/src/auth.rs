//! A provider's key: read from the environment or a file, never printed.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use thiserror::Error;

/// Longest key or token in bytes; a longer file is rejected. Tokens that carry claims are the longest.
const KEY_BYTES_MAX: usize = 16 * 1024;

/// Whether a file of this mode is accessible to anyone but its owner.
pub(crate) fn is_open_to_others(mode: u32) -> bool {
    mode & 0o077 != 0
}

/// Why a key could not be read.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The variable is not set.
    #[error("the environment variable {0} is not set; set it to the provider's key")]
    Unset(String),
    /// The file cannot be read.
    #[error("the key file {0} cannot be read: {1}")]
    Unreadable(String, io::Error),
    /// The file is readable by others.
    #[error(
        "the key file {path} has mode {mode:04o}: others may read the key in it; run `chmod 600 {path}`, and think of a \
         new key"
    )]
    Mode {
        /// The key file.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// The content is not a usable key.
    #[error("{0} holds no usable key: it must be one line of printable ASCII")]
    Unusable(String),
}

/// A secret. Its debug form hides it; [`Key::redact`] removes it from other texts.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    /// Reads a key from an environment variable; `value_of` says what is set.
    ///
    /// # Errors
    /// It is not set, or its value is no key.
    pub fn from_env(variable: &str, value_of: impl FnOnce(&str) -> Option<String>) -> Result<Self, KeyError> {
        let value = value_of(variable).ok_or_else(|| KeyError::Unset(variable.to_owned()))?;
        Self::checked(&value, variable)
    }

    /// Reads a key from a file that contains nothing else and is accessible to its owner only.
    ///
    /// # Errors
    /// The file is readable by others, cannot be read, or has other content. The error contains none of it.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        let name = path.display().to_string();
        let unreadable = |error| KeyError::Unreadable(name.clone(), error);
        let file = File::open(path).map_err(unreadable)?;
        // The mode of the open file, so that it cannot be replaced between check and reading.
        let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o7777;
        if is_open_to_others(mode) {
            return Err(KeyError::Mode { path: name, mode });
        }
        let mut value = String::new();
        // One byte more than allowed, so that a longer file is rejected and not truncated.
        file.take(KEY_BYTES_MAX as u64 + 1).read_to_string(&mut value).map_err(unreadable)?;
        Self::checked(&value, &name)
    }

    /// Checks a key given as text.
    pub fn new(value: &str) -> Result<Self, KeyError> {
        Self::checked(value, "the given text")
    }

    fn checked(value: &str, source: &str) -> Result<Self, KeyError> {
        let value = value.trim();
        let usable = (1..=KEY_BYTES_MAX).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_graphic());
        if usable { Ok(Self(value.to_owned())) } else { Err(KeyError::Unusable(source.to_owned())) }
    }

    /// The secret itself, for the header that carries it.
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
        assert!(Key::from_env("K", |_| None).is_err());
        let set = |name: &str| (name == "K").then(|| "sk-1".to_owned());
        assert_eq!(Key::from_env("K", set).expect("a key").secret(), "sk-1");
        assert!(Key::from_file(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "sk-planted-123\n").expect("written");
        let set = |mode| std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).expect("set");
        for mode in [0o640, 0o604, 0o644, 0o620, 0o601] {
            set(mode);
            let error = Key::from_file(file.path()).expect_err("refused").to_string();
            let remedy = format!("chmod 600 {}", file.path().display());
            assert!(error.contains(&remedy) && error.contains(&format!("{mode:04o}")), "{error}");
            assert!(!error.contains("planted"), "{error}");
        }
        for mode in [0o600, 0o400] {
            set(mode);
            assert_eq!(Key::from_file(file.path()).expect("a key").secret(), "sk-planted-123");
        }
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).expect("set");
        std::fs::write(file.path(), "x".repeat(KEY_BYTES_MAX + 1)).expect("written");
        assert!(Key::from_file(file.path()).is_err());
    }
}
