//! Rooms: a voice is followed by its reverberation.
//!
//! The response is that of the statistical model of Polack (*La transmission de l'énergie sonore dans les salles*, 1988):
//! the direct sound, and behind it white Gaussian noise under an exponential decay. How strong the decaying part is follows
//! from the critical distance, at which both are equally strong: 0.057 m · √(V / RT60) (Kuttruff, *Room Acoustics*).

use std::str::FromStr;

use crate::random::Random;

use super::convolution::{Convolver, block_samples};
use super::{gain, seed};

/// From the mouth, and from the speaker at the ear, to the microphone in the temple of the glasses, in metres.
const DISTANCE_M: f64 = 0.15;

/// The sizes by name, with volume in cubic metres and RT60 in seconds.
const SIZES: [(&str, Size, f64, f64); 3] =
    [("small", Size::Small, 20.0, 0.3), ("living", Size::Living, 60.0, 0.5), ("hall", Size::Hall, 2_000.0, 1.8)];

/// How large a room is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A small office or a bathroom: 20 m³, RT60 of 0.3 s.
    Small,
    /// A living room: 60 m³, RT60 of 0.5 s.
    Living,
    /// A hall: 2,000 m³, RT60 of 1.8 s.
    Hall,
}

impl Size {
    /// Time in which sound decays by 60 dB, in seconds.
    pub fn rt60_s(self) -> f64 {
        self.properties().1
    }

    /// Energy of the direct sound over that of the reverberation, in decibels.
    pub fn direct_to_reverberant_db(self) -> f64 {
        let (volume_m3, rt60_s) = self.properties();
        20.0 * (0.057 * (volume_m3 / rt60_s).sqrt() / DISTANCE_M).log10()
    }

    fn properties(self) -> (f64, f64) {
        SIZES.iter().find(|(_, size, ..)| *size == self).map_or((20.0, 0.3), |(_, _, volume, rt60)| (*volume, *rt60))
    }
}

/// The walls around the wearer; written `SIZE[,SEED]`. The same seed gives the same reflections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// How large it is.
    pub size: Size,
    /// Seed of its reflections.
    pub seed: u64,
}

impl FromStr for Room {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = text.split_once(',').unwrap_or((text, "1"));
        let found = SIZES.iter().find(|(known, ..)| *known == name.trim());
        let (_, size, ..) = found.ok_or_else(|| format!("'{name}' is no room; there are small, living and hall"))?;
        Ok(Self { size: *size, seed: seed(number)? })
    }
}

/// Reverberation of a room.
pub(super) fn reverberation(room: Room, rate_hz: u32) -> Convolver {
    let tail = tail(room.size.rt60_s(), room.size.direct_to_reverberant_db(), room.seed, rate_hz);
    Convolver::new(&tail, rate_hz)
}

/// The decaying part of a response, which begins a block after the direct sound; the direct sound is 1.
pub(super) fn tail(rt60_s: f64, direct_to_reverberant_db: f64, seed: u64, rate_hz: u32) -> Vec<f32> {
    let mut random = Random::new(seed);
    let rate = f64::from(rate_hz);
    let begins = block_samples(rate_hz);
    let ends = ((rt60_s * rate) as usize).max(begins + 1);
    // 60 dB are a factor of 1,000.
    let decay = 1_000f64.ln() / (rt60_s * rate);
    let mut tail: Vec<f64> = (begins..ends).map(|n| random.normal() * (-decay * n as f64).exp()).collect();
    let energy: f64 = tail.iter().map(|sample| sample * sample).sum();
    let scale = gain(-direct_to_reverberant_db) / energy.sqrt().max(f64::MIN_POSITIVE);
    tail.iter_mut().for_each(|sample| *sample *= scale);
    tail.into_iter().map(|sample| sample as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The response to a click, in packets of 20 ms.
    fn response(room: Room, rate_hz: u32) -> Vec<f32> {
        let mut convolver = reverberation(room, rate_hz);
        let packet = rate_hz as usize / 50;
        let mut sound = vec![0.0; packet * 120];
        sound[0] = 1.0;
        sound.chunks_exact_mut(packet).for_each(|packet| convolver.add(packet));
        sound
    }

    /// RT60 from the fall of the energy that is still to come, from -5 to -25 dB (Schroeder 1965; ISO 3382-1: T20).
    fn rt60_s(response: &[f32], rate_hz: u32) -> f64 {
        let mut left: f64 = 0.0;
        let mut falling: Vec<f64> = response[1..]
            .iter()
            .rev()
            .map(|sample| {
                left += f64::from(*sample).powi(2);
                left
            })
            .collect();
        falling.reverse();
        let at = |db: f64| falling.iter().position(|energy| 10.0 * (energy / left).log10() <= db).unwrap();
        3.0 * (at(-25.0) - at(-5.0)) as f64 / f64::from(rate_hz)
    }

    #[test]
    fn rooms_decay_as_they_should() {
        for (name, rate_hz) in [("small", 16_000), ("living", 16_000), ("hall", 16_000), ("living", 48_000)] {
            let room: Room = name.parse().unwrap();
            let response = response(room, rate_hz);
            let (measured, wanted) = (rt60_s(&response, rate_hz), room.size.rt60_s());
            assert!((measured / wanted - 1.0).abs() < 0.2, "{name}: {measured} s, {wanted} s");
            // The direct sound, then nothing for 10 ms, then the reverberation.
            assert!((response[0] - 1.0).abs() < 1e-3);
            let silent = 1..rate_hz as usize / 100;
            assert!(response[silent].iter().all(|sample| sample.abs() < 1e-4));
            let energy: f64 = response[1..].iter().map(|sample| f64::from(*sample).powi(2)).sum();
            let ratio_db = -10.0 * energy.log10();
            assert!((ratio_db - room.size.direct_to_reverberant_db()).abs() < 0.1, "{name}: {ratio_db}");
        }
    }

    #[test]
    fn a_seed_is_a_room() {
        let hear = |text: &str| response(text.parse().unwrap(), 16_000);
        assert_eq!(hear("small,7"), hear("small,7"));
        assert_ne!(hear("small,7"), hear("small,8"));
        assert!("cellar".parse::<Room>().unwrap_err().contains("small, living and hall"));
        assert!("hall,x".parse::<Room>().unwrap_err().contains("whole number"));
    }
}
