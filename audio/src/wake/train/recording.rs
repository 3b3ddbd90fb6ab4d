//! Recordings of a wearer, checked before anything is learned from them.

use std::sync::Arc;

use super::clips::Scene;
use crate::frame::RATE_HZ;
use crate::vad::silero::{self, WINDOW_SAMPLES};

/// Shortest and longest recording, in seconds.
const SECONDS: std::ops::RangeInclusive<f32> = 0.3..=6.0;
/// Shortest and longest voice in one, in seconds: from its first sound to its last.
const VOICE_SECONDS: std::ops::RangeInclusive<f32> = 0.3..=2.5;
/// Score from which a window is a voice.
const VOICE: f32 = 0.5;
/// Least loudness of the voice: 50 dB below full scale.
const QUIET_RMS: f32 = 104.0;
/// Samples from this amplitude on are at the limit; share of them in a voice that is clipped.
const LIMIT: u16 = 32_700;
const CLIPPED: f32 = 0.002;
/// Sound that is kept in front of the voice, in samples: 60 ms.
const MARGIN: usize = RATE_HZ as usize * 60 / 1_000;

/// A phrase, or something that is not to be taken for it, as a wearer says it.
#[derive(Clone, Debug)]
pub struct Recording {
    pcm: Vec<i16>,
    begin: usize,
    end: usize,
}

impl Recording {
    /// Takes a recording, mono at 16 kHz, if it can be learned from.
    ///
    /// # Errors
    /// In words, with what to do: too short or long, without a voice, too quiet, or clipped.
    pub fn checked(pcm: Vec<i16>, model: &Arc<silero::Model>) -> Result<Self, String> {
        let seconds = |samples: usize| samples as f32 / RATE_HZ as f32;
        let (least, most) = (SECONDS.start(), SECONDS.end());
        if !SECONDS.contains(&seconds(pcm.len())) {
            let length = seconds(pcm.len());
            return Err(format!("it has {length:.1} s; record the phrase alone, in {least} to {most} s"));
        }
        let voiced = voiced(&pcm, model).map_err(|error| error.to_string())?;
        let Some((begin, end)) = voiced else {
            return Err("no voice is heard in it; say the phrase near the microphone".to_owned());
        };
        let voice = &pcm[begin..end];
        let length = seconds(voice.len());
        if !VOICE_SECONDS.contains(&length) {
            return Err(format!("its voice lasts {length:.1} s; say the phrase once, and nothing else"));
        }
        let rms = (voice.iter().map(|x| f32::from(*x).powi(2)).sum::<f32>() / voice.len() as f32).sqrt();
        if rms < QUIET_RMS {
            let below = 20.0 * (f32::from(i16::MAX) / rms.max(1.0)).log10();
            return Err(format!(
                "its voice is {below:.0} dB below full scale, too quiet; speak up or turn the gain up"
            ));
        }
        let clipped = voice.iter().filter(|x| x.unsigned_abs() >= LIMIT).count() as f32 / voice.len() as f32;
        if clipped > CLIPPED {
            return Err("its voice is clipped; turn the microphone's gain down and record it again".to_owned());
        }
        Ok(Self { begin: begin.saturating_sub(MARGIN), end, pcm })
    }

    /// The recording without the sound before the first voice and after the last one.
    pub(super) fn voice(&self) -> &[i16] {
        &self.pcm[self.begin..self.end]
    }

    /// As it was recorded, with silence around it, as a detector hears it.
    pub(super) fn plain(&self) -> Scene {
        let quiet = RATE_HZ as usize / 2;
        let mut samples = vec![0.0; quiet];
        samples.extend(self.pcm.iter().map(|x| f32::from(*x)));
        samples.resize(samples.len() + quiet, 0.0);
        Scene { samples, phrase_end: None }
    }
}

/// Where the first voice begins and the last one ends.
fn voiced(pcm: &[i16], model: &Arc<silero::Model>) -> Result<Option<(usize, usize)>, silero::Error> {
    let mut stream = silero::Stream::new(model.clone());
    let mut found: Option<(usize, usize)> = None;
    let mut padded = pcm.to_vec();
    padded.resize(pcm.len().next_multiple_of(WINDOW_SAMPLES), 0);
    for (index, window) in padded.as_chunks().0.iter().enumerate() {
        if stream.push(window)? >= VOICE {
            let begin = index * WINDOW_SAMPLES;
            found = Some((found.map_or(begin, |(first, _)| first), (begin + WINDOW_SAMPLES).min(pcm.len())));
        }
    }
    Ok(found)
}
