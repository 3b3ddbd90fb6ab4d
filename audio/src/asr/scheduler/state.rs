//! Which job is next, and which one gives way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::{Busy, DecodeJob, Priority, Shed, is_set};
use crate::fair::{FairQueue, Owner};

/// Queues of the scheduler: one for each priority.
const PRIORITIES: usize = Priority::Final as usize + 1;
/// Most patient jobs of an owner that wait: more utterances than a device waits for at once.
const OWNER_WAITING_MAX: usize = 8;
/// Most partials that wait, of all owners: one that came later would be of sound that is some seconds old by its turn.
const PARTIALS_WAITING_MAX: usize = 32;

#[derive(Default)]
pub(super) struct State {
    /// By priority, the most important last.
    pub(super) queues: [FairQueue<Waiting>; PRIORITIES],
    pub(super) running: Vec<Running>,
    pub(super) next_id: u64,
    pub(super) shed: Shed,
    pub(super) closing: bool,
}

pub(super) struct Waiting {
    pub(super) job: DecodeJob,
    pub(super) id: u64,
    pub(super) since: Instant,
    pub(super) abort: Arc<AtomicBool>,
}

pub(super) struct Running {
    pub(super) id: u64,
    pub(super) priority: Priority,
    pub(super) owner: Owner,
    pub(super) utterance: Option<u32>,
    pub(super) translates: bool,
    pub(super) abort: Arc<AtomicBool>,
}

impl State {
    pub(super) fn waiting(&self) -> usize {
        self.queues.iter().map(FairQueue::len).sum()
    }

    pub(super) fn waiting_partials(&self) -> &FairQueue<Waiting> {
        &self.queues[Priority::Partial as usize]
    }

    /// Those that wait for a thread, and for nothing else, and are no partials.
    pub(super) fn ready_others(&self) -> usize {
        self.count(|waiting| waiting.job.priority != Priority::Partial && !self.has_to_wait(&waiting.job))
    }

    /// Whether a partial for which no thread is free may wait for one that works on another owner's, or is about to.
    pub(super) fn may_take_turns(&self, owner: Owner, workers: usize) -> bool {
        let is_partial = |job: &&Running| job.priority == Priority::Partial;
        let partials = || self.running.iter().filter(is_partial);
        let waiting = self.waiting_partials();
        self.ready_others() == 0
            && self.running.len() - partials().count() < workers
            && partials().all(|job| job.owner != owner)
            && waiting.len_of(owner) == 0
            && waiting.len() < PARTIALS_WAITING_MAX
    }

    pub(super) fn has_partial_in_work(&self, owner: Owner) -> bool {
        self.running.iter().any(|job| job.priority == Priority::Partial && job.owner == owner)
    }

    pub(super) fn count(&self, is_counted: impl Fn(&Waiting) -> bool) -> usize {
        self.queues.iter().map(|queue| queue.count(&is_counted)).sum()
    }

    /// Whether an owner may have another patient job.
    pub(super) fn may_wait(&self, owner: Owner) -> bool {
        self.count(|waiting| waiting.job.patient && waiting.job.owner == owner) < OWNER_WAITING_MAX
    }

    /// Decides over a job for which no thread is free: takes out the one that gives way to it, if one has to; `is_excess`:
    /// it may not take a place that is free for others.
    pub(super) fn make_room(
        &mut self,
        job: &DecodeJob,
        queue_max: usize,
        is_excess: bool,
    ) -> Result<Option<Waiting>, Busy> {
        let takes_place = |waiting: &Waiting| !waiting.job.patient && waiting.job.priority != Priority::Partial;
        let own = job.priority as usize;
        let (has_room, displaced) = if job.patient {
            (self.may_wait(job.owner), None)
        } else if is_excess {
            (false, None)
        } else if self.count(takes_place) < queue_max {
            (true, None)
        } else {
            let less = self.queues[..own].iter_mut().find_map(|queue| queue.pop_newest(takes_place));
            (false, less.or_else(|| self.queues[own].make_room(job.owner, takes_place)))
        };
        match &displaced {
            Some(displaced) => self.shed.count(displaced.job.priority),
            None if has_room => {}
            None => {
                self.shed.count(job.priority);
                return Err(Busy::QueueFull);
            }
        }
        Ok(displaced)
    }

    /// Stops a partial that is being decoded, if there is one: its thread is needed.
    pub(super) fn preempt_partial(&mut self) {
        let goes_on = |running: &&Running| running.priority == Priority::Partial && !is_set(&running.abort);
        if let Some(partial) = self.running.iter().find(goes_on) {
            partial.abort.store(true, Ordering::Relaxed);
            self.shed.count(Priority::Partial);
        }
    }

    pub(super) fn promote(&mut self, id: u64, priority: Priority) {
        let is_it = |waiting: &Waiting| waiting.id == id;
        let Some(found) = self.queues.iter_mut().find_map(|queue| queue.find(is_it)) else { return };
        let (from, owner, was_patient) = (found.job.priority, found.job.owner, found.job.patient);
        if was_patient || !self.may_wait(owner) {
            return;
        }
        // Among those of its own priority it keeps its turn.
        let queue = &mut self.queues[from as usize];
        if from >= priority {
            queue.find(is_it).into_iter().for_each(|waiting| waiting.job.patient = true);
        } else if let Some(mut waiting) = queue.remove(is_it) {
            (waiting.job.patient, waiting.job.priority) = (true, priority);
            self.queues[priority as usize].push(owner, waiting);
        }
    }

    /// Whether a job may not begin yet, since what is decoded is to come before it.
    pub(super) fn has_to_wait(&self, job: &DecodeJob) -> bool {
        has_to_wait(&self.running, job)
    }

    /// The next job that may begin.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let Self { queues, running, .. } = self;
        let in_work = |owner, first: &Waiting| {
            let own = running.iter().filter(|job| job.owner == owner).count();
            (!has_to_wait(running, &first.job)).then_some(own)
        };
        queues.iter_mut().rev().find_map(|queue| queue.pop(in_work)).map(|(_, waiting)| waiting)
    }
}

fn has_to_wait(running: &[Running], job: &DecodeJob) -> bool {
    let is_ahead = |other: &Running| {
        let (Some(earlier), Some(utterance)) = (other.utterance, job.utterance) else { return false };
        other.owner == job.owner && earlier < utterance && !is_set(&other.abort) && is_in_order(other, job)
    };
    running.iter().any(is_ahead)
}

/// Whether both are requests, or both may be, or both are translations.
fn is_in_order(running: &Running, job: &DecodeJob) -> bool {
    if running.translates || job.options.translate {
        return running.translates && job.options.translate;
    }
    let is_request = |priority| matches!(priority, Priority::Speculative | Priority::Final);
    let (one, other) = (running.priority, job.priority);
    is_request(one) && is_request(other) || one == Priority::Unsure && other == Priority::Unsure
}
