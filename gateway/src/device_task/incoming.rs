//! Sequences of frames from the device, and when they are acknowledged (PROTOCOL.md, sections 4 and 7).

use device_protocol::{down, limits};

use super::window::Window;

/// Sound that is acknowledged at once: as much as twenty packets of 20 ms, so that a device which sends longer ones
/// hears of the gateway as often.
const ACK_SOUND_US_MAX: u32 = 400_000;

/// What a sequence says about a control frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// It is the next one.
    Next,
    /// It was received before: a replay.
    Repeated,
    /// This one was due.
    Gap {
        /// The missing sequence.
        expected: u32,
    },
}

/// A stream that the device has ended.
struct StreamEnd {
    /// Its last packet.
    last: u32,
    /// The newest of its packets that has come.
    come: u32,
    /// Capture time of the end of its sound, as far as it can be known.
    at_us: u64,
}

/// The device's side of a session's frames. It outlives its connections.
#[derive(Default)]
pub(super) struct Incoming {
    control: u32,
    window: Window,
    unacknowledged_control: u32,
    unacknowledged_audio: u32,
    /// Length of this sound.
    unacknowledged_us: u32,
    /// When the oldest frame came that is not acknowledged.
    since_us: Option<u64>,
    /// The last sound before a replay of which nothing has come yet.
    resumed_at: Option<u32>,
    /// The newest time of a frame, on the device's clock.
    newest_us: u64,
    /// Capture time of the end of the sound so far, whether it was heard or not.
    sound_until_us: u64,
    /// Length of the last packet.
    packet_us: u32,
    /// After a restart, until the first sound.
    continues: bool,
    /// After a restart, until the first sound: when somebody was speaking whose words were not dealt with.
    addressed_us: Option<u64>,
    /// The device was told that sound was passed over.
    drop_warned: bool,
    /// After a restart: when the device asked to go on, on its clock.
    asked_us: u64,
    /// The stream that ended last.
    stream_end: Option<StreamEnd>,
    /// After a restart: the same time, of sound that the device repeats.
    repeated_end_us: Option<u64>,
}

impl Incoming {
    /// The gateway was restarted: the device, which asked to go on at this time on its clock, repeats what the process before
    /// this one has not dealt with. `addressed_us`: capture time at which somebody was speaking to the assistant whose words were
    /// not dealt with. `stream_end_us`: as [`stream_end_us`](Self::stream_end_us) was there.
    pub(super) fn continued(asked_us: u64, addressed_us: Option<u64>, stream_end_us: Option<u64>) -> Self {
        let (newest_us, repeated_end_us) = (asked_us, stream_end_us);
        Self { continues: true, addressed_us, asked_us, newest_us, repeated_end_us, ..Self::default() }
    }

    /// Whether the device is about to repeat that.
    pub(super) fn is_continued(&self) -> bool {
        self.continues
    }

    /// A control frame: they arrive once each and in order.
    pub(super) fn control(&mut self, sequence: u32, now_us: u64) -> Order {
        let expected = self.control.saturating_add(1);
        if sequence < expected {
            return Order::Repeated;
        }
        if sequence > expected {
            return Order::Gap { expected };
        }
        self.control = sequence;
        self.unacknowledged_control += 1;
        self.since_us.get_or_insert(now_us);
        Order::Next
    }

    /// A sound frame of this length; `false`: it is too far ahead of all before it. `pauses`: little follows for a while.
    pub(super) fn audio(&mut self, sequence: u32, duration_us: u32, pauses: bool, now_us: u64) -> bool {
        let taken = self.window.takes(sequence);
        if taken {
            self.unacknowledged_audio += 1;
            let more_us = if pauses { ACK_SOUND_US_MAX } else { duration_us };
            self.unacknowledged_us = self.unacknowledged_us.saturating_add(more_us);
            self.since_us.get_or_insert(now_us);
        }
        taken
    }

    /// The device replays the sound behind this one.
    pub(super) fn resume(&mut self, audio: u32) {
        self.resumed_at = Some(audio);
    }

    /// The last sound before the replay, once: for its first packet.
    pub(super) fn take_resumed_at(&mut self) -> Option<u32> {
        self.resumed_at.take()
    }

    /// A frame has this time, on the device's clock.
    pub(super) fn note_time(&mut self, time_us: u64) {
        self.newest_us = self.newest_us.max(time_us);
    }

    /// Sound of this length has come that ends at this capture time.
    pub(super) fn note_sound(&mut self, sequence: u32, until_us: u64, duration_us: u32) {
        self.sound_until_us = self.sound_until_us.max(until_us);
        self.packet_us = duration_us;
        if let Some(end) = &mut self.stream_end
            && (end.come..=end.last).contains(&sequence)
        {
            let behind = end.last.saturating_sub(sequence);
            (end.come, end.at_us) = (sequence, end_behind(until_us, behind, duration_us));
        }
    }

    /// The device has ended its stream with this packet, at this time on its clock. On QUIC the packet, and others before it, may be
    /// under way or lost, and sound of the next stream may have overtaken the message.
    pub(super) fn end_stream(&mut self, last: u32, ended_us: u64) {
        let (come, until_us) = (self.audio_received(), self.sound_until_us);
        let at_us = match last.checked_sub(come) {
            Some(_) if come == 0 => ended_us,
            Some(behind) => end_behind(until_us, behind, self.packet_us),
            // The next stream was captured later.
            None => until_us.min(ended_us),
        };
        self.stream_end = Some(StreamEnd { last, come: come.min(last), at_us });
    }

    /// Capture time at which a stream of the device ended last; `None`: none has.
    pub(super) fn stream_end_us(&self) -> Option<u64> {
        self.stream_end.as_ref().map(|end| end.at_us).or(self.repeated_end_us)
    }

    /// After a restart: whether the stream that the device repeats ends with this packet, captured from the one time to the
    /// other. The device may not say so again.
    pub(super) fn take_repeated_end(&mut self, captured_us: u64, until_us: u64) -> bool {
        // On QUIC a later packet may overtake it.
        self.repeated_end_us.take_if(|end_us| captured_us < *end_us && *end_us <= until_us).is_some()
    }

    /// After a restart, for a packet before it is heard: the last one of the stream that the device repeats, and when that ended, where
    /// this one is of the next stream. The end is between two packets where it was not known more exactly.
    pub(super) fn take_passed_end(&mut self, sequence: u32, captured_us: u64) -> Option<(u32, u64)> {
        let end_us = self.repeated_end_us.take_if(|end_us| *end_us <= captured_us)?;
        // The first sound that is repeated: what was before it was dealt with.
        sequence.checked_sub(1).filter(|last| *last > 0).map(|last| (last, end_us))
    }

    /// Capture time of the end of the sound so far; 0: none came.
    pub(super) fn sound_until_us(&self) -> u64 {
        self.sound_until_us
    }

    /// Whether the device is to be told that sound was passed over: once.
    pub(super) fn take_drop_warning(&mut self) -> bool {
        !std::mem::replace(&mut self.drop_warned, true)
    }

    /// Whether the process before this one knew that somebody was speaking to the assistant whose words are lost, for the first
    /// sound after a restart: the wake phrase is older than what the device has kept.
    pub(super) fn take_lost_sentence(&mut self, captured_us: u64) -> bool {
        self.addressed_us.take().is_some_and(|addressed_us| addressed_us < captured_us)
    }

    /// Whether the device did this before it came to the restarted gateway, and repeats it.
    pub(super) fn is_repeated(&self, time_us: u64) -> bool {
        time_us < self.asked_us
    }

    /// Of what the device repeats after a restart, for the first sound: how much older than the present it is; `None`: it is
    /// not repeated.
    pub(super) fn take_backlog_us(&mut self, captured_us: u64) -> Option<u64> {
        let backlog_us = self.newest_us.saturating_sub(captured_us).min(limits::REPLAY_OPEN_AUDIO_US_MAX);
        (std::mem::take(&mut self.continues) && self.is_repeated(captured_us)).then_some(backlog_us)
    }

    /// The last control sequence without a gap.
    pub(super) fn control_received(&self) -> u32 {
        self.control
    }

    /// The highest sequence of sound; 0: none.
    pub(super) fn audio_received(&self) -> u32 {
        self.window.highest()
    }

    /// The last sound of a stream that ends; `named`: its number, as the device says. Where frames keep their order,
    /// all sound has come; elsewhere some may be under way, but no further ahead than sound is accepted. A listener
    /// would wait for a wrong number, and end the stream at the first gap behind it.
    pub(super) fn last_audio(&self, named: u32, is_ordered: bool) -> u32 {
        let received = self.audio_received();
        let is_wrong = is_ordered || named.saturating_sub(received) > limits::AUDIO_AHEAD_MAX;
        if is_wrong { named.min(received) } else { named }
    }

    /// When an acknowledgement is due.
    pub(super) fn ack_due_us(&self) -> Option<u64> {
        let at_once = self.unacknowledged_control >= limits::ACK_CONTROL_FRAMES_MAX
            || self.unacknowledged_audio >= limits::ACK_AUDIO_PACKETS_MAX
            || self.unacknowledged_us >= ACK_SOUND_US_MAX;
        let wait_us = if at_once { 0 } else { u64::from(limits::ACK_EVERY_MS_MAX) * 1_000 };
        self.since_us.map(|since_us| since_us.saturating_add(wait_us))
    }

    /// Everything so far is acknowledged: the next one is due as if nothing had come.
    pub(super) fn acknowledged(&mut self) {
        (self.unacknowledged_control, self.unacknowledged_audio, self.unacknowledged_us) = (0, 0, 0);
        self.since_us = None;
    }

    /// The acknowledgement of everything so far; `audio`: the sound that need not come again.
    pub(super) fn ack(&self, audio: u32) -> down::Ack {
        down::Ack {
            control: self.control,
            audio,
            audio_bitrate: 0,
            audio_frame_ms: 0,
            audio_loss_percent: 0,
            audio_missing: 0,
            sound_until_us: 0,
            audio_missing_bits: 0,
        }
    }
}

/// Capture time of the end of sound that is so many packets of this length behind other sound.
fn end_behind(until_us: u64, packets: u32, packet_us: u32) -> u64 {
    until_us.saturating_add(u64::from(packets).saturating_mul(packet_us.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of 20 ms, captured at this time.
    fn sound(incoming: &mut Incoming, sequence: u32, captured_us: u64) {
        assert!(incoming.audio(sequence, 20_000, false, 0));
        incoming.note_sound(sequence, captured_us + 20_000, 20_000);
    }

    #[test]
    fn control_frames_come_once_each_and_in_order() {
        let mut incoming = Incoming::default();
        assert_eq!(incoming.control(1, 0), Order::Next);
        assert_eq!(incoming.control(1, 0), Order::Repeated);
        assert_eq!(incoming.control(3, 0), Order::Gap { expected: 2 });
        assert_eq!(incoming.control(2, 0), Order::Next);
        assert_eq!(incoming.control_received(), 2);
    }

    #[test]
    fn an_acknowledgement_is_due_after_a_second_or_enough_frames() {
        let mut incoming = Incoming::default();
        assert_eq!(incoming.ack_due_us(), None);
        incoming.control(1, 5);
        assert_eq!(incoming.ack_due_us(), Some(1_000_005));
        for sequence in 2..=limits::ACK_CONTROL_FRAMES_MAX {
            incoming.control(sequence, 100);
        }
        assert_eq!(incoming.ack_due_us(), Some(5));
        let ack = incoming.ack(0);
        assert_eq!(incoming.ack_due_us(), Some(5), "it may be sent for another reason");
        incoming.acknowledged();
        assert_eq!((ack.control, ack.audio), (limits::ACK_CONTROL_FRAMES_MAX, 0));
        assert_eq!(incoming.ack_due_us(), None);
        for sequence in 1..=limits::ACK_AUDIO_PACKETS_MAX {
            assert!(incoming.audio(sequence, 20_000, false, 7));
        }
        assert_eq!(incoming.ack_due_us(), Some(7));
        assert!(!incoming.audio(1_000_000, 20_000, false, 8), "too far ahead");
        assert_eq!(incoming.audio_received(), limits::ACK_AUDIO_PACKETS_MAX);
    }

    #[test]
    fn the_end_of_a_stream_waits_for_no_sound_that_cannot_come() {
        let mut incoming = Incoming::default();
        assert_eq!([incoming.last_audio(700, true), incoming.last_audio(9_000, false)], [0, 0], "no sound has come");
        for sequence in 1..=20 {
            assert!(incoming.audio(sequence, 20_000, false, 0));
        }
        let named = [0, 19, 25, 9_000];
        assert_eq!(named.map(|named| incoming.last_audio(named, true)), [0, 19, 20, 20]);
        assert_eq!(named.map(|named| incoming.last_audio(named, false)), [0, 19, 25, 20]);
    }

    #[test]
    fn the_first_sound_behind_a_restart_tells_how_much_is_repeated() {
        let mut incoming = Incoming::default();
        incoming.note_time(50_000_000);
        assert_eq!(incoming.take_backlog_us(40_000_000), None, "no restart");
        let mut incoming = Incoming::continued(50_000_000, None, None);
        incoming.note_time(45_000_000);
        assert_eq!(incoming.take_backlog_us(32_000_000), Some(18_000_000));
        assert_eq!(incoming.take_backlog_us(32_020_000), None, "told once");
        let most_us = limits::REPLAY_OPEN_AUDIO_US_MAX;
        assert_eq!(
            Incoming::continued(50_000_000, None, None).take_backlog_us(0),
            Some(most_us),
            "no device keeps more"
        );
        assert_eq!(
            Incoming::continued(50_000_000, None, None).take_backlog_us(50_020_000),
            None,
            "nothing is repeated"
        );
    }

    #[test]
    fn what_is_older_than_the_hello_is_repeated_after_a_restart() {
        let incoming = Incoming::continued(50_000_000, None, None);
        assert_eq!([49_999_999, 50_000_000].map(|time_us| incoming.is_repeated(time_us)), [true, false]);
        assert!(!Incoming::default().is_repeated(0), "a session that begins, or goes on over a lost link");
    }

    #[test]
    fn the_end_of_a_stream_is_known_when_its_last_packet_has_come() {
        let mut incoming = Incoming::default();
        sound(&mut incoming, 1, 0);
        assert_eq!(incoming.stream_end_us(), None);
        // On QUIC the message may overtake sound.
        incoming.end_stream(2, 45_000);
        // A pause was between the two.
        sound(&mut incoming, 2, 30_000);
        sound(&mut incoming, 3, 1_000_000);
        assert_eq!(incoming.stream_end_us(), Some(50_000), "another stream has begun");
    }

    #[test]
    fn the_end_of_a_stream_is_behind_packets_that_are_under_way_or_lost() {
        let mut incoming = Incoming::default();
        incoming.end_stream(2, 45_000);
        assert_eq!(incoming.stream_end_us(), Some(45_000), "nothing of it has come");
        sound(&mut incoming, 1, 0);
        assert_eq!(incoming.stream_end_us(), Some(40_000));
        sound(&mut incoming, 3, 1_000_000);
        incoming.end_stream(6, 1_085_000);
        assert_eq!(incoming.stream_end_us(), Some(1_080_000), "three packets are under way");
        sound(&mut incoming, 5, 1_040_000);
        sound(&mut incoming, 4, 1_020_000);
        assert_eq!(incoming.stream_end_us(), Some(1_080_000), "the last one is lost");
    }

    #[test]
    fn sound_that_overtakes_the_end_of_the_stream_before_it_does_not_move_that() {
        let mut incoming = Incoming::default();
        sound(&mut incoming, 1, 0);
        sound(&mut incoming, 3, 1_000_000);
        incoming.end_stream(2, 45_000);
        assert_eq!(incoming.stream_end_us(), Some(45_000), "before the next stream");
        // The process behind this one ends the repeated stream in front of the first sound of the next.
        let mut next = Incoming::continued(50_000_000, None, incoming.stream_end_us());
        for (sequence, captured_us) in [(1, 0), (2, 20_000)] {
            assert_eq!(next.take_passed_end(sequence, captured_us), None);
            assert!(!next.take_repeated_end(captured_us, captured_us + 20_000));
        }
        assert_eq!(next.take_passed_end(3, 1_000_000), Some((2, 45_000)));
        assert_eq!(next.take_passed_end(4, 1_020_000), None, "once");
        let mut dealt_with = Incoming::continued(50_000_000, None, incoming.stream_end_us());
        assert_eq!(dealt_with.take_passed_end(1, 1_000_000), None, "nothing of that stream is repeated");
        // Its own packet, late.
        sound(&mut incoming, 2, 20_000);
        assert_eq!(incoming.stream_end_us(), Some(40_000));
    }

    #[test]
    fn a_stream_that_had_ended_ends_where_it_did_when_it_is_repeated() {
        let mut incoming = Incoming::continued(50_000_000, None, Some(40_000));
        assert!(!incoming.take_repeated_end(0, 20_000));
        assert_eq!(incoming.stream_end_us(), Some(40_000), "for the process behind this one");
        assert!(incoming.take_repeated_end(20_000, 40_000) && !incoming.take_repeated_end(40_000, 60_000));
        let mut dealt_with = Incoming::continued(50_000_000, None, Some(40_000));
        assert!(!dealt_with.take_repeated_end(40_000, 60_000), "what is repeated is of a later stream");
        assert!(!Incoming::default().take_repeated_end(0, 20_000));
    }

    #[test]
    fn a_sentence_is_lost_whose_beginning_does_not_come_again() {
        let lost = |addressed_us, captured_us| {
            let mut incoming = Incoming::continued(50, addressed_us, None);
            (incoming.take_lost_sentence(captured_us), incoming.take_lost_sentence(captured_us))
        };
        assert_eq!(lost(Some(30), 31), (true, false), "told once");
        assert_eq!([lost(Some(30), 30), lost(None, 31)], [(false, false); 2]);
    }

    #[test]
    fn longer_packets_and_pauses_are_acknowledged_as_early() {
        let mut incoming = Incoming::default();
        for sequence in 1..=6 {
            assert!(incoming.audio(sequence, 60_000, false, 5));
        }
        assert_eq!(incoming.ack_due_us(), Some(1_000_005));
        incoming.audio(7, 60_000, false, 5);
        assert_eq!(incoming.ack_due_us(), Some(5));
        incoming.acknowledged();
        incoming.audio(8, 20_000, true, 9);
        assert_eq!(incoming.ack_due_us(), Some(9), "a pause begins");
    }
}
