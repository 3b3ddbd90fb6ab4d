//! A wake phrase in the sound of an ear in virtual time, heard by a head as in the gateway.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use audio::frame::{samples_to_us, us_to_samples};
use audio::wake::{Detector, Head, Models, STEP_SAMPLES};

use super::clips::CLIP_HZ;

/// Silence behind an utterance: a phrase at its very end is heard some steps later.
const BEHIND: [i16; 4 * STEP_SAMPLES] = [0; 4 * STEP_SAMPLES];

/// A head, with the models before it.
pub struct WakeHead {
    models: Arc<Models>,
    head: Arc<Head>,
}

impl WakeHead {
    /// Loads a head.
    pub fn load(file: &Path) -> Result<Self> {
        Ok(Self { models: Models::load(&audio::models::default_dir())?, head: Head::load(file)? })
    }

    /// The words that it hears.
    pub fn phrase(&self) -> String {
        self.head.settings().phrase.clone()
    }
}

/// A phrase that was heard.
#[derive(Clone, Copy)]
pub struct Phrase {
    /// The utterance in which it was.
    pub utterance: u32,
    /// Capture time of its end, in microseconds.
    pub at_us: u64,
    /// Probability that it was said.
    pub score: f32,
    /// Samples of the utterance up to there.
    end: usize,
}

/// What one ear has listened to.
pub struct Acoustic {
    detector: Detector,
    utterance: Option<u32>,
    /// Samples of the utterance that were listened to.
    passed: usize,
    last: Option<Phrase>,
}

impl Acoustic {
    /// Nothing was listened to so far.
    pub fn new(head: &WakeHead) -> Self {
        let detector = Detector::new(head.models.clone(), [head.head.clone()].into());
        Self { detector, utterance: None, passed: 0, last: None }
    }

    /// Listens to what is new of an utterance: its sound so far, and the capture time of its end. `is_over`: no more follows.
    pub fn listen(&mut self, (utterance, sound, end_us): (u32, &[i16], u64), is_over: bool) -> Result<Option<Phrase>> {
        if self.utterance != Some(utterance) {
            self.detector.reset();
            (self.utterance, self.passed) = (Some(utterance), 0);
        }
        // Behind a detection the detector rests for longer than what is new: there is one at most.
        let mut found = Vec::new();
        self.detector.push(sound.get(self.passed..).unwrap_or_default(), &mut found)?;
        if is_over {
            self.detector.push(&BEHIND, &mut found)?;
        }
        self.passed = sound.len();
        let heard = found.pop().map(|detection| {
            let end = usize::try_from(detection.end).unwrap_or(usize::MAX).min(self.passed);
            let at_us = end_us.saturating_sub(samples_to_us((self.passed - end) as u64, CLIP_HZ));
            Phrase { utterance, at_us, score: detection.score, end }
        });
        self.last = heard.or(self.last);
        Ok(heard)
    }

    /// Samples of an utterance before this capture time, if a phrase was heard in it since.
    pub fn samples_before(&self, utterance: u32, from_us: u64) -> usize {
        let heard = self.last.filter(|heard| heard.utterance == utterance && from_us <= heard.at_us);
        heard.map_or(0, |heard| heard.end.saturating_sub(us_to_samples(heard.at_us - from_us, CLIP_HZ) as usize))
    }
}
