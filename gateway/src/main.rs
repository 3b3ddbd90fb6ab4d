//! The `lorgnette` binary.
fn main() {}
