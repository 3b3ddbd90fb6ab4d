//! Firmware over the air, as a device meets it: manifests, and the chunks of an image.

use device_protocol::{
    down::FirmwareChunk,
    firmware::{Device, Download, Release, Taken, Version},
    limits::{FIRMWARE_CHUNK_BYTES_MAX, FIRMWARE_WINDOW_BYTES, MANIFEST_BYTES_MAX},
};

use crate::input::Input;

/// What is a manifest is the same one after it was written again, and no device takes one that it cannot store.
pub fn manifest(bytes: &[u8]) {
    let Ok(release) = Release::parse(bytes) else { return };
    let mut buffer = [0; MANIFEST_BYTES_MAX];
    let length = release.write(&mut buffer).expect("what was parsed can be written");
    assert_eq!(Release::parse(&buffer[..length]), Ok(release));
    let version = Version { major: 1, minor: 2, patch: 3 };
    let device = Device { model: "Example One", hardware: 3, version, image_bytes_max: 100_000 };
    if device.accepts(&release).is_ok() {
        let manifest = release.manifest;
        assert!(manifest.model == device.model && manifest.size <= device.image_bytes_max);
        assert!(manifest.downgrade || release.version > version);
    }
}

/// Whatever chunks come: what is written has no holes, and stays within the image and the window.
pub fn chunks(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (Some(size), Some(stored)) = (input.number(), input.number()) else { return };
    let Some(mut download) = Download::new(1, size, stored) else {
        assert!(stored > size);
        return;
    };
    let payload = [0; FIRMWARE_CHUNK_BYTES_MAX];
    let (mut written, mut reported) = (stored, stored);
    while let Some(step) = input.byte() {
        if step & 1 == 0 {
            if let Some(progress) = download.stored() {
                assert!(progress.offset == written && progress.offset > reported);
                reported = progress.offset;
            }
            assert_eq!(download.is_complete(), written == size);
            continue;
        }
        let (Some(distance), Some(length)) = (input.number(), input.byte()) else { return };
        // Near the place that is due, or anywhere.
        let offset = if step & 2 == 0 { written.wrapping_add(distance & 0x7ff) } else { distance };
        let length = usize::from(length) * 5;
        let chunk = FirmwareChunk {
            update: u32::from(step >> 2 & 1) + 1,
            offset,
            payload: payload.get(..length).unwrap_or(&payload),
        };
        if let Ok(Taken::Write { offset, payload }) = download.take(&chunk) {
            assert!(offset == written && !payload.is_empty() && chunk.update == 1);
            written += payload.len() as u32;
            assert!(written <= size && written - reported <= FIRMWARE_WINDOW_BYTES);
        }
    }
}
