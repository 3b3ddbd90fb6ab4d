//! From clauses to paced speech packets, and from what the device says it played to facts.

use std::sync::Arc;

use audio::{
    codec::Codec,
    frame::samples_to_us,
    speaker::{self, Packet, Speaker},
    tts::Voice,
};
use gateway_core::input::Input;

use crate::{
    clock,
    effects::compute::Compute,
    mail::{Address, Mail, Synthesised},
};

/// One device's mouth.
pub struct Mouth {
    speaker: Speaker,
    voice: Arc<Voice>,
    compute: Compute,
    speed: f32,
    speech: Option<Under>,
}

/// The speech under way.
struct Under {
    id: u32,
    clauses: Vec<Clause>,
    done: u16,
    announced: Option<u16>,
}

struct Clause {
    number: u16,
    duration_us: u64,
}

impl Mouth {
    /// A mouth that speaks in this codec and rate.
    ///
    /// # Errors
    /// Codec or rate cannot be used.
    pub fn new(
        codec: Codec,
        rate_hz: u32,
        voice: Arc<Voice>,
        compute: Compute,
        speed: f32,
    ) -> Result<Self, speaker::Error> {
        let config = speaker::Config { codec, rate_hz, ..speaker::Config::default() };
        Ok(Self { speaker: Speaker::new(config)?, voice, compute, speed, speech: None })
    }

    /// Begins to make a clause; `true` when it is the first of a new speech.
    pub fn speak(&mut self, speech: u32, turn: u32, clause: u16, text: String, last: bool, mail: &Address) -> bool {
        let new = self.speech.as_ref().is_none_or(|under| under.id != speech);
        if new {
            self.speaker.start(speech, turn);
            self.speech = Some(Under { id: speech, clauses: Vec::new(), done: 0, announced: None });
        }
        let (voice, speed, reply) = (self.voice.clone(), self.speed, mail.clone());
        let asked_us = clock::mono_us();
        let job = move || {
            let began_us = clock::mono_us();
            let queue_us = began_us - asked_us;
            let pcm = if text.trim().is_empty() { Ok(Vec::new()) } else { voice.synthesize(&text, speed) };
            let pcm = pcm.inspect_err(|error| tracing::warn!(%error, "a clause could not be synthesised")).ok();
            let compute_us = clock::mono_us() - began_us;
            let letter = Mail::Synthesised(Synthesised { speech, clause, last, pcm, queue_us, compute_us });
            if reply.try_send(letter).is_err() {
                tracing::debug!(speech, clause, "nobody waits for this clause any more");
            }
        };
        if self.compute.submit(job).is_err() {
            let failed = Synthesised { speech, clause, last, pcm: None, queue_us: 0, compute_us: 0 };
            drop(mail.try_send(Mail::Synthesised(failed)));
        }
        new
    }

    /// Takes a synthesised clause; a failed or stale one is told or dropped.
    pub fn take(&mut self, clause: Synthesised) -> Option<Input> {
        let under = self.speech.as_mut().filter(|under| under.id == clause.speech)?;
        let failed = Input::SpeechFailed { speech: clause.speech, clause: clause.clause };
        let Some(pcm) = clause.pcm else {
            return Some(failed);
        };
        under
            .clauses
            .push(Clause { number: clause.clause, duration_us: samples_to_us(pcm.len() as u64, Voice::RATE_HZ) });
        match self.speaker.push_clause(clause.clause, &pcm, Voice::RATE_HZ, clause.last) {
            Ok(()) => None,
            Err(error) => {
                tracing::warn!(%error, "a clause could not be queued");
                Some(failed)
            }
        }
    }

    /// The next packet that is due.
    pub fn poll_packet(&mut self, now_us: u64) -> Option<Packet> {
        self.speaker.poll_packet(now_us)
    }

    /// Whether this packet is the first of its clause; tells the core then.
    pub fn first_of_clause(&mut self, packet: &Packet) -> Option<Input> {
        let under = self.speech.as_mut().filter(|under| under.id == packet.speech)?;
        if under.announced.is_some_and(|number| number >= packet.clause) {
            return None;
        }
        under.announced = Some(packet.clause);
        let clause = under.clauses.iter().find(|clause| clause.number == packet.clause)?;
        Some(Input::Spoken { speech: packet.speech, clause: packet.clause, duration_us: clause.duration_us })
    }

    /// When `poll_packet` is due.
    pub fn next_wake_us(&self) -> Option<u64> {
        self.speaker.next_wake_us()
    }

    /// Stops at once. The device fades what it still plays, so nothing more is sent.
    pub fn hush(&mut self, speech: u32, now_us: u64) {
        if self.speech.as_ref().is_some_and(|under| under.id == speech) {
            self.speaker.hush(now_us);
            while self.speaker.poll_packet(now_us).is_some() {}
        }
    }

    /// The device says how much it played.
    pub fn played(&mut self, speech: u32, played_us: u64, stopped: bool) -> Option<Input> {
        let played = self.speaker.played(speech, played_us)?;
        let under = self.speech.as_mut().filter(|under| under.id == speech)?;
        under.done = under.done.saturating_add(u16::try_from(played.completed.len()).unwrap_or(u16::MAX));
        let before_us: u64 = under.clauses.iter().take(under.done.into()).map(|clause| clause.duration_us).sum();
        let part = under.clauses.get(usize::from(under.done)).map_or(0.0, |clause| {
            let into_us = played.played_us.saturating_sub(before_us);
            // Microseconds of one clause: exact enough in f32.
            (into_us as f32 / clause.duration_us.max(1) as f32).min(1.0)
        });
        Some(Input::Played {
            speech,
            clauses_done: under.done,
            clause_part: part,
            finished: played.finished || stopped,
        })
    }
}
