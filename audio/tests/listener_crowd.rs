//! An utterance among other voices begins with the wearer's, and ends with it.
#![cfg(all(feature = "vad", feature = "opus"))]

mod listener_clips;

use audio::codec::Codec;
use listener_clips::{RATE_HZ, SPEECH, clip, listen, listener, packets, rms, seconds, voiced_span};

/// Voices that talk all the time.
const TALKERS: usize = 6;
const SILENCE_US: u64 = 600_000;
/// As in the benchmark of the front end: breath before a sentence is no voice, a last consonant is not loud.
const NEAR_US: u64 = 330_000;
/// How much later a sentence may end: while somebody of the crowd is louder than the others.
const LATE_US: u64 = 800_000;

/// Other clips than the one at `index`, several at once and without their pauses, at this root mean square.
fn crowd(index: usize, samples: usize, level: f64) -> Vec<f64> {
    let mut sum = vec![0.0; samples];
    for talker in 0..TALKERS {
        let said = (0..).map(|n| clip(SPEECH[(index + 1 + talker + n) % SPEECH.len()]));
        let voices = said.flat_map(|pcm| {
            let (first, last) = voiced_span(&pcm);
            let own = rms(&pcm[first..last]);
            pcm[first..last].iter().map(|sample| f64::from(*sample) / own).collect::<Vec<_>>()
        });
        sum.iter_mut().zip(voices).for_each(|(sum, voice)| *sum += voice);
    }
    let power = sum.iter().map(|sample| sample * sample).sum::<f64>() / samples as f64;
    sum.iter().map(|sample| sample * level / power.sqrt()).collect()
}

#[test]
fn in_a_crowd_an_utterance_begins_and_ends_with_the_wearers_voice() {
    for index in [4, 5, 6, 7] {
        for snr_db in [20.0, 10.0] {
            // Behind another sentence, as in the middle of a day.
            let mut pcm = vec![0; seconds(1.0)];
            pcm.extend(clip(SPEECH[index - 1]));
            pcm.resize(pcm.len() + seconds(2.0), 0);
            let (at, said) = (pcm.len(), clip(SPEECH[index]));
            let (first, last) = voiced_span(&said);
            pcm.extend_from_slice(&said);
            pcm.resize(pcm.len() + seconds(2.0), 0);
            let crowd = crowd(index, pcm.len(), rms(&said[first..last]) * 10_f64.powf(-snr_db / 20.0));
            for (sample, noise) in pcm.iter_mut().zip(crowd) {
                *sample = (f64::from(*sample) + noise) as i16;
            }
            let mut ear = listener(Codec::Pcm16, RATE_HZ);
            let heard = listen(&mut ear, &packets(&pcm, Codec::Pcm16, RATE_HZ), SILENCE_US);
            let us = |samples: usize| samples as u64 * 1_000_000 / u64::from(RATE_HZ);
            let (begin_us, end_us) = (us(at + first), us(at + last));
            let times: Vec<(u64, u64)> = heard.iter().map(|heard| (heard.started_us, heard.ended_us)).collect();
            let name = SPEECH[index].1;
            let begins = times.iter().any(|(begin, _)| begin.abs_diff(begin_us) <= NEAR_US);
            let ends = times.iter().any(|(_, end)| (end_us - NEAR_US..end_us + LATE_US).contains(end));
            assert!(begins && ends, "{name} at {snr_db} dB: {times:?} instead of {begin_us} to {end_us}");
        }
    }
}
