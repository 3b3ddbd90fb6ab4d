//! The section `[display]`, checked.

use gateway_core::conversation::DisplayConfig;

use super::{Problems, raw::Display};

impl Problems<'_> {
    /// How apps share the display, and the least time between two changes of it, in milliseconds.
    pub(super) fn display(&mut self, raw: &Display) -> (DisplayConfig, u32) {
        let config = DisplayConfig {
            app_interval_ms: self.between(&raw.app_interval_ms, "display.app_interval_ms", 0..=10_000),
            boot_ms: self.between(&raw.boot_ms, "display.boot_ms", 0..=10_000),
            lock_ms_max: self.between(&raw.lock_ms_max, "display.lock_ms_max", 0..=300_000),
            lock_idle_ms: self.between(&raw.lock_idle_ms, "display.lock_idle_ms", 0..=300_000),
            consumed_ms: self.between(&raw.consumed_ms, "display.consumed_ms", 0..=60_000),
            captions: raw.captions,
            caption_ms: self.between(&raw.caption_ms, "display.caption_ms", 500..=60_000),
            timers: raw.timers,
        };
        self.in_order((&raw.lock_idle_ms, "display.lock_idle_ms"), (&raw.lock_ms_max, "display.lock_ms_max"));
        (config, self.between(&raw.interval_ms, "display.interval_ms", 50..=10_000))
    }
}
