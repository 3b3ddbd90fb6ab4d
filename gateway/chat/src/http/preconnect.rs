//! Preconnect: a connection is opened before its request. Name resolution, TCP and TLS take two or three round trips,
//! and the wearer is still speaking.
//!
//! The HTTP client opens connections only for requests. So there are two clients with the same settings around the same
//! connector. The connector of the opening client stores its connection here and then fails, so that this client never
//! sends anything. The connector of the requesting client takes the stored connection before it opens a new one.

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

/// A connection used within this time is probably still open, so no other is opened.
const STILL_OPEN: Duration = Duration::from_secs(20);

/// The stored connection, at most one, and the state of the others.
#[derive(Clone, Default)]
pub(super) struct Preconnect(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// `Any`, because its type is private to the client's crate.
    spare: Option<(Instant, Box<dyn Any + Send>)>,
    opening: bool,
    used: Option<Instant>,
}

/// Error that the opening client gets in place of a connection.
#[derive(Debug, Error)]
#[error("the connection is kept for the next request")]
struct PutAside;

impl Preconnect {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a connection should be opened. If true, the caller opens one and then calls [`Preconnect::opened`].
    pub(super) fn wants_one(&self) -> bool {
        let mut state = self.state();
        let in_use = state.used.is_some_and(|used| used.elapsed() < STILL_OPEN);
        let wanted = !state.opening && state.spare.is_none() && !in_use;
        state.opening |= wanted;
        wanted
    }

    /// Ends an attempt to open a connection; returns whether one is stored.
    pub(super) fn opened(&self) -> bool {
        let mut state = self.state();
        state.opening = false;
        state.spare.is_some()
    }

    /// Notes that a request used a connection until now.
    pub(super) fn used(&self) {
        self.state().used = Some(Instant::now());
    }

    /// Closes a stored connection that was not taken in time.
    pub(super) fn close_unused(&self) {
        let unused = self.state().spare.take_if(|(since, _)| since.elapsed() >= AHEAD_MAX);
        drop(unused);
    }

    fn take<C: 'static>(&self) -> Option<C> {
        let (since, spare) = self.state().spare.take()?;
        let fresh = since.elapsed() < AHEAD_MAX;
        fresh.then(|| spare.downcast().ok()).flatten().map(|spare| *spare)
    }

    /// The wrapper for the opening client.
    pub(super) fn puts_aside(&self) -> Side {
        Side { preconnect: self.clone(), takes: false }
    }

    /// The wrapper for the requesting client.
    pub(super) fn takes(&self) -> Side {
        Side { preconnect: self.clone(), takes: true }
    }
}

/// A layer around a client's connector.
#[derive(Clone)]
pub(super) struct Side {
    preconnect: Preconnect,
    takes: bool,
}

impl<S> Layer<S> for Side {
    type Service = Connector<S>;

    fn layer(&self, inner: S) -> Connector<S> {
        Connector { inner, side: self.clone() }
    }
}

/// A connector with storage for one connection.
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
            && let Some(spare) = self.side.preconnect.take()
        {
            return Box::pin(std::future::ready(Ok(spare)));
        }
        let (connecting, side) = (self.inner.call(request), self.side.clone());
        Box::pin(async move {
            let connection = connecting.await?;
            if side.takes {
                return Ok(connection);
            }
            side.preconnect.state().spare = Some((Instant::now(), Box::new(connection)));
            Err(PutAside.into())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Ready, ready};

    use super::*;

    /// Numbers the connections.
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
        let (preconnect, counter) = (Preconnect::default(), Counter::default());
        let mut opener = preconnect.puts_aside().layer(counter.clone());
        let mut client = preconnect.takes().layer(counter);
        assert!(preconnect.wants_one() && !preconnect.wants_one(), "one is being opened");
        assert!(opener.call(()).await.is_err(), "nobody may send anything on it");
        assert!(preconnect.opened() && !preconnect.wants_one(), "one waits");
        assert_eq!(client.call(()).await.expect("the first"), 1);
        assert_eq!(client.call(()).await.expect("a new one"), 2);
        // Not taken: first too old to be used, then closed.
        assert!(preconnect.wants_one());
        drop(opener.call(()).await);
        preconnect.opened();
        tokio::time::advance(AHEAD_MAX - Duration::from_millis(1)).await;
        preconnect.close_unused();
        assert!(preconnect.state().spare.is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(client.call(()).await.expect("a new one"), 4);
        assert!(preconnect.state().spare.is_none());
        // A connection used a moment ago is still open.
        preconnect.used();
        assert!(!preconnect.wants_one());
        tokio::time::advance(STILL_OPEN).await;
        assert!(preconnect.wants_one());
        assert!(!preconnect.opened(), "the server was not reached");
    }
}
