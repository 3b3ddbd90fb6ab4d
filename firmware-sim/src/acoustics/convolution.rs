//! Convolution with a long response, block by block, without delay.
//!
//! Uniformly partitioned overlap-save in the frequency domain: Gardner, *Efficient Convolution without Input-Output
//! Delay* (1995); Wefers, *Partitioned Convolution Algorithms for Real-Time Auralization* (2014), chapter 5. The first
//! block of the response is empty, which gives a block of time to compute the rest.

use std::collections::VecDeque;
use std::sync::Arc;

use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftPlanner};

/// Blocks in a second. A packet of the microphone need not be a multiple of a block.
const BLOCKS_PER_S: u32 = 100;

/// Samples of a block, and from the direct sound to the beginning of a tail: 10 ms.
pub(super) fn block_samples(rate_hz: u32) -> usize {
    (rate_hz / BLOCKS_PER_S).max(1) as usize
}

/// Adds a tail, which begins a block after the direct sound.
pub(super) struct Convolver {
    block: usize,
    forward: Arc<dyn Fft<f32>>,
    inverse: Arc<dyn Fft<f32>>,
    /// Spectra of the response, block by block; the upper half of each follows from the lower.
    response: Vec<Vec<Complex32>>,
    /// Spectra of the input, newest first.
    inputs: VecDeque<Vec<Complex32>>,
    last: Vec<f32>,
    /// What has come of the block that is under way.
    current: Vec<f32>,
    /// The tail in that block.
    tail: Vec<f32>,
}

impl Convolver {
    /// `tail` begins [`block_samples`] after the direct sound.
    pub(super) fn new(tail: &[f32], rate_hz: u32) -> Self {
        let block = block_samples(rate_hz);
        let mut planner = FftPlanner::new();
        let (forward, inverse) = (planner.plan_fft_forward(2 * block), planner.plan_fft_inverse(2 * block));
        let spectrum = |part: &[f32]| {
            let mut spectrum: Vec<Complex32> = part.iter().map(|sample| Complex32::new(*sample, 0.0)).collect();
            spectrum.resize(2 * block, Complex32::default());
            forward.process(&mut spectrum);
            spectrum.truncate(block + 1);
            spectrum
        };
        let response = tail.chunks(block).map(spectrum).collect();
        let (last, current, tail) = (vec![0.0; block], Vec::with_capacity(block), vec![0.0; block]);
        Self { block, forward, inverse, response, inputs: VecDeque::new(), last, current, tail }
    }

    /// Adds the tail of all sound so far to `sound`. It may end within a block, whose tail is known from its beginning on.
    pub(super) fn add(&mut self, sound: &mut [f32]) {
        for sample in sound {
            let tail = self.tail.get(self.current.len()).copied().unwrap_or_default();
            self.current.push(*sample);
            *sample += tail;
            if self.current.len() == self.block {
                self.take();
                self.compute();
            }
        }
    }

    /// Takes the block that has come.
    fn take(&mut self) {
        let both = self.last.iter().chain(&self.current);
        let mut spectrum: Vec<Complex32> = both.map(|sample| Complex32::new(*sample, 0.0)).collect();
        self.forward.process(&mut spectrum);
        spectrum.truncate(self.block + 1);
        self.inputs.push_front(spectrum);
        self.inputs.truncate(self.response.len());
        std::mem::swap(&mut self.last, &mut self.current);
        self.current.clear();
    }

    /// Computes the tail in the next block.
    fn compute(&mut self) {
        let length = 2 * self.block;
        let mut sum = vec![Complex32::default(); length];
        for (input, response) in self.inputs.iter().zip(&self.response) {
            for ((sum, input), response) in sum.iter_mut().zip(input).zip(response) {
                *sum += input * response;
            }
        }
        for n in 1..self.block {
            sum[length - n] = sum[n].conj();
        }
        self.inverse.process(&mut sum);
        let scale = 1.0 / length as f32;
        for (tail, sum) in self.tail.iter_mut().zip(sum.iter().skip(self.block)) {
            *tail = sum.re * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn it_is_the_sum_that_defines_it() {
        let mut random = Random::new(3);
        let mut noise = |count: usize| (0..count).map(|_| random.unit() as f32 - 0.5).collect::<Vec<f32>>();
        // Packets of 10, 40 and 60 ms, and of two LC3 frames of 7.5 ms.
        for packets in [&[160, 640, 960][..], &[240; 8][..]] {
            for length in [1, 160, 777] {
                let (tail, input) = (noise(length), noise(1_920));
                let mut convolver = Convolver::new(&tail, 16_000);
                let (mut output, mut heard) = (input.clone(), 0);
                for packet in packets {
                    convolver.add(&mut output[heard..heard + packet]);
                    heard += packet;
                }
                for (n, sample) in output.iter().enumerate().take(heard) {
                    let mut wanted = input[n];
                    for (at, tap) in tail.iter().enumerate() {
                        wanted += n.checked_sub(160 + at).map_or(0.0, |from| input[from] * tap);
                    }
                    assert!((sample - wanted).abs() < 1e-3, "{packets:?} {length} {n}: {sample} {wanted}");
                }
            }
        }
    }
}
