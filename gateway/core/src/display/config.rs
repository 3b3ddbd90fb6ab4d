//! How apps share the display. The figures are those of the MentraOS cloud's display manager, so that published apps
//! behave as they do there.

/// Settings of the display. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Least time between two drawings of apps. A display that an operator declares slower
    /// (`display_interval_ms` of the conversation) is drawn that seldom.
    pub app_interval_ms: u32,
    /// How long the boot screen of an app stands.
    pub boot_ms: u32,
    /// Longest time that a background app holds the display against other background apps.
    pub lock_ms_max: u32,
    /// Time without drawing after which it holds it no longer.
    pub lock_idle_ms: u32,
    /// A drawing without a duration counts as read after so long, and does not come back.
    pub consumed_ms: u32,
    /// Whether what is understood is drawn on the main view while nothing else of more weight is.
    pub captions: bool,
    /// How long a caption stands.
    pub caption_ms: u32,
    /// Whether the timer that is due next counts on the main view while nobody else wants it.
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
