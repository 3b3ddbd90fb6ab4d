//! Judges what a device sends again after a resume: PROTOCOL.md, section 9.

use std::collections::BTreeMap;

use bytes::Bytes;
use device_protocol::{Decoded, Frame, Stamp, Up, decode_up, limits};

use super::{Rule, rules::Report};

/// How much earlier than the one before it a frame may be, in microseconds: `played` has the time of what it tells.
const ORDER_SLACK_US: u64 = 250_000;
/// Sound that may come at once, in microseconds: a few packets lie in buffers.
const BURST_US: u64 = 500_000;

/// Frames by class, sound or not, and sequence.
pub(super) type Frames = BTreeMap<(bool, u32), Bytes>;

/// A replay under way.
pub(super) struct Replay {
    /// Frames that the judge has seen, and says not to have received.
    lacking: Frames,
    welcomed_us: u64,
    newest_us: u64,
    sound_us: u64,
    again: usize,
}

impl Replay {
    pub(super) fn new(lacking: Frames, welcomed_us: u64) -> Self {
        Self { lacking, welcomed_us, newest_us: 0, sound_us: 0, again: 0 }
    }

    /// A frame of class control or audio. Whether it comes again.
    pub(super) fn handle(
        &mut self,
        report: &mut Report,
        now_us: u64,
        (is_sound, stamp): (bool, Stamp),
        bytes: &Bytes,
        ordered: bool,
    ) -> bool {
        let Some(seen) = self.lacking.remove(&(is_sound, stamp.sequence)) else { return false };
        let what = if is_sound { "packet" } else { "control frame" };
        self.again += 1;
        if seen != *bytes {
            report.fail(Rule::Replay, format!("{what} {} comes again with other bytes", stamp.sequence));
            return true;
        }
        if ordered && stamp.time_us + ORDER_SLACK_US < self.newest_us {
            report.fail(Rule::Replay, format!("{what} {} comes behind later ones", stamp.sequence));
            return true;
        }
        self.newest_us = self.newest_us.max(stamp.time_us);
        if let Ok(Decoded::Frame(Frame { message: Up::Audio(audio), .. })) = decode_up(bytes) {
            self.sound_us += u64::from(audio.duration_us);
            let most_us = limits::REPLAY_SPEED_MAX * now_us.saturating_sub(self.welcomed_us) + BURST_US;
            report.check(Rule::ReplayPace, self.sound_us <= most_us, || {
                format!(
                    "{} ms of sound within {} ms",
                    self.sound_us / 1_000,
                    now_us.saturating_sub(self.welcomed_us) / 1_000
                )
            });
        }
        true
    }

    /// Whether everything has come.
    pub(super) fn is_whole(&self) -> bool {
        self.lacking.is_empty()
    }

    /// Its verdict, when there was time enough.
    pub(super) fn settle(&self, report: &mut Report) {
        // Of sound a device with less memory keeps less.
        match self.lacking.keys().find(|(is_sound, _)| !is_sound) {
            Some((_, sequence)) => report.fail(Rule::Replay, format!("control frame {sequence} does not come again")),
            None if self.again > 0 => report.pass(Rule::Replay),
            None => report.skip(Rule::Replay, "there was nothing to send again"),
        }
    }
}
