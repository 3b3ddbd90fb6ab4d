//! The jitter buffer on simulated links: order, loss, duplication, wrapping, and waiting times.

mod requests;

use std::collections::BTreeSet;

use audio::jitter::{Config, HELD_MAX, JitterBuffer, Missing, Pushed, Slot};
use proptest::prelude::*;

const FRAME_US: u64 = 20_000;

/// Everything that is ready, as (sequence number, number lost; 0 for a packet).
fn drain(buffer: &mut JitterBuffer<u32>, now_us: u64) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    loop {
        match buffer.pop_ready(now_us) {
            Slot::Packet { seq, payload, .. } => {
                assert_eq!(seq, payload);
                out.push((seq, 0));
            }
            Slot::Lost { seq, count } => {
                assert!(count > 0);
                out.push((seq, count));
            }
            Slot::Wait => return out,
        }
    }
}

#[test]
fn in_order_packets_are_never_delayed_however_they_jitter() {
    let mut buffer = JitterBuffer::new(Config::DATAGRAM);
    let mut now_us = 0;
    for seq in 0..500u32 {
        let capture_us = u64::from(seq) * FRAME_US;
        now_us = now_us.max(capture_us + u64::from(seq * 7_919 % 90) * 1_000);
        assert_eq!(buffer.push(seq, capture_us, seq, now_us), Pushed::Accepted);
        assert_eq!(drain(&mut buffer, now_us), [(seq, 0)]);
        assert_eq!(buffer.next_wake_us(), None);
    }
}

#[test]
fn a_gap_is_given_up_after_the_depth_and_not_before() {
    let mut buffer = JitterBuffer::new(Config::DATAGRAM);
    for seq in 0..10 {
        buffer.push(seq, u64::from(seq) * FRAME_US, seq, u64::from(seq) * FRAME_US);
        drain(&mut buffer, u64::from(seq) * FRAME_US);
    }
    let now_us = 12 * FRAME_US;
    buffer.push(12, now_us, 12, now_us);
    let due_us = now_us + buffer.depth_us();
    assert_eq!(buffer.depth_us(), 20_000, "a quiet link waits for the least");
    assert_eq!(buffer.next_wake_us(), Some(due_us));
    assert_eq!(drain(&mut buffer, due_us - 1), []);
    assert_eq!(drain(&mut buffer, due_us), [(10, 2), (12, 0)]);
    assert_eq!(buffer.push(11, 11 * FRAME_US, 11, due_us), Pushed::TooLate);
    assert_eq!(buffer.push(12, now_us, 12, due_us), Pushed::Duplicate);
    let stats = buffer.stats();
    assert_eq!((stats.delivered, stats.lost, stats.late, stats.duplicate), (11, 2, 1, 1));
}

#[test]
fn an_ordered_transport_waits_for_nothing() {
    let mut buffer = JitterBuffer::new(Config::ORDERED);
    buffer.push(5, 0, 5, 0);
    buffer.push(9, 80_000, 9, 900_000);
    assert_eq!(drain(&mut buffer, 900_000), [(5, 0), (6, 3), (9, 0)]);
}

#[test]
fn depth_follows_what_the_link_does_and_forgets_it() {
    let mut buffer = JitterBuffer::new(Config::DATAGRAM);
    let mut now_us = 0;
    // Every tenth packet is overtaken by two others.
    for block in 0..20u32 {
        let first = block * 10;
        for seq in (first..first + 7).chain([first + 8, first + 9, first + 7]) {
            now_us += FRAME_US;
            buffer.push(seq, u64::from(seq) * FRAME_US, seq, now_us);
            drain(&mut buffer, now_us);
        }
    }
    let wide_us = buffer.depth_us();
    assert!((40_000..=120_000).contains(&wide_us), "{wide_us}");
    let before = buffer.stats();
    assert!(before.lost <= 2, "only the first few are given up: {before:?}");
    for seq in 200..2_000u32 {
        now_us += FRAME_US;
        buffer.push(seq, u64::from(seq) * FRAME_US, seq, now_us);
        drain(&mut buffer, now_us);
    }
    assert_eq!(buffer.depth_us(), 20_000, "after half a minute in order");
}

#[test]
fn a_leap_is_one_slot_and_a_full_buffer_does_not_wait() {
    let mut buffer = JitterBuffer::new(Config::DATAGRAM);
    buffer.push(0, 0, 0, 0);
    drain(&mut buffer, 0);
    buffer.push(2_000_000_000, 0, 2_000_000_000, 10);
    assert_eq!(drain(&mut buffer, 200_000), [(1, 1_999_999_999), (2_000_000_000, 0)]);
    for seq in 2_000_000_002..2_000_000_002 + HELD_MAX as u32 {
        assert_eq!(buffer.push(seq, 0, seq, 200_000), Pushed::Accepted);
    }
    assert_eq!(buffer.push(2_000_001_000, 0, 2_000_001_000, 200_000), Pushed::Full);
    assert_eq!(drain(&mut buffer, 200_000).len(), 1 + HELD_MAX);
    assert_eq!(buffer.stats().overflow, 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A link that delays, loses and duplicates packets, starting anywhere in the sequence space: each number comes out
    /// exactly once, as packet or as lost, in order, and every refused packet was late or a duplicate.
    #[test]
    fn each_number_comes_out_once_and_in_order(
        start in prop_oneof![Just(0u32), Just(u32::MAX - 20), any::<u32>()],
        fates in prop::collection::vec((0u64..150_000, 0u8..20), 2..120),
        step_us in 1_000u64..40_000,
        config in prop_oneof![Just(Config::DATAGRAM), Just(Config::RESENT), Just(Config::RESENT.with_copies(true))],
        is_voice in any::<bool>(),
    ) {
        let wait_us_max = config.depth_us_max.max(config.resend_us);
        let mut arrivals = Vec::new();
        for (index, (delay_us, fate)) in fates.iter().enumerate() {
            let capture_us = index as u64 * FRAME_US;
            // The first packet is neither lost nor overtaken: it sets the sequence.
            let (delay_us, fate) = if index == 0 { (0, 19) } else { (*delay_us, *fate) };
            if fate == 0 { continue; }
            arrivals.push((capture_us + delay_us, index as u32));
            if fate == 1 { arrivals.push((capture_us + delay_us + 7_000, index as u32)); }
        }
        arrivals.sort();
        let mut buffer = JitterBuffer::new(config);
        buffer.note_voice(is_voice);
        let (mut out, mut now_us, mut refused, mut overflow) = (Vec::new(), 0, 0u64, 0u64);
        for (at_us, index) in &arrivals {
            while now_us + step_us < *at_us {
                now_us += step_us;
                out.extend(drain(&mut buffer, now_us));
            }
            now_us = *at_us;
            let seq = start.wrapping_add(*index);
            match buffer.push(seq, u64::from(*index) * FRAME_US, seq, now_us) {
                Pushed::Accepted => {}
                Pushed::Full => overflow += 1,
                _ => refused += 1,
            }
            out.extend(drain(&mut buffer, now_us));
        }
        // Without further packets it gives up every gap in time.
        while let Some(wake_us) = buffer.next_wake_us() {
            prop_assert!(wake_us <= now_us + wait_us_max);
            now_us = now_us.max(wake_us);
            out.extend(drain(&mut buffer, now_us));
        }
        let mut expected = start;
        let mut delivered = BTreeSet::new();
        for (seq, lost) in &out {
            prop_assert_eq!(*seq, expected);
            expected = expected.wrapping_add((*lost).max(1));
            if *lost == 0 { prop_assert!(delivered.insert(*seq)); }
        }
        let stats = buffer.stats();
        prop_assert_eq!(overflow, 0);
        prop_assert_eq!(stats.delivered, delivered.len() as u64);
        prop_assert_eq!(stats.delivered + refused, arrivals.len() as u64);
        prop_assert_eq!(stats.late + stats.duplicate, refused);
    }

    /// For any pushes: no panic, no more packets held than the bound, never the same number twice.
    #[test]
    fn anything_may_be_pushed(pushes in prop::collection::vec((any::<u32>(), any::<u64>(), any::<u64>(), any::<bool>()), 0..300)) {
        let mut buffer = JitterBuffer::new(Config::RESENT);
        let mut held = 0usize;
        let mut last: Option<u32> = None;
        for (seq, capture_us, now_us, pop) in pushes {
            if buffer.push(seq, capture_us, seq, now_us) == Pushed::Accepted { held += 1; }
            prop_assert!(held <= HELD_MAX);
            buffer.note_voice(now_us % 2 == 0);
            let _ = (buffer.next_wake_us(), buffer.take_missing(0));
            prop_assert!(!buffer.is_missing());
            if !pop { continue; }
            for (seq, lost) in drain(&mut buffer, now_us) {
                if lost == 0 {
                    held -= 1;
                    if let Some(last) = last { prop_assert!(seq.wrapping_sub(last) as i32 > 0); }
                    last = Some(seq);
                }
            }
        }
    }
}
