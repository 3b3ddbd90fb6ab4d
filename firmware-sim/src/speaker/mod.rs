//! The virtual speaker: plays each chunk at its position in the speech in real time, records what was played, and
//! reports it. Time is an argument; the driver wakes it at `poll_timeout`.

mod speech;

use std::collections::{BTreeMap, VecDeque};

use audio::codec::Decoder;
use device_protocol::down::{AudioFormat, Clause, SpeechChunk, SpeechEnd, SpeechStart};
use device_protocol::{PlayState, limits};

use crate::sound::codec_of;

/// Sound that must be buffered before playback begins, unless the speech is already complete (PROTOCOL.md, section 8).
const PREBUFFER_US: u64 = 60_000;

/// Interval of reports during playback: a little below the protocol's limit, because wake-ups come late.
const REPORT_EVERY_US: u64 = limits::PLAYED_EVERY_MS_MAX as u64 * 1_000 - 20_000;

/// Most speeches queued after the playing one; a gateway sends at most 600 ms ahead.
const SPEECHES_MAX: usize = 8;

/// Most chunks queued in one speech, or for their speech: more than a minute of 20 ms packets.
const CHUNKS_MAX: usize = 4_096;

/// Most clauses of one speech whose texts are kept.
const CLAUSES_MAX: usize = 256;

/// Rounding tolerance of positions: one sample at 8 kHz.
const SLACK_US: u64 = 125;

/// Most stretches of played sound kept for a reader: half a minute of packets of 20 ms.
const OUTPUTS_MAX: usize = 1_500;

/// Longest end of a speech that is filled in for packets that did not come: what the gateway sends ahead.
const TAIL_US_MAX: u64 = 1_000_000;

/// Longest silence of a starved speech in the recording.
const STARVED_US_MAX: u64 = 10_000_000;

/// A report of the speaker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum Report {
    /// For the gateway.
    Played {
        speech: u32,
        turn: u32,
        /// Clause of the sample played last.
        clause: u16,
        /// Microseconds played.
        played_us: u64,
        /// When that was reached.
        at_us: u64,
        /// Playback state.
        state: PlayState,
    },
    /// The first sample was played.
    FirstSound { speech: u32, turn: u32, at_us: u64 },
    /// A packet of a speech that is over.
    Late { speech: u32, at_us: u64 },
    /// A speech is over.
    Over(Heard),
}

/// A speech as it was played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Number of the speech, unique in the session.
    pub speech: u32,
    /// Turn of the frame that began it.
    pub turn: u32,
    /// The texts of its clauses, up to the last one that had begun when it was over.
    pub text: String,
    /// When the first sample was played; `None`: none was.
    pub began_us: Option<u64>,
    /// When it was over.
    pub ended_us: u64,
    /// Microseconds played: concealed packets count, silence while starved does not.
    pub played_us: u64,
    /// How much of that was filled in, since its packets had not come.
    pub concealed_us: u64,
    /// False if it was stopped.
    pub complete: bool,
    /// When the last packet of its sound came, one that came after its end included; `None`: none did.
    pub arrived_us: Option<u64>,
    /// The played samples, including the silence of gaps.
    pub pcm: Vec<i16>,
    /// Rate of `pcm` in hertz.
    pub rate_hz: u32,
}

/// A stretch of sound as it came out of the speaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// When its first sample was played.
    pub from_us: u64,
    /// When its last one was over.
    pub until_us: u64,
    /// Rate of `pcm` in hertz.
    pub rate_hz: u32,
    /// The samples; none if the speaker does not decode.
    pub pcm: Vec<i16>,
}

/// How samples come out, and for whom they are kept.
struct Out {
    volume_percent: u8,
    is_tapped: bool,
    outputs: VecDeque<Output>,
}

#[derive(Clone, Debug)]
struct Chunk {
    clause: u16,
    duration_us: u64,
    payload: Vec<u8>,
}

/// The packet being played.
#[derive(Debug)]
struct Sounding {
    from_us: u64,
    duration_us: u64,
    pcm: Vec<i16>,
    /// How much of it has come out.
    out_us: u64,
    out_samples: usize,
}

impl Sounding {
    fn new(from_us: u64, duration_us: u64, pcm: Vec<i16>) -> Self {
        Self { from_us, duration_us, pcm, out_us: 0, out_samples: 0 }
    }
}

/// Result of `fetch`.
enum Fetched {
    /// A packet is playing.
    Packet,
    /// More may come.
    NotYet,
    /// No more will come.
    Over,
}

struct Speech {
    id: u32,
    turn: u32,
    /// The texts of its clauses, by their numbers.
    texts: BTreeMap<u16, String>,
    rate_hz: u32,
    decoder: Option<Decoder>,
    chunks: BTreeMap<u64, Chunk>,
    highest_sequence: u32,
    /// When its end was told, and that.
    end: Option<(u64, SpeechEnd)>,
    began_us: Option<u64>,
    /// Position in the speech of the next packet, and the time at which it is played.
    head_us: u64,
    next_us: u64,
    sounding: Option<Sounding>,
    starved_since: Option<u64>,
    clause: Option<u16>,
    played_us: u64,
    concealed_us: u64,
    reported_us: u64,
    fade: Option<(u64, u64)>,
    /// When its latest packet came.
    arrived_us: Option<u64>,
    pcm: Vec<i16>,
}

/// A speaker with its buffer.
pub struct Speaker {
    decode: bool,
    /// Format of speech, as the welcome names it: the frames of LC3.
    format: AudioFormat,
    out: Out,
    speeches: VecDeque<Speech>,
    /// Chunks that came before the start of their speech, with arrival and sequence.
    early: VecDeque<(u64, u32, u32, u64, Chunk)>,
    /// Every speech up to the first number has begun, and every one up to the second is over.
    begun: u32,
    over: u32,
    reports: VecDeque<Report>,
}

impl Speaker {
    /// A silent speaker. Without `decode` only times are kept: for many glasses at once.
    pub fn new(decode: bool) -> Self {
        let format = AudioFormat {
            codec: device_protocol::Codec::Pcm16,
            rate_hz: 0,
            frame_ms: 0,
            lc3_frame_us: 0,
            lc3_frame_bytes: 0,
        };
        Self {
            decode,
            format,
            out: Out { volume_percent: 100, is_tapped: false, outputs: VecDeque::new() },
            speeches: VecDeque::new(),
            early: VecDeque::new(),
            begun: 0,
            over: 0,
            reports: VecDeque::new(),
        }
    }

    /// Playback volume in percent.
    pub fn set_volume(&mut self, percent: u8) {
        self.out.volume_percent = percent.min(100);
    }

    /// Keeps what is played for [`Speaker::poll_output`].
    pub fn tap(&mut self, is_tapped: bool) {
        self.out.is_tapped = is_tapped;
        self.out.outputs.clear();
    }

    /// The next stretch of sound that was played, if the speaker is tapped. All up to the last poll is there.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.outputs.pop_front()
    }

    /// The format of speech that a welcome names.
    pub fn set_format(&mut self, format: AudioFormat) {
        self.format = format;
    }

    /// Resets for a new session, which restarts its numbers. What was playing is over.
    pub fn reset(&mut self, now_us: u64) {
        self.handle_hush(now_us, 0, 0);
        self.early.clear();
        self.begun = 0;
        self.over = 0;
    }

    /// A speech begins; one that has begun before changes nothing.
    ///
    /// # Errors
    /// A format that cannot be played.
    pub fn handle_start(&mut self, now_us: u64, turn: u32, start: &SpeechStart<'_>) -> Result<(), String> {
        self.poll(now_us);
        if start.speech <= self.begun {
            return Ok(());
        }
        let format = AudioFormat { codec: start.codec, rate_hz: start.rate_hz, ..self.format };
        let codec = codec_of(&format)?;
        let decoder = Decoder::new(codec, start.rate_hz).map_err(|error| error.to_string())?;
        self.begun = start.speech;
        let mut speech = Speech {
            id: start.speech,
            turn,
            texts: BTreeMap::from([(0, start.text.to_owned())]),
            rate_hz: start.rate_hz,
            decoder: self.decode.then_some(decoder),
            chunks: BTreeMap::new(),
            highest_sequence: 0,
            end: None,
            began_us: None,
            head_us: 0,
            next_us: 0,
            sounding: None,
            starved_since: None,
            clause: None,
            played_us: 0,
            concealed_us: 0,
            reported_us: 0,
            fade: None,
            arrived_us: None,
            pcm: Vec::new(),
        };
        for (arrived_us, id, sequence, position_us, chunk) in std::mem::take(&mut self.early) {
            if id == speech.id {
                speech.arrived_us = Some(arrived_us);
                speech.add(sequence, position_us, chunk);
            }
        }
        if start.speech <= self.over {
            // A hush arrived before it.
            self.reports.extend(speech.finish(now_us, false));
        } else if self.speeches.len() < SPEECHES_MAX {
            self.speeches.push_back(speech);
        } else {
            self.over = start.speech;
            self.reports.extend(speech.finish(now_us, false));
        }
        self.poll(now_us);
        Ok(())
    }

    /// The text of a clause.
    pub fn handle_clause(&mut self, clause: &Clause<'_>) {
        if let Some(speech) = self.speeches.iter_mut().find(|speech| speech.id == clause.speech)
            && (speech.texts.len() < CLAUSES_MAX || speech.texts.contains_key(&clause.clause))
        {
            speech.texts.insert(clause.clause, clause.text.to_owned());
        }
    }

    /// Sound of a speech.
    pub fn handle_chunk(&mut self, now_us: u64, sequence: u32, chunk: &SpeechChunk<'_>) {
        let is_over = chunk.speech <= self.over;
        let kept = Chunk {
            clause: chunk.clause,
            duration_us: u64::from(chunk.duration_us.min(limits::PACKET_DURATION_US_MAX)),
            payload: chunk.payload.to_vec(),
        };
        match self.speeches.iter_mut().find(|speech| speech.id == chunk.speech) {
            Some(speech) => {
                speech.arrived_us = Some(now_us);
                if !is_over {
                    speech.add(sequence, chunk.position_us, kept);
                }
            }
            None if is_over => self.reports.push_back(Report::Late { speech: chunk.speech, at_us: now_us }),
            None if chunk.speech > self.begun && self.early.len() < CHUNKS_MAX => {
                self.early.push_back((now_us, chunk.speech, sequence, chunk.position_us, kept));
            }
            None => {}
        }
        self.poll(now_us);
    }

    /// No further chunks except those still in transit.
    pub fn handle_end(&mut self, now_us: u64, end: &SpeechEnd) {
        if let Some(speech) = self.speeches.iter_mut().find(|speech| speech.id == end.speech) {
            speech.end = Some((now_us, *end));
        }
        self.poll(now_us);
    }

    /// Fades to silence within `fade_ms`.
    pub fn handle_hush(&mut self, now_us: u64, speech: u32, fade_ms: u16) {
        self.poll(now_us);
        let through = if speech == 0 { self.begun } else { speech };
        self.over = self.over.max(through);
        self.early.retain(|(_, id, ..)| *id > through);
        let fade_us = u64::from(fade_ms) * 1_000;
        let mut kept = VecDeque::new();
        for mut speech in std::mem::take(&mut self.speeches) {
            if speech.id > through || speech.fade.is_some() {
                kept.push_back(speech);
            } else if speech.sounding.is_some() && fade_us > 0 {
                speech.fade = Some((now_us, now_us + fade_us));
                kept.push_back(speech);
            } else {
                speech.cut(now_us, &mut self.out);
                self.reports.extend(speech.finish(now_us, false));
            }
        }
        self.speeches = kept;
        self.poll(now_us);
    }

    /// True while a speech is playing or queued.
    pub fn is_busy(&self) -> bool {
        !self.speeches.is_empty()
    }

    /// When something happens next without input.
    pub fn poll_timeout(&self) -> Option<u64> {
        let early = self.early.front().map(|(at, ..)| at + u64::from(limits::SPEECH_START_WAIT_MS_MAX) * 1_000);
        let speech = self.speeches.front().and_then(Speech::poll_timeout);
        [early, speech].into_iter().flatten().min()
    }

    /// Plays up to `now_us`.
    pub fn poll(&mut self, now_us: u64) {
        let wait_us = u64::from(limits::SPEECH_START_WAIT_MS_MAX) * 1_000;
        while self.early.front().is_some_and(|(at, ..)| at + wait_us <= now_us) {
            self.early.pop_front();
        }
        while let Some(speech) = self.speeches.front_mut() {
            let Some(complete) = speech.play(now_us, &mut self.out, &mut self.reports) else {
                return;
            };
            let ended_us = speech.next_us.min(now_us);
            let Some(speech) = self.speeches.pop_front() else {
                return;
            };
            self.over = self.over.max(speech.id);
            self.reports.extend(speech.finish(ended_us, complete));
            if let Some(next) = self.speeches.front_mut() {
                next.next_us = next.next_us.max(ended_us);
            }
        }
    }

    /// The next report, in the order of time.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }
}
