//! A log of recent events of apps, for their developers: faults, each with the request that caused it, and successes.
//! It is kept in memory and shown to the operator only, because it contains the wearer's words.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use gateway_core::vocab::{ErrorCode, absent};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::reply::cut;

/// Faults kept per app: for debugging, the last few suffice.
pub const FAULTS_PER_APP_MAX: usize = 32;
/// Other events kept per app, separately from its faults: an app that is called often must not displace them.
pub const EVENTS_PER_APP_MAX: usize = 64;
/// Maximum apps with a log: more than are installed on one gateway.
pub const APPS_MAX: usize = 128;
/// Bytes kept of a request or response: the beginning suffices to recognise it.
pub const EXCERPT_BYTES_MAX: usize = 2 * 1024;
/// Bytes kept of an event: a line or two.
pub const EVENT_BYTES_MAX: usize = 400;
/// Maximum concurrent followers: people at terminals.
pub const FOLLOWERS_MAX: usize = 8;
/// Entries that a follower may lag behind before it misses some.
const BEHIND_MAX: usize = 256;

/// A fault of an app.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Time in milliseconds since the Unix epoch; of a repeated fault, the last time.
    pub wall_ms: i64,
    /// The user; `None` if unknown.
    #[serde(with = "absent")]
    pub user: Option<String>,
    /// The activity: the tool's own name, or `start`, `socket`, the type of a frame.
    pub what: String,
    /// Kind of failure.
    pub code: ErrorCode,
    /// Description.
    pub message: String,
    /// URL and body of the request; cut to the limit.
    pub request: String,
    /// The beginning of the response; empty if there was none.
    pub answer: String,
    /// Number of consecutive occurrences.
    pub times: u32,
}

/// An event of an app that is not a fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Time in milliseconds since the Unix epoch.
    pub wall_ms: i64,
    /// For whom the app ran.
    pub user: String,
    /// The activity: the tool's own name, or `start`, `stop`, `subscriptions`, `drawing`, `transcript`.
    pub what: String,
    /// Description; cut to the limit.
    pub message: String,
}

/// A fault or another event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// Something that failed.
    Fault(Fault),
    /// Another event.
    Event(Event),
}

/// Kinds of which only the last one per app is kept, because they are frequent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latest {
    /// What the app drew.
    Drawing,
    /// A transcript that the app received.
    Transcript,
}

#[derive(Default)]
struct AppLog {
    faults: VecDeque<(u64, Fault)>,
    events: VecDeque<(u64, Event)>,
    drawing: Option<(u64, Event)>,
    transcript: Option<(u64, Event)>,
}

/// The latest entries of each app.
pub struct Log {
    logs: Mutex<BTreeMap<String, AppLog>>,
    /// Number of the next entry: wall clocks may jump.
    next: AtomicU64,
    told: broadcast::Sender<(String, u64, Entry)>,
}

impl Default for Log {
    fn default() -> Self {
        Self { logs: Mutex::default(), next: AtomicU64::default(), told: broadcast::Sender::new(BEHIND_MAX) }
    }
}

impl Log {
    /// Stores a fault in place of the app's oldest. A repetition of the previous fault only increases its count.
    pub fn fault(&self, package: &str, mut fault: Fault) {
        fault.request = cut(&fault.request, EXCERPT_BYTES_MAX);
        fault.answer = cut(&fault.answer, EXCERPT_BYTES_MAX);
        fault.message = cut(&fault.message, EXCERPT_BYTES_MAX);
        self.keep(package, |number, log| {
            let same = |(_, last): &mut (u64, Fault)| {
                (&last.user, &last.what, last.code, &last.message, &last.request)
                    == (&fault.user, &fault.what, fault.code, &fault.message, &fault.request)
            };
            if let Some((_, last)) = log.faults.pop_back_if(same) {
                fault.times = fault.times.saturating_add(last.times);
            }
            push(&mut log.faults, (number, fault.clone()), FAULTS_PER_APP_MAX);
            Entry::Fault(fault)
        });
    }

    /// Stores an event in place of the app's oldest.
    pub fn event(&self, package: &str, mut event: Event) {
        event.message = cut(&event.message, EVENT_BYTES_MAX);
        self.keep(package, |number, log| {
            push(&mut log.events, (number, event.clone()), EVENTS_PER_APP_MAX);
            Entry::Event(event)
        });
    }

    /// Stores an event in place of the last one of its kind. Followers have to poll for it.
    pub fn latest(&self, package: &str, kind: Latest, mut event: Event) {
        event.message = cut(&event.message, EVENT_BYTES_MAX);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut logs = self.logs();
        if let Some(log) = log_of(&mut logs, package) {
            match kind {
                Latest::Drawing => log.drawing = Some((number, event)),
                Latest::Transcript => log.transcript = Some((number, event)),
            }
        }
    }

    /// An app's entries in chronological order, including the last drawing and the last transcript.
    pub fn of(&self, package: &str) -> Vec<Entry> {
        let logs = self.logs();
        let Some(log) = logs.get(package) else { return Vec::new() };
        let faults = log.faults.iter().cloned().map(|(number, fault)| (number, Entry::Fault(fault)));
        let events = log.events.iter().chain(&log.drawing).chain(&log.transcript).cloned();
        let mut all: Vec<_> = faults.chain(events.map(|(number, event)| (number, Entry::Event(event)))).collect();
        all.sort_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, entry)| entry).collect()
    }

    /// An app's faults, oldest first.
    pub fn faults(&self, package: &str) -> Vec<Fault> {
        let logs = self.logs();
        logs.get(package).map(|log| log.faults.iter().map(|(_, fault)| fault.clone()).collect()).unwrap_or_default()
    }

    /// The last drawing and the last transcript of an app, with their numbers: a greater number is newer.
    pub fn latest_of(&self, package: &str) -> [Option<(u64, Event)>; 2] {
        let logs = self.logs();
        logs.get(package).map(|log| [log.drawing.clone(), log.transcript.clone()]).unwrap_or_default()
    }

    /// All entries from now on except drawings and transcripts, with package and number; `None`: the limit of followers
    /// is reached.
    pub fn follow(&self) -> Option<broadcast::Receiver<(String, u64, Entry)>> {
        (self.told.receiver_count() < FOLLOWERS_MAX).then(|| self.told.subscribe())
    }

    /// Removes an app's log, for example when the app is removed.
    pub fn forget(&self, package: &str) {
        self.logs().remove(package);
    }

    /// Removes a user's entries.
    pub fn erase(&self, user: &str) {
        for log in self.logs().values_mut() {
            log.faults.retain(|(_, fault)| fault.user.as_deref() != Some(user));
            log.events.retain(|(_, event)| event.user != user);
            log.drawing.take_if(|(_, event)| event.user == user);
            log.transcript.take_if(|(_, event)| event.user == user);
        }
    }

    fn logs(&self) -> MutexGuard<'_, BTreeMap<String, AppLog>> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, package: &str, act: impl FnOnce(u64, &mut AppLog) -> Entry) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut logs = self.logs();
        let Some(log) = log_of(&mut logs, package) else { return };
        let entry = act(number, log);
        // Sent while the logs are locked, so that followers receive entries in the order in which they are written.
        if self.told.receiver_count() > 0 {
            drop(self.told.send((package.to_owned(), number, entry)));
        }
    }
}

/// The log of an app, created if the limit permits.
fn log_of<'a>(logs: &'a mut BTreeMap<String, AppLog>, package: &str) -> Option<&'a mut AppLog> {
    if !logs.contains_key(package) && logs.len() >= APPS_MAX {
        return None;
    }
    Some(logs.entry(package.to_owned()).or_default())
}

fn push<T>(ring: &mut VecDeque<T>, entry: T, max: usize) {
    if ring.len() >= max {
        ring.pop_front();
    }
    ring.push_back(entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGE: &str = "com.example.todo";

    fn fault(at: i64) -> Fault {
        Fault {
            wall_ms: at,
            user: Some("ada".into()),
            what: "add".into(),
            code: ErrorCode::HttpError,
            message: format!("status {at}"),
            request: "x".repeat(EXCERPT_BYTES_MAX * 2),
            answer: String::new(),
            times: 1,
        }
    }

    fn event(at: i64, user: &str) -> Event {
        Event { wall_ms: at, user: user.into(), what: "add".into(), message: "y".repeat(EVENT_BYTES_MAX * 2) }
    }

    #[test]
    fn the_latest_are_kept_and_cut() {
        let log = Log::default();
        for at in 0..FAULTS_PER_APP_MAX as i64 + 3 {
            log.fault(PACKAGE, fault(at));
        }
        let kept = log.faults(PACKAGE);
        assert_eq!((kept.len(), kept[0].wall_ms), (FAULTS_PER_APP_MAX, 3));
        assert!(kept.iter().all(|fault| fault.request.len() <= EXCERPT_BYTES_MAX));
        assert!(log.of("com.example.other").is_empty());
        log.forget(PACKAGE);
        assert!(log.of(PACKAGE).is_empty());
    }

    #[test]
    fn many_events_push_no_fault_out_and_all_are_told_in_their_order() {
        let log = Log::default();
        log.event(PACKAGE, event(9, "ada"));
        log.fault(PACKAGE, fault(1));
        for at in 0..EVENTS_PER_APP_MAX as i64 + 1 {
            log.event(PACKAGE, event(at, "ada"));
            log.latest(PACKAGE, Latest::Drawing, event(at, "ada"));
        }
        let kept = log.of(PACKAGE);
        assert_eq!(kept.len(), 1 + EVENTS_PER_APP_MAX + 1);
        assert_eq!(kept[0], Entry::Fault(log.faults(PACKAGE)[0].clone()));
        let times = kept[1..].iter().map(|entry| match entry {
            Entry::Event(event) => event.wall_ms,
            Entry::Fault(fault) => panic!("{fault:?}"),
        });
        // The last drawing comes after the last event.
        assert_eq!(times.collect::<Vec<_>>(), (1..=64).chain([64]).collect::<Vec<_>>());
    }

    #[test]
    fn the_same_fault_again_and_again_is_one() {
        let log = Log::default();
        for at in [1, 1, 2, 1] {
            log.fault(PACKAGE, fault(at));
        }
        log.fault(PACKAGE, Fault { wall_ms: 7, ..log.faults(PACKAGE)[2].clone() });
        let kept: Vec<(i64, u32)> = log.faults(PACKAGE).iter().map(|fault| (fault.wall_ms, fault.times)).collect();
        assert_eq!(kept, [(1, 2), (2, 1), (7, 2)]);
    }

    #[test]
    fn a_fault_of_nobody_has_the_sent_form_that_it_always_had() {
        let of_nobody = Fault { user: None, ..fault(1) };
        let sent = serde_json::to_value(&of_nobody).unwrap();
        assert_eq!(sent["user"], "");
        assert_eq!(serde_json::from_value::<Fault>(sent).unwrap(), of_nobody);
        assert_eq!(serde_json::to_value(fault(1)).unwrap()["user"], "ada");
    }

    #[test]
    fn a_user_who_is_erased_is_gone_from_it() {
        let log = Log::default();
        log.fault(PACKAGE, fault(1));
        for user in ["ada", "bob"] {
            log.event(PACKAGE, event(2, user));
        }
        log.latest(PACKAGE, Latest::Transcript, event(3, "ada"));
        log.fault(PACKAGE, Fault { user: None, ..fault(4) });
        log.erase("ada");
        let kept = log.of(PACKAGE);
        let [Entry::Event(event), Entry::Fault(fault)] = kept.as_slice() else { panic!("{kept:?}") };
        assert_eq!((event.user.as_str(), fault.user.as_ref()), ("bob", None));
    }

    #[test]
    fn who_follows_is_told_and_there_are_not_too_many() {
        let log = Log::default();
        let mut followers: Vec<_> = (0..FOLLOWERS_MAX).map(|_| log.follow().unwrap()).collect();
        assert!(log.follow().is_none());
        log.event(PACKAGE, event(2, "ada"));
        log.latest(PACKAGE, Latest::Drawing, event(3, "ada"));
        let (package, _, entry) = followers[0].try_recv().unwrap();
        assert!(package == PACKAGE && matches!(entry, Entry::Event(event) if event.wall_ms == 2));
        assert!(followers[0].try_recv().is_err(), "drawings are looked for");
        assert!(log.latest_of(PACKAGE)[0].as_ref().unwrap().0 > 0 && log.latest_of(PACKAGE)[1].is_none());
    }

    #[test]
    fn no_more_apps_are_kept_than_the_limit() {
        let log = Log::default();
        for at in 0..APPS_MAX + 1 {
            log.fault(&format!("app{at}"), fault(0));
        }
        assert!(log.of(&format!("app{APPS_MAX}")).is_empty());
        assert_eq!(log.of("app0").len(), 1);
    }
}
