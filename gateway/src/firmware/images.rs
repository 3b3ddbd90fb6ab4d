//! Stored images: two files each in the data folder, the image and its signed manifest. What is read is checked each time.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{ErrorKind, Read as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use device_protocol::{
    firmware::{Release, Version},
    limits::{IMAGE_BYTES_MAX, MANIFEST_BYTES_MAX},
};
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest as _, Sha256};

use super::hex;
use crate::{
    environment,
    private::{make_folder, sync_folder_of, write_private},
};

/// Images that are kept: a few versions of each model.
const IMAGES_MAX: usize = 32;
/// Bytes of all images.
const ALL_BYTES_MAX: u64 = 256 << 20;
/// Bytes that stay free on the disk, for the store above all.
const FREE_BYTES: u64 = 256 << 20;
/// Bytes of a signature, behind the manifest in its file.
const SIGNATURE_BYTES: usize = 64;

/// Id of an image: its SHA-256.
pub type ImageId = [u8; 32];

/// The signed manifest of a stored image.
#[derive(Clone, Debug)]
pub struct Stored {
    /// SHA-256 of the image.
    pub id: ImageId,
    /// The manifest, as it is signed.
    pub manifest: Vec<u8>,
    /// The maker's, by Ed25519.
    pub signature: [u8; 64],
    /// The model for which it is.
    pub model: String,
    /// Lowest and highest revision of the hardware.
    pub hardware: (u16, u16),
    /// Version of the image.
    pub version: Version,
    /// Lowest version from which a device may change to it.
    pub version_min: Option<Version>,
    /// Whether a device may change to it from a later version.
    pub downgrade: bool,
    /// Bytes of the image.
    pub size: u32,
}

impl Stored {
    /// From a manifest file: the manifest, then the maker's signature, which is checked.
    ///
    /// # Errors
    /// It is none, nobody's signature counts for its model, or the signature is wrong.
    pub fn parse(bytes: &[u8], makers: &BTreeMap<String, [u8; 32]>) -> Result<Self> {
        let stored = Self::unchecked(bytes)?;
        stored.check_signature(makers)?;
        Ok(stored)
    }

    /// As [`parse`](Self::parse), whoever has signed it.
    fn unchecked(bytes: &[u8]) -> Result<Self> {
        let (manifest, signature) =
            bytes.split_last_chunk::<SIGNATURE_BYTES>().ok_or_else(|| anyhow!("the manifest has no signature"))?;
        let Release { manifest: fields, version, version_min } = Release::parse(manifest)?;
        Ok(Self {
            id: fields.hash,
            manifest: manifest.to_vec(),
            signature: *signature,
            model: fields.model.to_owned(),
            hardware: (fields.hardware_min, fields.hardware_max),
            version,
            version_min,
            downgrade: fields.downgrade,
            size: fields.size,
        })
    }

    fn check_signature(&self, makers: &BTreeMap<String, [u8; 32]>) -> Result<()> {
        let model = &self.model;
        let key = makers.get(model).ok_or_else(|| {
            anyhow!("no maker of `{model}` is configured: `[[firmware.makers]]` names the key that signs for a model")
        })?;
        // Strict: a signature that some implementations take and others do not is taken by none here.
        VerifyingKey::from_bytes(key)?
            .verify_strict(&self.manifest, &Signature::from_bytes(&self.signature))
            .map_err(|_| anyhow!("the maker of `{model}` has not signed this manifest"))
    }

    /// Whether an image is the one of this manifest.
    ///
    /// # Errors
    /// It is another one, or damaged.
    pub fn verify(&self, image: &[u8]) -> Result<()> {
        ensure!(
            image.len() == self.size as usize,
            "the image has {} bytes, its manifest says {}",
            image.len(),
            self.size
        );
        ensure!(Sha256::digest(image)[..] == self.id, "the image is not the one that its manifest was signed for");
        Ok(())
    }
}

/// The folder of the images.
pub(super) struct Images {
    folder: PathBuf,
    makers: BTreeMap<String, [u8; 32]>,
}

impl Images {
    /// In this folder, which is made if need be.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn open(folder: PathBuf, makers: BTreeMap<String, [u8; 32]>) -> Result<Self> {
        make_folder(&folder).with_context(|| format!("making {}", folder.display()))?;
        Ok(Self { folder, makers })
    }

    fn path(&self, id: &ImageId, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", hex(id)))
    }

    /// The manifests of all images whose maker's signature counts, and those of the others, which are logged. What a power cut
    /// has left of an image that was not added is removed.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn load(&self) -> Result<(Vec<Stored>, Vec<Stored>)> {
        let (mut found, mut unsigned) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(&self.folder).with_context(|| format!("reading {}", self.folder.display()))? {
            let path = entry?.path();
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("new") => drop(fs::remove_file(&path)),
                Some("bin") if !path.with_extension("manifest").exists() => drop(fs::remove_file(&path)),
                Some("manifest") => {
                    let read = self.manifest(&path).and_then(|stored| {
                        let signed = stored.check_signature(&self.makers);
                        let into = if signed.is_ok() { &mut found } else { &mut unsigned };
                        into.push(stored);
                        signed
                    });
                    if let Err(error) = read {
                        tracing::warn!(file = %path.display(), "firmware is not offered: {error:#}");
                    }
                }
                _ => {}
            }
        }
        for images in [&mut found, &mut unsigned] {
            images.sort_by(|one, other| (&one.model, one.version).cmp(&(&other.model, other.version)));
            images.truncate(IMAGES_MAX);
        }
        Ok((found, unsigned))
    }

    fn manifest(&self, path: &Path) -> Result<Stored> {
        let stored = Stored::unchecked(&read(path, MANIFEST_BYTES_MAX + SIGNATURE_BYTES)?)?;
        ensure!(path.file_stem().and_then(|stem| stem.to_str()) == Some(&hex(&stored.id)), "its name is another one");
        Ok(stored)
    }

    /// Adds an image: both files are checked and copied, the manifest last.
    ///
    /// # Errors
    /// The files cannot be read or do not belong together, the signature is wrong, or there is no room.
    pub(super) fn add(&self, manifest: &Path, image: &Path, known: &[Stored]) -> Result<Stored> {
        let signed = read_named(manifest, MANIFEST_BYTES_MAX + SIGNATURE_BYTES)?;
        let stored = Stored::parse(&signed, &self.makers).with_context(|| manifest.display().to_string())?;
        let bytes = read_named(image, IMAGE_BYTES_MAX as usize)?;
        stored.verify(&bytes).with_context(|| image.display().to_string())?;
        if let Some(other) = known.iter().find(|other| other.model == stored.model && other.version == stored.version) {
            ensure!(
                other.id == stored.id,
                "there is another image of {} {}; a version is built once, remove the other one or give this one its own",
                stored.model,
                stored.version
            );
        }
        let others: Vec<_> = known.iter().filter(|other| other.id != stored.id).collect();
        let sum: u64 = others.iter().map(|other| u64::from(other.size)).sum();
        let size = u64::from(stored.size);
        if others.len() >= IMAGES_MAX || sum + size > ALL_BYTES_MAX {
            bail!(
                "{} images with {} MiB are kept, at most {IMAGES_MAX} with {} MiB: `lorgnette firmware remove` makes room",
                others.len(),
                sum >> 20,
                ALL_BYTES_MAX >> 20
            );
        }
        let free = rustix::fs::statvfs(&self.folder).map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize))?;
        ensure!(
            free.saturating_sub(size) >= FREE_BYTES,
            "only {} MiB of the disk are free, and firmware leaves {} MiB",
            free >> 20,
            FREE_BYTES >> 20
        );
        write_private(&self.path(&stored.id, "bin"), &bytes)?;
        write_private(&self.path(&stored.id, "manifest"), &signed)?;
        Ok(stored)
    }

    /// An image, which is checked against its manifest.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub(super) fn read(&self, stored: &Stored) -> Result<Vec<u8>> {
        let path = self.path(&stored.id, "bin");
        let bytes = read(&path, IMAGE_BYTES_MAX as usize)?;
        stored.verify(&bytes).with_context(|| path.display().to_string())?;
        Ok(bytes)
    }

    /// Removes an image: the manifest first, without which the other file means nothing.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub(super) fn remove(&self, id: &ImageId) -> Result<()> {
        for extension in ["manifest", "bin"] {
            let path = self.path(id, extension);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("removing {}", path.display()));
                }
                _ => sync_folder_of(&path)?,
            }
        }
        Ok(())
    }
}

/// A file that an operator has named, as [`read`].
fn read_named(path: &Path, bytes_max: usize) -> Result<Vec<u8>> {
    read(path, bytes_max).map_err(|error| {
        let place = error.downcast_ref().and_then(|error| environment::out_of_reach(error, "/srv"));
        match place {
            Some(place) => anyhow!("{error:#}; {place}"),
            None => error,
        }
    })
}

/// A file of at most so many bytes.
fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("reading {shown}"))?;
    let mut bytes = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).with_context(|| format!("reading {shown}"))?;
    ensure!(bytes.len() <= bytes_max, "{shown} has more than {bytes_max} bytes");
    Ok(bytes)
}

#[cfg(test)]
#[path = "images_tests.rs"]
mod tests;
