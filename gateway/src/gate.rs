//! Where every connection comes in: admission, then its device task.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use audio::{asr::Scheduler, tts::Voice, vad::silero};
use device_protocol::RejectCode;
use gateway_core::vocab::Scene;
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tools::{executor::Executor, memory::Memory, registry::Registry, sides};

use crate::{
    apps::{host::Host, installed::Installed},
    config::Checked,
    device_task,
    ear::PauseJudge,
    effects::{
        books::StoredSwitches, compute::Compute, context::Remembered, preferences::Preferences, prepare::Preparer,
        questions::Questions,
    },
    health::Health,
    identity::{self, GatewayKey, Pairings},
    mcp::Mcp,
    ranks::Ranks,
    roster::Roster,
    skills::Folders,
    store::Store,
    telemetry::{Losses, Sparse, Turns},
    transport::Link,
    users::Users,
};

/// Limits on connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections, handshakes and sessions included. Half of them at most may be on their way into a session, so
    /// that those who are in one keep theirs.
    pub connections_max: usize,
    /// Devices in a session.
    pub sessions_max: usize,
    /// Users with a task of their own.
    pub users_max: usize,
    /// Frames a second from one device, averaged over two seconds.
    pub frames_per_s_max: u32,
    /// Bytes a second from one device, likewise.
    pub bytes_per_s_max: u32,
}

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

    /// Admits a connection and runs its session to the end.
    pub async fn run(self: &Arc<Self>, mut link: Link) {
        // Whoever stops the gateway waits for this.
        let _open = self.open.token();
        let admitted = match self.joining.try_acquire() {
            Ok(_joining) => tokio::select! {
                admitted = identity::admit(&mut link, &self.key, &self.store, &self.pairings) => admitted,
                () = self.stop.cancelled() => Err(identity::turn_away(
                    &mut link,
                    RejectCode::ShuttingDown,
                    "the gateway is stopping",
                )),
            },
            Err(_crowded) => {
                Err(identity::turn_away(&mut link, RejectCode::Busy, "too many others connect at this moment"))
            }
        };
        match admitted {
            Ok(admitted) => {
                let session = self.sessions.fetch_add(1, Ordering::Relaxed);
                device_task::run(self.clone(), &mut link, admitted, session).await;
            }
            Err(refusal) if refusal.code == RejectCode::Unspecified => {
                tracing::debug!(peer = %link.peer, %refusal, "a connection ended before its session");
            }
            Err(refusal) => {
                if let Some(left_out) = self.turned_away.line() {
                    let (device, code) = (refusal.device.as_deref(), refusal.code);
                    tracing::info!(peer = %link.peer, device, ?code, %refusal, left_out, "turned away");
                }
            }
        }
        link.close().await;
    }
}
