//! Errors of ports.

use thiserror::Error;

/// Why a port could not do what was asked. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PortError {
    /// No space is left, for example on the disk.
    #[error("the storage is full: {0}")]
    Full(String),
    /// The disk is mounted read-only.
    #[error("the storage cannot be written to: {0}")]
    ReadOnly(String),
    /// The service behind the port is currently not available.
    #[error("not available: {0}")]
    Unavailable(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

impl PortError {
    /// The reason without the prefix.
    pub fn why(&self) -> &str {
        match self {
            Self::Full(why) | Self::ReadOnly(why) | Self::Unavailable(why) | Self::Failed(why) => why,
        }
    }
}
