//! Training in rounds: after each, the windows that the head takes for the phrase count more.

use rand::rngs::SmallRng;

use super::Progress;
use super::clips::{Clip, Label};
use super::perceptron::{Adam, Example, Perceptron};

/// Rounds of training, and passes over the examples in each.
const ROUNDS: usize = 4;
const PASSES: usize = 5;
/// Rate of learning of the first round; each further one has half of it.
const RATE: f32 = 1e-3;
/// Windows without the phrase in one round, at most.
const EASY_MAX: usize = 40_000;
/// Score from which a window without the phrase is hard, and how much it counts then.
const HARD: f32 = 0.1;
const HARD_WEIGHT: f32 = 4.0;
/// How much a window with the phrase counts.
const PHRASE_WEIGHT: f32 = 2.0;

/// Learns from all windows of these clips.
pub fn learn(clips: &[&Clip], random: &mut SmallRng, progress: &(dyn Fn(Progress) + Sync)) -> Perceptron {
    let (phrases, others) = (labelled(clips, Label::Phrase), labelled(clips, Label::Other));
    let every = others.len().div_ceil(EASY_MAX).max(1);
    let sample = phrases.iter().copied().chain(others.iter().step_by(every).copied());
    let mut network = Perceptron::new(sample, random);
    let mut adam = Adam::default();
    let mut rate = RATE;
    for round in 0..ROUNDS {
        let mut examples: Vec<Example<'_>> =
            phrases.iter().map(|window| Example { window, positive: true, weight: PHRASE_WEIGHT }).collect();
        for (index, window) in others.iter().enumerate() {
            // The first round knows nothing that is hard.
            let hard = round > 0 && network.score(window) > HARD;
            let chosen = hard || (index + round).is_multiple_of(every);
            if chosen {
                let weight = if hard { HARD_WEIGHT } else { 1.0 };
                examples.push(Example { window, positive: false, weight });
            }
        }
        for pass in 0..PASSES {
            let loss = network.learn(&examples, &mut adam, rate, random);
            tracing::debug!(round, pass, loss, examples = examples.len(), "wake training");
            progress(Progress { stage: "learning", done: round * PASSES + pass + 1, of: ROUNDS * PASSES });
        }
        rate *= 0.5;
    }
    network
}

fn labelled<'a>(clips: &[&'a Clip], wanted: Label) -> Vec<&'a [f32]> {
    let windows = clips.iter().flat_map(|clip| clip.windows());
    windows.filter(|(_, label)| *label == wanted).map(|(window, _)| window).collect()
}
