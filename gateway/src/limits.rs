//! The section `[limits]`: how much everybody together, one user and one device may take.

use device_protocol::limits::RESUME_MS_MAX;
use gateway_core::{conversation, vocab::RateLimit};
use serde::Deserialize;
use toml::Spanned;

use crate::problems::{Problems, unwritten};

/// A user's task that has had nothing to do for so long ends, in milliseconds: longer than a walk out of reach.
const USER_IDLE_MS: u64 = 600_000;

/// As it is written.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawLimits {
    connections: Spanned<usize>,
    sessions: Spanned<usize>,
    users: Spanned<usize>,
    resume_s: Spanned<u32>,
    frames_per_s: Spanned<u32>,
    bytes_per_s: Spanned<u32>,
    tool_calls_per_min: Spanned<u32>,
    tool_calls_per_min_per_source: Spanned<u32>,
}

impl Default for RawLimits {
    fn default() -> Self {
        Self {
            connections: unwritten(512),
            sessions: unwritten(128),
            users: unwritten(64),
            resume_s: unwritten(30),
            frames_per_s: unwritten(400),
            bytes_per_s: unwritten(device_protocol::limits::BYTES_PER_S_MAX),
            tool_calls_per_min: unwritten(600),
            tool_calls_per_min_per_source: unwritten(300),
        }
    }
}

/// Checked.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open connections, handshakes and sessions included. Half of them at most may be of peers that have not proven yet
    /// who they are, and an eighth of one source address.
    pub connections_max: usize,
    /// Devices in a session.
    pub sessions_max: usize,
    /// Users with paired devices, and users with a task of their own.
    pub users_max: usize,
    /// When a user's task ends that has nothing to do, in milliseconds.
    pub user_idle_ms: u64,
    /// What one device may send.
    pub traffic: Traffic,
    /// How often tools may be called.
    pub tool_calls: tools::RateLimits,
}

/// What one device may send, averaged over two seconds.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Frames a second.
    pub frames_per_s_max: u32,
    /// Bytes a second.
    pub bytes_per_s_max: u32,
}

impl RawLimits {
    /// Checks the section; the core's part goes into `conversation`.
    pub(crate) fn check(&self, problems: &mut Problems<'_>, conversation: &mut conversation::Config) -> Limits {
        let resume_s = problems.between(&self.resume_s, "limits.resume_s", 0..=RESUME_MS_MAX / 1_000);
        conversation.resume_ms_max = resume_s * 1_000;
        let per_min = |calls: u32| (calls > 0).then_some(RateLimit { calls, per_ms: 60_000 });
        let (calls, of_source) = (&self.tool_calls_per_min, &self.tool_calls_per_min_per_source);
        Limits {
            connections_max: problems.between(&self.connections, "limits.connections", 1..=100_000),
            sessions_max: problems.between(&self.sessions, "limits.sessions", 1..=10_000),
            users_max: problems.between(&self.users, "limits.users", 1..=1_024),
            user_idle_ms: USER_IDLE_MS,
            traffic: Traffic {
                frames_per_s_max: problems.between(&self.frames_per_s, "limits.frames_per_s", 60..=10_000),
                bytes_per_s_max: problems.between(&self.bytes_per_s, "limits.bytes_per_s", 40_000..=10_000_000),
            },
            tool_calls: tools::RateLimits {
                per_user: per_min(problems.between(calls, "limits.tool_calls_per_min", 0..=60_000)),
                per_source: per_min(problems.between(of_source, "limits.tool_calls_per_min_per_source", 0..=60_000)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::check;

    #[test]
    fn glasses_may_send_what_the_protocol_lets_them_send() {
        use device_protocol::limits::{AUDIO_PACKETS_PER_S_MAX, BYTES_PER_S_MAX, CONTROL_FRAMES_PER_S_MAX};
        let limits = check("", "none").unwrap().limits.traffic;
        assert!(limits.bytes_per_s_max >= BYTES_PER_S_MAX, "a photo at full speed");
        assert!(limits.frames_per_s_max >= CONTROL_FRAMES_PER_S_MAX + AUDIO_PACKETS_PER_S_MAX);
    }
}
