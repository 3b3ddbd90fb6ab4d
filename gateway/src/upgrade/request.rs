//! Requests to be replaced, which come over the control socket.

use std::{ffi::OsString, path::Path, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::{Next, Version};
use crate::transport::sockets::Sockets;

/// Longest wait that can be asked for, in seconds: models load in some seconds, also from a slow card.
const WAIT_S_MAX: u64 = 600;

/// A process that waits for this gateway to stop.
pub struct Ready {
    pub(crate) next: Next,
    /// As long as this lives, nothing begins that the end of this gateway would have to wait for.
    pub(crate) alone: OwnedSemaphorePermit,
}

/// Starts next processes.
pub struct Upgrader {
    sockets: Sockets,
    arguments: Vec<OsString>,
    ready: mpsc::Sender<Ready>,
}

impl Upgrader {
    /// `arguments`: those of this process. The receiver is for the task that stops the gateway.
    pub(crate) fn new(sockets: Sockets, arguments: Vec<OsString>) -> (Self, mpsc::Receiver<Ready>) {
        let (ready, waits) = mpsc::channel(1);
        (Self { sockets, arguments, ready }, waits)
    }

    /// Starts the program and waits until it is ready to take over, which follows at once: its process and its versions.
    /// `alone`: keeps another upgrade from running, and given back where this one fails.
    ///
    /// # Errors
    /// Why it cannot; nothing has changed.
    pub(crate) async fn replace_by(
        &self,
        program: &Path,
        wait_s: u64,
        alone: OwnedSemaphorePermit,
    ) -> Result<(u32, Version), String> {
        if !program.is_absolute() {
            return Err("the new program needs an absolute path".to_owned());
        }
        if wait_s > WAIT_S_MAX {
            return Err(format!("the new process may have at most {WAIT_S_MAX} s to get ready"));
        }
        let next = Next::start(program, &self.arguments, &self.sockets, Duration::from_secs(wait_s)).await;
        let next = next.map_err(|error| format!("{error:#}; this gateway goes on"))?;
        let (Some(pid), version) = (next.pid(), next.version.clone()) else {
            return Err("the new process has ended; this gateway goes on".to_owned());
        };
        self.ready.send(Ready { next, alone }).await.map_err(|_| "this gateway is stopping".to_owned())?;
        Ok((pid, version))
    }
}
