//! From a stream of sound to detections of phrases.

use std::sync::Arc;

use super::{Error, Head, Models, STEP_SAMPLES, Stream};
use crate::samples::erase;

/// Steps after a detection in which there is no other: one and a half seconds. The phrase is still in the window of the
/// heads.
pub const REFRACTORY_STEPS: u32 = 19;

/// Most heads in use: each costs time at every step.
pub const HEADS_MAX: usize = 16;

/// Most bytes that one device's detector holds.
pub const STATE_BYTES_MAX: usize = 32 * 1024;

/// A phrase was heard.
#[derive(Clone, Debug, PartialEq)]
pub struct Detection {
    /// Which of the heads.
    pub head: usize,
    /// Highest score of the steps that counted.
    pub score: f32,
    /// Samples since the start of the stream, to the end of the last of these steps.
    pub end: u64,
}

/// How far a head is.
#[derive(Clone, Copy, Default)]
struct Run {
    steps: u32,
    best: f32,
}

/// One device's detector.
pub struct Detector {
    stream: Stream,
    heads: Arc<[Arc<Head>]>,
    runs: Vec<Run>,
    /// Steps left without detections.
    resting: u32,
    /// Sound that does not fill a step yet.
    partial: Vec<i16>,
    taken: u64,
}

impl Detector {
    /// A detector of these phrases, at the start of a stream. Of more than [`HEADS_MAX`] heads only the first are used.
    pub fn new(models: Arc<Models>, heads: Arc<[Arc<Head>]>) -> Self {
        let runs = vec![Run::default(); heads.len().min(HEADS_MAX)];
        let partial = Vec::with_capacity(STEP_SAMPLES);
        Self { stream: Stream::new(models), heads, runs, resting: 0, partial, taken: 0 }
    }

    /// Resets to the start of a stream.
    pub fn reset(&mut self) {
        self.stream.reset();
        self.runs.fill(Run::default());
        self.resting = 0;
        erase(&mut self.partial);
        self.taken = 0;
    }

    /// Takes the next samples, mono at 16 kHz, and appends what was heard to `found`. Each whole 80 ms cost over a
    /// millisecond.
    ///
    /// # Errors
    /// [`Error::Run`]; the detector is at the start of a stream then.
    pub fn push(&mut self, mut pcm: &[i16], found: &mut Vec<Detection>) -> Result<(), Error> {
        loop {
            let missing = STEP_SAMPLES - self.partial.len();
            let Some((now, later)) = pcm.split_at_checked(missing) else {
                self.partial.extend_from_slice(pcm);
                return Ok(());
            };
            self.partial.extend_from_slice(now);
            pcm = later;
            if let Err(error) = self.step(found) {
                self.reset();
                return Err(error);
            }
            self.partial.clear();
        }
    }

    fn step(&mut self, found: &mut Vec<Detection>) -> Result<(), Error> {
        let Some((step, _)) = self.partial.split_first_chunk() else { return Ok(()) };
        let window = self.stream.push(step)?;
        self.taken += STEP_SAMPLES as u64;
        let resting = self.resting > 0;
        self.resting = self.resting.saturating_sub(1);
        let mut best: Option<Detection> = None;
        for (index, (run, head)) in self.runs.iter_mut().zip(self.heads.iter()).enumerate() {
            let score = head.score(window)?;
            if score < head.settings().threshold || resting {
                *run = Run::default();
                continue;
            }
            *run = Run { steps: run.steps + 1, best: run.best.max(score) };
            let is_heard = run.steps >= head.settings().patience;
            if is_heard && best.as_ref().is_none_or(|best| best.score < run.best) {
                best = Some(Detection { head: index, score: run.best, end: self.taken });
            }
        }
        if best.is_some() {
            self.runs.fill(Run::default());
            self.resting = REFRACTORY_STEPS;
        }
        found.extend(best);
        Ok(())
    }

    /// Bytes of this state; at most [`STATE_BYTES_MAX`].
    pub fn bytes(&self) -> usize {
        let own = size_of::<Self>() - size_of::<Stream>() + self.stream.bytes();
        own + self.runs.capacity() * size_of::<Run>() + self.partial.capacity() * size_of::<i16>()
    }
}
