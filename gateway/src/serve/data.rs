//! Opens what a gateway keeps in its data folder.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Error, Result};
use tokio::{
    net::UnixListener,
    time::{sleep, timeout},
};

use crate::{
    backup, control, erasing,
    identity::GatewayKey,
    private::{FolderLock, GATEWAY, make_folder, repair},
    store::{Store, settings::StoreSettings},
    telemetry::log::Logs,
    transport::tls::{self, Tls},
};

/// Names in the certificate.
pub(super) const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "lorgnette.local"];
/// How long a gateway waits for the data folder that another one has just given up for it: a command that finds no gateway
/// there, such as `lorgnette doctor`, may have it for a moment.
pub(super) const LOCK_WAIT: Duration = Duration::from_secs(30);
/// How long any other one waits: the lock of a process that was killed a moment ago is there until the system has cleared that
/// away.
pub(super) const START_LOCK_WAIT: Duration = Duration::from_secs(2);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Everything read from the folder.
pub(super) struct Data {
    /// Keeps a second gateway off the folder.
    pub(super) lock: FolderLock,
    /// For an operator's commands.
    pub(super) control_socket: UnixListener,
    /// The gateway's identity.
    pub(super) key: GatewayKey,
    /// For the listeners, with the gateway's certificate.
    pub(super) tls: Tls,
    /// Persistent data.
    pub(super) store: Store,
    /// The stored log.
    pub(super) logs: Logs,
    /// Users whose erasure is still to be finished: nothing of them may be served.
    pub(super) kept_out: Vec<String>,
}

impl Data {
    /// Opens the folder, creating it if missing, and carries on erasures that were interrupted. `wait`: how long another
    /// process may keep it.
    pub(super) async fn open(folder: &Path, settings: StoreSettings, wait: Duration) -> Result<Self> {
        make_folder(folder).with_context(|| format!("making the data folder {}; set `data_dir`", folder.display()))?;
        let lock = locked(folder, wait).await?;
        repair(folder);
        backup::recover(folder)?;
        let control_socket = control::server::bind(folder)?;
        let is_known = GatewayKey::is_in(folder);
        let key = GatewayKey::load_or_make(folder)?;
        let tls = tls::load_or_make(folder, NAMES.map(str::to_owned).to_vec())?;
        let logs = Logs::open(&folder.join("log")).context("opening the stored log")?;
        let store = open_store(&folder.join("store"), settings, is_known)?;
        let kept_out = erasing::resume(folder, &store, &logs).await;
        Ok(Self { lock, control_socket, key, tls, store, logs, kept_out })
    }
}

/// Takes the lock of the folder within this time.
async fn locked(folder: &Path, wait: Duration) -> Result<FolderLock> {
    if let Some(lock) = FolderLock::try_take(folder, GATEWAY)? {
        return Ok(lock);
    }
    let (shown, wait_s) = (folder.display(), wait.as_secs());
    let process = FolderLock::holder(folder).map(|holder| holder.to_string());
    tracing::info!(folder = %shown, wait_s, process = process.as_deref(), "another process has the data folder: waiting for it");
    let free = async {
        loop {
            sleep(LOOK_EVERY).await;
            if let Some(lock) = FolderLock::try_take(folder, GATEWAY)? {
                return Ok::<_, Error>(lock);
            }
        }
    };
    match timeout(wait, free).await {
        Ok(taken) => taken,
        // For its error message.
        Err(_elapsed) => FolderLock::take(folder, GATEWAY),
    }
}

/// `is_known`: a gateway has run on this folder before.
fn open_store(folder: &Path, settings: StoreSettings, is_known: bool) -> Result<Store> {
    if is_known && Store::is_empty(folder) {
        tracing::warn!(
            store = %folder.display(),
            "there is a key of this gateway and no store: devices that were paired have to be paired again. If there is a \
             backup of the store, stop the gateway and restore it"
        );
    }
    Store::open(folder, settings.size_max_mib).with_context(|| {
        format!(
            "opening the store {}; it holds pairings and all that is kept of users: restore it from a backup, or move \
             it away to begin with nothing",
            folder.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_process_that_has_the_folder_for_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        for wait in [START_LOCK_WAIT, LOCK_WAIT] {
            let held = FolderLock::take(folder.path(), "backup").unwrap();
            let begun = Instant::now();
            let refused = locked(folder.path(), wait).await.err().unwrap().to_string();
            assert!(refused.contains("`lorgnette backup` (process "), "{refused}");
            assert!(begun.elapsed() >= wait, "one that stays");
            let other = async {
                sleep(wait / 2).await;
                drop(held);
            };
            let (lock, ()) = tokio::join!(locked(folder.path(), wait), other);
            lock.unwrap();
        }
    }
}
