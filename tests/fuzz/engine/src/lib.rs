//! Nothing but its dependency: `cargo xtask fuzz` takes libFuzzer from that one's build.
