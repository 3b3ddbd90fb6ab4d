//! What simulated glasses are told beforehand.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::faults::FaultOptions;
use crate::microphone::Background;
use crate::profile::Profile;
use crate::transport::Target;

/// What the glasses are and where they connect.
#[derive(Clone, Debug)]
pub struct Options {
    /// The gateway.
    pub target: Target,
    /// Folder of the identity.
    pub state: PathBuf,
    /// What the glasses are.
    pub profile: Profile,
    /// What the network does.
    pub faults: FaultOptions,
    /// What the microphone hears between sentences.
    pub background: Background,
    /// Whether a lost link is opened again.
    pub reconnect: bool,
    /// Whether speech is decoded and recorded; without, only its times are kept.
    pub decode: bool,
    /// Coded silence for glasses that encode nothing themselves.
    pub silence: Option<Arc<[Bytes]>>,
    /// Charge of the battery.
    pub battery_percent: u8,
}

impl Options {
    /// Usual glasses at this gateway.
    pub fn new(target: Target, state: &Path) -> Self {
        Self {
            target,
            state: state.to_path_buf(),
            profile: Profile::default(),
            faults: FaultOptions::default(),
            background: Background::Noise(8),
            reconnect: true,
            decode: true,
            silence: None,
            battery_percent: 87,
        }
    }
}
