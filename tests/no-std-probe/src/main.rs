//! Proves that `device-protocol` and `gateway-core` live without std; it is built, never run.
#![no_std]
#![no_main]

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;

use device_protocol as _;
use gateway_core as _;

#[cfg(feature = "with-std")]
extern crate std;

/// `gateway-core` uses `alloc`, which needs some allocator to link; this one never has memory.
struct NoMemory;

// SAFETY: returning null is the documented way to say that an allocation failed, and so there is
// never a block to free.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _layout: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _block: *mut u8, _layout: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    loop {}
}

// The C start-up code wants a `main`, and the C library has the memory functions core calls.
#[link(name = "c")]
unsafe extern "C" {}

/// Entry point for the C start-up code.
// SAFETY: the only symbol of this name in a program that has no Rust `main`.
#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    0
}

/// The precompiled core library was built to unwind and names its personality routine; with
/// `panic = "abort"` nothing ever calls it.
// SAFETY: nobody else defines this symbol, or linking would fail.
#[unsafe(no_mangle)]
pub extern "C" fn rust_eh_personality() {}
