//! Judges devices by PROTOCOL.md: a gateway of its own, which has no assistant but a script. It leads a device through
//! steps, each of which does one thing and looks at what comes.
//!
//! `rules` has the rules, `watch`, `sound`, `playback` and `replay` judge frames as they come, on the time that they are
//! given; `session` sends and receives, `visit` takes connections in, `script`, `speaking` and `ends` have the steps.

mod clip;
mod ends;
mod handshake;
mod playback;
mod replay;
mod rules;
mod script;
mod session;
mod sound;
mod speaking;
mod visit;
mod watch;

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use device_protocol::{PairingMethod, limits};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::rules::{Judged, Rule, Verdict};
use self::{clip::Clip, visit::Visit};
use crate::{
    http::{Bound, links::Arrival, settings::Listen},
    identity::{GatewayKey, fingerprint, invitations::Code, random},
    limits::Traffic,
    private::write_private,
    runtime::on_own_thread,
    transport::{sockets::Sockets, tls},
};

/// Devices that are remembered as paired.
const PAIRED: &str = "judged-devices";
/// Folder of the key with which another gateway is played.
const OTHER: &str = "other-gateway";
/// Devices that are remembered: a maker judges a few.
const PAIRED_MAX: usize = 1_000;

/// How the judge works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folder of its keys and of the devices that are paired with it.
    pub folder: PathBuf,
    /// Folder of the voice; without one it plays a tone.
    pub voice: PathBuf,
    /// How much later than the document says something may come.
    pub grace: Duration,
    /// How long a person has to speak, and to switch the microphone off.
    pub patience: Duration,
    /// Between two heartbeats, where the device does not ask for more.
    pub heartbeat: Duration,
    /// How long the microphone is measured.
    pub measure: Duration,
    /// What a device may send.
    pub(crate) traffic: Traffic,
    /// Where to listen.
    pub(crate) listen: Listen,
}

impl Options {
    /// The usual times, for this configuration.
    pub fn new(config: &crate::config::Config, folder: &Path) -> Self {
        Self {
            folder: folder.to_path_buf(),
            voice: config.models_dir.join("hibari"),
            grace: Duration::from_secs(2),
            patience: Duration::from_secs(20),
            heartbeat: Duration::from_millis(limits::HEARTBEAT_MS_DEFAULT.into()),
            measure: Duration::from_secs(5),
            traffic: config.limits.traffic,
            listen: config.listen.clone(),
        }
    }

    /// Whether `ws://` is taken from other machines, too; by the configuration or by this.
    pub fn plain(mut self, plain: bool) -> Self {
        self.listen.plain |= plain;
        self
    }

    /// Other addresses.
    pub fn listening(mut self, web: SocketAddr, quic: Option<SocketAddr>) -> Self {
        (self.listen.web, self.listen.quic) = (web, quic);
        self
    }
}

/// What a person who waits is told.
#[derive(Clone, Debug)]
pub enum Progress {
    /// A device is judged from here on.
    Device {
        /// Fingerprint of its key.
        id: String,
        /// Maker and model, as it says.
        model: String,
        /// Name of the transport.
        transport: &'static str,
    },
    /// The glasses must show this; they are paired all the same.
    Pairing {
        /// How it is compared.
        method: PairingMethod,
        /// Six digits, or the fingerprint of the device's key.
        shown: String,
    },
    /// What the judge does, or what the wearer has to do.
    Step {
        /// In words.
        what: &'static str,
        /// How long it may take.
        within: Duration,
        /// Whether the wearer has to act.
        asks: bool,
    },
}

/// A device that was judged.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Fingerprint of its key; empty: it did not come that far.
    pub device: String,
    /// Name of the transport.
    pub transport: &'static str,
    /// All rules.
    pub judged: Vec<Judged>,
}

/// A listening judge: one device after the other is led through the script.
pub struct Judge {
    options: Options,
    key: GatewayKey,
    other: GatewayKey,
    code: Code,
    clip: Arc<Clip>,
    arrivals: mpsc::Receiver<Arrival>,
    paired: BTreeSet<String>,
    /// TCP.
    pub web: SocketAddr,
    /// UDP.
    pub quic: Option<SocketAddr>,
    _stop: DropGuard,
}

impl Judge {
    /// Listens.
    ///
    /// # Errors
    /// An address or the folder cannot be used.
    pub async fn start(options: Options) -> Result<Self> {
        let folder = options.folder.as_path();
        let other = folder.join(OTHER);
        fs::create_dir_all(&other).with_context(|| format!("making {}", other.display()))?;
        let (key, other) = (GatewayKey::load_or_make(folder)?, GatewayKey::load_or_make(&other)?);
        let sockets = Sockets::bind(options.listen.web, options.listen.quic).await?;
        let bound = Bound::new(sockets, &options.listen, tls::load_or_make(folder, vec!["localhost".to_owned()])?)?;
        let (web, quic) = (bound.web_address()?, bound.quic_address());
        let voice = options.voice.clone();
        let clip = on_own_thread(move || Clip::load(&voice)).await?;
        let stop = CancellationToken::new();
        let arrivals = bound.hand_over(&stop);
        let paired = fs::read_to_string(folder.join(PAIRED)).unwrap_or_default();
        Ok(Self {
            paired: paired.lines().take(PAIRED_MAX).map(str::to_owned).collect(),
            code: Code(random()?),
            options,
            key,
            other,
            clip: Arc::new(clip),
            arrivals,
            web,
            quic,
            _stop: stop.drop_guard(),
        })
    }

    /// Fingerprint of its key.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.key.public())
    }

    /// Code of the invitation that it takes, from any device.
    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// Waits for a device, and judges it. `told` hears of the progress. `None`: the listeners are gone.
    pub async fn next(&mut self, told: &mut (dyn FnMut(Progress) + Send)) -> Option<Judgement> {
        match Visit::begin(self, told).await? {
            Ok(visit) => Some(script::run(visit).await),
            Err(judgement) => Some(judgement),
        }
    }

    /// Remembers a device as paired.
    fn pair(&mut self, id: &str) {
        if self.paired.len() < PAIRED_MAX && self.paired.insert(id.to_owned()) {
            let all = self.paired.iter().fold(String::new(), |text, id| text + id + "\n");
            if let Err(error) = write_private(&self.options.folder.join(PAIRED), all.as_bytes()) {
                tracing::warn!(error = format!("{error:#}"), "the device is not remembered as paired");
            }
        }
    }
}
