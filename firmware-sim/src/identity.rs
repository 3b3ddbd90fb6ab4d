//! The identity of simulated glasses: their Ed25519 key, and the gateway key that they pinned when paired.
//!
//! Two files in the state folder, both hexadecimal: `device.key` (the seed, mode 0600) and `gateway.pub`.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use device_protocol::auth::INVITATION_CODE_BYTES;
use ed25519_dalek::{Signer as _, SigningKey};
use sha2::{Digest as _, Sha256};

const KEY_FILE: &str = "device.key";
const PIN_FILE: &str = "gateway.pub";

/// Bytes of a key's hash that form its fingerprint.
const FINGERPRINT_BYTES: usize = 16;

/// Why an identity could not be loaded or saved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file does not contain 64 hexadecimal digits.
    #[error("{path} does not hold a key of 64 hexadecimal digits; remove it to make the glasses new")]
    NotAKey {
        /// The file with the key.
        path: PathBuf,
    },
    /// The system provides no random bytes.
    #[error("the system gives no random bytes: {0}")]
    Random(String),
}

/// Which gateway glasses accept as long as they are not paired.
#[derive(Clone, PartialEq, Eq)]
pub enum Trust {
    /// The one at the address that somebody gave them; its operator then types their code.
    Anybody,
    /// The one whose key has this fingerprint.
    Key(String),
    /// The one that has invited them: the fingerprint of its key, and the code of the invitation.
    Invitation(String, [u8; INVITATION_CODE_BYTES]),
}

impl fmt::Debug for Trust {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anybody => formatter.write_str("Anybody"),
            Self::Key(fingerprint) => write!(formatter, "Key({fingerprint})"),
            // Its code is a secret.
            Self::Invitation(fingerprint, _) => write!(formatter, "Invitation({fingerprint})"),
        }
    }
}

/// The key of the glasses, and the key of their gateway.
#[derive(Clone)]
pub struct Identity {
    folder: PathBuf,
    key: SigningKey,
    pinned: Option<[u8; 32]>,
    trust: Trust,
}

impl Identity {
    /// Loads the identity of `folder`; creates folder and key if missing.
    ///
    /// # Errors
    /// A file that cannot be read, written or parsed.
    pub fn load_or_make(folder: &Path) -> Result<Self, Error> {
        if folder.is_file() {
            let what = "this is a file; the keys of the glasses need a folder (`--state` names another one)";
            return Err(at(folder)(io::Error::new(ErrorKind::NotADirectory, what)));
        }
        fs::create_dir_all(folder).map_err(at(folder))?;
        let path = folder.join(KEY_FILE);
        let seed = match read_key(&path)? {
            Some(seed) => seed,
            None => {
                let seed = random_bytes()?;
                write_new_private(&path, &hex(&seed))?;
                seed
            }
        };
        let pinned = read_key(&folder.join(PIN_FILE))?;
        Ok(Self { folder: folder.to_path_buf(), key: SigningKey::from_bytes(&seed), pinned, trust: Trust::Anybody })
    }

    /// The same, which accepts this gateway as long as it is not paired.
    #[must_use]
    pub fn trusting(self, trust: Trust) -> Self {
        Self { trust, ..self }
    }

    /// The fingerprint of the gateway's key, if these glasses accept only one.
    pub fn expected(&self) -> Option<String> {
        match (&self.pinned, &self.trust) {
            (Some(key), _) => Some(fingerprint(key)),
            (None, Trust::Key(fingerprint) | Trust::Invitation(fingerprint, _)) => Some(fingerprint.clone()),
            (None, Trust::Anybody) => None,
        }
    }

    /// The code of the invitation that these glasses have and need.
    pub fn invitation(&self) -> Option<[u8; INVITATION_CODE_BYTES]> {
        match (&self.pinned, &self.trust) {
            (None, Trust::Invitation(_, code)) => Some(*code),
            _ => None,
        }
    }

    /// The public key: the identity.
    pub fn public_key(&self) -> [u8; 32] {
        self.key.verifying_key().to_bytes()
    }

    /// The key's fingerprint for the operator: 16 bytes of its SHA-256 in hexadecimal.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.public_key())
    }

    /// The gateway's key, once paired.
    pub fn pinned(&self) -> Option<[u8; 32]> {
        self.pinned
    }

    /// Pins the gateway's key.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn pin(&mut self, gateway_key: [u8; 32]) -> Result<(), Error> {
        let path = self.folder.join(PIN_FILE);
        fs::write(&path, hex(&gateway_key) + "\n").map_err(at(&path))?;
        self.pinned = Some(gateway_key);
        Ok(())
    }

    /// The Ed25519 signature of `message`.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

/// 16 bytes of the SHA-256 of a public key in hexadecimal.
pub fn fingerprint(public_key: &[u8; 32]) -> String {
    hex(Sha256::digest(public_key).get(..FINGERPRINT_BYTES).unwrap_or_default())
}

/// Random bytes from the system.
///
/// # Errors
/// The system provides none.
pub fn random_bytes() -> Result<[u8; 32], Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
    Ok(bytes)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    move |source| Error::File { path: path.to_path_buf(), source }
}

/// Reads a key from a file with its hexadecimal digits; `None`: there is no such file.
///
/// # Errors
/// It cannot be read, or holds something else.
pub fn read_key(path: &Path) -> Result<Option<[u8; 32]>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => match read_hex(text.trim()) {
            Some(key) => Ok(Some(key)),
            None => Err(Error::NotAKey { path: path.to_path_buf() }),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

/// Writes a text into a new file that only its owner may read.
///
/// # Errors
/// It is there already, or cannot be written.
pub fn write_new_private(path: &Path, text: &str) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(at(path))?;
    file.write_all(text.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(at(path))
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a key from its hexadecimal digits; `None`: it is none.
pub fn read_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut key = [0; 32];
    for (place, at) in key.iter_mut().zip((0..64).step_by(2)) {
        *place = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_stays_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("glasses");
        let first = Identity::load_or_make(&state).unwrap();
        let mut again = Identity::load_or_make(&state).unwrap();
        assert_eq!(first.public_key(), again.public_key());
        assert_eq!(again.pinned(), None);
        again.pin([7; 32]).unwrap();
        assert_eq!(Identity::load_or_make(&state).unwrap().pinned(), Some([7; 32]));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(state.join(KEY_FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_file_in_the_place_of_the_folder_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("lorgnette-sim");
        fs::write(&program, "a program").unwrap();
        let error = Identity::load_or_make(&program).err().unwrap().to_string();
        assert!(error.contains("lorgnette-sim: this is a file") && error.contains("--state"), "{error}");
    }

    #[test]
    fn a_damaged_key_is_named_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(KEY_FILE), "zz").unwrap();
        let error = Identity::load_or_make(folder.path()).err().unwrap();
        assert!(error.to_string().contains(KEY_FILE), "{error}");
        assert_eq!(fs::read_to_string(folder.path().join(KEY_FILE)).unwrap(), "zz");
    }

    #[test]
    fn a_fingerprint_is_the_beginning_of_the_hash() {
        // SHA-256 of 32 zero bytes, from `head -c 32 /dev/zero | sha256sum`.
        assert_eq!(fingerprint(&[0; 32]), "66687aadf862bd776c8fc18b8e9f8e20");
    }
}
