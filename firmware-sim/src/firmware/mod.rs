//! Firmware over the air, as glasses do it (PROTOCOL.md, section 19): a flash file that outlives its process, and the signing
//! of test images.

mod flash;
pub mod maker;
mod updater;

use std::path::PathBuf;

pub use flash::Flash;
pub(crate) use updater::{Reaction, Updater};

/// Why the flash or a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file that was opened.
        path: String,
        /// Why.
        error: std::io::Error,
    },
    /// The flash holds something else.
    #[error("{path} is no flash of simulated glasses: {error}")]
    Content {
        /// The flash file.
        path: String,
        /// Why.
        error: serde_json::Error,
    },
    /// A version that cannot be compared.
    #[error("`{0}` is no version of the form MAJOR.MINOR.PATCH")]
    Version(String),
    /// A key that is none.
    #[error("this is no Ed25519 public key")]
    Key,
}

/// Glasses whose firmware can be updated.
#[derive(Clone, Debug)]
pub struct Updates {
    /// The flash: a file with what it holds, and beside it a file with the image that is being stored.
    pub flash: PathBuf,
    /// Ed25519 public key of the maker.
    pub maker: [u8; 32],
    /// Version that runs if the flash is new.
    pub version: String,
    /// Revision of the hardware.
    pub hardware: u16,
    /// Bytes of the largest image.
    pub image_bytes_max: u32,
    /// The power is lost when so many bytes of an image are stored.
    pub lose_power_at: Option<u32>,
    /// Charge of the battery in percent below which no image is taken.
    pub battery_min: u8,
}

impl Updates {
    /// With this flash, for images of this maker.
    pub fn new(flash: PathBuf, maker: [u8; 32], version: &str) -> Self {
        Self {
            flash,
            maker,
            version: version.to_owned(),
            hardware: 0,
            image_bytes_max: 1 << 20,
            lose_power_at: None,
            battery_min: 20,
        }
    }
}
