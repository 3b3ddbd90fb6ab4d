//! The virtual speaker: plays each chunk at its place in the speech and in real time, keeps what really came out, and
//! says what was played. Time is an argument; the driver wakes it at `poll_timeout`.

use std::collections::{BTreeMap, VecDeque};

use audio::codec::{Codec, Decoder};
use device_protocol::down::{SpeechChunk, SpeechEnd, SpeechStart};
use device_protocol::{PlayState, limits};

/// Sound that must be there before playing begins, unless the speech is already whole (PROTOCOL.md, section 8).
const PREBUFFER_US: u64 = 60_000;

/// Between two reports while sound comes out: a little below what the protocol allows, because wake-ups come late.
const REPORT_EVERY_US: u64 = limits::PLAYED_EVERY_MS_MAX as u64 * 1_000 - 20_000;

/// Speeches that may wait behind the one that plays; a gateway sends at most 600 ms ahead.
const SPEECHES_MAX: usize = 8;

/// Chunks that wait in one speech, or for their speech: more than a minute of 20 ms packets.
const CHUNKS_MAX: usize = 4_096;

/// Rounding of positions: one sample at 8 kHz.
const SLACK_US: u64 = 125;

/// Longest silence of a starved speech that is kept in the record: nobody wants hours of it.
const STARVED_US_MAX: u64 = 10_000_000;

/// What the speaker reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// For the gateway.
    Played {
        /// The speech.
        speech: u32,
        /// Its turn.
        turn: u32,
        /// Clause of the sample played last.
        clause: u16,
        /// Sound that came out.
        played_us: u64,
        /// When that was reached.
        at_us: u64,
        /// Where it stands.
        state: PlayState,
    },
    /// The first sample came out.
    FirstSound {
        /// The speech.
        speech: u32,
        /// Its turn.
        turn: u32,
        /// When.
        at_us: u64,
    },
    /// A speech is over.
    Over(Heard),
}

/// A speech as it was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The speech.
    pub speech: u32,
    /// Its turn.
    pub turn: u32,
    /// Its caption.
    pub text: String,
    /// When the first sample came out; none: nothing did.
    pub began_us: Option<u64>,
    /// When it was over.
    pub ended_us: u64,
    /// Sound that came out, without gaps and concealment.
    pub played_us: u64,
    /// False where it was stopped.
    pub complete: bool,
    /// What came out, silence of gaps included.
    pub pcm: Vec<i16>,
    /// Rate of `pcm` in hertz.
    pub rate_hz: u32,
}

#[derive(Clone, Debug)]
struct Chunk {
    clause: u16,
    duration_us: u64,
    payload: Vec<u8>,
}

/// A packet that sounds now.
#[derive(Debug)]
struct Sounding {
    clause: u16,
    from_us: u64,
    duration_us: u64,
    pcm: Vec<i16>,
    /// Concealment is heard but not counted.
    counts: bool,
}

/// What `fetch` found.
enum Fetched {
    /// A packet sounds.
    Packet,
    /// More may come.
    NotYet,
    /// Nothing will come.
    Over,
}

struct Speech {
    id: u32,
    turn: u32,
    text: String,
    rate_hz: u32,
    decoder: Option<Decoder>,
    chunks: BTreeMap<u64, Chunk>,
    highest_sequence: u32,
    end: Option<(u64, u32)>,
    began_us: Option<u64>,
    /// Place in the speech of the next packet, and the time at which its turn comes.
    head_us: u64,
    next_us: u64,
    sounding: Option<Sounding>,
    starved_since: Option<u64>,
    clause: Option<u16>,
    played_us: u64,
    reported_us: u64,
    fade: Option<(u64, u64)>,
    pcm: Vec<i16>,
}

/// A speaker with its buffer.
pub struct Speaker {
    decode: bool,
    volume_percent: u8,
    speeches: VecDeque<Speech>,
    /// Chunks that came before their speech, with arrival and sequence.
    early: VecDeque<(u64, u32, u32, u64, Chunk)>,
    /// Every speech up to this number has begun, and every one up to the other is over.
    begun: u32,
    over: u32,
    reports: VecDeque<Report>,
}

impl Speaker {
    /// A silent speaker. Without `decode` only times are kept: for many glasses at once.
    pub fn new(decode: bool) -> Self {
        Self {
            decode,
            volume_percent: 100,
            speeches: VecDeque::new(),
            early: VecDeque::new(),
            begun: 0,
            over: 0,
            reports: VecDeque::new(),
        }
    }

    /// Loudness of what is heard, in percent.
    pub fn set_volume(&mut self, percent: u8) {
        self.volume_percent = percent.min(100);
    }

    /// Forgets everything: a new session counts its speeches anew. What was playing is over.
    pub fn reset(&mut self, now_us: u64) {
        self.handle_hush(now_us, 0, 0);
        self.early.clear();
        self.begun = 0;
        self.over = 0;
    }

    /// A speech begins.
    ///
    /// # Errors
    /// A format that cannot be played.
    pub fn handle_start(&mut self, now_us: u64, turn: u32, start: &SpeechStart<'_>) -> Result<(), String> {
        self.poll(now_us);
        if start.speech <= self.begun {
            return Ok(());
        }
        let codec = match start.codec {
            device_protocol::Codec::Opus => Codec::Opus,
            device_protocol::Codec::Pcm16 => Codec::Pcm16,
            device_protocol::Codec::Other(number) => return Err(format!("codec {number} is unknown")),
        };
        let decoder = Decoder::new(codec, start.rate_hz).map_err(|error| error.to_string())?;
        self.begun = start.speech;
        let mut speech = Speech {
            id: start.speech,
            turn,
            text: start.text.to_owned(),
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
            reported_us: 0,
            fade: None,
            pcm: Vec::new(),
        };
        for (_, id, sequence, position_us, chunk) in std::mem::take(&mut self.early) {
            if id == speech.id {
                speech.add(sequence, position_us, chunk);
            }
        }
        if start.speech <= self.over {
            // A hush overtook it.
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

    /// Sound of a speech.
    pub fn handle_chunk(&mut self, now_us: u64, sequence: u32, chunk: &SpeechChunk<'_>) {
        if chunk.speech <= self.over {
            return;
        }
        let kept = Chunk {
            clause: chunk.clause,
            duration_us: u64::from(chunk.duration_us.min(limits::PACKET_DURATION_US_MAX)),
            payload: chunk.payload.to_vec(),
        };
        match self.speeches.iter_mut().find(|speech| speech.id == chunk.speech) {
            Some(speech) => speech.add(sequence, chunk.position_us, kept),
            None if chunk.speech > self.begun && self.early.len() < CHUNKS_MAX => {
                self.early.push_back((now_us, chunk.speech, sequence, chunk.position_us, kept));
            }
            None => {}
        }
        self.poll(now_us);
    }

    /// No chunk follows but those that are still under way.
    pub fn handle_end(&mut self, now_us: u64, end: &SpeechEnd) {
        if let Some(speech) = self.speeches.iter_mut().find(|speech| speech.id == end.speech) {
            speech.end = Some((now_us, end.last_audio_sequence));
        }
        self.poll(now_us);
    }

    /// Silence within `fade_ms`.
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
                speech.cut(now_us, self.volume_percent);
                self.reports.extend(speech.finish(now_us, false));
            }
        }
        self.speeches = kept;
        self.poll(now_us);
    }

    /// True while a speech plays or waits.
    pub fn is_busy(&self) -> bool {
        !self.speeches.is_empty()
    }

    /// When something happens next by itself.
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
            let Some(complete) = speech.play(now_us, self.volume_percent, &mut self.reports) else { return };
            let ended_us = speech.next_us.min(now_us);
            let Some(speech) = self.speeches.pop_front() else { return };
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

impl Speech {
    fn add(&mut self, sequence: u32, position_us: u64, chunk: Chunk) {
        self.highest_sequence = self.highest_sequence.max(sequence);
        // What was played, or concealed, is over; what is there came twice.
        if position_us + SLACK_US >= self.head_us && self.chunks.len() < CHUNKS_MAX && self.fade.is_none() {
            self.chunks.entry(position_us).or_insert(chunk);
        }
    }

    /// True where no chunk can come any more.
    fn is_whole(&self, now_us: u64) -> bool {
        self.end.is_some_and(|(at, last)| {
            self.highest_sequence >= last || now_us >= at + u64::from(limits::LAST_SOUND_WAIT_MS_MAX) * 1_000
        })
    }

    fn poll_timeout(&self) -> Option<u64> {
        if let Some((_, ends)) = self.fade {
            return Some(ends);
        }
        let whole = self.end.map(|(at, _)| at + u64::from(limits::LAST_SOUND_WAIT_MS_MAX) * 1_000);
        match &self.sounding {
            Some(sounding) => {
                let report = self.reported_us + REPORT_EVERY_US;
                Some((sounding.from_us + sounding.duration_us).min(report.max(sounding.from_us + 1)))
            }
            // Behind another speech nothing is due; starved, only the end is.
            None if self.starved_since.is_some() || self.began_us.is_none() => whole,
            None => Some(self.next_us),
        }
    }

    /// Plays up to `now_us`; the answer is whether it was complete, once it is over.
    fn play(&mut self, now_us: u64, volume: u8, reports: &mut VecDeque<Report>) -> Option<bool> {
        loop {
            if let Some((_, ends)) = self.fade
                && ends <= now_us
            {
                self.cut(ends, volume);
                return Some(false);
            }
            if let Some(sounding) = &self.sounding {
                if sounding.from_us + sounding.duration_us > now_us {
                    self.report_progress(now_us, reports);
                    return None;
                }
                self.complete_packet(volume);
                continue;
            }
            if self.began_us.is_none() && !self.may_begin(now_us) {
                // A speech whose end is known and that has no sound at all is over at once.
                return (self.is_whole(now_us) && self.chunks.is_empty()).then_some(true);
            }
            match self.fetch(now_us, reports) {
                Fetched::Packet => {}
                Fetched::NotYet => return None,
                Fetched::Over => return Some(true),
            }
        }
    }

    fn may_begin(&self, now_us: u64) -> bool {
        let buffered: u64 = self.chunks.values().map(|chunk| chunk.duration_us).sum();
        buffered >= PREBUFFER_US || (self.is_whole(now_us) && !self.chunks.is_empty())
    }

    /// Puts the next packet under the head.
    fn fetch(&mut self, now_us: u64, reports: &mut VecDeque<Report>) -> Fetched {
        let Some((&position, _)) = self.chunks.first_key_value() else {
            return self.run_dry(now_us, reports);
        };
        if let Some(since) = self.starved_since.take() {
            self.next_us = now_us;
            self.silence(since, now_us);
        }
        if self.began_us.is_none() {
            self.next_us = self.next_us.max(now_us);
        }
        if position > self.head_us + SLACK_US {
            self.conceal(position - self.head_us);
            return Fetched::Packet;
        }
        let Some((_, chunk)) = self.chunks.pop_first() else { return Fetched::NotYet };
        let mut pcm = Vec::new();
        let mut counts = true;
        if let Some(decoder) = &mut self.decoder
            && decoder.decode(&chunk.payload, &mut pcm).is_err()
        {
            decoder.conceal(&mut pcm);
            counts = false;
        }
        let duration_us = if pcm.is_empty() {
            chunk.duration_us.max(1)
        } else {
            pcm.len() as u64 * 1_000_000 / u64::from(self.rate_hz.max(1))
        };
        let from_us = self.next_us;
        if self.began_us.is_none() {
            self.began_us = Some(from_us);
            reports.push_back(Report::FirstSound { speech: self.id, turn: self.turn, at_us: from_us });
        }
        self.sounding = Some(Sounding { clause: chunk.clause, from_us, duration_us, pcm, counts });
        self.head_us = position + duration_us;
        if self.clause != Some(chunk.clause) {
            self.clause = Some(chunk.clause);
            self.report(from_us, self.played_us, PlayState::Playing, reports);
        }
        Fetched::Packet
    }

    /// Nothing is buffered: the speech is over, or starves.
    fn run_dry(&mut self, now_us: u64, reports: &mut VecDeque<Report>) -> Fetched {
        if self.is_whole(now_us) {
            return Fetched::Over;
        }
        if self.fade.is_some() {
            return Fetched::NotYet;
        }
        if self.starved_since.is_none() {
            self.starved_since = Some(self.next_us);
            self.report(self.next_us, self.played_us, PlayState::Starved, reports);
        }
        Fetched::NotYet
    }

    /// Fills a hole of `gap_us` with what the decoder makes up.
    fn conceal(&mut self, gap_us: u64) {
        let mut pcm = Vec::new();
        if let Some(decoder) = &mut self.decoder {
            let wanted = (gap_us.min(limits::PACKET_DURATION_US_MAX.into()) * u64::from(self.rate_hz) / 1_000_000) as usize;
            while pcm.len() < wanted && decoder.conceal(&mut pcm) > 0 {}
            pcm.truncate(wanted);
        }
        let clause = self.clause.unwrap_or(0);
        let duration_us = gap_us.min(limits::PACKET_DURATION_US_MAX.into());
        self.sounding = Some(Sounding { clause, from_us: self.next_us, duration_us, pcm, counts: false });
        self.head_us += duration_us;
    }

    fn complete_packet(&mut self, volume: u8) {
        if let Some(sounding) = self.sounding.take() {
            self.next_us = sounding.from_us + sounding.duration_us;
            self.emit(&sounding, sounding.duration_us, volume);
        }
    }

    /// Stops inside a packet.
    fn cut(&mut self, at_us: u64, volume: u8) {
        if let Some(sounding) = self.sounding.take() {
            let part_us = at_us.saturating_sub(sounding.from_us).min(sounding.duration_us);
            self.emit(&sounding, part_us, volume);
        }
        self.next_us = at_us;
        self.chunks.clear();
    }

    /// The first `part_us` of a packet came out.
    fn emit(&mut self, sounding: &Sounding, part_us: u64, volume: u8) {
        if sounding.counts {
            self.played_us += part_us;
        }
        let samples = (part_us * u64::from(self.rate_hz)).div_ceil(1_000_000) as usize;
        for (n, sample) in sounding.pcm.iter().take(samples).enumerate() {
            let mut gain = f64::from(volume) / 100.0;
            if let Some((from, to)) = self.fade {
                let at = sounding.from_us as f64 + n as f64 * 1e6 / f64::from(self.rate_hz.max(1));
                let left = (to as f64 - at) / (to.saturating_sub(from).max(1)) as f64;
                gain *= left.clamp(0.0, 1.0);
            }
            self.pcm.push((f64::from(*sample) * gain) as i16);
        }
    }

    fn silence(&mut self, from_us: u64, to_us: u64) {
        if self.decoder.is_some() {
            let us = to_us.saturating_sub(from_us).min(STARVED_US_MAX);
            let samples = (us * u64::from(self.rate_hz) / 1_000_000) as usize;
            self.pcm.resize(self.pcm.len() + samples, 0);
        }
    }

    fn report_progress(&mut self, now_us: u64, reports: &mut VecDeque<Report>) {
        let Some(sounding) = &self.sounding else { return };
        if now_us >= self.reported_us + REPORT_EVERY_US && sounding.counts {
            let played_us = self.played_us + now_us.saturating_sub(sounding.from_us).min(sounding.duration_us);
            self.report(now_us, played_us, PlayState::Playing, reports);
        }
    }

    fn report(&mut self, at_us: u64, played_us: u64, state: PlayState, reports: &mut VecDeque<Report>) {
        self.reported_us = at_us;
        let clause = self.clause.unwrap_or(0);
        reports.push_back(Report::Played { speech: self.id, turn: self.turn, clause, played_us, at_us, state });
    }

    /// The last report and the record.
    fn finish(self, at_us: u64, complete: bool) -> [Report; 2] {
        let state = if complete { PlayState::Finished } else { PlayState::Stopped };
        let (speech, turn, clause, played_us) = (self.id, self.turn, self.clause.unwrap_or(0), self.played_us);
        [
            Report::Played { speech, turn, clause, played_us, at_us, state },
            Report::Over(Heard {
                speech,
                turn,
                text: self.text,
                began_us: self.began_us,
                ended_us: at_us,
                played_us,
                complete,
                pcm: self.pcm,
                rate_hz: self.rate_hz,
            }),
        ]
    }
}
