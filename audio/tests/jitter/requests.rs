//! Packets that are missing: when the sender is asked for them, and how long they are waited for.

use super::*;

/// So many packets behind the last one, and none else.
fn behind(count: u32) -> Option<Missing> {
    Some(Missing { count, others: 0 })
}

/// A buffer that has taken the packets 0 to 9, the last one at 180 ms.
fn ten_packets(config: Config) -> JitterBuffer<u32> {
    let mut buffer = JitterBuffer::new(config);
    for seq in 0..10 {
        let now_us = u64::from(seq) * FRAME_US;
        buffer.push(seq, now_us, seq, now_us);
        drain(&mut buffer, now_us);
    }
    buffer
}

/// Loses the packets from `seq` on and takes `seq + lost`; returns when the sender is asked for them.
fn lose(buffer: &mut JitterBuffer<u32>, seq: u32, lost: u32) -> u64 {
    let now_us = u64::from(seq + lost) * FRAME_US;
    buffer.push(seq + lost, now_us, seq + lost, now_us);
    assert_eq!(drain(buffer, now_us), []);
    assert_eq!(buffer.take_missing(0), None, "it may come late");
    let asked_us = now_us + buffer.depth_us().min(Config::RESENT.ask_us);
    assert_eq!(buffer.next_wake_us(), Some(asked_us));
    drain(buffer, asked_us);
    asked_us
}

#[test]
fn a_longer_gap_is_asked_for_once_and_filled_however_long_that_takes() {
    let mut buffer = ten_packets(Config::RESENT);
    let mut now_us = lose(&mut buffer, 10, 100);
    assert!(buffer.is_missing());
    assert_eq!((buffer.last(), buffer.take_missing(0)), (Some(9), behind(100)));
    assert!(!buffer.is_missing() && buffer.take_missing(0).is_none());
    // It comes at four times real time, after a while, one packet not at all, and new packets come meanwhile.
    now_us += Config::RESENT.resend_us - 1;
    let mut out = Vec::new();
    for seq in (10..110).filter(|seq| *seq != 50) {
        now_us += FRAME_US / 4;
        assert_eq!(buffer.push(seq, u64::from(seq) * FRAME_US, seq, now_us), Pushed::Accepted);
        if seq % 4 == 0 {
            let live = 108 + seq / 4;
            buffer.push(live, u64::from(live) * FRAME_US, live, now_us);
        }
        out.extend(drain(&mut buffer, now_us));
    }
    assert_eq!(out.len(), 40, "up to the one that is missing");
    out.extend(drain(&mut buffer, now_us + Config::RESENT.resend_us));
    assert_eq!(out[40], (50, 1));
    assert_eq!(buffer.stats().lost, 1);
    assert!(out.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0), "{out:?}");
}

#[test]
fn what_an_outage_took_is_waited_for_as_long_as_it_took_and_its_holes_are_not() {
    let mut buffer = ten_packets(Config::RESENT);
    let mut now_us = lose(&mut buffer, 10, 80);
    assert_eq!(buffer.take_missing(0), behind(80));
    // The link that is back is slow, and stalls in the middle.
    now_us += 80 * FRAME_US - 1;
    let mut out = Vec::new();
    for seq in 10..40 {
        buffer.push(seq, u64::from(seq) * FRAME_US, seq, now_us);
        out.extend(drain(&mut buffer, now_us));
    }
    assert_eq!(out.len(), 30);
    now_us += 50 * FRAME_US - 1;
    assert_eq!(drain(&mut buffer, now_us), []);
    for seq in (40..90).filter(|seq| *seq != 60) {
        buffer.push(seq, u64::from(seq) * FRAME_US, seq, now_us);
        out.extend(drain(&mut buffer, now_us));
    }
    assert_eq!(out.len(), 50, "up to the one that was overtaken");
    assert_eq!(drain(&mut buffer, now_us + Config::RESENT.resend_us)[0], (60, 1));
    assert_eq!((buffer.stats().lost, buffer.stats().late), (1, 0));
    // Nothing comes at all.
    let asked_us = lose(&mut buffer, 91, 200);
    assert_eq!(buffer.next_wake_us(), Some(asked_us + 2_000_000));
}

#[test]
fn how_long_a_gap_is_waited_for_follows_from_the_length_of_its_packets() {
    // Beyond the longest packets there is a pause in it.
    for (packet_us, wait_us) in [(20_000, 600_000), (60_000, 1_800_000), (61_000, 1_800_000), (150_000, 600_000)] {
        let mut buffer = JitterBuffer::new(Config::RESENT);
        let capture_us = |seq: u32| u64::from(seq) * packet_us;
        for seq in (0..10).chain([40]) {
            buffer.push(seq, capture_us(seq), seq, capture_us(seq));
            drain(&mut buffer, capture_us(seq));
        }
        let asked_us = buffer.next_wake_us().expect("a gap");
        drain(&mut buffer, asked_us);
        assert_eq!(buffer.take_missing(0), behind(30));
        assert_eq!(buffer.next_wake_us(), Some(asked_us + wait_us), "packets of {packet_us} us");
    }
}

/// Takes so many packets from `seq` on, each at its time.
fn in_order(buffer: &mut JitterBuffer<u32>, seq: u32, count: u32) -> u32 {
    for seq in seq..seq + count {
        let now_us = u64::from(seq) * FRAME_US;
        buffer.push(seq, now_us, seq, now_us);
        drain(buffer, now_us);
    }
    seq + count
}

/// Loses one packet behind so many in order, and has it sent again if it is asked for; how many were asked for.
fn lose_one(buffer: &mut JitterBuffer<u32>, seq: &mut u32, in_order_before: u32) -> Option<u32> {
    let lost = in_order(buffer, *seq, in_order_before);
    *seq = lost + 2;
    let now_us = u64::from(lost + 1) * FRAME_US;
    buffer.push(lost + 1, now_us, lost + 1, now_us);
    drain(buffer, now_us + buffer.depth_us());
    let missing = buffer.take_missing(0).map(|missing| missing.count);
    if missing.is_some() {
        buffer.push(lost, 0, lost, now_us);
        assert_eq!(drain(buffer, now_us), [(lost, 0), (lost + 1, 0)]);
    }
    missing
}

#[test]
fn a_single_packet_is_asked_for_where_that_is_seldom() {
    let (mut buffer, seq) = (ten_packets(Config::RESENT), &mut 10);
    // Some at once, and then one in five seconds.
    for _ in 0..8 {
        assert_eq!(lose_one(&mut buffer, seq, 10), Some(1));
    }
    assert_eq!(lose_one(&mut buffer, seq, 10), None);
    assert_eq!(lose_one(&mut buffer, seq, 250), Some(1));
    assert_eq!(lose_one(&mut buffer, seq, 50), None);
}

#[test]
fn each_single_packet_is_asked_for_while_somebody_speaks() {
    let (mut buffer, seq) = (ten_packets(Config::RESENT), &mut 10);
    buffer.note_voice(true);
    for _ in 0..50 {
        assert_eq!(lose_one(&mut buffer, seq, 5), Some(1));
    }
    buffer.note_voice(false);
    assert_eq!(lose_one(&mut buffer, seq, 5), None);
}

#[test]
fn single_packets_that_come_too_late_are_soon_not_asked_for() {
    let (mut buffer, mut seq) = (ten_packets(Config::RESENT), 10);
    while lose_one(&mut buffer, &mut seq, 5).is_some() {}
    buffer.note_voice(true);
    for _ in 0..3 {
        let lost = in_order(&mut buffer, seq, 5);
        let now_us = u64::from(lost + 1) * FRAME_US;
        buffer.push(lost + 1, now_us, lost + 1, now_us);
        let asked_us = now_us + buffer.depth_us();
        drain(&mut buffer, asked_us);
        assert_eq!(buffer.take_missing(0), behind(1));
        let given_up_us = asked_us + Config::RESENT.resend_us;
        drain(&mut buffer, given_up_us);
        assert_eq!(buffer.push(lost, 0, lost, given_up_us), Pushed::TooLate);
        seq = lost + 2;
    }
    assert_eq!(lose_one(&mut buffer, &mut seq, 5), None, "the round trip is too long");
    // Over another connection it may be shorter.
    buffer.resume(Config::RESENT);
    assert_eq!(lose_one(&mut buffer, &mut seq, 5), Some(1));
}

/// Takes these packets, each at its time, and asks for what is missing; when that was.
fn take(buffer: &mut JitterBuffer<u32>, packets: &[u32]) -> u64 {
    let mut now_us = 0;
    for &seq in packets {
        now_us = u64::from(seq) * FRAME_US;
        buffer.push(seq, now_us, seq, now_us);
        assert_eq!(drain(buffer, now_us), []);
    }
    now_us += buffer.depth_us();
    assert_eq!(drain(buffer, now_us), []);
    now_us
}

#[test]
fn gaps_are_asked_for_together_and_none_waits_for_the_one_before_it() {
    let mut buffer = ten_packets(Config::RESENT);
    buffer.note_voice(true);
    // Missing are 10, 13, 15 and 16; what came last could still be overtaken.
    let mut now_us = take(&mut buffer, &[11, 12]);
    assert_eq!(buffer.take_missing(0), behind(1));
    now_us = now_us.max(take(&mut buffer, &[14, 17]));
    assert_eq!(buffer.last(), Some(9));
    assert_eq!(buffer.take_missing(0), Some(Missing { count: 0, others: 0b110_1000 }), "13, 15 and 16, behind 9");
    assert!(!buffer.is_missing());
    // They come in any order.
    for seq in [16, 13, 15] {
        buffer.push(seq, 0, seq, now_us);
        assert_eq!(drain(&mut buffer, now_us), []);
    }
    buffer.push(10, 0, 10, now_us);
    assert_eq!(drain(&mut buffer, now_us).len(), 8);
    assert_eq!((buffer.stats().lost, buffer.stats().delivered), (0, 18));
    // Those that are found at once are asked for at once.
    let asked_us = take(&mut buffer, &[19, 21, 23]);
    now_us = asked_us;
    assert_eq!(buffer.take_missing(0), Some(Missing { count: 1, others: 0b1010 }), "18, and 20 and 22 behind it");
    // Each is given up in its own time.
    let mut out = Vec::new();
    while let Some(wake_us) = buffer.next_wake_us() {
        now_us = now_us.max(wake_us);
        out.extend(drain(&mut buffer, now_us));
    }
    assert_eq!(out, [(18, 1), (19, 0), (20, 1), (21, 0), (22, 1), (23, 0)]);
    assert_eq!(now_us, asked_us + Config::RESENT.resend_us);
}

#[test]
fn a_gap_that_is_far_behind_is_asked_for_when_a_request_reaches_it() {
    let mut buffer = ten_packets(Config::RESENT);
    buffer.note_voice(true);
    let mut now_us = take(&mut buffer, &[11]);
    assert_eq!(buffer.take_missing(0), behind(1));
    // The first one is slow; the second gap is 65 packets behind it.
    for seq in (12..75).chain(76..80) {
        buffer.push(seq, u64::from(seq) * FRAME_US, seq, now_us);
    }
    now_us += buffer.depth_us();
    assert_eq!(drain(&mut buffer, now_us), []);
    assert!(!buffer.is_missing() && buffer.take_missing(0).is_none());
    // It has its own time, however long the first one took.
    now_us += Config::RESENT.resend_us - buffer.depth_us() - 1;
    buffer.push(10, 0, 10, now_us);
    assert_eq!(drain(&mut buffer, now_us).len(), 65);
    assert_eq!((buffer.last(), buffer.take_missing(0)), (Some(74), behind(1)));
    assert_eq!(buffer.next_wake_us(), Some(now_us + Config::RESENT.resend_us));
}

#[test]
fn a_short_gap_is_asked_for_again_after_the_time_that_answers_take() {
    let mut buffer = ten_packets(Config::RESENT);
    buffer.note_voice(true);
    let asked_us = take(&mut buffer, &[11]);
    let mut asked = Vec::new();
    let mut now_us = asked_us;
    while buffer.last() == Some(9) {
        if buffer.take_missing(0) == behind(1) {
            asked.push(now_us - asked_us);
        }
        now_us = buffer.next_wake_us().unwrap();
        drain(&mut buffer, now_us);
    }
    assert_eq!((asked, now_us - asked_us), (vec![0, 160_000, 320_000], Config::RESENT.resend_us));
    // Answers take 40 ms here: 40 + 4 x 20.
    let asked_us = take(&mut buffer, &[13]);
    assert_eq!(buffer.take_missing(0), behind(1));
    buffer.push(12, 0, 12, asked_us + 40_000);
    assert_eq!(drain(&mut buffer, asked_us + 40_000).len(), 2);
    let asked_us = take(&mut buffer, &[15]);
    assert_eq!(buffer.take_missing(0), behind(1));
    assert_eq!(buffer.next_wake_us(), Some(asked_us + 120_000));
    drain(&mut buffer, asked_us + 120_000);
    assert_eq!(buffer.take_missing(0), behind(1));
}

#[test]
fn a_request_that_waits_is_not_repeated_right_behind_itself() {
    let mut buffer = ten_packets(Config::RESENT);
    buffer.note_voice(true);
    let asked_us = take(&mut buffer, &[11]);
    // Its message waits for the disk.
    let told_us = asked_us + 200_000;
    drain(&mut buffer, told_us);
    assert_eq!(buffer.take_missing(told_us), behind(1));
    drain(&mut buffer, told_us);
    assert_eq!((buffer.take_missing(told_us), buffer.next_wake_us()), (None, Some(told_us + 160_000)));
    // The answer took 40 ms, not 240: the next one is expected within 40 + 4 x 20.
    buffer.push(10, 0, 10, told_us + 40_000);
    assert_eq!(drain(&mut buffer, told_us + 40_000).len(), 2);
    let asked_us = take(&mut buffer, &[13]);
    assert_eq!(buffer.take_missing(asked_us), behind(1));
    assert_eq!(buffer.next_wake_us(), Some(asked_us + 120_000));
}

#[test]
fn several_gaps_of_one_request_count_as_one() {
    let mut buffer = ten_packets(Config::RESENT);
    buffer.note_voice(true);
    // Nothing comes of the three gaps of a request, twice; the third time it is asked all the same.
    for first in [11, 61, 111] {
        for seq in (first - 1..first + 5).filter(|seq| seq % 10 % 2 == 1) {
            buffer.push(seq, u64::from(seq) * FRAME_US, seq, u64::from(seq) * FRAME_US);
        }
        let mut now_us = u64::from(first + 4) * FRAME_US + buffer.depth_us();
        drain(&mut buffer, now_us);
        assert!(buffer.take_missing(0).is_some(), "{first}");
        while let Some(wake_us) = buffer.next_wake_us() {
            now_us = now_us.max(wake_us);
            drain(&mut buffer, now_us);
            let _ = buffer.take_missing(0);
        }
        for seq in first + 5..first + 49 {
            buffer.push(seq, u64::from(seq) * FRAME_US, seq, now_us);
        }
        drain(&mut buffer, now_us);
    }
    buffer.push(161, 161 * FRAME_US, 161, 161 * FRAME_US);
    let given_up_us = 161 * FRAME_US + buffer.depth_us();
    drain(&mut buffer, given_up_us);
    assert_eq!(buffer.take_missing(0), None, "three requests without an answer");
}

#[test]
fn the_time_of_answers_is_learned_also_where_it_is_longer_than_expected() {
    let mut buffer = ten_packets(Config::RESENT);
    buffer.note_voice(true);
    let mut asked = Vec::new();
    for (lost, answer_us) in [(10, 250_000), (12, 250_000), (14, 250_000), (16, 370_000), (18, 370_000)] {
        let asked_us = take(&mut buffer, &[lost + 1]);
        let mut times = u32::from(buffer.take_missing(0).is_some());
        while let Some(wake_us) = buffer.next_wake_us().filter(|wake_us| *wake_us < asked_us + answer_us) {
            drain(&mut buffer, wake_us);
            times += u32::from(buffer.take_missing(0).is_some());
        }
        buffer.push(lost, 0, lost, asked_us + answer_us);
        assert_eq!(drain(&mut buffer, asked_us + answer_us).len(), 2);
        asked.push(times);
    }
    assert_eq!(asked, [2, 1, 1, 1, 1]);
}

#[test]
fn in_a_pause_a_copy_is_waited_for_no_longer_than_a_packet() {
    for has_copies in [false, true] {
        let (mut buffer, seq) = (ten_packets(Config::RESENT.with_copies(has_copies)), &mut 10);
        while lose_one(&mut buffer, seq, 5).is_some() {}
        // Packets are overtaken, so that gaps are waited for.
        for _ in 0..5 {
            let first = in_order(&mut buffer, *seq, 3);
            for late in [first + 1, first + 2, first] {
                let now_us = u64::from(first + 2) * FRAME_US + if late == first { 30_000 } else { 0 };
                buffer.push(late, u64::from(late) * FRAME_US, late, now_us);
                drain(&mut buffer, now_us);
            }
            *seq = first + 3;
        }
        let lost = in_order(&mut buffer, *seq, 3);
        let now_us = u64::from(lost + 1) * FRAME_US;
        buffer.push(lost + 1, now_us, lost + 1, now_us);
        assert!(buffer.depth_us() > 30_000, "{}", buffer.depth_us());
        let wait_us = if has_copies { 20_000 } else { buffer.depth_us() };
        assert_eq!(buffer.next_wake_us(), Some(now_us + wait_us));
        buffer.note_voice(true);
        assert_eq!(buffer.next_wake_us(), Some(now_us + buffer.depth_us().min(Config::RESENT.ask_us)));
    }
}

#[test]
fn an_ordered_transport_is_asked_for_nothing() {
    let mut buffer = ten_packets(Config::ORDERED);
    buffer.push(15, 15 * FRAME_US, 15, 15 * FRAME_US);
    assert_eq!(drain(&mut buffer, 15 * FRAME_US), [(10, 5), (15, 0)]);
    assert!(!buffer.is_missing());
}

#[test]
fn a_sender_that_sends_nothing_again_is_soon_not_asked_any_more() {
    let mut buffer = ten_packets(Config::RESENT);
    let mut seq = 10;
    for _ in 0..3 {
        let asked_us = lose(&mut buffer, seq, 2);
        assert_eq!(buffer.take_missing(0), behind(2));
        // A short gap is not waited for as long as a long one.
        let due_us = buffer.next_wake_us().unwrap();
        assert!((asked_us + 1..asked_us + Config::RESENT.resend_us).contains(&due_us));
        assert_eq!(drain(&mut buffer, due_us - 1), []);
        assert_eq!(drain(&mut buffer, due_us), [(seq, 2), (seq + 2, 0)]);
        seq += 30;
        let now_us = u64::from(seq - 1) * FRAME_US;
        for next in seq - 27..seq {
            buffer.push(next, u64::from(next) * FRAME_US, next, now_us);
        }
        drain(&mut buffer, now_us);
    }
    let now_us = u64::from(seq + 2) * FRAME_US;
    buffer.push(seq + 2, now_us, seq + 2, now_us);
    let given_up_us = now_us + buffer.depth_us();
    assert_eq!(drain(&mut buffer, given_up_us), [(seq, 2), (seq + 2, 0)]);
    assert!(!buffer.is_missing());
    // Over another connection it is asked again.
    buffer.resume(Config::RESENT);
    lose(&mut buffer, seq + 3, 2);
    assert!(buffer.is_missing());
}

#[test]
fn a_sender_that_sends_again_too_late_is_asked_on() {
    let mut buffer = ten_packets(Config::RESENT);
    let mut seq = 10;
    for _ in 0..6 {
        lose(&mut buffer, seq, 2);
        assert_eq!(buffer.take_missing(0), behind(2));
        let due_us = buffer.next_wake_us().unwrap();
        assert_eq!(drain(&mut buffer, due_us), [(seq, 2), (seq + 2, 0)]);
        assert_eq!(buffer.push(seq, 0, seq, due_us + 1), Pushed::TooLate);
        seq += 3;
    }
}

#[test]
fn late_answers_to_several_gaps_of_one_request_are_answers() {
    let mut buffer = ten_packets(Config::RESENT);
    for first in [10, 40, 70, 100, 130] {
        // Three gaps of two, and nothing comes in time.
        let mut now_us = 0;
        for seq in [first + 2, first + 5, first + 8] {
            now_us = u64::from(seq) * FRAME_US;
            buffer.push(seq, now_us, seq, now_us);
        }
        now_us += buffer.depth_us();
        drain(&mut buffer, now_us);
        assert_eq!(buffer.take_missing(0).map(|missing| missing.count), Some(2), "{first}");
        while let Some(wake_us) = buffer.next_wake_us() {
            now_us = now_us.max(wake_us);
            drain(&mut buffer, now_us);
        }
        assert_eq!(buffer.push(first, 0, first, now_us + 1), Pushed::TooLate);
        for seq in first + 9..first + 30 {
            buffer.push(seq, u64::from(seq) * FRAME_US, seq, now_us + 1);
        }
        drain(&mut buffer, now_us + 1);
    }
}

#[test]
fn what_came_behind_a_gap_comes_again_over_another_connection() {
    for config in [Config::ORDERED, Config::RESENT] {
        let mut buffer = ten_packets(Config::DATAGRAM);
        buffer.push(12, 12 * FRAME_US, 12, 12 * FRAME_US);
        buffer.resume(config);
        let now_us = 2_000_000;
        assert_eq!(drain(&mut buffer, now_us), [], "the gap is not given up");
        for seq in 10..13 {
            assert_eq!(buffer.push(seq, u64::from(seq) * FRAME_US, seq, now_us), Pushed::Accepted);
        }
        assert_eq!(drain(&mut buffer, now_us), [(10, 0), (11, 0), (12, 0)]);
    }
}

/// Wakes the buffer up until something is ready: when, and what.
fn wait(buffer: &mut JitterBuffer<u32>, until_us: u64) -> Option<(u64, Vec<(u32, u32)>)> {
    while let Some(wake_us) = buffer.next_wake_us().filter(|wake_us| *wake_us < until_us) {
        let ready = drain(buffer, wake_us);
        buffer.take_missing(wake_us);
        if !ready.is_empty() {
            return Some((wake_us, ready));
        }
    }
    None
}

#[test]
fn while_nothing_comes_a_gap_is_not_given_up() {
    const LAST_US: u64 = 15 * FRAME_US;
    let stalled = || {
        let mut buffer = ten_packets(Config::RESENT);
        buffer.note_voice(true);
        buffer.note_sending(true);
        lose(&mut buffer, 10, 5);
        assert_eq!(buffer.take_missing(0), behind(5));
        buffer
    };
    // The link is back after three seconds, and what was missing comes when it is asked for again.
    let mut buffer = stalled();
    let back_us = LAST_US + 3_000_000;
    assert_eq!(wait(&mut buffer, back_us), None);
    buffer.push(16, 16 * FRAME_US, 16, back_us);
    assert_eq!((drain(&mut buffer, back_us), buffer.take_missing(back_us)), (vec![], behind(5)));
    for seq in 10..15 {
        assert_eq!(buffer.push(seq, u64::from(seq) * FRAME_US, seq, back_us + 350_000), Pushed::Accepted);
    }
    assert_eq!(drain(&mut buffer, back_us + 350_000).len(), 7);
    assert_eq!(buffer.stats().lost, 0);
    // It is not back in time.
    let given_up = vec![(10, 5), (15, 0)];
    assert_eq!(wait(&mut stalled(), u64::MAX), Some((LAST_US + 8_000_000, given_up.clone())));
    // The sender has ended its stream, or begun a pause: that nothing comes is right.
    let mut buffer = stalled();
    buffer.note_sending(false);
    let (at_us, ready) = wait(&mut buffer, u64::MAX).unwrap();
    assert!(at_us < LAST_US + 500_000 && ready == given_up, "{at_us}: {ready:?}");
}

#[test]
fn where_packets_come_a_gap_that_does_not_come_is_given_up() {
    // In time, or together each half second.
    for (every, latest_us) in [(1, 500_000), (25, 2_500_000)] {
        let mut buffer = ten_packets(Config::RESENT);
        buffer.note_voice(true);
        buffer.note_sending(true);
        lose(&mut buffer, 10, 5);
        buffer.take_missing(0);
        let mut given_up = None;
        for seq in (16..200).step_by(every) {
            let now_us = (u64::from(seq) + every as u64 - 1) * FRAME_US;
            given_up = given_up.or_else(|| wait(&mut buffer, now_us));
            for seq in seq..seq + every as u32 {
                buffer.push(seq, u64::from(seq) * FRAME_US, seq, now_us);
            }
        }
        let (at_us, ready) = given_up.expect("given up");
        assert_eq!(ready[0], (10, 5));
        assert!(at_us < 15 * FRAME_US + latest_us, "{every}: {at_us}");
    }
}
