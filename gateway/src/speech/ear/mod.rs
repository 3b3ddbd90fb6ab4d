//! From microphone packets to voice facts, and from utterances to recognition jobs.

mod decodes;
mod device_wake;
mod pauses;
mod sound;
mod steps;
mod wake;

use std::sync::Arc;

use audio::{
    asr::{Language, Scheduler, Spoken},
    codec::Codec,
    end_of_turn, jitter,
    listener::{self, Fact, Listener},
    samples::Samples,
    vad::silero,
};
use gateway_core::vocab::{Addressing, MicrophoneFault, TranscriptKind, VoiceFact};

use crate::{
    clock,
    mailbox::{DeviceMessage, Mailbox, Scored, WakeHeard},
    runtime::compute::{Compute, Urgency},
    speech::{facts, wake::WakeCounts},
};
use decodes::Decodes;
use pauses::Pauses;
use wake::Wake;
pub(crate) use wake::WakeSource;

/// Maximum drift of the device's clock in the estimate, in microseconds per second: crystals are ten times better.
const DRIFT_US_PER_S: u64 = 500;

/// Scores pauses outside of the device's task.
#[derive(Clone)]
pub struct PauseJudge {
    /// Shared by all devices.
    pub model: Arc<end_of_turn::Model>,
    /// Where it runs.
    pub compute: Compute,
}

/// What an ear needs in addition to its device; the same for all devices.
#[derive(Clone)]
pub(crate) struct EarDependencies {
    /// Voice activity.
    pub silero: Arc<silero::Model>,
    /// Recognition.
    pub scheduler: Arc<Scheduler>,
    /// What is spoken.
    pub spoken: Spoken,
    /// Given to the recogniser as a prompt, for their spelling.
    pub wake_phrases: Arc<[String]>,
    /// How long a microphone may send samples of one value before it counts as dead, in microseconds; `None`: for ever.
    pub dead_us: Option<u64>,
    /// Present if end-of-turn scoring is on.
    pub judge: Option<PauseJudge>,
    /// Who hears wake phrases.
    pub wake: WakeSource,
    /// Counts what comes of it.
    pub wake_counts: Arc<WakeCounts>,
}

/// The microphone input of one device.
pub(crate) struct Ear {
    listener: Listener,
    judge: Option<PauseJudge>,
    decodes: Decodes,
    wake: Option<Wake>,
    mailbox: Mailbox,
    pauses: Pauses,
    end_score: Option<f32>,
    facts: Vec<Fact>,
    offset: Option<ClockOffset>,
    transit_us: u64,
    busy_us: u64,
}

/// The device's clock relative to the gateway's: gateway time minus capture time of the packet with the shortest
/// transit.
#[derive(Clone, Copy)]
struct ClockOffset {
    us: i64,
    at_us: u64,
}

impl Ear {
    /// An ear for audio in this codec and rate, with these waits for missing packets.
    ///
    /// # Errors
    /// Codec or rate are not supported.
    pub(crate) fn new(
        codec: Codec,
        rate_hz: u32,
        jitter: jitter::Config,
        dependencies: EarDependencies,
        mailbox: Mailbox,
    ) -> Result<Self, listener::Error> {
        let dead_us = dependencies.dead_us;
        let config = listener::Config { codec, rate_hz, jitter, dead_us, ..listener::Config::default() };
        let expected = (dependencies.spoken, dependencies.wake_phrases);
        let decodes = Decodes::new(dependencies.scheduler, expected, mailbox.clone());
        let wake = Wake::new(dependencies.wake, dependencies.wake_counts, decodes.owner(), mailbox.clone());
        Ok(Self {
            listener: Listener::new(config, dependencies.silero)?,
            judge: dependencies.judge,
            wake,
            decodes,
            mailbox,
            pauses: Pauses::default(),
            end_score: None,
            facts: Vec::new(),
            offset: None,
            transit_us: 0,
            busy_us: 0,
        })
    }

    /// Handles a packet.
    ///
    /// # Errors
    /// The packet does not decode; it counts as lost.
    pub(crate) fn push(
        &mut self,
        sequence: u32,
        capture_us: u64,
        packet: &[u8],
        now_us: u64,
    ) -> Result<(), listener::Error> {
        self.note_time(capture_us, now_us);
        self.transit_us = now_us.saturating_sub(self.to_gateway_us(capture_us));
        let heard = self.listener.push_packet(sequence, capture_us, packet, now_us, &mut self.facts);
        self.listen_for_wake(false);
        self.busy_us += clock::mono_us().saturating_sub(now_us);
        heard
    }

    /// The device stopped its microphone after this packet.
    pub(crate) fn end_stream(&mut self, last_sequence: u32, now_us: u64) {
        self.listener.end_stream(last_sequence, now_us, &mut self.facts);
    }

    /// Has the sound listened to for wake phrases; `last`: the open utterance is about to be closed.
    fn listen_for_wake(&mut self, last: bool) {
        if let Some(wake) = &mut self.wake {
            wake.listen(self.listener.open_utterance(), self.listener.heard_until_us(), last);
        }
    }

    /// Whether wake phrases are heard before their text is known.
    pub(crate) fn hears_wake(&self) -> bool {
        self.wake.is_some()
    }

    /// The device has heard a wake phrase that ended at this capture time. Returns what it should be told, once.
    pub(crate) fn wake_told(&mut self, phrase: &str, at_us: u64, score: f32) -> Option<String> {
        let problem = self.wake.as_mut().and_then(|wake| wake.told(phrase, at_us, score));
        self.listen_for_wake(false);
        problem
    }

    /// A wake phrase was heard: as a fact for the core.
    pub(crate) fn wake_heard(&mut self, heard: WakeHeard) -> VoiceFact {
        let WakeHeard { utterance, at_us, score, .. } = heard;
        self.wake.iter_mut().for_each(|wake| wake.note(heard));
        VoiceFact::WakeHeard { utterance, at_us, score }
    }

    fn note_time(&mut self, capture_us: u64, now_us: u64) {
        let us = i64::try_from(now_us).unwrap_or(i64::MAX).saturating_sub_unsigned(capture_us);
        let known = self.offset.map(|offset| {
            let drift_us = now_us.saturating_sub(offset.at_us) / 1_000_000 * DRIFT_US_PER_S;
            offset.us.saturating_add_unsigned(drift_us)
        });
        if known.is_none_or(|known| us <= known) {
            self.offset = Some(ClockOffset { us, at_us: now_us });
        }
    }

    /// A capture time on the gateway's clock. The shortest transit counts as zero.
    pub(crate) fn to_gateway_us(&self, capture_us: u64) -> u64 {
        let offset = self.offset.map_or(0, |offset| offset.us);
        capture_us.saturating_add_signed(offset)
    }

    /// Transit time of the last packet beyond the shortest one, in microseconds.
    pub(crate) fn transit_us(&self) -> u64 {
        self.transit_us
    }

    /// Time spent on packets since the last call, in microseconds: decoding and voice activity detection.
    pub(crate) fn take_busy_us(&mut self) -> u64 {
        std::mem::take(&mut self.busy_us)
    }

    /// The link is back, with these waits for missing packets: the sound that the device has kept follows.
    pub(crate) fn resume(&mut self, jitter: jitter::Config, now_us: u64) {
        self.listener.resume(jitter, now_us);
    }

    /// Capture time of the end of the sound so far, on the device's clock; `None`: none yet.
    pub(crate) fn heard_until_us(&self) -> Option<u64> {
        self.listener.heard_until_us()
    }

    /// The same, where no utterance is open: nobody is speaking.
    pub(crate) fn quiet_until_us(&self) -> Option<u64> {
        self.heard_until_us().filter(|_| self.listener.open_utterance().is_none())
    }

    /// The last packet that need not be sent again; `None`: none came.
    pub(crate) fn last_sequence(&self) -> Option<u32> {
        self.listener.last_sequence()
    }

    /// Advances the time, and hears the next packet that has come.
    pub(crate) fn tick(&mut self, now_us: u64) {
        self.decodes.tick(now_us);
        self.listener.tick(now_us, &mut self.facts);
        self.listen_for_wake(false);
        self.busy_us += clock::mono_us().saturating_sub(now_us);
    }

    /// Whether more has come that `tick` hears now.
    pub(crate) fn is_ready(&self, now_us: u64) -> bool {
        self.listener.is_ready(now_us)
    }

    /// The packets behind the last one that the device should send again.
    pub(crate) fn take_missing(&mut self, now_us: u64) -> Option<jitter::Missing> {
        self.listener.take_missing(now_us)
    }

    /// Whether `take_missing` has something.
    pub(crate) fn is_missing(&self) -> bool {
        self.listener.is_missing()
    }

    /// When `tick` is due.
    pub(crate) fn next_wake_us(&self) -> Option<u64> {
        self.listener.next_wake_us().into_iter().chain(self.decodes.next_wake_us()).min()
    }

    /// The next fact, as a core type. A wake phrase of the device comes last: behind the beginning of its utterance.
    pub(crate) fn next_fact(&mut self) -> Option<VoiceFact> {
        if self.facts.is_empty() {
            let found = self.wake.as_mut().and_then(Wake::take_found)?;
            return Some(self.wake_heard(found));
        }
        let fact = self.facts.remove(0);
        match fact {
            Fact::Paused { utterance, .. } => self.judge_pause(utterance),
            Fact::SpeechStarted { .. } => {
                self.pauses.begin();
                self.end_score = None;
            }
            Fact::Resumed { .. } => {
                self.pauses.begin();
            }
            Fact::Silence { .. } | Fact::Ended { .. } => {}
        }
        Some(facts::of_listener(fact))
    }

    /// The next fault of the microphone that was found, or that is gone (`false`), as a core type.
    pub(crate) fn next_fault(&mut self) -> Option<(MicrophoneFault, bool)> {
        let (fault, present) = self.listener.take_fault()?;
        Some((facts::of_microphone(fault), present))
    }

    /// Requests a score of how likely the speaker is done.
    fn judge_pause(&mut self, utterance: u32) {
        let pause = self.pauses.begin();
        let (Some(judge), Some(pcm)) = (&self.judge, self.listener.utterance_pcm(utterance)) else {
            return;
        };
        // The model uses only the last part.
        let pcm = Samples::from(pcm.get(pcm.len().saturating_sub(end_of_turn::SAMPLES)..).unwrap_or(pcm));
        let (model, mailbox, present) = (judge.model.clone(), self.mailbox.clone(), self.pauses.clone());
        let job = move || {
            if !present.is_present(pause) {
                return;
            }
            match model.score(&pcm) {
                Ok(score) => drop(mailbox.try_send(DeviceMessage::Scored(Scored { utterance, pause, score }))),
                Err(error) => tracing::warn!(%error, "a pause could not be judged"),
            }
        };
        if judge.compute.submit_for(self.decodes.owner(), Urgency::Now, job).is_err() {
            tracing::debug!(utterance, "a pause is not judged: too many wait");
        }
    }

    /// Handles the score of a pause: facts about its silence carry it from now on.
    pub(crate) fn note_score(&mut self, scored: &Scored) {
        if self.pauses.is_present(scored.pause) {
            self.listener.note_score(scored.utterance, scored.score);
            self.end_score = Some(scored.score);
        }
    }

    /// The score of the last pause that was scored in time, since the utterance began.
    pub(crate) fn end_score(&self) -> Option<f32> {
        self.end_score
    }

    /// Mutes or unmutes the microphone.
    pub(crate) fn set_muted(&mut self, muted: bool) {
        self.listener.set_muted(muted);
        self.decodes.forget();
        self.wake.iter_mut().for_each(Wake::forget);
    }

    /// Sets the vocabulary towards which a second pass is biased.
    pub(crate) fn set_vocabulary(&mut self, vocabulary: Arc<[String]>) {
        self.decodes.set_vocabulary(vocabulary);
    }

    /// What matters of the open utterance begins at this capture time: from there it may be as long as any other.
    pub(crate) fn measure_from(&mut self, utterance: u32, from_us: u64) {
        let samples = self.wake.as_ref().and_then(|wake| wake.samples_before(utterance, from_us)).unwrap_or(0);
        self.listener.measure_from(utterance, samples);
    }

    /// From now on a pause of the open utterance is reported after so much silence.
    pub(crate) fn pause_after(&mut self, utterance: u32, silence_us: u64) {
        self.listener.pause_after(utterance, silence_us);
    }

    /// Closes the utterance: the next voice opens a new one.
    pub(crate) fn close_utterance(&mut self, utterance: u32, now_us: u64) {
        if let Some(pcm) = self.listener.utterance_pcm(utterance) {
            self.decodes.keep(utterance, pcm, now_us);
            self.listen_for_wake(true);
        }
        self.listener.close_utterance(utterance);
    }

    /// Sends the utterance so far to recognition, or the part of it from this capture time on; `false`: it cannot be sent.
    pub(crate) fn transcribe(
        &mut self,
        (utterance, revision): (u32, u16),
        (kind, meant): (TranscriptKind, Addressing),
        from_us: Option<u64>,
    ) -> bool {
        let first = from_us.map_or(0, |from_us| self.samples_before(utterance, from_us));
        self.decodes.ask((utterance, revision), (kind, meant), self.listener.utterance_pcm(utterance), first)
    }

    /// Samples of an utterance before this capture time: by the wake phrase that was heard in it, or else by the end of its sound so
    /// far. None where neither is known.
    fn samples_before(&self, utterance: u32, from_us: u64) -> usize {
        let by_wake = self.wake.as_ref().and_then(|wake| wake.samples_before(utterance, from_us));
        let by_end = || {
            let (_, sound, end_us) = self.listener.open_utterance().filter(|(open, ..)| *open == utterance)?;
            Some(decodes::before_end(sound.len(), end_us.saturating_sub(from_us)))
        };
        by_wake.or_else(by_end).unwrap_or(0)
    }

    /// Sends an utterance to translation into English, from one of these languages, or from any where there are none; `false`: there
    /// is no sound of it, or recognition has no time for it.
    pub(crate) fn translate(&mut self, utterance: u32, from: &[Language]) -> bool {
        self.decodes.translate(utterance, self.listener.utterance_pcm(utterance), from)
    }

    /// A decode has ended.
    pub(crate) fn decode_ended(&mut self, utterance: u32, revision: u16) {
        self.decodes.ended(utterance, revision);
    }

    /// A translation has ended.
    pub(crate) fn translation_ended(&mut self, utterance: u32) {
        self.decodes.translated(utterance);
    }

    /// Cancels decodes of the utterance older than `revision`, except these.
    pub(crate) fn cancel_transcribe(&mut self, utterance: u32, revision: u16, except: &[u16]) {
        self.decodes.cancel(utterance, revision, except);
    }

    /// Counters for the metrics.
    pub(crate) fn stats(&self) -> listener::Stats {
        self.listener.stats()
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        // Scores that are still to be computed become stale.
        self.pauses.begin();
    }
}
