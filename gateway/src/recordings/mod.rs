//! Recordings of sessions: what a device's conversation was given and put out, for `lorgnette replay`. They hold what
//! the wearer said, so they are made only where the operator wants them, and are erased with their user. No sound.
//!
//! A file has a line of JSON about the session, and a line for each [`Entry`](gateway_core::recording::Entry).

mod file;
mod quota;
pub(crate) mod replay;
pub(crate) mod settings;
mod words;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use self::{quota::RecordingQuota, settings::RecordingSettings, writer::RecordingWriter};
use crate::private::{file_name, remove_folder};

pub(crate) use self::{
    file::{Listed, Recording, list},
    words::masked,
};

/// Version of the form of the files.
const FORMAT: u32 = 6;
/// Folder in the data folder; in it, one for each user.
pub(crate) const FOLDER: &str = "recordings";
/// End of the names of files.
const ENDING: &str = "jsonl";
/// Longest line of a file: a request with a photo.
const LINE_BYTES_MAX: usize = 2 << 20;

/// The first line of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct About {
    /// Version of the form.
    pub(crate) format: u32,
    /// The gateway that made it: another one may decide otherwise.
    pub(crate) version: String,
    /// Name of the user.
    pub(crate) user: String,
    /// Fingerprint of the device.
    pub(crate) device: String,
    pub(crate) session: u32,
    /// When it began, in milliseconds since the Unix epoch.
    pub(crate) began_wall_ms: i64,
}

impl About {
    /// Of a session that begins.
    pub(crate) fn new(user: &str, device: &str, session: u32, began_wall_ms: i64) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { format: FORMAT, version, user: user.to_owned(), device: device.to_owned(), session, began_wall_ms }
    }
}

/// Makes recordings.
pub(crate) struct Recordings {
    folder: PathBuf,
    quota: Arc<RecordingQuota>,
}

impl Recordings {
    /// In this data folder; `None`: they are off.
    pub(crate) fn new(data_dir: &Path, settings: RecordingSettings) -> Option<Self> {
        settings.sessions.then(|| {
            let folder = data_dir.join(FOLDER);
            Self { quota: Arc::new(RecordingQuota::new(folder.clone(), settings.bytes_max)), folder }
        })
    }

    /// Records a session. `held` is dropped when its last line is written, also where it is never begun.
    pub(crate) fn begin(
        &self,
        about: &About,
        settings: &gateway_core::conversation::Config,
        held: impl Send + 'static,
    ) -> RecordingWriter {
        let name = format!("{}-{}.{ENDING}", file_name(&about.device), about.began_wall_ms);
        let path = self.folder.join(file_name(&about.user)).join(name);
        RecordingWriter::begin(self.quota.clone(), path, (about, settings), held)
    }
}

/// Removes the recordings of a user.
///
/// # Errors
/// The folder cannot be removed.
pub(crate) fn erase(data_dir: &Path, user: &str) -> Result<()> {
    remove_folder(&data_dir.join(FOLDER).join(file_name(user)))
}

#[cfg(test)]
mod tests;
