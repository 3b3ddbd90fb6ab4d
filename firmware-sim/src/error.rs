//! Errors of simulated glasses.

use std::time::Duration;

use audio::wav;

use crate::{handshake, identity, transport};

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key file.
    #[error(transparent)]
    Identity(#[from] identity::Error),
    /// The flash of the glasses.
    #[error(transparent)]
    Firmware(#[from] crate::firmware::Error),
    /// The connection failed.
    #[error(transparent)]
    Transport(#[from] transport::Error),
    /// The handshake failed.
    #[error(transparent)]
    Handshake(#[from] handshake::Error),
    /// The gateway requests sound in an unsupported format.
    #[error("sound format: {0}")]
    Format(String),
    /// A sound file cannot be written.
    #[error(transparent)]
    Wav(#[from] wav::Error),
    /// The session is over.
    #[error("the session is over")]
    Over,
    /// The event did not occur in time.
    #[error("waited {0:?} in vain")]
    TimedOut(Duration),
    /// The sound of the world around the glasses.
    #[error("acoustics: {0}")]
    Acoustics(String),
    /// The voice failed.
    #[error("the simulator's voice: {0}")]
    Voice(String),
}

impl Error {
    /// True if the same attempt may succeed later.
    pub(crate) fn may_retry(&self) -> bool {
        match self {
            Self::Transport(_) => true,
            Self::Handshake(error) => match error {
                handshake::Error::Rejected { for_good, .. } => !for_good,
                handshake::Error::Closed(_) | handshake::Error::Timeout => true,
                _ => false,
            },
            _ => false,
        }
    }
}
