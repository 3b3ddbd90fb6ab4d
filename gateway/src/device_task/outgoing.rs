//! Frames to the device: numbered, sent, and kept until they are acknowledged, so that a lost link loses none of them
//! (PROTOCOL.md, section 9).

use std::collections::VecDeque;

use bytes::Bytes;
use device_protocol::{Class, Message, Stamp, limits};

use crate::{
    clock,
    transport::{LinkError, Sender, envelope},
};

/// Sound frames kept for a replay. The device is sent at most 1 s (67 frames of 15 ms) more than it has played, and has what it
/// acknowledged.
const KEPT_SOUND_MAX: usize = 80;

/// A frame that may have to be sent again.
struct Kept {
    sequence: u32,
    /// When it was sent last.
    sent_us: u64,
    bytes: Bytes,
}

/// The gateway's side of a session's frames. It outlives its connections.
pub(super) struct Outgoing {
    /// `None` while the link is lost.
    sender: Option<Sender>,
    /// Zero of the session's clock, on the gateway's clock: the first connection's.
    zero_us: u64,
    control_sequence: u32,
    audio_sequence: u32,
    /// Control frames that are not acknowledged; `None`: the session cannot be resumed, or not any more.
    control: Option<VecDeque<Kept>>,
    control_bytes: usize,
    audio: VecDeque<Kept>,
    /// Sound up to this sequence was sent over the present connection: what is kept beyond it is sent again.
    audio_sent: u32,
}

impl Outgoing {
    /// For a new session on this connection. `resumable`: frames are kept.
    pub(super) fn new(sender: Sender, resumable: bool) -> Self {
        Self {
            zero_us: sender.zero_us,
            sender: Some(sender),
            control_sequence: 0,
            audio_sequence: 0,
            control: resumable.then(VecDeque::new),
            control_bytes: 0,
            audio: VecDeque::new(),
            audio_sent: 0,
        }
    }

    /// Sends a message with its time on the gateway's clock; returns its sequence. While the link is lost it is only
    /// kept.
    ///
    /// # Errors
    /// The queue is full (the peer is too slow), the link is gone, or a field is beyond its maximum.
    pub(super) fn send<'a, M: Message<'a>>(&mut self, turn: u32, at_us: u64, message: M) -> Result<u32, LinkError> {
        let class = message.class();
        let sequence = match class {
            Class::Control => self.control_sequence + 1,
            Class::Audio => self.audio_sequence + 1,
            Class::Link | Class::Reserved => 0,
        };
        let time_us = at_us.saturating_sub(self.zero_us);
        let bytes = envelope(Stamp { sequence, turn, time_us }, message)?;
        match class {
            Class::Control => {
                self.control_sequence = sequence;
                self.keep_control(sequence, &bytes);
            }
            Class::Audio => {
                self.audio_sequence = sequence;
                self.keep_audio(sequence, &bytes);
            }
            Class::Link | Class::Reserved => {}
        }
        match (&self.sender, class) {
            (None, _) => {}
            (Some(sender), Class::Audio) => {
                sender.put_sound(bytes)?;
                self.audio_sent = sequence;
            }
            (Some(sender), _) => sender.put(bytes)?,
        }
        Ok(sequence)
    }

    fn keep_control(&mut self, sequence: u32, bytes: &Bytes) {
        let Some(kept) = &mut self.control else { return };
        self.control_bytes += bytes.len();
        kept.push_back(Kept { sequence, sent_us: 0, bytes: bytes.clone() });
        if kept.len() > limits::REPLAY_CONTROL_FRAMES_MAX || self.control_bytes > limits::REPLAY_CONTROL_BYTES_MAX {
            self.forget();
        }
    }

    fn keep_audio(&mut self, sequence: u32, bytes: &Bytes) {
        if self.control.is_none() {
            return;
        }
        if self.audio.len() == KEPT_SOUND_MAX {
            self.audio.pop_front();
        }
        self.audio.push_back(Kept { sequence, sent_us: clock::mono_us(), bytes: bytes.clone() });
    }

    /// A control frame is missing: nothing can be replayed any more.
    fn forget(&mut self) {
        self.control = None;
        self.control_bytes = 0;
        self.audio.clear();
    }

    /// The device has received the control frames up to this sequence without a gap, and this sound; returns when that
    /// was sent, if it is told of for the first time.
    pub(super) fn acknowledged(&mut self, control: u32, audio: u32) -> Option<u64> {
        let kept = self.control.as_mut()?;
        while let Some(frame) = kept.pop_front_if(|frame| frame.sequence <= control) {
            self.control_bytes -= frame.bytes.len();
        }
        let mut sent_us = None;
        while let Some(frame) = self.audio.pop_front_if(|frame| frame.sequence <= audio) {
            sent_us = (frame.sequence == audio).then_some(frame.sent_us);
        }
        sent_us
    }

    /// Whether the session may outlive its link.
    pub(super) fn is_resumable(&self) -> bool {
        self.control.is_some()
    }

    /// Whether all control frames behind this one are here. What is missing before them was acknowledged, perhaps after
    /// the device had asked.
    pub(super) fn can_replay(&self, control_received: u32) -> bool {
        self.is_resumable() && control_received <= self.control_sequence
    }

    pub(super) fn is_attached(&self) -> bool {
        self.sender.is_some()
    }

    /// The link is lost; `false`: it was before.
    pub(super) fn detach(&mut self) -> bool {
        self.sender.take().is_some()
    }

    /// The session goes on over another connection.
    pub(super) fn attach(&mut self, sender: Sender) {
        self.sender = Some(sender);
    }

    /// Sends again what the device has not received: control frames, then sound.
    ///
    /// # Errors
    /// The new link is gone, or too slow.
    pub(super) fn replay(&mut self, control_received: u32, audio_received: u32) -> Result<(), LinkError> {
        self.acknowledged(control_received, audio_received);
        self.audio_sent = audio_received;
        let (Some(sender), Some(control)) = (&self.sender, &self.control) else { return Ok(()) };
        control.iter().try_for_each(|frame| sender.put(frame.bytes.clone()))?;
        self.send_again()
    }

    /// Goes on sending again what a new connection lacks, as long as it takes sound.
    ///
    /// # Errors
    /// The link is gone.
    pub(super) fn send_again(&mut self) -> Result<(), LinkError> {
        let Some(sender) = &self.sender else { return Ok(()) };
        let sent = self.audio_sent;
        for frame in self.audio.iter_mut().skip_while(|frame| frame.sequence <= sent) {
            if !sender.takes_sound() {
                return Ok(());
            }
            sender.put_sound(frame.bytes.clone())?;
            frame.sent_us = clock::mono_us();
            self.audio_sent = frame.sequence;
        }
        Ok(())
    }

    /// Whether new sound may be sent: the link has sent the sound that it had, and all that is kept was sent over it.
    /// A lost link keeps all.
    pub(super) fn takes_sound(&self) -> bool {
        let is_behind = self.audio.back().is_some_and(|newest| newest.sequence > self.audio_sent);
        self.sender.as_ref().is_none_or(|sender| !is_behind && sender.takes_sound())
    }

    /// Whether nothing at all waits for the link.
    pub(super) fn is_link_idle(&self) -> bool {
        self.sender.as_ref().is_some_and(Sender::is_idle)
    }

    /// Waits until the link takes more, where something has to wait for that.
    pub(super) async fn room_for_sound(&self) {
        match self.sender.as_ref().filter(|_| !self.takes_sound()) {
            Some(sender) => sender.room_for_sound().await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use device_protocol::{Decoded, Down, Sound, decode_down, down as message};
    use futures_util::FutureExt as _;
    use tokio::sync::mpsc;

    use super::*;

    fn link(frames: usize) -> (Sender, mpsc::Receiver<Bytes>) {
        let (queue, received) = mpsc::channel(frames);
        (Sender::new(queue), received)
    }

    fn chime() -> Down<'static> {
        Down::Chime(message::Chime { sound: Sound::Wake })
    }

    fn chunk(payload: &[u8]) -> Down<'_> {
        Down::SpeechChunk(message::SpeechChunk { speech: 1, clause: 0, position_us: 0, duration_us: 20_000, payload })
    }

    /// Class and sequence of all frames so far.
    fn sequences(received: &mut mpsc::Receiver<Bytes>) -> Vec<(Class, u32)> {
        let mut all = Vec::new();
        while let Ok(bytes) = received.try_recv() {
            let Ok(Decoded::Frame(frame)) = decode_down(&bytes) else { panic!("{bytes:?}") };
            all.push((Message::class(&frame.message), frame.stamp.sequence));
        }
        all
    }

    #[test]
    fn what_is_not_acknowledged_is_sent_again_unchanged_and_in_order() {
        let (sender, mut first) = link(64);
        let mut outgoing = Outgoing::new(sender, true);
        for _ in 0..3 {
            outgoing.send(0, 5, chime()).unwrap();
            outgoing.send(0, 5, chunk(b"x")).unwrap();
        }
        let sent = sequences(&mut first);
        assert_eq!(sent.len(), 6);
        outgoing.acknowledged(1, 0);
        assert!(outgoing.detach() && !outgoing.detach());
        assert_eq!(outgoing.send(0, 9, chime()).unwrap(), 4, "kept while the link is lost");
        assert!(outgoing.can_replay(1) && outgoing.can_replay(4));
        assert!(!outgoing.can_replay(5), "never sent");
        let (sender, mut second) = link(64);
        outgoing.attach(sender);
        outgoing.replay(2, 1).unwrap();
        let (control, audio) = (Class::Control, Class::Audio);
        assert_eq!(sequences(&mut second), [(control, 3), (control, 4), (audio, 2), (audio, 3)]);
        assert_eq!(outgoing.send(0, 9, chime()).unwrap(), 5);
    }

    #[test]
    fn a_control_frame_too_many_ends_the_hope_of_a_resume_and_not_the_link() {
        let (sender, mut received) = link(1_024);
        let mut outgoing = Outgoing::new(sender, true);
        for _ in 0..limits::REPLAY_CONTROL_FRAMES_MAX {
            outgoing.send(0, 0, chime()).unwrap();
        }
        assert!(outgoing.is_resumable() && outgoing.can_replay(0));
        outgoing.send(0, 0, chime()).unwrap();
        assert!(!outgoing.is_resumable() && !outgoing.can_replay(0));
        outgoing.send(0, 0, chime()).unwrap();
        assert_eq!(sequences(&mut received).len(), limits::REPLAY_CONTROL_FRAMES_MAX + 2);
    }

    #[test]
    fn of_sound_only_the_newest_is_kept() {
        let (sender, received) = link(1_024);
        let mut outgoing = Outgoing::new(sender, true);
        for _ in 0..KEPT_SOUND_MAX + 10 {
            outgoing.send(0, 0, chunk(b"x")).unwrap();
        }
        drop(received);
        let (sender, mut received) = link(1_024);
        outgoing.attach(sender);
        outgoing.replay(0, 0).unwrap();
        let again = sequences(&mut received);
        assert_eq!((again.len(), again[0]), (KEPT_SOUND_MAX, (Class::Audio, 11)));
    }

    #[test]
    fn new_sound_waits_until_all_that_is_kept_was_sent_again() {
        let (sender, received) = link(64);
        let mut outgoing = Outgoing::new(sender, true);
        for _ in 0..3 {
            outgoing.send(0, 5, chunk(b"x")).unwrap();
        }
        assert!(outgoing.takes_sound());
        drop(received);
        outgoing.detach();
        assert!(outgoing.takes_sound(), "it is kept");
        // A link that takes one packet at a time.
        let (sender, mut received) = link(1);
        outgoing.attach(sender);
        outgoing.replay(0, 0).unwrap();
        for sequence in 1..=3 {
            assert!(!outgoing.takes_sound(), "the link is full");
            // Its writer, on another thread, may take the packet at any moment.
            assert_eq!(sequences(&mut received), [(Class::Audio, sequence)]);
            assert_eq!(outgoing.takes_sound(), sequence == 3);
            // Nothing else would wake the session: there is room already.
            assert_eq!(outgoing.room_for_sound().now_or_never().is_some(), sequence < 3);
            outgoing.send_again().unwrap();
        }
    }
}
