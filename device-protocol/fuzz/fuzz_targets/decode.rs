//! Arbitrary bytes of a peer: nothing panics, and what decodes encodes again to the same message, in both forms.
//!
//! `cargo +nightly fuzz run decode -- -max_total_time=60` from `device-protocol/`.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The same check that `cargo test` runs over the committed corpus.
#[path = "../../tests/check/mod.rs"]
mod check;

fuzz_target!(|bytes: &[u8]| check::peer_bytes(bytes));
