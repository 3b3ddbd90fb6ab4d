//! Rate limit of what a peer sends: two token buckets that refill over two seconds, for frames and for bytes as they are
//! received, from the first one on.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::LinkError;
use crate::{clock, limits::Traffic};

/// Seconds of the allowed rate that may arrive in one burst: a replay after a lost link.
const BURST_S: u64 = 2;
/// What a peer may send before it is admitted: a hello, a proof, some kinds that only a later version knows, and then a
/// heartbeat now and then.
const NEWCOMER: Traffic = Traffic { frames_per_s_max: 8, bytes_per_s_max: 8 * 1024 };

/// One peer's allowance. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Meter(Arc<Mutex<Buckets>>);

struct Buckets {
    frames: Bucket,
    bytes: Bucket,
    at_us: u64,
}

struct Bucket {
    /// In millionths, so that a refill of microseconds is exact.
    level: u64,
    per_s: u64,
}

impl Bucket {
    fn new(per_s: u32) -> Self {
        let per_s = u64::from(per_s);
        Self { level: per_s * BURST_S * 1_000_000, per_s }
    }

    fn refill(&mut self, elapsed_us: u64) {
        let full = self.per_s * BURST_S * 1_000_000;
        self.level = self.level.saturating_add(elapsed_us.saturating_mul(self.per_s)).min(full);
    }

    fn take(&mut self, amount: u64) -> bool {
        let cost = amount.saturating_mul(1_000_000);
        let enough = self.level >= cost;
        self.level = self.level.saturating_sub(cost);
        enough
    }
}

impl Buckets {
    fn new(traffic: Traffic, now_us: u64) -> Self {
        let Traffic { frames_per_s_max, bytes_per_s_max } = traffic;
        Self { frames: Bucket::new(frames_per_s_max), bytes: Bucket::new(bytes_per_s_max), at_us: now_us }
    }

    fn count(&mut self, frames: usize, bytes: usize, now_us: u64) -> Result<(), LinkError> {
        let elapsed_us = now_us.saturating_sub(self.at_us);
        self.at_us = now_us;
        self.frames.refill(elapsed_us);
        self.bytes.refill(elapsed_us);
        if !self.frames.take(frames as u64) {
            return Err(LinkError::Flooding("the allowed frames a second"));
        }
        if !self.bytes.take(bytes as u64) {
            return Err(LinkError::Flooding("the allowed bytes a second"));
        }
        Ok(())
    }
}

impl Meter {
    /// The allowance of a peer that is not admitted yet.
    pub(crate) fn newcomer() -> Self {
        Self(Arc::new(Mutex::new(Buckets::new(NEWCOMER, clock::mono_us()))))
    }

    /// The peer is admitted: from now on it may send this much.
    pub(crate) fn allow(&self, traffic: Traffic) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Buckets::new(traffic, clock::mono_us());
    }

    /// Counts frames and bytes.
    ///
    /// # Errors
    /// The peer exceeds its rate.
    pub(crate) fn count(&self, frames: usize, bytes: usize) -> Result<(), LinkError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count(frames, bytes, clock::mono_us())
    }
}

/// A connection whose incoming bytes are counted below everything that reads them: fragments, pings and padding
/// included. Reading beyond the rate fails with [`LinkError::Flooding`] inside.
pub(crate) struct Metered<S> {
    inner: S,
    meter: Meter,
}

impl<S> Metered<S> {
    pub(crate) fn new(inner: S, meter: Meter) -> Self {
        Self { inner, meter }
    }

    /// The connection itself: what is read from it is not counted.
    pub(crate) fn unmetered(&mut self) -> &mut S {
        &mut self.inner
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let counted = self.meter.count(0, buffer.filled().len() - before);
        Poll::Ready(counted.map_err(|error| {
            buffer.set_filled(before);
            io::Error::other(error)
        }))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    const TRAFFIC: Traffic = Traffic { frames_per_s_max: 100, bytes_per_s_max: 10_000 };

    #[test]
    fn a_steady_stream_passes_and_a_flood_does_not() {
        let mut buckets = Buckets::new(TRAFFIC, 0);
        for frame in 0..10_000_u64 {
            buckets.count(1, 90, frame * 10_000).unwrap();
        }
        let mut buckets = Buckets::new(TRAFFIC, 0);
        let passed = (0..1_000).take_while(|_| buckets.count(1, 10, 0).is_ok()).count();
        assert_eq!(passed, 200);
        let mut buckets = Buckets::new(TRAFFIC, 0);
        assert!(matches!(buckets.count(1, 20_001, 0), Err(LinkError::Flooding(_))));
    }

    #[tokio::test]
    async fn bytes_are_counted_where_they_are_read() {
        let sent = vec![7; 3 * BURST_S as usize * NEWCOMER.bytes_per_s_max as usize];
        let meter = Meter::newcomer();
        let error = Metered::new(&sent[..], meter.clone()).read_to_end(&mut Vec::new()).await.unwrap_err();
        assert!(matches!(error.downcast(), Ok(LinkError::Flooding(_))));
        meter.allow(Traffic { bytes_per_s_max: sent.len() as u32, ..NEWCOMER });
        let mut admitted = Metered::new(&sent[..], meter);
        assert_eq!(admitted.read_to_end(&mut Vec::new()).await.unwrap(), sent.len());
        assert_eq!(admitted.unmetered().len(), 0);
    }
}
