//! A recording under way: the session hands lines over and never waits, a thread writes them.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread,
};

use gateway_core::{
    conversation::{Config, Conversation},
    driver::{Event, Watch},
    recording::Entry,
    vocab::Timestamp,
};
use serde::Serialize;

use super::{About, LINE_BYTES_MAX, file};
use crate::private::{FILE_MODE, make_folder};

/// Lines that may wait to be written.
const WAITING_MAX: usize = 512;
/// A single recording has at most this share of all: there is room for more than one.
const SHARE: u64 = 4;

/// The end of a recording that a session holds. What is lost would make a replay differ: with the first line that
/// cannot be taken, the recording ends.
#[derive(Debug)]
pub(crate) struct Tape(Option<SyncSender<String>>);

impl Tape {
    pub(super) fn begin(
        folder: PathBuf,
        path: PathBuf,
        bytes_max: u64,
        (about, settings): (&About, &Config),
        held: impl Send + 'static,
    ) -> Self {
        let (lines, waiting) = sync_channel(WAITING_MAX);
        let mut tape = Self(Some(lines));
        tape.put(about);
        tape.put(&Entry::Settings(settings.clone()));
        let write = move || {
            let written = open(&folder, &path, bytes_max).and_then(|file| write(file, &waiting, bytes_max / SHARE));
            if let Err(error) = written {
                tracing::warn!(%error, path = %path.display(), "a session is not recorded any further");
            }
            drop(held);
        };
        if let Err(error) = thread::Builder::new().name("recording".to_owned()).spawn(write) {
            tracing::warn!(%error, "a session is not recorded: no thread can be started");
        }
        tape
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

impl Watch<Conversation> for Tape {
    fn see(&mut self, now: Timestamp, event: Event<'_, Conversation>) {
        if self.0.is_some() {
            self.put(&Entry::of(now, &event));
        }
    }
}

/// Makes room, and a file.
fn open(folder: &Path, path: &Path, bytes_max: u64) -> io::Result<File> {
    make_room(folder, bytes_max - bytes_max / SHARE)?;
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)
}

/// Removes the oldest recordings beyond this size.
fn make_room(folder: &Path, bytes_max: u64) -> io::Result<()> {
    let mut all = file::paths(folder)?
        .into_iter()
        .filter_map(|path| {
            let known = fs::metadata(&path).ok()?;
            Some((known.modified().ok()?, path, known.len()))
        })
        .collect::<Vec<_>>();
    all.sort();
    let mut bytes: u64 = all.iter().map(|(_, _, bytes)| bytes).sum();
    for (_, path, size) in all {
        if bytes <= bytes_max {
            break;
        }
        fs::remove_file(path)?;
        bytes -= size;
    }
    Ok(())
}

/// Writes until the session ends or the file is full.
fn write(mut file: File, lines: &Receiver<String>, mut room: u64) -> io::Result<()> {
    while let Ok(line) = lines.recv() {
        room = room.checked_sub(line.len() as u64).ok_or_else(|| io::Error::other("it is as long as one may be"))?;
        file.write_all(line.as_bytes())?;
    }
    Ok(())
}
