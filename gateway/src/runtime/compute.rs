//! Named threads for work that would block the network tasks: synthesis, scores, photos.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

type Job = Box<dyn FnOnce() + Send>;

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

struct Handle(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    waiting_max: usize,
}

#[derive(Default)]
struct State {
    now: VecDeque<Job>,
    soon: VecDeque<Job>,
    closing: bool,
}

/// The queue is full.
#[derive(Debug, thiserror::Error)]
#[error("too much work is waiting")]
pub struct Full;

impl Compute {
    /// Starts `threads` threads named `NAME-0`, `NAME-1`, …, with a queue of `waiting_max` jobs. Jobs of one urgency
    /// start in the order in which they were submitted.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(name: &str, threads: usize, waiting_max: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), wake: Condvar::new(), waiting_max });
        // Dropped on an error below, it ends the threads already started.
        let compute = Self { handle: Arc::new(Handle(shared.clone())) };
        for index in 0..threads {
            let shared = shared.clone();
            thread::Builder::new().name(format!("{name}-{index}")).spawn(move || work(&shared))?;
        }
        Ok(compute)
    }

    /// Queues a job. If the caller may lose interest before it starts, let the job itself check; this costs the queue
    /// nothing.
    ///
    /// # Errors
    /// The queue is full; the job was dropped.
    pub fn submit(&self, urgency: Urgency, job: impl FnOnce() + Send + 'static) -> Result<(), Full> {
        let shared = &self.handle.0;
        let mut state = shared.lock();
        if state.now.len() + state.soon.len() >= shared.waiting_max {
            return Err(Full);
        }
        match urgency {
            Urgency::Now => state.now.push_back(Box::new(job)),
            Urgency::Soon => state.soon.push_back(Box::new(job)),
        }
        drop(state);
        shared.wake.notify_one();
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.lock().closing = true;
        self.0.wake.notify_all();
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
            let job = state.now.pop_front().or_else(|| state.soon.pop_front());
            if job.is_some() || state.closing {
                return job;
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
        let compute = Compute::start("test", 2, 8).unwrap();
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
