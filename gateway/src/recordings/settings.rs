//! The section `[recordings]`.

use serde::Deserialize;
use toml::Spanned;

use crate::problems::{Problems, unwritten};

/// `[recordings]` as configured.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawRecordings {
    sessions: bool,
    size_max_mib: Spanned<u32>,
}

impl Default for RawRecordings {
    fn default() -> Self {
        Self { sessions: false, size_max_mib: unwritten(64) }
    }
}

/// Whether sessions are recorded, and how much of it is kept.
#[derive(Clone, Copy, Debug)]
pub struct RecordingSettings {
    /// Whether new sessions are recorded.
    pub sessions: bool,
    /// Bytes of all recordings: the oldest go first.
    pub bytes_max: u64,
}

impl RawRecordings {
    /// Checks the section.
    pub(crate) fn check(&self, problems: &mut Problems<'_>) -> RecordingSettings {
        let mib = problems.between(&self.size_max_mib, "recordings.size_max_mib", 4..=4_096);
        RecordingSettings { sessions: self.sessions, bytes_max: u64::from(mib) << 20 }
    }
}
