//! Keys and tokens stored by the gateway: one file each, in a separate folder, readable by the owner only.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, lchown},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::auth::{Key, is_open_to_others};

/// Longest file: two tokens and their JSON.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Longest name of an entry.
const NAME_CHARS_MAX: usize = 64;
/// Permissions of a secret file.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// Why an entry cannot be read or written. Contains no secret.
#[derive(Debug, Error)]
pub enum KeyringError {
    /// The name is not a valid file name.
    #[error("'{0}' is no name of a login: use lower-case letters, digits, '-' and '_'")]
    Name(String),
    /// The file is readable by others.
    #[error(
        "{path} has mode {mode:04o}: others may read the secret in it; run `chmod 600 {path}`, and think of a new key"
    )]
    Mode {
        /// The file of the login.
        path: String,
        /// Its permission bits.
        mode: u32,
    },
    /// A file system operation failed.
    #[error("{path} cannot be {verb}: {error}")]
    File {
        /// The file or the folder of the keyring.
        path: String,
        /// `read`, `written` or `removed`.
        verb: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The file has other content.
    #[error("{0} holds no key and no token; log in again")]
    Malformed(String),
}

/// An access token and its refresh token.
#[derive(Clone, Debug)]
pub struct Token {
    /// Sent as a bearer.
    pub access: Key,
    /// Renews the access token.
    pub refresh: Option<Key>,
    /// Expiry in milliseconds since the Unix epoch; `None`: unknown.
    pub expires_at_ms: Option<i64>,
}

/// The entry under a name.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A key that does not change.
    Key(Key),
    /// A token that is renewed.
    Token(Token),
}

/// The format of the file.
#[derive(Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Stored {
    Key {
        key: String,
    },
    Token {
        access_token: String,
        #[serde(default)]
        refresh_token: Option<String>,
        #[serde(default)]
        expires_at_ms: Option<i64>,
    },
}

/// The folder of entries.
#[derive(Clone, Debug)]
pub struct Keyring {
    folder: PathBuf,
}

impl Keyring {
    /// A keyring in this folder, which is created with the first entry.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The entry under a name; `None` if there was no login.
    ///
    /// # Errors
    /// The file is readable by others, cannot be read, or has other content.
    pub fn get(&self, name: &str) -> Result<Option<Entry>, KeyringError> {
        let path = self.path(name)?;
        let shown = path.display().to_string();
        let failed = |error| KeyringError::File { path: shown.clone(), verb: "read", error };
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        // The mode of the open file, so that it cannot be replaced between check and reading.
        let mode = file.metadata().map_err(failed)?.permissions().mode() & 0o7777;
        if is_open_to_others(mode) {
            return Err(KeyringError::Mode { path: shown, mode });
        }
        let mut text = String::new();
        file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
        // serde's message would quote the file.
        parse(&text).map(Some).ok_or(KeyringError::Malformed(shown))
    }

    /// Stores an entry, replacing an older one atomically.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn put(&self, name: &str, entry: &Entry) -> Result<(), KeyringError> {
        let path = self.path(name)?;
        let write = || -> io::Result<()> {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&self.folder)?;
            if let Some((user, group)) = self.foreign_owner()? {
                lchown(&self.folder, Some(user), Some(group))?;
            }
            let new = self.folder.join(format!(".{name}.new"));
            // A file left by a crash may have any mode.
            match fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&new)?;
            file.write_all(render(entry).as_bytes())?;
            if let Some((user, group)) = self.foreign_owner()? {
                fchown(&file, Some(user), Some(group))?;
            }
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| KeyringError::File { path: path.display().to_string(), verb: "written", error })
    }

    /// Removes an entry; returns false if there is none.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self, name: &str) -> Result<bool, KeyringError> {
        let path = self.path(name)?;
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(KeyringError::File { path: path.display().to_string(), verb: "removed", error }),
        }
    }

    /// The folder of the entries.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The user and group of the data folder, if they are not those of this process, and it may give files away: root logs
    /// in for a gateway that runs as another user.
    fn foreign_owner(&self) -> io::Result<Option<(u32, u32)>> {
        let data = fs::metadata(self.folder.parent().unwrap_or(Path::new(".")))?;
        // The owner of a process's own entry there is its effective user.
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        Ok((is_root && data.uid() != 0).then(|| (data.uid(), data.gid())))
    }

    fn path(&self, name: &str) -> Result<PathBuf, KeyringError> {
        if is_name(name) {
            Ok(self.folder.join(format!("{name}.json")))
        } else {
            Err(KeyringError::Name(name.chars().take(NAME_CHARS_MAX).collect()))
        }
    }
}

/// Whether a name is valid for an entry.
pub fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(allowed)
}

fn parse(text: &str) -> Option<Entry> {
    Some(match serde_json::from_str(text).ok()? {
        Stored::Key { key } => Entry::Key(Key::new(&key).ok()?),
        Stored::Token { access_token, refresh_token, expires_at_ms } => Entry::Token(Token {
            access: Key::new(&access_token).ok()?,
            refresh: match refresh_token {
                Some(token) => Some(Key::new(&token).ok()?),
                None => None,
            },
            expires_at_ms,
        }),
    })
}

fn render(entry: &Entry) -> String {
    let stored = match entry {
        Entry::Key(key) => Stored::Key { key: key.secret().to_owned() },
        Entry::Token(token) => Stored::Token {
            access_token: token.access.secret().to_owned(),
            refresh_token: token.refresh.as_ref().map(|key| key.secret().to_owned()),
            expires_at_ms: token.expires_at_ms,
        },
    };
    serde_json::to_string(&stored).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text).expect("a key")
    }

    #[test]
    fn entries_are_kept_and_forgotten() {
        let folder = tempfile::tempdir().expect("a folder");
        let ring = Keyring::new(folder.path().join("credentials"));
        assert!(ring.get("openai").expect("readable").is_none());
        ring.put("openai", &Entry::Key(key("sk-planted-1"))).expect("written");
        let token = Token { access: key("at-planted"), refresh: Some(key("rt-planted")), expires_at_ms: Some(5) };
        ring.put("openai", &Entry::Token(token)).expect("written");
        let Some(Entry::Token(read)) = ring.get("openai").expect("readable") else { panic!("a token") };
        assert_eq!((read.access.secret(), read.expires_at_ms), ("at-planted", Some(5)));
        assert_eq!(read.refresh.as_ref().map(Key::secret), Some("rt-planted"));
        assert!(!format!("{read:?} {ring:?}").contains("planted"));
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&ring.folder().join("openai.json")), mode(ring.folder())), (0o600, 0o700));
        assert_eq!(fs::read_dir(ring.folder()).expect("a folder").count(), 1);
        assert!(ring.remove("openai").expect("removed"));
        assert!(!ring.remove("openai").expect("gone"));
    }

    #[test]
    fn what_root_stores_belongs_to_the_owner_of_the_data() {
        let data = tempfile::tempdir().expect("a folder");
        // Only root may give the folder away; for others it is theirs before and after.
        let _ = lchown(data.path(), Some(61_184), Some(61_184));
        let owner = |path: &Path| fs::metadata(path).map(|found| (found.uid(), found.gid())).expect("there");
        let ring = Keyring::new(data.path().join("credentials"));
        ring.put("openai", &Entry::Key(key("sk-planted-1"))).expect("written");
        assert_eq!(owner(ring.folder()).0, owner(data.path()).0);
        assert_eq!(owner(&ring.folder().join("openai.json")).0, owner(data.path()).0);
    }

    #[test]
    fn what_others_may_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let ring = Keyring::new(folder.path());
        ring.put("a", &Entry::Key(key("sk-planted-1"))).expect("written");
        let path = folder.path().join("a.json");
        for mode in [0o640, 0o604, 0o660, 0o644] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            let error = ring.get("a").expect_err("refused").to_string();
            assert!(error.contains("chmod 600") && !error.contains("planted"), "{error}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).expect("set");
        assert!(ring.get("a").expect("readable").is_some());
    }

    #[test]
    fn rubbish_is_refused_without_being_quoted() {
        let folder = tempfile::tempdir().expect("a folder");
        let ring = Keyring::new(folder.path());
        ring.put("a", &Entry::Key(key("x"))).expect("written");
        fs::write(folder.path().join("a.json"), "{\"kind\": \"key\", \"key\": \"sk planted\"}").expect("written");
        let error = ring.get("a").expect_err("refused").to_string();
        assert!(!error.contains("planted"), "{error}");
        for name in ["", "../a", "A", "a.b", &"x".repeat(65)] {
            assert!(matches!(ring.get(name), Err(KeyringError::Name(_))), "{name}");
        }
    }
}
