//! Firmware over the air, as a device sees it (PROTOCOL.md, section 19): manifests, which of them fit the device, and the
//! chunks of an image. Signatures (Ed25519, RFC 8032) and hashes (SHA-256) are left to the caller, and so is the flash.
//!
//! A device handles an offer in this order: [`Release::parse`], the signature over the manifest's bytes, then
//! [`Device::accepts`]; it begins a [`Download`], writes what [`Download::take`] returns, and calls [`Download::stored`].
//! When [`Download::is_complete`], it hashes what it has stored and compares the hash with the manifest's.

mod download;
mod manifest;
mod version;

pub use download::{ChunkError, Download, Taken};
#[cfg(feature = "json")]
pub use manifest::ManifestOwned;
pub use manifest::{Device, LABEL, Manifest, ManifestError, Release};
pub use version::Version;
