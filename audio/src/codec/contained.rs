//! Calls of a foreign coder, which may panic over what no encoder writes.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

thread_local! {
    /// Whether this thread is in such a call.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a coder; `false` if it refuses its input or panics. After a panic its state means nothing: it must be replaced.
pub(super) fn contained<E>(code: impl FnOnce() -> Result<(), E>) -> bool {
    let before = CONTAINED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(code));
    CONTAINED.set(before);
    matches!(done, Ok(Ok(())))
}

/// Has a coder's panic that is contained leave no message behind: it would be one for each packet of a hostile device.
/// All other panics are told as before. For programs, once, at their start.
pub fn silence_contained_panics() {
    let usual = take_hook();
    set_hook(Box::new(move |panicked| {
        if !CONTAINED.get() {
            usual(panicked);
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    thread_local! {
        static TOLD: Cell<u32> = const { Cell::new(0) };
    }

    #[test]
    fn only_a_contained_panic_is_silent() {
        let usual = take_hook();
        set_hook(Box::new(move |panicked| {
            TOLD.set(TOLD.get() + 1);
            usual(panicked);
        }));
        silence_contained_panics();
        assert!(contained(|| Ok::<_, ()>(())));
        assert!(!contained(|| Err(())));
        assert!(!contained::<()>(|| panic!("as told")));
        assert_eq!(TOLD.get(), 0);
        let told: std::thread::Result<()> = catch_unwind(|| panic!("as told"));
        assert!(told.is_err());
        assert_eq!(TOLD.get(), 1);
    }
}
