//! The sequence numbers of one session: frames kept for replay, and acknowledgements due.

use std::collections::VecDeque;

use bytes::Bytes;
use device_protocol::limits;

/// A frame kept for a replay.
#[derive(Clone, Debug)]
struct SentFrame {
    sequence: u32,
    time_us: u64,
    frame: Replayed,
}

/// A frame that is sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The frame, unchanged.
    pub bytes: Bytes,
    /// Length of the sound in it, in microseconds; `None`: it has none.
    pub sound_us: Option<u64>,
}

impl Replayed {
    /// How long what is behind it waits: sound is replayed at most four times as fast as real time, and short packets no faster
    /// than a peer takes them (PROTOCOL.md, sections 9 and 17).
    pub fn interval_us(&self) -> u64 {
        let least_us = 1_000_000 / u64::from(limits::AUDIO_PACKETS_PER_S_MAX);
        self.sound_us.map_or(0, |sound_us| (sound_us / limits::REPLAY_SPEED_MAX).max(least_us))
    }
}

/// Outcome of a received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// New.
    Take,
    /// Received before.
    Drop,
    /// A sequence is missing.
    Gap,
}

/// Sequence state of both directions.
#[derive(Clone, Debug, Default)]
pub struct Sequences {
    control_sent: u32,
    audio_sent: u32,
    control_received: u32,
    audio_received: u32,
    /// When the highest one came.
    audio_received_us: u64,
    /// How many came, each counted once.
    audio_count: u32,
    /// Which of the last ones have come; bit 0 is the highest.
    audio_recent: u128,
    kept: VecDeque<SentFrame>,
    kept_bytes: usize,
    kept_sound: VecDeque<SentFrame>,
    /// The last sound that was dropped because it was too old, as its sequence and its capture time.
    dropped: Option<(u32, u64)>,
    /// Capture time before which the gateway has dealt with all sound; `None`: it says nothing of that.
    dealt_with_us: Option<u64>,
    /// Highest sound that the gateway has.
    audio_acknowledged: u32,
    overflowed: bool,
    unacknowledged_control: u32,
    unacknowledged_audio: u32,
    /// Arrival of the oldest frame that is not acknowledged.
    since_us: Option<u64>,
}

impl Sequences {
    /// Number of the next control frame.
    pub fn next_control(&mut self) -> u32 {
        self.control_sent = self.control_sent.saturating_add(1);
        self.control_sent
    }

    /// Number of the next sound frame.
    pub fn next_audio(&mut self) -> u32 {
        self.audio_sent = self.audio_sent.saturating_add(1);
        self.audio_sent
    }

    /// Number of the last sound frame.
    pub fn audio_sent(&self) -> u32 {
        self.audio_sent
    }

    /// Keeps a control frame until it is acknowledged.
    pub fn keep(&mut self, sequence: u32, time_us: u64, bytes: Bytes) {
        self.kept_bytes += bytes.len();
        self.kept.push_back(SentFrame { sequence, time_us, frame: Replayed { bytes, sound_us: None } });
        while self.kept.len() > limits::REPLAY_CONTROL_FRAMES_MAX || self.kept_bytes > limits::REPLAY_CONTROL_BYTES_MAX
        {
            if let Some(dropped) = self.kept.pop_front() {
                self.kept_bytes -= dropped.frame.bytes.len();
                self.overflowed = true;
            }
        }
    }

    /// Keeps a frame with sound of this length, captured at `time_us`, and drops those that are too old: all is kept for 10 s
    /// or, where the gateway says with what it has dealt, the rest for 30 s.
    pub fn keep_sound(&mut self, sequence: u32, (time_us, sound_us): (u64, u64), bytes: Bytes) {
        let frame = Replayed { bytes, sound_us: Some(sound_us) };
        self.kept_sound.push_back(SentFrame { sequence, time_us, frame });
        let most_us = match self.dealt_with_us {
            Some(_) => limits::REPLAY_OPEN_AUDIO_US_MAX,
            None => limits::REPLAY_AUDIO_US_MAX,
        };
        while let Some(old) = self.kept_sound.pop_front_if(|first| first.time_us + most_us < time_us) {
            self.dropped = Some((old.sequence, old.time_us));
        }
    }

    /// The gateway has dealt with all sound before this capture time, also for the next process; 0: it says nothing of that.
    pub fn handle_dealt_with(&mut self, until_us: u64) {
        if until_us > 0 {
            let until_us = *self.dealt_with_us.insert(self.dealt_with_us.unwrap_or(0).max(until_us));
            while self.kept_sound.pop_front_if(|first| first.time_us < until_us).is_some() {}
        }
    }

    /// The session goes on in a new one, with a gateway that was restarted: its frames have other numbers.
    pub fn continue_with_new_numbers(&mut self) {
        *self = Self { dealt_with_us: self.dealt_with_us, ..Self::default() };
    }

    /// Whether sound was dropped that a gateway lacks which has received this much.
    pub fn has_lost_behind(&self, audio: u32) -> bool {
        self.dropped.is_some_and(|(sequence, _)| sequence > audio)
    }

    /// Whether sound was dropped that a restarted gateway has not dealt with, as far as that is known.
    pub fn has_lost_since(&self, sound_until_us: u64) -> bool {
        let until_us = self.dealt_with_us.map(|until_us| until_us.max(sound_until_us));
        self.dropped.zip(until_us).is_some_and(|((_, time_us), until_us)| time_us >= until_us)
    }

    /// The gateway has received everything up to these.
    pub fn handle_ack(&mut self, control: u32, audio: u32) {
        while self.kept.front().is_some_and(|first| first.sequence <= control) {
            if let Some(first) = self.kept.pop_front() {
                self.kept_bytes -= first.frame.bytes.len();
            }
        }
        // It is kept all the same: a gateway that is restarted may ask for it.
        self.audio_acknowledged = self.audio_acknowledged.max(audio);
    }

    /// Notes a received control frame.
    pub fn receive_control(&mut self, now_us: u64, sequence: u32) -> Verdict {
        if sequence <= self.control_received {
            return Verdict::Drop;
        }
        if sequence != self.control_received + 1 {
            return Verdict::Gap;
        }
        self.control_received = sequence;
        self.unacknowledged_control += 1;
        self.since_us.get_or_insert(now_us);
        Verdict::Take
    }

    /// Notes a received sound frame; on QUIC in any order.
    pub fn receive_audio(&mut self, now_us: u64, sequence: u32) {
        let is_new = match sequence.checked_sub(self.audio_received) {
            Some(ahead @ 1..) => {
                self.audio_recent = self.audio_recent.checked_shl(ahead).unwrap_or(0) | 1;
                (self.audio_received, self.audio_received_us) = (sequence, now_us);
                true
            }
            _ => {
                let bit = 1u128.checked_shl(self.audio_received.saturating_sub(sequence)).unwrap_or(0);
                let is_new = bit != 0 && self.audio_recent & bit == 0;
                self.audio_recent |= bit;
                is_new
            }
        };
        self.audio_count += u32::from(is_new);
        self.unacknowledged_audio += 1;
        self.since_us.get_or_insert(now_us);
    }

    /// Last control sequence without a gap, and highest audio sequence.
    pub fn received(&self) -> (u32, u32) {
        (self.control_received, self.audio_received)
    }

    /// How many sequences of sound are missing, and how long ago the highest one came; 0: none came.
    pub fn sound_received(&self, now_us: u64) -> (u32, u64) {
        if self.audio_count == 0 {
            return (0, 0);
        }
        let lost = self.audio_received.saturating_sub(self.audio_count);
        (lost, now_us.saturating_sub(self.audio_received_us).max(1))
    }

    /// When an acknowledgement is due.
    pub fn ack_due(&self) -> Option<u64> {
        let at_once = self.unacknowledged_control >= limits::ACK_CONTROL_FRAMES_MAX
            || self.unacknowledged_audio >= limits::ACK_AUDIO_PACKETS_MAX;
        let wait_us = if at_once { 0 } else { u64::from(limits::ACK_EVERY_MS_MAX) * 1_000 };
        self.since_us.map(|since| since + wait_us)
    }

    /// Notes that everything received is acknowledged.
    pub fn acknowledged(&mut self) {
        self.unacknowledged_control = 0;
        self.unacknowledged_audio = 0;
        self.since_us = None;
    }

    /// Sound behind `audio` that is missing, as far as it is kept: so many packets, and of those behind them the ones whose bits are
    /// set, from the lowest.
    pub fn missing(&self, audio: u32, count: u32, bits: u64) -> VecDeque<Replayed> {
        let is_missing = |sequence: u32| match sequence.checked_sub(audio).and_then(|behind| behind.checked_sub(1)) {
            Some(nth) if nth < count => true,
            Some(nth) => bits.checked_shr(nth - count).unwrap_or(0) & 1 == 1,
            None => false,
        };
        let kept = self.kept_sound.iter().filter(|kept| is_missing(kept.sequence));
        kept.map(|kept| kept.frame.clone()).collect()
    }

    /// When this sound was captured, if it is kept.
    pub fn captured_us(&self, sequence: u32) -> Option<u64> {
        let at = self.kept_sound.binary_search_by_key(&sequence, |kept| kept.sequence).ok()?;
        self.kept_sound.get(at).map(|kept| kept.time_us)
    }

    /// Capture time of the oldest sound that is not acknowledged.
    pub fn unacknowledged_sound_us(&self) -> Option<u64> {
        let mut newest_first = self.kept_sound.iter().rev();
        newest_first.by_ref().take_while(|kept| kept.sequence > self.audio_acknowledged).last().map(|kept| kept.time_us)
    }

    /// False if a frame that a resume might need was dropped.
    pub fn can_resume(&self) -> bool {
        !self.overflowed
    }

    /// What a restarted gateway has not dealt with, in the order of times.
    pub fn not_dealt_with(&self, control: u32, sound_until_us: u64) -> VecDeque<Replayed> {
        let audio = self.kept_sound.iter().take_while(|kept| kept.time_us < sound_until_us).last();
        self.replay(control, audio.map_or(0, |kept| kept.sequence))
    }

    /// Frames that the gateway lacks, in the order of their times: it then sees what it would have seen.
    pub fn replay(&self, control: u32, audio: u32) -> VecDeque<Replayed> {
        let mut frames = self.kept.iter().filter(|kept| kept.sequence > control).peekable();
        let mut sound = self.kept_sound.iter().filter(|kept| kept.sequence > audio).peekable();
        let mut all = VecDeque::new();
        loop {
            let (first, next_sound) = (frames.peek(), sound.peek());
            let is_sound = match (first, next_sound) {
                (Some(frame), Some(packet)) => packet.time_us <= frame.time_us,
                (None, Some(_)) => true,
                (Some(_), None) => false,
                (None, None) => return all,
            };
            let kept = if is_sound { sound.next() } else { frames.next() };
            all.extend(kept.map(|kept| kept.frame.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replays_are_dropped_and_gaps_are_seen() {
        let mut sequences = Sequences::default();
        assert_eq!(sequences.receive_control(0, 1), Verdict::Take);
        assert_eq!(sequences.receive_control(0, 1), Verdict::Drop);
        assert_eq!(sequences.receive_control(0, 3), Verdict::Gap);
        assert_eq!(sequences.receive_control(0, 2), Verdict::Take);
        sequences.receive_audio(0, 5);
        sequences.receive_audio(0, 4);
        assert_eq!(sequences.received(), (2, 5));
        // Three are missing, until one of them comes late; a second copy changes nothing.
        assert_eq!(sequences.sound_received(70), (3, 70));
        sequences.receive_audio(80, 3);
        sequences.receive_audio(80, 3);
        sequences.receive_audio(90, 6);
        assert_eq!(sequences.sound_received(100), (2, 10));
    }

    #[test]
    fn acknowledgements_are_due_after_a_second_or_enough_frames() {
        let mut sequences = Sequences::default();
        assert_eq!(sequences.ack_due(), None);
        sequences.receive_control(5, 1);
        assert_eq!(sequences.ack_due(), Some(1_000_005));
        for sequence in 2..=16 {
            sequences.receive_control(100, sequence);
        }
        assert_eq!(sequences.ack_due(), Some(5));
        sequences.acknowledged();
        for sequence in 1..=50 {
            sequences.receive_audio(7, sequence);
        }
        assert_eq!(sequences.ack_due(), Some(7));
    }

    #[test]
    fn only_what_is_not_acknowledged_is_replayed() {
        let mut sequences = Sequences::default();
        for _ in 0..4 {
            let sequence = sequences.next_control();
            sequences.keep(sequence, u64::from(sequence) * 4_000_000 - 1, Bytes::from(vec![sequence as u8]));
            let sequence = sequences.next_audio();
            let captured = (u64::from(sequence) * 4_000_000, 20_000);
            sequences.keep_sound(sequence, captured, Bytes::from(vec![sequence as u8]));
        }
        sequences.handle_ack(1, 0);
        let frame = |number: u8, is_sound: bool| {
            let sound_us = is_sound.then_some(20_000);
            Replayed { bytes: Bytes::from(vec![number]), sound_us }
        };
        assert_eq!(sequences.replay(2, 3), [frame(3, false), frame(4, false), frame(4, true)]);
        // The first sound is 12 s older than the last: it was dropped.
        let all = sequences.replay(0, 0);
        assert_eq!(
            all,
            [frame(2, false), frame(2, true), frame(3, false), frame(3, true), frame(4, false), frame(4, true)]
        );
        assert!(sequences.can_resume());
        assert_eq!(sequences.missing(2, 2, 0), [frame(3, true), frame(4, true)]);
        assert_eq!(sequences.missing(0, 2, 0), [frame(2, true)]);
        // Behind the first one: the second of the later ones, and one that does not exist.
        assert_eq!(sequences.missing(1, 1, 0b10 | 1 << 63), [frame(2, true), frame(4, true)]);
        assert_eq!(sequences.missing(1, 0, 0b10), [frame(3, true)]);
    }

    #[test]
    fn sound_is_sent_again_four_times_as_fast_as_it_was_said_and_no_faster_than_it_is_taken() {
        let mut sequences = Sequences::default();
        sequences.keep(1, 0, Bytes::from_static(b"x"));
        for (number, sound_us) in [(1, 60_000), (2, 20_000), (3, 15_000), (4, 10_000)] {
            sequences.keep_sound(number, (u64::from(number) * 100_000, sound_us), Bytes::from_static(b"x"));
        }
        let intervals: Vec<u64> = sequences.replay(0, 0).iter().map(Replayed::interval_us).collect();
        assert_eq!(intervals, [0, 15_000, 5_000, 5_000, 5_000], "whatever the microphone sends now");
    }

    /// So many packets of 20 ms, each with its number as its content.
    fn recorded(packets: u32) -> Sequences {
        let mut sequences = Sequences::default();
        record(&mut sequences, packets);
        sequences
    }

    fn record(sequences: &mut Sequences, packets: u32) {
        for _ in 0..packets {
            let sequence = sequences.next_audio();
            let bytes = Bytes::copy_from_slice(&sequence.to_le_bytes());
            sequences.keep_sound(sequence, (u64::from(sequence) * 20_000, 20_000), bytes);
        }
    }

    /// The first packet that is sent again to a gateway that has dealt with this much.
    fn first_again(sequences: &Sequences, sound_until_us: u64) -> Option<u32> {
        let again = sequences.not_dealt_with(0, sound_until_us);
        again.front().map(|first| u32::from_le_bytes(first.bytes[..].try_into().unwrap()))
    }

    #[test]
    fn sound_that_is_not_dealt_with_is_kept_for_longer() {
        // A gateway that says nothing of it: 10 s.
        let mut sequences = recorded(2_000);
        sequences.handle_dealt_with(0);
        record(&mut sequences, 1);
        assert_eq!(first_again(&sequences, 0), Some(1_501));
        assert!(!sequences.has_lost_since(0), "nobody knows what was dealt with");
        assert!(sequences.has_lost_behind(1_499) && !sequences.has_lost_behind(1_500));

        // One that does: what it has dealt with is dropped at once, the rest is kept for 30 s.
        let mut sequences = recorded(500);
        sequences.handle_dealt_with(4_000_000);
        assert_eq!(first_again(&sequences, 0), Some(200));
        assert_eq!(first_again(&sequences, 6_000_000), Some(300));
        // An older report that comes late takes nothing back.
        sequences.handle_dealt_with(3_000_000);
        record(&mut sequences, 1_200);
        assert_eq!(first_again(&sequences, 0), Some(200), "30 s");
        assert!(!sequences.has_lost_since(0));
        record(&mut sequences, 1);
        assert_eq!(first_again(&sequences, 0), Some(201));
        assert!(sequences.has_lost_since(0), "nobody has heard it");
        assert!(!sequences.has_lost_since(4_020_000), "a row that the device was not told of any more");

        // Over a restart what is known of that goes on, and the numbers begin anew.
        sequences.continue_with_new_numbers();
        assert_eq!((sequences.next_audio(), first_again(&sequences, 0)), (1, None));
        assert!(!sequences.has_lost_since(0), "told once");
        sequences.keep_sound(1, (4_020_000, 20_000), Bytes::from_static(&[1, 0, 0, 0]));
        sequences.keep_sound(2, (34_000_000, 20_000), Bytes::from_static(&[2, 0, 0, 0]));
        assert_eq!(first_again(&sequences, 0), Some(1), "still 30 s");
    }

    #[test]
    fn a_dropped_control_frame_ends_the_hope_of_a_resume() {
        let mut sequences = Sequences::default();
        for _ in 0..=limits::REPLAY_CONTROL_FRAMES_MAX {
            let sequence = sequences.next_control();
            sequences.keep(sequence, 0, Bytes::from_static(b"x"));
        }
        assert!(!sequences.can_resume());
    }
}
