//! The records of turns: kept, stored, counted and sent.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{histogram::Histograms, log::Logs, otlp::Traces, record::TurnRecord};

/// Records of this run that are kept in memory.
const KEPT_MAX: usize = 256;

/// The latest records. All are stored as well.
pub struct Turns {
    kept: Mutex<VecDeque<TurnRecord>>,
    logs: Logs,
    histograms: Arc<Histograms>,
    traces: Option<Traces>,
}

impl Turns {
    /// None yet. They are stored in `logs`, counted in `histograms`, and sent as `traces`.
    pub(crate) fn new(logs: Logs, histograms: Arc<Histograms>, traces: Option<Traces>) -> Self {
        Self { kept: Mutex::default(), logs, histograms, traces }
    }

    /// Turns that a collector has taken, and turns that were dropped; `None`: none is configured.
    pub(crate) fn traces(&self) -> Option<(u64, u64)> {
        self.traces.as_ref().map(Traces::counts)
    }

    /// The times of their stages, and other durations.
    pub(crate) fn histograms(&self) -> &Arc<Histograms> {
        &self.histograms
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<TurnRecord>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps and stores a record.
    pub fn push(&self, record: TurnRecord) {
        for (stage, us) in record.stages() {
            self.histograms.stage(stage, us);
        }
        if let Some(us) = record.asr_queue_us {
            self.histograms.asr_queue(us);
        }
        if let Ok(json) = serde_json::to_string(&record) {
            self.logs.turn(record.ended_wall_ms, record.device.clone(), json);
        }
        if let Some(traces) = &self.traces {
            traces.take(&record);
        }
        let mut kept = self.kept();
        if kept.len() >= KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(record);
    }

    /// Drops those of a user that are kept.
    pub fn erase(&self, user: &str) {
        self.kept().retain(|record| record.user != user);
    }

    /// The last `count` of this run, oldest first.
    pub fn last(&self, count: usize) -> Vec<TurnRecord> {
        let kept = self.kept();
        kept.iter().skip(kept.len().saturating_sub(count)).cloned().collect()
    }
}
