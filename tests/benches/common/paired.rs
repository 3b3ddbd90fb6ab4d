//! Word error rates of two systems on the same clips, and how sure their difference is.

use audio::asr::wer::Wer;
use firmware_sim::random::Random;

use super::quantile;

/// Samples of the bootstrap.
const RESAMPLES: usize = 10_000;
const SEED: u64 = 20;

/// All clips together.
pub fn sum(pairs: &[(Wer, Wer)]) -> (Wer, Wer) {
    let mut total = (Wer::default(), Wer::default());
    for (first, second) in pairs {
        total.0 += *first;
        total.1 += *second;
    }
    total
}

/// Percentile bootstrap of the difference of the rates, first less second, over clips, paired: 95 %.
pub fn interval(pairs: &[(Wer, Wer)]) -> (f64, f64) {
    if pairs.is_empty() {
        return (0.0, 0.0);
    }
    let mut random = Random::new(SEED);
    let mut differences: Vec<i64> = (0..RESAMPLES)
        .map(|_| {
            let sample: Vec<(Wer, Wer)> = (0..pairs.len())
                .filter_map(|_| pairs.get(random.below(pairs.len() as u64) as usize).copied())
                .collect();
            let (first, second) = sum(&sample);
            // In billionths, so that they can be ranked.
            ((first.rate() - second.rate()) * 1e9) as i64
        })
        .collect();
    let low = quantile(&mut differences, 0.025).unwrap_or(0);
    let high = quantile(&mut differences, 0.975).unwrap_or(0);
    (low as f64 / 1e9, high as f64 / 1e9)
}
