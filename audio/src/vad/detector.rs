//! Gate and decision together: frames in, probabilities of speech out.

use std::sync::Arc;

use super::silero::{self, WINDOW_SAMPLES};
use super::webrtc::Gate;
use crate::frame::FRAME_SAMPLES;
use crate::preroll::Preroll;

/// Windows of older sound that Silero hears first when the gate opens: cold, it takes about that
/// long to recognise speech. Three runs of it stay under half a millisecond.
const WARM_UP_WINDOWS: usize = 2;

/// What the detector says about one window of 32 ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Stream position of its first sample.
    pub start: u64,
    /// Stream position just after its last sample.
    pub end: u64,
    /// Probability of speech. `None` is "no answer", which is not silence: the model is warming up
    /// or the sound was lost. A closed gate answers 0.
    pub probability: Option<f32>,
}

/// Counts since the detector was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames for which the gate was open.
    pub open_frames: u64,
    /// Windows that Silero heard.
    pub windows: u64,
    /// Windows on which it failed.
    pub failures: u64,
}

/// One stream's voice detector.
pub struct Detector {
    gate: Gate,
    silero: silero::Stream,
    /// Whether Silero is following the stream at present.
    following: bool,
    /// Sound that does not fill a window yet; it ends at the newest position.
    partial: Vec<i16>,
    /// Windows left for which a low probability is "no answer".
    warming: usize,
    stats: Stats,
}

impl Detector {
    /// A detector at the start of a stream, with a gate hangover in microseconds.
    pub fn new(model: Arc<silero::Model>, hangover_us: u64) -> Self {
        Self {
            gate: Gate::new(hangover_us),
            silero: silero::Stream::new(model),
            following: false,
            partial: Vec::with_capacity(WINDOW_SAMPLES * (WARM_UP_WINDOWS + 1)),
            warming: 0,
            stats: Stats::default(),
        }
    }

    /// Takes the next frame, which `recent` must end with already, and appends the windows that it
    /// completes to `windows`. With `keep_open` Silero runs even while the gate is closed.
    pub fn push(&mut self, frame: &[i16; FRAME_SAMPLES], recent: &Preroll, keep_open: bool, windows: &mut Vec<Window>) {
        let open = self.gate.push(frame);
        self.stats.open_frames += u64::from(open);
        if !open && !keep_open {
            self.following = false;
            return;
        }
        if self.following {
            self.partial.extend_from_slice(frame);
        } else {
            self.follow(recent);
        }
        self.run(recent.end(), windows);
    }

    /// The stream goes on at a later place: what was heard so far says nothing about what comes.
    pub fn skip(&mut self) {
        self.following = false;
    }

    /// Forgets the sound so far.
    pub fn reset(&mut self) {
        self.gate.reset();
        self.silero.reset();
        self.following = false;
        self.partial.fill(0);
        self.partial.clear();
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Lets Silero hear a little of what went before, so that it answers from the first window on.
    fn follow(&mut self, recent: &Preroll) {
        self.silero.reset();
        self.following = true;
        self.partial.clear();
        let backlog = (FRAME_SAMPLES + WARM_UP_WINDOWS * WINDOW_SAMPLES) as u64;
        recent.copy_from(recent.end().saturating_sub(backlog), &mut self.partial);
        self.warming = self.partial.len() / WINDOW_SAMPLES;
    }

    fn run(&mut self, end: u64, windows: &mut Vec<Window>) {
        let mut start = end - self.partial.len() as u64;
        let mut used = 0;
        while let Some((window, _)) = self.partial.get(used..).and_then(<[i16]>::split_first_chunk::<WINDOW_SAMPLES>) {
            let probability = match self.silero.push(window) {
                Ok(probability) => Some(probability),
                Err(error) => {
                    tracing::warn!(%error, "window without an answer");
                    self.silero.reset();
                    self.stats.failures += 1;
                    None
                }
            };
            self.stats.windows += 1;
            let warm = self.warming == 0;
            self.warming = self.warming.saturating_sub(1);
            // A model that warms up may already be sure of speech, never of silence.
            let probability = probability.filter(|p| warm || *p >= 0.5);
            used += WINDOW_SAMPLES;
            windows.push(Window { start, end: start + WINDOW_SAMPLES as u64, probability });
            start += WINDOW_SAMPLES as u64;
        }
        self.partial.drain(..used);
    }
}
