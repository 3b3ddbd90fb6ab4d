//! Stands in for lost sound of a codec that cannot do so itself.
//!
//! Voiced sound goes on with its last pitch period; the rest with what the decoder makes of its last spectrum. Both fade.
//! Source of the method: ITU-T G.711, appendix I; here without its delay, since the overlap of the decoder's transform
//! already joins what was lost to what came before.

use crate::frame::us_to_samples;
use crate::samples::{Samples, SoundBuffer};

/// Shortest pitch period, in microseconds: a voice of 400 Hz.
const PERIOD_US_MIN: u64 = 2_500;

/// Longest pitch period, in microseconds: a voice of 67 Hz.
const PERIOD_US_MAX: u64 = 15_000;

/// Sound that is compared with itself to find the period, in microseconds.
const COMPARED_US: u64 = 15_000;

/// Correlation from which on sound is voiced at all, and at which it is entirely.
const VOICED: std::ops::Range<f32> = 0.5..0.8;

/// A longer period counts only if it fits better by this factor: each multiple of the true one fits as well.
const BETTER: f32 = 1.05;

/// From the decoder's sound to the repeated period, in microseconds.
const BEGIN_US: u64 = 2_500;

/// From the repeated period back to the decoder's sound, in microseconds.
const END_US: u64 = 5_000;

/// How long concealed sound keeps its level, in microseconds.
const LEVEL_US: u64 = 20_000;

/// How long it then takes to fade, in microseconds.
const FADE_US: u64 = 60_000;

/// One decoder's stand-in.
pub(super) struct Concealer {
    rate_hz: u32,
    /// The newest sound that was returned, concealed or not.
    history: Samples,
    loss: Option<Loss>,
}

/// The loss that goes on, or has just ended.
struct Loss {
    /// The last period before it, its end joined to its beginning.
    period: SoundBuffer<f32>,
    /// Share of the period in the sound, 0 to 1.
    voiced: f32,
    /// Samples since it began.
    at: usize,
}

impl Concealer {
    pub(super) fn new(rate_hz: u32) -> Self {
        let samples = us_to_samples(PERIOD_US_MAX + COMPARED_US, rate_hz) as usize;
        Self { rate_hz, history: vec![0_i16; samples].into(), loss: None }
    }

    /// Improves a frame that the decoder made in place of a lost one.
    pub(super) fn lost(&mut self, frame: &mut [i16]) {
        let mut loss = self.loss.take().unwrap_or_else(|| Loss::new(&self.history, self.rate_hz));
        let begin = us_to_samples(BEGIN_US, self.rate_hz) as f32;
        for sample in &mut *frame {
            let share = loss.voiced * (loss.at as f32 / begin).min(1.0);
            let mixed = f32::from(*sample) * (1.0 - share) + loss.next() * share;
            *sample = (mixed * level(loss.at, self.rate_hz)).round() as i16;
        }
        self.loss = Some(loss);
        self.keep(frame);
    }

    /// Joins a good frame to the concealed sound before it.
    pub(super) fn good(&mut self, frame: &mut [i16]) {
        if let Some(mut loss) = self.loss.take() {
            let end = us_to_samples(END_US, self.rate_hz) as usize;
            for (n, sample) in frame.iter_mut().enumerate().take(end) {
                let share = loss.voiced * (1.0 - n as f32 / end as f32);
                let joined = loss.next() * level(loss.at, self.rate_hz);
                *sample = (f32::from(*sample) * (1.0 - share) + joined * share).round() as i16;
            }
        }
        self.keep(frame);
    }

    fn keep(&mut self, frame: &[i16]) {
        let used = frame.len().min(self.history.len());
        self.history.drop_first(used);
        self.history.append(&frame[frame.len() - used..]);
    }
}

/// Level of concealed sound so many samples after the loss began.
fn level(at: usize, rate_hz: u32) -> f32 {
    let (kept, fade) = (us_to_samples(LEVEL_US, rate_hz) as f32, us_to_samples(FADE_US, rate_hz) as f32);
    (1.0 - (at as f32 - kept) / fade).clamp(0.0, 1.0)
}

impl Loss {
    fn new(history: &[i16], rate_hz: u32) -> Self {
        let (length, correlation) = find_period(history, rate_hz);
        let sound = |back: usize| f32::from(history[history.len() - back]);
        let mut period: Vec<f32> = (1..=length).rev().map(sound).collect();
        // Its last quarter becomes what came before its first sample, so that it can be repeated.
        let joined = length / 4;
        for n in 0..joined {
            let share = (n + 1) as f32 / (joined + 1) as f32;
            let back = joined - n;
            period[length - back] = sound(back) * (1.0 - share) + sound(length + back) * share;
        }
        let voiced = ((correlation - VOICED.start) / (VOICED.end - VOICED.start)).clamp(0.0, 1.0);
        Self { period: period.into(), voiced, at: 0 }
    }

    fn next(&mut self) -> f32 {
        let sample = self.period[self.at % self.period.len()];
        self.at += 1;
        sample
    }
}

/// Samples of the pitch period at the end of the sound, and the correlation with the sound one period earlier.
fn find_period(history: &[i16], rate_hz: u32) -> (usize, f32) {
    let samples = |us| us_to_samples(us, rate_hz) as usize;
    let (shortest, longest) = (samples(PERIOD_US_MIN), samples(PERIOD_US_MAX));
    let compared = samples(COMPARED_US).min(history.len() - longest);
    let end = history.len() - compared;
    let mut best = (longest, 0.0);
    for length in shortest..=longest {
        let correlation = correlate(&history[end..], &history[end - length..end - length + compared]);
        if correlation > best.1 * BETTER {
            best = (length, correlation);
        } else if correlation > best.1 && length <= best.0 + 2 {
            // The top of the same peak.
            best = (length, correlation);
        }
    }
    best
}

/// Normalised correlation, -1 to 1; 0 of silence.
fn correlate(left: &[i16], right: &[i16]) -> f32 {
    let (mut product, mut a, mut b) = (0.0f32, 0.0f32, 0.0f32);
    for (left, right) in left.iter().zip(right) {
        let (left, right) = (f32::from(*left), f32::from(*right));
        product += left * right;
        a += left * left;
        b += right * right;
    }
    let energy = (a * b).sqrt();
    if energy > 0.0 { product / energy } else { 0.0 }
}
