//! From predicted spectra to samples: a filtered pulse train at the predicted pitch, plus shaped noise, plus a part
//! with free phase; then the inverse short-time Fourier transform (1,200 points, hop 300, Hann).
//!
//! S = e^voiced · e^(iπ tanh θ) · STFT(pulses) + e^noise · Z + e^rest · e^(iφ), as in hibari-tts 0.2.1, `dsp.py`. Two
//! real frames share one complex transform. Frames are processed in blocks, so that the working set stays in the
//! second-level cache for any clause length.

use std::f32::consts::PI;
use std::sync::Arc;

use rten_simd::SimdUnaryOp;
use rten_vecmath::{Cos, Exp, Sin, Tanh};
use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftPlanner};

use super::Voice;
use super::acoustic::{BINS, Spectrum};

const FFT: usize = 1_200;
const HOP: usize = 300;
/// Below this pitch a frame is unvoiced.
const VOICED_HZ_MIN: f32 = 40.0;
/// Upper limit of the pulse train's harmonics.
const HARMONIC_HZ_MAX: f32 = 11_000.0;
/// Log magnitudes are capped here before the exponential.
const LOG_MAX: f32 = 7.0;
/// Frames in a block; even, because two frames share a transform.
const BLOCK: usize = 16;

/// Plans and buffers, reused by every clause.
pub(super) struct Vocoder {
    forward: Arc<dyn Fft<f32>>,
    inverse: Arc<dyn Fft<f32>>,
    fft_scratch: Vec<Complex32>,
    window: Vec<f32>,
    pulses: Pulses,
    frame_pair: Vec<Complex32>,
    block: Block,
    overlap: Vec<f32>,
}

/// One block of frames, frame after frame, [`BINS`] values each.
#[derive(Default)]
struct Block {
    voiced: Vec<f32>,
    voiced_cos: Vec<f32>,
    voiced_sin: Vec<f32>,
    noise: Vec<f32>,
    rest: Vec<f32>,
    rest_cos: Vec<f32>,
    rest_sin: Vec<f32>,
}

impl Vocoder {
    pub(super) fn new() -> Self {
        let mut planner = FftPlanner::new();
        let (forward, inverse) = (planner.plan_fft_forward(FFT), planner.plan_fft_inverse(FFT));
        let scratch = forward.get_inplace_scratch_len().max(inverse.get_inplace_scratch_len());
        let window = (0..FFT).map(|n| 0.5 - 0.5 * (2.0 * PI * n as f32 / FFT as f32).cos()).collect();
        Self {
            forward,
            inverse,
            fft_scratch: vec![Complex32::default(); scratch],
            window,
            pulses: Pulses::default(),
            frame_pair: vec![Complex32::default(); FFT],
            block: Block::default(),
            overlap: Vec::new(),
        }
    }

    /// Appends `spectrum.frames` · 300 samples to `out`; `normal` draws from a standard normal distribution.
    pub(super) fn render(&mut self, spectrum: &Spectrum, mut normal: impl FnMut() -> f32, out: &mut Vec<f32>) {
        let frames = spectrum.frames;
        // The pulse train is mirrored at both ends by half a transform, so it must be longer than that.
        if frames * HOP <= FFT / 2 {
            return;
        }
        self.pulses.fill(&spectrum.pitch_hz);
        self.overlap.clear();
        self.overlap.resize((frames - 1) * HOP + FFT, 0.0);
        for start in (0..frames).step_by(BLOCK) {
            let len = BLOCK.min(frames - start);
            self.block.fill(spectrum, start, len);
            for pair in (0..len).step_by(2) {
                self.render_pair(start, pair, len, &mut normal);
            }
        }
        let norm = WindowNorm::new(&self.window, frames);
        let kept = self.overlap.iter().enumerate().skip(FFT / 2).take(frames * HOP);
        out.extend(kept.map(|(n, sample)| sample * norm.at(n)));
    }

    /// Renders frame `start + pair` and, if the block holds it, the next one.
    fn render_pair(&mut self, start: usize, pair: usize, len: usize, normal: &mut impl FnMut() -> f32) {
        let (first, second) = (start + pair, (pair + 1 < len).then_some(start + pair + 1));
        let scale = 4.0 / FFT as f32;
        let buffer = &mut self.frame_pair;
        let voiced = self.pulses.sounds_in(first) || second.is_some_and(|frame| self.pulses.sounds_in(frame));
        if voiced {
            for (n, (slot, window)) in buffer.iter_mut().zip(&self.window).enumerate() {
                let re = self.pulses.mirrored(first * HOP + n);
                let im = second.map_or(0.0, |frame| self.pulses.mirrored(frame * HOP + n));
                *slot = Complex32::new(re, im) * (window * scale);
            }
            self.forward.process_with_scratch(buffer, &mut self.fft_scratch);
        } else {
            buffer.fill(Complex32::default());
        }
        for bin in 0..BINS {
            let mirror = (FFT - bin) % FFT;
            let (low, high) = (buffer[bin], buffer[mirror].conj());
            let mut a = (low + high) * 0.5;
            let mut b = (low - high) * Complex32::new(0.0, -0.5);
            a = self.block.shape(pair, bin, a, normal);
            b = if second.is_some() { self.block.shape(pair + 1, bin, b, normal) } else { Complex32::default() };
            if bin == mirror || bin == 0 {
                // For a real signal the first and the last bin are real.
                a.im = 0.0;
                b.im = 0.0;
            }
            let i = Complex32::i();
            buffer[bin] = a + i * b;
            if mirror != bin {
                buffer[mirror] = a.conj() + i * b.conj();
            }
        }
        self.inverse.process_with_scratch(buffer, &mut self.fft_scratch);
        let at = first * HOP;
        for (n, (value, window)) in buffer.iter().zip(&self.window).enumerate() {
            let windowed = *value * (window / FFT as f32);
            self.overlap[at + n] += windowed.re;
            if second.is_some() {
                self.overlap[at + HOP + n] += windowed.im;
            }
        }
    }
}

impl Block {
    /// Transposes frames `start..start + len` to frame order, and converts log magnitudes and phases.
    fn fill(&mut self, spectrum: &Spectrum, start: usize, len: usize) {
        let turn = |source: &[f32], target: &mut Vec<f32>| {
            target.resize(len * BINS, 0.0);
            for (bin, row) in source.chunks_exact(spectrum.frames).enumerate() {
                for (frame, value) in row[start..start + len].iter().enumerate() {
                    target[frame * BINS + bin] = *value;
                }
            }
        };
        let magnitude = |values: &mut Vec<f32>| {
            values.iter_mut().for_each(|value| *value = value.min(LOG_MAX));
            Exp {}.map_mut(values);
        };
        let angle = |cos: &mut Vec<f32>, sin: &mut Vec<f32>| {
            sin.clone_from(cos);
            Cos::new().map_mut(cos);
            Sin::new().map_mut(sin);
        };
        turn(&spectrum.voiced_log, &mut self.voiced);
        turn(&spectrum.voiced_phase, &mut self.voiced_cos);
        turn(&spectrum.noise_log, &mut self.noise);
        turn(&spectrum.rest_log, &mut self.rest);
        turn(&spectrum.rest_phase, &mut self.rest_cos);
        magnitude(&mut self.voiced);
        magnitude(&mut self.noise);
        magnitude(&mut self.rest);
        Tanh {}.map_mut(&mut self.voiced_cos);
        self.voiced_cos.iter_mut().for_each(|value| *value *= PI);
        angle(&mut self.voiced_cos, &mut self.voiced_sin);
        angle(&mut self.rest_cos, &mut self.rest_sin);
    }

    /// The three parts of one bin; `pulse` is the pulse train's.
    fn shape(&self, frame: usize, bin: usize, pulse: Complex32, normal: &mut impl FnMut() -> f32) -> Complex32 {
        let at = frame * BINS + bin;
        let voiced = pulse * Complex32::new(self.voiced_cos[at], self.voiced_sin[at]) * self.voiced[at];
        let noise = Complex32::new(normal(), normal()) * self.noise[at];
        let rest = Complex32::new(self.rest_cos[at], self.rest_sin[at]) * self.rest[at];
        voiced + noise + rest
    }
}

/// A train of pulses with all harmonics below [`HARMONIC_HZ_MAX`] at amplitude 1:
/// Σ cos(h t) for h ≤ H equals sin((H + ½) t) / (2 sin(t / 2)) − ½.
#[derive(Default)]
struct Pulses {
    samples: Vec<f32>,
    divisor: Vec<f32>,
    sounding: Vec<bool>,
}

impl Pulses {
    fn fill(&mut self, pitch_hz: &[f32]) {
        let frames = pitch_hz.len();
        self.samples.clear();
        self.divisor.clear();
        let mut harmonics = Vec::with_capacity(frames * HOP);
        let mut turns = 0.0_f64;
        for n in 0..frames * HOP {
            let pitch = pitch_at(pitch_hz, n);
            let hz = if pitch > VOICED_HZ_MIN { pitch } else { VOICED_HZ_MIN };
            turns = (turns + f64::from(hz) / f64::from(Voice::RATE_HZ)).fract();
            let sines = f64::from((HARMONIC_HZ_MAX / hz).floor()) + 0.5;
            // Whole turns are removed before the sine, which is accurate only for small angles.
            self.samples.push((turns * sines).fract() as f32 * (2.0 * PI));
            self.divisor.push(turns as f32 * PI);
            harmonics.push(if pitch > VOICED_HZ_MIN { sines as f32 } else { 0.0 });
        }
        Sin::new().map_mut(&mut self.samples);
        Sin::new().map_mut(&mut self.divisor);
        for ((sample, sine), sines) in self.samples.iter_mut().zip(&self.divisor).zip(&harmonics) {
            let divisor = 2.0 * sine;
            *sample = match *sines {
                0.0 => 0.0,
                // The limit where both sines vanish.
                sines if divisor.abs() <= 2e-3 => sines - 0.5,
                _ => *sample / divisor - 0.5,
            };
        }
        self.sounding.clear();
        self.sounding.extend(harmonics.chunks(HOP).map(|hop| hop.iter().any(|sines| *sines > 0.0)));
    }

    /// Whether a pulse lies within the window of `frame`, which reaches two hops to each side.
    fn sounds_in(&self, frame: usize) -> bool {
        let reach = frame.saturating_sub(2)..(frame + 3).min(self.sounding.len());
        self.sounding.get(reach).is_some_and(|hops| hops.contains(&true))
    }

    /// The train mirrored at both ends; index 0 is half a transform before its start.
    fn mirrored(&self, n: usize) -> f32 {
        let (half, last) = (FFT / 2, self.samples.len() - 1);
        let at = if n < half {
            half - n
        } else if n - half > last {
            2 * last - (n - half)
        } else {
            n - half
        };
        self.samples[at]
    }
}

/// Pitch at sample `n`, interpolated linearly between frame centres.
fn pitch_at(pitch_hz: &[f32], n: usize) -> f32 {
    let (frame, at) = (n / HOP, n % HOP);
    let place = ((at as f32 + 0.5) / HOP as f32 + 0.5).fract();
    let (left, right) = if at < HOP / 2 { (frame.saturating_sub(1), frame) } else { (frame, frame + 1) };
    let left = pitch_hz[left];
    let right = pitch_hz[right.min(pitch_hz.len() - 1)];
    left * (1.0 - place) + right * place
}

/// One over the summed squares of all windows that cover a sample.
struct WindowNorm<'a> {
    window: &'a [f32],
    frames: usize,
    inside: f32,
}

impl<'a> WindowNorm<'a> {
    fn new(window: &'a [f32], frames: usize) -> Self {
        // For four Hann windows a quarter apart the sum of squares is constant.
        let inside = 1.0 / (0..FFT / HOP).map(|k| window[k * HOP].powi(2)).sum::<f32>();
        Self { window, frames, inside }
    }

    fn at(&self, n: usize) -> f32 {
        let block = n / HOP;
        if block >= FFT / HOP - 1 && block < self.frames {
            return self.inside;
        }
        let covering = (0..FFT / HOP).filter(|k| block >= *k && block - k < self.frames);
        let sum: f32 = covering.map(|k| self.window[k * HOP + n % HOP].powi(2)).sum();
        1.0 / sum.max(1e-11)
    }
}
