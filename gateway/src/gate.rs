//! Where every connection comes in: admission, then its device task.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use audio::{asr::Scheduler, tts::Voice, vad::silero};
use device_protocol::RejectCode;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tools::{executor::Executor, memory::Memory, registry::Registry};

use crate::{
    apps::{host::Host, installed::Installed},
    config::Checked,
    device_task,
    ear::PauseJudge,
    effects::{books::StoredSwitches, compute::Compute, context::Remembered, prepare::Preparer, questions::Questions},
    identity::{self, GatewayKey, Pairings},
    mail::Mail,
    mcp::Mcp,
    ranks::Ranks,
    roster::{Present, Roster},
    skills::Folders,
    store::Store,
    telemetry::Turns,
    transport::Link,
    users::Users,
};

/// Limits on connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Open connections, handshakes included.
    pub connections_max: usize,
    /// Devices in a session.
    pub sessions_max: usize,
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
}

impl Gate {
    /// Limits on connections.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Tells a user's glasses, or everybody's, that changed tools are to count at once; how many were told.
    pub fn apply_tools(&self, user: Option<&str>) -> usize {
        let told = |(_, present): &(String, Present)| {
            user.is_none_or(|user| present.user == user) && present.mail.try_send(Mail::ApplyTools).is_ok()
        };
        self.roster.all().iter().filter(|device| told(device)).count()
    }

    /// Admits a connection and runs its session to the end.
    pub async fn run(self: &Arc<Self>, mut link: Link) {
        // Whoever stops the gateway waits for this.
        let _open = self.open.token();
        let admitted = tokio::select! {
            admitted = identity::admit(&mut link, &self.key, &self.store, &self.pairings) => admitted,
            () = self.stop.cancelled() => Err(identity::turn_away(
                &mut link,
                RejectCode::ShuttingDown,
                "the gateway is stopping",
            )),
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
                tracing::info!(peer = %link.peer, code = ?refusal.code, %refusal, "turned away");
            }
        }
        link.close().await;
    }
}
