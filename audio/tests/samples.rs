//! Sound of a microphone is overwritten before its memory is given back.
#![allow(unsafe_code, reason = "only the allocator sees memory that is given back")]

#[cfg(all(feature = "vad", feature = "opus"))]
mod listener_clips;

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use audio::codec::{Codec, Decoder};
use audio::resample::Resampler;
use audio::samples::{Packet, Samples};

/// A sample that nothing else in this process has.
const MARK: i16 = 0x5a17;
static SOUND: [i16; 4_000] = [MARK; 4_000];
/// The same as a packet: 10 to 60 ms at 16 kHz are a part of it.
static PACKET: [[u8; 2]; 960] = [MARK.to_le_bytes(); 960];

/// The sound as it is in memory, by the alignment of what holds it: two samples of a packet, a sample, and one that is computed
/// with.
const IN_PACKETS: [u8; 4] = {
    let [low, high] = MARK.to_le_bytes();
    [low, high, low, high]
};
const IN_SAMPLES: [u8; 2] = MARK.to_ne_bytes();
const IN_FLOATS: [u8; 4] = (MARK as f32).to_ne_bytes();

/// How often it was given back.
static FOUND: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator; looks at sound that is given back.
struct Watching;

#[global_allocator]
static ALLOCATOR: Watching = Watching;

// SAFETY: the blocks are those of the system's allocator, with the layouts that were asked for.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on. All of a block has a value, so that all of it may be looked at.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let mark: &[u8] = match layout.align() {
            1 => &IN_PACKETS,
            2 => &IN_SAMPLES,
            4 => &IN_FLOATS,
            _ => &[],
        };
        if !mark.is_empty() {
            // SAFETY: the block is still there, and has so many bytes.
            let byte = |at: usize| unsafe { block.add(at).read_volatile() };
            let is_mark =
                |at: &usize| mark.iter().enumerate().all(|(n, expected)| byte(at * mark.len() + n) == *expected);
            let found = (0..layout.size() / mark.len()).filter(is_mark).count();
            FOUND.fetch_add(found, Ordering::Relaxed);
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Nothing is found yet, and no other test gives anything back meanwhile.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    FOUND.store(0, Ordering::Relaxed);
    alone
}

fn found() -> usize {
    FOUND.load(Ordering::Relaxed)
}

/// The first samples of the packet.
fn packet(samples: usize) -> &'static [u8] {
    PACKET[..samples].as_flattened()
}

#[test]
fn samples_that_are_dropped_or_grow_leave_nothing_behind() {
    let _alone = alone();
    let mut samples = Samples::default();
    for _ in 0..100 {
        samples.append(&SOUND);
    }
    assert_eq!((samples.len(), samples.iter().all(|sample| *sample == MARK)), (400_000, true));
    drop(black_box(Samples::from(&SOUND[..])));
    drop(black_box(Packet::from(packet(960))));
    drop(samples);
    assert_eq!(found(), 0);
    // Others do.
    drop(black_box(SOUND.to_vec()));
    assert_eq!(found(), SOUND.len());
    drop(black_box(packet(960).to_vec()));
    assert_eq!(found(), SOUND.len() + 480);
    drop(black_box(SOUND.map(f32::from).to_vec()));
    assert_eq!(found(), 2 * SOUND.len() + 480);
}

#[test]
fn decoders_and_resamplers_leave_nothing_behind() {
    let _alone = alone();
    // As long as it gets: what is returned belongs to the caller, and is not to grow here.
    let mut out = Vec::with_capacity(20 * SOUND.len());
    let mut decoder = Decoder::new(Codec::Pcm16, 16_000).unwrap();
    for samples in [160, 320, 960, 160] {
        assert_eq!(decoder.decode(packet(samples), &mut out), Ok(samples));
    }
    decoder.release();
    decoder.decode(packet(320), &mut out).unwrap();
    drop(black_box(decoder));
    assert_eq!(found(), 0);
    let mut resampler = Resampler::new(48_000, 16_000).unwrap();
    for samples in [480, 960, 2_880, 4_000] {
        resampler.push(&SOUND[..samples], &mut out);
    }
    resampler.reset();
    resampler.push(&SOUND, &mut out);
    drop(black_box(resampler));
    assert_eq!(found(), 0);
    assert!(out.contains(&MARK));
    // Kept until here.
    drop(black_box(out));
    assert!(found() > 0);
}

/// What waits behind a gap, what is filled in, and what is kept when it is muted or goes.
#[cfg(all(feature = "vad", feature = "opus"))]
#[test]
fn a_listener_leaves_nothing_behind() {
    use audio::jitter;
    use audio::listener::{Config, Listener};

    let _alone = alone();
    let model = listener_clips::model();
    FOUND.store(0, Ordering::Relaxed);
    for is_muted in [false, true] {
        let config = Config { jitter: jitter::Config::RESENT, ..Config::default() };
        let mut ear = Listener::new(config, model.clone()).unwrap();
        let mut facts = Vec::new();
        let mut at_us = 0;
        for (seq, samples) in (1..26).zip([160, 320, 960].into_iter().cycle()) {
            if !(20..23).contains(&seq) {
                ear.push_packet(seq, at_us, packet(samples), at_us, &mut facts).unwrap();
            }
            at_us += samples as u64 * 125 / 2;
        }
        assert_eq!(ear.last_sequence(), Some(19), "the last three wait");
        let late_us = at_us + 10_000_000;
        while ear.is_ready(late_us) {
            ear.tick(late_us, &mut facts);
        }
        assert_eq!(ear.last_sequence(), Some(25));
        // The device has sent nothing for a while, and what follows waits until the end.
        ear.push_packet(26, at_us + 600_000, packet(320), late_us, &mut facts).unwrap();
        ear.push_packet(28, at_us + 640_000, packet(320), late_us, &mut facts).unwrap();
        assert_eq!(ear.last_sequence(), Some(26));
        if is_muted {
            ear.set_muted(true);
            assert_eq!(found(), 0, "muted");
        }
        drop(black_box(ear));
        assert_eq!(found(), 0);
    }
}
