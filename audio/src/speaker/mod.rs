//! Output side: clauses in, paced packets out, and a count of what was actually played.
//!
//! The device has a small buffer, so packets are sent ahead of time, within two limits. They are at most
//! [`Config::lead_us`] ahead of the clock, because sent sound cannot be taken back quickly and the wearer may interrupt
//! at any moment. And they are at most [`Config::hold_us`] ahead of what the device reports as *played*, which is also
//! what counts as spoken.

mod clause;
mod gain;
mod ledger;
mod pace;
mod resume;

use clause::Queue;
use gain::Gain;
use ledger::Ledger;
pub use ledger::{Played, Position};
use pace::Pace;
pub use pace::Report;
pub use resume::resume_at;

use crate::codec::{self, Codec, Encoder};
use crate::frame::{FRAME_US, samples_to_us, us_to_samples};
use crate::resample::{self, Resampler};

/// Most queued speech in microseconds: an answer arrives clause by clause, and a clause is short.
pub const QUEUE_US_MAX: u64 = 60_000_000;

/// Most clauses of one speech, queued or sent; an hour of speech has fewer.
pub const CLAUSES_MAX: usize = 1_024;

/// Most frames in one packet: 60 ms (of LC3 at most), the longest that a device must take where its bytes have room.
const PACKET_FRAMES_MAX: u64 = 3;

/// Longest lead in microseconds: with a longer one, what was sent would differ too much from what was heard at a hush.
pub const LEAD_US_MAX: u64 = 2_000_000;

/// Settings of one device's speaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How packets for the device are coded.
    pub codec: Codec,
    /// Sample rate of the device's speaker, one of [`codec::RATES_HZ`].
    pub rate_hz: u32,
    /// Bits per second, for Opus.
    pub bitrate: u32,
    /// Lead of packets over playback by the clock, in microseconds.
    pub lead_us: u64,
    /// Most microseconds sent beyond what the device reported as played; at least `lead_us`.
    pub hold_us: u64,
    /// Most bytes of a packet of several frames. One frame is sent whatever it has: 1,920 bytes at most.
    pub packet_bytes_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            codec: Codec::Pcm16,
            rate_hz: 16_000,
            bitrate: 24_000,
            lead_us: 300_000,
            hold_us: 1_000_000,
            packet_bytes_max: codec::PACKET_BYTES_MAX,
        }
    }
}

/// Why a speaker could not be created or a clause could not be queued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The lead is outside one frame to [`LEAD_US_MAX`], or above `hold_us`.
    #[error(
        "speaker lead of {lead_us} us: it must be 20 ms to 2 s, and at most the {hold_us} us that the device holds"
    )]
    Lead {
        /// The configured lead.
        lead_us: u64,
        /// The configured hold.
        hold_us: u64,
    },
    /// An error of the codec.
    #[error(transparent)]
    Codec(#[from] codec::Error),
    /// The clause's rate cannot be converted.
    #[error(transparent)]
    Resample(#[from] resample::Error),
    /// No speech was started, or it was hushed, or its last clause was already queued.
    #[error("clause {clause} belongs to no open speech")]
    NoSpeech {
        /// As the caller has numbered it.
        clause: u16,
    },
    /// The clause does not fit; see [`Speaker::room_us`].
    #[error("clause of {clause_us} us does not fit into the {room_us} us left; wait until some was sent")]
    Full {
        /// Length of the clause, in microseconds.
        clause_us: u64,
        /// The room left.
        room_us: u64,
    },
}

/// One packet of speech for the device: 20, 40 or 60 ms; of LC3 with frames of 7.5 ms, 15, 30 or 45.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The speech it belongs to.
    pub speech: u32,
    /// The turn that the speech answers.
    pub turn: u32,
    /// The clause it belongs to.
    pub clause: u16,
    /// Number in the stream to this device; wraps.
    pub seq: u32,
    /// Playback position from the speech's start, in microseconds.
    pub playout_us: u64,
    /// Its length, in microseconds.
    pub duration_us: u64,
    /// Estimated playback time, on the clock of `poll_packet`.
    pub planned_us: u64,
    /// The coded frame.
    pub bytes: Vec<u8>,
    /// Its sound, mono at the speaker's rate.
    pub pcm: Vec<i16>,
    /// No packet of this clause follows.
    pub last_of_clause: bool,
    /// No packet of this speech follows.
    pub last_of_speech: bool,
    /// The ramp to silence after a hush. It replaces what the device has buffered and does not count as played.
    pub fade: bool,
}

/// What a hush stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hushed {
    /// The speech that was stopped.
    pub speech: u32,
    /// The turn that it answered.
    pub turn: u32,
    /// How much of it was sent, in microseconds.
    pub sent_us: u64,
    /// How much of it the device has reported as played, in microseconds; further reports may follow.
    pub played_us: u64,
    /// Playback position by the clock: an estimate for a transcript of what was heard.
    pub playhead_us: u64,
}

/// One device's mouth.
pub struct Speaker {
    config: Config,
    encoder: Encoder,
    /// Microseconds of a frame: 20 ms, or 15 ms where the codec's own frames have 7.5 ms.
    frame_us: u64,
    /// Frames in one packet.
    packet_frames: u64,
    seq: u32,
    speech: Option<Speech>,
    /// Ledger of the previous speech, whose last acknowledgements may still arrive.
    previous: Option<Ledger>,
    fade: Option<Packet>,
    gain: Gain,
}

struct Speech {
    ledger: Ledger,
    queue: Queue,
    /// The last clause is queued.
    complete: bool,
    pace: Pace,
}

impl Speaker {
    /// A speaker for one device.
    ///
    /// # Errors
    /// A codec, rate or lead that cannot be used.
    pub fn new(config: Config) -> Result<Self, Error> {
        if !(FRAME_US..=LEAD_US_MAX.min(config.hold_us)).contains(&config.lead_us) {
            return Err(Error::Lead { lead_us: config.lead_us, hold_us: config.hold_us });
        }
        let encoder = Encoder::new(config.codec, config.rate_hz, config.bitrate)?;
        let frame_us = config.codec.usual_packet_us();
        let (speech, previous, fade, gain) = (None, None, None, Gain::new());
        Ok(Self { config, encoder, frame_us, packet_frames: 1, seq: 0, speech, previous, fade, gain })
    }

    /// How packets are coded from now on: bits per second of Opus, milliseconds of a packet (rounded down to whole
    /// frames, three at most, and no more than [`Config::packet_bytes_max`] has room for; the last one of a clause is as
    /// short as what is left), and the percentage that is expected to be lost.
    ///
    /// # Errors
    /// A bit rate that cannot be used.
    pub fn set_coding(&mut self, bitrate: u32, packet_ms: u16, loss_percent: u8) -> Result<(), Error> {
        self.encoder.set_coding(bitrate, loss_percent)?;
        let Config { codec, rate_hz, packet_bytes_max, .. } = self.config;
        let longest_us = codec.longest_packet_us(rate_hz, packet_bytes_max);
        let frames = longest_us.min(u64::from(packet_ms) * 1_000) / self.frame_us;
        self.packet_frames = frames.clamp(1, PACKET_FRAMES_MAX);
        Ok(())
    }

    /// Sets the factor of what is sent from now on, from 0 to 1 (which is the sound as it is; other values are clamped).
    pub fn set_gain(&mut self, factor: f32) {
        self.gain.set(factor);
    }

    /// Begins the speech `speech` that answers `turn`. A speech in progress is dropped; call [`hush`](Self::hush) first
    /// to fade it out.
    pub fn start(&mut self, speech: u32, turn: u32) {
        self.fade = None;
        if let Some(old) = self.speech.take() {
            self.previous = Some(old.ledger);
        }
        self.speech = Some(Speech {
            ledger: Ledger::new(speech, turn),
            queue: Queue::new(self.config.rate_hz, self.frame_us, self.config.lead_us),
            complete: false,
            pace: Pace::new(self.config.lead_us, self.config.hold_us),
        });
    }

    /// Queues one whole clause, mono at `rate_hz`; `last` completes the speech.
    ///
    /// # Errors
    /// [`Error::NoSpeech`], [`Error::Full`], or a rate that cannot be converted. Nothing is queued then.
    pub fn push_clause(&mut self, clause: u16, pcm: &[i16], rate_hz: u32, last: bool) -> Result<(), Error> {
        let room_us = self.room_us();
        let Some(speech) = self.speech.as_mut().filter(|speech| !speech.complete) else {
            return Err(Error::NoSpeech { clause });
        };
        let resampler = Resampler::new(rate_hz, self.config.rate_hz)?;
        let clause_us = samples_to_us(pcm.len() as u64, rate_hz);
        if clause_us > room_us || !speech.ledger.has_room(speech.queue.len()) {
            return Err(Error::Full { clause_us, room_us });
        }
        speech.queue.push(clause, pcm, rate_hz, last, resampler);
        speech.complete = last;
        Ok(())
    }

    /// Room left in the queue, in microseconds of speech.
    pub fn room_us(&self) -> u64 {
        let queued_us = self.speech.as_ref().map_or(0, |speech| speech.queue.queued_us());
        QUEUE_US_MAX.saturating_sub(queued_us)
    }

    /// The next packet, if it is due at `now_us`. Call until it returns `None`.
    pub fn poll_packet(&mut self, now_us: u64) -> Option<Packet> {
        if let Some(fade) = self.fade.take() {
            return Some(fade);
        }
        let due_us = self.speech_due_us()?;
        if due_us > now_us {
            return None;
        }
        let speech = self.speech.as_mut()?;
        let (mut frame, frames) = speech.queue.pop_frames(self.packet_frames)?;
        self.gain.apply(&mut frame.pcm);
        let duration_us = frames * self.frame_us;
        let sent_us = speech.ledger.sent_us();
        let planned_us = speech.pace.send(sent_us, now_us);
        let bytes = match self.encoder.encode(&frame.pcm) {
            Ok(bytes) => bytes,
            Err(error) => {
                // A frame of the encoder's size does not fail; an empty packet keeps the count correct.
                tracing::error!(%error, "frame could not be encoded");
                Vec::new()
            }
        };
        if frame.last_of_speech {
            self.encoder.release();
        }
        speech.ledger.sent(frame.clause, duration_us, frame.last_of_clause, frame.last_of_speech);
        let packet = Packet {
            speech: speech.ledger.speech(),
            turn: speech.ledger.turn(),
            clause: frame.clause,
            seq: self.seq,
            playout_us: sent_us,
            duration_us,
            planned_us,
            bytes,
            pcm: frame.pcm,
            last_of_clause: frame.last_of_clause,
            last_of_speech: frame.last_of_speech,
            fade: false,
        };
        self.seq = self.seq.wrapping_add(1);
        Some(packet)
    }

    /// When [`poll_packet`](Self::poll_packet) will have a packet if no further clause is queued.
    pub fn next_wake_us(&self) -> Option<u64> {
        if self.fade.is_some() { Some(0) } else { self.speech_due_us() }
    }

    /// Stops at once: the queue is dropped and the speech accepts no more clauses. One packet may be polled afterwards,
    /// a ramp to silence from the estimated playback position; the device plays it in place of what it has buffered.
    /// `None` if no speech was in progress.
    pub fn hush(&mut self, now_us: u64) -> Option<Hushed> {
        let mut speech = self.speech.take()?;
        self.fade = None;
        let sent_us = speech.ledger.sent_us();
        let playhead_us = speech.pace.playhead_us(sent_us, now_us);
        let hushed = Hushed {
            speech: speech.ledger.speech(),
            turn: speech.ledger.turn(),
            sent_us,
            played_us: speech.ledger.played_us(),
            playhead_us,
        };
        if sent_us > 0 && playhead_us < sent_us {
            let mut frame = speech.queue.fade_frame(us_to_samples(sent_us - playhead_us, self.config.rate_hz));
            self.gain.apply(&mut frame);
            self.fade = self.encoder.encode(&frame).ok().map(|bytes| Packet {
                speech: hushed.speech,
                turn: hushed.turn,
                clause: speech.ledger.clause_at(playhead_us).unwrap_or(0),
                seq: self.seq,
                playout_us: playhead_us,
                duration_us: self.frame_us,
                planned_us: now_us,
                bytes,
                pcm: frame,
                last_of_clause: true,
                last_of_speech: true,
                fade: true,
            });
            self.seq = self.seq.wrapping_add(u32::from(self.fade.is_some()));
        }
        self.encoder.release();
        speech.ledger.close();
        self.previous = Some(speech.ledger);
        Some(hushed)
    }

    /// Takes a playback report of the device for `speech`, received at `now_us`. Returns what it completed; `None` for
    /// an unknown speech and for a report that adds nothing. A report beyond what was sent is limited to that.
    pub fn played(&mut self, speech: u32, report: Report, now_us: u64) -> Option<Played> {
        if let Some(current) = self.speech.as_mut().filter(|current| current.ledger.speech() == speech) {
            current.pace.hear(report, current.ledger.sent_us(), now_us);
            let played = current.ledger.played(report.place_us(current.ledger.sent_us()))?;
            if played.finished {
                // Nothing can be faded out any more.
                current.queue.forget_sent();
            }
            return Some(played);
        }
        let previous = self.previous.as_mut().filter(|ledger| ledger.speech() == speech)?;
        previous.played(report.place_us(previous.sent_us()))
    }

    /// Position in `speech`, if that is the one in progress or the previous one.
    pub fn position(&self, speech: u32) -> Option<Position> {
        let current = self.speech.as_ref().map(|speech| &speech.ledger);
        let mut known = [current, self.previous.as_ref()].into_iter().flatten();
        known.find(|ledger| ledger.speech() == speech).map(Ledger::position)
    }

    /// Whether a speech is in progress: begun, not hushed, and not played to its end.
    pub fn is_speaking(&self) -> bool {
        self.speech.as_ref().is_some_and(|speech| !speech.ledger.finished())
    }

    fn speech_due_us(&self) -> Option<u64> {
        let speech = self.speech.as_ref().filter(|speech| !speech.queue.is_empty())?;
        speech.pace.due_us(speech.ledger.sent_us(), self.packet_frames * self.frame_us)
    }
}
