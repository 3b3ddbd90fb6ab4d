//! Noises that are computed: white, pink, street, music. Their loudness is set by the caller.

use std::f64::consts::TAU;

use crate::random::Random;
use crate::sound::CLIP_HZ;

use super::{LENGTH_S, rms};

const RATE: f64 = CLIP_HZ as f64;

const SAMPLES: usize = (CLIP_HZ * LENGTH_S) as usize;

/// Cars that pass by in a street, and horns.
const CARS: u64 = 4;
const HORNS: u64 = 2;

/// Length of a chord, in seconds.
const CHORD_S: u32 = 2;

/// Chords of a piece, as semitones over its key: I, V, vi, IV.
const CHORDS: [[i32; 3]; 4] = [[0, 4, 7], [7, 11, 14], [9, 12, 16], [5, 9, 12]];

/// White Gaussian noise.
pub(super) fn white(random: &mut Random) -> Vec<f32> {
    (0..SAMPLES).map(|_| random.normal() as f32).collect()
}

/// Pink noise: white noise through the filter of Paul Kellet (music-dsp archive, 1999), whose fall of 3 dB an octave is
/// exact to 0.05 dB from 0.0002 of the rate up.
pub(super) fn pink(random: &mut Random) -> Vec<f32> {
    const POLES: [(f64, f64); 6] = [
        (0.99886, 0.055_517_9),
        (0.99332, 0.075_075_9),
        (0.96900, 0.153_852_0),
        (0.86650, 0.310_485_6),
        (0.55000, 0.532_952_2),
        (-0.7616, -0.016_898_0),
    ];
    let mut states = [0.0; POLES.len()];
    let mut last = 0.0;
    let mut next = || {
        let white = random.normal();
        let mut sum = last + white * 0.5362;
        for (state, (pole, gain)) in states.iter_mut().zip(POLES) {
            *state = pole * *state + white * gain;
            sum += *state;
        }
        last = white * 0.115_926;
        sum as f32
    };
    // The slowest pole has settled after a tenth of a second.
    for _ in 0..RATE as usize / 10 {
        next();
    }
    (0..SAMPLES).map(|_| next()).collect()
}

/// A street: pink noise without its highs, cars that come and go, and horns.
pub(super) fn street(random: &mut Random) -> Vec<f32> {
    let mut street = equal(low_pass(&pink(random), 500.0));
    for _ in 0..CARS {
        let wheels = equal(low_pass(&low_pass(&white(random), 1_000.0), 1_000.0));
        let (at, width_s) = (random.below(SAMPLES as u64) as f64, 0.6 + random.unit());
        // Six to twelve decibels over the rumble.
        let loudness = 2.0 + 2.0 * random.unit();
        for (n, sample) in wheels.iter().enumerate() {
            // The noise has no end: what passes its end comes in at its beginning.
            let away = (n as f64 - at).abs();
            let away_s = away.min(SAMPLES as f64 - away) / RATE;
            add(&mut street, n, f64::from(*sample) * loudness * (-(away_s / width_s).powi(2)).exp());
        }
    }
    for _ in 0..HORNS {
        let at = random.below(SAMPLES as u64) as usize;
        let length = (RATE * (0.25 + 0.3 * random.unit())) as usize;
        for n in 0..length {
            let rise = (n.min(length - n) as f64 / (0.02 * RATE)).min(1.0);
            let tone = |hz: f64| {
                (1..4).map(|part| (TAU * hz * f64::from(part) * n as f64 / RATE).sin() / f64::from(part)).sum::<f64>()
            };
            add(&mut street, at + n, 1.5 * rise * (tone(420.0) + tone(530.0)));
        }
    }
    street
}

/// Music: broken chords of decaying tones over a bass, in a key of its own.
pub(super) fn music(random: &mut Random) -> Vec<f32> {
    let mut music = vec![0.0; SAMPLES];
    let key_hz = 196.0 * 2f64.powf(random.below(12) as f64 / 12.0);
    let length = (CLIP_HZ * CHORD_S) as usize;
    for chord in 0..SAMPLES / length {
        let notes = CHORDS[random.below(CHORDS.len() as u64) as usize];
        let bass = [notes[0] - 12];
        for (n, semitones) in notes.iter().chain(&bass).enumerate() {
            let hz = key_hz * 2f64.powf(f64::from(*semitones) / 12.0);
            // The notes of a chord begin one after the other, an eighth of a second apart.
            let begins = chord * length + n * CLIP_HZ as usize / 8;
            tone(&mut music, begins, length, hz, 0.7 + 0.3 * random.unit());
        }
    }
    music
}

/// A decaying tone with harmonics, as of a plucked string.
fn tone(music: &mut [f32], begins: usize, length: usize, hz: f64, loudness: f64) {
    for n in 0..length {
        let at_s = n as f64 / RATE;
        let rise = (at_s / 0.01).min(1.0).min((length - n) as f64 / (0.05 * RATE));
        let mut sample = 0.0;
        for harmonic in (1..=5).map(f64::from).take_while(|harmonic| harmonic * hz < RATE / 2.0) {
            sample += (TAU * hz * harmonic * at_s).sin() * (-at_s * harmonic * 0.8).exp() / harmonic;
        }
        add(music, begins + n, sample * rise * loudness);
    }
}

/// Adds a sample; what lies beyond the end comes in at the beginning.
fn add(sound: &mut [f32], at: usize, sample: f64) {
    let at = at % sound.len().max(1);
    if let Some(sum) = sound.get_mut(at) {
        *sum += sample as f32;
    }
}

/// With a root mean square of 1.
fn equal(mut sound: Vec<f32>) -> Vec<f32> {
    let scale = 1.0 / rms(sound.iter().map(|sample| f64::from(*sample))).max(f64::MIN_POSITIVE);
    sound.iter_mut().for_each(|sample| *sample *= scale as f32);
    sound
}

/// A filter of the first order.
fn low_pass(sound: &[f32], cutoff_hz: f64) -> Vec<f32> {
    let keep = (-TAU * cutoff_hz / RATE).exp() as f32;
    let mut state = 0.0;
    let filter = |sample: &f32| {
        state = keep * state + (1.0 - keep) * sample;
        state
    };
    sound.iter().map(filter).collect()
}

#[cfg(test)]
mod tests {
    use rustfft::FftPlanner;
    use rustfft::num_complex::Complex32;

    use super::*;

    /// Power between two frequencies, in decibels.
    fn band_db(sound: &[f32], from_hz: usize, to_hz: usize) -> f64 {
        let second = CLIP_HZ as usize;
        let fft = FftPlanner::new().plan_fft_forward(second);
        let mut power = 0.0;
        for part in sound.chunks_exact(second) {
            let mut spectrum: Vec<Complex32> = part.iter().map(|sample| Complex32::new(*sample, 0.0)).collect();
            fft.process(&mut spectrum);
            power += spectrum[from_hz..to_hz].iter().map(|bin| f64::from(bin.norm_sqr())).sum::<f64>();
        }
        10.0 * power.log10()
    }

    #[test]
    fn an_octave_of_white_noise_is_louder_than_the_one_below_and_of_pink_noise_it_is_not() {
        let (white, pink) = (white(&mut Random::new(2)), pink(&mut Random::new(2)));
        for from_hz in [125, 250, 500, 1_000, 2_000] {
            let rise = |sound: &[f32]| band_db(sound, 2 * from_hz, 4 * from_hz) - band_db(sound, from_hz, 2 * from_hz);
            assert!((rise(&white) - 3.01).abs() < 0.5, "white, {from_hz} Hz: {}", rise(&white));
            assert!(rise(&pink).abs() < 0.5, "pink, {from_hz} Hz: {}", rise(&pink));
        }
    }

    #[test]
    fn a_street_is_low_and_has_events() {
        let street = street(&mut Random::new(5));
        assert!(band_db(&street, 50, 1_000) > band_db(&street, 2_000, 8_000) + 10.0);
        let mut seconds: Vec<f32> =
            street.chunks(CLIP_HZ as usize).map(|part| part.iter().map(|sample| sample * sample).sum()).collect();
        seconds.sort_by(f32::total_cmp);
        // The loudest second is an event.
        assert!(seconds[seconds.len() - 1] > 4.0 * seconds[seconds.len() / 4]);
    }

    #[test]
    fn music_has_tones() {
        let music = music(&mut Random::new(5));
        let second = CLIP_HZ as usize;
        let mut spectrum: Vec<Complex32> = music[..second].iter().map(|sample| Complex32::new(*sample, 0.0)).collect();
        FftPlanner::new().plan_fft_forward(second).process(&mut spectrum);
        let mut powers: Vec<f32> = spectrum[50..4_000].iter().map(|bin| bin.norm_sqr()).collect();
        powers.sort_by(|a, b| b.total_cmp(a));
        // Few frequencies have most of the power.
        assert!(powers[..200].iter().sum::<f32>() > 0.9 * powers.iter().sum::<f32>());
    }
}
