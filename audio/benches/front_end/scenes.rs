//! What the microphone hears: an earlier sentence, a pause, the sentence that counts, and a pause, in noise.

use anyhow::Result;
use audio::codec::{Codec, Decoder, Encoder};
use audio::wake::train::noise::{Kind, power};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;

use crate::clips::{CLIP_HZ, Clip};
use crate::listener_clips::{rms, seconds, voiced_span, white};

/// Samples of a packet.
pub const PACKET: usize = CLIP_HZ as usize / 50;
/// Noise before the earlier sentence, between the two, and behind.
const LEAD_S: f64 = 0.5;
const BETWEEN_S: f64 = 1.3;
const BEHIND_S: f64 = 2.0;
/// Root mean square of the microphone's own noise: -81 dB of full scale.
const OWN_RMS: f64 = 3.0;
/// Bits per second on the wire.
const BITRATE: u32 = 24_000;
/// Corner of the rumble, as of wind and of steps.
const RUMBLE_HZ: f32 = 40.0;
/// Voices of a babble.
const TALKERS: usize = 6;
/// A converter's offset: 9 % of full scale.
const OFFSET: f32 = 3_000.0;

/// What sounds beside the voice.
#[derive(Clone, Copy, Debug)]
pub enum Noise {
    /// Nothing but the microphone.
    None,
    /// Other prompts, several at once, without their pauses.
    Babble,
    /// One of the noises that are made.
    Made(Kind),
    /// Below 40 Hz, falling by 12 dB an octave above.
    Rumble,
}

/// What is done to the sound.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    /// Of the voice, in decibels.
    pub gain_db: f32,
    pub noise: Noise,
    /// Of the voice over the noise, in decibels.
    pub snr_db: f32,
    pub has_offset: bool,
}

/// All conditions, with their names.
pub fn conditions() -> Vec<(String, Condition)> {
    let clean = Condition { gain_db: 0.0, noise: Noise::None, snr_db: 0.0, has_offset: false };
    let mut all = vec![
        ("clean".to_owned(), clean),
        ("20 dB weaker".to_owned(), Condition { gain_db: -20.0, ..clean }),
        ("36 dB weaker".to_owned(), Condition { gain_db: -36.0, ..clean }),
        ("offset".to_owned(), Condition { has_offset: true, ..clean }),
        ("rumble -10 dB".to_owned(), Condition { noise: Noise::Rumble, snr_db: -10.0, ..clean }),
    ];
    let noises = [
        ("babble", Noise::Babble),
        ("pink", Noise::Made(Kind::Pink)),
        ("street", Noise::Made(Kind::Street)),
        ("music", Noise::Made(Kind::Music)),
    ];
    for (name, noise) in noises {
        for snr_db in [20.0, 10.0, 5.0] {
            all.push((format!("{name} {snr_db} dB"), Condition { noise, snr_db, ..clean }));
        }
    }
    all
}

/// A stream, and where the voice of the sentence that counts is in it, in samples.
pub struct Heard {
    pub pcm: Vec<i16>,
    pub begin: usize,
    pub end: usize,
}

/// What comes over the wire of the clip at `index` behind the next one, as Opus, decoded. Another seed is another noise.
pub fn hear(clips: &[Clip], index: usize, condition: &Condition, seed: u64) -> Result<Heard> {
    let (clip, earlier) = (&clips[index], &clips[(index + 1) % clips.len()]);
    let mut pcm = vec![0; seconds(LEAD_S)];
    pcm.extend_from_slice(&earlier.pcm);
    pcm.resize(pcm.len() + seconds(BETWEEN_S), 0);
    let at = pcm.len();
    pcm.extend_from_slice(&clip.pcm);
    pcm.resize((pcm.len() + seconds(BEHIND_S)).next_multiple_of(PACKET), 0);
    let (first, last) = voiced_span(&clip.pcm);
    let voice = rms(&clip.pcm[first..last]) as f32;

    let noise = noise(clips, index, condition.noise, pcm.len(), seed);
    let loudness = power(&noise).sqrt();
    let scale = if loudness > 0.0 { voice * 10_f32.powf(-condition.snr_db / 20.0) / loudness } else { 0.0 };
    let gain = 10_f32.powf(condition.gain_db / 20.0);
    let offset = if condition.has_offset { OFFSET } else { 0.0 };
    let own = white(pcm.len(), OWN_RMS, seed ^ index as u64);
    for ((sample, noise), own) in pcm.iter_mut().zip(&noise).zip(own) {
        // The cast saturates, as a converter does.
        *sample = (f32::from(*sample) * gain + noise * scale + f32::from(own) + offset).round() as i16;
    }
    let mut encoder = Encoder::new(Codec::Opus, CLIP_HZ, BITRATE)?;
    let mut decoder = Decoder::new(Codec::Opus, CLIP_HZ)?;
    let mut heard = Vec::with_capacity(pcm.len());
    for packet in pcm.chunks_exact(PACKET) {
        decoder.decode(&encoder.encode(packet)?, &mut heard)?;
    }
    Ok(Heard { pcm: heard, begin: at + first, end: at + last })
}

fn noise(clips: &[Clip], index: usize, noise: Noise, count: usize, seed: u64) -> Vec<f32> {
    let mut random = SmallRng::seed_from_u64(seed << 32 | index as u64);
    match noise {
        Noise::None => vec![0.0; count],
        Noise::Made(kind) => kind.samples(count, &mut random),
        Noise::Rumble => {
            let keep = (-std::f32::consts::TAU * RUMBLE_HZ / CLIP_HZ as f32).exp();
            let mut rumble = Kind::White.samples(count, &mut random);
            for _ in 0..2 {
                let mut state = 0.0;
                for sample in &mut rumble {
                    state = keep * state + (1.0 - keep) * *sample;
                    *sample = state;
                }
            }
            rumble
        }
        Noise::Babble => {
            let mut babble = vec![0.0; count];
            for talker in 0..TALKERS {
                // Each says other sentences, one after the other.
                let said = (0..).map(|n| &clips[(index + 2 + talker + TALKERS * n) % clips.len()]);
                let voices = said.flat_map(|clip| {
                    let (first, last) = voiced_span(&clip.pcm);
                    let level = rms(&clip.pcm[first..last]).max(1.0) as f32;
                    clip.pcm[first..last].iter().map(move |sample| f32::from(*sample) / level)
                });
                babble.iter_mut().zip(voices).for_each(|(sum, voice)| *sum += voice);
            }
            babble
        }
    }
}
