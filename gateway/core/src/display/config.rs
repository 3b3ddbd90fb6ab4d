//! How apps share the display. The values are those of the MentraOS cloud's display manager, so that published apps
//! behave as they do there.

use serde::{Deserialize, Serialize};

/// Settings of the display. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Minimum time between two drawings of apps. If `display_interval_ms` of the conversation is longer, it applies.
    pub app_interval_ms: u32,
    /// How long the boot screen of an app is shown.
    pub boot_ms: u32,
    /// Longest time that a background app keeps the lock against other background apps.
    pub lock_ms_max: u32,
    /// Time without drawing after which it loses the lock.
    pub lock_idle_ms: u32,
    /// A drawing without a duration counts as read after this time and does not come back.
    pub consumed_ms: u32,
    /// Whether transcripts are shown on the main view while nothing of higher priority is.
    pub captions: bool,
    /// How long a caption is shown.
    pub caption_ms: u32,
    /// Whether the timer that is due next counts down on the main view while nothing else is shown.
    pub timers: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            app_interval_ms: 300,
            boot_ms: 1_500,
            lock_ms_max: 10_000,
            lock_idle_ms: 2_000,
            consumed_ms: 1_000,
            captions: false,
            caption_ms: 3_000,
            timers: true,
        }
    }
}
