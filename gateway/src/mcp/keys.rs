//! Bearer keys, stored as hashes only.

use std::path::Path;

use sha2::{Digest as _, Sha256};
use tools::mcp::server::{Approver, Who};

use super::settings::KeyEntry;
use crate::{environment, private::read_private};

/// Shortest key: below this it can be guessed.
const KEY_BYTES_MIN: usize = 16;
/// Largest file of a key.
const FILE_BYTES_MAX: usize = 4096;

/// The keys by hash.
#[derive(Default)]
pub(super) struct Keys(Vec<([u8; 32], Who)>);

impl Keys {
    /// Reads the configured keys.
    pub(super) fn load(keys: &[KeyEntry], folder: Option<&Path>, problems: &mut Vec<String>) -> Self {
        let mut loaded = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            match secret(key, folder) {
                Ok(secret) => {
                    let approves = key.approves.unwrap_or(Approver::of(key.class));
                    loaded.push((
                        hash(&secret),
                        Who { user: key.user.clone(), class: key.class, approves, is_operator: false },
                    ));
                }
                Err(why) => problems.push(format!("mcp.keys, entry {}: {why}", at + 1)),
            }
        }
        Self(loaded)
    }

    /// Number of keys.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Whose a key is. Hashes are compared, so that the duration reveals nothing about a key.
    pub(super) fn find(&self, key: &str) -> Option<&Who> {
        let wanted = hash(key);
        self.0.iter().find(|(hash, _)| *hash == wanted).map(|(_, who)| who)
    }
}

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

fn secret(key: &KeyEntry, folder: Option<&Path>) -> Result<String, String> {
    let text = match (&key.env, &key.file) {
        (Some(env), None) => environment::variable(env)
            .ok_or_else(|| format!("the environment variable {env} is not set; it holds the key"))?,
        (None, Some(file)) => {
            let path = folder.unwrap_or(Path::new("")).join(file);
            let bytes = read_private(&path, FILE_BYTES_MAX).map_err(|error| format!("{error:#}"))?;
            String::from_utf8(bytes).map_err(|_| format!("{} holds no text", path.display()))?
        }
        _ => return Err("needs either `env` or `file`, where the key is kept".to_owned()),
    };
    let text = text.trim();
    if text.len() < KEY_BYTES_MIN {
        return Err(format!("the key has {} characters; at least {KEY_BYTES_MIN} are needed", text.len()));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::ClientClass;

    use super::*;
    use crate::private::write_private;

    fn key(file: &Path) -> KeyEntry {
        let (user, class) = ("ada".into(), ClientClass::External);
        KeyEntry { user, class, approves: None, env: None, file: Some(file.into()) }
    }

    #[test]
    fn a_key_is_found_by_its_text_only() {
        let folder = tempfile::tempdir().unwrap();
        write_private(&folder.path().join("key"), b"correct horse battery\n").unwrap();
        let mut problems = Vec::new();
        let keys = Keys::load(&[key(Path::new("key"))], Some(folder.path()), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let ada =
            Who { user: "ada".into(), class: ClientClass::External, approves: Approver::Wearer, is_operator: false };
        assert_eq!(keys.find("correct horse battery"), Some(&ada));
        for wrong in ["", "correct horse batter", "correct horse battery ", "Correct horse battery"] {
            assert_eq!(keys.find(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_key_is_told_without_the_key() {
        let folder = tempfile::tempdir().unwrap();
        write_private(&folder.path().join("short"), b"hunter2").unwrap();
        std::fs::write(folder.path().join("open"), "hunter2 with a friend").unwrap();
        let nowhere = KeyEntry { file: None, ..key(Path::new("")) };
        let table = [
            (key(Path::new("short")), "at least 16"),
            (key(Path::new("open")), "chmod 600"),
            (key(Path::new("none")), "none"),
            (nowhere, "either"),
        ];
        for (key, wanted) in table {
            let mut problems = Vec::new();
            Keys::load(&[key], Some(folder.path()), &mut problems);
            assert!(problems[0].contains(wanted) && !problems[0].contains("hunter2"), "{problems:?}");
        }
    }
}
