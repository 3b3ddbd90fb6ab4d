//! Erasing everything of a user: recorded before it begins, carried on after a crash, and done when not one byte of it
//! is left in the data folder. docs/memory.md says what that is.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use device_protocol::GoodbyeReason;
use gateway_core::vocab::AppStopReason;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tools::{executor::Executor, mcp::client::Pool, memory::Memory};

use crate::{
    apps::host::Host,
    backup,
    device_task::{self, restart::StoredSessions},
    health::{ERASURES, ERASURES_DAMAGED, space},
    photos,
    ports::{context::ContextBuilder, preferences::Preferences, records::StoredSwitches, routines::StoredRoutines},
    private::write_private,
    recordings,
    roster::Roster,
    store::{Scope, Store},
    telemetry::{Turns, log::Logs},
    units::bytes,
    users::Users,
    workspace,
};

/// How long devices may take to say goodbye, and calls to be dropped.
const GOODBYE_WAIT: Duration = Duration::from_secs(3);
/// Between two looks whether they have.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Between two tries of an erasure that failed: the usual reason is a full disk, which somebody has to clear.
const TRY_EVERY: Duration = Duration::from_secs(60);

/// Most that is kept of lines of the record that cannot be read.
const DAMAGED_BYTES_MAX: usize = 64 * 1024;

/// What is being erased.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erasure {
    /// Name of the user.
    pub user: String,
    /// Also the pairings of the user's devices.
    pub devices: bool,
}

/// The record of the erasures that are under way, one a line: a file beside the store, since a record in the store
/// would stay in its pages.
fn record(data_dir: &Path) -> PathBuf {
    data_dir.join(ERASURES)
}

/// What is recorded. Lines that cannot be read are set aside, where `health` finds them: nobody knows whom they are about,
/// and they must keep neither the gateway nor other erasures from beginning. Where they cannot be set aside, they stay.
fn recorded(data_dir: &Path) -> Result<Vec<Erasure>> {
    let path = record(data_dir);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    let lines = || bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let readable: Vec<Erasure> = lines().filter_map(|line| serde_json::from_slice(line).ok()).collect();
    if readable.len() < lines().count() {
        let is_readable = |line: &[u8]| serde_json::from_slice::<Erasure>(line).is_ok();
        let damaged = lines().filter(|line| !is_readable(line));
        match set_aside(data_dir, damaged).and_then(|()| put(data_dir, &readable)) {
            Ok(()) => tracing::error!("the record of erasures is damaged; what cannot be read of it is set aside"),
            Err(error) => tracing::error!("the record of erasures is damaged, and cannot be mended: {error:#}"),
        }
    }
    Ok(readable)
}

/// Adds lines to those that could not be read, each once, and as long as there is room.
fn set_aside<'a>(data_dir: &Path, damaged: impl Iterator<Item = &'a [u8]>) -> Result<()> {
    let aside = data_dir.join(ERASURES_DAMAGED);
    let mut all = fs::read(&aside).unwrap_or_default();
    for line in damaged {
        if !all.split(|byte| *byte == b'\n').any(|there| there == line) {
            all.extend_from_slice(line);
            all.push(b'\n');
        }
    }
    all.truncate(DAMAGED_BYTES_MAX);
    write_private(&aside, &all)
}

fn put(data_dir: &Path, erasures: &[Erasure]) -> Result<()> {
    let path = record(data_dir);
    if erasures.is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).context("removing the record of the erasure")
            }
            _ => sync(data_dir),
        };
    }
    let mut lines = String::new();
    for erasure in erasures {
        lines.push_str(&serde_json::to_string(erasure)?);
        lines.push('\n');
    }
    write_private(&path, lines.as_bytes())
}

/// Whether the disk has room for the copies that an erasure makes, of the log and then of the store: each takes the place of
/// its file. Without it the user would be kept out until somebody has made room.
fn check_room(data_dir: &Path, user: &str) -> Result<()> {
    let Some((free, _)) = space(data_dir) else { return Ok(()) };
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    // These are removed first.
    let photos = photos::of(data_dir, user).unwrap_or_default();
    let photos = photos.iter().map(|photo| size(photo)).fold(0, u64::saturating_add);
    let copy = size(&data_dir.join("log/data.mdb")).max(size(&data_dir.join("store/data.mdb")));
    ensure!(
        free.saturating_add(photos) >= copy,
        "nothing was erased: the copy of what is kept of everybody else may take {}, and {} of the disk are free. Free \
         some space first: otherwise it could not be finished, and the user's glasses would be turned away until then",
        bytes(copy),
        bytes(free)
    );
    Ok(())
}

/// Records an erasure; what is recorded of the same user already is carried on with it.
fn begin(data_dir: &Path, erasure: &Erasure) -> Result<Erasure> {
    let mut erasures = recorded(data_dir)?;
    let before = erasures.extract_if(.., |other| other.user == erasure.user).any(|other| other.devices);
    let whole = Erasure { devices: erasure.devices || before, ..erasure.clone() };
    erasures.push(whole.clone());
    put(data_dir, &erasures)?;
    Ok(whole)
}

fn end(data_dir: &Path, user: &str) -> Result<()> {
    let mut erasures = recorded(data_dir)?;
    erasures.retain(|other| other.user != user);
    put(data_dir, &erasures)
}

fn sync(folder: &Path) -> Result<()> {
    fs::File::open(folder)?.sync_all().with_context(|| format!("syncing {}", folder.display()))
}

/// Carries on what the last run did not finish; before anything else uses the store. Returns the users of whom it cannot be
/// finished now either: nothing is written of them, and `Eraser::keep_out` must be told before anything is served.
/// Nobody else waits for that.
pub async fn resume(data_dir: &Path, store: &Store, logs: &Logs) -> Vec<String> {
    let erasures = recorded(data_dir).unwrap_or_else(|error| {
        tracing::error!("{error:#}: whose erasure is still to be finished is not known");
        // Something else is in its place. A file that cannot be read now may be readable later.
        let is_file = fs::symlink_metadata(record(data_dir)).is_ok_and(|there| there.is_file());
        if !is_file && let Err(error) = fs::rename(record(data_dir), data_dir.join(ERASURES_DAMAGED)) {
            tracing::error!(%error, "it cannot be set aside");
        }
        Vec::new()
    });
    let mut pending = Vec::new();
    for erasure in erasures {
        tracing::warn!("an erasure was interrupted; it is carried on");
        let finished = async {
            on_disk(data_dir, (store, logs), &erasure).await?;
            end(data_dir, &erasure.user)
        };
        if let Err(error) = finished.await {
            tracing::error!(
                "an erasure is still not finished: {error:#}. Its user is kept out until it is; it is tried every minute"
            );
            store.bar(&erasure.user, true);
            pending.push(erasure.user);
        }
    }
    pending
}

/// All files: a snapshot for a backup, photos, the workspace, recordings, the log and the store.
async fn on_disk(data_dir: &Path, (store, logs): (&Store, &Logs), erasure: &Erasure) -> Result<()> {
    // A snapshot of before has the user in it.
    backup::discard(data_dir)?;
    photos::erase(data_dir, &erasure.user)?;
    workspace::erase(data_dir, &erasure.user)?;
    recordings::erase(data_dir, &erasure.user)?;
    // Before the store, which knows the devices.
    let devices = store.disk().devices()?.into_iter().filter(|(_, device)| device.user == erasure.user);
    let devices = devices.map(|(id, _)| id).collect();
    logs.erase(&erasure.user, devices).await.context("erasing from the log")?;
    let scope = Scope::User { user: erasure.user.clone(), devices: erasure.devices };
    store.erase(scope).await.context("erasing from the store")
}

/// Work that holds up the store, and whose copies must not meet another's: an erasure, the snapshot of a backup, an upgrade.
pub(crate) struct OneAtATime(Arc<Semaphore>);

impl Default for OneAtATime {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl OneAtATime {
    /// Waits until nothing else of it runs, and keeps all else from running.
    ///
    /// # Errors
    /// Nothing begins any more.
    pub(crate) async fn alone(&self) -> Result<OwnedSemaphorePermit> {
        let alone = self.0.clone().acquire_owned().await;
        alone.map_err(|_| anyhow!("the gateway stops, or another process takes its place: try again when one serves"))
    }

    /// As [`alone`](Self::alone), without waiting; `None`: something of it runs.
    pub(crate) fn alone_now(&self) -> Option<OwnedSemaphorePermit> {
        self.0.clone().try_acquire_owned().ok()
    }

    /// Lets nothing begin any more, also of what waits for it.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}

/// Erases users while the gateway runs.
pub struct Eraser {
    data_dir: PathBuf,
    store: Store,
    logs: Logs,
    users: Arc<Users>,
    roster: Arc<Roster>,
    executor: Executor,
    apps: Arc<Host>,
    turns: Arc<Turns>,
    caches: UserCaches,
    /// What an erasure does not run beside.
    pub(crate) running: OneAtATime,
}

/// The caches in memory that hold data of users, besides those of the other fields of the [`Eraser`].
pub struct UserCaches {
    /// What users have switched off.
    pub switches: Arc<StoredSwitches>,
    /// What users have chosen between tools.
    pub preferences: Arc<Preferences>,
    /// What the words of a conversation refer to.
    pub memory: Memory,
    /// Programs that users have kept.
    pub routines: Arc<StoredRoutines>,
    /// What models are told of wearers.
    pub context: Arc<ContextBuilder>,
    /// What the process before this one has left of sessions.
    pub(crate) sessions: Arc<StoredSessions>,
    /// What MCP servers have said of calls.
    pub mcp: Arc<Pool>,
}

impl Eraser {
    /// Of everything that these hold.
    pub fn new(
        data_dir: PathBuf,
        (store, logs): (Store, Logs),
        (users, roster): (Arc<Users>, Arc<Roster>),
        (executor, apps): (Executor, Arc<Host>),
        turns: Arc<Turns>,
        caches: UserCaches,
    ) -> Arc<Self> {
        Arc::new(Self {
            data_dir,
            store,
            logs,
            users,
            roster,
            executor,
            apps,
            turns,
            caches,
            running: OneAtATime::default(),
        })
    }

    /// Keeps out users whose erasure is still to be finished: none of them has a task or a session, or begins work, until
    /// [`carry_on`](Self::carry_on) has finished it.
    pub(crate) async fn keep_out(&self, pending: &[String]) {
        for user in pending {
            self.users.bar(user);
            self.store.bar(user, true);
            // Nothing has begun: this only lets nothing begin.
            drop(tokio::time::timeout(GOODBYE_WAIT, self.executor.in_flight().end(user)).await);
        }
    }

    /// Ends the user's sessions, apps and questions, erases everything, and lets the user in again.
    ///
    /// # Errors
    /// Nothing was erased: it cannot be recorded, or the disk has no room for the copy. Or not everything was: then it is recorded,
    /// and nothing new is taken in of the user until it is finished, since what comes after an erasure was asked for must not be
    /// erased with it.
    pub async fn everything(&self, erasure: &Erasure) -> Result<()> {
        let _alone = self.running.alone().await.context("nothing was erased")?;
        let unrecorded = "nothing was erased, as it cannot be recorded";
        let recorded = recorded(&self.data_dir).context(unrecorded)?;
        // One that is under way is carried on: its user is kept out already.
        if recorded.iter().all(|other| other.user != erasure.user) {
            check_room(&self.data_dir, &erasure.user)?;
        }
        let erasure = begin(&self.data_dir, erasure).context(unrecorded)?;
        self.finish(&erasure).await.context(
            "not everything was erased; it is tried again every minute and at the next start, and until it is done the \
             user's glasses are turned away and nothing of the user is kept",
        )
    }

    /// Tries again what failed, until the gateway stops.
    pub(crate) async fn keep_trying(self: Arc<Self>, stop: CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(TRY_EVERY)).await.is_some() {
            self.carry_on().await;
        }
    }

    /// Tries once more what is recorded. What a backup has left that was interrupted while the gateway ran goes, too: photos that
    /// are removed would live on in it. Where it cannot, the next backup or erasure says so.
    pub async fn carry_on(&self) {
        let Ok(_alone) = self.running.alone().await else { return };
        drop(backup::discard_left(&self.data_dir));
        let erasures = recorded(&self.data_dir).unwrap_or_else(|error| {
            tracing::error!("{error:#}");
            Vec::new()
        });
        for erasure in erasures {
            if let Err(error) = self.finish(&erasure).await {
                tracing::error!("an erasure is still not finished: {error:#}");
            }
        }
    }

    /// From the bar to the end of the record.
    async fn finish(&self, erasure: &Erasure) -> Result<()> {
        let Erasure { user, devices } = erasure;
        // Nothing new comes in, nothing more is written.
        self.users.bar(user);
        self.store.bar(user, true);
        let present = || self.roster.all().into_iter().filter(|(_, present)| present.user == *user);
        let (reason, message) = match devices {
            true => (GoodbyeReason::Revoked, "everything of this user was erased, the pairing too"),
            false => (GoodbyeReason::ShuttingDown, device_task::ERASING),
        };
        for (id, _) in present() {
            self.roster.dismiss(&id, reason, message);
        }
        // Calls and photos that are under way are dropped where they stand, and sessions end.
        let ended = tokio::time::timeout(GOODBYE_WAIT, self.executor.in_flight().end(user)).await;
        let gone = async {
            while present().next().is_some() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        if tokio::time::timeout(GOODBYE_WAIT, gone).await.is_err() {
            tracing::warn!("a device did not take its goodbye; it begins nothing any more");
        }
        for package in self.apps.states(user).into_keys() {
            self.apps.stop(user, &package, AppStopReason::User).await;
        }
        on_disk(&self.data_dir, (&self.store, &self.logs), erasure).await?;
        // What is in memory.
        self.caches.switches.erase(user);
        self.caches.preferences.erase(user);
        self.apps.erase(user).await;
        self.caches.memory.last_mentioned.erase(user);
        self.caches.routines.erase(user);
        self.caches.context.erase(user);
        self.caches.sessions.erase(user);
        self.caches.mcp.forget();
        self.turns.erase(user);
        // What cannot be dropped might still write: nothing is, as long as the user is barred.
        ended.context("a call of the user does not end")?;
        end(&self.data_dir, user)?;
        self.store.bar(user, false);
        self.executor.in_flight().admit(user);
        self.users.admit(user);
        tracing::info!("everything of a user was erased");
        Ok(())
    }
}

#[cfg(test)]
#[path = "erasing_tests.rs"]
mod tests;
