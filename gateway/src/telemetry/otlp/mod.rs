//! Traces of turns for a collector of OpenTelemetry, over OTLP/HTTP with protobuf. Turns wait in a bounded queue; the task that
//! ends a turn never waits. What finds no room, and what a collector does not take, is dropped and counted.

mod spans;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use prost::Message as _;
use reqwest::{Client, Url, header::CONTENT_TYPE, redirect};
use tokio::{
    sync::mpsc::{self, error::TryRecvError},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use self::spans::{Finished, request};
use super::{LogThrottle, TurnRecord};
use crate::clock;

/// Turns that may wait: a minute of a busy box, while a collector restarts.
const WAITING_MAX: usize = 256;
/// Turns that are sent together at most.
const BATCH_MAX: usize = 64;
/// How long the first turn of a batch waits for others.
const BATCH_WAIT: Duration = Duration::from_secs(1);
/// How long a collector may take.
const SENT_MAX: Duration = Duration::from_secs(10);
/// How long it may take when the gateway stops.
const LAST_MAX: Duration = Duration::from_secs(2);

/// What became of turns since the start.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    dropped: AtomicU64,
}

/// Takes finished turns. Clones share the queue.
#[derive(Clone)]
pub(crate) struct Traces {
    queue: mpsc::Sender<Finished>,
    counts: Arc<Counts>,
}

/// Sends them.
pub(crate) struct Exporter {
    waiting: mpsc::Receiver<Finished>,
    counts: Arc<Counts>,
    client: Client,
    to: Url,
    lines: LogThrottle,
}

impl Traces {
    /// With what sends them to this address.
    ///
    /// # Errors
    /// The client cannot be made.
    pub(crate) fn new(to: Url) -> Result<(Self, Exporter)> {
        let client = Client::builder().redirect(redirect::Policy::none()).timeout(SENT_MAX).build();
        let client = client.context("the HTTP client for traces")?;
        let ((queue, waiting), counts) = (mpsc::channel(WAITING_MAX), Arc::<Counts>::default());
        let exporter = Exporter { waiting, counts: counts.clone(), client, to, lines: LogThrottle::default() };
        Ok((Self { queue, counts }, exporter))
    }

    /// Hands a turn over that has just ended.
    pub(super) fn take(&self, record: &TurnRecord) {
        let offset_us = clock::wall_ms().saturating_mul(1_000).saturating_sub_unsigned(clock::mono_us());
        let mut trace = [0; 16];
        let finished = getrandom::fill(&mut trace).ok().map(|()| Finished { record: record.clone(), offset_us, trace });
        let is_taken = finished.is_some_and(|finished| self.queue.try_send(finished).is_ok());
        if !is_taken {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Turns that a collector has taken, and turns that were dropped, since the start.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counts.sent.load(Ordering::Relaxed), self.counts.dropped.load(Ordering::Relaxed))
    }
}

impl Exporter {
    /// Sends turns until the gateway stops, and then those that still wait.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while let Some(Some(first)) = stop.run_until_cancelled(self.waiting.recv()).await {
            let mut batch = vec![first];
            let filling = async {
                while batch.len() < BATCH_MAX
                    && let Some(next) = self.waiting.recv().await
                {
                    batch.push(next);
                }
            };
            let _stopped = stop.run_until_cancelled(timeout(BATCH_WAIT, filling)).await;
            self.send(&batch, SENT_MAX).await;
        }
        let mut rest = Vec::new();
        while rest.len() < WAITING_MAX {
            match self.waiting.try_recv() {
                Ok(finished) => rest.push(finished),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        if !rest.is_empty() {
            self.send(&rest, LAST_MAX).await;
        }
    }

    /// Sends a batch once: a collector that is busy gets the next one.
    async fn send(&self, batch: &[Finished], within: Duration) {
        let sent = timeout(within, self.post(batch)).await;
        let sent = sent.unwrap_or_else(|_elapsed| Err(anyhow::anyhow!("it took longer than {} s", within.as_secs())));
        let count = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        match sent {
            Ok(()) => {
                self.counts.sent.fetch_add(count, Ordering::Relaxed);
            }
            Err(error) => {
                self.counts.dropped.fetch_add(count, Ordering::Relaxed);
                if let Some(left_out) = self.lines.line() {
                    let error = format!("{error:#}");
                    tracing::warn!(error, turns = count, left_out, "a collector did not take traces; they are dropped");
                }
            }
        }
    }

    async fn post(&self, batch: &[Finished]) -> Result<()> {
        let body = request(batch).encode_to_vec();
        let post = self.client.post(self.to.clone()).header(CONTENT_TYPE, "application/x-protobuf").body(body);
        let answer = post.send().await.map_err(reqwest::Error::without_url)?;
        ensure!(answer.status().is_success(), "it answers {}", answer.status());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
