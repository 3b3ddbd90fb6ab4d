//! Named threads for work that would block the network tasks: synthesis, scores, photos.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use audio::{
    fair::{FairQueue, Owner},
    scheduling::Scheduling,
};

type Job = Box<dyn FnOnce() + Send>;

/// Of the queue, one part in so many is for [`Urgency::Now`] alone.
const RESERVED_PART: usize = 4;
/// Of the queue, an owner has at most one part in so many: its many jobs leave places for those of others.
const SHARE_PART: usize = 4;

/// Priority of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Someone waits in silence: the first clause of an answer.
    Now,
    /// Not pressing: a clause after one that still plays, a file.
    Soon,
}

/// A fixed pool with a bounded queue. The threads end when the last handle is dropped.
#[derive(Clone)]
pub struct Compute {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    waiting_max: usize,
}

#[derive(Default)]
struct State {
    now: FairQueue<Job>,
    soon: FairQueue<Job>,
    refused: u64,
    closing: bool,
}

/// The queue is full.
#[derive(Debug, thiserror::Error)]
#[error("too much work is waiting")]
pub struct Full;

impl Compute {
    /// Starts `threads` threads named `NAME-0`, `NAME-1`, …, with a queue of `waiting_max` jobs. Jobs of one urgency
    /// start in the order in which they were submitted, those of different owners in turn.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(name: &str, threads: usize, waiting_max: usize) -> std::io::Result<Self> {
        Self::start_as(None, name, threads, waiting_max)
    }

    /// As [`start`](Self::start), with threads that give way to all others.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(crate) fn start_in_background(name: &str, threads: usize, waiting_max: usize) -> std::io::Result<Self> {
        Self::start_as(Some(Scheduling::Background), name, threads, waiting_max)
    }

    fn start_as(
        scheduling: Option<Scheduling>,
        name: &str,
        threads: usize,
        waiting_max: usize,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), wake: Condvar::new(), waiting_max });
        // Dropped on an error below, it ends the threads already started.
        let mut handle = Handle { shared, threads: Vec::new() };
        for index in 0..threads {
            let shared = handle.shared.clone();
            let run = move || {
                scheduling.into_iter().for_each(Scheduling::apply);
                work(&shared);
            };
            let thread = thread::Builder::new().name(format!("{name}-{index}")).spawn(run)?;
            handle.threads.push(thread);
        }
        Ok(Self { handle: Arc::new(handle) })
    }

    /// Queues a job of nobody in particular. If the caller may lose interest before it starts, let the job itself check;
    /// this costs the queue nothing.
    ///
    /// # Errors
    /// The queue is full; the job was dropped.
    pub fn submit(&self, urgency: Urgency, job: impl FnOnce() + Send + 'static) -> Result<(), Full> {
        self.submit_for(Owner::NOBODY, urgency, job)
    }

    /// Queues a job of this owner.
    ///
    /// # Errors
    /// The queue is full, or its part for jobs that are not pressing, or the owner's share of it; the job was dropped.
    pub(crate) fn submit_for(
        &self,
        owner: Owner,
        urgency: Urgency,
        job: impl FnOnce() + Send + 'static,
    ) -> Result<(), Full> {
        let shared = &self.handle.shared;
        let mut state = shared.lock();
        let soon_max = shared.waiting_max - shared.waiting_max / RESERVED_PART;
        let is_full = state.now.len() + state.soon.len() >= shared.waiting_max;
        let own = state.now.len_of(owner) + state.soon.len_of(owner);
        let has_share = owner != Owner::NOBODY && own >= (shared.waiting_max / SHARE_PART).max(1);
        if is_full || has_share || (urgency == Urgency::Soon && state.soon.len() >= soon_max) {
            state.refused += 1;
            return Err(Full);
        }
        match urgency {
            Urgency::Now => state.now.push(owner, Box::new(job)),
            Urgency::Soon => state.soon.push(owner, Box::new(job)),
        }
        drop(state);
        shared.wake.notify_one();
        Ok(())
    }

    /// Jobs that wait, and those refused since the start.
    pub fn load(&self) -> (usize, u64) {
        let state = self.handle.shared.lock();
        (state.now.len() + state.soon.len(), state.refused)
    }

    /// Whether all threads run.
    pub(crate) fn is_running(&self) -> bool {
        !self.handle.threads.iter().any(JoinHandle::is_finished)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.wake.notify_all();
    }
}

impl Shared {
    /// No code that can panic runs under the lock, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job; `None` when all are done and no handle is left to submit more.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            // The jobs are short: who has one in work makes no difference.
            let next = state.now.pop(|_, _| Some(0)).or_else(|| state.soon.pop(|_, _| Some(0)));
            if next.is_some() || state.closing {
                return next.map(|(_, job)| job);
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn work(shared: &Shared) {
    while let Some(job) = shared.next() {
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!("a compute job panicked; the thread goes on");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Occupies the only thread until the sender is dropped or used.
    fn occupy(compute: &Compute) -> mpsc::SyncSender<()> {
        let (release, released) = mpsc::sync_channel::<()>(1);
        let (started, has_started) = mpsc::sync_channel(16);
        compute
            .submit(Urgency::Now, move || {
                started.send(()).unwrap();
                released.recv().ok();
            })
            .unwrap();
        has_started.recv().unwrap();
        release
    }

    #[test]
    fn a_panicking_job_leaves_the_thread_alive() {
        let compute = Compute::start("test", 1, 4).unwrap();
        compute.submit(Urgency::Now, || panic!("on purpose")).unwrap();
        drop(occupy(&compute));
    }

    #[test]
    fn the_queue_is_bounded() {
        let compute = Compute::start("test", 1, 1).unwrap();
        let release = occupy(&compute);
        compute.submit(Urgency::Soon, || {}).unwrap();
        assert!(compute.submit(Urgency::Now, || {}).is_err());
        drop(release);
    }

    #[test]
    fn places_are_kept_for_what_is_urgent() {
        let compute = Compute::start("test", 1, 8).unwrap();
        let release = occupy(&compute);
        while compute.submit(Urgency::Soon, || {}).is_ok() {}
        assert_eq!(compute.load(), (6, 1));
        for _ in 0..2 {
            compute.submit(Urgency::Now, || {}).unwrap();
        }
        assert!(compute.submit(Urgency::Now, || {}).is_err());
        assert_eq!(compute.load(), (8, 2));
        drop(release);
    }

    #[test]
    fn an_owner_leaves_places_for_others() {
        let compute = Compute::start("test", 1, 16).unwrap();
        let release = occupy(&compute);
        let (greedy, other) = (Owner::of("greedy"), Owner::of("other"));
        let taken = (0..99).filter(|_| compute.submit_for(greedy, Urgency::Soon, || {}).is_ok()).count();
        assert_eq!(taken, 4);
        assert!(compute.submit_for(greedy, Urgency::Now, || {}).is_err());
        assert!(
            compute.submit_for(other, Urgency::Soon, || {}).is_ok() && compute.submit(Urgency::Soon, || {}).is_ok()
        );
        drop(release);
    }

    #[test]
    fn owners_take_turns() {
        let compute = Compute::start("test", 1, 16).unwrap();
        let release = occupy(&compute);
        let (sender, done) = mpsc::sync_channel(16);
        let (one, other) = (Owner::unique(), Owner::unique());
        for (owner, name) in [(one, "a"), (one, "b"), (one, "c"), (other, "d")] {
            let sender = sender.clone();
            compute.submit_for(owner, Urgency::Now, move || sender.send(name).unwrap()).unwrap();
        }
        drop((release, sender));
        assert_eq!(done.iter().collect::<Vec<_>>(), ["a", "d", "b", "c"]);
    }

    #[test]
    fn background_threads_give_way() {
        let compute = Compute::start_in_background("test", 1, 8).unwrap();
        let (sender, niceness) = mpsc::sync_channel(1);
        let look = move || sender.send(rustix::process::getpriority_process(None).unwrap()).unwrap();
        compute.submit(Urgency::Now, look).unwrap();
        let own = rustix::process::getpriority_process(None).unwrap();
        assert!(niceness.recv().unwrap() > own || own == 19);
    }

    #[test]
    fn urgent_jobs_go_first_and_equal_ones_in_turn() {
        let compute = Compute::start("test", 1, 8).unwrap();
        let release = occupy(&compute);
        let (sender, done) = mpsc::sync_channel(16);
        for (urgency, name) in
            [(Urgency::Soon, "a"), (Urgency::Soon, "b"), (Urgency::Now, "c"), (Urgency::Soon, "d"), (Urgency::Now, "e")]
        {
            let sender = sender.clone();
            compute.submit(urgency, move || sender.send(name).unwrap()).unwrap();
        }
        drop((release, sender));
        assert_eq!(done.iter().collect::<Vec<_>>(), ["c", "e", "a", "b", "d"]);
    }

    #[test]
    fn what_is_queued_is_done_before_the_threads_end() {
        let compute = Compute::start("test", 2, 16).unwrap();
        let (sender, done) = mpsc::sync_channel(16);
        for number in 0..8 {
            let sender = sender.clone();
            compute.submit(Urgency::Soon, move || sender.send(number).unwrap()).unwrap();
        }
        drop((compute, sender));
        let mut numbers: Vec<i32> = done.iter().collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..8).collect::<Vec<_>>());
    }
}
