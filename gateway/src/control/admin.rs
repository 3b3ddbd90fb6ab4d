//! What an operator may look at and change.

use std::{net::SocketAddr, sync::Arc};

use tokio_util::sync::CancellationToken;
use tools::{executor::Executor, registry::Registry};

use crate::{
    approvals::ApprovalBroker,
    apps::{host::Host, installed::Installed, scene::Scenes},
    config::Checked,
    device_task::services::{Engines, Services},
    erasing::Eraser,
    health::Health,
    identity::Pairings,
    mcp::Mcp,
    ports::{preferences::Preferences, records::StoredSwitches},
    roster::Roster,
    skills::SkillStore,
    store::Store,
    telemetry::{Losses, Turns},
    users::Users,
};

/// Everything that commands need. One per process.
pub struct Admin {
    /// The checked configuration.
    pub config: Arc<Checked>,
    /// Set when the gateway stops.
    pub stop: CancellationToken,
    /// What outlives the process.
    pub store: Store,
    /// Pairings under way.
    pub pairings: Arc<Pairings>,
    /// Who is connected.
    pub roster: Arc<Roster>,
    /// The users' tasks.
    pub users: Arc<Users>,
    /// Open questions to wearers.
    pub approvals: Arc<ApprovalBroker>,
    /// Erases users.
    pub eraser: Arc<Eraser>,
    /// Skills.
    pub skills: Arc<SkillStore>,
    /// The catalogue of tools.
    pub registry: Arc<Registry>,
    /// Runs tools.
    pub executor: Executor,
    /// What users have switched off.
    pub switches: Arc<StoredSwitches>,
    /// What users have chosen between tools.
    pub preferences: Arc<Preferences>,
    /// What is going on around a user's words.
    pub scenes: Scenes,
    /// Mini-apps that are installed.
    pub installed: Arc<Installed>,
    /// Mini-apps that run.
    pub apps: Arc<Host>,
    /// MCP in both directions.
    pub mcp: Arc<Mcp>,
    /// Recognition, for its load.
    pub engines: Engines,
    /// Finished turns.
    pub turns: Arc<Turns>,
    /// Utterances that were never understood.
    pub losses: Arc<Losses>,
    /// Whether it can keep what it is told.
    pub health: Arc<Health>,
    /// A typed request is a session like any other.
    pub sessions: Arc<Services>,
    /// When the gateway was started, in microseconds of its clock.
    pub started_us: u64,
    /// Where it listens: WebSocket and pages.
    pub web: SocketAddr,
    /// Where it listens for QUIC.
    pub quic: Option<SocketAddr>,
}
