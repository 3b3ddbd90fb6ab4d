//! Personal heads: which recordings can be learned from, and that a head learns the voice of its wearer.
#![cfg(all(feature = "vad", feature = "opus", feature = "tts"))]

mod listener_clips;

use std::sync::Arc;

use audio::models;
use audio::tts::Voice;
use audio::vad::silero;
use audio::wake::onnx::Model;
use audio::wake::train::clips::{Clip, Scene, peak};
use audio::wake::train::enrol::{self, Enrolled, Enrolment};
use audio::wake::train::recording::Recording;
use audio::wake::train::voices::{Manner, Speaker};
use audio::wake::train::{Plan, Tools, judge, perceptron::Perceptron};
use audio::wake::{Head, Models};
use listener_clips::*;

const PHRASE: &str = "hey mentra";

/// A head that `lorgnette wake train` has made.
const BASE: &[u8] = include_bytes!("../../tests/data/wake/hey_mentra.onnx");

fn detector() -> Arc<silero::Model> {
    silero::Model::load(&models::default_dir().join(silero::FILE_NAME)).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(pcm: Vec<i16>) -> String {
    Recording::checked(pcm, &detector()).expect_err("it was taken")
}

#[test]
fn recordings_that_cannot_be_learned_from_are_refused_in_words() {
    // "Go forward ten meters".
    let said = clip(SPEECH[4])[seconds(0.4)..].to_vec();
    Recording::checked(said.clone(), &detector()).expect("a good one");
    assert!(refused(said[..seconds(0.2)].to_vec()).contains("it has 0.2 s"));
    assert!(refused(vec![0; seconds(7.0)]).contains("it has 7.0 s"));
    assert!(refused(vec![0; seconds(1.0)]).contains("no voice"));
    let scaled = |by: f32| said.iter().map(|x| (f32::from(*x) * by) as i16).collect::<Vec<i16>>();
    assert!(refused(scaled(0.05)).contains("too quiet"), "{}", refused(scaled(0.05)));
    assert!(refused(scaled(40.0)).contains("clipped"), "{}", refused(scaled(40.0)));
    let twice = [&said[..], &vec![0; seconds(0.5)], &said].concat();
    assert!(refused(twice).contains("once"));
}

/// A wearer who is smaller, speaks higher, and has another accent than the voice that the base knows.
fn wearer(speed: f32) -> Manner {
    Manner { speed, pitch: 1.5, formants: 1.25, accent: Some(3) }
}

struct World {
    models: Arc<Models>,
    voice: Voice,
    scratch: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = models::default_dir();
        let voice = Voice::load(&dir.join("hibari")).unwrap_or_else(|error| panic!("{error}"));
        let models = Models::load(&dir).unwrap_or_else(|error| panic!("{error}"));
        Self { models, voice, scratch: tempfile::tempdir().unwrap() }
    }

    fn tools(&self) -> Tools<'_> {
        Tools { models: &self.models, voice: &self.voice, scratch: self.scratch.path(), progress: &|_| {} }
    }

    fn say(&self, text: &str, manner: Manner) -> Vec<i16> {
        Speaker::own().say(&self.voice, text, manner, self.scratch.path()).unwrap_or_else(|error| panic!("{error}"))
    }

    fn recordings(&self, speeds: &[f32]) -> Vec<Recording> {
        let said = speeds.iter().map(|speed| self.say("hey mentra.", wearer(*speed)));
        said.map(|pcm| Recording::checked(pcm, &detector()).unwrap()).collect()
    }
}

#[test]
fn a_head_learns_the_voice_of_its_wearer() {
    let world = World::new();
    let plan = Plan { speakers: vec![Speaker::own()], sayings: 2, threads: 2, ..Plan::of(PHRASE) };
    let phrases = world.recordings(&[0.85, 1.0, 1.15]);
    let enrolment = Enrolment { plan: &plan, base: BASE, phrases: &phrases, others: &[], real: &[] };
    let Enrolled { head, file, heard, heard_before, .. } =
        enrol::enrol(&enrolment, world.tools()).unwrap_or_else(|error| panic!("{error}"));
    // Another request, at another pace.
    let said = world.say("hey mentra, how far is the station", wearer(1.07));
    let scene = Scene { samples: said.iter().map(|x| f32::from(*x)).collect(), phrase_end: None };
    let clip = Clip::of(&scene, &world.models).unwrap();
    let best = |head: &Head| peak(&judge::scores(head, &clip).unwrap(), head.settings().patience);
    let before = Head::of(BASE, PHRASE).unwrap();
    println!("{heard:?} {heard_before:?} {} {}", best(&before), best(&head));
    assert_eq!(head.settings().phrase, PHRASE);
    assert_eq!(heard, [true; 3], "by heads that have not learned them; before: {heard_before:?}");
    assert!(best(&head) > 0.9 && best(&head) > best(&before), "{} before, {} after", best(&before), best(&head));
    // It can learn more.
    assert!(Model::read(&file).is_ok_and(|model| Perceptron::read(&model).is_ok()));
}

#[test]
fn what_cannot_be_learned_is_refused_in_words() {
    let world = World::new();
    let plan = Plan { speakers: vec![Speaker::own()], sayings: 4, ..Plan::of(PHRASE) };
    let refused = |base: &[u8], count: usize| {
        let phrases = vec![world.recordings(&[1.0]).remove(0); count];
        let enrolment = Enrolment { plan: &plan, base, phrases: &phrases, others: &[], real: &[] };
        enrol::enrol(&enrolment, world.tools()).err().expect("it was learned").to_string()
    };
    assert!(refused(b"", 2).contains("3 to 10 recordings of the phrase, not 2"), "{}", refused(b"", 2));
    assert!(refused(b"", 11).contains("not 11"));
    assert!(refused(b"no head", 3).contains("cannot learn"), "{}", refused(b"no head", 3));
}
