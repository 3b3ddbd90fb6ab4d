//! Active speech level: how loud a voice is, without its pauses.

/// Time constant of the envelope, in seconds.
const ENVELOPE_S: f64 = 0.03;

/// How long speech counts as active after its envelope has fallen below a threshold, in seconds.
const HANGOVER_S: f64 = 0.2;

/// Distance of the threshold of activity below the active level, in decibels.
const MARGIN_DB: f64 = 15.9;

/// Thresholds: powers of two, from 1 to 16,384 units of a 16-bit sample.
const THRESHOLDS: usize = 15;

/// The active speech level as a root mean square in units of a 16-bit sample; `None`: there is no sound.
///
/// Method B of ITU-T P.56: the energy of the clip is divided by the time in which its envelope lies above a threshold
/// that is 15.9 dB below the result. So pauses do not count, however long they are.
pub fn active_rms(pcm: &[i16], rate_hz: u32) -> Option<f64> {
    let keep = (-1.0 / (ENVELOPE_S * f64::from(rate_hz.max(1)))).exp();
    let hangover = (HANGOVER_S * f64::from(rate_hz)) as u32;
    let (mut first, mut envelope, mut energy) = (0.0, 0.0, 0.0);
    let mut active = [0_u64; THRESHOLDS];
    let mut since = [hangover; THRESHOLDS];
    for sample in pcm {
        let sample = f64::from(*sample);
        energy += sample * sample;
        first = keep * first + (1.0 - keep) * sample.abs();
        envelope = keep * envelope + (1.0 - keep) * first;
        for (n, (active, since)) in active.iter_mut().zip(&mut since).enumerate() {
            if envelope >= f64::from(1_u32 << n) {
                *active += 1;
                *since = 0;
            } else if *since < hangover {
                *active += 1;
                *since += 1;
            }
        }
    }
    let mut before: Option<(f64, f64)> = None;
    for (n, count) in active.iter().enumerate().filter(|(_, count)| **count > 0) {
        let level_db = 10.0 * (energy / *count as f64).log10();
        let above_db = level_db - 20.0 * f64::from(1_u32 << n).log10();
        if above_db <= MARGIN_DB {
            let level_db = match before {
                // Between two thresholds, both values are taken as straight lines.
                Some((level, above)) if above > above_db => {
                    level + (level_db - level) * (above - MARGIN_DB) / (above - above_db)
                }
                _ => level_db,
            };
            return Some(super::gain(level_db));
        }
        before = Some((level_db, above_db));
    }
    before.map(|(level_db, _)| super::gain(level_db))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(seconds: f64, amplitude: f64) -> Vec<i16> {
        (0..(seconds * 16_000.0) as usize).map(|n| ((n as f64 * 0.3).sin() * amplitude) as i16).collect()
    }

    fn db(rms: f64) -> f64 {
        20.0 * rms.log10()
    }

    #[test]
    fn pauses_do_not_count() {
        let level = active_rms(&tone(5.0, 8_000.0), 16_000).unwrap();
        assert!((db(level) - db(8_000.0 / 2f64.sqrt())).abs() < 0.1, "{level}");
        // A second of voice and four of silence: the mean is 7 dB lower, the active level is not.
        let mut pcm = vec![0; 16_000 * 2];
        pcm.extend(tone(1.0, 8_000.0));
        pcm.resize(16_000 * 5, 0);
        let with_pauses = active_rms(&pcm, 16_000).unwrap();
        // The envelope's fall and the hangover count as active: some 0.3 s.
        assert!((db(level) - db(with_pauses) - 10.0 * 1.3f64.log10()).abs() < 0.3, "{level} {with_pauses}");
    }

    #[test]
    fn silence_has_no_level() {
        assert_eq!(active_rms(&[0; 16_000], 16_000), None);
        assert_eq!(active_rms(&[], 16_000), None);
    }
}
