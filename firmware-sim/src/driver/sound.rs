//! Microphone packets, speaker reports, and sending of messages.

use std::sync::atomic::Ordering;

use device_protocol::down;

use crate::acoustics::{Ambience, Change};
use crate::microphone::ClipTimes;
use crate::wake::{Phrase, Verdict};

use super::*;

/// Missing packets that are sent again beside what is new.
const MISSING_BESIDE_MAX: usize = 8;

impl Driver {
    /// Computes the noise around the wearer before anything is captured. False: it cannot be, and the session is over.
    pub(super) async fn prepare_sound(&mut self) -> bool {
        let Some(noise) = self.options.acoustics.noise else { return true };
        match Ambience::prepare(noise).await {
            Ok(ambience) => {
                self.ambience = Some(ambience);
                true
            }
            Err(what) => {
                self.see(Seen::Violation { what: format!("no noise: {what}") });
                if let Some(first) = self.first.take() {
                    // Nobody may be waiting.
                    drop(first.send(Err(Error::Acoustics(what))));
                }
                false
            }
        }
    }

    /// Changes a part of the acoustic world; `ambience` is the sound of a noise.
    pub(super) fn change_acoustics(&mut self, change: Change, ambience: Option<Arc<Ambience>>) {
        self.options.acoustics.apply(change);
        if matches!(change, Change::Noise(_)) {
            self.ambience = ambience;
        }
        self.set_scene(&[change]);
    }

    /// Puts these parts around the microphone, if there is one.
    pub(super) fn set_scene(&mut self, parts: &[Change]) {
        let Some(microphone) = &mut self.microphone else { return };
        let acoustics = &self.options.acoustics;
        self.speaker.tap(acoustics.echo.is_some() || acoustics.half_duplex.is_some());
        for part in parts {
            if let Err(what) = microphone.scene().apply(*part, self.ambience.as_deref()) {
                self.log.push(self.clock.now_us(), Seen::Violation { what: format!("no such acoustics: {what}") });
            }
        }
    }

    pub(super) fn run_microphone(&mut self, now_us: u64) {
        // What is captured by now may hold what is played by now.
        self.speaker.poll(now_us);
        if let Some(microphone) = &mut self.microphone {
            while let Some(output) = self.speaker.poll_output() {
                microphone.scene().play(&output);
            }
            microphone.scene().played_until(now_us);
        }
        for _ in 0..CATCH_UP_PACKETS_MAX {
            let Some(microphone) = &mut self.microphone else {
                return;
            };
            let (capture_us, frame_us) = (self.capture_us, microphone.frame_us());
            if capture_us + frame_us > now_us {
                return;
            }
            self.capture_us += frame_us;
            let packet = match microphone.capture(capture_us) {
                Ok(packet) => packet,
                Err(what) => {
                    self.microphone = None;
                    self.see(Seen::Violation { what: format!("the microphone failed: {what}") });
                    return self.end_sound(MicEnd::Failed);
                }
            };
            // Sound into a muted microphone counts as said.
            if !self.muted && packet.is_sent {
                let captured = Captured { payload: packet.payload, duration_us: frame_us, at_us: capture_us };
                self.take_captured(&packet.pcm, captured);
            }
            if let Some(said) = packet.said {
                let ClipTimes { label, begins_us, onset_us, t0_us } = said;
                self.see(Seen::Said { label, begins_us, onset_us, t0_us });
            }
        }
        // After a longer stall the uncaptured time is silence.
        self.capture_us = self.capture_us.max(now_us);
    }

    /// Sends a packet, or what follows from it where the glasses hear their wake phrase by themselves.
    fn take_captured(&mut self, pcm: &[i16], captured: Captured) {
        let needed = self.is_needed;
        let Some(wake) = &mut self.wake else { return self.send_captured(&captured) };
        let Verdict { phrase, sent, asleep } = match wake.take(pcm, captured, needed) {
            Ok(verdict) => verdict,
            Err(what) => {
                self.wake = None;
                return self.see(Seen::Violation { what: format!("the wake-word detector failed: {what}") });
            }
        };
        if let Some(Phrase { words, at_us, score_permille }) = phrase {
            self.send(Up::Wake(up::Wake { phrase: &words, score_permille }), at_us, self.turn);
            self.log.push(at_us, Seen::Wake { phrase: words, score_permille });
        }
        if sent.len() > 1 && self.replay.is_empty() {
            // What was kept is sent at the pace of a replay, and what is newer behind it.
            self.replay_us = self.clock.now_us();
            sent.iter().for_each(|captured| self.queue_captured(captured));
        } else {
            sent.iter().for_each(|captured| self.send_captured(captured));
        }
        if asleep {
            self.end_sound(MicEnd::PowerSave);
        }
    }

    fn send_captured(&mut self, captured: &Captured) {
        if let Some(audio) = self.audio(captured) {
            self.send(Up::Audio(audio), captured.at_us, self.turn);
        }
    }

    fn queue_captured(&mut self, captured: &Captured) {
        if let Some(audio) = self.audio(captured) {
            self.queue(Up::Audio(audio), captured.at_us, self.turn);
        }
    }

    fn audio<'a>(&self, captured: &'a Captured) -> Option<up::Audio<'a>> {
        let microphone = self.microphone.as_ref()?;
        Some(up::Audio {
            codec: microphone.wire_codec(),
            rate_hz: microphone.rate_hz(),
            duration_us: u32::try_from(captured.duration_us).unwrap_or(0),
            payload: &captured.payload,
        })
    }

    /// Codes the microphone as the gateway asks for.
    pub(crate) fn code_sound(&mut self, ack: &down::Ack) {
        let Some(microphone) = &mut self.microphone else { return };
        match microphone.set_coding(ack.audio_bitrate, ack.audio_frame_ms, ack.audio_loss_percent) {
            Ok(true) => {
                let (bitrate, frame_ms, loss_percent) = (ack.audio_bitrate, ack.audio_frame_ms, ack.audio_loss_percent);
                self.see(Seen::Coding { bitrate, frame_ms, loss_percent });
            }
            Ok(false) => {}
            Err(what) => self.see(Seen::Violation { what: format!("a coding that cannot be: {what}") }),
        }
    }

    pub(super) fn end_sound(&mut self, reason: MicEnd) {
        let last_audio_sequence = self.sequences.audio_sent();
        self.control(up::AudioEnd { last_audio_sequence, reason });
    }

    pub(crate) fn take_reports(&mut self) {
        while let Some(report) = self.speaker.poll_report() {
            match report {
                Report::Played { speech, turn, clause, played_us, at_us, state } => {
                    self.send(Up::Played(up::Played { speech, clause, played_us, state }), at_us, turn);
                }
                Report::FirstSound { speech, turn, at_us } => {
                    self.log.push(at_us, Seen::FirstSound { turn, speech });
                }
                Report::Late { speech, at_us } => {
                    let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(heard) = heard.iter_mut().rfind(|heard| heard.speech == speech) {
                        heard.arrived_us = Some(at_us);
                    }
                }
                Report::Over(heard) => {
                    let (at_us, seen) = (
                        heard.ended_us,
                        Seen::SpeechHeard {
                            turn: heard.turn,
                            speech: heard.speech,
                            text: heard.text.clone(),
                            played_us: heard.played_us,
                            complete: heard.complete,
                        },
                    );
                    // A reader of the event may request the sound at once.
                    self.heard.lock().unwrap_or_else(PoisonError::into_inner).push(heard);
                    self.log.push(at_us, seen);
                }
            }
        }
    }

    pub(crate) fn see(&self, seen: Seen) {
        self.log.push(self.clock.now_us(), seen);
    }

    /// Sends a control message now.
    pub(crate) fn control<'a>(&mut self, message: impl Into<Up<'a>>) {
        self.send(message.into(), self.clock.now_us(), self.turn);
    }

    /// Stamps, keeps and sends a message. Before the first session nothing is sent.
    pub(super) fn send(&mut self, message: Up<'_>, time_us: u64, turn: u32) {
        let is_first = self.replay.is_empty() || self.link.is_none() || message.class() == Class::Link;
        let Some(frame) = self.stamped(message, time_us, turn) else { return };
        // What is older is sent first.
        if is_first {
            self.put(frame.bytes);
        } else {
            self.replay.push_back(frame);
        }
    }

    /// Stamps and keeps a message, which is sent in its turn.
    pub(super) fn queue(&mut self, message: Up<'_>, time_us: u64, turn: u32) {
        let frame = self.stamped(message, time_us, turn);
        self.replay.extend(frame);
    }

    fn stamped(&mut self, message: Up<'_>, time_us: u64, turn: u32) -> Option<Replayed> {
        self.welcome.as_ref()?;
        let class = message.class();
        let sound_us = match &message {
            Up::Audio(packet) => Some(u64::from(packet.duration_us)),
            _ => None,
        };
        let sequence = match class {
            Class::Control => self.sequences.next_control(),
            Class::Audio => self.sequences.next_audio(),
            Class::Link | Class::Reserved => 0,
        };
        let frame = Frame::new(Stamp { sequence, turn, time_us }, message);
        let bytes = match encode(&frame, &mut self.buffer) {
            Ok(length) => Bytes::copy_from_slice(self.buffer.get(..length).unwrap_or_default()),
            Err(error) => {
                // The sequence number is used up; the gateway would see a gap, so the session ends.
                self.see(Seen::Violation { what: format!("own message does not fit: {error}") });
                self.over = true;
                return None;
            }
        };
        match sound_us {
            Some(sound_us) => self.sequences.keep_sound(sequence, (time_us, sound_us), bytes.clone()),
            None if class == Class::Control => self.sequences.keep(sequence, time_us, bytes.clone()),
            None => {}
        }
        Some(Replayed { bytes, sound_us })
    }

    pub(super) fn put(&mut self, bytes: Bytes) {
        let Some(link) = &self.link else { return };
        // Where the connection has ended, what came before its end is still to be read: above all a goodbye.
        if let Err(mpsc::error::TrySendError::Full(_)) = link.up.try_send(bytes) {
            self.lose("the gateway takes nothing");
        }
    }

    /// The gateway has received sound up to `audio`.
    pub(crate) fn sound_acknowledged(&mut self, audio: u32, now_us: u64) {
        let Some(captured_us) = self.sequences.captured_us(audio) else { return };
        let age_us = now_us.saturating_sub(captured_us);
        if self.lag.acknowledged(audio, age_us)
            && let Some(delays) = &self.options.delays
        {
            // A packet is sent when all of it is captured.
            let packet_us = self.microphone.as_ref().map_or(0, Microphone::frame_us);
            delays.note(age_us.saturating_sub(packet_us));
        }
        self.order_sound();
    }

    /// Where the way does not keep up, sound is sent in order.
    pub(super) fn order_sound(&self) {
        if let Some(link) = &self.link {
            link.sound_in_order.store(self.lag.is_behind(), Ordering::Relaxed);
        }
    }

    /// Sends this sound again: the gateway has gaps behind `audio`.
    pub(crate) fn send_missing(&mut self, audio: u32, count: u32, bits: u64) {
        let missing = self.sequences.missing(audio, count, bits);
        if missing.is_empty() {
            return;
        }
        self.see(Seen::SentAgain { packets: missing.len() });
        let now_us = self.clock.now_us();
        if missing.len() > MISSING_BESIDE_MAX && self.replay.is_empty() {
            // What an outage took is replayed, and what is newer waits for it.
            self.replay = missing;
            self.replay_us = now_us;
            self.lag.begin(true);
            return self.order_sound();
        }
        if self.missing.is_empty() {
            self.missing_us = now_us;
        }
        self.missing.extend(missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, transport::Inbound};

    #[tokio::test]
    async fn what_came_before_the_end_of_the_connection_is_read_though_nothing_can_be_sent_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new("ws://127.0.0.1:1".parse().unwrap(), folder.path());
        let identity = Identity::load_or_make(&options.state).unwrap();
        let ((_commands, queue), (first, _settled)) = (mpsc::channel(1), oneshot::channel());
        let (log, clock) = (Log::default(), Clock::start());
        let mut driver = Driver::new(options, identity, clock, log.clone(), Arc::default(), queue, first);
        let ((up, sent), (received, down)) = (mpsc::channel(1), mpsc::channel(2));
        received.try_send(Inbound::Closed { code: 1000, reason: "revoked".to_owned() }).unwrap();
        driver.link = Some(Link {
            up,
            down,
            binding: [0; 32],
            certificate: [0; 32],
            name: "ws",
            loses_sound: false,
            sound_in_order: Arc::default(),
            endpoint: None,
        });
        // The connection has ended: nobody takes what is sent.
        drop((sent, received));
        driver.put(Bytes::from_static(b"a report"));
        let inbound = next_inbound(&mut driver.link).await;
        driver.handle_inbound(inbound);
        let [Event { seen: Seen::LinkLost { reason }, .. }] = &log.since(0)[..] else { panic!("{:?}", log.since(0)) };
        assert_eq!(reason, "closed with 1000 revoked");
    }
}
