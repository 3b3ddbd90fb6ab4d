//! What can go wrong outside.

use thiserror::Error;

/// Why a port could not do what was asked. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PortError {
    /// No room is left, for example on the disk.
    #[error("the storage is full: {0}")]
    Full(String),
    /// What stands behind the port is not there at the moment.
    #[error("not available: {0}")]
    Unavailable(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl PortError {
    /// The reason alone.
    pub fn why(&self) -> &str {
        match self {
            Self::Full(why) | Self::Unavailable(why) | Self::Failed(why) => why,
        }
    }
}
