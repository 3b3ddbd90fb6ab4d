//! What an operator may look at and change.

use std::{net::SocketAddr, sync::Arc};

use crate::{
    apps::installed::Installed, device_task::services::Services, erasing::Eraser, health::Health, mcp::Mcp,
    models::settings::Model, ports::records::StoredSwitches, skills::SkillStore, speech::settings::Hearing,
};

/// What commands need. One per process.
pub struct Admin {
    /// What sessions work with: an operator sees and changes the same. A typed request is a session like any other.
    pub services: Arc<Services>,
    /// Mini-apps that are installed.
    pub installed: Arc<Installed>,
    /// What users have switched off.
    pub switches: Arc<StoredSwitches>,
    /// MCP in both directions.
    pub mcp: Arc<Mcp>,
    /// Skills.
    pub skills: Arc<SkillStore>,
    /// Erases users.
    pub eraser: Arc<Eraser>,
    /// Whether the gateway can keep what it is told.
    pub health: Arc<Health>,
    /// How the gateway was started.
    pub started: Started,
}

/// How the gateway was started, as far as its status tells it.
pub struct Started {
    /// When, in microseconds of its clock.
    pub at_us: u64,
    /// Where it listens: WebSocket and pages.
    pub web: SocketAddr,
    /// Where it listens for QUIC.
    pub quic: Option<SocketAddr>,
    /// Who answers, best first.
    pub models: Vec<Model>,
    /// The recogniser.
    pub hearing: Hearing,
}
