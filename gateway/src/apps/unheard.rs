//! Sound that an app has asked for and that has not ended: where the process dies first, the app is told on its next
//! socket that it was not heard to its end. Its words are not stored, and nobody hears them late.

use std::{collections::hash_map::RandomState, hash::BuildHasher as _};

use serde::{Deserialize, Serialize};

use crate::{
    clock,
    store::{Kind, Store, Write},
};

/// After this long no app waits for an answer any more: SDKs give up after one minute.
const TOLD_MS_MAX: i64 = 5 * 60 * 1_000;
/// Requests that are read for one app: more than it may have open.
const READ_MAX: usize = 256;

/// What the app is told.
pub(super) const RESTARTED: &str = "the gateway was restarted before it was heard to its end";

/// The stored form of a request.
#[derive(Serialize, Deserialize)]
struct Row {
    /// The run of the gateway that has carried it out.
    run: u64,
    wall_ms: i64,
}

/// Requests for sound whose end is awaited.
pub(super) struct Unheard {
    store: Store,
    run: u64,
}

impl Unheard {
    pub(super) fn new(store: Store) -> Self {
        Self { store, run: RandomState::new().hash_one(clock::wall_ms()) }
    }

    /// An app has asked for sound.
    pub(super) fn begun(&self, user: &str, package: &str, request: &str) {
        let row = Row { run: self.run, wall_ms: clock::wall_ms() };
        let (kind, owner, key) = (Kind::AppSounds, user.to_owned(), key(package, request));
        self.submit(Write::PutRow { kind, owner, key, value: serde_json::to_vec(&row).unwrap_or_default() });
    }

    /// The app was told how it ended.
    pub(super) fn ended(&self, user: &str, package: &str, request: &str) {
        self.remove(user, key(package, request));
    }

    /// What an app had asked for in a run that died. It is no longer stored.
    pub(super) async fn take(&self, user: &str, package: &str) -> Vec<String> {
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
    use super::*;

    #[tokio::test]
    async fn the_next_run_learns_once_what_had_not_ended() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let first = Unheard::new(store.clone());
        for request in ["heard", "cut", "waits"] {
            first.begun("ann", "a.b", request);
        }
        first.begun("ann", "a.bc", "another's");
        first.begun("bob", "a.b", "of bob");
        first.ended("ann", "a.b", "heard");
        store.settled().await.unwrap();
        assert!(first.take("ann", "a.b").await.is_empty(), "this run tells by itself");
        let second = Unheard::new(store.clone());
        assert_eq!(second.take("ann", "a.b").await, ["cut", "waits"]);
        assert!(second.take("ann", "a.b").await.is_empty());
        assert_eq!(second.take("ann", "a.bc").await, ["another's"]);
        assert_eq!(second.take("bob", "a.b").await, ["of bob"]);
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
        assert!(Unheard::new(store.clone()).take("ann", "a.b").await.is_empty());
        assert!(store.disk().rows(Kind::AppSounds, "ann", b"", 9).unwrap().is_empty());
    }
}
