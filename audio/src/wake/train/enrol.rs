//! Makes a personal head: one that [`train`](super::train) has made learns some recordings of its wearer.
//!
//! The recordings are heard many times, by other microphones in other rooms and noise, and with them a few sayings of
//! synthetic voices, near words, and real speech, so that the head keeps what it knows. How well it hears its wearer is
//! known by leaving one out: for each recording a head is made of all the others, and must hear that one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::SeedableRng as _;
use rand::rngs::SmallRng;

use super::clips::{Clip, Scene, detections, peak};
use super::operating::{self, Point};
use super::perceptron::Perceptron;
use super::recording::Recording;
use super::rounds::{self, Course};
use super::{Error, PATIENCE, Plan, Progress, Tools, noise, parallel, scenes, seconds};
use crate::wake::Head;
use crate::wake::head::Settings;
use crate::wake::onnx::Model;

/// Fewest and most recordings of the phrase.
pub const RECORDINGS: std::ops::RangeInclusive<usize> = 3..=10;

/// Sayings of synthetic voices that keep what the head knows, and as many of other words.
pub const SAYINGS: usize = 60;

/// Times that each recording is heard in training, and in the choice of the threshold.
const HEARD: usize = 36;
const HEARD_FOR_THRESHOLD: usize = 8;

/// Two fifths of the training that a new head gets, at half the rate.
const COURSE: Course = Course { rounds: 2, passes: 4, rate: 5e-4, easy_max: 10_000 };

/// How often there is noise in what the threshold is chosen by.
const NOISY: f64 = 0.65;

/// What a head learns.
#[derive(Clone, Copy)]
pub struct Enrolment<'a> {
    /// The phrase, the voices that keep what is known, and how often they speak.
    pub plan: &'a Plan,
    /// The file of the head that it begins with.
    pub base: &'a [u8],
    /// The wearer says the phrase.
    pub phrases: &'a [Recording],
    /// The wearer says other words, which are not to be taken for it.
    pub others: &'a [Recording],
    /// Real speech without the phrase.
    pub real: &'a [Clip],
}

/// The head that an enrolment made, with what it hears and what the head before it heard.
pub struct Enrolled {
    /// Ready for use.
    pub head: Arc<Head>,
    /// Its ONNX file.
    pub file: Vec<u8>,
    /// Why its threshold is the one that it has.
    pub point: Point,
    /// For each recording, whether it is heard by a head that has not learned it, at a threshold that the others chose.
    pub heard: Vec<bool>,
    /// For each recording, whether the head that it began with hears it.
    pub heard_before: Vec<bool>,
    /// False accepts of that head in the real speech that the threshold was chosen by.
    pub false_before: usize,
}

/// The clips of an enrolment.
struct Material<'a> {
    /// With the number of its recording.
    wearer: Vec<(usize, Clip)>,
    /// Synthetic voices, and the wearer's other words.
    known: Vec<Clip>,
    /// Real speech to learn from.
    learned: Vec<&'a Clip>,
    /// Real speech for the threshold.
    kept: Vec<&'a Clip>,
    /// Each recording as it is, and then varied.
    tests: Vec<Vec<Clip>>,
}

impl<'a> Material<'a> {
    fn of(enrolment: &Enrolment<'a>, tools: Tools<'_>) -> Result<Self, Error> {
        let Enrolment { plan, phrases, others, real, .. } = *enrolment;
        let wearer = scenes::recorded(plan, (phrases, true), HEARD, tools)?;
        let mut known = scenes::phrases(plan, tools)?;
        known.extend(scenes::others(plan, tools)?);
        if !others.is_empty() {
            known.extend(scenes::recorded(plan, (others, false), HEARD, tools)?.into_iter().map(|(_, clip)| clip));
        }
        let (kept, learned) = super::split(real);
        let heard = |recording: &Recording| -> Result<Vec<Clip>, Error> {
            let random = &mut SmallRng::seed_from_u64(plan.seed);
            let plain = recording.plain();
            let vary = |_| plain.clone().varied(&noise::FOR_TRAINING, NOISY, random);
            let scenes: Vec<Scene> = (0..HEARD_FOR_THRESHOLD).map(vary).collect();
            let all = std::iter::once(&plain).chain(&scenes);
            Ok(all.map(|scene| Clip::of(scene, tools.models)).collect::<Result<_, _>>()?)
        };
        let tests = phrases.iter().map(heard).collect::<Result<_, _>>()?;
        Ok(Self { wearer, known, learned, kept, tests })
    }

    /// What `base` becomes when it learns all recordings but this one.
    fn teach(&self, base: &Perceptron, without: usize, seed: u64) -> Perceptron {
        let random = &mut SmallRng::seed_from_u64(seed);
        let wearer = self.wearer.iter().filter(|(recording, _)| *recording != without).map(|(_, clip)| clip);
        let clips: Vec<&Clip> = wearer.chain(&self.known).chain(self.learned.iter().copied()).collect();
        let fresh = Perceptron::new(rounds::windows(&clips, &COURSE), random);
        let mut network = base.standardised_as(&fresh);
        rounds::improve(&mut network, &clips, (&COURSE, true), random, &|_| {});
        network
    }
}

/// Makes a personal head.
///
/// # Errors
/// See [`Error`]; [`Error::Enrol`] if the base is no head that training made, or another number of recordings is given.
pub fn enrol(enrolment: &Enrolment<'_>, tools: Tools<'_>) -> Result<Enrolled, Error> {
    let Enrolment { plan, phrases, .. } = *enrolment;
    plan.check()?;
    let count = phrases.len();
    if !RECORDINGS.contains(&count) {
        let (least, most) = (RECORDINGS.start(), RECORDINGS.end());
        return Err(Error::Enrol(format!("it takes {least} to {most} recordings of the phrase, not {count}")));
    }
    let before = Head::of(enrolment.base, &plan.phrase).map_err(Error::Enrol)?;
    let before = before.settings();
    if before.phrase != plan.phrase {
        return Err(Error::Enrol(format!("it is one of {:?}, not of {:?}", before.phrase, plan.phrase)));
    }
    let base = Model::read(enrolment.base).and_then(|model| Perceptron::read(&model)).map_err(Error::Enrol)?;
    let material = Material::of(enrolment, tools)?;
    let done = AtomicUsize::new(0);
    let teach = |_, without: usize| {
        let network = material.teach(&base, without, plan.seed.wrapping_add(without as u64));
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        (tools.progress)(Progress { stage: "learning", done, of: count + 1 });
        Ok(network)
    };
    // The last one learns all recordings.
    let mut networks = parallel::all(plan.threads, count + 1, &teach)?;
    let network = networks.pop().ok_or_else(|| Error::Enrol("nothing was learned".to_owned()))?;
    let peaks_by = |network: &Perceptron, clips: &[Clip]| -> Vec<f32> {
        clips.iter().map(|clip| peak(&network.scores(clip), PATIENCE)).collect()
    };
    let peaks: Vec<Vec<f32>> =
        material.tests.iter().zip(&networks).map(|(clips, network)| peaks_by(network, clips)).collect();
    let others: Vec<Vec<f32>> = material.kept.iter().map(|clip| network.scores(clip)).collect();
    let spoken = seconds(material.kept.iter().copied());
    let chosen_without = |without: usize| {
        let all: Vec<f32> =
            peaks.iter().enumerate().filter(|(n, _)| *n != without).flat_map(|(_, all)| all.clone()).collect();
        operating::point(&all, &others, spoken, PATIENCE)
    };
    let heard = peaks.iter().enumerate().map(|(n, all)| all[0] >= chosen_without(n).threshold).collect();
    let point = chosen_without(count);
    let fires = |clip: &Clip| detections(&base.scores(clip), before.threshold, before.patience);
    let heard_before = material.tests.iter().map(|clips| fires(&clips[0]) > 0).collect();
    let false_before = material.kept.iter().map(|clip| fires(clip)).sum();
    let settings = Settings { threshold: point.threshold, patience: PATIENCE, ..Settings::of(&plan.phrase) };
    let (seed, recordings) = (plan.seed.to_string(), count.to_string());
    let file = network.file(&settings, &[("lorgnette.seed", seed.as_str()), ("lorgnette.recordings", &recordings)]);
    let head = Head::of(&file, &plan.phrase).map_err(Error::Enrol)?;
    Ok(Enrolled { head, file, point, heard, heard_before, false_before })
}
