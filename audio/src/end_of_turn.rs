//! Probability that the speaker has finished: Smart Turn v3.2 through rten.
//!
//! Shapes: input `input_features` [1, 80, 800], the log-mel spectrogram of the last 8 s at 16 kHz, shorter sound padded
//! with silence in front; output one probability. A call takes tens of milliseconds: run it on a compute thread, once
//! per pause, never in the listener.
//!
//! Source of the features: Whisper's front end (Radford et al. 2022), applied to sound normalised to zero mean and unit
//! variance, as in the model's own package.

use std::path::Path;
use std::sync::Arc;

use rten::{NodeId, RunOptions, ThreadPool, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensorView, Tensor};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use crate::meter::Meter;

/// File name of the model in the models folder.
pub const FILE_NAME: &str = "smart-turn-v3.2-cpu.onnx";

/// Samples of the model's input: 8 s at 16 kHz.
pub const SAMPLES: usize = 128_000;

/// Samples in one analysis frame: 25 ms.
const FFT_SAMPLES: usize = 400;
/// Samples from one frame to the next: 10 ms.
const HOP_SAMPLES: usize = 160;
const FRAMES: usize = SAMPLES / HOP_SAMPLES;
const MELS: usize = 80;
const BINS: usize = FFT_SAMPLES / 2 + 1;

/// Floor for the power of a mel band, so that its logarithm is finite.
const POWER_MIN: f64 = 1e-10;

/// Range of the spectrogram in powers of ten: values further below the loudest band are raised to that limit.
const RANGE: f64 = 8.0;

/// Why a score could not be computed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is missing, unreadable, or not this model.
    #[error("cannot load the end-of-turn model {path}: {reason}; `lorgnette models fetch` brings it")]
    Load {
        /// File of the model.
        path: String,
        /// What was wrong.
        reason: String,
    },
    /// The model failed.
    #[error("the end-of-turn model failed: {reason}")]
    Run {
        /// The runtime's error message.
        reason: String,
    },
}

/// The model and its front end, shared by all devices.
pub struct Model {
    model: rten::Model,
    input: NodeId,
    output: NodeId,
    options: RunOptions,
    features: Features,
    meter: Arc<Meter>,
}

impl Model {
    /// Loads the model from `path` and runs it once as a check.
    ///
    /// # Errors
    /// [`Error::Load`].
    pub fn load(path: &Path) -> Result<Arc<Self>, Error> {
        let failed = |reason: String| Error::Load { path: path.display().to_string(), reason };
        let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        let model = rten::Model::load(bytes).map_err(|error| failed(error.to_string()))?;
        let (&[input], &[output]) = (model.input_ids(), model.output_ids()) else {
            return Err(failed("it has not one input and one output".to_owned()));
        };
        // One thread: the pause is short, and the other cores run speech recognition meanwhile.
        let pool = Arc::new(ThreadPool::with_num_threads(1));
        let options = RunOptions::default().with_thread_pool(Some(pool));
        let model = Self { model, input, output, options, features: Features::new(), meter: Arc::default() };
        model.run(&[]).map_err(|error| failed(error.to_string()))?;
        Ok(Arc::new(model))
    }

    /// Probability (0 to 1) that the speaker of `pcm` (mono, 16 kHz) has finished. Only the last 8 s are used. Sound
    /// without any voice scores high: call it only at a pause.
    ///
    /// # Errors
    /// [`Error::Run`].
    pub fn score(&self, pcm: &[i16]) -> Result<f32, Error> {
        self.meter.measure(|| self.run(pcm))
    }

    /// Counts its scores.
    pub fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }

    fn run(&self, pcm: &[i16]) -> Result<f32, Error> {
        let failed = |reason: &dyn std::fmt::Display| Error::Run { reason: reason.to_string() };
        let features = self.features.log_mel(pcm);
        let view = NdTensorView::from_data([1, MELS, FRAMES], &features[..]);
        let inputs: Vec<(NodeId, ValueOrView)> = vec![(self.input, view.into())];
        let mut outputs =
            self.model.run(inputs, &[self.output], Some(self.options.clone())).map_err(|error| failed(&error))?;
        let output = outputs.pop().ok_or_else(|| failed(&"no output"))?;
        let output: Tensor<f32> = output.try_into().map_err(|_| failed(&"the output is not f32"))?;
        let values: Vec<f32> = output.iter().copied().collect();
        match values.as_slice() {
            [score] if (0.0..=1.0).contains(score) => Ok(*score),
            other => Err(failed(&format!("{} values instead of one probability", other.len()))),
        }
    }
}

/// One mel band: its first bin and its weights.
struct Band {
    first: usize,
    weights: Vec<f64>,
}

struct Features {
    fft: Arc<dyn Fft<f64>>,
    window: Vec<f64>,
    bands: Vec<Band>,
}

impl Features {
    fn new() -> Self {
        let turn = 2.0 * std::f64::consts::PI / FFT_SAMPLES as f64;
        Self {
            fft: FftPlanner::new().plan_fft_forward(FFT_SAMPLES),
            // Periodic Hann window.
            window: (0..FFT_SAMPLES).map(|n| 0.5 - 0.5 * (turn * n as f64).cos()).collect(),
            bands: slaney_bands(),
        }
    }

    /// Log-mel spectrogram [80, 800], band after band.
    fn log_mel(&self, pcm: &[i16]) -> Vec<f32> {
        let sound = normalised(pcm);
        let mut logs = vec![0.0; MELS * FRAMES];
        let mut spectrum = vec![Complex::default(); FFT_SAMPLES];
        let mut scratch = vec![Complex::default(); self.fft.get_inplace_scratch_len()];
        let mut power = [0.0; BINS];
        let mut loudest = f64::NEG_INFINITY;
        for frame in 0..FRAMES {
            for (n, (slot, weight)) in spectrum.iter_mut().zip(&self.window).enumerate() {
                let at = (frame * HOP_SAMPLES + n) as isize - (FFT_SAMPLES / 2) as isize;
                *slot = Complex::new(f64::from(sound[mirrored(at)]) * weight, 0.0);
            }
            self.fft.process_with_scratch(&mut spectrum, &mut scratch);
            for (slot, value) in power.iter_mut().zip(&spectrum) {
                *slot = value.norm_sqr();
            }
            for (index, band) in self.bands.iter().enumerate() {
                let bins = power.iter().skip(band.first).zip(&band.weights);
                let sum: f64 = bins.map(|(power, weight)| power * weight).sum();
                let log = sum.max(POWER_MIN).log10();
                loudest = loudest.max(log);
                logs[index * FRAMES + frame] = log;
            }
        }
        logs.iter().map(|log| ((log.max(loudest - RANGE) + 4.0) / 4.0) as f32).collect()
    }
}

/// The last 8 s, shorter sound padded with silence in front, at zero mean and unit variance.
fn normalised(pcm: &[i16]) -> Vec<f32> {
    let kept = &pcm[pcm.len().saturating_sub(SAMPLES)..];
    let mut sound = vec![0.0f32; SAMPLES - kept.len()];
    sound.extend(kept.iter().map(|sample| f32::from(*sample) / 32_768.0));
    let count = SAMPLES as f64;
    let mean = sound.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
    let variance = sound.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / count;
    let scale = 1.0 / (variance + 1e-7).sqrt();
    sound.iter_mut().for_each(|x| *x = ((f64::from(*x) - mean) * scale) as f32);
    sound
}

/// Index of the sample at `at`, with both ends mirrored.
fn mirrored(at: isize) -> usize {
    let last = SAMPLES as isize - 1;
    let at = if at < 0 { -at } else { at };
    (if at > last { 2 * last - at } else { at }).clamp(0, last) as usize
}

/// 80 triangles from 0 to 8 kHz on Slaney's mel scale (Auditory Toolbox, 1998), each of unit area.
fn slaney_bands() -> Vec<Band> {
    let log_step = 6.4f64.ln() / 27.0;
    let mel_to_hz = |mel: f64| {
        if mel < 15.0 { mel * 200.0 / 3.0 } else { 1_000.0 * (log_step * (mel - 15.0)).exp() }
    };
    let mel_max = 15.0 + 8f64.ln() / log_step;
    let edges: Vec<f64> = (0..MELS + 2).map(|n| mel_to_hz(mel_max * n as f64 / (MELS + 1) as f64)).collect();
    let bin_hz = 8_000.0 / (BINS - 1) as f64;
    edges
        .windows(3)
        .map(|edge| {
            let (low, middle, high) = (edge[0], edge[1], edge[2]);
            let weight = |bin: usize| {
                let hz = bin as f64 * bin_hz;
                let slope = ((hz - low) / (middle - low)).min((high - hz) / (high - middle));
                slope.max(0.0) * 2.0 / (high - low)
            };
            let first = (low / bin_hz).ceil() as usize;
            let end = ((high / bin_hz).floor() as usize + 1).min(BINS);
            Band { first, weights: (first..end).map(weight).collect() }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{FRAMES, Features, MELS};

    /// Band, frame, and the value of the model's own front end (NumPy, double precision) for the sound below.
    const REFERENCE: [(usize, usize, f32); 8] = [
        (0, 0, 0.23084),
        (0, 799, 0.85102),
        (10, 500, 1.54938),
        (40, 600, 1.00162),
        (79, 700, 1.52174),
        (79, 487, 0.57925),
        (5, 488, 1.26276),
        (60, 799, 0.9204),
    ];
    const REFERENCE_MEAN: f32 = 0.28811;

    #[test]
    fn features_are_those_of_the_reference() {
        let sound: Vec<i16> = (0..50_000i64).map(|n| ((n * n / 7) % 20_011 - 10_000) as i16).collect();
        let features = Features::new().log_mel(&sound);
        assert_eq!(features.len(), MELS * FRAMES);
        let mean = features.iter().sum::<f32>() / features.len() as f32;
        for (band, frame, expected) in REFERENCE {
            let got = features[band * FRAMES + frame];
            assert!((got - expected).abs() < 2e-3, "band {band}, frame {frame}: {got}, not {expected}");
        }
        assert!((mean - REFERENCE_MEAN).abs() < 1e-3, "{mean}");
    }
}
