//! Ctrl-C and SIGTERM as a flag, so that the demo can stop the gateway cleanly and remove its files.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Whether Ctrl-C or SIGTERM came since [`listen`].
pub(crate) fn came() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// From now on Ctrl-C and SIGTERM only set the flag. Children start with the default action.
#[cfg(unix)]
#[allow(unsafe_code, reason = "the standard library has no signals, and xtask no dependencies")]
pub(crate) fn listen() {
    extern "C" fn note(_signal: i32) {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    unsafe extern "C" {
        fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    }
    const SIGINT: i32 = 2;
    const SIGTERM: i32 = 15;
    // SAFETY: `signal` is in every C library with this signature (POSIX), both numbers are valid, and the handler does
    // nothing but an atomic store, which is async-signal-safe.
    unsafe {
        signal(SIGINT, note);
        signal(SIGTERM, note);
    }
}
