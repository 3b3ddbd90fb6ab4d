//! What can go wrong with simulated glasses.

use std::time::Duration;

use audio::wav;

use crate::{handshake, identity, transport};

/// Why something did not work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Key files.
    #[error(transparent)]
    Identity(#[from] identity::Error),
    /// No connection.
    #[error(transparent)]
    Transport(#[from] transport::Error),
    /// No session.
    #[error(transparent)]
    Handshake(#[from] handshake::Error),
    /// The gateway wants sound that cannot be made.
    #[error("sound format: {0}")]
    Format(String),
    /// A sound file that cannot be written.
    #[error(transparent)]
    Wav(#[from] wav::Error),
    /// The session is over.
    #[error("the session is over")]
    Over,
    /// It did not happen in time.
    #[error("waited {0:?} in vain")]
    TimedOut(Duration),
    /// The voice.
    #[error("the simulator's voice: {0}")]
    Voice(String),
}

impl Error {
    /// True where the same attempt may work later.
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
