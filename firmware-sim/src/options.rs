//! Options of simulated glasses.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::acoustics::Acoustics;
use crate::delays::Delays;
use crate::firmware::Updates;
use crate::identity::Trust;
use crate::microphone::{BITRATE, Background};
use crate::network;
use crate::profile::Profile;
use crate::transport::Target;
use crate::wake::Chip;

/// How long the other way to a gateway is used, unless something else is wanted.
const FIRST_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// The kind of glasses, and where they connect.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the gateway is reached.
    pub target: Target,
    /// Another way to it, which is tried while the first one is silent or gone, and left again when that is back.
    pub other: Option<Target>,
    /// How long the other way is used before the first one is tried again.
    pub first_again_after: Duration,
    /// Folder of the identity.
    pub state: PathBuf,
    /// Which gateway glasses accept that are not paired.
    pub trust: Trust,
    /// The kind of glasses.
    pub profile: Profile,
    /// The network to the gateway; `None`: as it is.
    pub network: Option<network::Profile>,
    /// Seed of everything random: the network, noise, back-off.
    pub seed: u64,
    /// Background sound between sentences.
    pub background: Background,
    /// Echo, room, noise and half duplex.
    pub acoustics: Acoustics,
    /// Most bits per second of Opus.
    pub bitrate_max: u32,
    /// Whether Opus sends little in silence (discontinuous transmission); where the gateway finds the link thin, it does.
    pub dtx: bool,
    /// Whether a lost link is reopened.
    pub reconnect: bool,
    /// Whether speech is decoded and recorded; otherwise only its times are kept.
    pub decode: bool,
    /// Encoded silence for glasses that do not encode.
    pub silence: Option<Arc<[Bytes]>>,
    /// What counts how late sound is acknowledged; `None`: nothing does.
    pub delays: Option<Arc<Delays>>,
    /// Charge of the battery.
    pub battery_percent: u8,
    /// What hears the wake phrase in the glasses; `None`: the gateway does.
    pub wake: Option<Chip>,
    /// How the firmware is updated; `None`: it is not.
    pub updates: Option<Updates>,
}

impl Options {
    /// Typical glasses for this gateway.
    pub fn new(target: Target, state: &Path) -> Self {
        Self {
            target,
            other: None,
            first_again_after: FIRST_AGAIN_AFTER,
            state: state.to_path_buf(),
            trust: Trust::Anybody,
            profile: Profile::default(),
            network: None,
            seed: 0,
            background: Background::Noise(8),
            acoustics: Acoustics::default(),
            bitrate_max: BITRATE,
            dtx: false,
            reconnect: true,
            decode: true,
            silence: None,
            delays: None,
            battery_percent: 87,
            wake: None,
            updates: None,
        }
    }
}
