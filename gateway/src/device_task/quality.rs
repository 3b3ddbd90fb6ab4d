//! Counts and delays of a session's sound on the link, of which reports for the core are made.

use audio::{codec::Codec, listener};
use device_protocol::{down, limits, up};
use gateway_core::vocab::{SoundCoding, SoundReport};

/// Time without a packet after which one that is as late comes from an outage, like those behind it.
const OUTAGE_US: u64 = 500_000;
/// Waiting time under which sound counts as live: an outage interrupts it, a queue that is full has done so before.
const LIVE_US: u64 = 200_000;
/// How long a replay on a new connection may take at least: 10 s of sound, at four times real time, and as much again.
const REPLAY_US: u64 = 5_000_000;

/// Counts of a session's sound since the last reports.
#[derive(Default)]
pub(super) struct Quality {
    up: Up,
    down: Down,
    /// What the core wants; `None`: what is begun with.
    pub(super) coding: Option<SoundCoding>,
}

#[derive(Default)]
struct Up {
    packets: u64,
    lost: u64,
    /// The shortest transit since the last report, beyond the shortest one of all.
    waited_us: Option<u64>,
    /// Sound from before is replayed: it is late for another reason.
    live_from_us: u64,
    /// Until when that explains it: later it is late because the link does not keep up.
    replay_until_us: u64,
    /// The first sound of that replay, which tells how long it is, is still to come.
    awaits_replay: bool,
    /// Sound came without waiting since the last outage.
    is_live: bool,
    /// When the last packet came.
    heard_us: u64,
}

#[derive(Default)]
struct Down {
    audio: u32,
    lost: u32,
    /// The shortest time from sending a packet to its acknowledgement, over this connection.
    least_us: Option<u64>,
    /// The device measures, and so knows packets of any length.
    is_measured: bool,
}

impl Quality {
    /// A packet was under way for so much longer than the fastest one; `captured_us`: on the gateway's clock.
    pub(super) fn heard(&mut self, waited_us: u64, captured_us: u64, now_us: u64) {
        let silent_us = now_us.saturating_sub(self.up.heard_us);
        if silent_us > OUTAGE_US && waited_us > OUTAGE_US && self.up.is_live {
            // What it has kept back comes faster than it was spoken.
            self.replays(now_us, silent_us);
        }
        self.up.heard_us = now_us;
        let is_replay = captured_us < self.up.live_from_us;
        if std::mem::take(&mut self.up.awaits_replay) && is_replay {
            let kept_us = self.up.live_from_us.saturating_sub(captured_us).min(limits::REPLAY_OPEN_AUDIO_US_MAX);
            let until_us = now_us.saturating_add(kept_us / limits::REPLAY_SPEED_MAX * 2);
            self.up.replay_until_us = self.up.replay_until_us.max(until_us);
        }
        self.up.is_live |= !is_replay && waited_us < LIVE_US;
        if !is_replay || now_us >= self.up.replay_until_us {
            self.up.waited_us = Some(self.up.waited_us.unwrap_or(u64::MAX).min(waited_us));
        }
    }

    /// What was captured before `now_us` comes for so long at most.
    fn replays(&mut self, now_us: u64, most_us: u64) {
        self.up.live_from_us = now_us;
        self.up.replay_until_us = now_us.saturating_add(most_us);
        self.up.is_live = false;
    }

    /// The sound that has come since the last report; `None`: none, or a replay.
    pub(super) fn take_up(&mut self, counts: listener::Stats) -> Option<SoundReport> {
        let (packets, lost) = (counts.packets, counts.lost);
        let report = SoundReport {
            up: true,
            received: short(packets.saturating_sub(self.up.packets)),
            lost: short(lost.saturating_sub(self.up.lost)),
            waited_us: short(self.up.waited_us.take()?),
        };
        (self.up.packets, self.up.lost) = (packets, lost);
        Some(report)
    }

    /// The device has received sound; `sent_us`: when the newest of it was sent.
    pub(super) fn acknowledged(&mut self, ack: &up::Ack, sent_us: Option<u64>, now_us: u64) -> Option<SoundReport> {
        let down = &mut self.down;
        down.is_measured |= ack.audio_held_us > 0;
        let sent_us = sent_us.filter(|_| ack.audio_held_us > 0)?;
        let took_us = now_us.saturating_sub(sent_us).saturating_sub(ack.audio_held_us);
        let least_us = *down.least_us.get_or_insert(took_us);
        down.least_us = Some(least_us.min(took_us));
        let lost = ack.audio_lost.saturating_sub(down.lost);
        let received = ack.audio.saturating_sub(down.audio).saturating_sub(lost);
        (down.audio, down.lost) = (ack.audio, ack.audio_lost);
        Some(SoundReport { up: false, received, lost, waited_us: short(took_us.saturating_sub(least_us)) })
    }

    /// Whether the device measures.
    pub(super) fn is_measured(&self) -> bool {
        self.down.is_measured
    }

    /// Another connection: times are measured anew, and what was captured before `now_us` is replayed.
    pub(super) fn resume(&mut self, now_us: u64) {
        self.replays(now_us, REPLAY_US);
        self.up.awaits_replay = true;
        self.up.waited_us = None;
        self.down.least_us = None;
    }

    /// Of a session that a restart interrupted: what was captured before `now_us` is replayed.
    pub(super) fn continued(now_us: u64) -> Self {
        let mut quality = Self::default();
        quality.replays(now_us, REPLAY_US);
        quality.up.awaits_replay = true;
        quality
    }

    /// The acknowledgement also says how the device should code its sound, in packets that a frame holds. `up`: the codec
    /// and rate that were agreed. Opus begins with less than was agreed; other codecs have one rate.
    pub(super) fn advise(&self, ack: down::Ack, up: Option<(Codec, u32)>) -> down::Ack {
        let Some((codec, rate_hz)) = up else { return ack };
        let coding = self.coding.or_else(|| (codec == Codec::Opus).then(SoundCoding::default));
        let longest_us = codec.longest_packet_us(rate_hz, limits::AUDIO_PACKET_BYTES_MAX);
        coding.map_or(ack, |coding| down::Ack {
            audio_bitrate: coding.bitrate,
            audio_frame_ms: coding.packet_ms.min(u16::try_from(longest_us / 1_000).unwrap_or(u16::MAX)),
            audio_loss_percent: coding.loss_percent,
            ..ack
        })
    }
}

fn short(long: u64) -> u32 {
    u32::try_from(long).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(packets: u64, lost: u64) -> listener::Stats {
        listener::Stats { packets, lost, ..listener::Stats::default() }
    }

    #[test]
    fn the_fastest_packet_tells_what_waits_and_a_replay_tells_nothing() {
        let mut quality = Quality::default();
        for waited_us in [90_000, 40_000, 70_000] {
            quality.heard(waited_us, 1_000, 100_000);
        }
        let report = SoundReport { up: true, received: 18, lost: 2, waited_us: 40_000 };
        assert_eq!(quality.take_up(counts(18, 2)), Some(report));
        assert_eq!(quality.take_up(counts(18, 2)), None);
        quality.resume(5_000_000);
        quality.heard(3_000_000, 2_000_000, 5_000_000);
        assert_eq!(quality.take_up(counts(30, 2)), None);
        quality.heard(20_000, 5_000_000, 5_020_000);
        assert_eq!(
            quality.take_up(counts(38, 2)).map(|report| (report.received, report.waited_us)),
            Some((20, 20_000))
        );
        // An outage on the same connection: what was kept back meanwhile comes behind it.
        quality.heard(1_500_000, 5_520_000, 7_020_000);
        quality.heard(1_485_000, 5_540_000, 7_025_000);
        assert_eq!(quality.take_up(counts(40, 2)), None);
        quality.heard(20_000, 7_020_000, 7_040_000);
        assert_eq!(quality.take_up(counts(41, 2)).map(|report| report.waited_us), Some(20_000));
    }

    #[test]
    fn a_long_replay_explains_lateness_for_as_long_as_it_takes() {
        // Of 8 s: 5 s. Of 28 s: 14 s. Of whatever a device claims: that of 30 s.
        for (captured_us, explained_us) in [(92_000_000, 5_000_000), (72_000_000, 14_000_000), (0, 15_000_000)] {
            let mut quality = Quality::default();
            quality.resume(100_000_000);
            quality.heard(9_000_000, captured_us, 100_000_000);
            quality.heard(8_000_000, 99_000_000, 99_999_999 + explained_us);
            assert_eq!(quality.take_up(counts(2, 0)), None, "{captured_us}");
            quality.heard(7_000_000, 99_500_000, 100_000_000 + explained_us);
            assert_eq!(quality.take_up(counts(3, 0)).map(|report| report.waited_us), Some(7_000_000), "{captured_us}");
        }
    }

    #[test]
    fn a_link_that_stalls_again_and_again_is_too_thin() {
        let mut quality = Quality::default();
        quality.heard(0, 1_000_000, 1_000_000);
        quality.take_up(counts(1, 0));
        // The first stall may be an outage, for as long as it was: 600 ms.
        quality.heard(600_000, 1_020_000, 1_620_000);
        quality.heard(700_000, 1_400_000, 2_100_000);
        assert_eq!(quality.take_up(counts(3, 0)), None);
        // Sound is still late then, and a second stall changes nothing.
        quality.heard(800_000, 1_500_000, 2_300_000);
        assert_eq!(quality.take_up(counts(4, 0)).map(|report| report.waited_us), Some(800_000));
        quality.heard(900_000, 2_020_000, 2_920_000);
        assert_eq!(quality.take_up(counts(5, 0)).map(|report| report.waited_us), Some(900_000));
    }

    #[test]
    fn speech_is_measured_from_sending_to_acknowledgement() {
        let mut quality = Quality::default();
        let ack = |audio, audio_lost, audio_held_us| up::Ack { control: 0, audio, audio_lost, audio_held_us };
        assert_eq!(quality.acknowledged(&ack(5, 0, 0), Some(0), 80_000), None, "a device that does not measure");
        assert!(!quality.is_measured());
        let report = quality.acknowledged(&ack(20, 2, 30_000), Some(1_000_000), 1_090_000).unwrap();
        assert_eq!(report, SoundReport { up: false, received: 18, lost: 2, waited_us: 0 });
        let report = quality.acknowledged(&ack(40, 3, 1), Some(2_000_000), 2_500_001).unwrap();
        assert_eq!(report, SoundReport { up: false, received: 19, lost: 1, waited_us: 440_000 });
        assert_eq!(quality.acknowledged(&ack(40, 3, 1), None, 2_600_000), None, "nothing new");
    }

    #[test]
    fn the_device_is_told_what_the_core_wants() {
        let mut quality = Quality::default();
        let ack = down::Ack {
            control: 1,
            audio: 2,
            audio_bitrate: 0,
            audio_frame_ms: 0,
            audio_loss_percent: 0,
            audio_missing: 0,
            sound_until_us: 0,
            audio_missing_bits: 0,
        };
        let advised = |quality: &Quality, codec: Codec, rate_hz: u32| {
            let ack = quality.advise(ack, Some((codec, rate_hz)));
            (ack.audio_bitrate, ack.audio_frame_ms, ack.audio_loss_percent)
        };
        assert_eq!(advised(&quality, Codec::Opus, 48_000), (12_000, 60, 10), "from the beginning");
        assert_eq!(advised(&quality, Codec::Pcm16, 48_000), (0, 0, 0));
        quality.coding = Some(SoundCoding { bitrate: 24_000, packet_ms: 20, loss_percent: 15 });
        assert_eq!(advised(&quality, Codec::Opus, 16_000), (24_000, 20, 15));
        assert_eq!(advised(&quality, Codec::Pcm16, 48_000), (24_000, 20, 15));
        assert_eq!(quality.advise(ack, None), ack, "no microphone");
        // 60 ms of samples at 48 kHz are 5,760 bytes, and a frame holds 4,096.
        quality.coding = Some(SoundCoding { bitrate: 12_000, packet_ms: 60, loss_percent: 10 });
        assert_eq!(advised(&quality, Codec::Pcm16, 48_000), (12_000, 40, 10));
        assert_eq!(advised(&quality, Codec::Pcm16, 24_000), (12_000, 60, 10));
        assert_eq!(advised(&quality, Codec::Opus, 48_000), (12_000, 60, 10));
    }
}
