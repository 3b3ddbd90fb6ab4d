//! Whether the end-of-turn score tells a pause within a sentence from its end, and what that could win.
//!
//! `cargo xtask bench pauses`
//!
//! The listener hears each telephone prompt with 2 s of silence behind it. Every pause that it reports is
//! scored as the gateway does it. A pause after which the voice goes on is an inner one; its length is how
//! much silence a shorter wait would have to survive. The wait that a threshold would allow is chosen
//! on the development half of the clips and judged on the other.

mod common;

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use audio::codec::Codec;
use audio::end_of_turn::{self, Model};
use audio::listener::{Config, Fact, Listener};
use audio::vad::silero;
use common::clips::{self, CLIP_HZ, Clip};
use common::quantile;

const PACKET_SAMPLES: usize = CLIP_HZ as usize / 50;
const PACKET_US: u64 = 20_000;
const BEHIND_S: usize = 2;
const THRESHOLDS: [f32; 5] = [0.2, 0.5, 0.8, 0.9, 0.95];

struct Pause {
    development: bool,
    score: f32,
    score_us: i64,
    /// Length in milliseconds; none for the last pause of a clip.
    inner_ms: Option<u64>,
}

fn main() -> Result<()> {
    common::calibrate("before")?;
    let models = audio::models::default_dir();
    let model = Model::load(&models.join(end_of_turn::FILE_NAME))?;
    let vad = silero::Model::load(&models.join(silero::FILE_NAME))?;
    let mut pauses = Vec::new();
    for clip in clips::all()? {
        pauses.extend(pauses_of(&clip, &model, &vad)?);
    }
    let mut times: Vec<i64> = pauses.iter().map(|pause| pause.score_us).collect();
    println!("{} pauses; a score takes {} us at the median", pauses.len(), quantile(&mut times, 0.5).unwrap_or(0));
    for development in [true, false] {
        let half: Vec<&Pause> = pauses.iter().filter(|pause| pause.development == development).collect();
        let ends: Vec<&&Pause> = half.iter().filter(|pause| pause.inner_ms.is_none()).collect();
        let inner: Vec<(u64, f32)> = half.iter().filter_map(|pause| Some((pause.inner_ms?, pause.score))).collect();
        ensure!(!ends.is_empty() && !inner.is_empty(), "a half without pauses");
        println!(
            "{}: {} ends, {} inner pauses",
            if development { "development" } else { "held-out" },
            ends.len(),
            inner.len()
        );
        for least in THRESHOLDS {
            let share = ends.iter().filter(|pause| pause.score >= least).count() as f64 / ends.len() as f64;
            let believed = inner.iter().filter(|(_, score)| *score >= least);
            let over = |wait_ms: u64| believed.clone().filter(|(ms, _)| *ms >= wait_ms).count();
            println!(
                "  score >= {least}: {:.1} % of the ends, {} of the inner pauses; of these last 250 ms {}, 300 ms {}, 350 ms {}, 400 ms {}, 450 ms {}; the longest {} ms",
                100.0 * share,
                believed.clone().count(),
                over(250),
                over(300),
                over(350),
                over(400),
                over(450),
                believed.clone().map(|(ms, _)| *ms).max().unwrap_or(0)
            );
        }
        let long = inner.iter().filter(|(ms, _)| *ms >= 450);
        println!(
            "  inner pauses of 450 ms and more: {}, scored under 0.2: {}",
            long.clone().count(),
            long.filter(|(_, score)| *score < 0.2).count()
        );
    }
    common::calibrate("after")
}

fn pauses_of(clip: &Clip, model: &Model, vad: &std::sync::Arc<silero::Model>) -> Result<Vec<Pause>> {
    let config = Config { codec: Codec::Pcm16, rate_hz: CLIP_HZ, ..Config::default() };
    let mut ear = Listener::new(config, vad.clone())?;
    let mut pcm = clip.pcm.clone();
    pcm.resize((pcm.len() + BEHIND_S * CLIP_HZ as usize).next_multiple_of(PACKET_SAMPLES), 0);
    let (mut facts, mut pauses) = (Vec::new(), Vec::<Pause>::new());
    let mut paused_us = None;
    for (index, packet) in pcm.chunks_exact(PACKET_SAMPLES).enumerate() {
        let bytes: Vec<u8> = packet.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let at_us = index as u64 * PACKET_US;
        ear.push_packet(u32::try_from(index)?, at_us, &bytes, at_us, &mut facts)?;
        for fact in facts.drain(..) {
            match fact {
                Fact::Paused { utterance, at_us, .. } => {
                    let sound = ear.utterance_pcm(utterance).context("the utterance is open")?;
                    let began = Instant::now();
                    let score = model.score(sound)?;
                    let score_us = i64::try_from(began.elapsed().as_micros())?;
                    paused_us = Some(at_us);
                    pauses.push(Pause { development: clip.development, score, score_us, inner_ms: None });
                }
                Fact::Resumed { at_us, .. } => {
                    if let (Some(since_us), Some(pause)) = (paused_us.take(), pauses.last_mut()) {
                        pause.inner_ms = Some(at_us.saturating_sub(since_us) / 1_000);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(pauses)
}
