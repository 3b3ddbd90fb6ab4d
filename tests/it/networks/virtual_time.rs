//! Every network in virtual time: one seed is one log, and what is asked of each network.

use std::sync::Arc;

use audio::vad::silero;
use firmware_sim::network::{Conditions, NAMES, Profile};

use super::world::{FIRST_US, World};

/// From one sentence to the next: time for all that a network may hold back.
const EVERY_US: u64 = 14_000_000;
/// The same in a network without outages, which holds nothing back for long.
const SOON_US: u64 = 7_000_000;
const SENTENCES: usize = 3;

#[tokio::test]
async fn in_every_network_a_sentence_is_one_and_a_seed_is_a_log() {
    let pcm = firmware_sim::voice::speak("Set a timer for twenty five minutes.").await.expect("a voice");
    let model = silero::Model::load(&audio::models::default_dir().join("silero-v6-16k.onnx")).expect("the detector");
    for (name, _) in NAMES {
        let network = || Profile::named(name).expect("a network");
        for (seed, is_stream) in [(1, false), (2, false), (3, true)] {
            let world = World::new(network(), seed, is_stream, &model).run(&[&pcm[..]; SENTENCES], EVERY_US);
            let counts = world.listener.stats();
            assert_eq!(world.sentences.len(), SENTENCES, "{name}, seed {seed}: {}", world.log);
            // What came too late for its place counts as lost, too: one in a hundred at most.
            let missing = counts.lost.saturating_sub(world.dropped);
            assert!(missing * 100 <= counts.packets, "{name}, seed {seed}: {counts:?}, {} dropped", world.dropped);
            assert!(!is_stream || counts.lost == 0, "{name}: {counts:?}");
            // What short outages drop is sent again; single packets are only where that is seldom.
            let is_repaired = counts.lost * 2 < world.dropped;
            assert!(name != "office-roam" || is_stream || is_repaired, "{counts:?}, {} dropped", world.dropped);
            // Where many are lost, those of a voice are sent again: only a tenth of those in the pause behind it is left.
            let (heard, lost) = world.in_utterances;
            assert!(name != "rough" || lost * 20 <= heard, "seed {seed}: {lost} lost, {heard} heard of utterances");
            // It begins with little.
            let begun = world.log.split_once("bitrate: 24000");
            let was_thin = begun.is_none_or(|(_, later)| later.contains("bitrate: 1"));
            match name {
                "throttle" | "bufferbloat" => assert!(was_thin, "{name}, seed {seed}: {}", world.log),
                "home" | "office-roam" | "rough" => assert!(!was_thin, "{name}, seed {seed}: {}", world.log),
                _ => {}
            }
            if seed == 1 {
                assert_eq!(
                    World::new(network(), seed, is_stream, &model).run(&[&pcm[..]; SENTENCES], EVERY_US).log,
                    world.log,
                    "{name}"
                );
            }
        }
    }
}

/// Networks of one profile that are compared: with ten, the median differs by 50 ms from one ten to the next.
const NETWORKS: u64 = 30;

/// When the sentences of networks of this profile were over, in microseconds after they began.
fn ends_us(profile: &Profile, pcm: &[i16], silero: &Arc<silero::Model>) -> Vec<u64> {
    let mut ends = Vec::new();
    for seed in 0..NETWORKS {
        let world = World::new(profile.clone(), seed, false, silero).run(&[pcm; SENTENCES], SOON_US);
        ends.extend(world.sentences.iter().map(|at_us| (at_us - FIRST_US) % SOON_US));
    }
    assert_eq!(ends.len(), NETWORKS as usize * SENTENCES, "{}", profile.name);
    ends.sort_unstable();
    ends
}

#[tokio::test]
async fn a_rough_network_delays_the_end_of_a_turn_by_a_tenth_of_a_second() {
    let pcm = firmware_sim::voice::speak("Set a timer for twenty five minutes.").await.expect("a voice");
    let model = silero::Model::load(&audio::models::default_dir().join("silero-v6-16k.onnx")).expect("the detector");
    let without = ends_us(&Profile::steady(Conditions::default()), &pcm, &model);
    let rough = ends_us(&Profile::named("rough").expect("a network"), &pcm, &model);
    let later_us = |share: usize| rough[rough.len() * share / 100].saturating_sub(without[without.len() * share / 100]);
    // The network itself takes 20 ms and up to 60 ms more.
    assert!(later_us(50) <= 80_000, "median: {} us later", later_us(50));
    assert!(later_us(90) <= 200_000, "90 %: {} us later", later_us(90));
}
