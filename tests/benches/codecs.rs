//! What codecs, rates, error correction and concealment do to recognition: PCM, Opus and LC3, with and without lost packets.
//!
//! `cargo xtask bench codecs [--half held-out|all] [--clips N] [--loss PERCENT] [--seed N] [--only NAME]`
//!
//! Real speech is coded as glasses code it, in packets of 20 ms (15 ms where LC3 frames have 7.5 ms). What the listener
//! makes of the packets, all of them or without those that are lost by chance, each one for itself, is transcribed with the
//! shipped weights and scored against the transcript. For comparison, lost packets are replaced by silence as well. A
//! microphone has 16 kHz where no other rate is named; a clip at a higher rate has no more in it than at 16 kHz.
//! Bits per second are those of the payloads that are sent.

mod common;

use std::sync::Arc;

use anyhow::{Context as _, Result};
use audio::asr::wer::{Wer, wer};
use audio::asr::{Decoder as Recogniser, Options};
use audio::codec::lc3::{ENCODER_RATES_HZ, Format};
use audio::codec::{Codec, Decoder, Encoder, is_pause};
use audio::jitter;
use audio::listener::{Config, Listener};
use audio::vad::silero;
use audio::wav;
use common::argument;
use common::clips::{self, CLIP_HZ, Clip};
use firmware_sim::random::Random;

/// Rates of other microphones.
const OTHER_RATES_HZ: [u32; 3] = [8_000, 24_000, 48_000];

/// How sound is coded.
#[derive(Clone, Copy)]
struct Coding {
    codec: Codec,
    /// Rate of the microphone.
    rate_hz: u32,
    /// Bits per second of Opus.
    bitrate: u32,
    /// Expected loss in percent, which decides about copies; `None`: as the encoder begins.
    expected: Option<u8>,
    /// Discontinuous transmission.
    dtx: bool,
    /// A lost packet is silence.
    silent: bool,
}

impl Coding {
    const fn of(codec: Codec) -> Self {
        Self { codec, rate_hz: CLIP_HZ, bitrate: 24_000, expected: None, dtx: false, silent: false }
    }
}

/// A packet that was sent; what is lost has no payload.
struct Packet {
    sequence: u32,
    capture_us: u64,
    payload: Option<Vec<u8>>,
}

/// What came of all clips.
#[derive(Default)]
struct Tally {
    wer: Wer,
    /// Clips without a wrong word.
    right: usize,
    bytes: usize,
    us: u64,
}

/// All codings by name, and whether packets are lost.
fn codings() -> Result<Vec<(String, Coding, bool)>> {
    let opus = Coding::of(Codec::Opus);
    let lc3 = |us, bytes| Format::new(us, bytes).map(|format| Coding::of(Codec::Lc3(format)));
    let mut all = vec![("pcm16".to_owned(), Coding::of(Codec::Pcm16), false)];
    for bitrate in [16_000, 24_000, 32_000] {
        all.push((format!("opus {bitrate}"), Coding { bitrate, ..opus }, false));
    }
    all.push(("opus no fec".to_owned(), Coding { expected: Some(0), ..opus }, false));
    all.push(("opus dtx".to_owned(), Coding { dtx: true, ..opus }, false));
    for bytes in [20, 40, 60, 120] {
        all.push((format!("lc3 10 ms, {bytes} bytes"), lc3(10_000, bytes)?, false));
    }
    for bytes in [20, 30, 120] {
        all.push((format!("lc3 7.5 ms, {bytes} bytes"), lc3(7_500, bytes)?, false));
    }
    for rate_hz in OTHER_RATES_HZ {
        let khz = rate_hz / 1_000;
        all.push((format!("pcm16 {khz} kHz"), Coding { rate_hz, ..Coding::of(Codec::Pcm16) }, false));
        all.push((format!("opus {khz} kHz"), Coding { rate_hz, ..opus }, false));
        if ENCODER_RATES_HZ.contains(&rate_hz) {
            all.push((format!("lc3 {khz} kHz, 10 ms, 60 bytes"), Coding { rate_hz, ..lc3(10_000, 60)? }, false));
        }
    }
    for (name, expected, dtx) in [
        ("fec", None, false),
        ("fec for 20 %", Some(20), false),
        ("fec for 30 %", Some(30), false),
        ("no fec", Some(0), false),
        ("fec, dtx", None, true),
        ("no fec, dtx", Some(0), true),
    ] {
        all.push((format!("opus {name}"), Coding { expected, dtx, ..opus }, true));
    }
    let plain = [("pcm16", Coding::of(Codec::Pcm16)), ("lc3 10 ms, 40 bytes", lc3(10_000, 40)?)];
    for (name, coding) in plain.into_iter().chain([("lc3 7.5 ms, 30 bytes", lc3(7_500, 30)?)]) {
        all.push((format!("{name}, concealed"), coding, true));
        all.push((format!("{name}, silence"), Coding { silent: true, ..coding }, true));
    }
    Ok(all)
}

fn main() -> Result<()> {
    let wanted = argument("--half").unwrap_or_else(|| "held-out".to_owned());
    let mut clips = clips::all()?;
    clips.retain(|clip| wanted == "all" || !clip.development);
    if let Some(most) = argument("--clips") {
        clips.truncate(most.parse()?);
    }
    let percent: u64 = argument("--loss").map_or(Ok(10), |percent| percent.parse())?;
    let seed: u64 = argument("--seed").map_or(Ok(1), |seed| seed.parse())?;
    let seconds: f64 = clips.iter().map(Clip::seconds).sum();
    println!("{} clips ({wanted}), {seconds:.0} s, seed {seed}", clips.len());
    common::calibrate("before")?;
    let silero = silero::Model::load(&audio::models::default_dir().join("silero-v6-16k.onnx"))?;
    let mut recogniser = common::engine()?.decoder()?;
    let only = argument("--only").unwrap_or_default();
    for (name, coding, lossy) in codings()?.into_iter().filter(|(name, ..)| name.contains(&only)) {
        let percent = if lossy { percent } else { 0 };
        let tally = score(&clips, coding, percent, seed, &silero, &mut recogniser).with_context(|| name.clone())?;
        println!(
            "{percent:2} % loss, {name:32} word error rate {:6.2} %, {:3} of {} clips right, {:6.0} bit/s",
            100.0 * tally.wer.rate(),
            tally.right,
            clips.len(),
            tally.bytes as f64 * 8e6 / tally.us as f64,
        );
    }
    common::calibrate("after")
}

fn score(
    clips: &[Clip],
    coding: Coding,
    percent: u64,
    seed: u64,
    silero: &Arc<silero::Model>,
    recogniser: &mut Recogniser,
) -> Result<Tally> {
    // The same packets are lost in each coding of the same length.
    let (mut random, mut tally) = (Random::new(seed), Tally::default());
    for clip in clips {
        let packets = coded(clip, coding, percent, &mut random, &mut tally)?;
        let pcm = if coding.silent { silenced(&packets, coding)? } else { listened(&packets, coding, silero)? };
        let heard = recogniser.transcribe(pcm.as_slice(), &Options::default())?.text;
        let score = wer(&clip.text, &heard);
        tally.right += usize::from(score.edits == 0);
        tally.wer += score;
    }
    Ok(tally)
}

/// The packets of a clip that are sent.
fn coded(clip: &Clip, coding: Coding, percent: u64, random: &mut Random, tally: &mut Tally) -> Result<Vec<Packet>> {
    let packet_us = coding.codec.usual_packet_us();
    let samples = (packet_us * u64::from(coding.rate_hz) / 1_000_000) as usize;
    let mut pcm = wav::convert(&clip.pcm, CLIP_HZ, coding.rate_hz)?;
    // Half a second of silence behind it, as the listener's pause leaves it.
    pcm.resize((pcm.len() + coding.rate_hz as usize / 2).next_multiple_of(samples), 0);
    let mut encoder = Encoder::new(coding.codec, coding.rate_hz, coding.bitrate)?;
    if let Some(expected) = coding.expected {
        encoder.set_coding(coding.bitrate, expected)?;
    }
    if coding.dtx {
        encoder.pause_in_silence()?;
    }
    let (mut packets, mut sequence, mut pauses) = (Vec::<Packet>::new(), 0, false);
    for (number, frame) in pcm.chunks_exact(samples).enumerate() {
        let payload = encoder.encode(frame)?;
        tally.us += packet_us;
        // Drawn also for what is not sent, so that the same ones are lost.
        let arrives = random.below(100) >= percent || packets.is_empty();
        let goes_on = std::mem::replace(&mut pauses, is_pause(coding.codec, &payload)) && pauses;
        if goes_on {
            continue;
        }
        sequence += 1;
        tally.bytes += payload.len();
        packets.push(Packet { sequence, capture_us: number as u64 * packet_us, payload: arrives.then_some(payload) });
    }
    Ok(packets)
}

/// What the listener hears of them, on a link that keeps order.
fn listened(packets: &[Packet], coding: Coding, silero: &Arc<silero::Model>) -> Result<Vec<i16>> {
    let Coding { codec, rate_hz, .. } = coding;
    let config = Config { codec, rate_hz, jitter: jitter::Config::ORDERED, ..Config::default() };
    let mut listener = Listener::new(config, silero.clone())?;
    listener.set_tapped(true);
    let (mut pcm, mut facts) = (Vec::new(), Vec::new());
    for packet in packets {
        if let Some(payload) = &packet.payload {
            listener.push_packet(packet.sequence, packet.capture_us, payload, packet.capture_us, &mut facts)?;
        }
        pcm.extend_from_slice(&listener.take_tapped());
        while listener.is_ready(packet.capture_us) {
            listener.tick(packet.capture_us, &mut facts);
            pcm.extend_from_slice(&listener.take_tapped());
        }
    }
    Ok(pcm)
}

/// With silence in place of what is lost.
fn silenced(packets: &[Packet], Coding { codec, rate_hz, .. }: Coding) -> Result<Vec<i16>> {
    let mut decoder = Decoder::new(codec, rate_hz)?;
    let samples = (codec.usual_packet_us() * u64::from(rate_hz) / 1_000_000) as usize;
    let mut pcm = Vec::new();
    for packet in packets {
        match &packet.payload {
            Some(payload) => drop(decoder.decode(payload, &mut pcm)?),
            None => pcm.resize(pcm.len() + samples, 0),
        }
    }
    Ok(wav::convert(&pcm, rate_hz, CLIP_HZ)?)
}
