//! The unit of sound inside the gateway.

/// Sample rate of all microphone sound inside the gateway, in hertz.
pub const RATE_HZ: u32 = 16_000;

/// Samples in one 20 ms frame at [`RATE_HZ`].
pub const FRAME_SAMPLES: usize = 320;

/// Duration of one frame in microseconds.
pub const FRAME_US: u64 = 20_000;

/// Duration of `samples` at `rate_hz` in microseconds, rounded down.
pub fn samples_to_us(samples: u64, rate_hz: u32) -> u64 {
    samples.saturating_mul(1_000_000) / u64::from(rate_hz.max(1))
}

/// Samples that fit into `us` microseconds at `rate_hz`, rounded down.
pub fn us_to_samples(us: u64, rate_hz: u32) -> u64 {
    us.saturating_mul(u64::from(rate_hz)) / 1_000_000
}
