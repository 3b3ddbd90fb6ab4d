//! Where utterances begin and end in made noise: real sentences, one behind the other, without recognition.
//!
//! `cargo xtask bench crowd [--half choosing|judging] [--in clean/babble,20/babble,10/babble,5]`
//!
//! Telephone prompts of up to 10 s with 1.5 s between them, in the simulator's noises, at a level of which each is so many decibels
//! above it while it speaks. A begin or an end is wrong where it is more than 0.33 s from the first or last frame of the clip that is
//! within 24 dB of its level; an end is late where it is decided more than 0.8 s behind the silence of 0.6 s that ends a turn. The halves
//! are by a hash of the clip's name: the numbers of `audio/src/listener/background.rs` for crowds were chosen on the first.

mod common;

use anyhow::{Context as _, Result, anyhow};
use audio::codec::Codec;
use audio::listener::{Config, Fact, Listener};
use audio::models::{catalogue, default_dir, path_of};
use audio::vad::silero;
use common::argument;
use common::clips::{self, CLIP_HZ, Clip};
use common::fixture::is_held_out;
use firmware_sim::acoustics::{Ambience, Noise, active_rms};

const PACKET: usize = CLIP_HZ as usize / 50;
const PACKET_US: u64 = 20_000;
const SECONDS_MAX: f64 = 10.0;
const GAP: usize = CLIP_HZ as usize * 3 / 2;
/// Noise alone before the first clip and behind the last one.
const AROUND: usize = CLIP_HZ as usize * 3;
const SILENCE_US: u64 = 600_000;
const NEAR_US: u64 = 330_000;
const LATE_US: u64 = SILENCE_US + 800_000;
/// A frame of a clip is loud from this part of its level on: 24 dB below it.
const LOUD: f64 = 0.063;

/// A clip in the stream: where its voice is, in microseconds.
struct Span {
    begin_us: u64,
    end_us: u64,
}

/// What the listener found.
struct Utterance {
    begin_us: u64,
    end_us: Option<u64>,
    decided_us: u64,
}

fn main() -> Result<()> {
    let model = silero::Model::load(&path_of(catalogue::find(catalogue::SILERO).context("Silero")?, &default_dir()))?;
    let judging = argument("--half").as_deref() != Some("choosing");
    let mut clips = clips::all()?;
    clips.retain(|clip| is_held_out(&clip.name) == judging && clip.seconds() < SECONDS_MAX);
    let worlds = argument("--in").unwrap_or_else(|| "clean/babble,20/babble,10/babble,5".to_owned());
    println!("{} clips; of them", clips.len());
    for world in worlds.split('/') {
        let noise = (world != "clean").then(|| world.parse::<Noise>()).transpose().map_err(|what| anyhow!(what))?;
        let (pcm, spans) = stream(&clips, noise)?;
        let found = listen(&pcm, Listener::new(config(), model.clone())?)?;
        judge(world, &spans, &found);
    }
    Ok(())
}

fn config() -> Config {
    Config { codec: Codec::Pcm16, rate_hz: CLIP_HZ, ..Config::default() }
}

/// The clips one behind the other, and where each is.
fn stream(clips: &[Clip], noise: Option<Noise>) -> Result<(Vec<i16>, Vec<Span>)> {
    let ambience = noise.map(|noise| Ambience::render(&noise)).transpose().map_err(|what| anyhow!(what))?;
    let around = ambience.as_ref().map_or(&[][..], Ambience::samples);
    let squares: f64 = around.iter().map(|sample| f64::from(*sample).powi(2)).sum();
    let own = (squares / around.len().max(1) as f64).sqrt().max(1.0);
    let mut noises = around.iter().copied().cycle();
    let mut hear = |clean: &[i16], level: f64, into: &mut Vec<i16>| {
        let scale = noise.map_or(0.0, |noise| level / own / 10_f64.powf(noise.snr_db / 20.0));
        let heard = clean.iter().map(|sample| f64::from(*sample) + scale * f64::from(noises.next().unwrap_or(0)));
        into.extend(heard.map(|sample| sample.round() as i16));
    };
    let (mut pcm, mut spans, mut level) = (Vec::new(), Vec::new(), 1_000.0);
    for clip in clips {
        level = active_rms(&clip.pcm, CLIP_HZ).unwrap_or(level);
        hear(&vec![0; if spans.is_empty() { AROUND } else { GAP }], level, &mut pcm);
        spans.push(span(&clip.pcm, pcm.len(), level));
        hear(&clip.pcm, level, &mut pcm);
    }
    hear(&vec![0; AROUND], level, &mut pcm);
    Ok((pcm, spans))
}

/// Where the voice of a clip is that begins at this sample.
fn span(pcm: &[i16], at: usize, level: f64) -> Span {
    let power = |frame: &[i16]| frame.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / frame.len() as f64;
    let is_loud = |frame: &[i16]| power(frame).sqrt() > level * LOUD;
    let us = |sample: usize| sample as u64 * 1_000_000 / u64::from(CLIP_HZ);
    let first = pcm.chunks(PACKET).position(is_loud).unwrap_or(0);
    let last = pcm.chunks(PACKET).collect::<Vec<_>>().into_iter().rposition(is_loud).unwrap_or(0);
    Span { begin_us: us(at + first * PACKET), end_us: us(at + (last + 1) * PACKET) }
}

fn listen(pcm: &[i16], mut ear: Listener) -> Result<Vec<Utterance>> {
    let (mut facts, mut found) = (Vec::new(), Vec::<Utterance>::new());
    for (packet, index) in pcm.chunks_exact(PACKET).zip(0_u32..) {
        let bytes: Vec<u8> = packet.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let now_us = u64::from(index) * PACKET_US;
        ear.push_packet(index, now_us, &bytes, now_us, &mut facts)?;
        for fact in facts.drain(..) {
            let (utterance, at_us) = match fact {
                Fact::SpeechStarted { at_us, .. } => {
                    found.push(Utterance { begin_us: at_us, end_us: None, decided_us: 0 });
                    continue;
                }
                Fact::Silence { utterance, at_us, silence_us, .. } if silence_us >= SILENCE_US => (utterance, at_us),
                Fact::Ended { utterance, at_us } => (utterance, at_us),
                _ => continue,
            };
            ear.close_utterance(utterance);
            if let Some(open) = found.last_mut() {
                (open.end_us, open.decided_us) = (Some(at_us), now_us);
            }
        }
    }
    Ok(found)
}

fn judge(world: &str, spans: &[Span], found: &[Utterance]) {
    let (mut missed, mut begins, mut ends, mut late, mut pieces) = (0, 0, 0, 0, 0);
    for span in spans {
        let meets =
            |it: &&Utterance| it.begin_us < span.end_us && it.end_us.is_none_or(|end_us| end_us > span.begin_us);
        let own: Vec<&Utterance> = found.iter().filter(meets).collect();
        let (Some(first), Some(last)) = (own.first(), own.last()) else {
            missed += 1;
            continue;
        };
        pieces += own.len() - 1;
        begins += usize::from(first.begin_us.abs_diff(span.begin_us) > NEAR_US);
        ends += usize::from(last.end_us.is_none_or(|end_us| end_us.abs_diff(span.end_us) > NEAR_US));
        late += usize::from(last.decided_us.saturating_sub(span.end_us) > LATE_US);
    }
    println!(
        "{world:12} missed {missed:3}, begin wrong {begins:3}, end wrong {ends:3}, end late {late:3}, cut {pieces:3}"
    );
}
