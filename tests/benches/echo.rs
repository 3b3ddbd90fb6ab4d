//! How well the glasses' own speaker is told from a wearer's voice, by the likeness of what they play and what they hear.
//!
//! `cargo xtask bench echo [--half tuning|judging]`
//!
//! Sentences in the product's voice are played; the microphone hears their echo (several delays, levels and tails), somebody else
//! (recorded telephone prompts), or both. All of it is coded as Opus on both ways, with a microphone's own noise, and each pair of
//! glasses reports its playback up to 60 ms wrong. The likeness is taken every 100 ms where there is sound in the microphone; the
//! share of these moments at which it is above each threshold is printed. Thresholds were chosen on the tuning half (a hash of the
//! prompts' names).

mod common;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use audio::echo::Played;
use common::argument;
use common::clips::{self, CLIP_HZ, Clip};
use common::voices::{Speaker, coded};
use firmware_sim::acoustics::level::active_rms;
use firmware_sim::acoustics::{Change, Echo, Scene};
use firmware_sim::random::Random;
use firmware_sim::speaker::Output;

/// Sentences of a half.
const SENTENCES: usize = 40;
/// Sound compared, in milliseconds.
const WINDOWS_MS: [usize; 1] = [300];
const THRESHOLDS: [f32; 6] = [0.3, 0.4, 0.5, 0.55, 0.6, 0.7];
/// Between two looks.
const STEP: usize = CLIP_HZ as usize / 10;
/// Root mean square of the microphone's own noise: -81 dB of full scale.
const OWN_RMS: f32 = 3.0;
/// Root mean square of a stretch in which the microphone hears something.
const HEARD_RMS: f64 = 12.0;
const REPORT_ERROR_US: u64 = 60_000;

#[derive(Clone, Copy)]
enum Heard {
    /// The echo alone.
    Echo(Echo),
    /// Somebody else alone.
    Voice,
    /// Both: the voice so many decibels above the echo.
    Both(Echo, f64),
}

const fn echo(delay_ms: f64, attenuation_db: f64, tail_ms: f64) -> Echo {
    Echo { delay_ms, attenuation_db, tail_ms }
}

fn main() -> Result<()> {
    let is_tuning = match argument("--half").as_deref() {
        None | Some("judging") => false,
        Some("tuning") => true,
        Some(other) => bail!("--half {other}: tuning or judging"),
    };
    let clips: Vec<Clip> = clips::all()?.into_iter().filter(|clip| clip.development == is_tuning).collect();
    let folder = tempfile::tempdir()?;
    let mut said = Vec::new();
    for clip in clips.iter().filter(|clip| clip.text.split_whitespace().count() > 4).take(SENTENCES) {
        said.push(Speaker::HIBARI.say(&clip.text, folder.path())?);
    }
    let echoes = [
        ("echo 80 ms, 12 dB", Heard::Echo(echo(80.0, 12.0, 0.0))),
        ("echo 20 ms, 30 dB", Heard::Echo(echo(20.0, 30.0, 0.0))),
        ("echo 200 ms, 30 dB, tail 200", Heard::Echo(echo(200.0, 30.0, 200.0))),
        ("echo 300 ms, 12 dB, tail 400", Heard::Echo(echo(300.0, 12.0, 400.0))),
        ("echo 80 ms, 45 dB", Heard::Echo(echo(80.0, 45.0, 0.0))),
        ("a voice", Heard::Voice),
        ("a voice 6 dB below the echo", Heard::Both(echo(80.0, 12.0, 0.0), -6.0)),
        ("a voice as loud as the echo", Heard::Both(echo(80.0, 12.0, 0.0), 0.0)),
        ("a voice 6 dB above the echo", Heard::Both(echo(80.0, 12.0, 0.0), 6.0)),
        ("a voice 12 dB above the echo", Heard::Both(echo(80.0, 12.0, 0.0), 12.0)),
    ];
    println!("share of moments with a likeness above {THRESHOLDS:?}, in percent");
    let (mut looks, mut spent) = (0_u32, Duration::ZERO);
    for (name, heard) in echoes {
        for window_ms in WINDOWS_MS {
            let mut found = Vec::new();
            for (number, played) in said.iter().enumerate() {
                let others = &clips[(number * 7 + 3) % clips.len()].pcm;
                let (of_sentence, took) = likenesses(played, others, heard, number as u64, window_ms)?;
                looks += of_sentence.len() as u32;
                spent += took;
                found.extend(of_sentence);
            }
            let share = |threshold: f32| {
                100.0 * found.iter().filter(|one| **one > threshold).count() as f64 / found.len().max(1) as f64
            };
            let shares: Vec<String> = THRESHOLDS.iter().map(|one| format!("{:5.1}", share(*one))).collect();
            println!("{name:<30} {window_ms} ms  n {:>5}  {}", found.len(), shares.join("  "));
        }
    }
    println!("a look, with what was played since the one before: {:.0?}", spent / looks.max(1));
    Ok(())
}

/// The likeness at each moment at which something is heard, and what all looks took.
fn likenesses(said: &[i16], others: &[i16], heard: Heard, seed: u64, window_ms: usize) -> Result<(Vec<f32>, Duration)> {
    let mut random = Random::new(seed + 1);
    let out = coded(said, 0, 0)?;
    let mut mic = vec![0_i16; out.len() + CLIP_HZ as usize];
    let echo = match heard {
        Heard::Echo(echo) | Heard::Both(echo, _) => Some(echo),
        Heard::Voice => None,
    };
    let mut scene = Scene::new(CLIP_HZ);
    scene.apply(Change::Echo(echo), None).map_err(anyhow::Error::msg)?;
    let us = |samples: usize| samples as u64 * 1_000_000 / u64::from(CLIP_HZ);
    scene.play(&Output { from_us: 0, until_us: us(out.len()), rate_hz: CLIP_HZ, pcm: out.clone() });
    scene.played_until(us(mic.len()));
    for (number, packet) in mic.chunks_mut(320).enumerate() {
        scene.mix(us(number * 320), packet);
    }
    let voice_gain = match heard {
        Heard::Echo(_) => 0.0,
        Heard::Voice => 1.0,
        Heard::Both(_, above_db) => {
            let levels = (active_rms(&mic, CLIP_HZ), active_rms(others, CLIP_HZ));
            let (Some(echo), Some(voice)) = levels else { bail!("nothing to be heard") };
            10_f64.powf(above_db / 20.0) * echo / voice
        }
    };
    // The voice goes on as long as the sentence does.
    let begin = random.below(others.len() as u64 / 2) as usize;
    for (sample, other) in mic.iter_mut().zip(others.iter().cycle().skip(begin)) {
        let noise = (random.below(2_000_001) as f32 / 1e6 - 1.0) * OWN_RMS * 3_f32.sqrt();
        *sample = (f32::from(*sample) + f32::from(*other) * voice_gain as f32 + noise).round() as i16;
    }
    let mic = coded(&mic, 0, 0)?;

    let mut played = Played::new(CLIP_HZ);
    let mut sent = 0;
    let error_us = random.below(2 * REPORT_ERROR_US) as i64 - REPORT_ERROR_US as i64;
    let window = window_ms * CLIP_HZ as usize / 1_000;
    let (mut found, mut spent) = (Vec::new(), Duration::ZERO);
    for end in (window..out.len()).step_by(STEP) {
        // Sent up to 600 ms ahead; reported every 200 ms.
        let until = (end + 6 * STEP).min(said.len());
        let began = Instant::now();
        played.push(said.get(sent..until).context("what is said")?);
        sent = until;
        let reported_us = us(end) / 200_000 * 200_000;
        played.report(reported_us, reported_us.saturating_add_signed(error_us));
        let sound = &mic[end - window..end];
        let power = sound.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / window as f64;
        if power.sqrt() >= HEARD_RMS {
            found.extend(played.likeness(sound, us(end)));
            spent += began.elapsed();
        }
    }
    Ok((found, spent))
}
