//! Judges each frame of a device as it comes: numbers, liveness, acknowledgements. What a step sends is judged by the step.

use std::collections::VecDeque;

use bytes::Bytes;
use device_protocol::{
    Class, Decoded, Frame, GoodbyeReason, Message as _, Stamp, Up, decode_up,
    down::AudioFormat,
    json::Owned as _,
    limits,
    up::{self, ToolResultOwned},
};

use super::{
    Rule,
    playback::Playback,
    replay::{Frames, Replay},
    rules::Report,
    sound::Sound,
};

/// Heartbeats of the judge whose times are known: more than a device can be behind.
const BEATS_MAX: usize = 16;
/// Frames kept since the last acknowledgement, to be compared with a replay: as many as a gateway keeps, and 30 s of sound.
const KEPT_MAX: usize = 2_000;
/// Heartbeats in a row, each less than half of the interval behind the one before it, at which a device sends too many: after a stall
/// it may send what is overdue.
const HASTY_MAX: u32 = 3;
/// Results of tools that are kept.
const RESULTS_MAX: usize = 16;

/// The device's side of a session.
pub(super) struct Watch {
    pub(super) report: Report,
    /// How much later than the document says something may come, in microseconds.
    grace_us: u64,
    /// Whether the transport loses and reorders no sound.
    pub(super) ordered: bool,
    pub(super) control: u32,
    unacknowledged: (u32, u32),
    since_us: Option<u64>,
    /// What the judge has acknowledged: control and sound.
    acknowledged: (u32, u32),
    kept: Frames,
    pub(super) sound: Sound,
    pub(super) playback: Option<Playback>,
    pub(super) replay: Option<Replay>,
    pub(super) results: Vec<ToolResultOwned>,
    pub(super) tools: Option<usize>,
    /// What the device acknowledged last.
    pub(super) ack: Option<up::Ack>,
    /// Whether it has acknowledged anything in any session.
    pub(super) acks: bool,
    pub(super) goodbye: Option<GoodbyeReason>,
    /// What the judge has sent: control, sound, turn.
    pub(super) sent: (u32, u32, u32),
    beats: VecDeque<(u64, u64)>,
    heartbeat_us: u64,
    beat_us: u64,
    beat_count: u32,
    /// The device's time of its last heartbeat on this connection.
    beat_time_us: Option<u64>,
    /// How many in a row came too early.
    hasty: u32,
    /// The device's time of a heartbeat that the judge has yet to note.
    beat: Option<u64>,
}

impl Watch {
    pub(super) fn new(grace_us: u64) -> Self {
        Self {
            report: Report::default(),
            grace_us,
            ordered: true,
            control: 0,
            unacknowledged: (0, 0),
            since_us: None,
            acknowledged: (0, 0),
            kept: Frames::new(),
            sound: Sound::default(),
            playback: None,
            replay: None,
            results: Vec::new(),
            tools: None,
            ack: None,
            acks: false,
            goodbye: None,
            sent: (0, 0, 0),
            beats: VecDeque::new(),
            heartbeat_us: 0,
            beat_us: 0,
            beat_count: 0,
            beat_time_us: None,
            hasty: 0,
            beat: None,
        }
    }

    /// A session begins: sequences and acknowledgements are counted anew.
    pub(super) fn begin(&mut self, format: AudioFormat) {
        (self.control, self.unacknowledged, self.since_us, self.acknowledged) = (0, (0, 0), None, (0, 0));
        self.kept.clear();
        self.sound.begin(format);
        (self.playback, self.replay, self.tools, self.ack) = (None, None, None, None);
        self.results.clear();
        self.sent = (0, 0, 0);
    }

    /// A connection is welcomed.
    pub(super) fn welcomed(&mut self, now_us: u64, heartbeat_us: u64, ordered: bool) {
        self.goodbye = None;
        self.beats.clear();
        (self.beat_us, self.beat_count) = (now_us, 0);
        (self.beat_time_us, self.hasty) = (None, 0);
        (self.heartbeat_us, self.ordered) = (heartbeat_us, ordered);
    }

    /// The judge has sent a heartbeat.
    pub(super) fn beat_sent(&mut self, time_us: u64, now_us: u64) {
        if self.beats.len() == BEATS_MAX {
            self.beats.pop_front();
        }
        self.beats.push_back((time_us, now_us));
    }

    /// The time of the device's last heartbeat is judged, also when nothing comes.
    pub(super) fn handle_timeout(&mut self, now_us: u64) {
        let silent_us = now_us.saturating_sub(self.beat_us);
        if silent_us > self.heartbeat_us + self.grace_us {
            self.report.fail(Rule::Heartbeat, format!("none for {} ms", silent_us / 1_000));
        }
    }

    /// The device's time of its latest heartbeat, once.
    pub(super) fn take_beat(&mut self) -> Option<u64> {
        self.beat.take()
    }

    /// When an acknowledgement of the judge is due.
    pub(super) fn ack_due_us(&self) -> Option<u64> {
        let (control, audio) = self.unacknowledged;
        let at_once = control >= limits::ACK_CONTROL_FRAMES_MAX || audio >= limits::ACK_AUDIO_PACKETS_MAX;
        let wait_us = if at_once { 0 } else { u64::from(limits::ACK_EVERY_MS_MAX) * 1_000 };
        self.since_us.map(|since_us| since_us + wait_us)
    }

    /// Everything that came is acknowledged: the last control frame and the last sound.
    pub(super) fn take_ack(&mut self) -> (u32, u32) {
        (self.unacknowledged, self.since_us) = ((0, 0), None);
        self.kept.clear();
        self.acknowledged = (self.control, self.sound.last_sequence());
        self.acknowledged
    }

    /// The session goes on over another connection: what was not acknowledged is to come again. Returns what was.
    pub(super) fn resume(&mut self, now_us: u64) -> (u32, u32) {
        let (control, audio) = self.acknowledged;
        let mut lacking = std::mem::take(&mut self.kept);
        lacking.retain(|(is_sound, sequence), _| *sequence > if *is_sound { audio } else { control });
        self.replay = Some(Replay::new(lacking, now_us));
        self.control = control;
        self.sound.rewind();
        (self.unacknowledged, self.since_us) = ((0, 0), None);
        self.acknowledged
    }

    /// A frame of a session.
    pub(super) fn handle(&mut self, now_us: u64, bytes: &Bytes) {
        let (class, stamp, message) = match decode_up(bytes) {
            Ok(Decoded::Frame(Frame { stamp, message })) => (message.class(), stamp, Some(message)),
            Ok(Decoded::Skipped { kind, stamp }) => (Class::of_kind(kind), stamp, None),
            Err(error) => return self.report.fail(Rule::Control, format!("a frame cannot be read: {error}")),
        };
        if stamp.turn > self.sent.2 && class != Class::Link {
            self.report
                .fail(Rule::Turn, format!("turn {}; the last one that was named is {}", stamp.turn, self.sent.2));
        }
        let mut comes_again = false;
        if matches!(class, Class::Control | Class::Audio) {
            if let Some(replay) = &mut self.replay {
                comes_again =
                    replay.handle(&mut self.report, now_us, (class == Class::Audio, stamp), bytes, self.ordered);
            }
            if self.kept.len() < KEPT_MAX {
                self.kept.insert((class == Class::Audio, stamp.sequence), bytes.clone());
            }
            self.since_us.get_or_insert(now_us);
        }
        match class {
            Class::Control if !self.counts(stamp.sequence) => return,
            Class::Control => {
                self.unacknowledged.0 += 1;
                // It was judged when it came first.
                if comes_again {
                    return;
                }
            }
            Class::Audio => self.unacknowledged.1 += 1,
            _ => {}
        }
        if let Some(message) = message {
            self.handle_message(now_us, stamp, &message);
        }
    }

    /// Whether this control frame is the next one. After a gap it goes on all the same.
    fn counts(&mut self, sequence: u32) -> bool {
        let due = self.control.saturating_add(1);
        if sequence < due {
            self.report.fail(Rule::Control, format!("control frame {sequence} comes again"));
            return false;
        }
        self.report
            .check(Rule::Control, sequence == due, || format!("control frame {sequence} follows {}", self.control));
        self.control = sequence;
        true
    }

    fn handle_message(&mut self, now_us: u64, stamp: Stamp, message: &Up<'_>) {
        let (report, ordered) = (&mut self.report, self.ordered);
        match message {
            Up::Heartbeat(beat) => self.heartbeat(now_us, stamp, *beat),
            Up::Ack(ack) => self.handle_ack(now_us, stamp, *ack),
            Up::Goodbye(goodbye) => self.goodbye = Some(goodbye.reason),
            Up::Audio(audio) => self.sound.audio(report, now_us, stamp, audio, ordered),
            Up::AudioEnd(end) => self.sound.end(report, end.last_audio_sequence, ordered),
            Up::Mute(mute) => self.sound.mute(report, stamp, mute.muted),
            Up::ToolList(list) => self.tools = Some(list.tools.iter().count()),
            Up::ToolResult(result) => {
                if self.results.len() < RESULTS_MAX
                    && let Ok(result) = ToolResultOwned::from_borrowed(result)
                {
                    self.results.push(result);
                }
            }
            Up::Played(played) => {
                let Some(playback) = self.playback.as_mut().filter(|playback| playback.speech == played.speech) else {
                    return report
                        .fail(Rule::Finished, format!("`played` of speech {}, which is none or over", played.speech));
                };
                let turn = playback.turn;
                report.check(Rule::Turn, stamp.turn == turn, || {
                    format!("`played` of turn {turn} has turn {}", stamp.turn)
                });
                playback.played(report, now_us, stamp, played);
            }
            Up::Hello(_) | Up::Proof(_) => report.fail(Rule::Control, "a frame of the handshake comes after it"),
            _ => {}
        }
    }

    fn heartbeat(&mut self, now_us: u64, stamp: Stamp, beat: up::Heartbeat) {
        self.handle_timeout(now_us);
        self.sound.clock(now_us, stamp);
        (self.beat_us, self.beat_count, self.beat) = (now_us, self.beat_count + 1, Some(stamp.time_us));
        // By the device's clock: on the way one may wait for another.
        let before_us = self.beat_time_us.replace(stamp.time_us);
        let is_hasty = before_us.is_some_and(|us| stamp.time_us.saturating_sub(us) < self.heartbeat_us / 2);
        self.hasty = if is_hasty { self.hasty + 1 } else { 0 };
        if self.hasty >= HASTY_MAX {
            let every_ms = self.heartbeat_us / 1_000;
            self.report.fail(Rule::Heartbeat, format!("one after the other within half of {every_ms} ms"));
        } else if self.beat_count >= 2 {
            self.report.pass(Rule::Heartbeat);
        }
        // One that crossed it on the way need not be told of.
        let due = self.beats.iter().rev().find(|(_, sent_us)| sent_us + self.grace_us < now_us);
        let up::Heartbeat { echo_us, held_us } = beat;
        match self.beats.iter().find(|(time_us, _)| *time_us == echo_us) {
            Some((_, sent_us)) => {
                let ago_us = now_us.saturating_sub(*sent_us);
                let is_last = due.is_none_or(|(time_us, _)| *time_us <= echo_us);
                self.report.check(Rule::Echo, is_last && held_us.abs_diff(ago_us) <= self.grace_us, || {
                    format!("echo_us {echo_us}, held_us {held_us}; that one was sent {ago_us} us ago, the last one is {due:?}")
                });
            }
            None if echo_us == 0 && due.is_none() => {}
            None => {
                self.report.fail(Rule::Echo, format!("echo_us is {echo_us}: no heartbeat of the gateway had that time"))
            }
        }
    }

    fn handle_ack(&mut self, now_us: u64, stamp: Stamp, ack: up::Ack) {
        self.sound.clock(now_us, stamp);
        let (control, audio, _) = self.sent;
        let before = self.ack.map_or((0, 0), |ack| (ack.control, ack.audio));
        let is_true = (before.0..=control).contains(&ack.control) && (before.1..=audio).contains(&ack.audio);
        self.report.check(Rule::AckTruth, is_true, || {
            format!("control {} and audio {} after {before:?}; {control} and {audio} were sent", ack.control, ack.audio)
        });
        (self.ack, self.acks) = (Some(ack), true);
    }
}

#[cfg(test)]
mod tests {
    use device_protocol::PlayState;

    use super::*;
    use crate::{conformance::Verdict, transport::envelope};

    fn frame(sequence: u32, message: up::Played) -> Bytes {
        let stamp = Stamp { sequence, turn: 2, time_us: 1_000_000 };
        envelope(stamp, Up::from(message)).expect("a frame")
    }

    /// Four heartbeats of a device, of which one each 5 s was agreed; `held`: what each says by the time since the judge's only one.
    fn beats(every_us: u64, held: impl Fn(u64) -> u64) -> Report {
        let mut watch = Watch::new(1_000_000);
        watch.welcomed(0, 5_000_000, true);
        watch.beat_sent(7, 0);
        for now_us in (1..=4).map(|number| number * every_us) {
            let beat = up::Heartbeat { echo_us: 7, held_us: held(now_us) };
            let stamp = Stamp { sequence: 0, turn: 0, time_us: now_us };
            watch.handle(now_us, &envelope(stamp, Up::from(beat)).expect("a frame"));
        }
        watch.report
    }

    #[test]
    fn heartbeats_that_come_too_often_or_tell_a_wrong_time_are_found() {
        let is_failed = |report: &Report, rule| matches!(report.verdict(rule), Some(Verdict::Failed(_)));
        let right = beats(5_000_000, |since_us| since_us);
        for rule in [Rule::Heartbeat, Rule::Echo] {
            assert_eq!(right.verdict(rule), Some(&Verdict::Passed));
        }
        assert!(is_failed(&beats(2_000_000, |since_us| since_us), Rule::Heartbeat));
        assert!(is_failed(&beats(5_000_000, |_| 0), Rule::Echo), "it held it for no time");
        assert!(is_failed(&beats(5_000_000, |since_us| since_us + 2_000_000), Rule::Echo));
    }

    #[test]
    fn what_comes_again_after_a_resume_was_judged_before() {
        let mut watch = Watch::new(0);
        watch.sent = (1, 1, 2);
        let mut playback = Playback::new(2, 2, &[2_000_000]);
        playback.sent(0, 1_000_000);
        playback.hushed(700_000);
        watch.playback = Some(playback);
        let stopped = up::Played { speech: 2, clause: 0, played_us: 574_119, state: PlayState::Stopped };
        watch.handle(800_000, &frame(1, stopped));
        // It was not acknowledged before the link was lost.
        watch.resume(2_000_000);
        watch.handle(2_100_000, &frame(1, stopped));
        assert!(watch.replay.as_ref().is_some_and(Replay::is_whole));
        assert_eq!(watch.report.verdict(Rule::Hushed), None);
        watch.handle(2_200_000, &frame(2, stopped));
        assert!(matches!(watch.report.verdict(Rule::Hushed), Some(Verdict::Failed(_))), "another one is one too many");
    }
}
