//! Sound of a microphone is overwritten before its memory is given back.
#![allow(unsafe_code, reason = "only the allocator sees memory that is given back")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use audio::samples::Samples;

/// A sample that nothing else in this process has.
const MARK: i16 = 0x5a17;
static SOUND: [i16; 4_000] = [MARK; 4_000];
/// How many of them were given back.
static FOUND: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator; looks at samples that are given back.
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
        if layout.align() == align_of::<i16>() {
            let samples = block.cast::<i16>();
            // SAFETY: the block is still there, is aligned, and has so many samples.
            let is_mark = |at: &usize| unsafe { samples.add(*at).read_volatile() } == MARK;
            let found = (0..layout.size() / size_of::<i16>()).filter(is_mark).count();
            FOUND.fetch_add(found, Ordering::Relaxed);
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[test]
fn samples_that_are_dropped_or_grow_leave_nothing_behind() {
    let mut samples = Samples::default();
    for _ in 0..100 {
        samples.append(&SOUND);
    }
    assert_eq!((samples.len(), samples.iter().all(|sample| *sample == MARK)), (400_000, true));
    drop(black_box(Samples::from(&SOUND[..])));
    drop(samples);
    assert_eq!(FOUND.load(Ordering::Relaxed), 0);
    // Others do.
    drop(black_box(SOUND.to_vec()));
    assert_eq!(FOUND.load(Ordering::Relaxed), SOUND.len());
}
