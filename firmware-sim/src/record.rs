//! The recording of all played speech, as one WAV file.

use std::path::Path;

use audio::wav;

use crate::speaker::Heard;

/// Rate of the file in hertz.
pub const RATE_HZ: u32 = 24_000;

/// Longest pause between two speeches in the file.
const PAUSE_US_MAX: u64 = 500_000;

/// Joins speeches at [`RATE_HZ`], with their pauses cut to half a second.
pub fn join(heard: &[Heard]) -> Vec<i16> {
    let mut pcm = Vec::new();
    let mut last_us: Option<u64> = None;
    for speech in heard {
        let Some(began_us) = speech.began_us else {
            continue;
        };
        // A rate that cannot be converted was rejected when the speech began.
        let Ok(sound) = wav::convert(&speech.pcm, speech.rate_hz, RATE_HZ) else {
            continue;
        };
        if let Some(last_us) = last_us {
            let pause_us = began_us.saturating_sub(last_us).min(PAUSE_US_MAX);
            pcm.resize(pcm.len() + (pause_us * u64::from(RATE_HZ) / 1_000_000) as usize, 0);
        }
        pcm.extend(sound);
        last_us = Some(speech.ended_us);
    }
    pcm
}

/// Writes the joined speeches; returns their length in seconds.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, heard: &[Heard]) -> Result<f64, wav::Error> {
    let pcm = join(heard);
    wav::write(path, &pcm, RATE_HZ)?;
    Ok(pcm.len() as f64 / f64::from(RATE_HZ))
}
