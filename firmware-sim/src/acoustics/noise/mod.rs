//! Noise around the wearer, at a given distance below the voice. It goes on in pauses.
//!
//! The signal-to-noise ratio is that of the active speech level of a clip ([`level::active_rms`]) to the root mean square
//! of the noise over its whole length, both at the microphone and without room. Each clip sets the level anew at its
//! beginning; before the first, the noise is as for a voice of -26 dB of full scale, the nominal level of ITU-T P.56.

#[cfg(feature = "tts")]
mod babble;
mod sounds;

use std::str::FromStr;
use std::sync::Arc;

use audio::wav;

use crate::random::Random;
use crate::sound::CLIP_HZ;

use super::{gain, level, number, seed};

/// Length of a noise, in seconds; then it begins again. Its beginning follows from the seed.
pub const LENGTH_S: u32 = 20;

/// Level of a voice before the first clip, in decibels of full scale.
const NOMINAL_DB: f64 = -26.0;

/// Full scale of a sample.
const FULL_SCALE: f64 = 32_768.0;

/// Root mean square of a stored noise: 25 dB below full scale leave room for peaks.
const STORED_RMS: f64 = 1_843.0;

/// A kind of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The same power at all frequencies.
    White,
    /// The same power in each octave.
    Pink,
    /// Several voices at once, speaking of nothing that the gateway is meant to hear.
    Babble,
    /// The rumble of a street, with cars that pass by and horns.
    Street,
    /// Chords.
    Music,
}

const KINDS: [(&str, Kind); 5] = [
    ("white", Kind::White),
    ("pink", Kind::Pink),
    ("babble", Kind::Babble),
    ("street", Kind::Street),
    ("music", Kind::Music),
];

/// Noise of one kind and level; written `KIND,SNR_DB[,SEED]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Its source, or its spectrum where it has none.
    pub kind: Kind,
    /// Active speech level over the level of the noise, in decibels.
    pub snr_db: f64,
    /// Seed of all that is random in it.
    pub seed: u64,
}

impl FromStr for Noise {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(',').collect();
        let (kind, snr, number_of) = match parts.as_slice() {
            [kind, snr] => (*kind, *snr, "1"),
            [kind, snr, seed] => (*kind, *snr, *seed),
            _ => return Err("a noise is KIND,SNR_DB[,SEED], such as babble,10".to_owned()),
        };
        let found = KINDS.iter().find(|(name, _)| *name == kind.trim());
        let (_, kind) = found
            .ok_or_else(|| format!("'{kind}' is no noise; there are {}", KINDS.map(|(name, _)| name).join(", ")))?;
        let snr_db = number(snr, "the SNR in decibels", -20.0..=60.0)?;
        Ok(Self { kind: *kind, snr_db, seed: seed(number_of)? })
    }
}

/// The sound of a noise, [`LENGTH_S`] long, at [`CLIP_HZ`].
#[derive(Debug)]
pub struct Ambience {
    pcm: Vec<i16>,
}

impl Ambience {
    /// Computes a noise. Babble takes the simulator's own voice, which takes its time.
    ///
    /// # Errors
    /// There is no voice.
    pub fn render(noise: &Noise) -> Result<Self, String> {
        let mut random = Random::new(noise.seed);
        let sound = match noise.kind {
            Kind::White => sounds::white(&mut random),
            Kind::Pink => sounds::pink(&mut random),
            Kind::Street => sounds::street(&mut random),
            Kind::Music => sounds::music(&mut random),
            #[cfg(feature = "tts")]
            Kind::Babble => babble::voices(&mut random)?,
            #[cfg(not(feature = "tts"))]
            Kind::Babble => return Err("this build has no voice for babble; build with the feature `tts`".to_owned()),
        };
        let scale = STORED_RMS / rms(sound.iter().map(|sample| f64::from(*sample))).max(f64::MIN_POSITIVE);
        Ok(Self { pcm: sound.iter().map(|sample| (f64::from(*sample) * scale).round() as i16).collect() })
    }

    /// Its samples, which go on with the first one behind the last one.
    pub fn samples(&self) -> &[i16] {
        &self.pcm
    }

    /// Computes a noise on a thread of its own.
    ///
    /// # Errors
    /// There is no voice.
    pub async fn prepare(noise: Noise) -> Result<Arc<Self>, String> {
        let rendered = tokio::task::spawn_blocking(move || Self::render(&noise).map(Arc::new));
        rendered.await.map_err(|error| error.to_string())?
    }
}

/// Root mean square.
fn rms(sound: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = sound.len().max(1);
    (sound.map(|sample| sample * sample).sum::<f64>() / count as f64).sqrt()
}

/// A noise at the rate of a microphone, which goes on and on.
pub(super) struct Source {
    /// With a root mean square of 1.
    sound: Vec<f32>,
    at: usize,
    snr_db: f64,
    /// Level now, and the one that it glides to, as root mean squares.
    level: f64,
    wanted: f64,
}

impl Source {
    pub(super) fn new(noise: &Noise, ambience: &Ambience, rate_hz: u32) -> Result<Self, String> {
        let pcm = wav::convert(&ambience.pcm, CLIP_HZ, rate_hz).map_err(|error| error.to_string())?;
        // Part of the power is lost where the microphone's band is narrower.
        let scale = 1.0 / rms(pcm.iter().map(|sample| f64::from(*sample))).max(1.0);
        let sound: Vec<f32> = pcm.iter().map(|sample| (f64::from(*sample) * scale) as f32).collect();
        let at = Random::new(noise.seed).below(sound.len() as u64) as usize;
        let level = FULL_SCALE * gain(NOMINAL_DB - noise.snr_db);
        Ok(Self { sound, at, snr_db: noise.snr_db, level, wanted: level })
    }

    /// This is said next.
    pub(super) fn begin(&mut self, clip: &[i16], rate_hz: u32) {
        if let Some(active) = level::active_rms(clip, rate_hz) {
            self.wanted = active * gain(-self.snr_db);
        }
    }

    /// Adds a packet of noise. A new level is reached by the end of the packet.
    pub(super) fn add(&mut self, sound: &mut [f32]) {
        let step = (self.wanted - self.level) / sound.len().max(1) as f64;
        for sample in sound {
            self.level += step;
            *sample += self.sound.get(self.at).copied().unwrap_or_default() * self.level as f32;
            self.at = (self.at + 1) % self.sound.len().max(1);
        }
        self.level = self.wanted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS_WITHOUT_VOICE: [&str; 4] = ["white", "pink", "street", "music"];

    fn noise(text: &str) -> Noise {
        text.parse().unwrap()
    }

    fn heard(text: &str, rate_hz: u32, clip: Option<&[i16]>) -> Vec<f32> {
        let noise = noise(text);
        let mut source = Source::new(&noise, &Ambience::render(&noise).unwrap(), rate_hz).unwrap();
        if let Some(clip) = clip {
            source.begin(clip, rate_hz);
            source.add(&mut vec![0.0; 320]);
        }
        let mut sound = vec![0.0; (LENGTH_S * rate_hz) as usize];
        sound.chunks_mut(320).for_each(|packet| source.add(packet));
        sound
    }

    fn db(sound: &[f32]) -> f64 {
        20.0 * rms(sound.iter().map(|sample| f64::from(*sample))).log10()
    }

    #[test]
    fn a_noise_lies_below_the_voice_as_asked() {
        let clip: Vec<i16> = (0..32_000).map(|n| ((f64::from(n) * 0.2).sin() * 5_000.0) as i16).collect();
        let voice_db = 20.0 * level::active_rms(&clip, 16_000).unwrap().log10();
        for kind in KINDS_WITHOUT_VOICE {
            for snr_db in [-5.0, 10.0, 20.0] {
                let measured = voice_db - db(&heard(&format!("{kind},{snr_db}"), 16_000, Some(&clip)));
                assert!((measured - snr_db).abs() < 0.5, "{kind}: {measured} dB, {snr_db} dB");
            }
            // Before the first clip, and at another rate.
            let nominal_db = 20.0 * FULL_SCALE.log10() + NOMINAL_DB - db(&heard(&format!("{kind},10"), 8_000, None));
            assert!((nominal_db - 10.0).abs() < 0.5, "{kind}: {nominal_db}");
        }
    }

    #[test]
    fn a_seed_is_a_noise() {
        for kind in KINDS_WITHOUT_VOICE {
            let hear = |seed| heard(&format!("{kind},10,{seed}"), 16_000, None);
            assert!(hear(4) == hear(4), "{kind}");
            assert!(hear(4) != hear(5), "{kind}");
        }
    }

    #[test]
    fn silence_changes_no_level() {
        let clip: Vec<i16> = (0..16_000).map(|n| ((f64::from(n) * 0.2).sin() * 5_000.0) as i16).collect();
        let noise = noise("white,10");
        let mut source = Source::new(&noise, &Ambience::render(&noise).unwrap(), 16_000).unwrap();
        source.begin(&clip, 16_000);
        let wanted = source.wanted;
        source.begin(&[0; 16_000], 16_000);
        assert!((source.wanted - wanted).abs() < f64::EPSILON);
    }

    #[test]
    fn errors_say_what_is_wanted() {
        assert_eq!(noise("babble,-3.5,9"), Noise { kind: Kind::Babble, snr_db: -3.5, seed: 9 });
        assert_eq!(noise("pink,10").seed, 1);
        for (text, hint) in [
            ("pink", "such as babble,10"),
            ("purple,10", "white, pink, babble, street, music"),
            ("pink,loud", "from -20 to 60"),
            ("pink,10,x", "whole number"),
        ] {
            let error = text.parse::<Noise>().unwrap_err();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}
