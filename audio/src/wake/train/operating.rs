//! The threshold of a head, by voices and real speech that it has not learned from: the one with the best recall, less
//! what its false accepts cost.

use rand::SeedableRng as _;
use rand::rngs::SmallRng;

use super::clips::{Clip, Scene, detections, peak};
use super::noise::FOR_TRAINING;
use super::perceptron::{Perceptron, sigmoid};
use super::voices::{Manner, Speaker};
use super::{Error, Progress, Tools, seconds, texts};

/// Voices that choose the threshold. Training does not hear them, and they judge nothing.
pub const TUNING: [&str; 5] =
    ["flite-rms", "espeak-en-us+m7", "espeak-en-gb-x-gbclan+f5", "espeak-en-gb-x-gbclan+klatt4", "espeak-en-us+Andy"];

/// Paces of each voice, the second in another accent.
const SPEEDS: [(f32, Option<u64>); 2] = [(0.9, None), (1.1, Some(5))];
/// Requests behind the phrase.
const REQUESTS: usize = 3;
/// Times that each saying is heard, and how often in noise.
const HEARD: usize = 3;
const NOISY: f64 = 0.65;

/// Recall that one false accept in an hour of real speech is worth. It is little, since it costs no more than the decode by which the
/// text verifies it, and some minutes of speech say little: a limit would let a single word decide.
const FALSE_COST: f64 = 0.0005;
/// Thresholds that are tried, less one.
const THRESHOLDS: u8 = 36;
/// The threshold where no real speech says anything about it.
const UNKNOWN: f32 = 0.5;

/// A threshold, and what chose it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Least score.
    pub threshold: f32,
    /// Clips of the tuning voices in which the phrase is heard.
    pub heard: usize,
    /// Of so many.
    pub of: usize,
    /// False accepts in real speech.
    pub false_accepts: usize,
    /// Length of all that speech.
    pub seconds: f64,
}

/// Thresholds that are tried: evenly spaced in log-odds, to three decimals.
pub fn thresholds() -> impl DoubleEndedIterator<Item = f32> + Clone {
    (0..=THRESHOLDS).map(|n| (sigmoid(f32::from(n) * 0.25 - 5.5) * 1_000.0).round() / 1_000.0)
}

/// The phrase by the tuning voices that are installed, alone and in front of requests.
///
/// # Errors
/// A voice or a model fails.
pub fn said(phrase: &str, tools: Tools<'_>) -> Result<Vec<Clip>, Error> {
    let random = &mut SmallRng::seed_from_u64(11);
    let speakers = Speaker::installed(&TUNING);
    let mut clips = Vec::new();
    for (done, (_, speaker)) in speakers.iter().enumerate() {
        (tools.progress)(Progress { stage: "threshold", done, of: speakers.len() });
        for (speed, accent) in SPEEDS {
            let manner = Manner { speed, accent, ..Manner::PLAIN };
            let say = |text: &str| speaker.say(tools.voice, text, manner, tools.scratch);
            let mut scenes = vec![Scene::of(&[&say(&format!("{phrase}."))?], None, random)];
            for request in texts::REQUESTS.iter().take(REQUESTS) {
                scenes.push(Scene::of(&[&say(&format!("{phrase}, {request}"))?], None, random));
            }
            for scene in scenes.iter().flat_map(|scene| std::iter::repeat_n(scene, HEARD)) {
                clips.push(Clip::of(&scene.clone().varied(&FOR_TRAINING, NOISY, random), tools.models)?);
            }
        }
    }
    Ok(clips)
}

/// Chooses the threshold. `said`: clips with the phrase; `real`: clips without it.
pub fn choose(network: &Perceptron, said: &[Clip], real: &[&Clip], patience: u32) -> Point {
    let peaks: Vec<f32> = said.iter().map(|clip| peak(&network.scores(clip), patience)).collect();
    let others: Vec<Vec<f32>> = real.iter().map(|clip| network.scores(clip)).collect();
    point(&peaks, &others, seconds(real.iter().copied()), patience)
}

/// Chooses the threshold. `peaks`: the highest threshold at which each clip with the phrase is heard; `others`: the scores
/// of clips without it, which last so many seconds.
pub(super) fn point(peaks: &[f32], others: &[Vec<f32>], seconds: f64, patience: u32) -> Point {
    let heard = |threshold: f32| peaks.iter().filter(|peak| **peak >= threshold).count();
    let fires = |threshold: f32| others.iter().map(|scores| detections(scores, threshold, patience)).sum::<usize>();
    let of = |threshold: f32| Point {
        threshold,
        heard: heard(threshold),
        of: peaks.len(),
        false_accepts: fires(threshold),
        seconds,
    };
    if others.is_empty() || peaks.is_empty() {
        return of(UNKNOWN);
    }
    let worth = |threshold: f32| {
        let recall = heard(threshold) as f64 / peaks.len() as f64;
        recall - FALSE_COST * fires(threshold) as f64 * 3_600.0 / seconds.max(1.0)
    };
    let all: Vec<(f32, f64)> = thresholds().map(|threshold| (threshold, worth(threshold))).collect();
    let best = all.iter().map(|(_, worth)| *worth).fold(f64::MIN, f64::max);
    // The middle of those that are as good: as far from false accepts as from misses.
    let good: Vec<f32> =
        all.iter().filter(|(_, worth)| *worth > best - 1e-9).map(|(threshold, _)| *threshold).collect();
    of(good[(good.len() - 1) / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_those_of_a_head() {
        let all: Vec<f32> = thresholds().collect();
        assert!(
            all.is_sorted_by(|a, b| a < b) && all.contains(&0.5) && all[0] > 0.0 && all.iter().all(|one| *one < 1.0)
        );
    }

    #[test]
    fn a_threshold_lies_between_real_speech_and_the_phrase() {
        let said = [0.9, 0.95, 0.99, 0.85];
        let real = vec![vec![0.0, 0.2, 0.2, 0.1], vec![0.05; 20]];
        let chosen = point(&said, &real, 600.0, 2);
        assert!((0.4..0.75).contains(&chosen.threshold), "{chosen:?}");
        assert_eq!((chosen.heard, chosen.of, chosen.false_accepts), (4, 4, 0));
        // A false accept in ten minutes is worth less than a quarter of the recall, but more than none.
        let chosen = point(&said, &[vec![0.92; 5]], 600.0, 2);
        assert_eq!((chosen.heard, chosen.false_accepts), (4, 1), "{chosen:?}");
        let chosen = point(&said, &[vec![0.8; 5]], 600.0, 2);
        assert_eq!((chosen.heard, chosen.false_accepts), (4, 0), "{chosen:?}");
        // Many of them decide.
        let chosen = point(&said, &vec![vec![0.92; 5]; 400], 600.0, 2);
        assert!(chosen.threshold > 0.92 && chosen.false_accepts == 0 && chosen.heard < 4, "{chosen:?}");
        assert_eq!(point(&said, &[], 0.0, 2).threshold, UNKNOWN);
        assert_eq!(point(&[], &real, 600.0, 2).threshold, UNKNOWN);
    }
}
