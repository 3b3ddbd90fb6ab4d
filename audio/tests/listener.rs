//! The listener on real speech, in noise, in silence, and on a bad link.
#![cfg(all(feature = "vad", feature = "opus"))]

mod listener_clips;

use audio::codec::Codec;
use listener_clips::*;

/// Silence after which these tests take a turn as ended.
const END_US: u64 = 700_000;

/// A clip with a second of near silence before and two after, and its voiced span within.
fn padded(pcm: &[i16], rms: f64, seed: u64) -> (Vec<i16>, u64, u64) {
    let (first, last) = voiced_span(pcm);
    let before = seconds(1.0);
    let mut all = vec![0; before];
    all.extend_from_slice(pcm);
    all.resize(all.len() + seconds(2.0), 0);
    let us = |at: usize| ((before + at) as u64) * 1_000_000 / u64::from(RATE_HZ);
    let noise = white(all.len(), rms, seed);
    (add(&all, &noise), us(first), us(last))
}

#[test]
fn pauses_are_found_in_real_speech() {
    for at in SPEECH {
        let (pcm, first_us, last_us) = padded(&clip(at), 3.0, 1);
        let mut ear = listener(Codec::Pcm16, 16_000);
        let heard = listen(&mut ear, &packets(&pcm, Codec::Pcm16, 16_000), END_US);
        eprintln!(
            "{:?} {first_us} {last_us} -> {:?} {:?}",
            at.1.rsplit('/').next(),
            heard
                .iter()
                .map(|h| (h.started_us, h.ended_us, h.closed_us, h.pcm.len() / 16))
                .collect::<Vec<_>>(),
            ear.stats()
        );
    }
}
