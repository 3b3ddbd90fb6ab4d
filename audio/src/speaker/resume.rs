//! Where the sound of a clause goes on that was interrupted.

use core::cmp::Reverse;

use crate::frame::us_to_samples;

/// So far back is a quiet place looked for, in microseconds: about the length of a word.
const BACK_US: u64 = 500_000;
/// The sound is judged in steps of this length, in microseconds.
const STEP_US: u64 = 10_000;

/// Index of the sample at which a clause goes on of which the part `heard` (0 to 1) was heard: the quietest place in the half
/// second before, which is between two words or within a quiet sound. 0 if that reaches back to the beginning of the clause.
pub fn resume_at(pcm: &[i16], rate_hz: u32, heard: f32) -> usize {
    let samples = |us: u64| us_to_samples(us, rate_hz) as usize;
    let heard = if heard.is_finite() { heard.clamp(0.0, 1.0) } else { 0.0 };
    let until = ((pcm.len() as f64 * f64::from(heard)) as usize).min(pcm.len());
    let step = samples(STEP_US).max(1);
    let Some(from) = until.checked_sub(samples(BACK_US)).filter(|from| *from > 0) else {
        return 0;
    };
    let energy = |step: &[i16]| step.iter().map(|sample| u64::from(sample.unsigned_abs()).pow(2)).sum::<u64>();
    let quietest =
        pcm[from..until].chunks_exact(step).enumerate().min_by_key(|(at, step)| (energy(step), Reverse(*at)));
    quietest.map_or(from, |(at, _)| from + at * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two seconds at 16 kHz, loud but for these places in milliseconds, which have the given loudness.
    fn loud_but(places: &[(usize, usize, i16)]) -> Vec<i16> {
        let mut pcm: Vec<i16> = (0..32_000).map(|at| if at % 2 == 0 { 9_000 } else { -9_000 }).collect();
        for (from_ms, until_ms, loudness) in places {
            pcm[from_ms * 16..until_ms * 16].iter_mut().for_each(|sample| *sample = sample.signum() * loudness);
        }
        pcm
    }

    #[test]
    fn a_clause_goes_on_at_the_last_gap_before_the_place_where_it_was_stopped() {
        // Milliseconds of the gaps, the part that was heard, and the range in which it goes on.
        let table = [
            (vec![(1_000, 1_100, 10)], 0.6, 1_000..1_100),
            (vec![(1_000, 1_100, 10), (1_400, 1_500, 10)], 0.6, 1_000..1_100),
            (vec![(750, 800, 40), (1_000, 1_100, 10)], 0.6, 1_000..1_100),
            (vec![(750, 800, 10), (1_000, 1_100, 40)], 0.6, 750..800),
            (vec![(600, 680, 0), (1_000, 1_100, 10)], 0.6, 1_000..1_100),
            (vec![(750, 800, 0), (1_000, 1_100, 0)], 0.6, 1_000..1_100),
            (vec![(100, 200, 0)], 0.6, 700..1_200),
            (vec![(1_900, 2_000, 0)], 1.0, 1_900..2_000),
        ];
        for (gaps, heard, expected) in table {
            let at_ms = resume_at(&loud_but(&gaps), 16_000, heard) / 16;
            assert!(expected.contains(&at_ms), "{gaps:?}, {heard}: {at_ms} ms");
        }
    }

    #[test]
    fn one_that_was_hardly_heard_begins_anew() {
        let pcm = loud_but(&[(100, 200, 0)]);
        for heard in [0.0, 0.1, 0.25, -1.0, f32::NAN, f32::INFINITY] {
            assert_eq!(resume_at(&pcm, 16_000, heard), 0, "{heard}");
        }
        assert_eq!(resume_at(&[], 16_000, 0.5), 0);
        assert!(resume_at(&pcm, 16_000, 7.0) >= 24_000);
    }
}
