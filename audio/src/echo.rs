//! How similar the microphone's sound is to what the device's own speaker plays.
//!
//! The sound that was sent and the sound that is heard are compared by their spectra, 100 times a second: energies of mel-spaced
//! bands, against the mean of all bands. A speaker, a head and a room change the level of each band, and a canceller leaves remains
//! of it, but the course of the spectrum stays. The measure is the normalised cross-correlation of both courses, over all bands, at
//! the best of the delays that are possible: 1 for a perfect copy. How far the device has played comes from its own reports, so that
//! few delays are possible, and unrelated speech seldom finds a match by chance. The energies of whole frames are left out: loud and
//! silent moments of any two voices match at some delay.

use std::collections::VecDeque;
use std::f32::consts::PI;
use std::iter::repeat_n;
use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use crate::frame::{RATE_HZ, samples_to_us};

/// Time between two frames of energies, in microseconds. A frame is twice as long.
const HOP_US: u64 = 10_000;
/// Frames in a second.
const HOPS_PER_S: usize = 100;
/// Energies of one frame.
const BANDS: usize = 16;
/// Lower edge of the first band and upper edge of the last one, in hertz: what the smallest speaker plays, and an 8 kHz device sends.
const EDGES_HZ: (f32, f32) = (300.0, 3_800.0);
/// Range of a frame's energies that counts, in natural logarithms of power (26 dB): below it there is noise.
const RANGE: f32 = 6.0;
/// Least energy of a sample's square that counts: a microphone's own noise.
const FLOOR: f32 = 9.0;
/// Played speech that is kept, in frames: what the device holds, its longest delay, and the sound compared.
const KEPT: usize = 4 * HOPS_PER_S;
/// Delays between the reported playback and the microphone, in frames: reports are as exact as a device's audio driver.
const DELAYS: std::ops::RangeInclusive<i64> = -10..=40;
/// Least sound that tells anything, in frames.
const COMPARED_MIN: usize = 25;
/// Least mean square of the played energies around their means: speech, and no pause.
const VARIANCE_MIN: f32 = 0.3;

type Energies = [f32; BANDS];
/// All bands have the mean.
const SILENCE: Energies = [0.0; BANDS];

/// From sound at one rate to frames of energies.
struct Bands {
    /// Samples from one frame to the next.
    hop: usize,
    fft: Arc<dyn Fft<f32>>,
    window: Vec<f32>,
    /// First bin of each band, and the one behind the last band.
    edges: [usize; BANDS + 1],
    /// Sound that does not fill a frame yet.
    waiting: Vec<i16>,
    spectrum: Vec<Complex<f32>>,
}

impl Bands {
    fn new(rate_hz: u32) -> Self {
        let hop = rate_hz as usize / HOPS_PER_S;
        let length = 2 * hop;
        let mel = |hz: f32| 2_595.0 * (1.0 + hz / 700.0).log10();
        let hz = |mel: f32| 700.0 * (10_f32.powf(mel / 2_595.0) - 1.0);
        let (low, high) = (mel(EDGES_HZ.0), mel(EDGES_HZ.1));
        let bin_hz = rate_hz as f32 / length as f32;
        let edges =
            std::array::from_fn(|edge| (hz(low + (high - low) * edge as f32 / BANDS as f32) / bin_hz).round() as usize);
        Self {
            hop,
            fft: FftPlanner::new().plan_fft_forward(length),
            window: (0..length).map(|at| 0.5 - 0.5 * (2.0 * PI * at as f32 / length as f32).cos()).collect(),
            edges,
            waiting: Vec::new(),
            spectrum: Vec::new(),
        }
    }

    /// Adds sound; `found` gets the energies of each frame that is full: natural logarithms, against their mean.
    fn push(&mut self, pcm: &[i16], mut found: impl FnMut(Energies)) {
        self.waiting.extend_from_slice(pcm);
        let mut used = 0;
        while let Some(frame) = self.waiting.get(used..used + 2 * self.hop) {
            self.spectrum.clear();
            let weighed = frame.iter().zip(&self.window).map(|(sample, weight)| f32::from(*sample) * weight);
            self.spectrum.extend(weighed.map(|re| Complex { re, im: 0.0 }));
            self.fft.process(&mut self.spectrum);
            let scale = 1.0 / (2 * self.hop) as f32;
            let mut energies: Energies = std::array::from_fn(|band| {
                let bins = self.spectrum.get(self.edges[band]..self.edges[band + 1]).unwrap_or_default();
                let energy: f32 = bins.iter().map(|bin| bin.norm_sqr() * scale).sum();
                (energy / bins.len().max(1) as f32 + FLOOR).ln()
            });
            let floor = energies.iter().copied().fold(f32::MIN, f32::max) - RANGE;
            energies.iter_mut().for_each(|energy| *energy = energy.max(floor));
            let mean = energies.iter().sum::<f32>() / BANDS as f32;
            energies.iter_mut().for_each(|energy| *energy -= mean);
            found(energies);
            used += self.hop;
        }
        self.waiting.drain(..used);
    }
}

/// What a device's speaker plays of one speech, to be compared with what its microphone hears.
pub struct Played {
    bands: Bands,
    heard: Bands,
    frames: VecDeque<Energies>,
    /// Number of the oldest frame, from the beginning of the speech.
    first: u64,
    /// The last report: so much was played at this time of the device's clock, in microseconds.
    report: Option<(u64, u64)>,
}

impl Played {
    /// Of a speaker of this rate, in hertz.
    pub fn new(rate_hz: u32) -> Self {
        let frames = VecDeque::new();
        Self { bands: Bands::new(rate_hz), heard: Bands::new(RATE_HZ), frames, first: 0, report: None }
    }

    /// This follows in the speech, at the speaker's rate.
    pub fn push(&mut self, pcm: &[i16]) {
        let Self { bands, frames, first, .. } = self;
        bands.push(pcm, |energies| {
            if frames.len() == KEPT {
                frames.pop_front();
                *first += 1;
            }
            frames.push_back(energies);
        });
    }

    /// At `at_us` of its clock, the device had played so much of the speech.
    pub fn report(&mut self, played_us: u64, at_us: u64) {
        self.report = Some((played_us, at_us));
    }

    /// How much this sound of the microphone, mono at 16 kHz, whose end was captured at `end_us` of the device's clock, is
    /// like what was played: from -1 to 1. `None`: nothing was played then, or too little is known.
    pub fn likeness(&mut self, pcm: &[i16], end_us: u64) -> Option<f32> {
        let (played_us, at_us) = self.report?;
        let mut heard = Vec::new();
        self.heard.waiting.clear();
        self.heard.push(pcm, |energies| heard.push(energies));
        if heard.len() < COMPARED_MIN {
            return None;
        }
        // Position in the speech of the first frame, if nothing were late.
        let length_us = samples_to_us(pcm.len() as u64, RATE_HZ);
        let [played_us, at_us, end_us, length_us] = [played_us, at_us, end_us, length_us].map(i128::from);
        let begin = (played_us + end_us - at_us - length_us).div_euclid(i128::from(HOP_US)) - i128::from(self.first);
        let begin = i64::try_from(begin).ok()?;
        let best = DELAYS.filter_map(|delay| self.correlation(&heard, begin.saturating_sub(delay)));
        best.max_by(f32::total_cmp)
    }

    /// Correlation with the kept frames from this one on; before the first one of the speech there was silence. `None`: they are
    /// not all there, or are those of a pause.
    fn correlation(&self, heard: &[Energies], from: i64) -> Option<f32> {
        let silent = usize::try_from(from.saturating_neg()).unwrap_or(0);
        let from = usize::try_from(from).unwrap_or(0);
        let sounding = heard.len().checked_sub(silent)?;
        if from + sounding > self.frames.len() || (silent > 0 && self.first > 0) {
            return None;
        }
        let played = repeat_n(&SILENCE, silent).chain(self.frames.range(from..from + sounding));
        let (mut both, mut of_heard, mut of_played) = (0.0, 0.0, 0.0);
        for band in 0..BANDS {
            let heard = course(heard.iter().map(|energies| energies[band]));
            let played = course(played.clone().map(|energies| energies[band]));
            for (heard, played) in heard.zip(played) {
                both += heard * played;
                of_heard += heard * heard;
                of_played += played * played;
            }
        }
        let count = (BANDS * heard.len()) as f32;
        (of_played > VARIANCE_MIN * count).then(|| both / (of_heard * of_played).sqrt().max(f32::MIN_POSITIVE))
    }
}

/// A band's energies around their mean.
fn course(energies: impl Iterator<Item = f32> + Clone) -> impl Iterator<Item = f32> {
    let (sum, count) = energies.clone().fold((0.0, 0_usize), |(sum, count), energy| (sum + energy, count + 1));
    let mean = sum / count.max(1) as f32;
    energies.map(move |energy| energy - mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two seconds of a voice: tones that change every 60 ms, at random.
    fn voice(seed: u32) -> Vec<i16> {
        let (mut state, mut tones) = (seed, [0.0_f32; 4]);
        let sample = |at: usize| {
            if at.is_multiple_of(960) {
                for tone in &mut tones {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    *tone = 300.0 + (state >> 8) as f32 / (1 << 24) as f32 * 3_000.0;
                }
            }
            let sum: f32 = tones.iter().map(|hz| (2.0 * PI * hz * at as f32 / RATE_HZ as f32).sin()).sum();
            (sum * 2_000.0) as i16
        };
        (0..2 * RATE_HZ as usize).map(sample).collect()
    }

    /// The likeness of the sound from 1 s to 1.3 s, played at `at_us` of the device's clock.
    fn likeness(played: &[i16], heard: &[i16], report: (u64, u64)) -> Option<f32> {
        let mut device = Played::new(RATE_HZ);
        device.push(played);
        device.report(report.0, report.1);
        device.likeness(&heard[16_000..20_800], 1_300_000)
    }

    #[test]
    fn an_echo_is_found_within_its_delays_and_another_voice_is_none() {
        let (own, other) = (voice(1), voice(2));
        let mut late = vec![0; 3_200];
        late.extend(own.iter().map(|sample| sample / 30));
        // At 500 ms of its clock the device had played 500 ms.
        let found = likeness(&own, &late, (500_000, 500_000)).unwrap();
        assert!(found > 0.9, "200 ms late: {found}");
        let other = likeness(&own, &other, (500_000, 500_000)).unwrap();
        assert!(other < 0.5, "{other}");
        let elsewhere = likeness(&own, &late, (0, 500_000)).unwrap();
        assert!(elsewhere < 0.5, "half a second from where it was played: {elsewhere}");
        let both: Vec<i16> = late.iter().zip(voice(3)).map(|(echo, voice)| echo.saturating_add(voice)).collect();
        let both = likeness(&own, &both, (500_000, 500_000)).unwrap();
        assert!(both < 0.5, "a voice 30 dB above it: {both}");
    }

    #[test]
    fn nothing_is_told_without_a_report_of_a_pause_or_of_what_was_not_played() {
        let own = voice(1);
        let mut device = Played::new(24_000);
        device.push(&own);
        assert_eq!(device.likeness(&own[..4_800], 300_000), None, "no report");
        assert_eq!(likeness(&vec![0; 32_000], &own, (500_000, 500_000)), None, "a pause was played");
        for report in [(u64::MAX, 0), (0, u64::MAX), (9_000_000, 0)] {
            assert_eq!(likeness(&own, &own, report), None, "{report:?}");
        }
        device.report(0, 0);
        assert_eq!(device.likeness(&own[..100], 300_000), None, "too little sound");
    }
}
