//! From what is said to embeddings with their labels.

use rand::RngExt as _;
use rand::rngs::SmallRng;

use super::noise::{Kind, add_noise, in_room, power, through_microphone};
use crate::codec::{Codec, Decoder, Encoder};
use crate::frame::{FRAME_SAMPLES, RATE_HZ};
use crate::wake::{EMBEDDING, EMBEDDINGS, Error, Models, STEP_SAMPLES, Stream, WINDOW};

/// A phrase counts in steps that end so many samples after it, or up to so many.
const HEARD_FROM: i64 = 320;
const HEARD_TO: i64 = 6_400;
/// Steps that end so long before the end of a phrase hold too little of it, and count against it.
const PART: i64 = -4_800;

/// Sound, and where a phrase ends in it.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// Mono at 16 kHz.
    pub samples: Vec<f32>,
    /// The sample after the phrase.
    pub phrase_end: Option<usize>,
}

/// All embeddings of a sound, with those of the silence before it, and where its phrase ends.
#[derive(Clone, Debug, Default)]
pub struct Clip {
    embeddings: Vec<f32>,
    phrase_end: Option<usize>,
}

/// What a step of a clip is to a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// The phrase just ended.
    Phrase,
    /// It did not.
    Other,
    /// The phrase is ending, or ended a while ago: either answer is right.
    Either,
}

impl Scene {
    /// Silence, the parts with silences between them, and silence again. The phrase is the part with this number.
    pub fn of(parts: &[&[i16]], phrase: Option<usize>, random: &mut SmallRng) -> Self {
        let rate = RATE_HZ as usize;
        let mut scene = Self { samples: vec![0.0; random.random_range(rate / 10..rate / 2)], phrase_end: None };
        for (index, part) in parts.iter().enumerate() {
            scene.samples.extend(part.iter().map(|x| f32::from(*x)));
            if phrase == Some(index) {
                scene.phrase_end = Some(scene.samples.len());
            }
            let gap =
                if index + 1 == parts.len() { rate * 3 / 5 } else { random.random_range(rate / 50..rate * 2 / 5) };
            scene.samples.resize(scene.samples.len() + gap, 0.0);
        }
        scene
    }

    /// By another microphone, in a room, with noise, at another loudness, with the microphone's own noise, and through a
    /// codec, each by chance. `often`: how often there is noise from outside.
    #[must_use]
    pub fn varied(mut self, kinds: &[Kind], often: f64, random: &mut SmallRng) -> Self {
        if random.random_bool(0.6) {
            self.samples = through_microphone(&self.samples, random);
        }
        if random.random_bool(0.5) {
            let (decay_s, wet) = (0.1 + random.random::<f32>() * 0.5, 0.1 + random.random::<f32>() * 0.35);
            self.samples = in_room(&self.samples, decay_s, wet, random);
        }
        if random.random_bool(often) {
            let (kind, below_db) = (kinds[random.random_range(0..kinds.len())], 3.0 + random.random::<f32>() * 27.0);
            self = self.noisy(kind, below_db, random);
        }
        let peak = self.samples.iter().fold(1.0_f32, |peak, x| peak.max(x.abs()));
        let level = 32_000.0 / peak * 10.0_f32.powf(-random.random::<f32>() * 1.6);
        self.samples.iter_mut().for_each(|x| *x *= level);
        if random.random_bool(0.8) {
            let own = 10.0_f32.powf(random.random_range(-1.0..2.0));
            let noise = Kind::Drift.samples(self.samples.len(), random);
            add_noise(&mut self.samples, &noise, own * own, 0.0);
        }
        if random.random_bool(0.3) { self.coded() } else { self }
    }

    /// With noise so many decibels below what is said.
    #[must_use]
    pub fn noisy(mut self, kind: Kind, below_db: f32, random: &mut SmallRng) -> Self {
        let loud: Vec<f32> = self.samples.iter().copied().filter(|x| x.abs() > 50.0).collect();
        let noise = kind.samples(self.samples.len(), random);
        add_noise(&mut self.samples, &noise, power(&loud), below_db);
        self
    }

    /// As the samples of a device's microphone: within their range.
    pub fn pcm(&self) -> Vec<i16> {
        self.samples.iter().map(|x| x.clamp(f32::from(i16::MIN), f32::from(i16::MAX)) as i16).collect()
    }

    /// Through Opus at the bit rate of glasses.
    fn coded(mut self) -> Self {
        let coded = || -> Result<Vec<i16>, crate::codec::Error> {
            let (mut encoder, mut decoder) =
                (Encoder::new(Codec::Opus, RATE_HZ, 24_000)?, Decoder::new(Codec::Opus, RATE_HZ)?);
            let mut out = Vec::with_capacity(self.samples.len());
            for frame in self.pcm().as_chunks::<FRAME_SAMPLES>().0 {
                decoder.decode(&encoder.encode(frame)?, &mut out)?;
            }
            Ok(out)
        };
        if let Ok(pcm) = coded() {
            self.samples = pcm.into_iter().map(f32::from).collect();
        }
        self
    }
}

impl Clip {
    /// The embeddings of a scene.
    ///
    /// # Errors
    /// A model fails.
    pub fn of(scene: &Scene, models: &std::sync::Arc<Models>) -> Result<Self, Error> {
        let mut stream = Stream::new(models.clone());
        let mut embeddings = stream.window()[..WINDOW - EMBEDDING].to_vec();
        for step in scene.pcm().as_chunks::<STEP_SAMPLES>().0 {
            embeddings.extend_from_slice(&stream.push(step)?[WINDOW - EMBEDDING..]);
        }
        Ok(Self { embeddings, phrase_end: scene.phrase_end })
    }

    /// A clip of embeddings that were computed before, without a phrase.
    pub fn stored(embeddings: Vec<f32>) -> Self {
        Self { embeddings, phrase_end: None }
    }

    /// How many windows the clip has: one for each embedding from the 16th on.
    pub fn steps(&self) -> usize {
        (self.embeddings.len() / EMBEDDING + 1).saturating_sub(EMBEDDINGS)
    }

    /// Every step's window, with its label.
    pub fn windows(&self) -> impl Iterator<Item = (&[f32], Label)> + Clone {
        self.embeddings.windows(WINDOW).step_by(EMBEDDING).enumerate().map(|(step, window)| (window, self.label(step)))
    }

    fn label(&self, step: usize) -> Label {
        let Some(end) = self.phrase_end else { return Label::Other };
        match ((step + 1) * STEP_SAMPLES) as i64 - end as i64 {
            ..=PART => Label::Other,
            HEARD_FROM..=HEARD_TO => Label::Phrase,
            _ => Label::Either,
        }
    }

    /// All embeddings, those of the silence before it included.
    pub fn embeddings(&self) -> &[f32] {
        &self.embeddings
    }
}

/// The highest threshold at which a head with these scores fires; 0 if none.
pub fn peak(scores: &[f32], patience: u32) -> f32 {
    let least = |scores: &[f32]| scores.iter().copied().fold(1.0_f32, f32::min);
    scores.windows(patience.max(1) as usize).map(least).fold(0.0, f32::max)
}

/// How often a head with these scores and this threshold fires, with the detector's rest after each.
pub fn detections(scores: &[f32], threshold: f32, patience: u32) -> usize {
    let (mut run, mut resting, mut count) = (0, 0, 0);
    for score in scores {
        run = if *score >= threshold && resting == 0 { run + 1 } else { 0 };
        resting = u32::saturating_sub(resting, 1);
        if run >= patience {
            (run, resting, count) = (0, crate::wake::detector::REFRACTORY_STEPS, count + 1);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    #[test]
    fn steps_are_labelled_by_the_end_of_the_phrase() {
        let clip = Clip { embeddings: vec![0.0; (15 + 20) * EMBEDDING], phrase_end: Some(8 * STEP_SAMPLES - 400) };
        let labels: Vec<Label> = clip.windows().map(|(_, label)| label).collect();
        assert_eq!((labels.len(), clip.steps()), (20, 20));
        let expected = |step: usize| match step {
            0..=2 => Label::Other,
            7..=11 => Label::Phrase,
            _ => Label::Either,
        };
        assert_eq!(labels, (0..20).map(expected).collect::<Vec<_>>());
        assert!(Clip::stored(vec![0.0; 17 * EMBEDDING]).windows().all(|(_, label)| label == Label::Other));
    }

    #[test]
    fn a_scene_keeps_the_place_of_its_phrase() {
        let random = &mut SmallRng::seed_from_u64(2);
        let (talk, phrase) = ([100_i16; 4_000], [7_i16; 9_000]);
        let scene = Scene::of(&[&talk, &phrase, &talk], Some(1), random);
        let end = scene.phrase_end.unwrap();
        assert!(scene.samples[end - 9_000..end].iter().all(|x| *x == 7.0) && scene.samples[end] == 0.0);
        let varied = scene.clone().varied(&[Kind::White], 0.7, random);
        assert_eq!(varied.phrase_end, Some(end));
        assert!(varied.samples.len().abs_diff(scene.samples.len()) < FRAME_SAMPLES);
    }

    #[test]
    fn a_peak_is_the_highest_threshold_that_fires() {
        let scores = [0.1, 0.9, 0.3, 0.6, 0.7, 0.2];
        for (patience, wanted) in [(1, 0.9), (2, 0.6), (3, 0.3), (7, 0.0)] {
            let peak = peak(&scores, patience);
            assert_eq!(peak, wanted, "patience {patience}");
            assert!(peak == 0.0 || detections(&scores, peak, patience) > 0);
            assert_eq!(detections(&scores, peak + 0.01, patience), 0);
        }
    }

    #[test]
    fn detections_count_in_steps() {
        let mut scores = vec![0.9; 2];
        scores.extend([0.9; 19]);
        assert_eq!(detections(&scores, 0.5, 2), 1);
        scores.extend([0.9; 2]);
        assert_eq!(detections(&scores, 0.5, 2), 2);
    }
}
