//! What lost packets cost recognition, and what the copies in the packets behind them save (in-band FEC, RFC 6716).
//!
//! `cargo xtask bench loss [--half held-out|all] [--clips N] [--loss PERCENT,PERCENT] [--seed N]`
//!
//! Real speech is coded as glasses code it (Opus, 24 kbit/s, 20 ms) and loses packets by chance, each one for itself. What is
//! left is decoded twice: every lost packet made up for by the decoder, and as the listener does it, with the copy of the
//! packet before that the next packet carries. That this is what the listener does is checked on every clip. Both are
//! transcribed with the shipped weights and scored against the transcript.

mod common;

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use audio::asr::Options;
use audio::asr::wer::{Wer, wer};
use audio::codec::{Codec, Decoder, Encoder};
use audio::listener::{Config, Listener};
use audio::vad::silero;
use common::argument;
use common::clips::{self, CLIP_HZ, Clip};
use firmware_sim::random::Random;

const BITRATE: u32 = 24_000;
/// 20 ms at 16 kHz.
const PACKET_SAMPLES: usize = CLIP_HZ as usize / 50;
const PACKET_US: u64 = 20_000;
/// Lost packets in a row that the listener makes up for; what is beyond is silence.
const MADE_UP_MAX: usize = 5;
/// Silence behind a clip, as the listener's pause leaves it.
const BEHIND: usize = CLIP_HZ as usize / 2;

/// What came of all clips in one way.
#[derive(Default)]
struct Tally {
    wer: Wer,
    /// Clips without a wrong word.
    right: usize,
}

/// Lost packets, and how each was made up for.
#[derive(Default)]
struct Lost {
    packets: usize,
    of: usize,
    with_copy: usize,
    from_copy: usize,
}

fn main() -> Result<()> {
    let wanted = argument("--half").unwrap_or_else(|| "held-out".to_owned());
    let mut clips = clips::all()?;
    clips.retain(|clip| wanted == "all" || !clip.development);
    if let Some(most) = argument("--clips") {
        clips.truncate(most.parse()?);
    }
    let losses = argument("--loss").unwrap_or_else(|| "0,10,20,30".to_owned());
    let seed: u64 = argument("--seed").map_or(Ok(1), |seed| seed.parse())?;
    let seconds: f64 = clips.iter().map(Clip::seconds).sum();
    println!("{} clips ({wanted}), {seconds:.0} s, seed {seed}", clips.len());
    common::calibrate("before")?;
    let silero = silero::Model::load(&audio::models::default_dir().join("silero-v6-16k.onnx"))?;
    let mut decoder = common::engine()?.decoder()?;
    for percent in losses.split(',') {
        let percent: u64 = percent.trim().parse()?;
        let (mut random, mut lost, mut made_up, mut copied) =
            (Random::new(seed), Lost::default(), Tally::default(), Tally::default());
        for clip in &clips {
            let packets = coded(clip, percent, &mut random, &mut lost)?;
            let with_copies = decoded(&packets, true)?;
            let listened = listened(&packets, &silero).with_context(|| clip.name.clone())?;
            ensure!(listened == with_copies[..listened.len()], "{}: the listener hears something else", clip.name);
            for (pcm, tally) in [(decoded(&packets, false)?, &mut made_up), (with_copies, &mut copied)] {
                let heard = decoder.transcribe(pcm.as_slice(), &Options::default())?.text;
                let score = wer(&clip.text, &heard);
                tally.right += usize::from(score.edits == 0);
                tally.wer += score;
            }
        }
        let ms = |packets: usize| packets * 20;
        println!(
            "{percent:3} % loss: {} of {} packets lost; {:.0} % of all carry a copy; {} of {} ms lost come from a copy",
            lost.packets,
            lost.of,
            100.0 * lost.with_copy as f64 / lost.of.max(1) as f64,
            ms(lost.from_copy),
            ms(lost.packets),
        );
        for (name, tally, left) in
            [("made up", &made_up, lost.packets), ("copies", &copied, lost.packets - lost.from_copy)]
        {
            println!(
                "  {name:8} word error rate {:6.2} %, {:3} of {} clips right, {:6} ms made up",
                100.0 * tally.wer.rate(),
                tally.right,
                clips.len(),
                ms(left),
            );
        }
    }
    common::calibrate("after")
}

/// The packets of a clip; those that are lost are nothing.
fn coded(clip: &Clip, percent: u64, random: &mut Random, lost: &mut Lost) -> Result<Vec<Option<Vec<u8>>>> {
    let mut pcm = clip.pcm.clone();
    pcm.resize((pcm.len() + BEHIND).next_multiple_of(PACKET_SAMPLES), 0);
    let mut encoder = Encoder::new(Codec::Opus, CLIP_HZ, BITRATE)?;
    let mut packets = Vec::new();
    for frame in pcm.chunks_exact(PACKET_SAMPLES) {
        let packet = encoder.encode(frame)?;
        lost.of += 1;
        lost.with_copy += usize::from(has_copy(&packet));
        // The first one sets the sequence.
        let arrives = packets.is_empty() || random.below(100) >= percent;
        packets.push(arrives.then_some(packet));
    }
    lost.packets += packets.iter().filter(|packet| packet.is_none()).count();
    let pairs = packets.windows(2).filter(|pair| matches!(pair, [None, Some(next)] if has_copy(next)));
    lost.from_copy += pairs.count();
    Ok(packets)
}

/// Whether a packet of one frame carries a copy of the one before (RFC 6716, sections 3.1 and 4.2.3).
fn has_copy(packet: &[u8]) -> bool {
    matches!(packet, [toc, first, ..] if toc & 0x80 == 0 && first & 0x40 != 0)
}

/// What is heard of them.
fn decoded(packets: &[Option<Vec<u8>>], copies: bool) -> Result<Vec<i16>> {
    let mut decoder = Decoder::new(Codec::Opus, CLIP_HZ)?;
    let mut pcm = Vec::new();
    let mut missing = 0;
    for packet in packets {
        let Some(packet) = packet else {
            missing += 1;
            continue;
        };
        if missing > 0 {
            for number in 0..missing - 1 {
                if number < MADE_UP_MAX {
                    decoder.conceal(&mut pcm);
                } else {
                    pcm.resize(pcm.len() + PACKET_SAMPLES, 0);
                }
            }
            if copies {
                decoder.recover(packet, &mut pcm);
            } else {
                decoder.conceal(&mut pcm);
            }
            missing = 0;
        }
        decoder.decode(packet, &mut pcm)?;
    }
    Ok(pcm)
}

/// What the listener hears of them.
fn listened(packets: &[Option<Vec<u8>>], silero: &Arc<silero::Model>) -> Result<Vec<i16>> {
    let config = Config { codec: Codec::Opus, rate_hz: CLIP_HZ, ..Config::default() };
    let mut listener = Listener::new(config, silero.clone())?;
    listener.set_tapped(true);
    let (mut pcm, mut facts) = (Vec::new(), Vec::new());
    for (packet, number) in packets.iter().zip(1..) {
        let capture_us = u64::from(number) * PACKET_US;
        match packet {
            Some(packet) => listener.push_packet(number, capture_us, packet, capture_us, &mut facts)?,
            None => listener.tick(capture_us, &mut facts),
        }
        pcm.extend_from_slice(&listener.take_tapped());
        while listener.is_ready(capture_us) {
            listener.tick(capture_us, &mut facts);
            pcm.extend_from_slice(&listener.take_tapped());
        }
    }
    Ok(pcm)
}
