//! A recording under way: the session hands lines over and never waits, a thread writes them.

use std::{
    fs::File,
    io,
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
};

use gateway_core::{
    conversation::{Config, Conversation},
    driver::{Event, Watch},
    recording::Entry,
    vocab::Timestamp,
};
use serde::Serialize;

use super::{About, LINE_BYTES_MAX, quota::RecordingQuota};

/// Lines that may wait to be written.
const WAITING_MAX: usize = 512;

/// The end of a recording that a session holds. What is lost would make a replay differ: with the first line that
/// cannot be taken, the recording ends.
#[derive(Debug)]
pub(crate) struct RecordingWriter(Option<SyncSender<String>>);

impl RecordingWriter {
    pub(super) fn begin(
        quota: Arc<RecordingQuota>,
        path: PathBuf,
        (about, settings): (&About, &Config),
        held: impl Send + 'static,
    ) -> Self {
        let (lines, waiting) = sync_channel(WAITING_MAX);
        let mut writer = Self(Some(lines));
        writer.put(about);
        writer.put(&Entry::Settings(settings.clone()));
        let write = move || {
            let written = quota.open(&path).and_then(|file| {
                let written = write(&quota, file, &waiting);
                quota.close(&path);
                written
            });
            if let Err(error) = written {
                tracing::warn!(%error, path = %path.display(), "a session is not recorded any further");
            }
            drop(held);
        };
        if let Err(error) = thread::Builder::new().name("recording".to_owned()).spawn(write) {
            tracing::warn!(%error, "a session is not recorded: no thread can be started");
        }
        writer
    }

    fn put(&mut self, what: &impl Serialize) {
        let Some(lines) = &self.0 else { return };
        let why = match serde_json::to_string(what) {
            Ok(line) if line.len() > LINE_BYTES_MAX => "an entry is too long".to_owned(),
            Ok(line) => match lines.try_send(line + "\n") {
                Ok(()) => return,
                Err(TrySendError::Full(_)) => "the disk does not keep up".to_owned(),
                // The thread has said why.
                Err(TrySendError::Disconnected(_)) => {
                    self.0 = None;
                    return;
                }
            },
            Err(error) => error.to_string(),
        };
        tracing::warn!(why, "a session is not recorded any further");
        self.0 = None;
    }
}

impl Watch<Conversation> for RecordingWriter {
    fn see(&mut self, now: Timestamp, event: Event<'_, Conversation>) {
        if self.0.is_some() {
            self.put(&Entry::of(now, &event));
        }
    }
}

/// Writes until the session ends, the recording is as long as one may be, or there is no room for more.
fn write(quota: &RecordingQuota, mut file: File, lines: &Receiver<String>) -> io::Result<()> {
    let mut left = quota.one_max();
    while let Ok(line) = lines.recv() {
        left = left.checked_sub(line.len() as u64).ok_or_else(|| io::Error::other("it is as long as one may be"))?;
        quota.write(&mut file, &line)?;
    }
    Ok(())
}
