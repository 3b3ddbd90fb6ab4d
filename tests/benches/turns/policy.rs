//! False cut-offs against latency, as livekit's eot-bench counts them.
//!
//! Each pause is judged by itself: by the silence after which the turn would be over. A policy is two more settings: a silence
//! before which no turn ends, and one after which every turn does. A pause inside of a turn is cut off where that silence is
//! shorter than the pause; the latency is the mean of that silence over the ends of turns.

use super::sound::Kind;

/// Pauses inside of turns that count, in microseconds.
const COUNTED_US: std::ops::RangeInclusive<u64> = 200_000..=5_000_000;
/// The settings that are tried, in microseconds.
const STEP_US: u64 = 50_000;
const DELAY_US_MAX: u64 = 1_000_000;
const TIMEOUTS_US: std::ops::RangeInclusive<u64> = 200_000..=3_500_000;

/// A labelled pause.
#[derive(Clone, Copy)]
pub struct Pause {
    pub kind: Kind,
    /// How long it lasts, in microseconds; `None`: it is the end of the turn.
    pub lasts_us: Option<u64>,
    /// The silence after which the turn would be over, in microseconds; `None`: it never was.
    pub over_us: Option<u64>,
}

/// What a policy comes to.
#[derive(Clone, Copy)]
pub struct Point {
    pub delay_us: u64,
    pub timeout_us: u64,
    /// Share of the pauses inside of turns that are cut off.
    pub cut: f64,
    /// Mean silence behind the ends, in microseconds.
    pub latency_us: f64,
}

/// A policy on these pauses. Where both silences are the same, it is silence alone that ends a turn.
pub fn point(pauses: &[Pause], delay_us: u64, timeout_us: u64) -> Point {
    let silence_us = |pause: &Pause| pause.over_us.unwrap_or(u64::MAX).max(delay_us).min(timeout_us);
    let (mut inner, mut cut, mut ends, mut sum_us) = (0_usize, 0_usize, 0_u64, 0_u64);
    for pause in pauses {
        match pause.lasts_us {
            Some(lasts_us) if COUNTED_US.contains(&lasts_us) => {
                inner += 1;
                cut += usize::from(lasts_us > silence_us(pause));
            }
            Some(_) => {}
            None => {
                ends += 1;
                sum_us += silence_us(pause);
            }
        }
    }
    let (cut, latency_us) = (cut as f64 / inner.max(1) as f64, sum_us as f64 / ends.max(1) as f64);
    Point { delay_us, timeout_us, cut, latency_us }
}

/// All policies on these pauses.
pub fn points(pauses: &[Pause]) -> Vec<Point> {
    let steps = |from_us: u64, to_us: u64| (from_us..=to_us).step_by(STEP_US as usize);
    steps(0, DELAY_US_MAX)
        .flat_map(|delay_us| {
            steps(delay_us.max(*TIMEOUTS_US.start()), *TIMEOUTS_US.end())
                .map(move |timeout_us| point(pauses, delay_us, timeout_us))
        })
        .collect()
}

/// Silence alone, of each length.
pub fn by_silence(pauses: &[Pause]) -> Vec<Point> {
    TIMEOUTS_US.step_by(STEP_US as usize).map(|silence_us| point(pauses, silence_us, silence_us)).collect()
}

/// The fewest cut-offs within this mean latency.
pub fn fewest_cut(points: &[Point], latency_us_max: f64) -> Option<Point> {
    let within = points.iter().filter(|point| point.latency_us <= latency_us_max);
    within.min_by(|one, other| one.cut.total_cmp(&other.cut).then(one.latency_us.total_cmp(&other.latency_us))).copied()
}

/// The least mean latency with no more than this share of cut-offs.
pub fn soonest(points: &[Point], cut_max: f64) -> Option<Point> {
    let within = points.iter().filter(|point| point.cut <= cut_max);
    within.min_by(|one, other| one.latency_us.total_cmp(&other.latency_us)).copied()
}
