//! The speaker on virtual time: pacing, hush, and the account of what was played.

use audio::codec::{Codec, Decoder};
use audio::speaker::{Config, Error, Packet, QUEUE_US_MAX, Speaker};
use proptest::prelude::*;

const FRAME_US: u64 = 20_000;

fn speaker(rate_hz: u32) -> Speaker {
    Speaker::new(Config { codec: Codec::Pcm16, rate_hz, ..Config::default() }).unwrap()
}

fn ramp(samples: usize) -> Vec<i16> {
    (0..samples).map(|n| (n % 20_011) as i16 + 1).collect()
}

fn decode(packet: &Packet, rate_hz: u32) -> Vec<i16> {
    let mut pcm = Vec::new();
    Decoder::new(Codec::Pcm16, rate_hz).unwrap().decode(&packet.bytes, &mut pcm).unwrap();
    pcm
}

fn poll_all(speaker: &mut Speaker, now_us: u64) -> Vec<Packet> {
    std::iter::from_fn(|| speaker.poll_packet(now_us)).collect()
}

#[test]
fn packets_run_ahead_by_the_lead_and_no_more() {
    let mut speaker = speaker(16_000);
    speaker.start(1, 7);
    speaker.push_clause(0, &ramp(16_000), 16_000, false).unwrap();
    speaker.push_clause(1, &ramp(16_160), 16_000, true).unwrap();
    let began_us = 5_000_000;
    let (mut now_us, mut packets) = (began_us, Vec::new());
    while let Some(wake_us) = speaker.next_wake_us() {
        if wake_us > now_us {
            assert!(speaker.poll_packet(wake_us - 1).is_none(), "nothing before the told time");
        }
        now_us = now_us.max(wake_us);
        let packet = speaker.poll_packet(now_us).expect("one packet at the told time");
        let ahead_us = (packet.playout_us + FRAME_US).saturating_sub(now_us - began_us);
        assert!(ahead_us <= 300_000, "{ahead_us}");
        assert!(ahead_us == 300_000 || now_us == began_us, "nor less, or the device runs dry");
        packets.push(packet);
    }
    assert_eq!(packets.len(), 50 + 51);
    for (index, packet) in packets.iter().enumerate() {
        assert_eq!((packet.speech, packet.turn, packet.fade), (1, 7, false));
        assert_eq!(packet.playout_us, index as u64 * FRAME_US);
        assert_eq!(packet.seq, index as u32);
        assert_eq!(packet.clause, u16::from(index >= 50));
        assert_eq!(packet.last_of_clause, index == 49 || index == 100);
        assert_eq!(packet.last_of_speech, index == 100);
    }
    let mut heard: Vec<i16> = packets.iter().flat_map(|packet| decode(packet, 16_000)).collect();
    assert_eq!(heard[..16_000], ramp(16_000));
    assert_eq!(heard[16_000..16_000 + 16_160], ramp(16_160));
    assert!(heard.drain(32_160..).all(|sample| sample == 0), "padding is silent");
    assert!(speaker.is_speaking(), "all sent is not all played");
}

#[test]
fn a_late_clause_does_not_burst() {
    let mut speaker = speaker(16_000);
    speaker.start(1, 1);
    speaker.push_clause(0, &ramp(3_200), 16_000, false).unwrap();
    assert_eq!(poll_all(&mut speaker, 1_000_000).len(), 10);
    assert_eq!(speaker.next_wake_us(), None);
    // The device has been dry for 4.8 s when the second clause comes.
    speaker.push_clause(1, &ramp(32_000), 16_000, true).unwrap();
    assert_eq!(poll_all(&mut speaker, 6_000_000).len(), 15, "one lead, not what time would allow");
    assert_eq!(poll_all(&mut speaker, 6_019_999).len(), 0);
    assert_eq!(poll_all(&mut speaker, 6_020_000).len(), 1);
}

#[test]
fn resampled_speech_keeps_its_length_and_level() {
    for rate_hz in [8_000u32, 16_000, 24_000, 48_000] {
        let mut speaker = speaker(rate_hz);
        speaker.start(1, 1);
        let tone: Vec<i16> = (0..24_000)
            .map(|n| (10_000.0 * (f64::from(n) * 440.0 * 2.0 * std::f64::consts::PI / 24_000.0).sin()) as i16)
            .collect();
        speaker.push_clause(0, &tone, 24_000, true).unwrap();
        let mut heard = Vec::new();
        let mut now_us = 0;
        while let Some(wake_us) = speaker.next_wake_us() {
            now_us = now_us.max(wake_us);
            heard.extend(decode(&speaker.poll_packet(now_us).unwrap(), rate_hz));
        }
        let frames = heard.len() / (rate_hz as usize / 50);
        assert!((50..=51).contains(&frames), "{rate_hz}: {frames} frames for one second");
        let middle = &heard[rate_hz as usize / 4..rate_hz as usize / 2];
        let energy: f64 = middle.iter().map(|s| f64::from(*s).powi(2)).sum();
        let rms = (energy / middle.len() as f64).sqrt();
        assert!((rms / (10_000.0 / 2f64.sqrt()) - 1.0).abs() < 0.02, "{rate_hz}: {rms}");
    }
}

#[test]
fn a_hush_leaves_one_fading_packet_from_where_the_device_is() {
    let mut speaker = speaker(16_000);
    speaker.start(3, 9);
    speaker.push_clause(0, &vec![10_000; 32_000], 16_000, true).unwrap();
    let mut sent = 0;
    for now_us in (0..=500_000).step_by(10_000) {
        sent += poll_all(&mut speaker, now_us).len() as u64;
    }
    speaker.played(3, 440_000).unwrap();
    let hushed = speaker.hush(505_000).unwrap();
    assert_eq!((hushed.speech, hushed.turn), (3, 9));
    assert_eq!(hushed.sent_us, sent * FRAME_US);
    assert_eq!((hushed.played_us, hushed.playhead_us), (440_000, 505_000));
    let rest = poll_all(&mut speaker, 505_000);
    let [fade] = rest.as_slice() else { panic!("{} packets after a hush", rest.len()) };
    assert!(fade.fade && fade.playout_us == 505_000);
    let pcm = decode(fade, 16_000);
    assert_eq!(pcm[0], 10_000, "it begins at full level");
    assert!(pcm.is_sorted_by(|a, b| a >= b) && pcm[319] < 100, "and only falls, to silence");
    assert_eq!(poll_all(&mut speaker, 100_000_000), []);
    assert_eq!(speaker.next_wake_us(), None);
    assert_eq!(speaker.hush(600_000), None);
    assert_eq!(speaker.push_clause(1, &[0; 320], 16_000, true), Err(Error::NoSpeech { clause: 1 }));
    // What was played before the hush reached the device is still counted, and completes nothing.
    let played = speaker.played(3, 520_000).unwrap();
    assert_eq!((played.played_us, played.completed.len(), played.finished), (520_000, 0, false));
    let position = speaker.position().unwrap();
    assert_eq!((position.clause, position.clause_played_us), (Some(0), 520_000));
    assert!(!speaker.is_speaking());
}

#[test]
fn a_hush_before_the_first_packet_says_nothing() {
    let mut speaker = speaker(16_000);
    speaker.start(1, 1);
    speaker.push_clause(0, &ramp(3_200), 16_000, true).unwrap();
    let hushed = speaker.hush(10).unwrap();
    assert_eq!((hushed.sent_us, hushed.playhead_us), (0, 0));
    assert_eq!(poll_all(&mut speaker, 1_000_000), []);
}

#[test]
fn the_queue_is_bounded_and_says_so() {
    let mut speaker = speaker(16_000);
    assert!(matches!(speaker.push_clause(0, &[0; 10], 16_000, true), Err(Error::NoSpeech { .. })));
    speaker.start(1, 1);
    assert_eq!(speaker.room_us(), QUEUE_US_MAX);
    let half = vec![0; 24_000 * 30];
    speaker.push_clause(0, &half, 24_000, false).unwrap();
    speaker.push_clause(1, &half, 24_000, false).unwrap();
    let full = speaker.push_clause(2, &[0; 24], 24_000, false);
    assert_eq!(full, Err(Error::Full { clause_us: 1_000, room_us: 0 }));
    poll_all(&mut speaker, 0);
    assert!(speaker.room_us() >= 300_000);
    for rate_hz in [0, 1, 1_000_000, u32::MAX] {
        let refused = speaker.push_clause(2, &[0; 24], rate_hz, false);
        assert!(matches!(refused, Err(Error::Resample(_))), "{rate_hz}: {refused:?}");
    }
    assert!(Speaker::new(Config { lead_us: 0, ..Config::default() }).is_err());
    assert!(Speaker::new(Config { rate_hz: 44_100, ..Config::default() }).is_err());
}

#[derive(Debug, Clone)]
enum Step {
    Start,
    Clause {
        samples: usize,
        last: bool,
    },
    Wait(u64),
    /// The device plays on by this much of what it was sent, and says so.
    Play(u64),
    /// The device tells again what it told, or lies.
    Say {
        speech: u32,
        us: u64,
    },
    Hush,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Start),
        4 => (0usize..20_000, 0u8..4).prop_map(|(samples, last)| Step::Clause { samples, last: last == 0 }),
        8 => (0u64..400_000).prop_map(Step::Wait),
        8 => (0u64..300_000).prop_map(Step::Play),
        2 => (0u32..12, any::<u64>()).prop_map(|(speech, us)| Step::Say { speech, us }),
        1 => Just(Step::Hush),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the order of clauses, time, acknowledgements and hushes: the account agrees with a
    /// device that only adds up the packets that it got.
    #[test]
    fn the_account_is_exact_over_any_interleaving(steps in prop::collection::vec(step(), 1..120), rate in 0usize..3) {
        let rate_hz = [16_000u32, 24_000, 48_000][rate];
        let mut speaker = speaker(rate_hz);
        let (mut now_us, mut speech, mut clause, mut seq) = (1_000u64, 0u32, 0u16, 0u32);
        // The device: packets of the present speech, and how much of it was played and told.
        let (mut got, mut played_us, mut told_us): (Vec<Packet>, u64, u64) = (Vec::new(), 0, 0);
        let mut began_us = 0;
        let mut hushed = true;
        let mut completed: Vec<u16> = Vec::new();
        let mut finished = false;
        for step in steps {
            match step {
                Step::Start => {
                    speech += 1;
                    speaker.start(speech, speech * 10);
                    (got, played_us, told_us, clause, hushed) = (Vec::new(), 0, 0, 0, false);
                    (completed, finished) = (Vec::new(), false);
                }
                Step::Clause { samples, last } => {
                    if speaker.push_clause(clause, &ramp(samples), 24_000, last).is_ok() { clause += 1; }
                }
                Step::Wait(us) => now_us += us,
                Step::Play(us) => {
                    played_us = (played_us + us).min(got.len() as u64 * FRAME_US);
                    let told = speaker.played(speech, played_us);
                    prop_assert_eq!(told.is_some(), played_us > told_us);
                    told_us = told_us.max(played_us);
                    if let Some(told) = told {
                        prop_assert_eq!((told.speech, told.turn, told.played_us), (speech, speech * 10, played_us));
                        completed.extend(told.completed);
                        prop_assert!(!(finished && told.finished), "finished is said once");
                        finished |= told.finished;
                    }
                }
                Step::Say { speech: other, us } => {
                    if other != speech {
                        // An older speech, or one that never was: nothing of the present changes.
                        let _ = speaker.played(other, us);
                    } else if us <= told_us {
                        prop_assert_eq!(speaker.played(other, us), None);
                    }
                }
                Step::Hush => {
                    let stopped = speaker.hush(now_us);
                    prop_assert_eq!(stopped.is_some(), !hushed);
                    if let Some(stopped) = stopped {
                        prop_assert_eq!(stopped.sent_us, got.len() as u64 * FRAME_US);
                        prop_assert_eq!(stopped.played_us, told_us);
                        prop_assert!(stopped.playhead_us >= told_us && stopped.playhead_us <= stopped.sent_us);
                        let rest = poll_all(&mut speaker, now_us);
                        prop_assert!(rest.len() <= 1 && rest.iter().all(|packet| packet.fade));
                        seq += rest.len() as u32;
                    }
                    hushed = true;
                }
            }
            for packet in poll_all(&mut speaker, now_us) {
                prop_assert!(!packet.fade);
                prop_assert_eq!(packet.speech, speech);
                prop_assert_eq!(packet.seq, seq);
                prop_assert_eq!(packet.playout_us, got.len() as u64 * FRAME_US);
                prop_assert_eq!(packet.bytes.len(), rate_hz as usize / 50 * 2);
                seq += 1;
                // A device that ran dry begins anew; no packet is ahead of it by more than a lead.
                let dry = got.is_empty() || now_us > began_us + packet.playout_us;
                if dry { began_us = now_us - packet.playout_us.min(now_us); }
                prop_assert!(packet.playout_us + FRAME_US <= now_us - began_us + 300_000);
                got.push(packet);
            }
            let expected: Vec<u16> = got.iter().enumerate()
                .filter(|(index, packet)| packet.last_of_clause && (*index as u64 + 1) * FRAME_US <= told_us)
                .map(|(_, packet)| packet.clause)
                .collect();
            prop_assert_eq!(&completed, &expected);
            let all = !hushed && got.last().is_some_and(|packet| packet.last_of_speech) && told_us == got.len() as u64 * FRAME_US;
            prop_assert!(!all || finished);
            if speech > 0 {
                let position = speaker.position().unwrap();
                prop_assert_eq!((position.speech, position.played_us), (speech, told_us));
                prop_assert_eq!(position.sent_us, got.len() as u64 * FRAME_US);
                let playing = got.get((told_us / FRAME_US) as usize).map(|packet| packet.clause);
                prop_assert_eq!(position.clause, playing);
            }
        }
    }
}
