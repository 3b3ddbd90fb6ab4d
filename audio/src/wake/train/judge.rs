//! How good a head is: recall by voices, requests and noises that training never heard, and false accepts per hour with
//! the bound that the amount of speech allows.

use rand::SeedableRng as _;
use rand::rngs::SmallRng;

use super::clips::{Clip, Scene, detections, peak};
use super::noise::Kind;
use super::voices::{Manner, Speaker};
use super::{Error, Progress, Tools, held_out, seconds};
use crate::wake::Head;

/// Loudness of the noise, in decibels below the voice. `None`: none at all.
const NOISE_DB: [Option<f32>; 4] = [None, Some(20.0), Some(10.0), Some(5.0)];

/// Paces of each voice.
const SPEEDS: [f32; 3] = [0.85, 1.0, 1.15];

/// What a gateway may rely on, in percent of the clips of all held-out voices: clean, and in each noise that is so many decibels
/// below the voice.
const CLEAN_PERCENT: usize = 98;
const NOISY_PERCENT: usize = 92;
const NOISY_DB: f32 = 10.0;

/// Recall of one voice under one noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Recall {
    /// Which of the synthetic voices speaks.
    pub voice: &'static str,
    /// The noise and how far it is below the voice, in decibels.
    pub noise: Option<(&'static str, f32)>,
    /// For each clip, the highest threshold at which the head hears its phrase.
    pub peaks: Vec<f32>,
}

impl Recall {
    /// Clips in which the head hears its phrase at this threshold.
    pub fn heard(&self, threshold: f32) -> usize {
        self.peaks.iter().filter(|peak| **peak >= threshold).count()
    }
}

/// False accepts in speech without the phrase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FalseAccepts {
    /// Detections, of which all are false.
    pub count: usize,
    /// Seconds of sound.
    pub seconds: f64,
}

impl FalseAccepts {
    /// The rate per hour that the true one is below with 95 % confidence, if they are independent of each other (the exact
    /// bound of Garwood 1936).
    pub fn per_hour_max(&self) -> f64 {
        bound(self.count) * 3_600.0 / self.seconds.max(1e-9)
    }
}

/// The mean of a Poisson distribution of which so few or fewer are drawn one time in twenty.
fn bound(count: usize) -> f64 {
    let at_most = |mean: f64| {
        let mut term = (-mean).exp();
        let mut sum = term;
        for k in 1..=count {
            term *= mean / k as f64;
            sum += term;
        }
        sum
    };
    let (mut low, mut high) = (0.0, 10.0 + 3.0 * count as f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if at_most(middle) > 0.05 { low = middle } else { high = middle }
    }
    high
}

/// Recall by held-out voices: the phrase alone and in front of held-out requests, at three paces, clean and in held-out
/// noise. Voices that are not installed are left out.
///
/// # Errors
/// A voice or a model fails.
pub fn recall(head: &Head, tools: Tools<'_>) -> Result<Vec<Recall>, Error> {
    let speakers = Speaker::installed(&[&held_out::VOICES[..], &held_out::FAMILIES].concat());
    let conditions: Vec<(Option<f32>, Kind)> = NOISE_DB
        .iter()
        .flat_map(|db| held_out::NOISES.iter().take(if db.is_some() { 2 } else { 1 }).map(|kind| (*db, *kind)))
        .collect();
    let mut all = Vec::new();
    for (done, (voice, speaker)) in speakers.iter().enumerate() {
        (tools.progress)(Progress { stage: "judging", done, of: speakers.len() });
        let scenes = said(head, speaker, tools)?;
        for (below_db, kind) in &conditions {
            let noise = below_db.map(|db| (kind.name(), db));
            let mut recall = Recall { voice, noise, peaks: Vec::with_capacity(scenes.len()) };
            for (index, scene) in scenes.iter().enumerate() {
                let random = &mut SmallRng::seed_from_u64(index as u64);
                let scene = scene.clone();
                let scene = if let Some(db) = below_db { scene.noisy(*kind, *db, random) } else { scene };
                let scores = scores(head, &Clip::of(&scene, tools.models)?)?;
                recall.peaks.push(peak(&scores, head.settings().patience));
            }
            all.push(recall);
        }
    }
    Ok(all)
}

/// The aims that a head misses at this threshold, in words. Where no clip tells, none is reached.
pub fn missed(recall: &[Recall], threshold: f32) -> Vec<String> {
    let noisy = held_out::NOISES.map(|kind| (Some((kind.name(), NOISY_DB)), NOISY_PERCENT));
    let misses = |(noise, percent): (Option<(&'static str, f32)>, usize)| {
        let of_noise = || recall.iter().filter(move |one| one.noise == noise);
        let heard: usize = of_noise().map(|one| one.heard(threshold)).sum();
        let of: usize = of_noise().map(|one| one.peaks.len()).sum();
        let name = noise.map_or_else(|| "clean".to_owned(), |(kind, db)| format!("{kind} noise, {db} dB"));
        let is_reached = of > 0 && heard * 100 >= of * percent;
        (!is_reached).then(|| format!("{name}: {heard} of {of} heard, the aim is {percent} %"))
    };
    std::iter::once((None, CLEAN_PERCENT)).chain(noisy).filter_map(misses).collect()
}

fn said(head: &Head, speaker: &Speaker, tools: Tools<'_>) -> Result<Vec<Scene>, Error> {
    let random = &mut SmallRng::seed_from_u64(7);
    let phrase = &head.settings().phrase;
    let mut scenes = Vec::new();
    for speed in SPEEDS {
        let say = |text: &str| speaker.say(tools.voice, text, Manner { speed, ..Manner::PLAIN }, tools.scratch);
        scenes.push(Scene::of(&[&say(&format!("{phrase}."))?], Some(0), random));
        for request in held_out::REQUESTS {
            // In one breath, as people say it.
            scenes.push(Scene::of(&[&say(&format!("{phrase}, {request}"))?], None, random));
        }
    }
    Ok(scenes)
}

/// A head's score of each step of a clip.
///
/// # Errors
/// The head fails.
pub fn scores(head: &Head, clip: &Clip) -> Result<Vec<f32>, Error> {
    Ok(clip.windows().map(|(window, _)| head.score(window)).collect::<Result<_, _>>()?)
}

/// A head in clips without its phrase.
pub struct Real {
    scores: Vec<Vec<f32>>,
    seconds: f64,
    patience: u32,
}

impl Real {
    /// The head's scores of these clips.
    ///
    /// # Errors
    /// The head fails.
    pub fn of(head: &Head, clips: &[Clip]) -> Result<Self, Error> {
        let scores = clips.iter().map(|clip| scores(head, clip)).collect::<Result<_, _>>()?;
        Ok(Self { scores, seconds: seconds(clips), patience: head.settings().patience })
    }

    /// False accepts at this threshold.
    pub fn false_accepts(&self, threshold: f32) -> FalseAccepts {
        let count = self.scores.iter().map(|scores| detections(scores, threshold, self.patience)).sum();
        FalseAccepts { count, seconds: self.seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aim_is_missed_by_one_clip_and_where_nothing_is_known() {
        let recall = |noise, heard: usize| {
            let peaks = (0..50).map(|clip| if clip < heard { 0.9 } else { 0.1 }).collect();
            Recall { voice: "any", noise, peaks }
        };
        let missed_of = |clean, pink, street| {
            let noisy = [("pink", pink), ("street", street)].map(|(kind, heard)| recall(Some((kind, 10.0)), heard));
            let loud = recall(Some(("pink", 5.0)), 0);
            missed(&[&[recall(None, clean), loud][..], &noisy[..]].concat(), 0.5)
        };
        assert_eq!(missed_of(49, 46, 46), Vec::<String>::new());
        assert_eq!(missed_of(48, 46, 46), ["clean: 48 of 50 heard, the aim is 98 %"]);
        assert_eq!(missed_of(49, 46, 45), ["street noise, 10 dB: 45 of 50 heard, the aim is 92 %"]);
        assert_eq!(missed(&[], 0.5).len(), 3);
    }

    #[test]
    fn bounds_are_those_of_the_tables() {
        // Half of the 95 % quantile of chi squared with 2, 4 and 12 degrees of freedom.
        for (count, wanted) in [(0, 2.9957), (1, 4.7439), (5, 10.5130)] {
            assert!((bound(count) - wanted).abs() < 1e-3, "{count}: {}", bound(count));
        }
        let none = FalseAccepts { count: 0, seconds: 1_800.0 };
        assert!((none.per_hour_max() - 5.991).abs() < 0.01);
    }
}
