//! What an operator can inspect and change.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use serde::{Deserialize, Serialize};

use super::status::Status;
use crate::{
    apps::installed::Installed,
    backup::Backups,
    device_task::services::Services,
    discovery::state::State,
    erasing::Eraser,
    findings::Findings,
    health::Health,
    identity::operators::Operators,
    mcp::Mcp,
    models::settings::Model,
    ports::{records::StoredSwitches, routines::StoredRoutines},
    skills::SkillStore,
    speech::settings::Hearing,
    telemetry::log::Logs,
    upgrade::Upgrader,
};

/// What a reload of the configuration has done: keys of the configuration, such as `hearing.wake_phrases`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reloaded {
    /// What counts from now on, for sessions that begin.
    pub applied: Vec<String>,
    /// What has changed in the file and counts after a restart only.
    pub needs_restart: Vec<String>,
}

impl Reloaded {
    /// In words. That no setting has changed says nothing about the files that settings name: whoever has replaced the file of a
    /// key must not take the former key to be refused already.
    pub(crate) fn told(&self) -> String {
        if self.applied.is_empty() && self.needs_restart.is_empty() {
            return "nothing has changed in the configuration file; the files that it names, such as those of keys, MCP servers and \
                    capabilities, are read at a start only: where one has changed, restart the gateway"
                .to_owned();
        }
        let applied = self.applied.iter().map(|key| format!("{key}: counts for sessions that begin from now on"));
        let waiting = self.needs_restart.iter().map(|key| format!("{key}: needs a restart"));
        applied.chain(waiting).collect::<Vec<_>>().join("\n")
    }
}

/// Reloads the configuration, or says why it cannot be used.
pub(crate) type Reload = Box<dyn Fn() -> Result<Reloaded, Vec<String>> + Send + Sync>;

/// Examines the box of a gateway with this status. It blocks.
pub(crate) type Examine = Arc<dyn Fn(Status) -> Findings + Send + Sync>;

/// What only the console works with.
pub struct Console {
    /// Its one-time links and sessions.
    pub operators: Operators,
    /// Examines this box.
    pub(crate) examine: Examine,
    /// The configuration file, if there is one.
    pub file: Option<PathBuf>,
    /// The example that documents every key of it; its values are the defaults.
    pub example: &'static str,
}

/// State for the commands. One per process.
pub struct Admin {
    /// The sessions' shared state, which an operator inspects and changes. A typed request is a session like any other.
    pub services: Arc<Services>,
    /// The stored log.
    pub logs: Logs,
    /// Installed mini-apps.
    pub installed: Arc<Installed>,
    /// Tools that users have switched off.
    pub switches: Arc<StoredSwitches>,
    /// Programs that users have kept, and the runs of programs.
    pub routines: Arc<StoredRoutines>,
    /// MCP in both directions.
    pub mcp: Arc<Mcp>,
    /// The skills of all folders, as of the last scan.
    pub skills: Arc<SkillStore>,
    /// Erases users.
    pub eraser: Arc<Eraser>,
    /// Reloads the configuration.
    pub reload: Reload,
    /// Makes snapshots for backups.
    pub backups: Backups,
    /// Whether the gateway can store data.
    pub health: Arc<Health>,
    /// How the gateway was started.
    pub started: Started,
    /// For the console; `None`: there is none.
    pub console: Option<Arc<Console>>,
    /// Starts the process that replaces this one; `None`: there is none to start.
    pub upgrader: Option<Upgrader>,
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
    /// Fingerprint of the certificate for people, if no authority vouches for it.
    pub certificate: Option<String>,
    /// What became of announcing it on the network; `None`: it is not to be.
    pub(crate) announced: Option<State>,
    /// The models that answer, best first.
    pub models: Vec<Model>,
    /// How speech is recognised, as configured.
    pub hearing: Hearing,
    /// A service manager watches it.
    pub watchdog: bool,
}
