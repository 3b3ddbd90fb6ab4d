//! The manifest of an image: what the maker signs.

use super::Version;
use crate::codec::{Reader, Wire as _, Writer};
use crate::limits::{IMAGE_BYTES_MAX, MANIFEST_BYTES_MAX, NAME_BYTES_MAX};
use crate::values::UpdateAnswer;

/// What every manifest begins with: its signature fits nothing else that is signed with the same key. A later form has
/// another label.
pub const LABEL: &[u8; 20] = b"lorgnette-firmware-1";

message! {
    /// The manifest of a firmware image, behind its label.
    pub struct Manifest<'a>, owned ManifestOwned {
        /// The `model` of Hello for which the image is.
        model: text[NAME_BYTES_MAX],
        /// Lowest revision of the hardware for which it is.
        hardware_min: u16,
        /// Highest revision.
        hardware_max: u16,
        /// Version of the image: what `firmware` of Hello says once it runs.
        version: text[NAME_BYTES_MAX],
        /// Lowest version from which a device may change to it; empty: any.
        version_min: text[NAME_BYTES_MAX],
        /// True if a device may change to it from a later version.
        downgrade: bool,
        /// Bytes of the image.
        size: u32,
        /// SHA-256 of the image, which is also its id.
        hash: array[32],
    }
}

/// Why bytes are no manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Another label, or too many bytes.
    #[error("this is no manifest of firmware, or one of a later form")]
    Label,
    /// A field cannot be read.
    #[error("the manifest is malformed: {0}")]
    Malformed(crate::Error),
    /// Bytes behind the last field: they would be signed and not understood.
    #[error("{0} bytes follow the last field of the manifest")]
    Trailing(usize),
    /// No model.
    #[error("the manifest names no model")]
    Model,
    /// A version of another form than `MAJOR.MINOR.PATCH`.
    #[error("a version of the manifest is not of the form MAJOR.MINOR.PATCH")]
    Version,
    /// The lowest revision of the hardware is above the highest.
    #[error("the manifest is for no revision of the hardware")]
    Hardware,
    /// No bytes, or too many.
    #[error("the image must have 1 to {} bytes", IMAGE_BYTES_MAX)]
    Size,
}

/// A manifest that was parsed and makes sense. Its signature is not checked by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release<'a> {
    /// The manifest, as the wire has it.
    pub manifest: Manifest<'a>,
    /// Version of the image.
    pub version: Version,
    /// Lowest version from which a device may change to it; `None`: any.
    pub version_min: Option<Version>,
}

impl<'a> Release<'a> {
    /// Parses the bytes of a manifest, label included.
    ///
    /// # Errors
    /// They are none, or contradict themselves.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ManifestError> {
        let fields = bytes.strip_prefix(LABEL).filter(|_| bytes.len() <= MANIFEST_BYTES_MAX);
        let mut reader = Reader::new(fields.ok_or(ManifestError::Label)?, LABEL.len());
        let manifest = Manifest::get(&mut reader).map_err(ManifestError::Malformed)?;
        match reader.left() {
            0 => Self::check(manifest),
            left => Err(ManifestError::Trailing(left)),
        }
    }

    /// Checks the fields of a manifest.
    ///
    /// # Errors
    /// They contradict themselves.
    pub fn check(manifest: Manifest<'a>) -> Result<Self, ManifestError> {
        if manifest.model.is_empty() {
            return Err(ManifestError::Model);
        }
        if manifest.hardware_min > manifest.hardware_max {
            return Err(ManifestError::Hardware);
        }
        if manifest.size == 0 || manifest.size > IMAGE_BYTES_MAX {
            return Err(ManifestError::Size);
        }
        let version = Version::parse(manifest.version).ok_or(ManifestError::Version)?;
        let version_min = match manifest.version_min {
            "" => None,
            text => Some(Version::parse(text).ok_or(ManifestError::Version)?),
        };
        Ok(Self { manifest, version, version_min })
    }

    /// Writes the bytes that are signed, label included; returns their number.
    ///
    /// # Errors
    /// The buffer is too small, or a text too long.
    pub fn write(&self, buffer: &mut [u8; MANIFEST_BYTES_MAX]) -> Result<usize, crate::Error> {
        let (label, fields) = buffer.split_at_mut(LABEL.len());
        label.copy_from_slice(LABEL);
        let size = fields.len();
        let mut writer = Writer::new(fields);
        self.manifest.put(&mut writer)?;
        let needed = writer.written();
        if needed > size {
            return Err(crate::Error::BufferTooSmall { size, needed });
        }
        Ok(LABEL.len() + needed)
    }
}

/// A device, as its Hello describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device<'a> {
    /// Maker and model.
    pub model: &'a str,
    /// Revision of the hardware.
    pub hardware: u16,
    /// Version of the running firmware.
    pub version: Version,
    /// Bytes of the largest image that it can store.
    pub image_bytes_max: u32,
}

impl Device<'_> {
    /// Whether a release is for this device.
    ///
    /// # Errors
    /// The reason to refuse it.
    pub fn accepts(&self, release: &Release<'_>) -> Result<(), UpdateAnswer> {
        let Release { manifest, version, version_min } = release;
        if manifest.model != self.model || !(manifest.hardware_min..=manifest.hardware_max).contains(&self.hardware) {
            return Err(UpdateAnswer::OtherModel);
        }
        if manifest.size > self.image_bytes_max {
            return Err(UpdateAnswer::TooLarge);
        }
        let is_new = *version > self.version || (manifest.downgrade && *version != self.version);
        if !is_new || version_min.is_some_and(|least| self.version < least) {
            return Err(UpdateAnswer::Version);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest<'static> {
        Manifest {
            model: "Example One",
            hardware_min: 2,
            hardware_max: 4,
            version: "1.5.0",
            version_min: "1.2.0",
            downgrade: false,
            size: 70_000,
            hash: [7; 32],
        }
    }

    fn written(manifest: Manifest<'_>) -> ([u8; MANIFEST_BYTES_MAX], usize) {
        let mut buffer = [0; MANIFEST_BYTES_MAX];
        let release = Release { manifest, version: Version::default(), version_min: None };
        let length = release.write(&mut buffer).unwrap();
        (buffer, length)
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written_and_nothing_else_is() {
        let (bytes, length) = written(manifest());
        let release = Release::parse(&bytes[..length]).unwrap();
        assert_eq!((release.manifest, release.version), (manifest(), Version { major: 1, minor: 5, patch: 0 }));
        for end in 0..length {
            assert!(Release::parse(&bytes[..end]).is_err(), "cut to {end} bytes");
        }
        assert_eq!(Release::parse(&bytes[..=length]), Err(ManifestError::Trailing(1)));
        let mut other = bytes;
        other[19] = b'2';
        assert_eq!(Release::parse(&other[..length]), Err(ManifestError::Label));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |manifest: Manifest<'_>| {
            let (bytes, length) = written(manifest);
            Release::parse(&bytes[..length]).unwrap_err()
        };
        assert_eq!(refused(Manifest { model: "", ..manifest() }), ManifestError::Model);
        assert_eq!(refused(Manifest { hardware_min: 5, ..manifest() }), ManifestError::Hardware);
        assert_eq!(refused(Manifest { version: "1.5", ..manifest() }), ManifestError::Version);
        assert_eq!(refused(Manifest { version_min: "x", ..manifest() }), ManifestError::Version);
        assert_eq!(refused(Manifest { size: 0, ..manifest() }), ManifestError::Size);
        assert_eq!(refused(Manifest { size: IMAGE_BYTES_MAX + 1, ..manifest() }), ManifestError::Size);
    }

    #[test]
    fn a_device_takes_what_is_for_it() {
        let version = |text| Version::parse(text).unwrap();
        let device = Device { model: "Example One", hardware: 3, version: version("1.4.9"), image_bytes_max: 70_000 };
        let answer = |device: Device<'_>, manifest| device.accepts(&Release::check(manifest).unwrap());
        assert_eq!(answer(device, manifest()), Ok(()));
        assert_eq!(answer(Device { model: "Example Two", ..device }, manifest()), Err(UpdateAnswer::OtherModel));
        assert_eq!(answer(Device { hardware: 5, ..device }, manifest()), Err(UpdateAnswer::OtherModel));
        assert_eq!(answer(Device { image_bytes_max: 69_999, ..device }, manifest()), Err(UpdateAnswer::TooLarge));
        for running in ["1.5.0", "1.5.1", "1.1.9"] {
            let device = Device { version: version(running), ..device };
            assert_eq!(answer(device, manifest()), Err(UpdateAnswer::Version), "{running}");
        }
        let signed_so = Manifest { downgrade: true, ..manifest() };
        assert_eq!(answer(Device { version: version("1.5.1"), ..device }, signed_so), Ok(()));
        assert_eq!(answer(Device { version: version("1.5.0"), ..device }, signed_so), Err(UpdateAnswer::Version));
    }
}
