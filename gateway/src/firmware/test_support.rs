//! A maker and images, for tests.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use device_protocol::{
    firmware::{Manifest, Release},
    limits::MANIFEST_BYTES_MAX,
};
use ed25519_dalek::{Signer as _, SigningKey};
use sha2::{Digest as _, Sha256};

/// The model of these images.
pub(crate) const MODEL: &str = "Example One";

/// A maker with this seed.
pub(crate) fn maker(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

/// The keys of a gateway that trusts the maker with this seed.
pub(crate) fn makers(seed: u8) -> BTreeMap<String, [u8; 32]> {
    BTreeMap::from([(MODEL.to_owned(), maker(seed).verifying_key().to_bytes())])
}

/// A manifest for all revisions, without a lowest version.
pub(crate) fn manifest<'a>(image: &[u8], version: &'a str) -> Manifest<'a> {
    Manifest {
        model: MODEL,
        hardware_min: 0,
        hardware_max: u16::MAX,
        version,
        version_min: "",
        downgrade: false,
        size: image.len().try_into().unwrap(),
        hash: Sha256::digest(image).into(),
    }
}

/// A manifest file, signed by the maker with this seed.
pub(crate) fn signed(manifest: Manifest<'_>, seed: u8) -> Vec<u8> {
    let mut buffer = [0; MANIFEST_BYTES_MAX];
    let length = Release::check(manifest).unwrap().write(&mut buffer).unwrap();
    let mut bytes = buffer[..length].to_vec();
    bytes.extend(maker(seed).sign(&buffer[..length]).to_bytes());
    bytes
}

/// Writes both files of an image into a folder.
pub(crate) fn files(folder: &Path, image: &[u8], manifest: &[u8]) -> (PathBuf, PathBuf) {
    let paths = (folder.join("given.manifest"), folder.join("given.bin"));
    std::fs::write(&paths.0, manifest).unwrap();
    std::fs::write(&paths.1, image).unwrap();
    paths
}
