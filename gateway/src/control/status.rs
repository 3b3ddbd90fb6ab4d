//! The gateway's status.

use serde::{Deserialize, Serialize};
use tools::inspection::system::MemoryUse;

use super::{McpServer, SessionOf};
use crate::{
    discovery::state::Announced,
    health::Problem,
    speech::{elsewhere::EngineUse, wake::WakeTally},
};

/// The gateway's status.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    /// Of the program that runs.
    pub version: String,
    /// Seconds since its start.
    pub up_s: u64,
    /// Address of WebSocket and pages.
    pub web: String,
    /// Address of QUIC, if enabled.
    pub quic: Option<String>,
    /// Whether it is announced on the network; `None`: it is not to be.
    #[serde(default)]
    pub announced: Option<Announced>,
    /// Fingerprint of its key, which people compare with what glasses have found.
    #[serde(default)]
    pub fingerprint: String,
    /// What does not work.
    pub problems: Vec<Problem>,
    /// Open sessions: the user, the device's name, and its connection.
    pub sessions: Vec<(String, String, SessionOf)>,
    /// Maximum number of sessions.
    pub sessions_max: usize,
    /// Devices that wait for pairing.
    pub waiting: usize,
    /// Users with a running task.
    pub users: usize,
    /// Maximum number of such users.
    pub users_max: usize,
    /// Open questions to wearers.
    pub questions: usize,
    /// The models that answer, best first.
    pub models: Vec<String>,
    /// What recognises speech, and how much waits for it.
    pub recogniser: Recogniser,
    /// Engines outside of the gateway, and this machine's own for the same parts.
    #[serde(default)]
    pub elsewhere: Vec<EngineUse>,
    /// MCP servers, by name.
    pub mcp: Vec<McpServer>,
    /// Tools that are offered to anybody.
    #[serde(default)]
    pub tools: usize,
    /// Their revision: it grows whenever they change or a user switches some off or on, also over restarts.
    #[serde(default)]
    pub tools_revision: u64,
    /// Installed mini-apps.
    pub apps: usize,
    /// Those of them that run for any user.
    pub apps_running: usize,
    /// Bytes used by the store, and their maximum.
    pub store: Option<(u64, u64)>,
    /// Damaged records that were found since the start.
    #[serde(default)]
    pub damaged: usize,
    /// Bytes free for the data folder, and the size of its disk.
    pub disk: Option<(u64, u64)>,
    /// File descriptors that are open, and their maximum.
    #[serde(default)]
    pub descriptors: Option<(u64, u64)>,
    /// Jobs other than recognition, and writes to the store.
    #[serde(default)]
    pub queues: Vec<Queue>,
    /// Whether a service manager watches it and restarts it when it hangs.
    #[serde(default)]
    pub watchdog: bool,
    /// The data folder.
    #[serde(default)]
    pub data_dir: String,
    /// How fast the latest spoken turns were; `None`: nobody has spoken yet.
    #[serde(default)]
    pub latency: Option<Latency>,
    /// Packets of sound in ended sessions: decoded, and given up as lost.
    #[serde(default)]
    pub sound: (u64, u64),
    /// Processor cores.
    #[serde(default)]
    pub cores: usize,
    /// Load averages over one, five and fifteen minutes.
    #[serde(default)]
    pub load: Option<[f64; 3]>,
    /// Memory of the box, and of the gateway.
    #[serde(default)]
    pub memory: Option<MemoryUse>,
    /// Of the processor, in degrees Celsius.
    #[serde(default)]
    pub temperature_c: Option<f64>,
}

/// From the last voiced sample of a request to the first packet of the answer's speech, in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Turns that were counted: the latest ones.
    pub turns: usize,
    /// Half of them were faster.
    pub median_ms: u64,
    /// Nine of ten were.
    pub p90_ms: u64,
}

impl Latency {
    /// Of times in microseconds.
    pub(super) fn of(mut times_us: Vec<u64>) -> Option<Self> {
        times_us.sort_unstable();
        let turns = times_us.len();
        // Nearest rank.
        let at = |percent: usize| times_us.get((turns * percent).div_ceil(100).saturating_sub(1)).map(|us| us / 1_000);
        Some(Self { turns, median_ms: at(50)?, p90_ms: at(90)? })
    }
}

/// A queue of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Of what.
    pub name: String,
    /// Jobs that wait.
    pub waiting: usize,
    /// Jobs refused since the start because too many waited.
    pub refused: u64,
}

/// The recogniser's present state.
#[derive(Debug, Serialize, Deserialize)]
pub struct Recogniser {
    /// The weights' file.
    pub model: String,
    /// Threads.
    pub workers: usize,
    /// Running decodes.
    pub running: usize,
    /// Waiting decodes.
    pub waiting: usize,
    /// Decodes dropped since the start for lack of capacity.
    #[serde(default)]
    pub left_out: LeftOut,
    /// What came of listening for wake phrases in the sound; `None`: their text alone tells.
    #[serde(default)]
    pub wake: Option<WakeTally>,
    /// Utterances that were not understood: those certainly meant for the assistant, whose wearers were informed, and
    /// others.
    #[serde(default)]
    pub lost: (u64, u64),
}

/// Dropped decodes, in the order in which kinds are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Partial results of open utterances.
    pub partial: u64,
    /// Second passes.
    pub second_pass: u64,
    /// Speech that was not meant for the assistant.
    pub overheard: u64,
    /// Speech for which that was unknown.
    pub unsure: u64,
    /// Speech that was. Speech dropped at a pause may have been decoded at the end.
    pub addressed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latency_is_that_of_the_turns_in_the_middle_and_of_nine_of_ten() {
        assert_eq!(Latency::of(Vec::new()), None);
        assert_eq!(Latency::of(vec![7_900]), Some(Latency { turns: 1, median_ms: 7, p90_ms: 7 }));
        let times = (1..=10).rev().map(|ms| ms * 1_000).collect();
        assert_eq!(Latency::of(times), Some(Latency { turns: 10, median_ms: 5, p90_ms: 9 }));
    }
}
