//! Input side: packets in, voice facts and utterances out.
//!
//! The path of a packet: jitter buffer, decoder, resampler, frames of 20 ms, pre-roll, voice detector, utterance. The
//! listener reports facts; the caller decides when a turn has ended and then calls [`Listener::close_utterance`].

mod background;
mod buffers;
mod config;
mod fact;
mod hearing;
mod stats;
mod taken;
mod timeline;
mod utterance;

use std::sync::Arc;

use background::Background;
use buffers::Buffers;
pub use config::{Config, Error};
pub use fact::Fact;
pub use stats::Stats;
use timeline::Timeline;
use utterance::Utterances;

use crate::codec::{Codec, Decoder};
use crate::frame::{FRAME_SAMPLES, RATE_HZ, samples_to_us, us_to_samples};
use crate::jitter::{self, JitterBuffer, Pushed};
use crate::microphone::{Analyser, Fault};
use crate::preroll::Preroll;
use crate::resample::Resampler;
use crate::samples::{Packet, Samples};
use crate::vad::detector::{Detector, Window};
use crate::vad::silero;

/// How long an ended stream waits for its next packet, up to the last one, in microseconds (PROTOCOL.md, section 8).
const LAST_PACKET_WAIT_US: u64 = 200_000;

/// How long the replay of a device whose link is back may take to begin, in microseconds.
const REPLAY_WAIT_US: u64 = 1_000_000;

/// How often a device that stopped sending is reported as silent, in microseconds.
const VANISHED_EVERY_US: u64 = 100_000;

/// After which time a device that said that it pauses is silent, in microseconds, and how often that is reported.
const PAUSED_EVERY_US: u64 = 40_000;

/// The device has ended its stream after a packet that may still be in transit.
#[derive(Clone, Copy)]
struct Ending {
    last: u32,
    due_us: u64,
}

/// Whether a packet is of the stream that follows the one with this last packet (0: there was none). Numbers wrap.
fn is_behind(packet: Option<u32>, last: u32) -> bool {
    last != 0 && packet.is_some_and(|packet| (last.wrapping_sub(packet) as i32) < 0)
}

/// One device's ear.
pub struct Listener {
    config: Config,
    jitter: JitterBuffer<Packet>,
    decoder: Decoder,
    resampler: Resampler,
    buffers: Buffers,
    windows: Vec<Window>,
    recent: Preroll,
    detector: Detector,
    background: Background,
    /// Whether the detector finds a voice at present.
    is_voiced: bool,
    microphone: Analyser,
    timeline: Timeline,
    utterances: Utterances,
    muted: bool,
    /// Sound since it was last taken; `None` while the tap is off.
    tap: Option<Samples>,
    /// Samples of the last packet at 16 kHz: the assumed length of a lost one.
    packet_samples: u64,
    /// The packet before the next one is lost, and the next one may have a copy of it.
    lost_before: bool,
    /// Samples of lost packets before the next one that are not filled yet.
    missing: u64,
    last_arrival_us: Option<u64>,
    /// The last packet began a pause of discontinuous transmission: what is not sent is silence.
    pausing: bool,
    /// The packet in which the last utterance was found to have begun.
    opened_in: Option<u32>,
    ending: Option<Ending>,
    /// When a device that stopped sending was last reported silent.
    vanished_told_us: Option<u64>,
    counts: Stats,
}

impl Listener {
    /// A listener for one device's stream.
    ///
    /// # Errors
    /// A codec, rate or setting that cannot be used.
    pub fn new(config: Config, silero: Arc<silero::Model>) -> Result<Self, Error> {
        config.check()?;
        // Opus decodes to any rate, so it decodes to the gateway's directly.
        let decoded_hz = match config.codec {
            Codec::Opus => RATE_HZ,
            Codec::Pcm16 | Codec::Lc3(_) => config.rate_hz,
        };
        let resampler = Resampler::new(decoded_hz, RATE_HZ)?;
        Ok(Self {
            jitter: JitterBuffer::new(config.jitter.clone().with_copies(config.codec.has_copies())),
            decoder: Decoder::new(config.codec, decoded_hz)?,
            buffers: Buffers::new(decoded_hz),
            windows: Vec::new(),
            recent: Preroll::new(us_to_samples(config.preroll_us, RATE_HZ) as usize),
            detector: Detector::new(silero, config.gate_hangover_us),
            background: Background::new(),
            is_voiced: false,
            microphone: Analyser::new(config.dead_us),
            timeline: Timeline::new(resampler.delay_us()),
            resampler,
            utterances: Utterances::new(&config),
            muted: false,
            tap: None,
            packet_samples: FRAME_SAMPLES as u64,
            lost_before: false,
            missing: 0,
            last_arrival_us: None,
            pausing: false,
            opened_in: None,
            ending: None,
            vanished_told_us: None,
            counts: Stats::default(),
            config,
        })
    }

    /// Takes in one packet that arrived at `now_us`, and hears the next one, unless that is missing; appends the resulting facts to
    /// `facts`. More may be ready, which [`tick`](Self::tick) hears.
    ///
    /// # Errors
    /// The packet that was heard, which need not be the one pushed, cannot be decoded. The stream goes on: it was concealed.
    pub fn push_packet(
        &mut self,
        seq: u32,
        capture_us: u64,
        packet: &[u8],
        now_us: u64,
        facts: &mut Vec<Fact>,
    ) -> Result<(), Error> {
        if self.muted {
            self.counts.muted += 1;
            return Ok(());
        }
        if packet.is_empty() || packet.len() > crate::codec::PACKET_BYTES_MAX {
            self.note_undecodable();
            return Err(crate::codec::Error::PacketLength { bytes: packet.len() }.into());
        }
        if self.jitter.push(seq, capture_us, packet.into(), now_us) == Pushed::Accepted {
            self.last_arrival_us = Some(now_us);
            self.vanished_told_us = None;
            if let Some(ending) = &mut self.ending {
                ending.due_us = now_us.saturating_add(LAST_PACKET_WAIT_US);
            }
        }
        self.hear_next(now_us, facts)
    }

    /// The device stopped its microphone after packet `last` (0: it sent none). The open utterance ends there, or after
    /// 200 ms without any packet. One that began behind it is of the next stream, whose sound may come before this is known.
    pub fn end_stream(&mut self, last: u32, now_us: u64, facts: &mut Vec<Fact>) {
        let due_us = if last == 0 { now_us } else { now_us.saturating_add(LAST_PACKET_WAIT_US) };
        if self.ending.take().is_some() {
            self.utterances.end(&self.timeline, facts);
        }
        self.ending = (!self.muted).then_some(Ending { last, due_us });
        self.tell_jitter();
        self.end_if_due(now_us, facts);
    }

    /// Ends the utterance where the last packet of the stream was taken in, and otherwise where it is no longer waited for.
    fn end_if_due(&mut self, now_us: u64, facts: &mut Vec<Fact>) {
        let is_due = self.ending_due_us().is_some_and(|due_us| due_us <= now_us);
        self.end_if(is_due, facts);
    }

    fn end_if(&mut self, is_due: bool, facts: &mut Vec<Fact>) {
        let ended = self.ending.take_if(|ending| is_due || self.jitter.is_past(ending.last));
        let Some(Ending { last, .. }) = ended else { return };
        if !is_behind(self.opened_in, last) {
            self.utterances.end(&self.timeline, facts);
        }
        if !is_behind(self.jitter.last(), last) {
            // What helps with the next packet only takes no memory until there is one.
            self.decoder.release();
            self.recent.erase();
            self.detector.release();
            self.buffers.release();
        }
    }

    /// When an ended stream no longer waits for its last packet.
    fn ending_due_us(&self) -> Option<u64> {
        let asked_until_us = self.jitter.asked_until_us().unwrap_or(0);
        self.ending.map(|ending| ending.due_us.max(asked_until_us))
    }

    /// Advances time: the next packet is heard, gaps are given up, a device that stopped sending counts as silent. To be called again
    /// while more [is ready](Self::is_ready), once the caller has acted upon the facts.
    pub fn tick(&mut self, now_us: u64, facts: &mut Vec<Fact>) {
        if self.muted {
            return;
        }
        if let Err(error) = self.hear_next(now_us, facts) {
            tracing::debug!(%error, "packet behind a gap");
        }
        // What has come is before the end and before any silence.
        if self.is_ready(now_us) {
            return;
        }
        self.end_if_due(now_us, facts);
        if self.vanished_due_us().is_some_and(|due| now_us >= due) {
            self.vanished_told_us = Some(now_us);
            let unheard_us = now_us.saturating_sub(self.last_arrival_us.unwrap_or(now_us));
            let end = self.recent.end() + us_to_samples(unheard_us, RATE_HZ);
            self.utterances.silent_until(end, &self.timeline, facts);
        }
    }

    /// The link was lost and is back at `now_us`; the device replays what it has kept, on a transport with these
    /// limits. [`tick`](Self::tick) must not have been called meanwhile: no sound counted as missing.
    pub fn resume(&mut self, jitter: jitter::Config, now_us: u64) {
        self.jitter.resume(jitter.with_copies(self.config.codec.has_copies()));
        // The first packet of the replay takes a round trip.
        self.last_arrival_us = self.last_arrival_us.map(|_| now_us.saturating_add(REPLAY_WAIT_US));
        if let Some(ending) = &mut self.ending {
            ending.due_us = now_us.saturating_add(LAST_PACKET_WAIT_US);
        }
    }

    /// Capture time of the end of the sound so far, on the device's clock; `None`: none yet.
    pub fn heard_until_us(&self) -> Option<u64> {
        self.timeline.packet_us(self.recent.end() + self.buffers.partial.len() as u64)
    }

    /// The last packet that was taken in or given up as lost: what came behind a gap is not counted before the gap is
    /// filled. `None`: none yet, or the microphone is muted.
    pub fn last_sequence(&self) -> Option<u32> {
        self.jitter.last()
    }

    /// The packets behind [`last_sequence`](Self::last_sequence) that the device should send again; it is told at once.
    pub fn take_missing(&mut self, now_us: u64) -> Option<jitter::Missing> {
        self.jitter.take_missing(now_us)
    }

    /// Whether [`take_missing`](Self::take_missing) has something.
    pub fn is_missing(&self) -> bool {
        self.jitter.is_missing()
    }

    /// When [`tick`](Self::tick) will have an effect.
    pub fn next_wake_us(&self) -> Option<u64> {
        if self.muted {
            return None;
        }
        [self.jitter.next_wake_us(), self.vanished_due_us(), self.ending_due_us()].into_iter().flatten().min()
    }

    /// Sound of the open utterance so far, mono at 16 kHz: from before its onset to shortly after
    /// the last voice. `None` for any other utterance.
    pub fn utterance_pcm(&self, utterance: u32) -> Option<&[i16]> {
        self.utterances.pcm(utterance)
    }

    /// The open utterance: its number, its sound so far with the silence behind the last voice, mono at 16 kHz, and the
    /// capture time of that sound's end in microseconds.
    pub fn open_utterance(&self) -> Option<(u32, &[i16], u64)> {
        let (utterance, start, pcm) = self.utterances.open()?;
        Some((utterance, pcm, self.timeline.capture_us(start + pcm.len() as u64)))
    }

    /// Ends the turn by the caller's decision: its sound is dropped, and the next voice opens a new utterance without
    /// it. A number other than the open utterance's is ignored.
    pub fn close_utterance(&mut self, utterance: u32) {
        self.utterances.close(utterance, self.recent.end());
    }

    /// The first samples of the open utterance, at 16 kHz, do not count for its longest length, which may be twice as much
    /// with them.
    pub fn measure_from(&mut self, utterance: u32, samples: usize) {
        self.utterances.measure_from(utterance, samples);
    }

    /// From now on a pause of the open utterance is reported after so much silence, in place of [`Config::pause_us`].
    pub fn pause_after(&mut self, utterance: u32, silence_us: u64) {
        self.utterances.pause_after(utterance, us_to_samples(silence_us, RATE_HZ));
    }

    /// Sets the end-of-turn score of the present pause, for the `Silence` facts that follow.
    pub fn note_score(&mut self, utterance: u32, score: f32) {
        self.utterances.note_score(utterance, score);
    }

    /// The next fault of the microphone that was found in its sound, or that is gone (`false`).
    pub fn take_fault(&mut self) -> Option<(Fault, bool)> {
        self.microphone.take_change()
    }

    /// Muted: packets are dropped undecoded, and all stored sound is erased, including the open utterance.
    pub fn set_muted(&mut self, muted: bool) {
        if muted && !self.muted {
            self.jitter.reset();
            self.resampler.reset();
            self.buffers.erase();
            self.decoder.release();
            self.recent.erase();
            self.detector.reset();
            self.background = Background::new();
            self.microphone.forget();
            self.tap = self.tap.take().map(|_| Samples::default());
            self.utterances.erase(self.recent.end());
            self.timeline.unhook();
            self.last_arrival_us = None;
            self.pausing = false;
            self.lost_before = false;
            self.missing = 0;
            self.ending = None;
        }
        self.muted = muted;
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        let (jitter, vad) = (self.jitter.stats(), self.detector.stats());
        Stats {
            lost: jitter.lost,
            late: jitter.late,
            duplicate: jitter.duplicate,
            overflow: jitter.overflow,
            gate_open_frames: vad.open_frames,
            silero_windows: vad.windows,
            silero_failures: vad.failures,
            utterances: self.utterances.opened(),
            ..self.counts
        }
    }

    /// When a device that stopped sending within an utterance is next reported silent. What a gap holds up is none of its
    /// silence.
    fn vanished_due_us(&self) -> Option<u64> {
        if !self.utterances.is_open() || self.jitter.is_holding() {
            return None;
        }
        let (patience_us, every_us) = if self.pausing {
            (PAUSED_EVERY_US, PAUSED_EVERY_US)
        } else {
            (self.config.vanished_us, VANISHED_EVERY_US)
        };
        match self.vanished_told_us {
            Some(told_us) => Some(told_us.saturating_add(every_us)),
            None => Some(self.last_arrival_us?.saturating_add(patience_us)),
        }
    }

    /// Microseconds of sound processed so far.
    pub fn heard_us(&self) -> u64 {
        samples_to_us(self.recent.end(), RATE_HZ)
    }
}

impl Drop for Listener {
    /// The device is gone: what is kept of its sound is erased.
    fn drop(&mut self) {
        self.set_muted(true);
    }
}
