//! The same commands in virtual time: many networks of each kind, and what the ear makes of them.

use std::collections::BTreeMap;

use anyhow::Result;
use audio::asr::Options;
use audio::asr::wer::{Wer, wer};
use audio::vad::silero;
use firmware_sim::network::{Conditions, Profile};

use crate::common::voices::Speaker;
use crate::common::{engine, quantile};
use crate::world::{FIRST_US, World};
use crate::{Figures, profile};

/// From one sentence to the next.
const EVERY_US: u64 = 9_000_000;

/// Says all sentences through each network, with so many seeds each. A turn ends so long after the clip of its sentence has begun: what
/// matters is the difference between two networks.
pub fn run(networks: &[String], seeds: u64, sentences: &[&str]) -> Result<Figures> {
    println!("{} commands in virtual time, {seeds} networks of each kind", sentences.len());
    let folder = tempfile::tempdir()?;
    let said: Vec<String> = sentences.iter().map(|sentence| format!("Hey Mentra, {sentence}")).collect();
    let clips = said.iter().map(|text| Speaker::FLITE.say(text, folder.path())).collect::<Result<Vec<_>>>()?;
    let silero = silero::Model::load(&audio::models::default_dir().join("silero-v6-16k.onnx"))?;
    let wake_phrases = gateway_core::conversation::Config::default().wake_phrases.into();
    let options = Options { wake_phrases, ..Options::default() };
    let mut decoder = engine()?.decoder()?;
    let mut figures = BTreeMap::new();
    // When the turn of each sentence ends in the first network.
    let mut ends_first: Vec<Option<u64>> = Vec::new();
    for name in networks {
        let network = profile(name)?.unwrap_or_else(|| Profile::steady(Conditions::default()));
        let (mut words, mut right, mut packets, mut lost, mut later_us) = (Wer::default(), 0, 0, 0, Vec::new());
        for seed in 0..seeds {
            let clips: Vec<&[i16]> = clips.iter().map(Vec::as_slice).collect();
            let world = World::new(network.clone(), seed, false, &silero).run(&clips, EVERY_US);
            (packets, lost) = (packets + world.in_utterances.0, lost + world.in_utterances.1);
            let ends: Vec<Option<u64>> = (0..said.len() as u64).map(|nth| end_of(&world.sentences, nth)).collect();
            if ends_first.is_empty() {
                ends_first.clone_from(&ends);
            }
            let pairs = ends.iter().zip(&ends_first);
            later_us.extend(
                pairs.filter_map(|(end, first)| Some(i64::try_from((*end)?).ok()? - i64::try_from((*first)?).ok()?)),
            );
            for (text, nth) in said.iter().zip(0..) {
                let mut heard = Vec::new();
                for (_, pcm) in world.heard.iter().filter(|(at_us, _)| nth_of(*at_us) == Some(nth)) {
                    heard.push(decoder.transcribe(pcm.as_slice(), &options)?.text);
                }
                let score = wer(text, &heard.join(" "));
                right += u32::from(score.edits == 0);
                words += score;
            }
        }
        let ms = |share, of: &mut Vec<i64>| quantile(of, share).map_or(-1, |us| us / 1_000);
        println!(
            "{name:12} word error rate {:5.2} %, {right} of {} right; {lost} of {} packets of utterances lost; the turn ends {} ms later (p90 {}) than in the first network",
            100.0 * words.rate(),
            said.len() as u64 * seeds,
            packets + lost,
            ms(0.5, &mut later_us),
            ms(0.9, &mut later_us),
        );
        figures.insert(name.clone(), (words.rate(), quantile(&mut later_us, 0.5)));
    }
    Ok(figures)
}

/// The sentence that is under way at this time.
fn nth_of(at_us: u64) -> Option<u64> {
    Some(at_us.checked_sub(FIRST_US)? / EVERY_US)
}

/// When the last turn of a sentence was over, in microseconds after its clip had begun.
fn end_of(turns_us: &[u64], nth: u64) -> Option<u64> {
    let turns = turns_us.iter().filter(|at_us| nth_of(**at_us) == Some(nth));
    turns.max().map(|at_us| (at_us - FIRST_US) % EVERY_US)
}
