//! Tests of the chunks of an image on their way, in virtual time.

use super::*;

const RATE: u32 = 64 * 1_024;

fn sending(bytes: usize, offset: u32) -> Sending {
    let image = Arc::new(vec![7; bytes]);
    let mut sending = Sending { number: 1, bytes: image, sent: 0, stored: 0, next_us: 0, progress_us: 0 };
    assert!(sending.begin(offset, 1_000));
    sending
}

#[test]
fn the_window_and_the_rate_are_kept() {
    let mut sending = sending(100_000, 40_000);
    let mut sent = Vec::new();
    for now_us in 0..200_000 {
        sent.extend(sending.next_chunk(now_us, RATE).map(|(offset, _)| (now_us, offset)));
    }
    // One each 15.625 ms, and none behind the window.
    assert_eq!(sent, [(1_000, 40_000), (16_625, 41_024), (32_250, 42_048), (47_875, 43_072)]);
    assert!(!sending.may_send());
    assert!(sending.progress(42_048, 200_000));
    assert_eq!(sending.next_chunk(200_000, RATE), Some((44_096, 44_096..45_120)));
    assert_eq!(sending.next_chunk(200_001, RATE), None, "after a pause it does not catch up");
}

#[test]
fn progress_that_cannot_be_is_seen() {
    let mut sending = sending(3_000, 0);
    assert!(sending.next_chunk(1_000, RATE).is_some());
    assert!(!sending.progress(1_025, 2_000), "more than was sent");
    assert!(sending.progress(1_024, 2_000) && sending.progress(1_024, 2_000));
    assert!(!sending.progress(1_023, 2_000), "it does not shrink");
    for now_us in [100_000, 200_000] {
        assert!(sending.next_chunk(now_us, RATE).is_some());
    }
    assert_eq!((sending.sent, sending.chunk_bytes()), (3_000, 0), "the last one is shorter");
    assert!(sending.progress(3_000, 300_000) && !sending.may_send());
    assert!(!sending.begin(3_001, 0));
    assert_eq!((sending.sent, sending.may_send()), (3_000, false), "nothing begins there");
}

#[test]
fn a_device_that_stores_nothing_is_stalled() {
    let mut sending = sending(100_000, 0);
    assert!(!sending.is_stalled(u64::MAX), "it was sent nothing");
    assert!(sending.next_chunk(5_000_000, RATE).is_some());
    assert!(!sending.is_stalled(5_000_000 + STALLED_US_MAX - 1));
    assert!(sending.is_stalled(5_000_000 + STALLED_US_MAX));
    assert!(sending.progress(1_024, 6_000_000));
    assert!(!sending.is_stalled(u64::MAX), "all of it is stored");
}
