//! Commands for simulated glasses.

use std::sync::Arc;

use device_protocol::{ButtonAction, ButtonId, Choice, Gesture};
use tokio::sync::oneshot;

use crate::acoustics::{Ambience, Change};
use crate::microphone::{Clip, ClipTimes};
use crate::network;
use crate::transport::Target;

/// Actions of the wearer.
pub(crate) enum Command {
    Say(Clip, oneshot::Sender<ClipTimes>),
    Button(ButtonId, ButtonAction),
    Touch(Gesture),
    Mute(bool),
    Text(String),
    Approve(u32, Choice),
    Battery(u8),
    Cut,
    /// Another network from now on.
    Network(network::Profile),
    /// Another acoustic world from now on; a noise comes with its sound.
    Acoustics(Change, Option<Arc<Ambience>>),
    /// Use another local address, as a device that roams does.
    Rebind,
    Reconnect(Option<Target>),
    Goodbye,
}
