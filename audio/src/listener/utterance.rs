//! Builds utterances from voiced windows: onset, pause, and the sound in between.

use super::config::UTTERANCE_US_MAX;
use super::timeline::Timeline;
use super::{Config, Fact};
use crate::frame::{RATE_HZ, samples_to_us, us_to_samples};
use crate::preroll::Preroll;
use crate::samples::Samples;
use crate::vad::detector::Window;

pub(super) struct Utterances {
    enter: f32,
    leave: f32,
    onset_windows: u32,
    lead: u64,
    tail: u64,
    pause: u64,
    length_max: u64,
    /// Number of the open utterance, or of the last one.
    number: u32,
    opened: u64,
    /// Voiced windows in a row while no utterance is open, and where they began.
    run: u32,
    run_start: u64,
    /// Sound before this position belongs to an utterance that was closed.
    consumed: u64,
    open: Option<Open>,
}

struct Open {
    start: u64,
    pcm: Samples,
    /// Position just after the last voiced window.
    voice_end: u64,
    /// Samples that are missing behind it, and the position just after the last of them: no silence.
    missing: (u64, u64),
    in_voice: bool,
    paused: bool,
    score: Option<f32>,
    /// Silence after which a pause is reported, in samples.
    pause: u64,
    /// Samples at the beginning that do not count for the length.
    uncounted: usize,
    told_too_long: bool,
}

impl Utterances {
    pub(super) fn new(config: &Config) -> Self {
        let samples = |us| us_to_samples(us, RATE_HZ);
        Self {
            enter: config.enter,
            leave: config.leave,
            onset_windows: config.onset_windows,
            lead: samples(config.lead_us),
            tail: samples(config.tail_us),
            pause: samples(config.pause_us),
            length_max: samples(config.utterance_us_max),
            number: 0,
            opened: 0,
            run: 0,
            run_start: 0,
            consumed: 0,
            open: None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether somebody is speaking, or may have just begun.
    pub(super) fn is_speaking(&self) -> bool {
        self.open.as_ref().map_or(self.run > 0, |open| !open.paused)
    }

    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    pub(super) fn pcm(&self, utterance: u32) -> Option<&[i16]> {
        let open = self.open.as_ref().filter(|_| utterance == self.number)?;
        let wanted = (open.voice_end + self.tail).saturating_sub(open.start) as usize;
        Some(&open.pcm[..wanted.min(open.pcm.len())])
    }

    /// Number, position of the first sample, and all sound of the open utterance.
    pub(super) fn open(&self) -> Option<(u32, u64, &[i16])> {
        self.open.as_ref().map(|open| (self.number, open.start, &*open.pcm))
    }

    pub(super) fn note_score(&mut self, utterance: u32, score: f32) {
        let paused = self.open.as_mut().filter(|open| utterance == self.number && open.paused);
        if let Some(open) = paused {
            open.score = Some(score);
        }
    }

    /// Silence after which a pause of the open utterance is reported, in samples.
    pub(super) fn pause_after(&mut self, utterance: u32, samples: u64) {
        if let Some(open) = self.open.as_mut().filter(|_| utterance == self.number) {
            open.pause = samples;
        }
    }

    /// Leaves the first samples of the open utterance out of its length: at most as many as the longest one has, so that it
    /// stays bounded however often this is asked for.
    pub(super) fn measure_from(&mut self, utterance: u32, samples: usize) {
        if let Some(open) = self.open.as_mut().filter(|_| utterance == self.number) {
            open.uncounted = samples.min(open.pcm.len()).min(self.length_max as usize);
        }
    }

    /// Closes the open utterance at stream position `end`.
    pub(super) fn close(&mut self, utterance: u32, end: u64) {
        if utterance != self.number {
            return;
        }
        if let Some(open) = self.open.take() {
            // During voice all sound was handed over. In a pause, sound after the tail may already be the first
            // consonant of the next utterance.
            self.consumed = if open.in_voice { end } else { end.min(open.voice_end + self.tail) };
            self.run = 0;
        }
    }

    /// Erases all sound up to stream position `end`.
    pub(super) fn erase(&mut self, end: u64) {
        self.open = None;
        self.run = 0;
        self.consumed = end;
    }

    /// Adds sound to the open utterance, up to the longest that can be recognised.
    pub(super) fn append(&mut self, pcm: &[i16], timeline: &Timeline, facts: &mut Vec<Fact>) {
        let Some(open) = &mut self.open else { return };
        let bound = us_to_samples(UTTERANCE_US_MAX, RATE_HZ) as usize + open.uncounted;
        let room = bound.saturating_sub(open.pcm.len());
        open.pcm.append(&pcm[..pcm.len().min(room)]);
        if (open.pcm.len() - open.uncounted) as u64 >= self.length_max && !open.told_too_long {
            open.told_too_long = true;
            self.end(timeline, facts);
        }
    }

    /// Takes the detector's result for one window. `recent` holds the window's sound.
    pub(super) fn judge(&mut self, window: &Window, recent: &Preroll, timeline: &Timeline, facts: &mut Vec<Fact>) {
        let Some(probability) = window.probability else {
            return;
        };
        if self.open.is_some() {
            self.follow(window, probability, timeline, facts);
        } else {
            self.await_onset(window, probability, recent, timeline, facts);
        }
    }

    /// Sound was left out or is missing up to stream position `end`: windows before it and behind it are not in a row. An open
    /// utterance goes on, and the `missing` samples do not count for its pause.
    pub(super) fn skip(&mut self, missing: u64, end: u64) {
        self.run = 0;
        if let Some(open) = self.open.as_mut().filter(|_| missing > 0) {
            open.missing = (open.missing.0 + missing, end);
        }
    }

    /// Ends the open utterance where it is.
    pub(super) fn end(&self, timeline: &Timeline, facts: &mut Vec<Fact>) {
        if let Some(open) = &self.open {
            facts.push(Fact::Ended { utterance: self.number, at_us: timeline.capture_us(open.voice_end) });
        }
    }

    /// No sound came up to stream position `end`, so the pause lasts at least until there.
    pub(super) fn silent_until(&mut self, end: u64, timeline: &Timeline, facts: &mut Vec<Fact>) {
        if let Some(open) = &mut self.open {
            open.in_voice = false;
            self.tell_silence(end, timeline, facts);
        }
    }

    fn await_onset(
        &mut self,
        window: &Window,
        probability: f32,
        recent: &Preroll,
        timeline: &Timeline,
        facts: &mut Vec<Fact>,
    ) {
        let threshold = if self.run > 0 { self.leave } else { self.enter };
        if probability < threshold {
            self.run = 0;
            return;
        }
        // Windows of the detector's warm-up may reach back into sound that was handed over already.
        if window.end <= self.consumed {
            return;
        }
        if self.run == 0 {
            self.run_start = window.start.max(self.consumed);
        }
        self.run += 1;
        if self.run < self.onset_windows {
            return;
        }
        self.run = 0;
        self.number = self.number.wrapping_add(1);
        self.opened += 1;
        let mut pcm = Vec::new();
        let from = self.run_start.saturating_sub(self.lead).max(self.consumed);
        let start = recent.copy_from(from, &mut pcm);
        self.open = Some(Open {
            start,
            pcm: pcm.into(),
            voice_end: window.end,
            missing: (0, 0),
            in_voice: true,
            paused: false,
            score: None,
            pause: self.pause,
            uncounted: 0,
            told_too_long: false,
        });
        let at_us = timeline.capture_us(self.run_start);
        let voiced_us = samples_to_us(window.end.saturating_sub(self.run_start), RATE_HZ);
        facts.push(Fact::SpeechStarted { utterance: self.number, at_us, voiced_us });
    }

    fn follow(&mut self, window: &Window, probability: f32, timeline: &Timeline, facts: &mut Vec<Fact>) {
        let Some(open) = &mut self.open else { return };
        let threshold = if open.in_voice { self.leave } else { self.enter };
        open.in_voice = probability >= threshold;
        if !open.in_voice {
            self.tell_silence(window.end, timeline, facts);
            return;
        }
        // A detector that warms up reports older windows again.
        open.voice_end = open.voice_end.max(window.end);
        if open.missing.1 < window.end {
            open.missing = (0, 0);
        }
        if open.paused {
            open.paused = false;
            open.score = None;
            let at_us = timeline.capture_us(window.start);
            facts.push(Fact::Resumed { utterance: self.number, at_us });
        }
    }

    fn tell_silence(&mut self, end: u64, timeline: &Timeline, facts: &mut Vec<Fact>) {
        let Some(open) = &mut self.open else { return };
        let silence = end.saturating_sub(open.voice_end).saturating_sub(open.missing.0);
        if silence < open.pause {
            return;
        }
        let utterance = self.number;
        let at_us = timeline.capture_us(open.voice_end);
        let silence_us = samples_to_us(silence, RATE_HZ);
        facts.push(if open.paused {
            Fact::Silence { utterance, at_us, silence_us, score: open.score }
        } else {
            open.paused = true;
            Fact::Paused { utterance, at_us, silence_us }
        });
    }
}
