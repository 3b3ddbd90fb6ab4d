//! What arrives over a link: late, lost and doubled packets, pauses that are not sent, streams that end.

use super::*;

/// Packets as they arrive: (when, sequence number, capture time, bytes).
type Arrivals = Vec<(u64, u32, u64, Vec<u8>)>;

/// Feeds arrivals and every wake-up between them; closes utterances after [`END_US`].
fn ride(ear: &mut Listener, arrivals: &Arrivals, until_us: u64) -> Vec<Fact> {
    let (mut facts, mut all, mut now_us) = (Vec::new(), Vec::new(), 0);
    let mut settle = |ear: &mut Listener, facts: &mut Vec<Fact>| {
        for fact in facts.drain(..) {
            all.push(fact);
            match fact {
                Fact::Silence { utterance, silence_us, .. } if silence_us >= END_US => {
                    ear.close_utterance(utterance);
                }
                Fact::Ended { utterance, .. } => ear.close_utterance(utterance),
                _ => {}
            }
        }
    };
    let end = [(until_us, 0, 0, Vec::new())];
    for (at_us, seq, capture_us, packet) in arrivals.iter().chain(&end) {
        while let Some(wake_us) = ear.next_wake_us().filter(|wake_us| wake_us <= at_us) {
            now_us = wake_us.max(now_us);
            ear.tick(now_us, &mut facts);
            settle(ear, &mut facts);
        }
        now_us = *at_us;
        if !packet.is_empty() {
            let _ = ear.push_packet(*seq, *capture_us, packet, now_us, &mut facts);
            settle(ear, &mut facts);
        }
    }
    all
}

fn in_order(packets: &[Vec<u8>], first_seq: u32) -> Arrivals {
    let arrive = |(index, packet): (usize, &Vec<u8>)| {
        let capture_us = index as u64 * PACKET_US;
        (capture_us + 30_000, first_seq.wrapping_add(index as u32), capture_us, packet.clone())
    };
    packets.iter().enumerate().map(arrive).collect()
}

fn spans(facts: &[Fact]) -> Vec<(u64, u64)> {
    let mut spans = Vec::new();
    for fact in facts {
        match fact {
            Fact::SpeechStarted { at_us, .. } => spans.push((*at_us, 0)),
            Fact::Paused { at_us, .. } | Fact::Silence { at_us, .. } => {
                if let Some(last) = spans.last_mut() {
                    last.1 = *at_us;
                }
            }
            _ => {}
        }
    }
    spans
}

#[test]
fn a_sequence_that_wraps_is_heard_as_any_other() {
    let scene = scene(&clip(SPEECH[3]), 0.0);
    let packets = packets(&scene.pcm, Codec::Opus, 16_000);
    let facts: Vec<Vec<Fact>> = [0, u32::MAX - 70]
        .iter()
        .map(|first| ride(&mut listener(Codec::Opus, 16_000), &in_order(&packets, *first), 10_000_000))
        .collect();
    assert!(!facts[0].is_empty());
    assert_eq!(facts[0], facts[1]);
}

#[test]
fn a_bad_link_changes_neither_count_nor_ends() {
    for at in [SPEECH[3], SPEECH[6], SPEECH[8]] {
        let scene = scene(&clip(at), 0.0);
        for codec in [Codec::Pcm16, Codec::Opus] {
            let packets = packets(&scene.pcm, codec, 16_000);
            let mut random = Random(11);
            let (mut arrivals, mut lost, mut doubled) = (Vec::new(), 0, 0);
            for (index, arrival) in in_order(&packets, 500).into_iter().enumerate() {
                // 3 % lost, 3 % doubled, up to 35 ms late; the first one sets the sequence.
                if index > 0 && index + 1 < packets.len() && random.below(100) < 3 {
                    lost += 1;
                    continue;
                }
                let late_us = if index == 0 { 0 } else { random.below(35_000) };
                let arrival = (arrival.0 + late_us, arrival.1, arrival.2, arrival.3);
                if random.below(100) < 3 {
                    doubled += 1;
                    arrivals.push((arrival.0 + 5_000, arrival.1, arrival.2, arrival.3.clone()));
                }
                arrivals.push(arrival);
            }
            arrivals.sort();
            let mut ear = listener(codec, 16_000);
            let facts = ride(&mut ear, &arrivals, 60_000_000);
            let what = format!("{} {codec:?}", name(at));
            let spans = spans(&facts);
            assert_eq!(spans.len(), 1, "{what}: {spans:?}");
            assert!(spans[0].0.abs_diff(scene.first_us) <= NEAR_US, "{what}: {spans:?}");
            assert!(spans[0].1.abs_diff(scene.last_us) <= NEAR_US, "{what}: {spans:?}");
            let stats = ear.stats();
            assert!(lost > 0 && doubled > 0);
            // A packet given up too early is late as well as lost.
            assert_eq!(stats.lost, lost + stats.late, "{what}: {stats:?}");
            assert_eq!(stats.duplicate, doubled, "{what}: {stats:?}");
            assert!(stats.late <= 3, "{what}: {stats:?}");
            assert_eq!(stats.concealed, stats.lost, "{what}: no loss was longer than 100 ms");
            assert_eq!(stats.frames, packets.len() as u64, "{what}: {stats:?}");
        }
    }
}

#[test]
fn a_device_that_vanishes_in_mid_word_falls_silent() {
    let scene = scene(&clip(SPEECH[6]), 0.0);
    let packets = packets(&scene.pcm, Codec::Opus, 16_000);
    let mut ear = listener(Codec::Opus, 16_000);
    let arrivals: Arrivals = in_order(&packets[..120], 0);
    let gone_us = arrivals.last().unwrap().0;
    let facts = ride(&mut ear, &arrivals, gone_us + 30_000_000);
    assert!(matches!(facts[0], Fact::SpeechStarted { .. }));
    let paused = facts.iter().find_map(|fact| match fact {
        Fact::Paused { silence_us, .. } => Some(*silence_us),
        _ => None,
    });
    assert!(paused.is_some_and(|us| (20_000_000..20_100_000).contains(&us)), "{paused:?}");
    assert!(matches!(facts.last(), Some(Fact::Silence { .. })), "{facts:?}");
    assert_eq!(ear.next_wake_us(), None, "closed, and asleep");
}

/// What a device sends that leaves out what its coder need not send: packets with their capture times.
fn with_pauses(pcm: &[i16]) -> Vec<(u64, Vec<u8>)> {
    let mut encoder = Encoder::new(Codec::Opus, 16_000, 24_000).unwrap();
    encoder.pause_in_silence().unwrap();
    let mut sent = Vec::new();
    let mut pauses = false;
    for (frame, index) in pcm.chunks_exact(320).zip(0u64..) {
        let packet = encoder.encode(frame).unwrap();
        if !(is_pause(Codec::Opus, &packet) && pauses) {
            sent.push((index * PACKET_US, packet.clone()));
        }
        pauses = is_pause(Codec::Opus, &packet);
    }
    sent
}

#[test]
fn what_a_pausing_device_leaves_out_is_silence_and_ends_the_turn_as_early() {
    let scene = scene(&clip(SPEECH[6]), 0.0);
    let mut pcm = scene.pcm.clone();
    pcm.resize(pcm.len() + 2 * 16_000, 0);
    let sent = with_pauses(&pcm);
    let all = pcm.len() / 320;
    assert!(sent.len() < all - 60, "{} of {all} packets in two seconds of silence and more", sent.len());
    // When 700 ms of silence are known, if all is sent and if pauses are left out.
    let silent_at = |arrivals: Vec<(u64, Vec<u8>)>| {
        let mut ear = listener(Codec::Opus, 16_000);
        let mut facts = Vec::new();
        let (mut arrivals, mut number) = (arrivals.into_iter().peekable(), 0);
        for now_us in (0..all as u64 * PACKET_US).step_by(10_000) {
            while let Some((capture_us, packet)) = arrivals.next_if(|(capture_us, _)| capture_us + PACKET_US <= now_us)
            {
                number += 1;
                ear.push_packet(number, capture_us, &packet, now_us, &mut facts).unwrap();
            }
            ear.tick(now_us, &mut facts);
            if facts.drain(..).any(|fact| matches!(fact, Fact::Silence { silence_us: 700_000.., .. })) {
                return (now_us, ear.stats().lost);
            }
        }
        panic!("no end of the turn");
    };
    let whole = packets(&pcm, Codec::Opus, 16_000).into_iter().zip(0u64..).map(|(packet, n)| (n * PACKET_US, packet));
    let (all_us, _) = silent_at(whole.collect());
    let (some_us, lost) = silent_at(sent);
    assert_eq!(lost, 0);
    assert!(some_us <= all_us + 100_000, "{some_us} and {all_us}");
}

#[test]
fn a_device_that_ends_its_stream_ends_the_utterance() {
    let scene = scene(&clip(SPEECH[6]), 0.0);
    let packets = packets(&scene.pcm, Codec::Opus, 16_000);
    let ended = |facts: &[Fact]| facts.iter().any(|fact| matches!(fact, Fact::Ended { .. }));
    // Within a word: all packets arrived; the last two were overtaken by the message; the last two were lost.
    for came in [120, 118] {
        for late in [true, false] {
            let mut ear = listener(Codec::Opus, 16_000);
            let arrivals = in_order(&packets[..120], 1);
            let mut facts = ride(&mut ear, &arrivals[..came].to_vec(), arrivals[came - 1].0);
            assert!(!ended(&facts), "{facts:?}");
            let now_us = arrivals[119].0;
            ear.end_stream(120, now_us, &mut facts);
            assert_eq!(ended(&facts), came == 120);
            if late {
                for (_, seq, capture_us, packet) in &arrivals[came..] {
                    ear.push_packet(*seq, *capture_us, packet, now_us + 150_000, &mut facts).unwrap();
                }
                ear.tick(now_us + 150_000, &mut facts);
                assert!(ended(&facts), "the last packet came");
            } else {
                ear.tick(now_us + 199_999, &mut facts);
                assert_eq!(ended(&facts), came == 120);
                ear.tick(now_us + 200_000, &mut facts);
                assert!(ended(&facts), "the last packet is not waited for any longer");
            }
            let ends = facts.iter().filter_map(|fact| match fact {
                Fact::Ended { at_us, .. } => Some(*at_us),
                _ => None,
            });
            let ends: Vec<u64> = ends.collect();
            // The voice is reported up to the end, not to the last silence.
            assert!(matches!(ends[..], [at_us] if at_us.abs_diff(120 * PACKET_US) <= 100_000), "{ends:?}");
        }
    }
    // No utterance is open and nothing was ever sent: nothing ends.
    let (mut ear, mut facts) = (listener(Codec::Opus, 16_000), Vec::new());
    ear.end_stream(0, 0, &mut facts);
    assert_eq!((facts, ear.next_wake_us()), (Vec::new(), None));
}

#[test]
fn an_ended_stream_waits_for_packets_that_were_asked_for() {
    let scene = scene(&clip(SPEECH[6]), 0.0);
    let packets = packets(&scene.pcm, Codec::Opus, 16_000);
    let ended = |facts: &[Fact]| facts.iter().any(|fact| matches!(fact, Fact::Ended { .. }));
    let config = Config { codec: Codec::Opus, jitter: jitter::Config::RESENT, ..Config::default() };
    let mut ear = Listener::new(config, model()).unwrap();
    let mut arrivals = in_order(&packets[..120], 1);
    let missing: Vec<_> = arrivals.drain(100..110).collect();
    let now_us = arrivals.last().unwrap().0;
    let mut facts = ride(&mut ear, &arrivals, now_us);
    assert_eq!((ear.last_sequence(), ear.take_missing(now_us).map(|missing| missing.count)), (Some(100), Some(10)));
    ear.end_stream(120, now_us, &mut facts);
    ear.tick(now_us + 200_000, &mut facts);
    assert!(!ended(&facts) && ear.next_wake_us().unwrap() > now_us + 200_000, "it waits, and sleeps");
    for (_, seq, capture_us, packet) in &missing {
        ear.push_packet(*seq, *capture_us, packet, now_us + 210_000, &mut facts).unwrap();
    }
    while ear.is_ready(now_us + 210_000) {
        assert!(!ended(&facts), "more is to be heard");
        ear.tick(now_us + 210_000, &mut facts);
    }
    assert!(ended(&facts), "the last packet came long ago");
    assert_eq!((ear.stats().lost, ear.stats().concealed), (0, 0));
}

#[test]
fn what_a_gap_has_held_up_is_before_the_end_of_the_stream() {
    let scene = scene(&clip(SPEECH[6]), 0.0);
    let packets = packets(&scene.pcm, Codec::Opus, 16_000);
    // The stream ends within the voice. A single packet shortly before is lost, and is asked for in vain.
    let heard = |is_lost: bool| {
        let config = Config { codec: Codec::Opus, jitter: jitter::Config::RESENT, ..Config::default() };
        let mut ear = Listener::new(config, model()).unwrap();
        let mut arrivals = in_order(&packets[..100], 1);
        if is_lost {
            arrivals.remove(90);
        }
        let mut now_us = arrivals.last().unwrap().0;
        let mut facts = ride(&mut ear, &arrivals, now_us);
        ear.end_stream(100, now_us, &mut facts);
        while let Some(wake_us) =
            ear.next_wake_us().filter(|_| !facts.iter().any(|fact| matches!(fact, Fact::Ended { .. })))
        {
            now_us = now_us.max(wake_us);
            ear.tick(now_us, &mut facts);
        }
        assert_eq!(ear.stats().lost, u64::from(is_lost));
        let ended_us = facts.iter().find_map(|fact| match fact {
            Fact::Ended { at_us, .. } => Some(*at_us),
            _ => None,
        });
        ended_us.unwrap()
    };
    assert_eq!(heard(true), heard(false));
}

#[test]
fn sound_of_the_next_stream_that_a_gap_has_held_up_is_not_in_the_utterance_that_ends() {
    const LAST: u32 = 120;
    let scene = scene(&clip(SPEECH[6]), 0.0);
    let packets = packets(&scene.pcm, Codec::Pcm16, 16_000);
    let config = Config { jitter: jitter::Config::RESENT, ..Config::default() };
    let mut ear = Listener::new(config, model()).unwrap();
    // The last packet of the stream is lost, and the next stream begins at once, within a voice.
    let arrivals = in_order(&packets[..170], 1);
    let (before, behind) = (arrivals[..119].to_vec(), &arrivals[120..]);
    let mut now_us = arrivals[119].0;
    let mut facts = ride(&mut ear, &before, now_us);
    assert_eq!((spans(&facts).len(), ear.last_sequence()), (1, Some(LAST - 1)));
    facts.clear();
    ear.end_stream(LAST, now_us, &mut facts);
    for (_, seq, capture_us, packet) in behind {
        ear.push_packet(*seq, *capture_us, packet, now_us, &mut facts).unwrap();
    }
    assert_eq!((facts.as_slice(), ear.last_sequence()), (&[] as &[Fact], Some(LAST - 1)), "the gap is waited for");
    let mut ends = Vec::new();
    while let Some(wake_us) = ear.next_wake_us().filter(|_| ear.last_sequence() < Some(170)) {
        now_us = now_us.max(wake_us);
        ear.tick(now_us, &mut facts);
        for fact in facts.drain(..) {
            if let Fact::Ended { utterance, .. } = fact {
                ends.push((utterance, ear.heard_until_us()));
                ear.close_utterance(utterance);
            }
        }
    }
    assert_eq!(ends, [(1, Some(119 * PACKET_US))]);
    let next = ear.open_utterance().map(|(utterance, pcm, _)| (utterance, pcm.len() <= 51 * 320));
    assert_eq!(next, Some((2, true)), "the sound of the next stream, and the packet that is made up");
}

#[test]
fn an_end_that_comes_behind_sound_of_the_next_stream_leaves_its_utterance_alone() {
    let scene = scene(&clip(SPEECH[6]), 0.0);
    let packets = packets(&scene.pcm, Codec::Pcm16, 16_000);
    let ended = |facts: &[Fact]| facts.iter().any(|fact| matches!(fact, Fact::Ended { .. }));
    let (mut ear, mut facts) = (listener(Codec::Pcm16, 16_000), Vec::new());
    let first = in_order(&packets[..120], 1);
    ride(&mut ear, &first, first[119].0);
    let now_us = first[119].0;
    let (utterance, length) = ear.open_utterance().map(|(utterance, pcm, _)| (utterance, pcm.len())).unwrap();
    // The first stream was silence, and the voice began behind it.
    ear.end_stream(25, now_us, &mut facts);
    assert!(!ended(&facts), "{facts:?}");
    assert_eq!(ear.open_utterance().map(|(utterance, pcm, _)| (utterance, pcm.len())), Some((utterance, length)));
    assert_eq!(ear.last_sound(seconds(1.0)).0.len(), seconds(1.0), "what was said last is kept");
    // One that began before the end of the stream is over, though more was heard.
    ear.end_stream(118, now_us, &mut facts);
    assert!(ended(&facts), "{facts:?}");
    assert_eq!(ear.last_sound(seconds(1.0)).0.len(), seconds(1.0));
}

#[test]
fn what_a_gap_has_held_up_is_heard_as_if_it_had_come_in_time() {
    const LONG_US: u64 = 60_000;
    let mut pcm = vec![0; seconds(0.6)];
    for at in [SPEECH[4], SPEECH[5]] {
        pcm.extend(clip(at));
        pcm.resize(pcm.len() + seconds(1.2), 0);
    }
    let pcm = add(&pcm, &white(pcm.len(), 3.0, 5));
    let packets: Vec<Vec<u8>> = pcm
        .chunks_exact(3 * 320)
        .map(|samples| samples.iter().flat_map(|sample| sample.to_le_bytes()).collect())
        .collect();
    assert!(packets.len() < jitter::HELD_MAX, "{}", packets.len());
    // The third packet is lost, and the others come in time or all at once, while it is waited for.
    let heard = |at_once: bool| {
        let config = Config { jitter: jitter::Config::RESENT, ..Config::default() };
        let mut ear = Listener::new(config, model()).unwrap();
        let came = packets.iter().zip(0_u64..).filter(|(_, index)| *index != 2).map(|(packet, index)| {
            let at_us = if at_once && index > 2 { 500_000 + index } else { index * LONG_US + 30_000 };
            (at_us, index as u32, index * LONG_US, packet.clone())
        });
        let arrivals: Arrivals = came.collect();
        let facts = ride(&mut ear, &arrivals, 20_000_000);
        assert_eq!((ear.stats().lost, ear.last_sequence()), (1, Some(packets.len() as u32 - 1)), "{at_once}");
        facts
    };
    let in_time = heard(false);
    assert_eq!(spans(&in_time).len(), 2, "{in_time:?}");
    assert_eq!(heard(true), in_time);
}

#[test]
fn a_device_that_sends_nothing_in_silence_is_understood() {
    // The device's own detector skips the second of silence between two commands: sequence numbers are continuous,
    // times jump.
    let (one, two) = (clip(SPEECH[4]), clip(SPEECH[5]));
    let (a, b) = (packets(&one, Codec::Pcm16, 16_000), packets(&two, Codec::Pcm16, 16_000));
    let leap_us = a.len() as u64 * PACKET_US + 5_000_000;
    let mut arrivals = in_order(&a, 0);
    arrivals.extend(
        in_order(&b, a.len() as u32)
            .into_iter()
            .map(|(at_us, seq, capture_us, packet)| (at_us + leap_us, seq, capture_us + leap_us, packet)),
    );
    let mut ear = listener(Codec::Pcm16, 16_000);
    let facts = ride(&mut ear, &arrivals, leap_us + 20_000_000);
    let spans = spans(&facts);
    assert_eq!(spans.len(), 2, "{spans:?}");
    let first = voiced_span(&two).0 as u64 * 1_000_000 / u64::from(RATE_HZ) + leap_us;
    assert!(spans[1].0.abs_diff(first) <= NEAR_US, "{spans:?}, not {first}");
}

#[test]
fn voice_before_a_gap_and_behind_it_is_not_in_a_row() {
    const GAP_US: u64 = 500_000;
    let scene = scene(&clip(SPEECH[6]), 0.0);
    let packets = packets(&scene.pcm, Codec::Pcm16, 16_000);
    // A quarter of a second opens an utterance, and what has begun is not soon over.
    let config = Config { onset_windows: 8, leave: 0.01, ..Config::default() };
    // `gap`: the first packet behind half a second in which the device has sent nothing.
    let started_us = |gap: usize| {
        let mut ear = Listener::new(config.clone(), model()).unwrap();
        let mut arrivals = in_order(&packets, 0);
        for (at_us, _, capture_us, _) in arrivals.iter_mut().skip(gap) {
            *at_us += GAP_US;
            *capture_us += GAP_US;
        }
        spans(&ride(&mut ear, &arrivals, 30_000_000))[0].0
    };
    let whole_us = started_us(packets.len());
    // Behind five of the eight windows.
    let gap = (whole_us + 5 * 32_000).div_ceil(PACKET_US);
    let behind_us = gap * PACKET_US + GAP_US;
    let started_us = started_us(gap as usize);
    assert!(started_us + 100_000 > behind_us, "{started_us}, not {behind_us} or later");
}

#[test]
fn what_is_lost_is_no_pause_and_what_is_left_out_is_one() {
    let (one, two) = (clip(SPEECH[4]), clip(SPEECH[5]));
    let mut pcm = vec![0; seconds(0.6)];
    pcm.extend(&one[..voiced_span(&one).1]);
    let pause = pcm.len().div_ceil(320);
    pcm.resize(pcm.len() + seconds(0.9), 0);
    pcm.extend(&two[voiced_span(&two).0..]);
    pcm.resize(pcm.len() + seconds(2.0), 0);
    let packets = packets(&add(&pcm, &white(pcm.len(), 3.0, 5)), Codec::Pcm16, 16_000);
    let all = in_order(&packets, 0);
    // 0.6 of the 0.9 s of silence do not come.
    let (from, to) = (pause + 8, pause + 38);
    let utterances = |is_lost: bool| {
        let mut arrivals = all.clone();
        arrivals.drain(from..to);
        if !is_lost {
            arrivals.iter_mut().skip(from).for_each(|(_, seq, ..)| *seq -= (to - from) as u32);
        }
        spans(&ride(&mut listener(Codec::Pcm16, 16_000), &arrivals, 30_000_000)).len()
    };
    assert_eq!((utterances(true), utterances(false)), (1, 2));
}

#[test]
fn what_was_missing_before_a_link_was_lost_comes_with_the_replay() {
    let scene = scene(&clip(SPEECH[6]), 0.0);
    let packets = packets(&scene.pcm, Codec::Opus, 16_000);
    let config = Config { codec: Codec::Opus, jitter: jitter::Config::RESENT, ..Config::default() };
    // Of the signal that fades a few packets more come, and then nothing for five seconds.
    let mut arrivals = in_order(&packets, 0);
    let cut_us = arrivals[125].0 + 5_000_000;
    let before: Arrivals = arrivals[..126].iter().filter(|(_, seq, ..)| !(100..120).contains(seq)).cloned().collect();
    let mut ear = Listener::new(config.clone(), model()).unwrap();
    let facts = ride(&mut ear, &before, cut_us);
    assert!(facts.iter().all(|fact| matches!(fact, Fact::SpeechStarted { .. })), "{facts:?}");
    assert_eq!(ear.last_sequence(), Some(99));
    ear.resume(jitter::Config::RESENT, cut_us);
    let behind = arrivals.drain(100..).enumerate();
    let replay: Arrivals =
        behind.map(|(n, (_, seq, at, packet))| (cut_us + n as u64 * 5_000, seq, at, packet)).collect();
    let mut facts = facts;
    facts.extend(ride(&mut ear, &replay, cut_us + 30_000_000));
    let whole = ride(&mut Listener::new(config, model()).unwrap(), &in_order(&packets, 0), 60_000_000);
    assert_eq!(ear.stats().lost, 0);
    assert_eq!(spans(&facts), spans(&whole));
}
