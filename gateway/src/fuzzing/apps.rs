//! Frames, drawings, sound and storage of mini-apps.

use std::sync::LazyLock;

use super::{run, store};
use crate::{apps::fuzzing, store::Store};

/// A text frame on an app's socket.
pub fn frame(bytes: &[u8]) {
    fuzzing::frame(bytes);
}

/// The layout of a drawing as JSON: what is read of it fits a display.
pub fn layout(bytes: &[u8]) {
    fuzzing::layout(bytes);
}

/// A picture's file, and the base64 in which apps send it.
pub fn picture(bytes: &[u8]) {
    fuzzing::picture(bytes);
}

/// Streams of sound over the socket.
pub fn relay(bytes: &[u8]) {
    fuzzing::relay(bytes);
}

/// What an app stores, and its settings.
pub fn storage(bytes: &[u8]) {
    static STORE: LazyLock<Store> = LazyLock::new(|| store("apps").0);
    run(fuzzing::storage(bytes, &STORE));
}
