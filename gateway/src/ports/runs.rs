//! Runs of programs in the store: kept for a week, and bounded in number and size.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use tools::{
    ports::Clock,
    programs::{Run, WhichRun},
};

use crate::store::{self, Kind, Store, Write};

/// How long a run is kept, in milliseconds: a week.
const KEEP_MS: i64 = 7 * 24 * 3_600 * 1_000;
/// Runs of one user that are kept: a busy week.
const RUNS_MAX: usize = 200;
/// Bytes of one user's runs.
const BYTES_MAX: usize = 4 * 1024 * 1024;
/// How often runs, and intents of calls, that are too old are looked for.
pub(super) const SWEEP_EVERY: Duration = Duration::from_secs(3_600);
/// Runs that are being repeated by hand at once: more than operators there are.
const AGAIN_MAX: usize = 64;

/// What the limits need to know of a stored run without reading it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u64,
    wall_ms: i64,
    bytes: usize,
}

type Index = BTreeMap<String, VecDeque<Entry>>;

/// The runs of all users. What is stored of each is known in memory, so that the limits cost no reads.
pub struct StoredRuns {
    store: Store,
    clock: Arc<dyn Clock>,
    index: Arc<Mutex<Index>>,
    /// Runs that are being repeated by hand: the first run by the call of the next one.
    again: Mutex<BTreeMap<String, u64>>,
}

impl StoredRuns {
    /// Reads what is stored; drops what is too old.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn load(store: Store, clock: Arc<dyn Clock>) -> Result<Self, store::Error> {
        let mut index = Index::new();
        for user in store.disk().owners(Kind::Runs)? {
            let rows = store.disk().numbered(Kind::Runs, &user, RUNS_MAX * 2)?;
            // One that cannot be read counts as too old.
            let entry = |(id, value): &(u64, Vec<u8>)| {
                let wall_ms = serde_json::from_slice::<Run>(value).map_or(i64::MIN, |run| run.wall_ms);
                Entry { id: *id, wall_ms, bytes: value.len() }
            };
            index.insert(user, rows.iter().map(entry).collect());
        }
        let runs = Self { store, clock, index: Arc::new(Mutex::new(index)), again: Mutex::default() };
        runs.sweep();
        Ok(runs)
    }

    /// Stores a run without waiting for the disk. If the store refuses it, there is no record of it.
    pub fn record(&self, user: &str, mut run: Run) {
        if let Some(first) = lock(&self.again).remove(&run.call) {
            run.again_of = Some(first);
        }
        let Ok(value) = serde_json::to_vec(&run) else { return };
        let (wall_ms, bytes, now_ms) = (run.wall_ms, value.len(), self.clock.now().wall_ms);
        let (store, index, owner) = (self.store.clone(), Arc::clone(&self.index), user.to_owned());
        let written = move |written: Result<u64, store::Error>| match written {
            Ok(id) => {
                let mut index = lock(&index);
                let entries = index.entry(owner.clone()).or_default();
                entries.push_back(Entry { id, wall_ms, bytes });
                drop_over(&store, &owner, entries, now_ms);
            }
            Err(error) => not_stored(&error),
        };
        let write = Write::AddRow { kind: Kind::Runs, owner: user.to_owned(), value };
        if let Err(error) = self.store.submit(write, written) {
            not_stored(&error);
        }
    }

    /// The run that a call is about to make repeats this one. Returns whether that can be noted.
    pub fn repeats(&self, call: &str, first: u64) -> bool {
        let mut again = lock(&self.again);
        let has_room = again.len() < AGAIN_MAX;
        if has_room {
            again.insert(call.to_owned(), first);
        }
        has_room
    }

    /// The call is over.
    pub fn repeated(&self, call: &str) {
        lock(&self.again).remove(call);
    }

    /// A user's runs, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self, user: &str) -> Result<Vec<Run>, store::Error> {
        let ids: Vec<u64> = self.fresh(user).map(|entry| entry.id).collect();
        let runs = ids.into_iter().rev().map(|id| self.read(user, id));
        runs.filter_map(Result::transpose).collect()
    }

    /// The run of this number; `None`: the user has none, or it was too old to keep.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn get(&self, user: &str, id: u64) -> Result<Option<Run>, store::Error> {
        match self.fresh(user).find(|entry| entry.id == id) {
            Some(_) => self.read(user, id),
            None => Ok(None),
        }
    }

    /// The latest one that `is_it` holds for.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn latest(&self, user: &str, is_it: impl Fn(&Run) -> bool) -> Result<Option<Run>, store::Error> {
        let ids: Vec<u64> = self.fresh(user).map(|entry| entry.id).collect();
        for id in ids.into_iter().rev() {
            if let Some(run) = self.read(user, id)?
                && is_it(&run)
            {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }

    /// The run that is meant.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn find(&self, user: &str, which: &WhichRun) -> Result<Option<Run>, store::Error> {
        match which {
            WhichRun::Number(id) => self.get(user, *id),
            WhichRun::Last { device, session, until_wall_ms } => {
                // Outside of sessions the glasses are only those that happened to be there.
                let is_there = |run: &Run| session.is_none() || run.device == *device;
                // What a routine runs is kept already.
                let has_ended = |run: &Run| {
                    let took_ms = i64::try_from(run.took_ms).unwrap_or(i64::MAX);
                    run.wall_ms.saturating_add(took_ms) <= *until_wall_ms
                };
                let is_it = |run: &Run| run.session == *session && is_there(run) && run.routine.is_none();
                self.latest(user, |run| is_it(run) && has_ended(run))
            }
        }
    }

    /// Drops the index of a user who was erased from the store.
    pub fn erase(&self, user: &str) {
        lock(&self.index).remove(user);
    }

    /// Drops what is too old.
    pub fn sweep(&self) {
        let now_ms = self.clock.now().wall_ms;
        let mut index = lock(&self.index);
        for (user, entries) in index.iter_mut() {
            drop_over(&self.store, user, entries, now_ms);
        }
        index.retain(|_, entries| !entries.is_empty());
    }

    /// Does so until the gateway stops.
    pub(crate) async fn keep_sweeping(self: Arc<Self>, stop: CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(SWEEP_EVERY)).await.is_some() {
            self.sweep();
        }
    }

    /// Those that are not too old, oldest first.
    fn fresh(&self, user: &str) -> impl Iterator<Item = Entry> + use<> {
        let now_ms = self.clock.now().wall_ms;
        let entries = lock(&self.index).get(user).cloned().unwrap_or_default();
        entries.into_iter().filter(move |entry| !is_old(entry, now_ms))
    }

    fn read(&self, user: &str, id: u64) -> Result<Option<Run>, store::Error> {
        let row = match self.store.disk().row(Kind::Runs, user, &id.to_be_bytes()) {
            // The store has logged it.
            Err(store::Error::Damaged { .. }) => None,
            row => row?,
        };
        Ok(row.and_then(|value| serde_json::from_slice::<Run>(&value).ok()).map(|run| Run { id, ..run }))
    }
}

fn is_old(entry: &Entry, now_ms: i64) -> bool {
    now_ms.saturating_sub(entry.wall_ms) >= KEEP_MS
}

/// Drops those that are too old, and the oldest ones beyond the limits.
fn drop_over(store: &Store, user: &str, entries: &mut VecDeque<Entry>, now_ms: i64) {
    // If the store refuses it, it is tried again with the next one.
    let remove = |entry: &Entry| {
        let (kind, owner, key) = (Kind::Runs, user.to_owned(), entry.id.to_be_bytes().to_vec());
        store.submit(Write::RemoveRow { kind, owner, key }, |_| {}).is_ok()
    };
    entries.retain(|entry| !(is_old(entry, now_ms) && remove(entry)));
    let mut bytes: usize = entries.iter().map(|entry| entry.bytes).sum();
    while let Some(first) = entries.front()
        && (entries.len() > RUNS_MAX || bytes > BYTES_MAX)
        && remove(first)
    {
        bytes -= first.bytes;
        entries.pop_front();
    }
}

fn not_stored(error: &store::Error) {
    tracing::warn!(%error, "the run of a program could not be recorded");
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use gateway_core::vocab::Timestamp;

    use super::*;

    const DAY_MS: i64 = 24 * 3_600 * 1_000;

    /// A clock that the tests set.
    #[derive(Default)]
    struct Hand(AtomicI64);

    impl Clock for Hand {
        fn now(&self) -> Timestamp {
            let wall_ms = self.0.load(Ordering::SeqCst);
            Timestamp { mono_us: wall_ms.unsigned_abs() * 1_000, wall_ms, offset_s: 0 }
        }

        fn zone(&self) -> jiff::tz::TimeZone {
            jiff::tz::TimeZone::UTC
        }
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 64).unwrap();
        (folder, store)
    }

    fn run(wall_ms: i64, source: &str) -> Run {
        Run { wall_ms, source: source.to_owned(), call: format!("c{wall_ms}"), ..Run::default() }
    }

    fn ids(runs: &StoredRuns, user: &str) -> Vec<u64> {
        runs.list(user).unwrap().iter().map(|run| run.id).collect()
    }

    #[tokio::test]
    async fn a_run_is_kept_for_seven_days_also_over_a_restart() {
        let (_folder, store) = store();
        let clock = Arc::<Hand>::default();
        let load = || StoredRuns::load(store.clone(), clock.clone()).unwrap();
        let runs = load();
        runs.record("ann", run(0, "one"));
        runs.record("ann", run(DAY_MS, "two"));
        runs.record("bob", run(0, "other"));
        store.settled().await.unwrap();
        for runs in [&runs, &load()] {
            assert_eq!(ids(runs, "ann"), [2, 1]);
            assert_eq!(runs.get("ann", 1).unwrap().unwrap().source, "one");
            assert_eq!(runs.get("bob", 2).unwrap(), None);
        }
        clock.0.store(7 * DAY_MS - 1, Ordering::SeqCst);
        assert_eq!(ids(&runs, "ann"), [2, 1]);
        clock.0.store(7 * DAY_MS, Ordering::SeqCst);
        // It is gone for readers at once, and from the store with the next look.
        assert_eq!((ids(&runs, "ann"), runs.get("ann", 1).unwrap()), (vec![2], None));
        assert_eq!(store.disk().numbered(Kind::Runs, "ann", 9).unwrap().len(), 2);
        runs.sweep();
        store.settled().await.unwrap();
        let left = |user: &str| store.disk().numbered(Kind::Runs, user, 9).unwrap().len();
        assert_eq!((left("ann"), left("bob")), (1, 0));
        clock.0.store(8 * DAY_MS, Ordering::SeqCst);
        let again = load();
        store.settled().await.unwrap();
        assert_eq!(left("ann"), 0);
        // No number is given twice.
        again.record("ann", run(8 * DAY_MS, "three"));
        store.settled().await.unwrap();
        assert_eq!(ids(&again, "ann"), [3]);
    }

    #[tokio::test(start_paused = true)]
    async fn old_ones_go_although_nothing_else_happens() {
        let (_folder, store) = store();
        let clock = Arc::<Hand>::default();
        let runs = Arc::new(StoredRuns::load(store.clone(), clock.clone()).unwrap());
        runs.record("ann", run(0, "one"));
        store.settled().await.unwrap();
        clock.0.store(7 * DAY_MS, Ordering::SeqCst);
        let stop = CancellationToken::new();
        let sweeping = crate::runtime::spawn("runs", runs.clone().keep_sweeping(stop.clone()));
        tokio::time::sleep(SWEEP_EVERY + Duration::from_secs(1)).await;
        store.settled().await.unwrap();
        assert!(store.disk().numbered(Kind::Runs, "ann", 9).unwrap().is_empty());
        stop.cancel();
        sweeping.await.unwrap();
    }

    #[tokio::test]
    async fn the_oldest_go_first() {
        let (_folder, store) = store();
        let runs = StoredRuns::load(store.clone(), Arc::<Hand>::default()).unwrap();
        for number in 0..RUNS_MAX + 3 {
            runs.record("ann", run(i64::try_from(number).unwrap(), "x"));
        }
        store.settled().await.unwrap();
        store.settled().await.unwrap();
        assert_eq!(store.disk().numbered(Kind::Runs, "ann", 1_000).unwrap().len(), RUNS_MAX);
        assert_eq!(ids(&runs, "ann").last(), Some(&4));
        let large = "y".repeat(BYTES_MAX / 2);
        for wall_ms in [1_000, 1_001] {
            runs.record("ann", run(wall_ms, &large));
        }
        store.settled().await.unwrap();
        store.settled().await.unwrap();
        assert_eq!(ids(&runs, "ann").len(), 1, "two have more bytes than there may be");
    }

    #[tokio::test]
    async fn the_last_of_a_conversation_is_found_and_damage_is_left_out() {
        let (_folder, store) = store();
        let runs = StoredRuns::load(store.clone(), Arc::<Hand>::default()).unwrap();
        let of = |wall_ms, session: Option<&str>| Run {
            device: Some("g".into()),
            session: session.map(str::to_owned),
            ..run(wall_ms, "x")
        };
        let routine = tools::programs::OfRoutine { name: "r".into(), version: 1 };
        runs.record("ann", of(1, Some("s")));
        runs.record("ann", of(2, None));
        runs.record("ann", Run { routine: Some(routine), ..of(3, Some("s")) });
        assert!(runs.repeats("c4", 2));
        runs.record("ann", of(4, Some("other")));
        store.settled().await.unwrap();
        let last = |session: Option<&str>, until_wall_ms| {
            let (device, session) = (Some("g".to_owned()), session.map(str::to_owned));
            runs.find("ann", &WhichRun::Last { device, session, until_wall_ms }).unwrap().map(|run| run.id)
        };
        assert_eq!((last(Some("s"), 9), last(None, 9), last(Some("none"), 9)), (Some(1), Some(2), None));
        // One that ran while the wearer was asked is not meant.
        assert_eq!((last(Some("s"), 0), last(Some("other"), 3), last(Some("other"), 4)), (None, None, Some(4)));
        assert_eq!(runs.get("ann", 4).unwrap().unwrap().again_of, Some(2));
        assert_eq!(runs.find("ann", &WhichRun::Number(3)).unwrap().map(|run| run.id), Some(3));
        let key = 2_u64.to_be_bytes().to_vec();
        let (kind, owner, value) = (Kind::Runs, "ann".to_owned(), b"no JSON".to_vec());
        store.write(Write::PutRow { kind, owner, key, value }).await.unwrap();
        assert_eq!(ids(&runs, "ann"), [4, 3, 1]);
        let again = StoredRuns::load(store.clone(), Arc::<Hand>::default()).unwrap();
        assert_eq!(ids(&again, "ann"), [4, 3, 1]);
        runs.erase("ann");
        assert!(ids(&runs, "ann").is_empty());
    }
}
