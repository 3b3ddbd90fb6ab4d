//! A connection that is opened ahead of its request: name, TCP and TLS take two or three round trips, and the wearer is
//! still speaking.
//!
//! The client opens connections when a request needs one, and has no way to open one without. So there are two clients
//! with the same settings round the same connector: the one that opens ahead is given no connection at all, since its
//! connector puts it aside here and fails; nothing is ever sent by it. The connector of the other one takes what lies
//! here before it makes a new one.

use std::{
    any::Any,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use thiserror::Error;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::AHEAD_MAX;

/// A connection that was in use less than this ago is still open, mostly: none is opened beside it.
const STILL_OPEN: Duration = Duration::from_secs(20);

/// The connection that waits, at most one, and what is known of the others.
#[derive(Clone, Default)]
pub(super) struct Ahead(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Its type has no name outside of the client's crate.
    spare: Option<(Instant, Box<dyn Any + Send>)>,
    opening: bool,
    used: Option<Instant>,
}

/// What the client that opens ahead is told in place of a connection.
#[derive(Debug, Error)]
#[error("the connection is kept for the next request")]
struct PutAside;

impl Ahead {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a connection is worth opening; who is told so opens one, and says [`Ahead::opened`].
    pub(super) fn wants_one(&self) -> bool {
        let mut state = self.state();
        let in_use = state.used.is_some_and(|used| used.elapsed() < STILL_OPEN);
        let wanted = !state.opening && state.spare.is_none() && !in_use;
        state.opening |= wanted;
        wanted
    }

    /// It was opened, or could not be: whether one lies here.
    pub(super) fn opened(&self) -> bool {
        let mut state = self.state();
        state.opening = false;
        state.spare.is_some()
    }

    /// A request has used a connection until now.
    pub(super) fn used(&self) {
        self.state().used = Some(Instant::now());
    }

    /// Closes a connection that nobody has taken in its time.
    pub(super) fn close_unused(&self) {
        let unused = self.state().spare.take_if(|(since, _)| since.elapsed() >= AHEAD_MAX);
        drop(unused);
    }

    fn take<C: 'static>(&self) -> Option<C> {
        let (since, spare) = self.state().spare.take()?;
        let fresh = since.elapsed() < AHEAD_MAX;
        fresh.then(|| spare.downcast().ok()).flatten().map(|spare| *spare)
    }

    /// The side of the client that opens ahead.
    pub(super) fn puts_aside(&self) -> Side {
        Side { ahead: self.clone(), takes: false }
    }

    /// The side of the client that asks.
    pub(super) fn takes(&self) -> Side {
        Side { ahead: self.clone(), takes: true }
    }
}

/// What is laid round a client's connector.
#[derive(Clone)]
pub(super) struct Side {
    ahead: Ahead,
    takes: bool,
}

impl<S> Layer<S> for Side {
    type Service = Connector<S>;

    fn layer(&self, inner: S) -> Connector<S> {
        Connector { inner, side: self.clone() }
    }
}

/// A connector with a place for one connection beside it.
#[derive(Clone)]
pub(super) struct Connector<S> {
    inner: S,
    side: Side,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl<S, R> Service<R> for Connector<S>
where
    S: Service<R, Error = BoxError>,
    S::Response: Send + 'static,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        if self.side.takes
            && let Some(spare) = self.side.ahead.take()
        {
            return Box::pin(std::future::ready(Ok(spare)));
        }
        let (connecting, side) = (self.inner.call(request), self.side.clone());
        Box::pin(async move {
            let connection = connecting.await?;
            if side.takes {
                return Ok(connection);
            }
            side.ahead.state().spare = Some((Instant::now(), Box::new(connection)));
            Err(PutAside.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};

    use super::*;

    /// Gives out numbers for connections.
    #[derive(Clone, Default)]
    struct Counter(Arc<Mutex<u32>>);

    impl Service<()> for Counter {
        type Response = u32;
        type Error = BoxError;
        type Future = Ready<Result<u32, BoxError>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, (): ()) -> Self::Future {
            let mut count = self.0.lock().expect("unpoisoned");
            *count += 1;
            ready(Ok(*count))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_connection_waits_for_a_while_and_is_taken_once() {
        let (ahead, counter) = (Ahead::default(), Counter::default());
        let mut opener = ahead.puts_aside().layer(counter.clone());
        let mut client = ahead.takes().layer(counter);
        assert!(ahead.wants_one() && !ahead.wants_one(), "one is being opened");
        assert!(opener.call(()).await.is_err(), "nobody may send anything on it");
        assert!(ahead.opened() && !ahead.wants_one(), "one waits");
        assert_eq!(client.call(()).await.expect("the first"), 1);
        assert_eq!(client.call(()).await.expect("a new one"), 2);
        // Nobody comes for it: too old to be used, then closed.
        assert!(ahead.wants_one());
        drop(opener.call(()).await);
        ahead.opened();
        tokio::time::advance(AHEAD_MAX - Duration::from_millis(1)).await;
        ahead.close_unused();
        assert!(ahead.state().spare.is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(client.call(()).await.expect("a new one"), 4);
        assert!(ahead.state().spare.is_none());
        // What was in use a moment ago is open still.
        ahead.used();
        assert!(!ahead.wants_one());
        tokio::time::advance(STILL_OPEN).await;
        assert!(ahead.wants_one());
        assert!(!ahead.opened(), "the server was not reached");
    }
}
