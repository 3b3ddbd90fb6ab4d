//! What every connection needs.

use std::{
    net::SocketAddr,
    sync::{Arc, atomic::AtomicU32},
};

use audio::{asr::Scheduler, tts::Voice, vad::silero};
use gateway_core::vocab::Scene;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tools::{executor::Executor, memory::Memory, registry::Registry, sides};

use crate::{
    apps::{host::Host, installed::Installed},
    config::{Checked, Limits},
    ear::PauseJudge,
    effects::{books::StoredSwitches, context::Remembered, preferences::Preferences, prepare::Preparer},
    health::Health,
    identity::{GatewayKey, Pairings},
    mcp::Mcp,
    questions::Questions,
    ranks::Ranks,
    roster::Roster,
    runtime::compute::Compute,
    skills::Folders,
    store::Store,
    telemetry::{Losses, Sparse, Turns},
    users::Users,
};

/// Everything that a connection needs. One per process.
pub struct Gate {
    /// Set when the gateway stops.
    pub stop: CancellationToken,
    /// Connections that are open.
    pub open: TaskTracker,
    /// The checked configuration.
    pub config: Checked,
    /// The gateway's identity.
    pub key: GatewayKey,
    /// What outlives the process.
    pub store: Store,
    /// Pairings under way.
    pub pairings: Pairings,
    /// Who is connected.
    pub roster: Arc<Roster>,
    /// The users' tasks.
    pub users: Arc<Users>,
    /// The catalogue of tools.
    pub registry: Arc<Registry>,
    /// Mini-apps that are installed.
    pub installed: Arc<Installed>,
    /// Mini-apps that run.
    pub apps: Arc<Host>,
    /// Runs tools.
    pub executor: Executor,
    /// What users have switched off.
    pub switches: Arc<StoredSwitches>,
    /// What users have chosen between tools.
    pub preferences: Preferences,
    /// MCP in both directions.
    pub mcp: Mcp,
    /// What is kept of wearers, as the tools have it.
    pub memory: Memory,
    /// What models are told of wearers.
    pub remembered: Arc<Remembered>,
    /// Skills.
    pub skills: Arc<Folders>,
    /// One erasure at a time.
    pub erasing: tokio::sync::Mutex<()>,
    /// Open questions to wearers.
    pub questions: Arc<Questions>,
    /// Who answers, best first.
    pub models: Ranks,
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
    /// Prepares models for tools.
    pub preparer: Preparer,
    /// Finished turns.
    pub turns: Turns,
    /// Number of the next session.
    pub sessions: AtomicU32,
    /// Connections that may be on their way into a session at once.
    pub joining: Semaphore,
    /// When the gateway was started, in microseconds of its clock.
    pub started_us: u64,
    /// Where it listens: WebSocket and pages.
    pub web: SocketAddr,
    /// Where it listens for QUIC.
    pub quic: Option<SocketAddr>,
    /// Whether it can keep what it is told.
    pub health: Health,
    /// Lines of the log about those who were turned away.
    pub turned_away: Sparse,
    /// Utterances that were never understood.
    pub losses: Losses,
}

impl Gate {
    /// Limits on connections.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// What is going on around a user's words at this moment.
    pub fn scene(&self, user: &str) -> Scene {
        let timer_runs = self.store.disk().entries(user).is_ok_and(|all| all.iter().any(|(_, one)| !one.reminder));
        let busy = if timer_runs { vec![sides::timers()] } else { Vec::new() };
        Scene { apps: self.apps.scene(user), busy, preferences: self.preferences.of(user) }
    }
}
