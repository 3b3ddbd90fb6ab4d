//! Training in rounds: after each, the windows that the head takes for the phrase count more.

use rand::rngs::SmallRng;

use super::Progress;
use super::clips::{Clip, Label};
use super::perceptron::{Adam, Example, Perceptron};

/// How much a head is trained.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    /// Rounds of training.
    pub rounds: usize,
    /// Passes over the examples in each.
    pub passes: usize,
    /// Rate of learning of the first round; each further one has half of it.
    pub rate: f32,
    /// Windows without the phrase in one round, at most, besides the hard ones.
    pub easy_max: usize,
}

/// The training of a new head.
pub const NEW: Course = Course { rounds: 4, passes: 5, rate: 1e-3, easy_max: 40_000 };

/// Score from which a window without the phrase is hard, and how much it counts then.
const HARD: f32 = 0.1;
const HARD_WEIGHT: f32 = 4.0;
/// How much a window with the phrase counts.
const PHRASE_WEIGHT: f32 = 2.0;

/// Makes a network that has learned from all windows of these clips.
pub fn learn(clips: &[&Clip], random: &mut SmallRng, progress: &(dyn Fn(Progress) + Sync)) -> Perceptron {
    let mut network = Perceptron::new(windows(clips, &NEW), random);
    improve(&mut network, clips, (&NEW, false), random, progress);
    network
}

/// A sample of the windows of these clips: with the phrase all, without it some.
pub fn windows<'a>(clips: &[&'a Clip], course: &Course) -> impl Iterator<Item = &'a [f32]> + Clone {
    let (phrases, others) = (labelled(clips, Label::Phrase), labelled(clips, Label::Other));
    let every = others.len().div_ceil(course.easy_max).max(1);
    phrases.into_iter().chain(others.into_iter().step_by(every))
}

/// Trains a network further; `knows`: it tells hard windows already.
pub fn improve(
    network: &mut Perceptron,
    clips: &[&Clip],
    (course, knows): (&Course, bool),
    random: &mut SmallRng,
    progress: &(dyn Fn(Progress) + Sync),
) {
    let (phrases, others) = (labelled(clips, Label::Phrase), labelled(clips, Label::Other));
    let every = others.len().div_ceil(course.easy_max).max(1);
    let mut adam = Adam::default();
    let mut rate = course.rate;
    for round in 0..course.rounds {
        let mut examples: Vec<Example<'_>> =
            phrases.iter().map(|window| Example { window, positive: true, weight: PHRASE_WEIGHT }).collect();
        for (index, window) in others.iter().enumerate() {
            let hard = (knows || round > 0) && network.score(window) > HARD;
            let chosen = hard || (index + round).is_multiple_of(every);
            if chosen {
                let weight = if hard { HARD_WEIGHT } else { 1.0 };
                examples.push(Example { window, positive: false, weight });
            }
        }
        for pass in 0..course.passes {
            let loss = network.learn(&examples, &mut adam, rate, random);
            tracing::debug!(round, pass, loss, examples = examples.len(), "wake training");
            let done = round * course.passes + pass + 1;
            progress(Progress { stage: "learning", done, of: course.rounds * course.passes });
        }
        rate *= 0.5;
    }
}

fn labelled<'a>(clips: &[&'a Clip], wanted: Label) -> Vec<&'a [f32]> {
    let windows = clips.iter().flat_map(|clip| clip.windows());
    windows.filter(|(_, label)| *label == wanted).map(|(window, _)| window).collect()
}
