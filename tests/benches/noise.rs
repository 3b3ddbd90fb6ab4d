//! Text that is made of noise: half an hour of noise, music and silence, heard by a wearer's gateway that listens to everything.
//!
//! `cargo xtask bench noise [--seconds 60] [--only white|pink|street|music|silence] [--seed 1] [--decode-ms 150] [--require]`
//!
//! Each kind of noise is heard at seven levels, and silence with and without the hiss of a microphone, so long each: 30 times, half
//! an hour as it stands. A noise lasts 20 s, then comes the next one with another seed. It is coded as Opus at 24 kbit/s; voice
//! detector, recogniser and core are the product's own, in virtual time (`common/ear.rs`), so that only decodes take their time.
//! There is no babble: that is voices.
//!
//! Printed are the utterances that the detector opened, their decodes, those that gave a text, and the texts that the wearer or an
//! app would have been told. With `--require` it ends with an error if there is one of the last, or a request.

mod common;

use std::time::Instant;

use anyhow::{Error, Result, ensure};
use audio::codec::Codec;
use common::clips::CLIP_HZ;
use common::ear::{Ear, Engines, Manner, What};
use common::{argument, number};
use firmware_sim::acoustics::noise::{Kind, LENGTH_S};
use firmware_sim::acoustics::{Ambience, Change, Noise, Scene};

const NOISES: [(&str, Kind); 4] =
    [("white", Kind::White), ("pink", Kind::Pink), ("street", Kind::Street), ("music", Kind::Music)];
/// Levels of a noise, in decibels of full scale: from a quiet room to a voice close by.
const LEVELS_DB: [f64; 7] = [-70.0, -60.0, -50.0, -42.0, -34.0, -26.0, -20.0];
/// Level of the voice from which the simulator reckons how far a noise is below it, in decibels of full scale.
const VOICE_DB: f64 = -26.0;
/// The greatest sample of a microphone's hiss.
const HISS: [u16; 2] = [0, 8];

/// What came of some sound.
#[derive(Default)]
struct Heard {
    seconds: u64,
    utterances: usize,
    decodes: usize,
    texts: Vec<String>,
    told: Vec<String>,
    requests: usize,
}

impl Heard {
    fn add(&mut self, other: Self) {
        self.seconds += other.seconds;
        self.utterances += other.utterances;
        self.decodes += other.decodes;
        self.texts.extend(other.texts);
        self.told.extend(other.told);
        self.requests += other.requests;
    }

    fn show(&self, name: &str) {
        let Self { seconds, utterances, decodes, texts, told, requests } = self;
        println!(
            "{name}: {seconds} s, {utterances} utterances, {decodes} decodes, {} with text, {} told, {requests} asked",
            texts.len(),
            told.len()
        );
    }
}

fn main() -> Result<()> {
    let (seconds, seed) = (number("--seconds", 60)?, number("--seed", 1)?);
    let only = argument("--only");
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    common::calibrate("before")?;
    let (mut engines, mut all, began) = (Engines::load()?, Heard::default(), Instant::now());
    for (name, kind) in NOISES.into_iter().filter(|(name, _)| is_wanted(name)) {
        let mut of_kind = Heard::default();
        for (index, level_db) in (0..).zip(LEVELS_DB) {
            // No two levels have the same noise.
            let pcm = noise(kind, level_db, seconds, seed + index * 1_000)?;
            let heard = hear(&mut engines, &pcm, 0)?;
            heard.show(&format!("  {name} at {level_db:.0} dB"));
            of_kind.add(heard);
        }
        of_kind.show(name);
        all.add(of_kind);
    }
    for hiss in HISS.into_iter().filter(|_| is_wanted("silence")) {
        let heard = hear(&mut engines, &vec![0; samples(seconds)], hiss)?;
        heard.show(&format!("silence, hiss of {hiss}"));
        all.add(heard);
    }
    ensure!(all.seconds > 0, "--only {}, or silence", NOISES.map(|(name, _)| name).join(", "));
    all.show("all");
    for text in &all.texts {
        println!("  decoded: {text:?}");
    }
    for text in &all.told {
        println!("  told: {text:?}");
    }
    println!("{:.1} times as fast as real time", all.seconds as f64 / began.elapsed().as_secs_f64());
    common::row("what a decode really took", std::mem::take(&mut engines.decodes_us));
    common::calibrate("after")?;
    let mut missed = Vec::new();
    if !all.told.is_empty() || all.requests > 0 {
        missed.push(format!("{} texts and {} requests of noise, aim none", all.told.len(), all.requests));
    }
    common::aims::judge(&missed)
}

fn samples(seconds: u64) -> usize {
    seconds as usize * CLIP_HZ as usize
}

/// So many seconds of a noise at this level.
fn noise(kind: Kind, level_db: f64, seconds: u64, seed: u64) -> Result<Vec<i16>> {
    let (mut pcm, mut seed) = (Vec::new(), seed);
    while pcm.len() < samples(seconds) {
        let noise = Noise { kind, snr_db: VOICE_DB - level_db, seed };
        let ambience = Ambience::render(&noise).map_err(Error::msg)?;
        let mut scene = Scene::new(CLIP_HZ);
        scene.apply(Change::Noise(Some(noise)), Some(&ambience)).map_err(Error::msg)?;
        let mut part = vec![0; samples(LENGTH_S.into())];
        scene.mix(0, &mut part);
        pcm.append(&mut part);
        seed += 1;
    }
    pcm.truncate(samples(seconds));
    Ok(pcm)
}

/// What a wearer to whom everything is listened makes of a sound.
fn hear(engines: &mut Engines, pcm: &[i16], hiss: u16) -> Result<Heard> {
    let before = engines.decodes_us.len();
    let mut ear = Ear::new(engines, Manner { codec: Codec::Opus, always_listening: true, hiss, seed: 1 })?;
    ear.hear(engines, pcm)?;
    let mut heard = Heard {
        seconds: (pcm.len() / CLIP_HZ as usize) as u64,
        utterances: ear.times_us(What::Began).count(),
        decodes: engines.decodes_us.len() - before,
        requests: ear.times_us(What::Requested).count(),
        ..Heard::default()
    };
    for event in ear.log {
        match event.what {
            What::Decoded(text) if !text.is_empty() => heard.texts.push(text),
            What::Told(text) => heard.told.push(text),
            _ => {}
        }
    }
    Ok(heard)
}
