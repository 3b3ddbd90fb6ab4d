//! The form of sound that is not coded.

/// Sample rate of all clips in hertz.
pub const CLIP_HZ: u32 = 16_000;
