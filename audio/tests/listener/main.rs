//! The listener on real speech, in noise and in silence.
#![cfg(all(feature = "vad", feature = "opus"))]

mod links;
#[path = "../listener_clips/mod.rs"]
mod listener_clips;

use audio::codec::{Codec, Encoder, is_pause};
use audio::frame::samples_to_us;
use audio::jitter;
use audio::listener::{Config, Fact, Listener};
use listener_clips::*;
use proptest::prelude::*;

/// Silence after which these tests end a turn.
const END_US: u64 = 700_000;

/// Tolerance between the detectors and an annotation by energy alone: breath before a sentence is loud but not voice, a
/// last consonant is voice but not loud.
const NEAR_US: u64 = 330_000;

/// A clip with a second of near silence before and two after.
struct Scene {
    pcm: Vec<i16>,
    first_us: u64,
    last_us: u64,
}

/// Near silence is a dither of 3 of 32,768: no microphone is digitally silent.
fn scene(clip: &[i16], noise_rms: f64) -> Scene {
    let (first, last) = voiced_span(clip);
    let before = seconds(1.0);
    let mut pcm = vec![0; before];
    pcm.extend_from_slice(clip);
    pcm.resize(pcm.len() + seconds(2.0), 0);
    let us = |at: usize| samples_to_us((before + at) as u64, RATE_HZ);
    let pcm = add(&pcm, &white(pcm.len(), noise_rms.max(3.0), 1));
    Scene { pcm, first_us: us(first), last_us: us(last) }
}

fn name(at: (&'static str, &'static str)) -> &'static str {
    at.1.rsplit('/').next().unwrap()
}

#[test]
fn pauses_are_found_in_real_speech() {
    for at in SPEECH {
        let scene = scene(&clip(at), 0.0);
        let mut ear = listener(Codec::Pcm16, 16_000);
        let heard = listen(&mut ear, &packets(&scene.pcm, Codec::Pcm16, 16_000), END_US);
        assert!((1..=2).contains(&heard.len()), "{}: {} utterances", name(at), heard.len());
        let (first, last) = (&heard[0], &heard[heard.len() - 1]);
        assert!(first.started_us.abs_diff(scene.first_us) <= NEAR_US, "{}: {first:?}", name(at));
        assert!(last.ended_us.abs_diff(scene.last_us) <= NEAR_US, "{}: {last:?}", name(at));
        // One window, one frame and the filter's delay may pass between the event and its report.
        let noticed_us = last.closed_us - last.ended_us;
        assert!((END_US..END_US + 60_000).contains(&noticed_us), "{}: {noticed_us}", name(at));
    }
}

#[test]
fn steady_noise_does_not_keep_an_utterance_open() {
    let mut table = Vec::new();
    for at in SPEECH {
        let clip = clip(at);
        // White noise 5 dB below the clip's level during speech.
        let (first, last) = voiced_span(&clip);
        let noise = rms(&clip[first..last]) / 10f64.powf(5.0 / 20.0);
        let scene = scene(&clip, noise);
        let mut ear = listener(Codec::Pcm16, 16_000);
        let heard = listen(&mut ear, &packets(&scene.pcm, Codec::Pcm16, 16_000), END_US);
        let in_time = heard.last().is_some_and(|last| {
            last.closed_us <= scene.last_us + END_US + NEAR_US && last.ended_us + 1_200_000 > scene.last_us
        });
        let gate = ear.stats().gate_open_frames as f64 / ear.stats().frames as f64;
        table.push((name(at), heard.len(), in_time, gate));
    }
    eprintln!("{table:#?}");
    let ended = table.iter().filter(|row| row.2).count();
    assert_eq!(ended, SPEECH.len(), "every clip in 5 dB of white noise ends in time");
}

#[test]
fn silence_and_noise_open_nothing() {
    let quiet = [vec![0; seconds(60.0)], white(seconds(60.0), 30.0, 2), white(seconds(60.0), 1_000.0, 3)];
    for (index, pcm) in quiet.iter().enumerate() {
        let mut ear = listener(Codec::Pcm16, 16_000);
        assert!(listen(&mut ear, &packets(pcm, Codec::Pcm16, 16_000), END_US).is_empty());
        assert_eq!(ear.stats().utterances, 0, "quiet {index}: {:?}", ear.stats());
    }
    // Pink noise in bursts; its onsets are likely to cause false detections.
    let clip = clip(NOISE);
    let mut noise = Vec::new();
    while noise.len() < seconds(60.0) {
        noise.extend_from_slice(&clip);
        noise.extend(white(seconds(0.5), 3.0, noise.len() as u64));
    }
    let mut ear = listener(Codec::Pcm16, 16_000);
    let heard = listen(&mut ear, &packets(&noise, Codec::Pcm16, 16_000), END_US);
    eprintln!("Noise.wav for 60 s: {} utterances, {:?}", heard.len(), ear.stats());
    assert_eq!(ear.stats().utterances, 0);
}

#[test]
fn an_utterance_holds_the_very_samples_around_the_voice() {
    let scene = scene(&clip(SPEECH[4]), 0.0);
    let mut ear = listener(Codec::Pcm16, 16_000);
    let heard = listen(&mut ear, &packets(&scene.pcm, Codec::Pcm16, 16_000), END_US);
    let [only] = heard.as_slice() else { panic!("{} utterances", heard.len()) };
    let sample = |us: u64| (us * u64::from(RATE_HZ) / 1_000_000) as usize;
    let from = sample(only.started_us - 400_000);
    let to = sample(only.ended_us + 300_000);
    assert_eq!(only.pcm.len(), to - from);
    assert!(only.pcm == scene.pcm[from..to], "400 ms before the onset to 300 ms after the end");
    assert_eq!(ear.utterance_pcm(only.utterance), None, "closed is gone");
}

#[test]
fn the_next_utterance_holds_nothing_of_the_last_one() {
    // Half a second between them: the second utterance's lead reaches into the first one's tail.
    let (one, two) = (clip(SPEECH[4]), clip(SPEECH[5]));
    let ((_, last), (first, _)) = (voiced_span(&one), voiced_span(&two));
    let mut pcm = vec![0; seconds(0.5)];
    pcm.extend_from_slice(&one[..last]);
    pcm.extend(vec![0; seconds(0.5)]);
    pcm.extend_from_slice(&two[first..]);
    pcm.extend(vec![0; seconds(1.5)]);
    let pcm = add(&pcm, &white(pcm.len(), 3.0, 5));
    let mut ear = listener(Codec::Pcm16, 16_000);
    let heard = listen(&mut ear, &packets(&pcm, Codec::Pcm16, 16_000), 250_000);
    let places: Vec<(usize, usize)> = heard
        .iter()
        .map(|heard| {
            let at = pcm.windows(heard.pcm.len()).position(|window| window == heard.pcm);
            let at = at.expect("a piece of what was said");
            (at, at + heard.pcm.len())
        })
        .collect();
    assert!(places.len() >= 2, "{places:?}");
    assert!(places.windows(2).all(|pair| pair[0].1 <= pair[1].0), "overlap: {places:?}");
    let numbers: Vec<u32> = heard.iter().map(|heard| heard.utterance).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
}

#[test]
fn every_codec_and_rate_hears_the_same() {
    for at in [SPEECH[3], SPEECH[6], SPEECH[10]] {
        let scene = scene(&clip(at), 0.0);
        for codec in [Codec::Pcm16, Codec::Opus] {
            for rate_hz in audio::codec::RATES_HZ {
                let mut ear = listener(codec, rate_hz);
                let heard = listen(&mut ear, &packets(&scene.pcm, codec, rate_hz), END_US);
                let what = format!("{} {codec:?} {rate_hz}", name(at));
                assert_eq!(heard.len(), 1, "{what}");
                assert!(heard[0].started_us.abs_diff(scene.first_us) <= NEAR_US, "{what}: {heard:?}");
                assert!(heard[0].ended_us.abs_diff(scene.last_us) <= NEAR_US, "{what}");
            }
        }
    }
}

/// Facts from real speech until `stop` returns true, and the index of the next packet.
fn until(ear: &mut Listener, packets: &[Vec<u8>], stop: impl Fn(&Fact) -> bool) -> (usize, Vec<Fact>) {
    let mut facts = Vec::new();
    for (index, packet) in packets.iter().enumerate() {
        let capture_us = index as u64 * PACKET_US;
        ear.push_packet(index as u32, capture_us, packet, capture_us + 30_000, &mut facts).unwrap();
        if facts.iter().any(&stop) {
            return (index + 1, facts);
        }
    }
    panic!("never happened: {facts:?}");
}

#[test]
fn mute_forgets_everything_and_hears_nothing() {
    let scene = scene(&clip(SPEECH[6]), 0.0);
    let packets = packets(&scene.pcm, Codec::Pcm16, 16_000);
    let mut ear = listener(Codec::Pcm16, 16_000);
    let (next, _) = until(&mut ear, &packets, |fact| matches!(fact, Fact::SpeechStarted { .. }));
    assert!(ear.utterance_pcm(1).is_some());
    ear.set_muted(true);
    assert_eq!(ear.utterance_pcm(1), None);
    assert_eq!(ear.next_wake_us(), None);
    let mut facts = Vec::new();
    let muted_until = next + 100;
    for (index, packet) in packets.iter().enumerate().take(muted_until).skip(next) {
        let capture_us = index as u64 * PACKET_US;
        ear.push_packet(index as u32, capture_us, packet, capture_us, &mut facts).unwrap();
        ear.tick(capture_us, &mut facts);
    }
    assert!(facts.is_empty());
    let frames = ear.stats().frames;
    assert_eq!((frames, ear.stats().muted), (next as u64, 100), "dropped before decoding");
    ear.set_muted(false);
    for (index, packet) in packets.iter().enumerate().skip(muted_until) {
        let capture_us = index as u64 * PACKET_US;
        ear.push_packet(index as u32, capture_us, packet, capture_us, &mut facts).unwrap();
        if let Some(Fact::SpeechStarted { utterance, at_us, .. }) = facts.first() {
            let unmuted_us = muted_until as u64 * PACKET_US;
            assert!(*at_us >= unmuted_us, "the voice began {at_us} before {unmuted_us}");
            let pcm = ear.utterance_pcm(*utterance).unwrap();
            let heard = (index + 1 - muted_until) * 320;
            assert!(pcm.len() <= heard, "{} samples of {heard}", pcm.len());
            assert!(scene.pcm[muted_until * 320..].windows(pcm.len()).any(|window| window == pcm));
            return;
        }
    }
    panic!("nothing heard after unmuting");
}

#[test]
fn the_packet_behind_a_pause_is_tapped_as_any_other() {
    // A device that sends nothing for five seconds, with packets of a frame, and of half a frame: then half of one is kept meanwhile.
    for samples in [320, 160] {
        let mut ear = listener(Codec::Pcm16, 16_000);
        ear.set_tapped(true);
        let (mut facts, mut capture_us, mut tapped) = (Vec::new(), 0, 0);
        for seq in 0..30_u32 {
            if seq == 21 {
                capture_us += 5_000_000;
            }
            ear.push_packet(seq, capture_us, &vec![7; samples * 2], capture_us, &mut facts).unwrap();
            capture_us += samples_to_us(samples as u64, RATE_HZ);
            tapped += ear.take_tapped().len();
        }
        // Of the gap one second is filled.
        let all = 30 * samples + seconds(1.0);
        assert!(tapped <= all && tapped + 320 > all, "{tapped} of {all} samples");
    }
}

#[test]
fn the_open_utterance_is_told_with_its_silence_and_its_time() {
    let scene = scene(&clip(SPEECH[4]), 0.0);
    let mut ear = listener(Codec::Pcm16, 16_000);
    let (mut facts, mut before, mut told) = (Vec::new(), 0, 0);
    for (index, packet) in packets(&scene.pcm, Codec::Pcm16, 16_000).iter().enumerate() {
        let capture_us = 7_000_000 + index as u64 * PACKET_US;
        ear.push_packet(index as u32, capture_us, packet, capture_us, &mut facts).unwrap();
        let Some((utterance, sound, end_us)) = ear.open_utterance() else { continue };
        assert_eq!((utterance, end_us), (1, capture_us + PACKET_US));
        let end = (index + 1) * 320;
        assert_eq!(sound, &scene.pcm[end - sound.len()..end], "packet {index}");
        assert!(told == 0 || sound.len() == before + 320, "packet {index}");
        (before, told) = (sound.len(), told + 1);
    }
    // The silence behind the last voice belongs to it, which its sound for recognition does not have.
    assert!(told > 100 && ear.utterance_pcm(1).is_some_and(|pcm| pcm.len() + 8_000 < before), "{told} {before}");
    ear.close_utterance(1);
    assert_eq!(ear.open_utterance(), None);
}

#[test]
fn a_score_is_carried_until_the_voice_resumes() {
    let scene = scene(&clip(SPEECH[3]), 0.0);
    let mut ear = listener(Codec::Pcm16, 16_000);
    let packets = packets(&scene.pcm, Codec::Pcm16, 16_000);
    let (next, _) = until(&mut ear, &packets, |fact| matches!(fact, Fact::Paused { .. }));
    ear.note_score(2, 0.9);
    ear.note_score(1, 0.25);
    let mut facts = Vec::new();
    for (index, packet) in packets.iter().enumerate().skip(next) {
        ear.push_packet(index as u32, index as u64 * PACKET_US, packet, 0, &mut facts).unwrap();
    }
    let scores: Vec<Option<f32>> = facts
        .iter()
        .map_while(|fact| match fact {
            Fact::Silence { score, .. } => Some(*score),
            _ => None,
        })
        .collect();
    assert!(!scores.is_empty() && scores.iter().all(|score| *score == Some(0.25)), "{scores:?}");
}

#[test]
fn packets_that_cannot_be_decoded_are_counted_until_one_can() {
    let mut ear = listener(Codec::Pcm16, 16_000);
    let mut facts = Vec::new();
    // The one without any bytes is not even taken in.
    for (seq, bytes, undecodable) in [(1, 640, 0), (2, 641, 1), (3, 3, 2), (4, 0, 3), (4, 641, 4), (5, 640, 0)] {
        let now_us = u64::from(seq) * 20_000;
        let heard = ear.push_packet(seq, now_us, &vec![7; bytes], now_us, &mut facts);
        assert_eq!(ear.stats().undecodable, undecodable, "{seq} {heard:?}");
    }
    assert_eq!(ear.stats().decode_errors, 4);
}

#[test]
fn settings_out_of_range_are_refused() {
    let model = model();
    let wrong = [
        Config { preroll_us: 1_000_000, ..Config::default() },
        Config { lead_us: 3_000_000, ..Config::default() },
        Config { enter: 0.3, leave: 0.5, ..Config::default() },
        Config { enter: f32::NAN, ..Config::default() },
        Config { onset_windows: 0, ..Config::default() },
        Config { utterance_us_max: 31_000_000, ..Config::default() },
        Config { pause_us: u64::MAX, ..Config::default() },
        Config { vanished_us: 0, ..Config::default() },
        Config { rate_hz: 44_100, ..Config::default() },
    ];
    for config in wrong {
        assert!(Listener::new(config.clone(), model.clone()).is_err(), "{config:?}");
    }
}

#[test]
fn endless_speech_is_cut_and_goes_on() {
    let mut speech = Vec::new();
    for at in SPEECH[6..10].iter().cycle().take(12) {
        let clip = clip(*at);
        let (first, last) = voiced_span(&clip);
        speech.extend_from_slice(&clip[first..last]);
    }
    let speech = &speech[..seconds(45.0)];
    let mut ear = listener(Codec::Pcm16, 16_000);
    let (mut facts, mut cuts, mut told) = (Vec::new(), Vec::new(), 0);
    for (index, packet) in packets(speech, Codec::Pcm16, 16_000).iter().enumerate() {
        let capture_us = index as u64 * PACKET_US;
        ear.push_packet(index as u32, capture_us, packet, capture_us, &mut facts).unwrap();
        for fact in facts.drain(..) {
            if let Fact::Ended { utterance, .. } = fact {
                told += 1;
                cuts.push((index, ear.utterance_pcm(utterance).unwrap().to_vec()));
                ear.close_utterance(utterance);
            }
        }
    }
    assert_eq!(told, 1);
    assert_eq!(cuts[0].1.len(), seconds(28.0));
    let rest = ear.utterance_pcm(2).expect("the rest is a second utterance");
    let end = (cuts[0].0 + 1) * 320;
    let place = speech[end..].windows(rest.len()).position(|window| window == rest);
    assert!(place.is_some_and(|at| at < seconds(0.5)), "not a word in between is lost: {place:?}");
    // A caller that never closes: the sound stays within what can be recognised.
    let mut ear = listener(Codec::Pcm16, 16_000);
    for (index, packet) in packets(speech, Codec::Pcm16, 16_000).iter().enumerate() {
        ear.push_packet(index as u32, index as u64 * PACKET_US, packet, 0, &mut facts).unwrap();
    }
    assert_eq!(ear.utterance_pcm(1).unwrap().len(), seconds(30.0));
    assert_eq!(facts.iter().filter(|fact| matches!(fact, Fact::Ended { .. })).count(), 1);
}

#[test]
fn an_utterance_may_be_as_long_as_any_other_behind_what_does_not_count_of_it() {
    let mut speech = Vec::new();
    for at in SPEECH[6..10].iter().cycle().take(20) {
        let clip = clip(*at);
        let (first, last) = voiced_span(&clip);
        speech.extend_from_slice(&clip[first..last]);
    }
    let speech = &speech[..seconds(65.0)];
    let mut ear = listener(Codec::Pcm16, 16_000);
    let (mut facts, mut lengths) = (Vec::new(), Vec::new());
    for (index, packet) in packets(speech, Codec::Pcm16, 16_000).iter().enumerate() {
        let capture_us = index as u64 * PACKET_US;
        ear.push_packet(index as u32, capture_us, packet, capture_us, &mut facts).unwrap();
        // Asked for once, and in the next utterance again and again.
        let open = ear.open_utterance().map(|(utterance, pcm, _)| (utterance, pcm.len()));
        match open {
            Some((1, length)) if length == seconds(10.0) => ear.measure_from(1, seconds(8.0)),
            Some((2, length)) => ear.measure_from(2, length),
            _ => {}
        }
        ear.measure_from(7, seconds(1.0));
        for fact in facts.drain(..) {
            if let Fact::Ended { utterance, .. } = fact {
                lengths.push(ear.open_utterance().unwrap().1.len());
                ear.close_utterance(utterance);
            }
        }
    }
    assert_eq!(lengths, [seconds(36.0)], "the second one has not ended yet");
    assert!(ear.open_utterance().is_some_and(|(_, pcm, _)| pcm.len() > seconds(28.0)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random bytes, numbers, capture times and wake-ups: no panic, and memory stays bounded.
    #[test]
    fn anything_may_be_sent(
        packets in prop::collection::vec(
            (any::<u32>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..700), any::<u64>(), 0u8..12),
            1..60,
        ),
        opus in any::<bool>(),
    ) {
        let codec = if opus { Codec::Opus } else { Codec::Pcm16 };
        let config = Config { codec, jitter: jitter::Config::DATAGRAM, ..Config::default() };
        let mut ear = Listener::new(config, model()).unwrap();
        let mut facts = Vec::new();
        let (mut seq, mut now_us) = (0u32, 0u64);
        for (any_seq, capture_us, bytes, any_us, kind) in packets {
            seq = if kind == 0 { any_seq } else { seq.wrapping_add(1) };
            now_us = if kind == 1 { any_us } else { now_us.saturating_add(any_us % 50_000) };
            // Mostly frames of a valid length, since almost nothing would be decoded otherwise.
            let mut bytes = bytes;
            if kind > 3 && !opus { bytes.resize(640, 0x55); }
            let _ = ear.push_packet(seq, capture_us, &bytes, now_us, &mut facts);
            if kind == 2 { ear.tick(now_us, &mut facts); }
            while ear.is_ready(now_us) { ear.tick(now_us, &mut facts); }
            if kind == 3 { ear.set_muted(any_seq % 2 == 0); }
            if kind == 4 { ear.close_utterance(any_seq % 4); }
            for utterance in 0..4 {
                prop_assert!(ear.utterance_pcm(utterance).map_or(0, <[i16]>::len) <= 480_000);
            }
        }
        prop_assert!(facts.len() < 10_000);
    }
}
