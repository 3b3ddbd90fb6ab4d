//! What the sessions of devices share.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use audio::{asr::Scheduler, tts::Voice, vad::silero};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tools::{code::modules::Modules, executor::Executor, registry::Registry};

use super::{Resumable, prepare::Preparer, restart::StoredSessions, settings::SessionSettings};
use crate::{
    approvals::ApprovalBroker,
    apps::{host::Host, scene::Scenes},
    firmware::Firmware,
    identity::{GatewayKey, Pairings, keys::random},
    models::chain::ModelChain,
    photos::Gallery,
    ports::{context::ContextBuilder, preferences::Preferences},
    recordings::Recordings,
    roster::Roster,
    runtime::compute::Compute,
    speech::{
        ear::PauseJudge,
        elsewhere::{Elsewhere, voice::Voices},
        language::Languages,
        phrases::PhraseCache,
        wake::{WakeCounts, WakeWords},
    },
    store::Store,
    telemetry::{ActiveTurns, LogThrottle, Losses, SoundPackets, Turns},
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
    /// Photos that wearers took.
    pub gallery: Arc<Gallery>,
    /// Firmware for devices.
    pub firmware: Arc<Firmware>,
    /// Recognition and synthesis.
    pub engines: Engines,
    /// Connected devices.
    pub roster: Arc<Roster>,
    /// Sessions that may go on.
    pub(crate) resumption: Resumption,
    /// The users' tasks.
    pub users: Arc<Users>,
    /// Running mini-apps.
    pub apps: Arc<Host>,
    /// Open questions to wearers.
    pub approvals: Arc<ApprovalBroker>,
    /// The catalogue of tools.
    pub registry: Arc<Registry>,
    /// Runs tools.
    pub executor: Executor,
    /// The models, and what their requests are made of.
    pub assistant: Assistant,
    /// What is counted and recorded of sessions.
    pub telemetry: SessionTelemetry,
}

/// Sessions that may go on.
pub(crate) struct Resumption {
    /// Over another connection.
    pub(crate) resumable: Arc<Resumable>,
    /// Those of the process before this one.
    pub(crate) stored: Arc<StoredSessions>,
}

/// The models, and what their requests are made of.
pub struct Assistant {
    /// The models that answer, best first.
    pub models: ModelChain,
    /// Prepares models for tools.
    pub preparer: Preparer,
    /// The modules for programs.
    pub modules: Arc<Modules>,
    /// Builds the context about wearers for models.
    pub context: Arc<ContextBuilder>,
    /// Users' choices between tools.
    pub preferences: Arc<Preferences>,
    /// The situation around a user's words.
    pub scenes: Scenes,
}

/// What is counted and recorded of sessions.
pub struct SessionTelemetry {
    /// Finished turns.
    pub turns: Arc<Turns>,
    /// Turns that are not finished.
    pub active_turns: Arc<ActiveTurns>,
    /// Utterances that were not understood.
    pub losses: Arc<Losses>,
    /// Packets of sound, heard and lost.
    pub sound: SoundPackets,
    /// Recordings of sessions, where they are wanted.
    pub(crate) recordings: Option<Recordings>,
}

/// From a connection to an admitted device.
pub struct Admission {
    /// The gateway's identity.
    pub key: GatewayKey,
    /// Pairings under way.
    pub pairings: Arc<Pairings>,
    /// Open connections; stopping the gateway waits for them.
    pub open: TaskTracker,
    /// Set when the gateway stops.
    pub stop: CancellationToken,
    /// Limits log lines about rejected connections.
    pub turned_away: LogThrottle,
    /// Limits log lines about devices that wait for pairing.
    pub waits: LogThrottle,
    sessions: AtomicU32,
    /// Random digits of this run.
    boot: String,
}

impl Admission {
    /// Initial state.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(key: GatewayKey, stop: CancellationToken) -> anyhow::Result<Self> {
        let boot = random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            key,
            pairings: Arc::default(),
            open: TaskTracker::new(),
            stop,
            turned_away: LogThrottle::default(),
            waits: LogThrottle::default(),
            sessions: AtomicU32::new(1),
            boot,
        })
    }

    /// What the calls of a session are recorded under: no session of another run has the name, whatever the clock says.
    pub fn name_of(&self, session: u32) -> String {
        format!("{}.{session}", self.boot)
    }

    /// The number of a new session, unique in the process.
    pub(crate) fn next_session(&self) -> u32 {
        self.sessions.fetch_add(1, Ordering::Relaxed)
    }
}

/// Loaded speech models, and the threads that run them.
#[derive(Clone)]
pub struct Engines {
    /// Recognition.
    pub asr: Arc<Scheduler>,
    /// Which languages are spoken, and which it knows.
    pub languages: Languages,
    /// Voice activity.
    pub silero: Arc<silero::Model>,
    /// Decides whether a pause ends the turn; `None` if switched off.
    pub judge: Option<PauseJudge>,
    /// Hears wake phrases; `None`: their text alone tells.
    pub wake: Option<WakeWords>,
    /// What came of wake phrases that were heard, here or by devices.
    pub wake_counts: Arc<WakeCounts>,
    /// Synthesis.
    pub voice: Arc<Voice>,
    /// Threads for synthesis.
    pub compute: Compute,
    /// The sound of fixed phrases, for all devices.
    pub(crate) phrases: Arc<PhraseCache>,
    /// Recognition and speech outside of the gateway.
    pub elsewhere: Elsewhere,
    /// The thread for files: photos, and the sounds of apps. Speech does not wait for them.
    pub files: Compute,
}

impl Engines {
    /// What mouths speak with.
    pub(crate) fn voices(&self) -> Voices {
        Voices {
            own: self.voice.clone(),
            compute: self.compute.clone(),
            other: self.elsewhere.voice.clone(),
            phrases: self.phrases.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_two_runs_never_share_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let run = || {
            let key = GatewayKey::load_or_make(folder.path()).unwrap();
            let admission = Admission::new(key, CancellationToken::new()).unwrap();
            admission.name_of(admission.next_session())
        };
        let (one, other) = (run(), run());
        assert!(one.ends_with(".1") && other.ends_with(".1") && one != other, "{one} {other}");
    }
}
