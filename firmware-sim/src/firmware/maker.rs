//! The maker of glasses: a key, and signed manifests.

use device_protocol::firmware::{Manifest, ManifestError, Release};
use device_protocol::limits::MANIFEST_BYTES_MAX;
use ed25519_dalek::{Signer as _, SigningKey};
use sha2::{Digest as _, Sha256};

/// Why a manifest cannot be signed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It makes no sense.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A text is too long.
    #[error(transparent)]
    Frame(#[from] device_protocol::Error),
}

/// What a manifest says besides size and hash.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Maker and model.
    pub model: String,
    /// Lowest and highest revision of the hardware.
    pub hardware: (u16, u16),
    /// Version of the image.
    pub version: String,
    /// Lowest version from which a device may change to it; empty: any.
    pub version_min: String,
    /// Whether a device may change to it from a later version.
    pub downgrade: bool,
}

impl Wanted {
    /// For all revisions, from any earlier version.
    pub fn new(model: &str, version: &str) -> Self {
        Self {
            model: model.to_owned(),
            hardware: (0, u16::MAX),
            version: version.to_owned(),
            version_min: String::new(),
            downgrade: false,
        }
    }
}

/// Public half of the key with this seed.
pub fn public(seed: [u8; 32]) -> [u8; 32] {
    SigningKey::from_bytes(&seed).verifying_key().to_bytes()
}

/// A manifest file: the manifest of an image, and behind it the signature of the key with this seed.
///
/// # Errors
/// What is wanted makes no sense.
pub fn sign(seed: [u8; 32], image: &[u8], wanted: &Wanted) -> Result<Vec<u8>, Error> {
    let manifest = Manifest {
        model: &wanted.model,
        hardware_min: wanted.hardware.0,
        hardware_max: wanted.hardware.1,
        version: &wanted.version,
        version_min: &wanted.version_min,
        downgrade: wanted.downgrade,
        size: u32::try_from(image.len()).map_err(|_| ManifestError::Size)?,
        hash: Sha256::digest(image).into(),
    };
    let mut buffer = [0; MANIFEST_BYTES_MAX];
    let length = Release::check(manifest)?.write(&mut buffer)?;
    let bytes = buffer.get(..length).unwrap_or_default();
    let signature = SigningKey::from_bytes(&seed).sign(bytes);
    Ok([bytes, &signature.to_bytes()].concat())
}
