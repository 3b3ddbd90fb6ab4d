//! The stored forms. Fields are only ever added with a new schema version.

use rkyv::{Archive, Deserialize, Serialize};

/// A paired device.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct DeviceRecord {
    /// Its Ed25519 public key.
    pub key: [u8; 32],
    /// What its owner calls it.
    pub name: String,
    /// Whom it belongs to.
    pub user: String,
    /// Model from its hello when it was paired.
    pub model: String,
    /// When it was paired, milliseconds since the Unix epoch.
    pub paired_wall_ms: i64,
    /// A revoked device stays listed, so that it is told why.
    pub revoked: bool,
}

/// One message of a user's conversation.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// When it was stored, milliseconds since the Unix epoch.
    pub wall_ms: i64,
    /// The canonical message as JSON: its tool calls carry arbitrary JSON anyway.
    pub json: String,
}

/// A timer or reminder.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct EntryRecord {
    /// Reminder, else timer.
    pub reminder: bool,
    /// Name of the timer, or what to be reminded of.
    pub text: String,
    /// When it is due, milliseconds since the Unix epoch.
    pub due_wall_ms: i64,
    /// Length of a timer.
    pub duration_ms: u64,
}

/// A note.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct NoteRecord {
    /// The wearer's words.
    pub text: String,
    /// When it was taken, milliseconds since the Unix epoch.
    pub created_wall_ms: i64,
}
