//! What the sessions of devices work with.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use audio::{asr::Scheduler, tts::Voice, vad::silero};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tools::{executor::Executor, registry::Registry};

use super::{prepare::Preparer, settings::SessionSettings};
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
    telemetry::{Losses, Sparse, Turns},
    users::Users,
};

/// Everything that sessions share. One per process.
pub struct Services {
    /// What they are run with.
    pub settings: SessionSettings,
    /// What outlives the process.
    pub store: Store,
    /// Who may come in.
    pub admission: Admission,
    /// Recognition and synthesis.
    pub engines: Engines,
    /// Who is connected.
    pub roster: Arc<Roster>,
    /// The users' tasks.
    pub users: Arc<Users>,
    /// Mini-apps that run.
    pub apps: Arc<Host>,
    /// Open questions to wearers.
    pub approvals: Arc<ApprovalBroker>,
    /// What users have chosen between tools.
    pub preferences: Arc<Preferences>,
    /// What is going on around a user's words.
    pub scenes: Scenes,
    /// The catalogue of tools.
    pub registry: Arc<Registry>,
    /// Runs tools.
    pub executor: Executor,
    /// Who answers, best first.
    pub models: ModelChain,
    /// Prepares models for tools.
    pub preparer: Preparer,
    /// What models are told of wearers.
    pub context: Arc<ContextBuilder>,
    /// Finished turns.
    pub turns: Arc<Turns>,
    /// Utterances that were never understood.
    pub losses: Arc<Losses>,
}

/// From a connection to an admitted device.
pub struct Admission {
    /// The gateway's identity.
    pub key: GatewayKey,
    /// Pairings under way.
    pub pairings: Arc<Pairings>,
    /// Connections that may be on their way into a session at once.
    pub joining: Semaphore,
    /// Connections that are open: whoever stops the gateway waits for them.
    pub open: TaskTracker,
    /// Set when the gateway stops.
    pub stop: CancellationToken,
    /// Lines of the log about those who were turned away.
    pub turned_away: Sparse,
    sessions: AtomicU32,
}

impl Admission {
    /// Nobody has come yet. Half of all connections may be joining at once.
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

/// Loaded models of hearing and speaking, and the threads that run them.
#[derive(Clone)]
pub struct Engines {
    /// Recognition.
    pub asr: Arc<Scheduler>,
    /// Voice activity.
    pub silero: Arc<silero::Model>,
    /// Judges whether a pause is the end; absent when that is off.
    pub judge: Option<PauseJudge>,
    /// Synthesis.
    pub voice: Arc<Voice>,
    /// Threads for synthesis.
    pub compute: Compute,
}
