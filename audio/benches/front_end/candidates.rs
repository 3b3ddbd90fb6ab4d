//! What could stand before voice detection and recognition. Each hears a stream at 16 kHz and gives one of the same length.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use anyhow::{Context as _, Result};
use audio::resample::Resampler;
use nnnoiseless::DenoiseState;

use crate::clips::CLIP_HZ;

/// Corner of the high-pass: below any voice.
const CORNER_HZ: f64 = 80.0;
/// Samples of what the gain judges: 20 ms.
const FRAME: usize = CLIP_HZ as usize / 50;
/// Level to which a voice is raised, as a root mean square: -26 dB of full scale, the nominal level of ITU-T P.56.
const WANTED_RMS: f64 = 1_642.0;
/// Highest gain: 30 dB.
const GAIN_MAX: f64 = 31.6;
/// How far above the noise a frame is voice: 10 dB.
const VOICE_OVER_NOISE: f64 = 3.16;
/// Lowest noise that is believed, so that digital silence is none.
const NOISE_RMS_MIN: f64 = 3.0;
/// Change of the gain in one frame in which nobody speaks: 12 dB a second.
const GAIN_STEP: f64 = 1.028;
/// Rise of the noise's estimate in one frame: 3 dB a second.
const NOISE_STEP: f64 = 1.0069;
/// Fall of the voice's estimate in one voiced frame: 3 dB a second of voice.
const VOICE_STEP: f64 = 0.9931;
/// Rate of the noise suppressor.
const SUPPRESSOR_HZ: u32 = 48_000;

/// What the bench puts before detection and recognition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Candidate {
    /// The sound as it is.
    Nothing,
    /// A Butterworth high-pass of the second order.
    HighPass,
    /// A slow gain, which stands still while somebody speaks and never lowers anything.
    Gain,
    /// RNNoise, by `nnnoiseless`, over a conversion to 48 kHz and back.
    Suppression,
}

impl Candidate {
    pub const ALL: [Self; 4] = [Self::Nothing, Self::HighPass, Self::Gain, Self::Suppression];

    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::HighPass => "high-pass",
            Self::Gain => "gain",
            Self::Suppression => "suppression",
        }
    }

    /// What it makes of a stream.
    pub fn apply(self, pcm: &[i16]) -> Result<Vec<i16>> {
        match self {
            Self::Nothing => Ok(pcm.to_vec()),
            Self::HighPass => Ok(high_pass(pcm)),
            Self::Gain => Ok(gain(pcm)),
            Self::Suppression => suppress(pcm),
        }
    }
}

/// R. Bristow-Johnson, "Cookbook formulae for audio equalizer biquad filter coefficients": HPF, Q = 1/√2.
fn high_pass(pcm: &[i16]) -> Vec<i16> {
    let (sin, cos) = (TAU * CORNER_HZ / f64::from(CLIP_HZ)).sin_cos();
    let alpha = sin / (2.0 * FRAC_1_SQRT_2);
    let a0 = 1.0 + alpha;
    let (b0, b1) = (f64::midpoint(1.0, cos) / a0, -(1.0 + cos) / a0);
    let (a1, a2) = (-2.0 * cos / a0, (1.0 - alpha) / a0);
    let (mut x1, mut x2, mut y1, mut y2) = (0.0, 0.0, 0.0, 0.0);
    let filtered = pcm.iter().map(|sample| {
        let x = f64::from(*sample);
        let y = b0 * x + b1 * x1 + b0 * x2 - a1 * y1 - a2 * y2;
        (x2, x1, y2, y1) = (x1, x, y1, y);
        // The cast saturates.
        y.round() as i16
    });
    filtered.collect()
}

fn gain(pcm: &[i16]) -> Vec<i16> {
    let (mut voice, mut noise, mut gain) = (0.0, f64::MAX, 1.0_f64);
    let mut out = Vec::with_capacity(pcm.len());
    for frame in pcm.chunks(FRAME) {
        let power = frame.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / frame.len() as f64;
        let rms = power.sqrt().max(NOISE_RMS_MIN);
        noise = (noise * NOISE_STEP).min(rms);
        let before = gain;
        if rms > noise * VOICE_OVER_NOISE {
            voice = rms.max(voice * VOICE_STEP);
        } else if voice > 0.0 {
            let wanted = (WANTED_RMS / voice).clamp(1.0, GAIN_MAX);
            gain = wanted.clamp(gain / GAIN_STEP, gain * GAIN_STEP);
        }
        for (n, sample) in frame.iter().enumerate() {
            let now = before + (gain - before) * n as f64 / frame.len() as f64;
            out.push((f64::from(*sample) * now).round() as i16);
        }
    }
    out
}

fn suppress(pcm: &[i16]) -> Result<Vec<i16>> {
    let (mut up, mut down) = (Resampler::new(CLIP_HZ, SUPPRESSOR_HZ)?, Resampler::new(SUPPRESSOR_HZ, CLIP_HZ)?);
    // Its overlapping windows give a frame back one frame later.
    let delay_us = up.delay_us() + down.delay_us() + 10_000;
    let delay = (delay_us * u64::from(CLIP_HZ) / 1_000_000) as usize;
    let mut padded = pcm.to_vec();
    padded.resize(pcm.len() + delay + FRAME, 0);
    let (mut wide, mut clean, mut out) = (Vec::new(), Vec::new(), Vec::new());
    up.push(&padded, &mut wide);
    let mut suppressor = DenoiseState::new();
    let mut given = [0.0; DenoiseState::FRAME_SIZE];
    for frame in wide.chunks_exact(DenoiseState::FRAME_SIZE) {
        let frame: Vec<f32> = frame.iter().map(|sample| f32::from(*sample)).collect();
        suppressor.process_frame(&mut given, &frame);
        clean.extend(given.iter().map(|sample| sample.round() as i16));
    }
    down.push(&clean, &mut out);
    Ok(out.get(delay..delay + pcm.len()).context("the suppressor gave too little")?.to_vec())
}
