//! Sample-rate conversion.
//!
//! A polyphase windowed-sinc filter for the rational ratios between the supported rates. It takes chunks of any length
//! and holds back only half its filter length, which a block resampler cannot: at 16 kHz its delay is 1.5 ms.
//!
//! Source of the method: Crochiere and Rabiner, *Multirate Digital Signal Processing* (1983),
//! chapter 4; window and its parameter: Kaiser (1974).

use crate::samples::SoundBuffer;

/// Filter taps per output sample, counted at the lower of the two rates.
const TAPS: usize = 48;

/// Kaiser window parameter: about 70 dB of stop-band attenuation.
const KAISER_BETA: f64 = 6.8;

/// Middle of the transition band as a share of the lower rate. 0.5 would be its Nyquist frequency;
/// the transition then ends just above it, at -70 dB.
const CUTOFF: f64 = 0.46;

/// Accepted rates in hertz. The filter table grows with the reduced ratio, so the bound keeps it small.
pub const RATE_HZ_RANGE: std::ops::RangeInclusive<u32> = 8_000..=48_000;

/// Largest reduced ratio term: 44.1 kHz to 48 kHz is 147 to 160.
const PHASES_MAX: u32 = 640;

/// The rates cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot convert {from_hz} Hz to {to_hz} Hz; rates of 8000 to 48000 Hz in a simple ratio can be")]
pub struct Error {
    from_hz: u32,
    to_hz: u32,
}

/// Converts one stream of mono samples from one rate to another.
pub struct Resampler {
    from_hz: u32,
    /// Upsampling factor of the reduced ratio, and number of filter phases.
    up: usize,
    /// Downsampling factor of the reduced ratio.
    down: usize,
    /// Taps of each phase, phase after phase, in the order of the samples they are multiplied with.
    taps: Vec<f32>,
    taps_per_phase: usize,
    history: SoundBuffer<f32>,
    phase: usize,
}

impl Resampler {
    /// A converter from `from_hz` to `to_hz`.
    ///
    /// # Errors
    /// Rates outside [`RATE_HZ_RANGE`] or without a simple ratio.
    pub fn new(from_hz: u32, to_hz: u32) -> Result<Self, Error> {
        let error = Error { from_hz, to_hz };
        if !RATE_HZ_RANGE.contains(&from_hz) || !RATE_HZ_RANGE.contains(&to_hz) {
            return Err(error);
        }
        let divisor = gcd(from_hz, to_hz);
        let (up, down) = (to_hz / divisor, from_hz / divisor);
        if up > PHASES_MAX || down > PHASES_MAX {
            return Err(error);
        }
        let (up, down) = (up as usize, down as usize);
        let (taps, taps_per_phase) = if up == down { (Vec::new(), 0) } else { design(up, down) };
        let mut resampler = Self { from_hz, up, down, taps, taps_per_phase, history: SoundBuffer::default(), phase: 0 };
        resampler.reset();
        Ok(resampler)
    }

    /// Resets to the start of a stream.
    pub fn reset(&mut self) {
        self.phase = 0;
        self.history = vec![0.0_f32; self.taps_per_phase.saturating_sub(1)].into();
    }

    /// Delay of the output behind the input, in microseconds.
    pub fn delay_us(&self) -> u64 {
        // A linear-phase filter delays by half its length.
        let half = (self.taps_per_phase * self.up).saturating_sub(1) as u64;
        half * 1_000_000 / (2 * self.up as u64 * u64::from(self.from_hz))
    }

    /// Input samples after which the last sample has left the filter: push that many zeros to flush a finite sound.
    pub fn tail_samples(&self) -> usize {
        self.taps_per_phase.saturating_sub(1)
    }

    /// Converts `input` and appends the available output to `out`.
    pub fn push(&mut self, input: &[i16], out: &mut Vec<i16>) {
        if self.taps_per_phase == 0 {
            out.extend_from_slice(input);
            return;
        }
        self.history.extend(input.iter().map(|sample| f32::from(*sample)));
        let mut start = 0;
        while let Some(window) = self.history.get(start..start + self.taps_per_phase) {
            let first = self.phase * self.taps_per_phase;
            let taps = &self.taps[first..first + self.taps_per_phase];
            // The cast saturates.
            out.push(dot(window, taps).round() as i16);
            self.phase += self.down;
            start += self.phase / self.up;
            self.phase %= self.up;
        }
        let used = start.min(self.history.len());
        self.history.drop_first(used);
        // With a large step the next window may begin past the end of the input so far.
        debug_assert_eq!(used, start, "a window is longer than any step");
    }
}

/// Sum of products in eight lanes, which the compiler turns into vector instructions.
fn dot(left: &[f32], right: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 8];
    let (left_blocks, left_rest) = left.as_chunks::<8>();
    let (right_blocks, right_rest) = right.as_chunks::<8>();
    for (a, b) in left_blocks.iter().zip(right_blocks) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f32>() + rest
}

/// Filter table of `up` phases, and the length of each phase.
fn design(up: usize, down: usize) -> (Vec<f32>, usize) {
    // When downsampling the filter spans the same time at the lower rate, hence more input samples.
    let per_phase = if down > up { (TAPS * down).div_ceil(up) } else { TAPS };
    let length = per_phase * up;
    let cutoff = CUTOFF / up.max(down) as f64;
    let middle = (length - 1) as f64 / 2.0;
    let prototype: Vec<f64> = (0..length)
        .map(|n| {
            let x = n as f64 - middle;
            let sinc = if x == 0.0 {
                2.0 * cutoff
            } else {
                (2.0 * std::f64::consts::PI * cutoff * x).sin() / (std::f64::consts::PI * x)
            };
            let edge = x / (middle + 1.0);
            sinc * bessel_i0(KAISER_BETA * (1.0 - edge * edge).sqrt()) / bessel_i0(KAISER_BETA)
        })
        .collect();
    let mut taps = Vec::with_capacity(length);
    for phase in 0..up {
        // The newest input is multiplied with the prototype's first tap, so each phase is stored backwards.
        let of_phase: Vec<f64> = (0..per_phase).rev().map(|k| prototype[k * up + phase]).collect();
        // Each phase has unit gain for a constant; otherwise the slightly different gains of the phases would be
        // audible as a tone at the ratio's frequency.
        let gain: f64 = of_phase.iter().sum();
        taps.extend(of_phase.iter().map(|tap| (tap / gain) as f32));
    }
    (taps, per_phase)
}

/// Modified Bessel function of order zero, by its power series.
fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 1..40 {
        term *= quarter / f64::from(k * k);
        sum += term;
    }
    sum
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
