//! What the sessions of devices share.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use audio::{asr::Scheduler, tts::Voice, vad::silero};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tools::{executor::Executor, registry::Registry};

use super::{prepare::Preparer, resume::Resumable, settings::SessionSettings};
use crate::{
    approvals::ApprovalBroker,
    apps::{host::Host, scene::Scenes},
    identity::{GatewayKey, Pairings},
    models::chain::ModelChain,
    ports::{context::ContextBuilder, preferences::Preferences},
    roster::Roster,
    runtime::compute::Compute,
    speech::ear::PauseJudge,
    store::Store,
    telemetry::{Losses, SoundPackets, Sparse, Turns},
    users::Users,
};

/// Shared state of all sessions. One per process.
pub struct Services {
    /// Settings of sessions.
    pub settings: SessionSettings,
    /// Persistent data.
    pub store: Store,
    /// Admission of connections.
    pub admission: Admission,
    /// Recognition and synthesis.
    pub engines: Engines,
    /// Connected devices.
    pub roster: Arc<Roster>,
    /// Sessions that may go on over another connection.
    pub(crate) resumable: Arc<Resumable>,
    /// The users' tasks.
    pub users: Arc<Users>,
    /// Running mini-apps.
    pub apps: Arc<Host>,
    /// Open questions to wearers.
    pub approvals: Arc<ApprovalBroker>,
    /// Users' choices between tools.
    pub preferences: Arc<Preferences>,
    /// The situation around a user's words.
    pub scenes: Scenes,
    /// The catalogue of tools.
    pub registry: Arc<Registry>,
    /// Runs tools.
    pub executor: Executor,
    /// The models that answer, best first.
    pub models: ModelChain,
    /// Prepares models for tools.
    pub preparer: Preparer,
    /// Builds the context about wearers for models.
    pub context: Arc<ContextBuilder>,
    /// Finished turns.
    pub turns: Arc<Turns>,
    /// Utterances that were not understood.
    pub losses: Arc<Losses>,
    /// Packets of sound, heard and lost.
    pub sound: SoundPackets,
}

/// From a connection to an admitted device.
pub struct Admission {
    /// The gateway's identity.
    pub key: GatewayKey,
    /// Pairings under way.
    pub pairings: Arc<Pairings>,
    /// Connections that may be in admission at once.
    pub joining: Semaphore,
    /// Open connections; stopping the gateway waits for them.
    pub open: TaskTracker,
    /// Set when the gateway stops.
    pub stop: CancellationToken,
    /// Limits log lines about rejected connections.
    pub turned_away: Sparse,
    sessions: AtomicU32,
}

impl Admission {
    /// Initial state. Half of all connections may be in admission at once.
    pub fn new(key: GatewayKey, connections_max: usize, stop: CancellationToken) -> Self {
        Self {
            key,
            pairings: Arc::default(),
            joining: Semaphore::new((connections_max / 2).max(1)),
            open: TaskTracker::new(),
            stop,
            turned_away: Sparse::default(),
            sessions: AtomicU32::new(1),
        }
    }

    /// The number of a new session, unique in the process.
    pub fn next_session(&self) -> u32 {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }
}

/// Loaded speech models, and the threads that run them.
#[derive(Clone)]
pub struct Engines {
    /// Recognition.
    pub asr: Arc<Scheduler>,
    /// Voice activity.
    pub silero: Arc<silero::Model>,
    /// Decides whether a pause ends the turn; `None` if switched off.
    pub judge: Option<PauseJudge>,
    /// Synthesis.
    pub voice: Arc<Voice>,
    /// Threads for synthesis.
    pub compute: Compute,
    /// The thread for files: photos, and the sounds of apps. Speech does not wait for them.
    pub files: Compute,
}
