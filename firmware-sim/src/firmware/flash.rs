//! The flash of simulated glasses: which version runs, and a slot for the next image.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use device_protocol::firmware::Version;
use device_protocol::limits::IMAGE_BYTES_MAX;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Error;

/// What an image begins with that does not start: for tests of the roll-back.
pub(super) const DOES_NOT_BOOT: &[u8] = b"does not boot";

/// Outcome of the last update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) image: [u8; 32],
    /// Numbers of PROTOCOL.md, section 16.
    pub(super) outcome: u8,
    pub(super) failure: u8,
    pub(super) message: String,
}

/// The image in the slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Slot {
    pub(super) image: [u8; 32],
    pub(super) version: String,
    pub(super) size: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: String,
    slot: Option<Slot>,
    outcome: Option<Outcome>,
    known_bad: Vec<[u8; 32]>,
}

/// The memory of the glasses for firmware, in a file that is written with every change.
pub struct Flash {
    path: PathBuf,
    content: Content,
}

impl Flash {
    /// Opens the flash, or makes a new one on which this version runs.
    ///
    /// # Errors
    /// It cannot be read or written, or holds something else.
    pub fn open(path: &Path, version: &str) -> Result<Self, Error> {
        let content = match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| Error::Content { path: path.display().to_string(), error })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Content { version: version.to_owned(), slot: None, outcome: None, known_bad: Vec::new() }
            }
            Err(error) => return Err(at(path)(error)),
        };
        let flash = Self { path: path.to_path_buf(), content };
        flash.save()?;
        Ok(flash)
    }

    /// The version that runs.
    pub fn version(&self) -> &str {
        &self.content.version
    }

    pub(super) fn running(&self) -> Option<Version> {
        Version::parse(&self.content.version)
    }

    /// The image in the slot.
    pub(super) fn begun(&self) -> Option<[u8; 32]> {
        self.content.slot.as_ref().map(|slot| slot.image)
    }

    pub(super) fn outcome(&self) -> Option<&Outcome> {
        self.content.outcome.as_ref()
    }

    pub(super) fn is_known_bad(&self, image: &[u8; 32]) -> bool {
        self.content.known_bad.contains(image)
    }

    fn slot_path(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".slot");
        name.into()
    }

    /// Bytes of this image that are stored; another image in the slot is dropped.
    pub(super) fn begin(&mut self, slot: Slot) -> Result<u32, Error> {
        if self.content.slot.as_ref() != Some(&slot) {
            self.clear()?;
            self.content.slot = Some(slot);
            self.save()?;
        }
        let path = self.slot_path();
        match fs::metadata(&path) {
            Ok(file) => Ok(u32::try_from(file.len()).unwrap_or(IMAGE_BYTES_MAX)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(at(&path)(error)),
        }
    }

    /// Writes behind what is stored. The file is the flash: what the system holds of it outlives the process.
    pub(super) fn append(&self, payload: &[u8]) -> Result<(), Error> {
        let path = self.slot_path();
        let file = OpenOptions::new().append(true).create(true).open(&path);
        file.and_then(|mut file| file.write_all(payload)).map_err(at(&path))
    }

    /// Empties the slot.
    pub(super) fn clear(&mut self) -> Result<(), Error> {
        self.content.slot = None;
        self.save()?;
        let path = self.slot_path();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(at(&path)(error)),
            _ => Ok(()),
        }
    }

    /// The slot, if its whole image is stored and has the hash that it should have.
    pub(super) fn verified(&self) -> Result<Option<&Slot>, Error> {
        let Some(slot) = &self.content.slot else { return Ok(None) };
        let image = self.image()?;
        let is_whole = image.len() == slot.size as usize && Sha256::digest(&image)[..] == slot.image;
        Ok(Some(slot).filter(|_| is_whole))
    }

    fn image(&self) -> Result<Vec<u8>, Error> {
        let path = self.slot_path();
        let mut image = Vec::new();
        let file = File::open(&path).map_err(at(&path))?;
        file.take(u64::from(IMAGE_BYTES_MAX) + 1).read_to_end(&mut image).map_err(at(&path))?;
        Ok(image)
    }

    pub(super) fn note(&mut self, outcome: Outcome) -> Result<(), Error> {
        self.content.outcome = Some(outcome);
        self.save()
    }

    /// Starts the image in the slot, which is verified. `false`: it does not start, and the version before it runs on.
    pub(super) fn boot(&mut self) -> Result<bool, Error> {
        let Some(slot) = self.content.slot.clone() else { return Ok(false) };
        let boots = !self.image()?.starts_with(DOES_NOT_BOOT);
        if boots {
            self.content.version.clone_from(&slot.version);
        } else {
            self.content.known_bad.push(slot.image);
        }
        self.clear()?;
        Ok(boots)
    }

    /// Whole or not at all, as a real device does with two pages.
    fn save(&self) -> Result<(), Error> {
        let mut new = self.path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        let bytes = serde_json::to_vec(&self.content)
            .map_err(|error| Error::Content { path: self.path.display().to_string(), error })?;
        fs::write(&new, bytes).and_then(|()| fs::rename(&new, &self.path)).map_err(at(&self.path))
    }
}

pub(super) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.display().to_string();
    move |error| Error::File { path, error }
}
