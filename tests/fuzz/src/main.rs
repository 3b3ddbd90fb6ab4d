//! One check under libFuzzer: the environment names the target. `cargo xtask fuzz` builds and runs it.
#![no_main]
#![allow(unsafe_code, reason = "libFuzzer's entry points are C functions")]

use std::{
    ffi::{c_char, c_int},
    panic, process, slice,
    sync::OnceLock,
};

use fuzz::Target;

// It has `main`, and is itself C++.
#[link(name = "fuzzer", kind = "static")]
#[link(name = "stdc++")]
unsafe extern "C" {}

static TARGET: OnceLock<Target> = OnceLock::new();

/// Called once by libFuzzer.
#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerInitialize(_count: *const c_int, _arguments: *const *const *const c_char) -> c_int {
    let named = std::env::var("LORGNETTE_FUZZ_TARGET").unwrap_or_default();
    let Some(target) = fuzz::TARGETS.iter().find(|target| target.name == named) else {
        eprintln!("LORGNETTE_FUZZ_TARGET is `{named}`, which is no target");
        process::exit(1);
    };
    TARGET.get_or_init(|| *target);
    // A panic on any thread is a finding, also where a runtime would catch it.
    let told = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        // Our wrappers of these contain their panics.
        let contained = |file: &str| ["/lc3-codec-", "/rten-"].iter().any(|name| file.contains(name));
        if panicked.location().is_some_and(|place| contained(place.file())) {
            return;
        }
        told(panicked);
        process::abort();
    }));
    // Models are loaded now, not in the time of the first input.
    (target.check)(&[0]);
    0
}

/// Called by libFuzzer for each input.
///
/// # Safety
/// `data` has `size` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> c_int {
    // SAFETY: libFuzzer's contract; it passes null only for no bytes.
    let bytes = if size == 0 { &[] } else { unsafe { slice::from_raw_parts(data, size) } };
    if let Some(target) = TARGET.get() {
        (target.check)(bytes);
    }
    0
}
