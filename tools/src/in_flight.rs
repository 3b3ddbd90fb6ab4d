//! Work in progress by user, so that it can be ended: when all data of a user are erased, nothing that began earlier
//! may write anything afterwards.
//!
//! Ending does not wait for the work to complete: a future that runs within a lease is dropped at its current await
//! point, which takes as long as until the task is polled next. Something that lasts longer than one piece of work,
//! such as a session of glasses, holds a session lease. After an erasure, a session lease from before it cannot
//! begin any more work.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};

/// Work in progress of all users; one shared instance.
#[derive(Clone, Default)]
pub struct InFlight(Arc<Mutex<BTreeMap<String, Arc<Flight>>>>);

/// Work in progress of one user, until it is ended.
#[derive(Debug, Default)]
struct Flight {
    ended: CancellationToken,
    open: TaskTracker,
}

/// Held by a session: it can begin work until the next erasure of its user.
#[derive(Clone, Debug)]
pub struct SessionLease(Arc<Flight>);

/// A piece of work in progress, as long as this is held.
pub struct Lease {
    flight: Arc<Flight>,
    _open: TaskTrackerToken,
}

impl InFlight {
    /// Begins work for a user; `None` while all data of the user are being erased.
    pub fn enter(&self, user: &str) -> Option<Lease> {
        self.session(user)?.enter()
    }

    /// For a session, which begins pieces of work for a user one after the other; `None` while all data of the user are
    /// being erased.
    pub fn session(&self, user: &str) -> Option<SessionLease> {
        let mut flights = self.flights();
        if !flights.contains_key(user) {
            flights.retain(|_, flight| flight.ended.is_cancelled() || Arc::strong_count(flight) > 1);
        }
        let flight = flights.entry(user.to_owned()).or_default();
        (!flight.ended.is_cancelled()).then(|| SessionLease(flight.clone()))
    }

    /// Ends all work of a user and lets none begin until [`admit`](Self::admit). Returns when all leases are dropped.
    pub async fn end(&self, user: &str) {
        let flight = self.flights().entry(user.to_owned()).or_default().clone();
        flight.ended.cancel();
        flight.open.close();
        flight.open.wait().await;
    }

    /// Allows the user to begin work again.
    pub fn admit(&self, user: &str) {
        self.flights().remove(user);
    }

    /// Leases of all users that are held, those of sessions included.
    pub fn held(&self) -> usize {
        self.flights().values().map(|flight| Arc::strong_count(flight) - 1).sum()
    }

    fn flights(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Flight>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionLease {
    /// Begins work; `None` once an erasure has begun.
    pub fn enter(&self) -> Option<Lease> {
        // The token comes first: a concurrent `end` either waits for it or is seen by the check below.
        let lease = Lease { flight: self.0.clone(), _open: self.0.open.token() };
        (!lease.is_ended()).then_some(lease)
    }

    /// Returns at the next erasure.
    pub async fn ended(&self) {
        self.0.ended.cancelled().await;
    }
}

impl Lease {
    /// Whether nothing may be written any more.
    pub fn is_ended(&self) -> bool {
        self.flight.ended.is_cancelled()
    }

    /// The output of the work; `None` if the work was ended and dropped.
    pub async fn within<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.flight.ended.run_until_cancelled(work).await
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, pin::pin, task::Poll};

    use futures_util::poll;

    use super::*;

    #[tokio::test]
    async fn what_is_under_way_is_dropped_and_waited_for() {
        let all = InFlight::default();
        let (one, other) = (all.enter("ann").unwrap(), all.enter("bob").unwrap());
        assert_eq!(all.held(), 2);
        let mut work = Box::pin(one.within(pending::<()>()));
        assert!(poll!(&mut work).is_pending());
        let mut ending = pin!(all.end("ann"));
        assert!(poll!(&mut ending).is_pending(), "the lease is held");
        assert!(all.enter("ann").is_none(), "nothing begins meanwhile");
        assert_eq!(poll!(&mut work), Poll::Ready(None));
        assert!(one.is_ended() && !other.is_ended());
        drop(work);
        drop(one);
        ending.await;
        assert!(all.enter("ann").is_none());
        all.admit("ann");
        assert!(all.enter("ann").is_some_and(|lease| !lease.is_ended()));
        assert_eq!(other.within(async { 3 }).await, Some(3));
    }

    #[tokio::test]
    async fn who_was_there_before_an_erasure_begins_nothing_after_it() {
        let all = InFlight::default();
        let glasses = all.session("ann").unwrap();
        // Nothing is in progress; entries of other users must not cause this one to be forgotten.
        drop(all.enter("bob"));
        assert!(glasses.enter().is_some_and(|lease| !lease.is_ended()));
        all.end("ann").await;
        assert!(glasses.enter().is_none() && all.session("ann").is_none());
        all.admit("ann");
        glasses.ended().await;
        assert!(glasses.enter().is_none(), "it is of the time before");
        assert!(all.session("ann").is_some_and(|session| session.enter().is_some()));
    }

    #[tokio::test]
    async fn who_has_nothing_under_way_is_forgotten() {
        let all = InFlight::default();
        for number in 0..100 {
            drop(all.enter(&format!("user {number}")));
        }
        assert_eq!(all.flights().len(), 1);
        assert_eq!(all.held(), 0);
        all.end("ann").await;
        drop(all.enter("bob"));
        assert!(all.enter("ann").is_none(), "but not who is being erased");
    }
}
