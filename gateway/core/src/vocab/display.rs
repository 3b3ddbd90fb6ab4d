//! Drawing commands for the glasses.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use serde::{Deserialize, Serialize};

use crate::limits::BITMAP_BYTES_MAX;

/// The two views of the glasses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// The view in front of the wearer's eyes.
    #[default]
    Main,
    /// Shown when the wearer looks up.
    Dashboard,
}

/// Priorities for the display. Later variants win over earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// A running timer, while nothing else uses the display.
    Timer,
    /// A mini-app.
    App,
    /// Captions of speech.
    Caption,
    /// The assistant's answer.
    Assistant,
    /// Reminders and notices.
    Notice,
    /// A question to the wearer.
    Approval,
}

/// A layout with its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "layout", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum Content {
    /// Running text.
    Text { text: String },
    /// A title above a text.
    Card {
        /// The line above.
        title: String,
        text: String,
    },
    /// A title above the remaining time, which the glasses count down.
    Countdown {
        /// The line above.
        title: String,
        /// Milliseconds left at the time of sending.
        left_ms: u32,
    },
    /// Two blocks of text.
    Double {
        /// Upper block.
        top: String,
        /// Lower block.
        bottom: String,
    },
    /// Two blocks of text side by side.
    Dashboard {
        /// Left block.
        left: String,
        /// Right block.
        right: String,
    },
    /// A picture.
    Bitmap {
        /// For glasses that draw pictures.
        bitmap: Bitmap,
        /// A description, for glasses that draw text only.
        text: String,
    },
}

impl Content {
    /// All its text.
    pub fn texts(&self) -> [&str; 2] {
        match self {
            Self::Text { text } | Self::Bitmap { text, .. } => [text, ""],
            Self::Card { title, text } => [title, text],
            // The time changes: an outdated time is never reported.
            Self::Countdown { title, .. } => [title, ""],
            Self::Double { top, bottom } => [top, bottom],
            Self::Dashboard { left, right } => [left, right],
        }
    }

    /// The same layout with different text.
    #[must_use]
    pub fn map_texts(self, mut change: impl FnMut(String) -> String) -> Self {
        match self {
            Self::Text { text } => Self::Text { text: change(text) },
            Self::Card { title, text } => Self::Card { title: change(title), text: change(text) },
            Self::Countdown { title, left_ms } => Self::Countdown { title: change(title), left_ms },
            Self::Double { top, bottom } => Self::Double { top: change(top), bottom: change(bottom) },
            Self::Dashboard { left, right } => Self::Dashboard { left: change(left), right: change(right) },
            Self::Bitmap { bitmap, text } => Self::Bitmap { bitmap, text: change(text) },
        }
    }
}

/// Seconds in the form for a small display: "3:10", "1:05:00".
pub fn countdown(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A picture of one bit per pixel: row by row from the top, each row starting at a byte boundary, the first pixel in
/// the highest bit; 1 is lit. Always complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawBitmap")]
pub struct Bitmap {
    width_px: u16,
    height_px: u16,
    pixels: Box<[u8]>,
}

/// The unchecked form, as received.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBitmap {
    width_px: u16,
    height_px: u16,
    pixels: Vec<u8>,
}

impl Bitmap {
    /// A picture. `None` if it is empty, larger than any display ([`BITMAP_BYTES_MAX`]), or if the bytes do not match
    /// the size.
    pub fn new(width_px: u16, height_px: u16, pixels: Vec<u8>) -> Option<Self> {
        let bytes = usize::from(width_px).div_ceil(8) * usize::from(height_px);
        let whole = bytes > 0 && bytes <= BITMAP_BYTES_MAX && bytes == pixels.len();
        whole.then(|| Self { width_px, height_px, pixels: pixels.into_boxed_slice() })
    }

    /// Pixels in a row.
    pub fn width_px(&self) -> u16 {
        self.width_px
    }

    /// Rows.
    pub fn height_px(&self) -> u16 {
        self.height_px
    }

    /// Rows from the top, each in whole bytes, with one bit per pixel.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }
}

impl TryFrom<RawBitmap> for Bitmap {
    type Error = &'static str;

    fn try_from(raw: RawBitmap) -> Result<Self, Self::Error> {
        Self::new(raw.width_px, raw.height_px, raw.pixels)
            .ok_or("a bitmap has height_px rows of width_px bits, each in whole bytes, at most 16000 bytes in all")
    }
}

/// What the core has the shell draw, or take away, on the glasses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisplayCommand {
    /// Draw; `revision` grows with every change of the view, so that late frames can be recognised.
    Show {
        /// The view that changes.
        view: View,
        /// A view shows the content of the highest one.
        priority: Priority,
        /// Grows with every change of the view.
        revision: u32,
        /// How long it is shown, in milliseconds; `None`: until replaced.
        duration_ms: Option<u32>,
        /// What to draw.
        content: Content,
    },
    /// Draw nothing.
    Clear {
        /// The view that is emptied.
        view: View,
        /// Grows with every change of the view.
        revision: u32,
    },
}
