//! What the wearer heard: the recording of all played speech, and how soon the speaker was silent when the wearer spoke.

use std::path::Path;

use audio::wav;
use serde::Serialize;

use crate::seen::{Event, Seen};
use crate::speaker::Heard;

/// Rate of the file in hertz.
pub const RATE_HZ: u32 = 24_000;

/// Longest recording, in seconds: an hour.
const LENGTH_S_MAX: u64 = 3_600;

/// Loudest sample that counts as silence, in units of a 16-bit sample: 60 dB below full scale.
const SILENT_MAX: u16 = 32;

/// All speeches at [`RATE_HZ`] on the clock of the speaker, from the first sample on: where nothing was played, there is
/// silence. At most an hour.
pub fn timeline(heard: &[Heard]) -> Vec<i16> {
    let mut pcm = Vec::new();
    let mut origin_us: Option<u64> = None;
    for speech in heard {
        let Some(began_us) = speech.began_us else {
            continue;
        };
        // A rate that cannot be converted was rejected when the speech began.
        let Ok(sound) = wav::convert(&speech.pcm, speech.rate_hz, RATE_HZ) else {
            continue;
        };
        let at_us = began_us.saturating_sub(*origin_us.get_or_insert(began_us));
        let at = at_us.saturating_mul(u64::from(RATE_HZ)) / 1_000_000;
        if at + sound.len() as u64 > LENGTH_S_MAX * u64::from(RATE_HZ) {
            break;
        }
        // Speeches do not overlap, but for the part of a sample.
        pcm.resize(pcm.len().max(at as usize), 0);
        pcm.extend(sound);
    }
    pcm
}

/// Writes [`timeline`]; returns its length in seconds.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, heard: &[Heard]) -> Result<f64, wav::Error> {
    let pcm = timeline(heard);
    wav::write(path, &pcm, RATE_HZ)?;
    Ok(pcm.len() as f64 / f64::from(RATE_HZ))
}

/// The speaker fell silent while or after the wearer spoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Interruption {
    /// The speech that was stopped.
    pub speech: u32,
    /// Capture time of the wearer's first voiced sample.
    pub onset_us: u64,
    /// When the last sample that is not silence had been played.
    pub silent_us: u64,
}

/// The interruptions: for each speech that was stopped, the voice that began last before its end. The time of silence is
/// read from the samples, where the speaker decodes.
pub fn interruptions(events: &[Event], heard: &[Heard]) -> Vec<Interruption> {
    let onsets = || {
        events.iter().filter_map(|event| match event.seen {
            Seen::Said { onset_us, .. } => Some(onset_us),
            _ => None,
        })
    };
    let stopped = heard.iter().filter(|speech| !speech.complete);
    let interruption = |speech: &Heard| {
        let (began_us, silent_us) = (speech.began_us?, silent_us(speech)?);
        let onset_us = onsets().filter(|onset_us| (began_us..=silent_us).contains(onset_us)).max()?;
        Some(Interruption { speech: speech.speech, onset_us, silent_us })
    };
    stopped.filter_map(interruption).collect()
}

/// When the last sample that is not silence had been played.
fn silent_us(speech: &Heard) -> Option<u64> {
    let began_us = speech.began_us?;
    if speech.pcm.is_empty() {
        return Some(speech.ended_us);
    }
    let last = speech.pcm.iter().rposition(|sample| sample.unsigned_abs() > SILENT_MAX)?;
    Some(began_us + (last as u64 + 1) * 1_000_000 / u64::from(speech.rate_hz.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(speech: u32, began_us: u64, pcm: Vec<i16>, complete: bool) -> Heard {
        let played_us = pcm.len() as u64 * 1_000_000 / 24_000;
        Heard {
            speech,
            turn: 1,
            text: String::new(),
            began_us: Some(began_us),
            ended_us: began_us + played_us,
            played_us,
            concealed_us: 0,
            complete,
            arrived_us: None,
            pcm,
            rate_hz: 24_000,
        }
    }

    fn said(onset_us: u64) -> Event {
        let seen = Seen::Said { label: String::new(), begins_us: onset_us, onset_us, t0_us: onset_us + 900_000 };
        Event { at_us: onset_us + 900_000, seen }
    }

    #[test]
    fn the_record_keeps_the_time() {
        let never = Heard { began_us: None, pcm: Vec::new(), ..heard(3, 0, Vec::new(), false) };
        let speeches = [
            heard(1, 5_000_000, vec![1_000; 24_000], true),
            heard(2, 6_250_000, vec![2_000; 12_000], true),
            never,
            heard(4, 9_000_000, vec![3_000; 240], false),
        ];
        let pcm = timeline(&speeches);
        assert_eq!(pcm.len(), 24_000 * 4 + 240);
        for (second, sample) in
            [(0.0, 1_000), (0.99, 1_000), (1.1, 0), (1.3, 2_000), (1.8, 0), (3.9, 0), (4.001, 3_000)]
        {
            assert_eq!(pcm[(second * 24_000.0) as usize], sample, "{second} s");
        }
        assert!(timeline(&[]).is_empty());
    }

    #[test]
    fn silence_is_that_of_the_samples() {
        // Two seconds, the last half of one faded out.
        let mut pcm = vec![5_000; 36_000];
        pcm.resize(48_000, 20);
        let speeches = [heard(1, 1_000_000, pcm, false), heard(2, 8_000_000, vec![5_000; 24_000], true)];
        let events = [said(500_000), said(1_800_000), said(2_200_000), said(8_100_000), said(9_500_000)];
        let found = interruptions(&events, &speeches);
        assert_eq!(found, [Interruption { speech: 1, onset_us: 2_200_000, silent_us: 2_500_000 }]);
        // Nobody spoke: something else stopped it.
        assert!(interruptions(&events[..1], &speeches).is_empty());
    }
}
