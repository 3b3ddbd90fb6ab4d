//! Hears what has come, one packet after the other: decodes it, makes up for what is missing, and looks for voices.

use super::{Error, Fact, Listener};
use crate::codec::is_pause;
use crate::frame::{FRAME_SAMPLES, RATE_HZ, us_to_samples};
use crate::jitter::Slot;
use crate::samples::Samples;
use crate::vad::detector::Window;

/// Lost packets in a row that are concealed. Beyond 100 ms concealment misleads the recogniser more than silence does.
const CONCEAL_MAX: u32 = 5;

/// Longest stretch of missing sound that is filled with silence, in microseconds: it bounds what a wrong device clock can cause.
const FILL_US_MAX: u64 = 1_000_000;

/// Difference between a packet's capture time and the decoded sound from which on it counts as a gap, in microseconds:
/// microphone clocks drift, and a first packet may be stamped at either end.
const GAP_US_MIN: u64 = 40_000;

impl Listener {
    /// Whether there is more that [`tick`](Self::tick) hears at `now_us`: packets that a gap has held up come at once.
    pub fn is_ready(&self, now_us: u64) -> bool {
        !self.muted && self.jitter.next_wake_us().is_some_and(|due_us| due_us <= now_us)
    }

    /// Hears the next packet, or makes up for the lost ones before it. Not more: by what it hears the caller may close the utterance, and
    /// what comes behind belongs to the next one.
    pub(super) fn hear_next(&mut self, now_us: u64, facts: &mut Vec<Fact>) -> Result<(), Error> {
        // The caller may have closed the utterance.
        self.tell_jitter();
        let opened = self.utterances.opened();
        let heard = match self.jitter.pop_ready(now_us) {
            Slot::Wait => Ok(()),
            Slot::Lost { seq, count } => {
                tracing::debug!(seq, count, "packets are given up as lost");
                self.hear_lost(count, facts);
                Ok(())
            }
            Slot::Packet { capture_us, payload, .. } => self.hear_packet(capture_us, &payload, facts),
        };
        if self.utterances.opened() > opened {
            self.opened_in = self.jitter.last();
        }
        self.end_if(false, facts);
        self.tell_jitter();
        heard
    }

    /// Tells the jitter buffer what to wait for.
    pub(super) fn tell_jitter(&mut self) {
        let pauses = self.jitter.newest().is_some_and(|packet| is_pause(self.config.codec, packet));
        self.jitter.note_voice(self.utterances.is_speaking());
        self.jitter.note_sending(self.ending.is_none() && !pauses);
    }

    /// Makes up for lost packets, but for the last one, which may be in the next packet as a copy.
    fn hear_lost(&mut self, count: u32, facts: &mut Vec<Fact>) {
        let before = count.saturating_sub(1);
        for _ in 0..before.min(CONCEAL_MAX) {
            self.conceal(facts);
        }
        let rest = u64::from(before.saturating_sub(CONCEAL_MAX));
        self.missing = rest.saturating_mul(self.packet_samples);
        self.fill(self.missing, facts);
        self.lost_before = true;
    }

    fn hear_packet(&mut self, capture_us: u64, payload: &[u8], facts: &mut Vec<Fact>) -> Result<(), Error> {
        self.buffers.make_room();
        if std::mem::take(&mut self.lost_before) {
            self.counts.concealed += 1;
            self.buffers.decoded.clear();
            self.decoder.recover(payload, &mut self.buffers.decoded);
            self.hear(false, facts);
        }
        self.meet(capture_us, facts);
        self.missing = 0;
        self.pausing = is_pause(self.config.codec, payload);
        self.buffers.decoded.clear();
        if let Err(error) = self.decoder.decode(payload, &mut self.buffers.decoded) {
            self.note_undecodable();
            self.conceal(facts);
            return Err(error.into());
        }
        self.counts.packets += 1;
        self.counts.undecodable = 0;
        self.packet_samples = self.hear(true, facts);
        if !self.pausing {
            self.microphone.push_packet(payload, self.packet_samples);
        }
        Ok(())
    }

    pub(super) fn note_undecodable(&mut self) {
        self.counts.decode_errors += 1;
        self.counts.undecodable = self.counts.undecodable.saturating_add(1);
    }

    /// Compares a packet's capture time with the sound so far and fills a gap between them: a device may send nothing
    /// while its own detector finds no voice.
    fn meet(&mut self, capture_us: u64, facts: &mut Vec<Fact>) {
        let position = self.recent.end() + self.buffers.partial.len() as u64;
        if let Some(expected_us) = self.timeline.packet_us(position) {
            let gap_us = capture_us.saturating_sub(expected_us);
            if gap_us >= GAP_US_MIN {
                self.fill(us_to_samples(gap_us.min(FILL_US_MAX), RATE_HZ), facts);
            }
        }
        let position = self.recent.end() + self.buffers.partial.len() as u64;
        self.timeline.anchor(position, capture_us);
    }

    fn conceal(&mut self, facts: &mut Vec<Fact>) {
        self.buffers.make_room();
        self.counts.concealed += 1;
        self.buffers.decoded.clear();
        self.decoder.conceal(&mut self.buffers.decoded);
        self.hear(false, facts);
    }

    /// Inserts `samples` of silence without running the detector, which would take too long for the device task. Where packets
    /// are missing, nobody knows whether it was silent: the utterance does not count it as a pause.
    fn fill(&mut self, samples: u64, facts: &mut Vec<Fact>) {
        let samples = samples.min(us_to_samples(FILL_US_MAX, RATE_HZ)) as usize;
        if samples == 0 {
            return;
        }
        let length = self.buffers.partial.len() + samples;
        let mut silence = Vec::with_capacity(length);
        silence.append(&mut self.buffers.partial);
        silence.resize(length, 0);
        let silence = Samples::from(silence);
        self.keep(&silence);
        self.recent.push(&silence);
        self.detector.skip();
        let missing = self.missing.min(samples as u64);
        self.missing -= missing;
        self.utterances.skip(missing, self.recent.end());
        self.utterances.append(&silence, &self.timeline, facts);
    }

    /// Resamples the decoded sound and processes each full frame; returns the samples at 16 kHz. `sent`: it is the sound of
    /// a packet, and not made up.
    fn hear(&mut self, sent: bool, facts: &mut Vec<Fact>) -> u64 {
        let before = self.buffers.partial.len();
        self.resampler.push(&self.buffers.decoded, &mut self.buffers.partial);
        let samples = (self.buffers.partial.len() - before) as u64;
        if sent && self.pausing {
            self.microphone.pause();
        } else if sent {
            self.microphone.push(&self.buffers.partial[before..]);
        }
        let mut partial = std::mem::take(&mut self.buffers.partial);
        let (frames, rest) = partial.as_chunks::<FRAME_SAMPLES>();
        let used = partial.len() - rest.len();
        for frame in frames {
            self.hear_frame(frame, facts);
        }
        partial.drain(..used);
        self.buffers.partial = partial;
        samples
    }

    fn hear_frame(&mut self, frame: &[i16; FRAME_SAMPLES], facts: &mut Vec<Fact>) {
        self.counts.frames += 1;
        self.keep(frame);
        self.recent.push(frame);
        self.utterances.append(frame, &self.timeline, facts);
        self.windows.clear();
        let keep_open = self.utterances.is_open();
        self.detector.push(frame, &self.recent, keep_open, &mut self.windows);
        let is_voice = |window: &Window| window.probability.is_some_and(|probability| probability >= self.config.enter);
        self.is_voiced = self.windows.last().map_or(self.is_voiced && self.detector.is_following(), is_voice);
        self.background.push(frame);
        let open = self.utterances.open().map(|(_, start, _)| (self.recent.end() - start) as usize / FRAME_SAMPLES);
        let is_background = self.background.is_all(self.is_voiced, open);
        for window in &self.windows {
            // A voice that is no louder than all that is heard is none of the wearer's.
            let probability = window.probability.map(|probability| if is_background { 0.0 } else { probability });
            self.utterances.judge(&Window { probability, ..*window }, &self.recent, &self.timeline, facts);
            if window.probability.is_some_and(|probability| probability >= self.config.enter) {
                self.microphone.push_voiced(self.buffers.voiced(window.start, &self.recent));
            }
        }
    }
}
