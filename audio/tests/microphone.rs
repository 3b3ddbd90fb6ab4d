//! Faults of a microphone, through codecs and the voice detector, on real speech.
#![cfg(all(feature = "vad", feature = "opus"))]

mod listener_clips;

use audio::codec::{Codec, Encoder, is_pause, lc3};
use audio::listener::{Config, Fact, Listener};
use audio::microphone::Fault;
use listener_clips::*;

/// A microphone is dead after so long, in seconds.
const DEAD_S: u64 = 5;

fn codecs() -> [Codec; 3] {
    [Codec::Opus, Codec::Pcm16, Codec::Lc3(lc3::Format::new(10_000, 40).unwrap())]
}

fn ear(codec: Codec) -> Listener {
    let config = Config { codec, rate_hz: RATE_HZ, dead_us: Some(DEAD_S * 1_000_000), ..Config::default() };
    Listener::new(config, model()).unwrap()
}

/// Faults that are found and lost while these packets come; utterances are closed like turns.
fn faults(ear: &mut Listener, first: u32, packets: &[Vec<u8>]) -> Vec<(Fault, bool)> {
    let (mut facts, mut found) = (Vec::new(), Vec::new());
    for (packet, seq) in packets.iter().zip(first..) {
        let at_us = u64::from(seq) * PACKET_US;
        ear.push_packet(seq, at_us, packet, at_us, &mut facts).unwrap();
        for fact in facts.drain(..) {
            if let Fact::Silence { utterance, silence_us: 700_000.., .. } | Fact::Ended { utterance, .. } = fact {
                ear.close_utterance(utterance);
            }
        }
        found.extend(std::iter::from_fn(|| ear.take_fault()));
    }
    found
}

/// Half of the clips, each at this root mean square of its voice, one after the other with pauses of a silent room between
/// them.
fn speech(voice_rms: f64) -> Vec<i16> {
    let mut pcm = Vec::new();
    for at in SPEECH.into_iter().step_by(2) {
        let clip = clip(at);
        let (first, last) = voiced_span(&clip);
        let scale = voice_rms / rms(&clip[first..last]);
        pcm.extend(clip.iter().map(|sample| (f64::from(*sample) * scale) as i16));
        pcm.resize(pcm.len() + seconds(0.9), 0);
    }
    add(&pcm, &white(pcm.len(), 3.0, 5))
}

#[test]
fn digital_silence_is_a_dead_microphone_through_every_codec() {
    for codec in codecs() {
        let (mut ear, silence) = (ear(codec), vec![0; seconds(DEAD_S as f64 + 1.0)]);
        let found = faults(&mut ear, 0, &packets(&silence, codec, RATE_HZ));
        assert_eq!(found, [(Fault::Dead, true)], "{codec:?}");
    }
}

#[test]
fn a_coding_that_follows_the_link_does_not_hide_a_dead_microphone() {
    // Longer packets, at a lower rate, with copies for lost ones.
    let mut encoder = Encoder::new(Codec::Opus, RATE_HZ, 24_000).unwrap();
    encoder.set_coding(12_000, 15).unwrap();
    let (mut ear, mut facts) = (ear(Codec::Opus), Vec::new());
    for seq in 0..(DEAD_S as u32 + 1) * 17 {
        let at_us = u64::from(seq) * 60_000;
        ear.push_packet(seq, at_us, &encoder.encode(&[0; 960]).unwrap(), at_us, &mut facts).unwrap();
    }
    assert_eq!(ear.take_fault(), Some((Fault::Dead, true)));
}

#[test]
fn a_silent_room_is_not_dead_through_any_codec() {
    for codec in codecs() {
        // About one step of the converter: less than the noise of any microphone that is in use.
        for noise_rms in [0.4, 1.2] {
            let room = rounded_white(seconds(DEAD_S as f64 * 4.0), noise_rms);
            assert_eq!(faults(&mut ear(codec), 0, &packets(&room, codec, RATE_HZ)), [], "{codec:?}, {noise_rms}");
        }
    }
}

/// White noise, rounded to the nearest step.
fn rounded_white(samples: usize, noise_rms: f64) -> Vec<i16> {
    let mut random = Random(9);
    (0..samples).map(|_| (random.uniform() * noise_rms * 3f64.sqrt()).round() as i16).collect()
}

#[test]
fn pauses_of_the_codec_and_a_muted_microphone_are_not_dead() {
    let mut encoder = Encoder::new(Codec::Opus, RATE_HZ, 24_000).unwrap();
    encoder.pause_in_silence().unwrap();
    let silence = vec![0; seconds(DEAD_S as f64 * 4.0)];
    let coded: Vec<Vec<u8>> = silence.chunks_exact(320).map(|frame| encoder.encode(frame).unwrap()).collect();
    assert!(coded.iter().filter(|packet| is_pause(Codec::Opus, packet)).count() > coded.len() / 2);
    assert_eq!(faults(&mut ear(Codec::Opus), 0, &coded), []);
    let mut ear = ear(Codec::Pcm16);
    ear.set_muted(true);
    assert_eq!(faults(&mut ear, 0, &packets(&silence, Codec::Pcm16, RATE_HZ)), []);
}

#[test]
fn speech_has_no_fault_unless_it_is_cut_off_or_hardly_there() {
    let mut table = Vec::new();
    for codec in codecs() {
        // -40 and -18 dB of full scale: quiet, and as loud as is usual in broadcasts.
        for voice_rms in [330.0, 4_100.0] {
            let found = faults(&mut ear(codec), 0, &packets(&speech(voice_rms), codec, RATE_HZ));
            table.push((codec, voice_rms, found, vec![]));
        }
        // A voice that would be at -2 dB: its crests, some 15 dB above, are cut off.
        let found = faults(&mut ear(codec), 0, &packets(&speech(26_000.0), codec, RATE_HZ));
        table.push((codec, 26_000.0, found, vec![(Fault::Clipping, true)]));
        // -60 dB.
        let found = faults(&mut ear(codec), 0, &packets(&speech(33.0), codec, RATE_HZ));
        table.push((codec, 33.0, found, vec![(Fault::Quiet, true)]));
    }
    for (codec, voice_rms, found, expected) in &table {
        assert_eq!(found, expected, "{codec:?}, {voice_rms}: {table:#?}");
    }
}
