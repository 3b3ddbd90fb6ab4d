//! Signals of a running gateway.

use std::{future::pending, io, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::timeout,
};

use crate::serve::Running;

/// How long a signal that was sent may take to be seen here.
const SEEN_MAX: Duration = Duration::from_millis(250);

/// Those that are heard. A signal that comes while nobody waits for it is there for the next one who does.
pub(super) struct Signals {
    pub(super) end: End,
    pub(super) reload: Reload,
}

/// SIGTERM and SIGINT.
pub(super) struct End {
    terminate: Signal,
    interrupt: Signal,
}

/// SIGHUP.
pub(super) struct Reload(Signal);

impl Signals {
    /// From here on they do not end the process.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn new() -> io::Result<Self> {
        let end = End { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? };
        Ok(Self { end, reload: Reload(signal(SignalKind::hangup())?) })
    }
}

impl End {
    /// Waits until somebody wants the gateway to end.
    pub(super) async fn wanted(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl Reload {
    /// Reads the configuration again with each. Never returns.
    pub(super) async fn keep_reloading(&mut self, running: &Running) {
        while self.0.recv().await.is_some() {
            // What was done is logged there.
            if let Err(problems) = running.reload() {
                tracing::error!("the configuration cannot be used: {}", problems.join("; "));
            }
        }
        pending().await
    }

    /// Whether one has come that was not answered.
    pub(super) async fn has_come(&mut self) -> bool {
        timeout(SEEN_MAX, self.0.recv()).await.is_ok_and(|signal| signal.is_some())
    }
}
