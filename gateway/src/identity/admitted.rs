//! What a handshake that succeeds tells of a device.

use device_protocol::up::HelloOwned;

use crate::store::DeviceRecord;

/// A device that has proven its identity.
pub struct Admitted {
    /// Fingerprint of its key: its id in the store.
    pub id: String,
    /// What is stored of it.
    pub record: DeviceRecord,
    /// What it asks for.
    pub asked: Asked,
}

/// What a device has said of itself, and when.
pub struct Asked {
    /// Its first frame.
    pub hello: HelloOwned,
    /// When it was sent, on the device's clock in microseconds.
    pub sent_us: u64,
    /// When it came, on the gateway's clock in microseconds.
    pub received_us: u64,
}
