//! Sound of glasses and of mini-apps.

use std::sync::{Arc, LazyLock};

use audio::{
    codec::{
        Codec, Decoder,
        lc3::{FRAME_BYTES, FRAME_LENGTHS_US, Format, RATES_HZ},
    },
    jitter,
    listener::{Config, Fact, Listener},
    models::{catalogue, default_dir, path_of},
    sound_file,
    vad::silero,
};

use crate::input::Input;

/// Steps of one input: each runs the voice detector at most.
const STEPS_MAX: usize = 64;
const RATE_HZ: u32 = 16_000;
/// Frames that one step brings, made up ones included, on average at most.
const FRAMES_MAX: u64 = 64;
/// The longest sound that is recognised at once, as `audio::listener` has it.
const UTTERANCE_US_MAX: u64 = 30_000_000;
const SECONDS_MAX: u32 = 4;

/// Any packets in any order at any time, with everything else that a device may do to its ear in between.
pub fn listener(bytes: &[u8]) {
    static SILERO: LazyLock<Arc<silero::Model>> = LazyLock::new(|| {
        let entry = catalogue::find(catalogue::SILERO).expect("the catalogue has it");
        silero::Model::load(&path_of(entry, &default_dir())).expect("`cargo xtask fetch` installs it")
    });
    let mut input = Input(bytes);
    let Some(form) = input.byte() else { return };
    let config = Config {
        codec: if form & 1 == 0 { Codec::Opus } else { Codec::Pcm16 },
        rate_hz: [16_000, 8_000, 24_000, 48_000][usize::from(form >> 1 & 3)],
        utterance_us_max: 1_000_000 + 1_000_000 * u64::from(form >> 3),
        jitter: jitter::Config::RESENT,
        ..Config::default()
    };
    let samples_of = |us: u64| (us * u64::from(RATE_HZ) / 1_000_000) as usize;
    // With what was heard before its voice. In the step in which it becomes too long, much may come at once.
    let (samples_max, ended_samples_max) =
        (samples_of(config.utterance_us_max + config.preroll_us), samples_of(UTTERANCE_US_MAX));
    let Ok(mut ear) = Listener::new(config, SILERO.clone()) else { return };
    let (mut now_us, mut capture_us, mut sequence) = (1_000_000_u64, 0_u64, 0_u32);
    let (mut facts, mut open, mut last) = (Vec::new(), None, 0);
    for _ in 0..STEPS_MAX {
        let Some(step) = input.byte() else { break };
        match step {
            0..=3 => {
                ear.tick(now_us, &mut facts);
                let missing = ear.take_missing(now_us);
                assert!(missing.is_none_or(|missing| missing.count <= 1_000), "{missing:?}");
                assert!(!ear.is_missing(), "the gateway would ask again and again");
            }
            4..=7 => ear.end_stream(sequence.saturating_sub(u32::from(step & 1)), now_us, &mut facts),
            8 | 9 => ear.set_muted(step & 1 == 1),
            10 | 11 => ear.set_tapped(step & 1 == 1),
            12 => ear.resume(jitter::Config::RESENT, now_us),
            13 => now_us = now_us.saturating_add(u64::from(input.number().unwrap_or(0))),
            14 => capture_us = u64::from(input.number().unwrap_or(0)) << input.byte().unwrap_or(0).min(32),
            15 => sequence = input.number().unwrap_or(0),
            16 => open.into_iter().for_each(|utterance| ear.close_utterance(utterance)),
            17 => ear.note_score(last, f32::from(input.byte().unwrap_or(0)) / 255.0),
            _ => {
                // Mostly the next packet, 20 ms later.
                let (skipped, late) = (u32::from(step & 3), u64::from(step >> 2 & 7));
                sequence = sequence.wrapping_add(1 + skipped);
                capture_us = capture_us.saturating_add(20_000 * u64::from(1 + skipped));
                now_us = now_us.saturating_add(20_000 * late);
                let packet = input.bytes(usize::from(input.0.first().copied().unwrap_or(0)) + 1);
                drop(ear.push_packet(sequence, capture_us, packet, now_us, &mut facts));
            }
        }
        // As the device task does: it acts upon each packet before the next one is heard.
        loop {
            let mut ended = false;
            for fact in facts.drain(..) {
                ended |= matches!(fact, Fact::Ended { .. });
                last = follow(&mut open, last, fact);
            }
            if let Some(utterance) = open {
                let pcm = ear.utterance_pcm(utterance).map_or(0, <[i16]>::len);
                let most = if ended { ended_samples_max } else { samples_max };
                assert!(pcm <= most, "{pcm} samples of an utterance, at most {most}");
                if ended {
                    ear.close_utterance(utterance);
                    open = None;
                }
            }
            assert!(ear.take_tapped().len() <= 2 * RATE_HZ as usize);
            if !ear.is_ready(now_us) {
                break;
            }
            ear.tick(now_us, &mut facts);
        }
        let _ = (ear.next_wake_us(), ear.heard_until_us(), ear.last_sequence());
    }
    let stats = ear.stats();
    assert!(stats.packets + stats.decode_errors <= stats.frames + STEPS_MAX as u64 + bytes.len() as u64, "{stats:?}");
    // A packet of Opus has at most 120 ms, and what is made up for a gap is bounded, too.
    assert!(stats.frames <= STEPS_MAX as u64 * FRAMES_MAX, "{stats:?}");
}

/// Any LC3 packets, lost ones in between: a frame over which the coder fails is refused and nothing of it is heard.
pub fn lc3(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (Some(form), Some(size)) = (input.byte(), input.byte()) else { return };
    let rate_hz = RATES_HZ[usize::from(form & 3)];
    let frame_us = FRAME_LENGTHS_US[usize::from(form >> 2 & 1)];
    let Ok(format) = Format::new(frame_us, u16::from(size)) else {
        return assert!(!FRAME_BYTES.contains(&u16::from(size)));
    };
    let mut decoder = Decoder::new(Codec::Lc3(format), rate_hz).expect("a rate of LC3");
    let frame_samples = (format.frame_us() * u64::from(rate_hz) / 1_000_000) as usize;
    let mut out = Vec::new();
    for _ in 0..STEPS_MAX {
        let Some(step) = input.byte() else { break };
        out.clear();
        if step == 0 {
            let samples = decoder.conceal(&mut out);
            assert!(samples == out.len() && samples > 0 && samples.is_multiple_of(frame_samples), "{samples} samples");
            continue;
        }
        // Mostly whole frames.
        let length = usize::from(step & 15) * usize::from(size) + usize::from(step >> 4).saturating_sub(14);
        let packet = input.bytes(length);
        match decoder.decode(packet, &mut out) {
            Ok(samples) => {
                assert_eq!(samples, out.len());
                assert_eq!(samples, packet.len() / format.frame_bytes() * frame_samples);
            }
            Err(_) => assert!(out.is_empty()),
        }
    }
}

/// Utterances are numbered without gaps, and facts are about the one that is open.
fn follow(open: &mut Option<u32>, last: u32, fact: Fact) -> u32 {
    match fact {
        Fact::SpeechStarted { utterance, .. } => {
            assert!(utterance > last, "{utterance} after {last}");
            *open = Some(utterance);
            utterance
        }
        Fact::Paused { utterance, .. }
        | Fact::Resumed { utterance, .. }
        | Fact::Silence { utterance, .. }
        | Fact::Ended { utterance, .. } => {
            assert_eq!(utterance, last, "{fact:?}");
            last
        }
    }
}

/// An MP3 or WAV file of a mini-app.
pub fn file(bytes: &[u8]) {
    let Ok(mut pcm) = sound_file::decode(bytes, RATE_HZ, SECONDS_MAX) else { return };
    assert!(pcm.len() <= (RATE_HZ * SECONDS_MAX) as usize, "{} samples", pcm.len());
    let volume = bytes.last_chunk().map_or(1.0, |bytes| f32::from_le_bytes(*bytes));
    let loudest = pcm.iter().map(|sample| sample.unsigned_abs()).max();
    sound_file::attenuate(&mut pcm, volume);
    assert!(pcm.iter().map(|sample| sample.unsigned_abs()).max() <= loudest);
}
