//! Stopping a computation in whisper.cpp from another thread.
#![allow(unsafe_code, reason = "whisper-rs has no sound safe way to set the abort callback")]

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use whisper_rs::{FullParams, WhisperError, WhisperState};

/// Runs Whisper; stops soon after `flag` becomes true (whisper.cpp asks between graph nodes).
///
/// `FullParams::set_abort_callback_safe` of whisper-rs 0.16 passes a doubly boxed closure to a callback that casts it
/// to the closure itself, and leaks it. Hence the callback is set here.
pub(super) fn full_until(
    state: &mut WhisperState,
    mut params: FullParams<'_, '_>,
    samples: &[f32],
    flag: Option<&AtomicBool>,
) -> Result<(), WhisperError> {
    if let Some(flag) = flag {
        let data = std::ptr::from_ref(flag).cast_mut().cast::<c_void>();
        // SAFETY: `data` points to an AtomicBool that is borrowed for longer than the call below,
        // which is the only user of `params`; `is_set` only reads it, atomically.
        unsafe {
            params.set_abort_callback(Some(is_set));
            params.set_abort_callback_user_data(data);
        }
    }
    state.full(params, samples)
}

/// # Safety
/// `data` points to a live `AtomicBool`.
unsafe extern "C" fn is_set(data: *mut c_void) -> bool {
    // SAFETY: see above.
    let flag = unsafe { &*data.cast_const().cast::<AtomicBool>() };
    flag.load(Ordering::Relaxed)
}
