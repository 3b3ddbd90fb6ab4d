//! Which job is next, and which one gives way.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
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
    pub(super) abort: Arc<AtomicBool>,
}

impl State {
    pub(super) fn waiting(&self) -> usize {
        self.queues.iter().map(FairQueue::len).sum()
    }

    pub(super) fn waiting_partials(&self) -> &FairQueue<Waiting> {
        &self.queues[Priority::Partial as usize]
    }

    /// Those that wait and are no partials.
    pub(super) fn waiting_others(&self) -> usize {
        self.waiting() - self.waiting_partials().len()
    }

    /// Whether a partial for which no thread is free may wait for one that works on another owner's, or is about to.
    pub(super) fn may_take_turns(&self, owner: Owner, workers: usize) -> bool {
        let is_partial = |job: &&Running| job.priority == Priority::Partial;
        let partials = || self.running.iter().filter(is_partial);
        let waiting = self.waiting_partials();
        self.waiting_others() == 0
            && self.running.len() - partials().count() < workers
            && partials().all(|job| job.owner != owner)
            && waiting.len_of(owner) == 0
            && waiting.len() < PARTIALS_WAITING_MAX
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

    /// The next job that may begin.
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let Self { queues, running, .. } = self;
        let in_work = |owner, queue| {
            let own = || running.iter().filter(|job| job.owner == owner);
            let is_before = |job: &Running| !is_set(&job.abort) && are_in_order(job.priority as usize, queue);
            let waits = owner != Owner::NOBODY && own().any(is_before);
            (!waits).then(|| own().count())
        };
        let mut queues = queues.iter_mut().enumerate().rev();
        let next = queues.find_map(|(queue, waiting)| waiting.pop(|owner| in_work(owner, queue)));
        next.map(|(_, waiting)| waiting)
    }
}

/// Whether the texts of jobs of these queues have to come one after the other, where their owner is the same: a newer request
/// ends an older one.
fn are_in_order(running: usize, waiting: usize) -> bool {
    const REQUEST: [usize; 2] = [Priority::Speculative as usize, Priority::Final as usize];
    const UNSURE: usize = Priority::Unsure as usize;
    REQUEST.contains(&running) && REQUEST.contains(&waiting) || running == UNSURE && waiting == UNSURE
}
