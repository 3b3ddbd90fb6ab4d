//! What an operator can inspect and change.

use std::{net::SocketAddr, sync::Arc};

use crate::{
    apps::installed::Installed,
    device_task::services::Services,
    erasing::Eraser,
    health::Health,
    mcp::Mcp,
    models::settings::Model,
    ports::{records::StoredSwitches, routines::StoredRoutines},
    skills::SkillStore,
    speech::settings::Hearing,
};

/// State for the commands. One per process.
pub struct Admin {
    /// The sessions' shared state, which an operator inspects and changes. A typed request is a session like any other.
    pub services: Arc<Services>,
    /// Installed mini-apps.
    pub installed: Arc<Installed>,
    /// Tools that users have switched off.
    pub switches: Arc<StoredSwitches>,
    /// Programs that users have kept, and the runs of programs.
    pub routines: Arc<StoredRoutines>,
    /// MCP in both directions.
    pub mcp: Arc<Mcp>,
    /// Skills.
    pub skills: Arc<SkillStore>,
    /// Erases users.
    pub eraser: Arc<Eraser>,
    /// Whether the gateway can store data.
    pub health: Arc<Health>,
    /// How the gateway was started.
    pub started: Started,
}

/// How the gateway was started, for its status.
pub struct Started {
    /// Time in microseconds of its clock.
    pub at_us: u64,
    /// Address of WebSocket and pages.
    pub web: SocketAddr,
    /// Whether glasses may connect over WebSocket.
    pub websocket: bool,
    /// Address of QUIC.
    pub quic: Option<SocketAddr>,
    /// The models that answer, best first.
    pub models: Vec<Model>,
    /// The recogniser.
    pub hearing: Hearing,
}
