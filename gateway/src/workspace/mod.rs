//! The files that programs keep, in folders of the data folder: on a thread of their own, within the limits of
//! [`tools::workspace`].

mod folder;

use std::path::{Path, PathBuf};

use anyhow::Result;
use async_trait::async_trait;
use tokio::sync::oneshot;
use tools::{
    in_flight::InFlight,
    workspace::{FileAnswer, FileError, FileRequest, Workspace},
};

use self::folder::Folder;
use crate::{
    private::{file_name, remove_folder},
    runtime::compute::{Compute, Full, Urgency},
};

/// Requests that may wait for the disk: at 16 MiB each, memory is what limits them.
const WAITING_MAX: usize = 16;

/// The workspaces of all users.
pub(crate) struct Workspaces {
    data_dir: PathBuf,
    thread: Compute,
    in_flight: InFlight,
}

impl Workspaces {
    /// Workspaces below this data folder. `in_flight`: an erasure of a user waits for the requests of the user.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn start(data_dir: PathBuf, in_flight: InFlight) -> std::io::Result<Self> {
        Ok(Self { data_dir, thread: Compute::start("workspace", 1, WAITING_MAX)?, in_flight })
    }

    /// Whether their thread runs.
    pub(crate) fn is_running(&self) -> bool {
        self.thread.is_running()
    }
}

#[async_trait]
impl Workspace for Workspaces {
    async fn run(&self, user: &str, request: FileRequest) -> Result<FileAnswer, FileError> {
        let Some(lease) = self.in_flight.enter(user) else {
            return Err(FileError::Unavailable("everything of this user is being erased".to_owned()));
        };
        let (told, done) = oneshot::channel();
        let path = folder_of(&self.data_dir, user);
        let submitted = self.thread.submit(Urgency::Soon, move || {
            // Held until it is done: an erasure waits for it.
            if !lease.is_ended() {
                // The caller may be gone.
                drop(told.send(Folder::open(&path).and_then(|folder| folder.run(request))));
            }
        });
        if let Err(Full) = submitted {
            return Err(FileError::Unavailable("too much waits for the disk".to_owned()));
        }
        done.await.unwrap_or_else(|_| Err(FileError::Unavailable("the gateway did not get to it".to_owned())))
    }
}

/// Path and content of one of a user's files, by its number in the order of paths; `None`: there are no more.
///
/// # Errors
/// A file cannot be read.
pub(crate) fn file(data_dir: &Path, user: &str, at: usize) -> Result<Option<(String, Vec<u8>)>, FileError> {
    let path = folder_of(data_dir, user);
    if !path.exists() {
        return Ok(None);
    }
    let folder = Folder::open(&path)?;
    folder.paths()?.get(at).map(|path| Ok((path.as_str().to_owned(), folder.read(path)?))).transpose()
}

/// Removes all files of a user.
///
/// # Errors
/// The folder cannot be removed.
pub(crate) fn erase(data_dir: &Path, user: &str) -> Result<()> {
    remove_folder(&folder_of(data_dir, user))
}

fn folder_of(data_dir: &Path, user: &str) -> PathBuf {
    data_dir.join("workspace").join(file_name(user))
}

#[cfg(test)]
mod tests;
