//! The journal of intents in the store: an action is on disk before it is carried out.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use gateway_core::vocab::{ErrorCode, ToolResult};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tools::{
    journal::{AskedCall, Intent, Journal, Key, LeftQuestion, Made, Past},
    ledger::{Ledger, Record},
    ports::{Clock, PortError},
    programs::Run,
    reply::cut,
};

use super::runs::{SWEEP_EVERY, StoredRuns, lock};
use super::stores::port;
use crate::runtime::spawn;
use crate::{
    clock,
    store::{self, Kind, Store, Write},
};

/// Intents of one user that are kept: those of a busy day.
const ROWS_MAX: usize = 1_000;
/// How many are left when there are as many as that: the rows of a user are not read for each new one.
const ROWS_LEFT: usize = 900;
/// How long an intent is kept, in milliseconds: clients do not repeat a call after a day.
const KEEP_MS: i64 = 24 * 3_600 * 1_000;
/// Age in milliseconds at which a question is not asked again, and an unknown outcome not told again: the wearer has
/// turned to something else.
const ASK_AGAIN_MS_MAX: i64 = 5 * 60 * 1_000;
/// Longest result in bytes kept for a repetition; of a longer one only the beginning of its text.
const RESULT_BYTES_MAX: usize = 16 * 1024;
/// Bytes of that beginning.
const RESULT_TEXT_BYTES: usize = 4 * 1024;

#[derive(Serialize, Deserialize)]
struct Row {
    tool: String,
    wall_ms: i64,
    /// `None` until the call has ended.
    result: Option<ToolResult>,
    /// Whether the operator was informed that the call never ended.
    #[serde(default)]
    told: bool,
    /// Whether the wearer is still to be informed of it.
    #[serde(default)]
    untold: bool,
    /// The wearer is being asked about it, and it is not begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<AskedCall>,
    /// The call whose program made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<Key>,
    /// Its arguments, redacted and cut, if a program made it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    arguments: String,
    /// Whether a turn made it.
    #[serde(default = "yes")]
    of_turn: bool,
    /// The beginning of its run's record, if it runs a program; until it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<Box<Run>>,
}

/// Versions before this one wrote nothing of it.
fn yes() -> bool {
    true
}

impl Row {
    /// A call that is begun now.
    fn of(intent: &Intent) -> Self {
        let Intent { tool, wall_ms, program, arguments, of_turn, run, .. } = intent.clone();
        Self { tool, wall_ms, result: None, told: false, untold: false, asked: None, program, arguments, of_turn, run }
    }

    /// The same call with this outcome.
    fn ended(intent: &Intent, result: ToolResult) -> Self {
        Self { result: Some(result), run: None, ..Self::of(intent) }
    }
}

/// What the process before this one has left open.
#[derive(Debug, Default)]
pub struct Left {
    /// Calls whose outcome is unknown, by user.
    pub unknown: BTreeMap<String, Vec<UnknownCall>>,
    /// Calls about which a wearer was being asked, by user and device.
    pub asked: BTreeMap<(String, String), Vec<LeftQuestion>>,
}

/// A call whose outcome is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCall {
    /// Key of its record.
    pub key: Key,
    /// Full name of the tool.
    pub tool: String,
    /// For a program: the tools of the changes that it had completed.
    pub done: Vec<String>,
}

type Ended = BTreeMap<(String, Key), ToolResult>;

/// The [`Journal`] of all users, with outcomes in memory until they are on disk.
pub struct StoredJournal {
    store: Store,
    /// Set when the gateway stops: open questions stay as they are, to be asked again by the next process.
    stop: CancellationToken,
    /// Outcomes that are not on disk yet.
    ended: Arc<Mutex<Ended>>,
    /// At least as many intents as each user has on disk, of the users who have begun one.
    counts: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl StoredJournal {
    /// The journal in this store.
    pub fn new(store: Store, stop: CancellationToken) -> Self {
        Self { store, stop, ended: Arc::default(), counts: Arc::default() }
    }

    /// Reports to the log and the ledger, once, calls that were started and never ended: the gateway was stopped in the
    /// middle of them. Runs of programs among them are recorded with the calls that they made. Returns all that a wearer is
    /// still to be told of, and calls about which one was being asked. Those of users whose erasure is still to be finished
    /// are left out: they would be told after it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn tell_of_open(&self, ledger: &dyn Ledger, runs: &StoredRuns) -> Result<Left, store::Error> {
        let mut left = Left::default();
        let users = self.store.disk().owners(Kind::Intents)?;
        for user in users.into_iter().filter(|user| !self.store.is_barred(user)) {
            let rows = self.store.disk().rows(Kind::Intents, &user, b"", ROWS_MAX * 2)?;
            let rows =
                rows.into_iter().filter_map(|(key, value)| Some((key, serde_json::from_slice::<Row>(&value).ok()?)));
            let rows: Vec<_> = rows.collect();
            let made = made_by_programs(&rows);
            for (key, row) in rows {
                if row.result.is_some() {
                    continue;
                }
                let is_recent = (clock::wall_ms() - row.wall_ms).abs() <= ASK_AGAIN_MS_MAX;
                let own = Key::try_from(key.as_slice()).unwrap_or_default();
                if let Some(asked) = row.asked {
                    if is_recent {
                        let of_device = left.asked.entry((user.clone(), asked.device.clone())).or_default();
                        of_device.push(LeftQuestion { key: own, asked });
                    } else {
                        drop(self.store.submit(remove(&user, key), |_| {}));
                    }
                    continue;
                }
                // The process that told the operator may have died before it told the wearer.
                if row.told && !(row.untold && is_recent) {
                    continue;
                }
                let made = made.get(&key).cloned().unwrap_or_default();
                let is_done = |made: &&Made| matches!(&made.past, Past::Done(result) if !result.is_error());
                let done = made.iter().filter(is_done).map(|made| made.tool.clone()).collect();
                // Who asked for it as another program, or called the tool by hand, is told there, if at all.
                if row.of_turn {
                    let unknown = UnknownCall { key: own, tool: row.tool.clone(), done };
                    left.unknown.entry(user.clone()).or_default().push(unknown);
                }
                if row.told {
                    continue;
                }
                tracing::warn!(user, tool = row.tool, "a call was begun before the last stop; its outcome is unknown");
                ledger.record(unknown_record(&user, &row));
                // Its record may have been written, and the outcome of the call not.
                if let Some(begun) = &row.run
                    && runs.latest(&user, |run| run.is_of(begun))?.is_none()
                {
                    runs.record(&user, Run::clone(begun).cut_off(made.into_iter().map(Into::into).collect()));
                }
                let told = Row { told: true, untold: row.of_turn, run: None, ..row };
                drop(self.store.submit(put(&user, &key, &told), |_| {}));
            }
            // What is not dropped now is dropped later: no reason not to start.
            if let Err(error) = prune(&self.store, &user, clock::wall_ms()) {
                tracing::warn!(%error, "old intents could not be dropped");
            }
        }
        Ok(left)
    }

    /// Counts an intent that was stored, and drops old ones of its user if there may be as many as are kept.
    fn count(&self, user: &str) {
        let mut counts = lock(&self.counts);
        // How many an earlier process has left is not known before they are read.
        let count = counts.entry(user.to_owned()).or_insert(ROWS_MAX);
        *count += 1;
        if *count < ROWS_MAX {
            return;
        }
        // What is stored while the others are read is added to them.
        *count = 0;
        drop(counts);
        let (store, counts, user) = (self.store.clone(), Arc::clone(&self.counts), user.to_owned());
        spawn("intents", async move {
            let owner = user.clone();
            let left = store.read(move |store| prune(store, &owner, clock::wall_ms())).await;
            let left = left.unwrap_or_else(|error| {
                tracing::warn!(%error, "old intents could not be dropped; it is tried again with the next one");
                ROWS_MAX
            });
            *lock(&counts).entry(user).or_default() += left;
        });
    }
}

/// The wearer was told that nobody knows what became of these calls: no other process tells it again.
pub(crate) fn wearer_told(store: &Store, user: &str, calls: &[UnknownCall]) {
    for UnknownCall { key, .. } in calls {
        let value = store.disk().row(Kind::Intents, user, key).ok().flatten();
        let row = value.and_then(|value| serde_json::from_slice::<Row>(&value).ok());
        if let Some(row) = row.filter(|row| row.untold) {
            drop(store.submit(put(user, key, &Row { untold: false, ..row }), |_| {}));
        }
    }
}

/// The line of the ledger about a call of which nobody knows what became of it.
fn unknown_record(user: &str, row: &Row) -> Record {
    Record {
        wall_ms: row.wall_ms,
        user: user.to_owned(),
        device: None,
        client: Default::default(),
        turn: None,
        tool: row.tool.clone(),
        source: "unknown".to_owned(),
        took_ms: 0,
        error: Some(ErrorCode::ExecutionError),
        asked: false,
        approval: None,
        program: None,
        bytes_in: 0,
        bytes_out: 0,
    }
}

/// The changes that programs had begun, in their order, by the calls that ran these programs.
fn made_by_programs(rows: &[(Vec<u8>, Row)]) -> BTreeMap<Vec<u8>, Vec<Made>> {
    let mut made: BTreeMap<Vec<u8>, Vec<Made>> = BTreeMap::new();
    let mut rows: Vec<&Row> = rows.iter().map(|(_, row)| row).collect();
    rows.sort_by_key(|row| row.wall_ms);
    for row in rows {
        if let (Some(program), None) = (row.program, &row.asked) {
            let past = row.result.clone().map_or(Past::Unknown, |result| Past::Done(Box::new(result)));
            let (tool, arguments) = (row.tool.clone(), row.arguments.clone());
            made.entry(program.to_vec()).or_default().push(Made { tool, arguments, past });
        }
    }
    made
}

fn remove(user: &str, key: Vec<u8>) -> Write {
    Write::RemoveRow { kind: Kind::Intents, owner: user.to_owned(), key }
}

fn put(user: &str, key: &[u8], row: &Row) -> Write {
    let value = serde_json::to_vec(row).unwrap_or_default();
    Write::PutRow { kind: Kind::Intents, owner: user.to_owned(), key: key.to_vec(), value }
}

#[async_trait]
impl Journal for StoredJournal {
    fn recall(&self, intent: &Intent) -> Result<Option<Past>, PortError> {
        if let Some(result) = lock(&self.ended).get(&(intent.user.clone(), intent.key)) {
            return Ok(Some(Past::Done(Box::new(result.clone()))));
        }
        let row = match self.store.disk().row(Kind::Intents, &intent.user, &intent.key) {
            Err(store::Error::Damaged { .. }) => return Ok(Some(Past::Unknown)),
            row => row.map_err(port)?,
        };
        Ok(row.and_then(|value| match serde_json::from_slice::<Row>(&value) {
            Ok(Row { result: Some(result), .. }) => Some(Past::Done(Box::new(result))),
            Ok(Row { asked: Some(_), .. }) => None,
            // A row that cannot be read was started as well.
            _ => Some(Past::Unknown),
        }))
    }

    fn made_by(&self, program: &Intent) -> Result<Vec<Made>, PortError> {
        let mut made = Vec::new();
        // Before the disk is read: an outcome that gets there meanwhile is in one of both.
        let ended = lock(&self.ended).clone();
        for (key, value) in self.store.disk().rows(Kind::Intents, &program.user, b"", ROWS_MAX * 2).map_err(port)? {
            let Ok(row) = serde_json::from_slice::<Row>(&value) else { continue };
            if row.program != Some(program.key) || row.asked.is_some() {
                continue;
            }
            let key = Key::try_from(key.as_slice()).unwrap_or_default();
            let ended = ended.get(&(program.user.clone(), key)).cloned();
            let past = ended.or(row.result).map_or(Past::Unknown, |result| Past::Done(Box::new(result)));
            made.push((row.wall_ms, Made { tool: row.tool, arguments: row.arguments, past }));
        }
        made.sort_by_key(|(wall_ms, _)| *wall_ms);
        Ok(made.into_iter().map(|(_, made)| made).collect())
    }

    async fn begin(&self, intent: &Intent) -> Result<(), PortError> {
        self.store.write(put(&intent.user, &intent.key, &Row::of(intent))).await.map_err(port)?;
        self.count(&intent.user);
        Ok(())
    }

    fn ask(&self, intent: &Intent, asked: AskedCall) {
        let row = Row { asked: Some(asked), ..Row::of(intent) };
        if let Err(error) = self.store.submit(put(&intent.user, &intent.key, &row), |_| {}) {
            tracing::debug!(%error, "a question was not stored: it would not be asked again after a restart");
        }
    }

    fn withdraw(&self, intent: &Intent) {
        if self.stop.is_cancelled() {
            return;
        }
        if let Err(error) = self.store.submit(remove(&intent.user, intent.key.to_vec()), |_| {}) {
            tracing::debug!(%error, "a question was not removed: it is dropped when it is too old");
        }
    }

    fn finish(&self, intent: &Intent, result: &ToolResult) {
        let at = (intent.user.clone(), intent.key);
        let result = short(result);
        let row = Row::ended(intent, result.clone());
        lock(&self.ended).insert(at.clone(), result);
        let (ended, of) = (Arc::clone(&self.ended), at.clone());
        let submitted = self.store.submit(put(&intent.user, &intent.key, &row), move |written| {
            if let Err(error) = written {
                tracing::error!(%error, "an outcome could not be written down; a repetition will hear of that");
            }
            lock(&ended).remove(&of);
        });
        if let Err(error) = submitted {
            tracing::error!(%error, "an outcome could not be written down; a repetition will hear of that");
            lock(&self.ended).remove(&at);
        }
    }
}

/// The stored form of a result: without attachments and text beyond the limit.
fn short(result: &ToolResult) -> ToolResult {
    let kept = ToolResult { attachments: Vec::new(), ..result.clone() };
    if serde_json::to_vec(&kept).is_ok_and(|bytes| bytes.len() <= RESULT_BYTES_MAX) {
        return kept;
    }
    let content = cut(&kept.content, RESULT_TEXT_BYTES);
    ToolResult { content, data: None, show: None, follow_ups: Vec::new(), ..kept }
}

/// Drops intents that are too old, also of users who call nothing more, every hour until the gateway stops.
pub(crate) async fn keep_sweeping(store: Store, clock: Arc<dyn Clock>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(SWEEP_EVERY)).await.is_some() {
        let now_ms = clock.now().wall_ms;
        let swept = store.read(move |store| {
            let users = store.disk().owners(Kind::Intents)?;
            // Of users who are being erased nothing can be changed, and nothing stays.
            let mut users = users.iter().filter(|user| !store.is_barred(user));
            users.try_for_each(|user| prune(store, user, now_ms).map(drop))
        });
        if let Err(error) = swept.await {
            tracing::warn!(%error, "old intents could not be dropped; it is tried again in an hour");
        }
    }
}

/// Drops intents that are too old, and the oldest where there are as many as may be; returns how many are left. One without
/// an outcome is never too old: a wall clock may jump, and what must not be repeated would be.
fn prune(store: &Store, user: &str, now_ms: i64) -> Result<usize, store::Error> {
    let rows = store.disk().rows(Kind::Intents, user, b"", ROWS_MAX * 8)?;
    let mut by_age: Vec<(bool, i64, Vec<u8>)> = rows
        .into_iter()
        .map(|(key, value)| match serde_json::from_slice::<Row>(&value) {
            Ok(row) => (row.result.is_none() && row.asked.is_none(), row.wall_ms, key),
            Err(_) => (false, 0, key),
        })
        .collect();
    // Those with an outcome come first.
    by_age.sort();
    let (mut left, oldest) = (by_age.len(), now_ms.saturating_sub(KEEP_MS));
    let too_many = if left < ROWS_MAX { 0 } else { left - ROWS_LEFT };
    for (at, (is_open, wall_ms, key)) in by_age.into_iter().enumerate() {
        if at < too_many || (!is_open && wall_ms < oldest) {
            store.submit(remove(user, key), |_| {})?;
            left -= 1;
        }
    }
    Ok(left)
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
