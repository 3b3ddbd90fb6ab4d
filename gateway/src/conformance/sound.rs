//! Judges the sound of a device: PROTOCOL.md, section 8.

use audio::codec::is_pause;
use device_protocol::{Codec, Stamp, down::AudioFormat, limits, up};

use super::clip::codec_of;
use super::{Rule, rules::Report};

/// Length of the packets with which Opus may begin, whatever was agreed, in microseconds.
const START_US: u32 = 60_000;
/// How much earlier than the end of the packet before it one may have been captured, in microseconds: clocks of devices are
/// read at interrupts.
const CAPTURE_SLACK_US: u64 = 5_000;
/// How far the clock of sound may drift from that of this machine while it is measured, and how far in the future it may have
/// been captured, in microseconds: generous, since both sides may be busy.
const DRIFT_US_MAX: i64 = 1_000_000;
/// How late all sound may come, in microseconds.
const LATE_US_MAX: i64 = 2_000_000;
/// Packets that are measured: 30 s of 20 ms.
const MEASURED_MAX: usize = 1_500;
/// Packets that may overtake `audio_end`, or be overtaken by it: a second of 20 ms.
const OVERTAKEN_MAX: u32 = 50;
/// Packets in a row until their numbers count as right.
const ROW_MIN: u32 = 25;

#[derive(Clone, Copy)]
struct Packet {
    sequence: u32,
    time_us: u64,
    duration_us: u32,
    is_empty: bool,
}

/// What is known of the microphone.
#[derive(Default)]
pub(super) struct Sound {
    format: Option<AudioFormat>,
    /// Whether the next packet is the first one of a session.
    is_fresh: bool,
    last: Option<Packet>,
    row: u32,
    /// Time at which it was muted, on the device's clock.
    muted_us: Option<u64>,
    /// A packet that was captured behind the mute, and its end: over QUIC it may have overtaken the end of the mute.
    suspect: Option<(u32, u64)>,
    /// Whether a mute came at all.
    pub(super) was_muted: bool,
    /// Least difference between this machine's clock and the device's, by other frames: at least the true one.
    clock_us: Option<i64>,
    /// Arrival less the end of capture, of each packet while it is measured.
    measured: Option<Vec<i64>>,
    /// Microseconds of sound while it is measured.
    pub(super) measured_us: u64,
}

impl Sound {
    /// A session begins, with this format up.
    pub(super) fn begin(&mut self, format: AudioFormat) {
        *self = Self { format: Some(format), is_fresh: true, clock_us: self.clock_us, ..Self::default() };
    }

    /// The sequence of the last packet; 0: there was none.
    pub(super) fn last_sequence(&self) -> u32 {
        self.last.map_or(0, |last| last.sequence)
    }

    pub(super) fn is_muted(&self) -> bool {
        self.muted_us.is_some()
    }

    /// A resume: sound behind this one comes again.
    pub(super) fn rewind(&mut self) {
        (self.last, self.row, self.is_fresh) = (None, 0, false);
    }

    /// A frame that carries the time of its sending.
    pub(super) fn clock(&mut self, now_us: u64, stamp: Stamp) {
        let differs = difference(now_us, stamp.time_us);
        self.clock_us = Some(self.clock_us.map_or(differs, |least| least.min(differs)));
    }

    /// Begins to measure the pace.
    pub(super) fn measure(&mut self) {
        (self.measured, self.measured_us) = (Some(Vec::new()), 0);
    }

    /// A packet. `ordered`: none is lost or overtaken on the way.
    pub(super) fn audio(
        &mut self,
        report: &mut Report,
        now_us: u64,
        stamp: Stamp,
        audio: &up::Audio<'_>,
        ordered: bool,
    ) {
        self.check_format(report, audio);
        let is_empty = self.format.and_then(codec_of).is_some_and(|codec| is_pause(codec, audio.payload));
        let packet =
            Packet { sequence: stamp.sequence, time_us: stamp.time_us, duration_us: audio.duration_us, is_empty };
        if self.muted_us.is_some_and(|muted_us| stamp.time_us >= muted_us) {
            self.suspect.get_or_insert((stamp.sequence, stamp.time_us.saturating_add(audio.duration_us.into())));
            if ordered {
                self.settle_mute(report, u64::MAX);
            }
        }
        if let Some(last) = self.last {
            self.check_order(report, last, packet, ordered);
        } else if ordered && self.is_fresh && stamp.sequence != 1 {
            report.fail(Rule::SoundSequence, format!("the first packet has the sequence {}", stamp.sequence));
        }
        if let Some(measured) = self.measured.as_mut().filter(|measured| measured.len() < MEASURED_MAX) {
            measured.push(difference(now_us, stamp.time_us.saturating_add(audio.duration_us.into())));
            self.measured_us += u64::from(audio.duration_us);
        }
        if self.last.is_none_or(|last| last.sequence < packet.sequence) {
            self.last = Some(packet);
        }
    }

    fn check_format(&self, report: &mut Report, audio: &up::Audio<'_>) {
        let Some(wanted) = self.format else { return };
        let up::Audio { codec, rate_hz, duration_us, payload } = *audio;
        let length_us = u64::from(wanted.frame_ms) * 1_000;
        let length_us = codec_of(wanted).and_then(|codec| codec.packet_us(length_us)).unwrap_or(length_us);
        let what = if wanted.rate_hz == 0 {
            Some("sound though the welcome has none".to_owned())
        } else if (codec, rate_hz) != (wanted.codec, wanted.rate_hz) {
            Some(format!("{codec:?} of {rate_hz} Hz; {:?} of {} Hz was agreed", wanted.codec, wanted.rate_hz))
        } else if u64::from(duration_us) != length_us && !(codec == Codec::Opus && duration_us == START_US) {
            Some(format!("a packet of {duration_us} us; {length_us} us were agreed"))
        } else {
            misfit(wanted, duration_us, payload)
        };
        report.check(Rule::SoundFormat, what.is_none(), || what.unwrap_or_default());
    }

    fn check_order(&mut self, report: &mut Report, last: Packet, packet: Packet, ordered: bool) {
        let follows = last.sequence.saturating_add(1);
        if ordered && packet.sequence != follows {
            report.fail(Rule::SoundSequence, format!("packet {} follows {}", packet.sequence, last.sequence));
        } else if packet.sequence > last.sequence.saturating_add(limits::AUDIO_AHEAD_MAX) {
            report
                .fail(Rule::SoundSequence, format!("packet {} is too far ahead of {}", packet.sequence, last.sequence));
        }
        if packet.sequence != follows {
            return;
        }
        self.row += 1;
        if self.row >= ROW_MIN {
            report.pass(Rule::SoundSequence);
        }
        let end_us = last.time_us.saturating_add(last.duration_us.into());
        report.check(Rule::SoundTime, packet.time_us.saturating_add(CAPTURE_SLACK_US) >= end_us, || {
            format!(
                "packet {} was captured at {} us, before the end of the one before it at {end_us} us",
                packet.sequence, packet.time_us
            )
        });
        if last.is_empty {
            let goes_on = packet.time_us < end_us.saturating_add(u64::from(last.duration_us) / 2);
            report.check(Rule::Pause, !(packet.is_empty && goes_on), || {
                format!("packets {} and {} are both empty", last.sequence, packet.sequence)
            });
        }
    }

    /// `audio_end`.
    pub(super) fn end(&mut self, report: &mut Report, last_sequence: u32, ordered: bool) {
        let last = self.last_sequence();
        // Over QUIC either may overtake the other.
        let slack = if ordered { 0 } else { OVERTAKEN_MAX };
        let fits = last_sequence.abs_diff(last) <= slack;
        if last > 0 {
            report.check(Rule::SoundEnd, fits, || format!("it names {last_sequence}; the last packet was {last}"));
        }
    }

    /// `mute`.
    pub(super) fn mute(&mut self, report: &mut Report, stamp: Stamp, muted: bool) {
        if muted {
            self.was_muted = true;
            self.muted_us.get_or_insert(stamp.time_us);
        } else if self.muted_us.is_some() {
            self.settle_mute(report, stamp.time_us);
            self.muted_us = None;
        }
    }

    /// Judges the sound of a mute that ends, or lasts, until this time of the device.
    pub(super) fn settle_mute(&mut self, report: &mut Report, until_us: u64) {
        let wrong = self.suspect.take().filter(|(_, end_us)| *end_us < until_us);
        report.check(Rule::Mute, wrong.is_none(), || {
            format!("packet {} was captured after `mute`", wrong.map_or(0, |(sequence, _)| sequence))
        });
    }

    /// Judges what was measured.
    pub(super) fn settle_pace(&mut self, report: &mut Report) {
        let measured = self.measured.take().unwrap_or_default();
        let (early, later) = measured.split_at(measured.len() / 2);
        let (Some(early), Some(later), Some(clock)) = (early.iter().min(), later.iter().min(), self.clock_us) else {
            return;
        };
        let (drift, late) = (later - early, early.min(later) - clock);
        report.check(
            Rule::SoundPace,
            drift.abs() <= DRIFT_US_MAX && (-DRIFT_US_MAX..=LATE_US_MAX).contains(&late),
            || {
                format!(
                    "it drifts by {} ms within {} packets, and comes {} ms after its capture",
                    drift / 1_000,
                    measured.len(),
                    late / 1_000
                )
            },
        );
    }
}

fn difference(now_us: u64, time_us: u64) -> i64 {
    i64::try_from(now_us).unwrap_or(i64::MAX).saturating_sub(i64::try_from(time_us).unwrap_or(i64::MAX))
}

/// Why a payload is not what its packet says.
fn misfit(wanted: AudioFormat, duration_us: u32, payload: &[u8]) -> Option<String> {
    let told = match wanted.codec {
        Codec::Pcm16 => {
            let bytes = 2 * u64::from(wanted.rate_hz) * u64::from(duration_us) / 1_000_000;
            return (payload.len() as u64 != bytes)
                .then(|| format!("{} bytes for {duration_us} us of PCM, not {bytes}", payload.len()));
        }
        Codec::Opus => opus_us(payload),
        Codec::Lc3 => {
            let bytes =
                u64::from(duration_us) / u64::from(wanted.lc3_frame_us.max(1)) * u64::from(wanted.lc3_frame_bytes);
            return (payload.len() as u64 != bytes)
                .then(|| format!("{} bytes for {duration_us} us of LC3, not {bytes}", payload.len()));
        }
        Codec::Other(number) => return Some(format!("codec {number}")),
    };
    (told != Some(duration_us)).then(|| format!("an Opus packet of {told:?} us in a frame of {duration_us} us"))
}

/// Length of an Opus packet in microseconds (RFC 6716, section 3.1); `None`: it is none.
fn opus_us(packet: &[u8]) -> Option<u32> {
    let toc = *packet.first()?;
    let config = toc >> 3;
    let frame_us = match config {
        0..=11 => [10_000, 20_000, 40_000, 60_000][usize::from(config & 3)],
        12..=15 => [10_000, 20_000][usize::from(config & 1)],
        _ => [2_500, 5_000, 10_000, 20_000][usize::from(config & 3)],
    };
    let frames = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u32::from(packet.get(1)? & 63),
    };
    Some(frame_us * frames).filter(|us| (1..=limits::PACKET_DURATION_US_MAX).contains(us))
}

#[cfg(test)]
mod tests {
    use super::{super::Verdict, *};

    /// What is found of a pause in packets of Opus with so many bytes, each right behind the one before it.
    fn paused(lengths: &[usize]) -> Option<Verdict> {
        let (mut report, mut sound) = (Report::default(), Sound::default());
        let (codec, rate_hz, duration_us) = (Codec::Opus, 16_000, 20_000);
        sound.begin(AudioFormat { codec, rate_hz, frame_ms: 20, lc3_frame_us: 0, lc3_frame_bytes: 0 });
        for (at, length) in (0..).zip(lengths) {
            let stamp = Stamp { sequence: at + 1, turn: 0, time_us: u64::from(at * duration_us) };
            // The first byte says that it is one frame of 20 ms.
            let audio = up::Audio { codec, rate_hz, duration_us, payload: &vec![0x48; *length] };
            sound.audio(&mut report, stamp.time_us, stamp, &audio, true);
        }
        assert_eq!(report.verdict(Rule::SoundFormat), Some(&Verdict::Passed));
        report.verdict(Rule::Pause).cloned()
    }

    #[test]
    fn a_second_empty_packet_of_a_pause_is_found() {
        for empty in [1, 2] {
            assert_eq!(paused(&[40, empty, 40]), Some(Verdict::Passed), "{empty}");
            assert!(matches!(paused(&[40, empty, empty, 40]), Some(Verdict::Failed(_))), "{empty}");
        }
        assert_eq!(paused(&[3, 3]), None);
    }
}
