//! The stored forms. Fields are only ever added with a new schema version.

use gateway_core::vocab::{ScheduleEntry, ScheduleKind};
use rkyv::{Archive, Deserialize, Serialize};

/// A pairing, which stays when it is revoked.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct DeviceRecord {
    /// Its Ed25519 public key.
    pub key: [u8; 32],
    /// The owner's name for it.
    pub name: String,
    /// Whom it belongs to.
    pub user: String,
    /// Model from its hello when it was paired.
    pub model: String,
    /// When it was paired, milliseconds since the Unix epoch.
    pub paired_wall_ms: i64,
    /// A revoked device stays listed, so that it can be told why it is refused.
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

/// A [`ScheduleEntry`] on disk, whose id is in the key. All other modules use the entry itself.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryRecord {
    /// 0: a timer, 1: a reminder, 2: an answer.
    kind: u8,
    /// Empty: a timer without a name.
    text: String,
    due_wall_ms: i64,
    /// 0: none.
    duration_ms: u64,
}

impl From<&ScheduleEntry> for EntryRecord {
    fn from(entry: &ScheduleEntry) -> Self {
        Self {
            kind: match entry.kind {
                ScheduleKind::Timer { .. } => 0,
                ScheduleKind::Reminder { .. } => 1,
                ScheduleKind::Answer { .. } => 2,
            },
            text: entry.kind.text().to_owned(),
            due_wall_ms: entry.due_wall_ms,
            duration_ms: entry.duration_ms.unwrap_or(0),
        }
    }
}

impl EntryRecord {
    /// The entry with this id.
    pub(super) fn into_entry(self, id: u64) -> ScheduleEntry {
        let Self { kind, text, due_wall_ms, duration_ms } = self;
        let kind = match kind {
            0 => ScheduleKind::timer(text),
            2 => ScheduleKind::Answer { text },
            _ => ScheduleKind::Reminder { text },
        };
        ScheduleEntry { id, kind, due_wall_ms, duration_ms: (duration_ms > 0).then_some(duration_ms) }
    }
}

/// A note as it is stored; the user and the note's id are in its key.
#[derive(Archive, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct NoteRecord {
    /// The wearer's words.
    pub text: String,
    /// When it was taken, milliseconds since the Unix epoch.
    pub created_wall_ms: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_schedule_are_kept_as_they_ever_were() {
        let reminder = ScheduleEntry {
            id: 7,
            kind: ScheduleKind::Reminder { text: "oven".into() },
            due_wall_ms: -2,
            duration_ms: None,
        };
        let timer = ScheduleEntry {
            kind: ScheduleKind::Timer { name: None },
            due_wall_ms: 600_000,
            duration_ms: Some(600_000),
            ..reminder.clone()
        };
        // Kind, text, due, length: as earlier gateways wrote them.
        let stored: [(_, &[u8; 25]); 2] = [
            (reminder, b"\x01oven\xff\xff\xff\xff\xfe\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0"),
            (timer, b"\0\xff\xff\xff\xff\xff\xff\xff\xff\xc0\x27\x09\0\0\0\0\0\xc0\x27\x09\0\0\0\0\0"),
        ];
        for (entry, bytes) in stored {
            let written = rkyv::to_bytes::<rkyv::rancor::Error>(&EntryRecord::from(&entry)).unwrap();
            assert_eq!(written.as_slice(), bytes);
            let read = rkyv::from_bytes::<EntryRecord, rkyv::rancor::Error>(&written).unwrap();
            assert_eq!(read.into_entry(7), entry);
        }
    }
}
