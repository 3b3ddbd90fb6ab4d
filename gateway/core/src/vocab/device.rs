//! Properties of a pair of glasses known to the core.

use alloc::string::String;

use core::num::NonZeroU16;
use serde::{Deserialize, Serialize};

/// Facts from the device's hello, after authentication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Name of the device in the store (key fingerprint).
    pub id: String,
    /// The user that it belongs to.
    pub user: String,
    /// Present if it can draw.
    pub display: Option<DisplaySize>,
    /// Whether it can draw pictures; otherwise it receives their descriptions.
    pub bitmaps: bool,
    /// Whether it can play speech.
    pub speaker: bool,
    /// Whether its microphone is free of its own speaker's sound, so that a voice during playback is the wearer's.
    pub echo_cancelled: bool,
    /// Whether it shows captions of current speech.
    pub captions: bool,
}

/// Known state of the glasses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Charge, 0 to 100.
    pub battery_percent: Option<u8>,
    /// Whether it is being charged.
    pub charging: Option<bool>,
    /// How the glasses are connected, in words.
    pub connection: Option<String>,
}

/// Characters that fit on the display. Not specified by glasses that lay out text themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisplaySize {
    /// Characters in a line, if known.
    pub columns: Option<NonZeroU16>,
    /// Lines, if known.
    pub rows: Option<NonZeroU16>,
}

impl DisplaySize {
    /// A size in the form in which glasses send it: 0 stands for a number that is not known.
    pub fn new(columns: u16, rows: u16) -> Self {
        Self { columns: NonZeroU16::new(columns), rows: NonZeroU16::new(rows) }
    }

    /// Characters in a line and lines, if both are known.
    pub fn grid(self) -> Option<(u16, u16)> {
        Some((self.columns?.get(), self.rows?.get()))
    }

    /// Lines that a text may be broken into. Unlimited if the size is not known.
    pub(crate) fn lines_max(self) -> usize {
        self.grid().map_or(usize::MAX, |(_, rows)| usize::from(rows))
    }
}

/// State of the glasses' listening indicator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListeningState {
    /// Waiting for a wake word.
    #[default]
    Idle,
    /// The ear is open: what is said next is meant for the assistant.
    Attentive,
    /// Receiving speech.
    Hearing,
    /// Working on an answer.
    Thinking,
    /// Saying an answer.
    Speaking,
    /// The microphone is off.
    Muted,
}
