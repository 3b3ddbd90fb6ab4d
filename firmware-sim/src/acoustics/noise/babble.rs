//! Babble: several talkers at once, each the simulator's own voice at a pitch and a pace of its own.

use audio::wav;

use crate::random::Random;
use crate::sound::CLIP_HZ;
use crate::voice;

use super::{LENGTH_S, rms};

/// What they speak of, over and over.
const SENTENCES: [&str; 6] = [
    "The train was late again this morning, so we walked along the river.",
    "My sister wants to paint the kitchen yellow before the summer comes.",
    "There is a market behind the church where they sell honey and cheese.",
    "He said that the garden needs rain, and that the roses look tired.",
    "I have read the second chapter, and the captain still has not found the island.",
    "They moved to a house near the lake with a large window to the north.",
];

/// The rates in hertz at which the talkers' voices are taken to be: a lower one makes a voice deeper and slower. The voice
/// itself has 24 kHz.
const RATES_HZ: [u32; 6] = [19_200, 21_600, 24_000, 25_600, 28_000, 30_000];

/// Six talkers with equal levels, each with all sentences from another one on.
pub(super) fn voices(random: &mut Random) -> Result<Vec<f32>, String> {
    let spoken = SENTENCES.iter().map(|sentence| voice::samples(sentence)).collect::<Result<Vec<_>, _>>()?;
    let length = (CLIP_HZ * LENGTH_S) as usize;
    let mut babble = vec![0.0; length];
    for rate_hz in RATES_HZ {
        let first = random.below(spoken.len() as u64) as usize;
        let mut at = random.below(length as u64) as usize;
        let ends = at + length;
        for sentence in spoken.iter().cycle().skip(first) {
            let pcm = wav::convert(sentence, rate_hz, CLIP_HZ).map_err(|error| error.to_string())?;
            if pcm.is_empty() || at + pcm.len() > ends {
                break;
            }
            let scale = 1.0 / rms(pcm.iter().map(|sample| f64::from(*sample))).max(1.0);
            for (n, sample) in pcm.iter().enumerate() {
                // The noise has no end: what passes its end comes in at its beginning.
                babble[(at + n) % length] += (f64::from(*sample) * scale) as f32;
            }
            // A breath of up to half a second.
            at += pcm.len() + random.below(u64::from(CLIP_HZ / 2)) as usize;
        }
    }
    Ok(babble)
}
