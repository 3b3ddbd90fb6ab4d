//! Faults of a microphone.

use serde::{Deserialize, Serialize};

/// What is wrong with a microphone's sound, judged by the sound alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MicrophoneFault {
    /// It sends packets, and all of their samples have one value.
    Dead,
    /// Its voice is cut off at the greatest value that a sample can have.
    Clipping,
    /// Its voice is far too quiet.
    Quiet,
    /// Its samples do not swing around zero.
    Offset,
}

impl MicrophoneFault {
    /// All of them, in the order of how much they matter.
    pub const ALL: [Self; 4] = [Self::Dead, Self::Clipping, Self::Quiet, Self::Offset];

    /// The word for it in statuses, metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Clipping => "clipping",
            Self::Quiet => "quiet",
            Self::Offset => "offset",
        }
    }
}
