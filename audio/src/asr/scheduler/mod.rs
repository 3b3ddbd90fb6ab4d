//! A bounded queue in front of the recognition threads.
//!
//! Jobs are ordered by [`Priority`]. Under overload the least important jobs are dropped, and counted ([`Shed`]):
//!
//! - A partial is useful only at once. It is accepted only when a thread is free, or works on a partial while nothing else
//!   waits, and is preempted when another job needs that thread. An owner has one that waits, and none while one of its
//!   own is in work: owners whose partials follow one another take turns. One that is refused beside another of its owner is not counted.
//! - A second pass improves an existing text, and its caller waits only briefly. It is accepted only while few jobs
//!   wait.
//! - For everything else the queue is long enough for utterances that coincide. When it is full, speech not meant for
//!   the device is dropped before speech that may be.
//!
//! Jobs of one priority are taken from their owners in turn; an owner without a running job comes before one with some. A request
//! does not begin while one of an earlier utterance of its owner is decoded: a short one would be done first, and the later text of the
//! older one would end it. The same holds for speech that may be one.
//! When the queue is full, an owner that has several jobs in it loses its newest to an owner that has fewer.
//!
//! A patient job ([`DecodeJob::patient`]) takes no place in the queue: it is never displaced and displaces none, and waits behind
//! those that came before it. It is refused only if its owner has several of them waiting; its caller cancels it when nobody waits.

mod state;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use state::{Running, State, Waiting};

use super::{Decoder, Engine, Error, Options, Transcription};
use crate::fair::{FairQueue, Owner};
use crate::samples::Samples;
use crate::scheduling::Scheduling;

/// Purpose of a job, in ascending order of importance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A partial: the utterance is still going on.
    Partial,
    /// A second pass over an utterance that is understood already.
    SecondPass,
    /// Speech not meant for this device.
    Overheard,
    /// Speech that may be meant for it.
    Unsure,
    /// A final of speech meant for it, started at the first sign of a pause; discarded when the wearer goes on.
    Speculative,
    /// A final of speech meant for it; the utterance is over and the wearer waits.
    Final,
}

/// A second pass is queued only while fewer jobs wait than `queue_max` divided by this.
const SECOND_PASS_PART: usize = 4;

/// Jobs dropped since the start: refused, displaced by a job of higher priority, or, partials, stopped for one. A final
/// refused at a pause may be submitted again at the end of the utterance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shed {
    /// Interim decodes of an utterance that goes on.
    pub partial: u64,
    /// Second passes.
    pub second_pass: u64,
    /// Speech not meant for this device.
    pub overheard: u64,
    /// Speech that may have been.
    pub unsure: u64,
    /// Speech that was.
    pub addressed: u64,
}

impl Shed {
    fn count(&mut self, priority: Priority) {
        *match priority {
            Priority::Partial => &mut self.partial,
            Priority::SecondPass => &mut self.second_pass,
            Priority::Overheard => &mut self.overheard,
            Priority::Unsure => &mut self.unsure,
            Priority::Speculative | Priority::Final => &mut self.addressed,
        } += 1;
    }
}

/// Outcome of a job.
#[derive(Debug)]
pub struct Report {
    /// The text, or why there is none.
    pub result: Result<Transcription, Error>,
    /// Time from submission to the start of decoding, or to the end when it never started.
    pub queue_us: u64,
}

/// An utterance to decode.
pub struct DecodeJob {
    /// 16 kHz, one channel, at most 30 s.
    pub pcm: Arc<Samples>,
    /// How to decode it. The scheduler sets `abort` itself.
    pub options: Options,
    /// One of higher priority goes first, and may displace others.
    pub priority: Priority,
    /// Whether it waits however many jobs there are, rather than being left out. An owner has no more than a few of them.
    pub patient: bool,
    /// The device that waits for it.
    pub owner: Owner,
    /// The utterance of this owner whose words these are, in the order of their beginnings: a request waits while one of an earlier
    /// utterance is decoded, and so does a translation for one. `None`: it waits for none, and none waits for it.
    pub utterance: Option<u32>,
    /// Called when its decode begins, on the recognition thread. Must not block.
    pub begun: Option<Box<dyn FnOnce() + Send>>,
    /// Called exactly once if the job was accepted, on a recognition thread or on the thread that cancels it. Must not
    /// block.
    pub reply: Box<dyn FnOnce(Report) + Send>,
}

/// Why a job was not accepted; its reply is not called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// The queue is full of jobs of at least this priority.
    #[error("the queue of speech recognition is full")]
    QueueFull,
    /// A partial, while no thread is free for one.
    #[error("no speech recognition thread is free")]
    NoThreadFree,
    /// The scheduler is shutting down.
    #[error("speech recognition is shutting down")]
    ShuttingDown,
}

/// Decodes utterances; [`Decoder`] in production.
pub trait Transcribe {
    /// See [`Decoder::transcribe`].
    fn transcribe(&mut self, pcm: &[i16], options: &Options) -> Result<Transcription, Error>;

    /// Whether it knows how to: English weights write no other language, and do not translate.
    fn can(&self, _options: &Options) -> bool {
        true
    }
}

impl Transcribe for Decoder {
    fn transcribe(&mut self, pcm: &[i16], options: &Options) -> Result<Transcription, Error> {
        Decoder::transcribe(self, pcm, options)
    }

    fn can(&self, options: &Options) -> bool {
        Decoder::can(self, options)
    }
}

/// Size of the pool and its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Threads, with a decoder each; as many as cores.
    pub workers: usize,
    /// Most waiting jobs, patient ones and partials aside. An utterance of 4 s takes about 0.15 s. A short queue drops speech that
    /// coincides; with much more than a dozen jobs per worker every caller waits longer than a turn may take.
    pub queue_max: usize,
}

/// A handle on a submitted job.
#[derive(Clone, Debug)]
pub struct Ticket {
    id: u64,
    abort: Arc<AtomicBool>,
}

/// The recognition threads and their queue. Dropping it cancels all jobs and waits for the threads.
pub struct Scheduler {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    config: SchedulerConfig,
}

impl Scheduler {
    /// Starts the threads, each with a decoder of `engine`.
    ///
    /// # Errors
    /// A decoder or a thread cannot be created.
    pub fn start(engine: &Engine, config: SchedulerConfig) -> Result<Self, Error> {
        let engine = engine.clone();
        Self::start_with(config, move || engine.decoder())
    }

    /// Starts the threads with decoders from `make`, which is called again after a panic.
    pub fn start_with<T, F>(config: SchedulerConfig, make: F) -> Result<Self, Error>
    where
        T: Transcribe + Send + 'static,
        F: Fn() -> Result<T, Error> + Send + Sync + 'static,
    {
        let config = SchedulerConfig { workers: config.workers.max(1), ..config };
        let shared = Arc::new(Shared { state: Mutex::default(), wake: Condvar::new(), config });
        let make = Arc::new(make);
        // If an error occurs below, dropping it ends the threads started so far.
        let mut scheduler = Self { shared, threads: Vec::new() };
        for index in 0..config.workers {
            let (shared, make) = (scheduler.shared.clone(), make.clone());
            let decoder = make()?;
            let thread = thread::Builder::new()
                .name(format!("asr-{index}"))
                .spawn(move || work(&shared, decoder, make.as_ref()))
                .map_err(|error| Error::Inference(format!("no thread could be started: {error}")))?;
            scheduler.threads.push(thread);
        }
        Ok(scheduler)
    }

    /// Queues a job or refuses it. When the queue is full, a job displaces the waiting job of lowest priority below its
    /// own, or else one of its own priority whose owner has more of them. A patient one displaces none, is never displaced,
    /// and is refused only if its owner has several of them waiting. Any job but a partial preempts a running partial, and
    /// goes before those that wait; these take no place from others.
    /// Displaced jobs report [`Error::Displaced`].
    ///
    /// # Errors
    /// [`Busy`].
    pub fn submit(&self, job: DecodeJob) -> Result<Ticket, Busy> {
        let mut state = self.shared.lock();
        if state.closing {
            return Err(Busy::ShuttingDown);
        }
        let SchedulerConfig { workers, queue_max } = self.shared.config;
        let is_partial = job.priority == Priority::Partial;
        // Partials that wait come after all others.
        let before = state.ready_others() + if is_partial { state.waiting_partials().len() } else { 0 };
        let has_to_wait = state.has_to_wait(&job);
        let free = !has_to_wait && state.running.len() + before < workers;
        if is_partial && !free && !state.may_take_turns(job.owner, workers) {
            // A second one beside one in work is no loss.
            if !state.has_partial_in_work(job.owner) {
                state.shed.count(job.priority);
            }
            return Err(Busy::NoThreadFree);
        }
        let few = state.ready_others() < (queue_max / SECOND_PASS_PART).max(1);
        let is_excess = job.priority == Priority::SecondPass && !few;
        let displaced = if free || is_partial { None } else { state.make_room(&job, queue_max, is_excess)? };
        if !free && !is_partial && !has_to_wait {
            state.preempt_partial();
        }
        let id = state.next_id;
        state.next_id += 1;
        let abort = Arc::new(AtomicBool::new(false));
        let ticket = Ticket { id, abort: abort.clone() };
        let queue = job.priority as usize;
        #[expect(clippy::disallowed_methods, reason = "the wait is measured, nothing is decided by it")]
        let since = Instant::now();
        state.queues[queue].push(job.owner, Waiting { job, id, since, abort });
        drop(state);
        self.shared.wake.notify_one();
        if let Some(displaced) = displaced {
            displaced.end(Error::Displaced);
        }
        Ok(ticket)
    }

    /// Stops a waiting or running job, which then reports [`Error::Cancelled`]. No effect on a job that has ended.
    pub fn cancel(&self, ticket: &Ticket) {
        let mut state = self.shared.lock();
        let found = state.queues.iter_mut().find_map(|queue| queue.remove(|waiting| waiting.id == ticket.id));
        if found.is_none() {
            ticket.abort.store(true, Ordering::Relaxed);
        }
        drop(state);
        // What waited for it to end, or behind it, may begin.
        self.shared.wake.notify_one();
        if let Some(waiting) = found {
            waiting.end(Error::Cancelled);
        }
    }

    /// Its caller waits for this job from now on, as for a patient one of at least this priority. No effect if its owner has
    /// several patient ones waiting already, nor on a job that runs or has ended.
    pub fn promote(&self, ticket: &Ticket, priority: Priority) {
        self.shared.lock().promote(ticket.id, priority);
    }

    /// Jobs dropped since the start.
    pub fn shed(&self) -> Shed {
        self.shared.lock().shed
    }

    /// Whether all threads run.
    pub fn is_running(&self) -> bool {
        !self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Jobs waiting and jobs being decoded.
    pub fn load(&self) -> (usize, usize) {
        let state = self.shared.lock();
        (state.waiting(), state.running.len())
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let waiting: Vec<Waiting> = {
            let mut state = self.shared.lock();
            state.closing = true;
            for running in &state.running {
                running.abort.store(true, Ordering::Relaxed);
            }
            state.queues.iter_mut().flat_map(FairQueue::drain).collect()
        };
        self.shared.wake.notify_all();
        for waiting in waiting {
            waiting.end(Error::ShuttingDown);
        }
        for thread in self.threads.drain(..) {
            // Workers catch panics; one that died anyway needs no clean-up.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// No code that can panic runs under the lock, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job, marked as running; `None` when shutting down.
    fn next(&self) -> Option<Waiting> {
        let mut state = self.lock();
        loop {
            if state.closing {
                return None;
            }
            if let Some(waiting) = state.pop() {
                let DecodeJob { priority, owner, utterance, options: Options { translate: translates, .. }, .. } =
                    waiting.job;
                let (id, abort) = (waiting.id, waiting.abort.clone());
                state.running.push(Running { id, priority, owner, utterance, translates, abort });
                return Some(waiting);
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Waiting {
    fn end(self, error: Error) {
        let queue_us = elapsed_us(self.since);
        guarded(|| (self.job.reply)(Report { result: Err(error), queue_us }));
    }
}

fn work<T: Transcribe>(shared: &Shared, decoder: T, make: &dyn Fn() -> Result<T, Error>) {
    Scheduling::Background.apply();
    let mut decoder = Some(decoder);
    while let Some(waiting) = shared.next() {
        let queue_us = elapsed_us(waiting.since);
        let (id, mut options) = (waiting.id, waiting.job.options);
        options.abort = Some(waiting.abort);
        waiting.job.begun.into_iter().for_each(guarded);
        let result = decode(&mut decoder, make, &waiting.job.pcm, &options);
        // Free the thread before the reply, which may submit the next job.
        shared.lock().running.retain(|running| running.id != id);
        // More than one job may have waited for it to end.
        shared.wake.notify_one();
        guarded(|| (waiting.job.reply)(Report { result, queue_us }));
    }
}

/// Decodes; a decoder that panicked is replaced.
fn decode<T: Transcribe>(
    slot: &mut Option<T>,
    make: &dyn Fn() -> Result<T, Error>,
    pcm: &[i16],
    options: &Options,
) -> Result<Transcription, Error> {
    let mut decoder = match slot.take() {
        Some(decoder) => decoder,
        None => make()?,
    };
    let result = catch_unwind(AssertUnwindSafe(|| decoder.transcribe(pcm, options)));
    match result {
        Ok(result) => {
            *slot = Some(decoder);
            result
        }
        Err(_) => {
            tracing::error!("a transcription panicked; its decoder is replaced");
            Err(Error::Panicked)
        }
    }
}

/// Calls what the caller has given, which may be at fault.
fn guarded(callback: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(callback)).is_err() {
        tracing::error!("the receiver of a transcription panicked");
    }
}

fn is_set(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed)
}

fn elapsed_us(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
