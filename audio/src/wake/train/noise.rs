//! Made noise, rooms and gain, by which one clip becomes many.

use std::f32::consts::TAU;

use rand::RngExt as _;
use rand::rngs::SmallRng;

use crate::frame::RATE_HZ;

/// Kinds of noise. All are made: what is said of recall in noise is said of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The same power at all frequencies.
    White,
    /// The same power in each octave.
    Pink,
    /// Like a large fan.
    Brown,
    /// Chords of harmonic tones.
    Music,
    /// Low rumble with passing, louder events.
    Street,
    /// Of any slope over the frequencies, now louder, now softer.
    Drift,
}

/// Kinds that training uses; the others are held out.
pub const FOR_TRAINING: [Kind; 4] = [Kind::White, Kind::Brown, Kind::Music, Kind::Drift];

impl Kind {
    /// As reports of a judged head name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::White => "white",
            Self::Pink => "pink",
            Self::Brown => "brown",
            Self::Music => "music",
            Self::Street => "street",
            Self::Drift => "drift",
        }
    }

    /// So many samples at 16 kHz, with a mean power near one.
    pub fn samples(self, count: usize, random: &mut SmallRng) -> Vec<f32> {
        let white = |random: &mut SmallRng| (random.random::<f32>() * 2.0 - 1.0) * 3.0_f32.sqrt();
        let mut samples: Vec<f32> = match self {
            Self::White => (0..count).map(|_| white(random)).collect(),
            Self::Pink => {
                // Three leaky sums, after Kellet's economical filter.
                let mut state = [0.0_f32; 3];
                let mut next = |random: &mut SmallRng| {
                    let x = white(random);
                    state[0] = 0.997_65 * state[0] + x * 0.099_046;
                    state[1] = 0.963 * state[1] + x * 0.296_516_4;
                    state[2] = 0.57 * state[2] + x * 1.052_691_3;
                    state.iter().sum::<f32>() + x * 0.184_8
                };
                (0..count).map(|_| next(random)).collect()
            }
            Self::Brown => leaky(count, 0.99, random),
            Self::Music => chords(count, random),
            Self::Street => street(count, random),
            Self::Drift => drift(count, random),
        };
        let power = power(&samples).max(1e-9).sqrt();
        samples.iter_mut().for_each(|x| *x /= power);
        samples
    }
}

fn leaky(count: usize, keep: f32, random: &mut SmallRng) -> Vec<f32> {
    let mut state = 0.0;
    let mut next = |random: &mut SmallRng| {
        state = state * keep + random.random::<f32>() * 2.0 - 1.0;
        state
    };
    (0..count).map(|_| next(random)).collect()
}

fn chords(count: usize, random: &mut SmallRng) -> Vec<f32> {
    let rate = RATE_HZ as f32;
    let mut samples = vec![0.0; count];
    let length = random.random_range(RATE_HZ as usize / 4..RATE_HZ as usize);
    for chord in samples.chunks_mut(length) {
        for _ in 0..random.random_range(2..5) {
            let (hz, phase) = (110.0 * 2.0_f32.powf(random.random_range(0..30) as f32 / 12.0), random.random::<f32>());
            for (n, x) in chord.iter_mut().enumerate() {
                let turn = TAU * (hz * n as f32 / rate + phase);
                let fading = 1.0 - n as f32 / length as f32 * 0.7;
                *x += fading * (turn.sin() + 0.5 * (2.0 * turn).sin() + 0.3 * (3.0 * turn).sin());
            }
        }
    }
    samples
}

fn drift(count: usize, random: &mut SmallRng) -> Vec<f32> {
    const TURNS: usize = 5;
    let mut samples = leaky(count, random.random_range(-0.9..0.98), random);
    let levels: [f32; TURNS + 1] = std::array::from_fn(|_| random.random_range(0.4..1.6));
    for (n, x) in samples.iter_mut().enumerate() {
        let place = n as f32 / count as f32 * TURNS as f32;
        let at = (place as usize).min(TURNS - 1);
        *x *= levels[at] + (levels[at + 1] - levels[at]) * (place - at as f32);
    }
    samples
}

fn street(count: usize, random: &mut SmallRng) -> Vec<f32> {
    let mut samples = leaky(count, 0.97, random);
    let mut at = 0;
    while at < count {
        at += random.random_range(RATE_HZ as usize / 3..RATE_HZ as usize * 2);
        let (length, loud) = (random.random_range(800..RATE_HZ as usize), 4.0 + random.random::<f32>() * 8.0);
        for (n, x) in samples.iter_mut().skip(at).take(length).enumerate() {
            let swell = (std::f32::consts::PI * n as f32 / length as f32).sin();
            *x += swell * loud * (random.random::<f32>() - 0.5);
        }
    }
    samples
}

/// Mean power.
pub fn power(samples: &[f32]) -> f32 {
    samples.iter().map(|x| x * x).sum::<f32>() / samples.len().max(1) as f32
}

/// Adds noise so many decibels below `voice`, the mean power of what is said.
pub fn add_noise(samples: &mut [f32], noise: &[f32], voice: f32, below_db: f32) {
    let amplitude = (voice / power(noise).max(1e-9)).sqrt() * 10.0_f32.powf(-below_db / 20.0);
    for (x, noise) in samples.iter_mut().zip(noise.iter().cycle()) {
        *x += noise * amplitude;
    }
}

/// The sound as it is in a room: the direct sound, and decaying echoes that are 60 dB lower after `decay_s`.
pub fn in_room(samples: &[f32], decay_s: f32, wet: f32, random: &mut SmallRng) -> Vec<f32> {
    let length = (decay_s * RATE_HZ as f32) as usize;
    // A sparse tail sounds the same to a recogniser, and costs a fiftieth.
    let taps: Vec<(usize, f32)> = (0..60)
        .map(|_| {
            let at = random.random_range(40..length.max(41));
            let level = 10.0_f32.powf(-3.0 * at as f32 / length as f32);
            (at, level * wet * (random.random::<f32>() * 2.0 - 1.0))
        })
        .collect();
    let mut out = samples.to_vec();
    for (at, level) in taps {
        for (to, from) in out.iter_mut().skip(at).zip(samples) {
            *to += from * level;
        }
    }
    out
}

/// As another microphone has it: one with more or less of the high tones, and half of the time one with a resonance.
/// The mean power stays.
pub fn through_microphone(samples: &[f32], random: &mut SmallRng) -> Vec<f32> {
    let (slope, mut last) = (random.random_range(-0.4..0.6), 0.0);
    let mut out: Vec<f32> = samples.iter().map(|x| x - slope * std::mem::replace(&mut last, *x)).collect();
    if random.random_bool(0.5) {
        // A peaking filter with Q = 1, of Bristow-Johnson's cookbook.
        let hz = 300.0 * 20.0_f32.powf(random.random::<f32>());
        let gain = 10.0_f32.powf(random.random_range(-8.0..8.0) / 40.0);
        let turn = TAU * hz / RATE_HZ as f32;
        let (alpha, middle) = (turn.sin() / 2.0, -2.0 * turn.cos());
        let (b, a) =
            ([1.0 + alpha * gain, middle, 1.0 - alpha * gain], [1.0 + alpha / gain, middle, 1.0 - alpha / gain]);
        let (mut first, mut second) = (0.0, 0.0);
        for x in &mut out {
            let y = (b[0] * *x + first) / a[0];
            first = b[1] * *x - a[1] * y + second;
            second = b[2] * *x - a[2] * y;
            *x = y;
        }
    }
    let change = (power(samples) / power(&out).max(1e-9)).sqrt();
    out.iter_mut().for_each(|x| *x *= change);
    out
}

/// Faster and higher by this factor, formants included; cubic interpolation.
pub fn warped(samples: &[i16], factor: f32) -> Vec<i16> {
    let count = (samples.len() as f32 / factor) as usize;
    let at =
        |index: isize| samples.get(index.clamp(0, samples.len() as isize - 1) as usize).map_or(0.0, |x| f32::from(*x));
    let sample = |n: usize| {
        let place = n as f32 * factor;
        let (first, t) = (place as isize, place.fract());
        let (a, b, c, d) = (at(first - 1), at(first), at(first + 1), at(first + 2));
        // Catmull and Rom 1974.
        let value = b + 0.5 * t * (c - a + t * (2.0 * a - 5.0 * b + 4.0 * c - d + t * (3.0 * (b - c) + d - a)));
        value.clamp(f32::from(i16::MIN), f32::from(i16::MAX)) as i16
    };
    if samples.is_empty() { Vec::new() } else { (0..count).map(sample).collect() }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn noise_is_as_loud_as_asked_for() {
        let random = &mut SmallRng::seed_from_u64(1);
        for kind in [Kind::White, Kind::Pink, Kind::Brown, Kind::Music, Kind::Street, Kind::Drift] {
            let noise = kind.samples(32_000, random);
            assert!((power(&noise) - 1.0).abs() < 0.01, "{kind:?}");
            let mut mixed = vec![0.0; 32_000];
            add_noise(&mut mixed, &noise, 1_000.0 * 1_000.0, 20.0);
            assert!((power(&mixed).sqrt() - 100.0).abs() < 1.0, "{kind:?}");
        }
    }

    #[test]
    fn a_microphone_changes_the_sound_and_not_its_power() {
        let random = &mut SmallRng::seed_from_u64(2);
        let sound = Kind::White.samples(16_000, random);
        let all: Vec<Vec<f32>> = (0..20).map(|_| through_microphone(&sound, random)).collect();
        for heard in &all {
            assert!((power(heard) - power(&sound)).abs() < 0.01 && heard.iter().all(|x| x.is_finite()));
        }
        // Neighbouring samples are alike where low tones prevail.
        let alike = |x: &[f32]| x.windows(2).map(|pair| pair[0] * pair[1]).sum::<f32>() / x.len() as f32;
        let (least, most) = all.iter().fold((1.0_f32, -1.0_f32), |(a, b), x| (a.min(alike(x)), b.max(alike(x))));
        assert!(least < -0.2 && most > 0.2, "{least} {most}");
    }

    #[test]
    fn a_warped_tone_is_higher_and_shorter() {
        let tone = |hz: f32| -> Vec<i16> {
            (0..16_000).map(|n| ((n as f32 * hz * TAU / 16_000.0).sin() * 10_000.0) as i16).collect()
        };
        let (warped, wanted) = (warped(&tone(400.0), 1.25), tone(500.0));
        assert_eq!(warped.len(), 12_800);
        let most = warped.iter().zip(&wanted).map(|(a, b)| (i32::from(*a) - i32::from(*b)).abs()).max();
        assert!(most < Some(300), "{most:?}");
    }
}
