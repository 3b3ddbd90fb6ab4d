//! What the link does to sound, and how sound is coded for it.

use serde::{Deserialize, Serialize};

/// What came of the sound in one direction since the last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoundReport {
    /// From the device to the gateway.
    pub up: bool,
    /// Packets that came.
    pub received: u32,
    /// Packets that did not.
    pub lost: u32,
    /// How much longer the fastest of them was under way than any ever was, in microseconds: packets that queue in front
    /// of a narrow place are late, all of them.
    pub waited_us: u32,
}

/// How sound is coded, in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoundCoding {
    /// Bits per second of Opus, without headers.
    pub bitrate: u32,
    /// Milliseconds in one packet: 20, 40 or 60.
    pub packet_ms: u16,
    /// Percent of packets that are expected to be lost: how much each one tells of the one before it.
    pub loss_percent: u8,
}

impl Default for SoundCoding {
    /// What a microphone begins with, when nothing is known of its link: as little as is used at all.
    fn default() -> Self {
        Self { bitrate: 12_000, packet_ms: 60, loss_percent: 10 }
    }
}
