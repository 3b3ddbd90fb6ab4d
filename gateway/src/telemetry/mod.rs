//! One record per turn with every stage, the log's set-up, and the stored log. Nothing in here holds what was said.

pub(crate) mod histogram;
pub(crate) mod host_metrics;
pub mod log;
pub(crate) mod otlp;
mod record;
pub(crate) mod settings;
pub(crate) mod spans;
mod turns;

use std::{
    io::IsTerminal as _,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::watch;
use tracing_subscriber::{EnvFilter, Layer as _, layer::SubscriberExt as _, util::SubscriberInitExt as _};

pub use record::TurnRecord;
pub use turns::Turns;

use crate::clock;

/// The library for MCP logs whole messages, which may hold what was said.
const LOG_DEFAULT: &str = "info,rmcp=error";

/// Turns that are under way, over all sessions.
#[derive(Default)]
pub struct ActiveTurns(watch::Sender<usize>);

/// One of them, until it is dropped.
pub(crate) struct ActiveTurn(Arc<ActiveTurns>);

impl ActiveTurns {
    /// Counts a turn for as long as the returned value lives.
    pub(crate) fn begin(self: &Arc<Self>) -> ActiveTurn {
        self.0.send_modify(|count| *count += 1);
        ActiveTurn(self.clone())
    }

    /// Waits until there is none.
    pub(crate) async fn none(&self) {
        // The sender is this value's own.
        drop(self.0.subscribe().wait_for(|count| *count == 0).await);
    }
}

impl Drop for ActiveTurn {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

/// Utterances that were never understood, since the start: no recognition thread took them in time, or a decode failed.
#[derive(Default)]
pub struct Losses {
    addressed: AtomicU64,
    others: AtomicU64,
    lines: LogThrottle,
}

impl Losses {
    /// One more; `addressed`: it was certainly meant for the assistant, and the wearer was told.
    pub fn count(&self, addressed: bool) {
        let counter = if addressed { &self.addressed } else { &self.others };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Some(left_out) = self.lines.line() {
            let (addressed_in_all, others_in_all) = self.get();
            tracing::warn!(addressed, addressed_in_all, others_in_all, left_out, "an utterance was lost");
        }
    }

    /// Those that were certainly meant for the assistant, and others.
    pub fn get(&self) -> (u64, u64) {
        (self.addressed.load(Ordering::Relaxed), self.others.load(Ordering::Relaxed))
    }
}

/// Packets of sound from all devices, counted when their sessions end.
#[derive(Default)]
pub struct SoundPackets {
    heard: AtomicU64,
    lost: AtomicU64,
}

impl SoundPackets {
    /// Adds those of a session: decoded, and given up as lost.
    pub fn add(&self, heard: u64, lost: u64) {
        self.heard.fetch_add(heard, Ordering::Relaxed);
        self.lost.fetch_add(lost, Ordering::Relaxed);
    }

    /// Those that were decoded, and those that were given up as lost.
    pub fn get(&self) -> (u64, u64) {
        (self.heard.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed))
    }
}

/// Lines of one kind that may be written at once.
const LINES_AT_ONCE: u64 = 10;
/// Microseconds for which one more may be written.
const LINE_US: u64 = 1_000_000;

/// Lines of the log that strangers can cause: some at once, then one a second. Those that are left out are counted.
#[derive(Default)]
pub struct LogThrottle(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    /// When all lines that were written are paid for.
    paid_us: u64,
    left_out: u64,
}

impl LogThrottle {
    /// Whether a line may be written now, and how many were left out before it.
    pub fn line(&self) -> Option<u64> {
        self.line_at(clock::mono_us())
    }

    fn line_at(&self, now_us: u64) -> Option<u64> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let paid_us = lines.paid_us.max(now_us);
        if paid_us >= now_us + LINES_AT_ONCE * LINE_US {
            lines.left_out += 1;
            return None;
        }
        lines.paid_us = paid_us + LINE_US;
        Some(std::mem::take(&mut lines.left_out))
    }
}

/// Sends the log to standard error, as text or JSON lines; `RUST_LOG` overrides the level. A gateway that runs stores it,
/// too, whatever that level is.
pub fn start(json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG_DEFAULT));
    // Colours are for eyes: a file or a service manager gets none.
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let shown = tracing_subscriber::fmt::layer().with_ansi(colours).with_writer(std::io::stderr);
    let shown = if json { shown.json().boxed() } else { shown.boxed() };
    // A second start (tests in one process) keeps the first.
    drop(tracing_subscriber::registry().with(shown.with_filter(filter)).with(log::layer()).try_init());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_thinned_and_counted() {
        let lines = LogThrottle::default();
        let written = |at_us: u64| (0..100).filter_map(|_| lines.line_at(at_us)).collect::<Vec<_>>();
        assert_eq!(written(5 * LINE_US), vec![0; LINES_AT_ONCE as usize]);
        assert_eq!(written(7 * LINE_US), [90, 0]);
        assert_eq!(written(100 * LINE_US)[0], 98);
    }
}
