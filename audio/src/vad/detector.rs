//! Combines gate and model: frames in, probabilities of speech out.

use std::sync::Arc;

use super::silero::{self, WINDOW_SAMPLES};
use super::webrtc::Gate;
use crate::frame::FRAME_SAMPLES;
use crate::meter::Meter;
use crate::preroll::Preroll;
use crate::samples::erase;

/// Windows of older sound given to Silero first when the gate opens: without them it takes about that long to recognise
/// speech. Three runs stay under half a millisecond.
const WARM_UP_WINDOWS: usize = 2;

/// The detector's result for one window of 32 ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Stream position of its first sample.
    pub start: u64,
    /// Stream position just after its last sample.
    pub end: u64,
    /// Probability of speech. `None` means unknown, not silence: the model is warming up or the sound was lost. A
    /// closed gate gives 0.
    pub probability: Option<f32>,
}

/// Counts since the detector was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames for which the gate was open.
    pub open_frames: u64,
    /// Windows processed by Silero.
    pub windows: u64,
    /// Windows on which Silero failed.
    pub failures: u64,
}

/// One stream's voice detector.
pub struct Detector {
    gate: Gate,
    gate_meter: Arc<Meter>,
    silero: silero::Stream,
    /// Whether Silero is processing the stream at present.
    following: bool,
    /// Sound that does not fill a window yet; it ends at the newest position.
    partial: Vec<i16>,
    /// Windows left for which a low probability counts as unknown.
    warming: usize,
    stats: Stats,
}

impl Detector {
    /// A detector at the start of a stream, with a gate hangover in microseconds.
    pub fn new(model: Arc<silero::Model>, hangover_us: u64) -> Self {
        Self {
            gate: Gate::new(hangover_us),
            gate_meter: model.gate_meter(),
            silero: silero::Stream::new(model),
            following: false,
            partial: Vec::new(),
            warming: 0,
            stats: Stats::default(),
        }
    }

    /// Takes the next frame, which must already be the end of `recent`, and appends the windows that it completes to
    /// `windows`. With `keep_open` Silero runs even while the gate is closed.
    pub fn push(&mut self, frame: &[i16; FRAME_SAMPLES], recent: &Preroll, keep_open: bool, windows: &mut Vec<Window>) {
        let running = self.gate_meter.begin();
        let open = self.gate.push(frame);
        running.end(true);
        self.stats.open_frames += u64::from(open);
        if !open && !keep_open {
            self.skip();
            return;
        }
        if self.following {
            self.partial.extend_from_slice(frame);
        } else {
            self.follow(recent);
        }
        self.run(recent.end(), windows);
    }

    /// The stream continues at a later position: the sound so far does not predict what follows.
    pub fn skip(&mut self) {
        self.silero.reset();
        self.following = false;
    }

    /// Whether the gate is open, or was kept open: windows come.
    pub fn is_following(&self) -> bool {
        self.following
    }

    /// Resets the detector.
    pub fn reset(&mut self) {
        self.gate.reset();
        self.skip();
        erase(&mut self.partial);
    }

    /// No sound comes for a while: its memory is freed.
    pub fn release(&mut self) {
        self.skip();
        erase(&mut self.partial);
        self.partial = Vec::new();
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Runs Silero on the most recent sound first, so that its results are valid from the first window on.
    fn follow(&mut self, recent: &Preroll) {
        self.following = true;
        self.partial.clear();
        // At once, for a device that may never say a word: what grows leaves copies of sound behind.
        self.partial.reserve_exact(WINDOW_SAMPLES * (WARM_UP_WINDOWS + 1));
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
            // During warm-up the model may be sure of speech, but never of silence.
            let probability = probability.filter(|p| warm || *p >= 0.5);
            used += WINDOW_SAMPLES;
            windows.push(Window { start, end: start + WINDOW_SAMPLES as u64, probability });
            start += WINDOW_SAMPLES as u64;
        }
        self.partial.drain(..used);
    }
}
