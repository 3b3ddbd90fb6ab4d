//! Sounds and photos that an app has asked for, until the app was told how they ended. Where its socket is lost first, it is
//! told on its next socket, once; of sounds also where the process is. The words are not stored, and nobody hears them late.

use std::{
    collections::{BTreeMap, VecDeque, hash_map::RandomState},
    hash::BuildHasher as _,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    message::{RequestOutcome, ToApp},
    wire,
};
use crate::{
    clock,
    store::{Kind, Store, Write},
};

/// After this long no app waits for an answer any more: SDKs give up after one minute.
const TOLD_MS_MAX: i64 = 5 * 60 * 1_000;
/// Requests that are read for one app: more than it may have open.
const READ_MAX: usize = 256;
/// Answers that wait for a socket of one app: twice the requests of one socket.
const KEPT_MAX: usize = 16;
/// How many of these may have a photo in them.
const PHOTOS_MAX: usize = 4;

/// What the app is told of a request of a run that died.
const RESTARTED: &str = "the gateway was restarted before it was heard to its end";

/// The stored form of a request.
#[derive(Serialize, Deserialize)]
struct Row {
    /// The run of the gateway that has carried it out.
    run: u64,
    wall_ms: i64,
}

/// An app that has, or had, a socket.
#[derive(Default)]
struct Place {
    /// Its latest socket, until it is lost.
    socket: Option<mpsc::Sender<ToApp>>,
    /// Answers for which there was none, oldest first.
    kept: VecDeque<RequestOutcome>,
}

impl Place {
    /// Drops the photos that are too old, and of the others all but the latest.
    fn drop_photos(&mut self, photos_max: usize) {
        let photos = self.kept.iter().filter(|outcome| outcome.is_photo()).count();
        let mut surplus = photos.saturating_sub(photos_max);
        self.kept.retain(|outcome| {
            let is_surplus = outcome.is_photo() && surplus > 0;
            surplus -= usize::from(is_surplus);
            !is_surplus && (!outcome.is_photo() || outcome.is_new())
        });
    }
}

/// Apps, by user and package.
type Places = BTreeMap<(String, String), Place>;

/// Requests of whose end the app was not told yet.
pub(super) struct PendingOutcomes {
    store: Store,
    run: u64,
    places: Mutex<Places>,
}

impl RequestOutcome {
    /// Whether the app may still wait for it.
    fn is_new(&self) -> bool {
        clock::wall_ms().saturating_sub(self.wall_ms) <= TOLD_MS_MAX
    }

    /// Only sounds are stored, by the numbers of their requests.
    fn is_photo(&self) -> bool {
        self.request.is_none()
    }
}

impl PendingOutcomes {
    pub(super) fn new(store: Store) -> Self {
        Self { store, run: RandomState::new().hash_one(clock::wall_ms()), places: Mutex::default() }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An app has asked for sound.
    pub(super) fn begun(&self, user: &str, package: &str, request: &str) {
        let row = Row { run: self.run, wall_ms: clock::wall_ms() };
        let (kind, owner, key) = (Kind::AppSounds, user.to_owned(), key(package, request));
        self.submit(Write::PutRow { kind, owner, key, value: serde_json::to_vec(&row).unwrap_or_default() });
    }

    /// A sound or a photo has ended, which the app is told with `message`: on the socket of its request, or else on the app's
    /// present or next one. `request`: that of a sound.
    pub(super) async fn ended(
        &self,
        user: &str,
        package: &str,
        socket: &mpsc::Sender<ToApp>,
        request: Option<String>,
        message: Value,
    ) {
        let outcome = RequestOutcome { request, message, wall_ms: clock::wall_ms() };
        if let Err(mpsc::error::SendError(ToApp::RequestOutcome(outcome))) =
            socket.send(ToApp::RequestOutcome(outcome)).await
        {
            self.keep(user, package, outcome);
        }
    }

    /// The app was told how it ended.
    pub(super) fn told(&self, user: &str, package: &str, request: Option<&str>) {
        if let Some(request) = request {
            self.remove(user, key(package, request));
        }
    }

    /// An app has another socket. Returns what it is told first: what ended while it had none, and what it had asked for in a
    /// run that died.
    pub(super) async fn joined(&self, user: &str, package: &str, socket: mpsc::Sender<ToApp>) -> Vec<RequestOutcome> {
        let mut outcomes = {
            let mut places = self.places();
            let place = places.entry((user.to_owned(), package.to_owned())).or_default();
            place.socket = Some(socket);
            mem::take(&mut place.kept)
        };
        outcomes.retain(RequestOutcome::is_new);
        for request in self.take(user, package).await {
            let message = wire::audio_play_response(&request, Err(RESTARTED));
            outcomes.push_back(RequestOutcome { request: Some(request), message, wall_ms: clock::wall_ms() });
        }
        outcomes.into()
    }

    /// A socket is gone, which has not sent these.
    pub(super) fn left(&self, user: &str, package: &str, socket: &mpsc::Sender<ToApp>, unsent: Vec<RequestOutcome>) {
        if let Some(place) = self.places().get_mut(&(user.to_owned(), package.to_owned())) {
            place.socket.take_if(|latest| latest.same_channel(socket));
        }
        unsent.into_iter().for_each(|outcome| self.keep(user, package, outcome));
    }

    /// An app was stopped, or may not see any more: it gets no photos of before.
    pub(super) fn drop_photos(&self, user: &str, package: &str) {
        if let Some(place) = self.places().get_mut(&(user.to_owned(), package.to_owned())) {
            place.drop_photos(0);
        }
    }

    /// An app is no longer installed.
    pub(super) async fn forget(&self, user: &str, package: &str) {
        let place = self.places().remove(&(user.to_owned(), package.to_owned()));
        let kept = place.into_iter().flat_map(|place| place.kept);
        kept.for_each(|outcome| self.told(user, package, outcome.request.as_deref()));
        drop(self.take(user, package).await);
    }

    /// Everything of a user is erased.
    pub(super) fn erase(&self, user: &str) {
        self.places().retain(|(of, _), _| of != user);
    }

    /// Passes an answer to the app's present socket, or keeps it for the next one. An app that is gone waits for none.
    fn keep(&self, user: &str, package: &str, outcome: RequestOutcome) {
        let mut places = self.places();
        // Of apps that do not come back, too: nobody else would drop theirs.
        places.values_mut().for_each(|place| place.drop_photos(PHOTOS_MAX));
        let Some(place) = places.get_mut(&(user.to_owned(), package.to_owned())) else {
            drop(places);
            return self.told(user, package, outcome.request.as_deref());
        };
        let unsent = match &place.socket {
            Some(socket) => socket.try_send(ToApp::RequestOutcome(outcome)).map_err(|error| error.into_inner()),
            None => Err(ToApp::RequestOutcome(outcome)),
        };
        if let Err(ToApp::RequestOutcome(outcome)) = unsent {
            place.kept.push_back(outcome);
            place.drop_photos(PHOTOS_MAX);
            let oldest = if place.kept.len() > KEPT_MAX { place.kept.pop_front() } else { None };
            drop(places);
            oldest.iter().for_each(|outcome| self.told(user, package, outcome.request.as_deref()));
        }
    }

    /// What an app had asked for in a run that died. It is no longer stored.
    async fn take(&self, user: &str, package: &str) -> Vec<String> {
        let prefix = key(package, "");
        let rows = self.store.disk().rows(Kind::AppSounds, user, &prefix, READ_MAX);
        let rows = rows.inspect_err(|error| tracing::warn!(%error, "what an app had asked for is not known"));
        let (mut requests, mut removed) = (Vec::new(), false);
        for (key, value) in rows.unwrap_or_default() {
            let row = serde_json::from_slice::<Row>(&value).ok();
            if row.as_ref().is_some_and(|row| row.run == self.run) {
                continue;
            }
            let request =
                key.strip_prefix(prefix.as_slice()).and_then(|request| String::from_utf8(request.to_vec()).ok());
            let is_new = row.is_some_and(|row| clock::wall_ms().saturating_sub(row.wall_ms) <= TOLD_MS_MAX);
            requests.extend(request.filter(|_| is_new));
            self.remove(user, key);
            removed = true;
        }
        // Otherwise the app's next socket would find them again.
        if removed && let Err(error) = self.store.settled().await {
            tracing::debug!(%error, "an app may be told of a restart twice");
        }
        requests
    }

    fn remove(&self, user: &str, key: Vec<u8>) {
        self.submit(Write::RemoveRow { kind: Kind::AppSounds, owner: user.to_owned(), key });
    }

    fn submit(&self, write: Write) {
        let submitted = self.store.submit(write, |written| {
            if let Err(error) = written {
                tracing::debug!(%error, "an app would not be told of a restart");
            }
        });
        if let Err(error) = submitted {
            tracing::debug!(%error, "an app would not be told of a restart");
        }
    }
}

fn key(package: &str, request: &str) -> Vec<u8> {
    [package.as_bytes(), b"\0", request.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn socket() -> (mpsc::Sender<ToApp>, mpsc::Receiver<ToApp>) {
        mpsc::channel(4)
    }

    fn requests(outcomes: Vec<RequestOutcome>) -> Vec<String> {
        outcomes.into_iter().filter_map(|outcome| outcome.request).collect()
    }

    fn rows(store: &Store) -> usize {
        store.disk().rows(Kind::AppSounds, "ann", b"", 9).unwrap().len()
    }

    async fn joined(pending: &PendingOutcomes, user: &str, package: &str) -> Vec<String> {
        requests(pending.joined(user, package, socket().0).await)
    }

    #[tokio::test]
    async fn the_next_run_learns_once_what_had_not_ended() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let first = PendingOutcomes::new(store.clone());
        for request in ["heard", "cut", "waits"] {
            first.begun("ann", "a.b", request);
        }
        first.begun("ann", "a.bc", "another's");
        first.begun("bob", "a.b", "of bob");
        first.told("ann", "a.b", Some("heard"));
        store.settled().await.unwrap();
        assert!(joined(&first, "ann", "a.b").await.is_empty(), "this run tells by itself");
        let second = PendingOutcomes::new(store.clone());
        assert_eq!(joined(&second, "ann", "a.b").await, ["cut", "waits"]);
        assert!(joined(&second, "ann", "a.b").await.is_empty());
        assert_eq!(joined(&second, "ann", "a.bc").await, ["another's"]);
        assert_eq!(joined(&second, "bob", "a.b").await, ["of bob"]);
    }

    #[tokio::test]
    async fn what_ends_without_a_socket_is_told_on_the_next_one_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let pending = PendingOutcomes::new(store.clone());
        let (first, mut at_first) = socket();
        assert!(pending.joined("ann", "a.b", first.clone()).await.is_empty());
        for request in ["one", "two", "three", "four"] {
            pending.begun("ann", "a.b", request);
        }
        let ended = async |request: &str| {
            pending.ended("ann", "a.b", &first, Some(request.to_owned()), json!({"requestId": request})).await;
        };
        ended("one").await;
        // It is in the queue of the socket that breaks.
        at_first.close();
        let Some(ToApp::RequestOutcome(one)) = at_first.recv().await else { panic!("an answer") };
        pending.left("ann", "a.b", &first, vec![one]);
        drop(at_first);
        ended("two").await;
        let (second, mut at_second) = socket();
        let told = pending.joined("ann", "a.b", second.clone()).await;
        assert_eq!(told[1].message, json!({"requestId": "two"}));
        assert_eq!(requests(told), ["one", "two"]);
        // While there is another one, it is told there.
        ended("three").await;
        let Some(ToApp::RequestOutcome(three)) = at_second.recv().await else { panic!("an answer") };
        assert_eq!(three.request.as_deref(), Some("three"));
        // The older one's end changes nothing.
        pending.left("ann", "a.b", &first, Vec::new());
        for request in ["one", "two", "three"] {
            pending.told("ann", "a.b", Some(request));
        }
        store.settled().await.unwrap();
        assert_eq!(rows(&store), 1, "the one that has not ended");
        pending.left("ann", "a.b", &second, Vec::new());
        drop(at_second);
        // An app that is no longer there is told nothing.
        pending.forget("ann", "a.b").await;
        ended("four").await;
        store.settled().await.unwrap();
        assert_eq!(rows(&store), 0);
        assert!(joined(&pending, "ann", "a.b").await.is_empty());
    }

    #[tokio::test]
    async fn what_is_kept_for_a_socket_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let pending = PendingOutcomes::new(store.clone());
        let (first, at_first) = socket();
        pending.joined("ann", "a.b", first.clone()).await;
        drop(at_first);
        pending.left("ann", "a.b", &first, Vec::new());
        for number in 0..=KEPT_MAX {
            pending.ended("ann", "a.b", &first, Some(number.to_string()), Value::Null).await;
        }
        let told = joined(&pending, "ann", "a.b").await;
        assert_eq!((told.len(), told[0].as_str()), (KEPT_MAX, "1"));
        pending.forget("ann", "a.b").await;
        assert!(pending.places().is_empty());
    }

    #[tokio::test]
    async fn a_photo_waits_for_the_next_socket_and_is_not_stored() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let pending = PendingOutcomes::new(store.clone());
        let (first, at_first) = socket();
        pending.joined("ann", "a.b", first.clone()).await;
        drop(at_first);
        pending.left("ann", "a.b", &first, Vec::new());
        // A sound of the same number is still to be told.
        pending.begun("ann", "a.b", "1");
        pending.ended("ann", "a.b", &first, None, json!({"requestId": "1"})).await;
        let told = pending.joined("ann", "a.b", first).await;
        assert_eq!(told.iter().map(|outcome| &outcome.message).collect::<Vec<_>>(), [&json!({"requestId": "1"})]);
        told.iter().for_each(|outcome| pending.told("ann", "a.b", outcome.request.as_deref()));
        store.settled().await.unwrap();
        assert_eq!(rows(&store), 1);
    }

    #[tokio::test]
    async fn few_photos_wait_and_none_for_an_app_that_was_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let pending = PendingOutcomes::new(Store::open(folder.path(), 16).unwrap());
        let (first, at_first) = socket();
        pending.joined("ann", "a.b", first.clone()).await;
        drop(at_first);
        pending.left("ann", "a.b", &first, Vec::new());
        let photos = async |count: usize| {
            for photo in 0..count {
                pending.ended("ann", "a.b", &first, None, json!(photo)).await;
            }
            pending.ended("ann", "a.b", &first, Some("sound".into()), json!("sound")).await;
        };
        photos(PHOTOS_MAX + 2).await;
        let told: Vec<Value> =
            pending.joined("ann", "a.b", first.clone()).await.into_iter().map(|outcome| outcome.message).collect();
        assert_eq!(told, [json!(2), json!(3), json!(4), json!(5), json!("sound")]);
        pending.left("ann", "a.b", &first, Vec::new());
        photos(2).await;
        pending.drop_photos("ann", "a.b");
        assert_eq!(joined(&pending, "ann", "a.b").await, ["sound"]);
    }

    #[tokio::test]
    async fn what_is_old_or_cannot_be_read_is_removed_without_a_word() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let old = serde_json::to_vec(&Row { run: 1, wall_ms: clock::wall_ms() - TOLD_MS_MAX - 1 }).unwrap();
        for (request, value) in [("old", old), ("garbage", b"{".to_vec())] {
            let (kind, owner, key) = (Kind::AppSounds, "ann".to_owned(), key("a.b", request));
            store.write(Write::PutRow { kind, owner, key, value }).await.unwrap();
        }
        assert!(joined(&PendingOutcomes::new(store.clone()), "ann", "a.b").await.is_empty());
        assert!(rows(&store) == 0);
    }
}
