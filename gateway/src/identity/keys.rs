//! The gateway's own key, and fingerprints of devices' keys.

use std::path::Path;

use anyhow::{Result, bail};
use ed25519_dalek::{Signer as _, SigningKey};
use sha2::{Digest as _, Sha256};

use crate::private::{read_private, write_private};

/// The Ed25519 key that devices pin at pairing.
pub struct GatewayKey(SigningKey);

/// Its file in the data folder.
const FILE: &str = "gateway.key";
/// Bytes of it that are read: more than a key has, so that a longer file is told apart.
const KEY_BYTES_MAX: usize = 4096;

impl GatewayKey {
    /// Whether a gateway was started on this data folder before.
    pub fn is_in(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    /// Loads `gateway.key` (32 bytes) of the data folder, creating it on first start.
    ///
    /// # Errors
    /// The file cannot be read or written, or does not hold 32 bytes.
    pub fn load_or_make(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        if !path.exists() {
            write_private(&path, &random::<32>()?)?;
        }
        let bytes = read_private(&path, KEY_BYTES_MAX)?;
        let Ok(seed) = <[u8; 32]>::try_from(bytes) else {
            bail!(
                "{} must hold exactly 32 bytes; devices are paired with this key, so restore it from a backup, \
                   or delete it and pair every device again",
                path.display()
            );
        };
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// The Ed25519 public key, which devices pin when they are paired.
    pub fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    /// An Ed25519 signature, which proves to a device that this is its gateway.
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

/// Random bytes of the operating system.
///
/// # Errors
/// The system cannot provide any.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("the system gives no random bytes: {error}"))?;
    Ok(bytes)
}

/// Id of a device in the store and for the operator: the first 16 bytes of SHA-256 of its public key, as 32 hexadecimal
/// digits.
pub fn fingerprint(public_key: &[u8; 32]) -> String {
    Sha256::digest(public_key).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
