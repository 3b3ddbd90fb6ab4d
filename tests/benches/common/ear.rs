//! The gateway's ear and its core in virtual time: what is heard is decoded by the real weights, and what comes of it is written down.
//!
//! As in the gateway, the listener's facts go to the core, which asks for decodes; sentences of the tools are matched and answered by
//! the command engine, and all else is answered by a model whose first word takes its time. There is no clock and no socket: a
//! decode is done after the same time each time, and is not computed if it was given up before. A wake phrase is known by its text, or
//! heard in the sound by a head (`acoustic.rs`).

use std::sync::Arc;

use anyhow::Result;
use audio::asr::{self, Options, Pair, SAMPLES_MAX, Transcribe as _};
use audio::codec::{Codec, Encoder};
use audio::jitter;
use audio::listener::{self, Fact, Listener};
use audio::vad::silero;
use chat_models::intents;
use chat_models::{ChatModel as _, Request, Tools};
use firmware_sim::random::Random;
use gateway::speech::facts;
use gateway_core::conversation::{self, Conversation};
use gateway_core::driver::Driver;
use gateway_core::input::{Button, Input, Playback};
use gateway_core::output::{Chime, Output};
use gateway_core::vocab::{
    CommandMatch, DeviceInfo, ModelEvent, ModelRoute, StopReason, Timestamp, Transcript, TranscriptKind, Turn, Usage,
    VoiceFact,
};

use super::acoustic::{Acoustic, Phrase, WakeHead};
use super::clips::CLIP_HZ;
use super::fixture;

const PACKET_SAMPLES: usize = CLIP_HZ as usize / 50;
const PACKET_US: u64 = 20_000;
/// Steps of the virtual time: a packet takes four.
const STEP_US: u64 = 5_000;
/// Bits a second, where the codec has a choice.
const BITRATE: u32 = 24_000;
/// When an ear begins, in microseconds of virtual time.
const BEGIN_US: u64 = 1_000_000;
/// What a clause of an answer takes, in microseconds.
const CLAUSE_US: u64 = 500_000;

/// What all ears share.
pub struct Engines {
    silero: Arc<silero::Model>,
    recogniser: Pair,
    has_second: bool,
    commands: intents::Engine,
    tools: Tools,
    /// Hears the wake phrase in the sound; `None`: its text tells.
    pub wake: Option<WakeHead>,
    /// How long a decode takes in virtual time, in microseconds.
    decode_us: u64,
    /// How long a model takes to its first word, in microseconds; 0: there is none but the command engine.
    model_us: u64,
    /// What decodes have really taken, in microseconds.
    pub decodes_us: Vec<i64>,
}

/// How an ear listens.
#[derive(Clone, Copy)]
pub struct Manner {
    /// How the microphone's sound is coded.
    pub codec: Codec,
    /// Whether a wake phrase is needed for nothing.
    pub always_listening: bool,
    /// The microphone's own noise: its greatest sample.
    pub hiss: u16,
    /// Seed of that noise.
    pub seed: u64,
}

/// Something that happened, at a virtual time in microseconds.
#[derive(Clone, Debug)]
pub struct Event {
    pub at_us: u64,
    pub what: What,
}

/// What is written down: a decision of the ear or the core, or a text.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A voice was taken for the beginning of an utterance.
    Began,
    /// The end of an utterance was decided.
    Ended,
    /// A wake phrase was heard in the sound.
    WakeHeard,
    /// A decode gave this text.
    Decoded(String),
    /// The wearer, or an app, is told this text.
    Told(String),
    /// The ear opens behind a wake phrase.
    Called,
    /// A turn begins.
    Requested,
    /// What follows was taken for more of the same request.
    Reopened,
}

/// One wearer's ear, and the conversation behind it.
pub struct Ear {
    manner: Manner,
    encoder: Encoder,
    listener: Listener,
    acoustic: Option<Acoustic>,
    core: Driver<Conversation>,
    phrases: Arc<[String]>,
    vocabulary: Arc<[String]>,
    random: Random,
    sequence: u32,
    now_us: u64,
    due: Vec<Due>,
    /// The sound of the utterance that was closed last: it may be decoded once more.
    kept: Option<(u32, Vec<i16>)>,
    decoded: Option<Transcript>,
    /// What happened so far, in order.
    pub log: Vec<Event>,
}

/// Something that happens later.
struct Due {
    at_us: u64,
    work: Work,
}

enum Work {
    Decode(Decode),
    /// The model answers.
    Answer(Turn),
}

struct Decode {
    utterance: u32,
    revision: u16,
    kind: TranscriptKind,
    pcm: Vec<i16>,
}

impl Engines {
    /// Loads the weights that the gateway takes by default. Options: `--decode-ms` and `--model-ms`.
    pub fn load() -> Result<Self> {
        let models = audio::models::default_dir();
        let second = models.join("whisper-base.bin");
        let has_second = second.exists();
        let second = has_second.then(|| asr::Engine::load(&second, asr::Config::default())).transpose()?;
        let (decode_ms, model_ms) = (super::number("--decode-ms", 150)?, super::number("--model-ms", 700)?);
        println!(
            "a decode takes {decode_ms} ms, the first word of a model {model_ms} ms; second model: {}",
            if has_second { "whisper-base" } else { "none" }
        );
        Ok(Self {
            silero: silero::Model::load(&models.join(silero::FILE_NAME))?,
            recogniser: Pair::new(&super::engine()?, second.as_ref())?,
            has_second,
            commands: intents::Engine::new(),
            tools: fixture::tools(),
            wake: None,
            decode_us: decode_ms * 1_000,
            model_us: model_ms * 1_000,
            decodes_us: Vec::new(),
        })
    }

    /// What the command engine answers at once, if it does.
    fn answer_on_box(&self, request: &Request) -> Option<Vec<ModelEvent>> {
        match self.model_us {
            0 => self.commands.answer_on_box(request),
            _ => self.commands.answer_command(request),
        }
    }
}

impl Ear {
    /// An ear that has heard nothing yet.
    pub fn new(engines: &mut Engines, manner: Manner) -> Result<Self> {
        let Manner { codec, always_listening, seed, .. } = manner;
        let (rate_hz, jitter) = (CLIP_HZ, jitter::Config::ORDERED);
        let config = listener::Config { codec, rate_hz, jitter, ..listener::Config::default() };
        let mut settings = conversation::Config {
            acoustic_wake: engines.wake.is_some(),
            always_listening,
            conversational: engines.model_us > 0,
            second_model: engines.has_second,
            ..conversation::Config::default()
        };
        if let Some(head) = &engines.wake {
            settings.wake_phrases = vec![head.phrase()];
        }
        let mut ear = Self {
            manner,
            encoder: Encoder::new(codec, CLIP_HZ, BITRATE)?,
            listener: Listener::new(config, engines.silero.clone())?,
            acoustic: engines.wake.as_ref().map(Acoustic::new),
            phrases: settings.wake_phrases.clone().into(),
            core: Driver::new(Conversation::new(settings)),
            vocabulary: Arc::new([]),
            random: Random::new(seed),
            sequence: 0,
            now_us: BEGIN_US,
            due: Vec::new(),
            kept: None,
            decoded: None,
            log: Vec::new(),
        };
        ear.core.push(Input::Connected { device: device(), resumed: false });
        ear.settle(engines)?;
        Ok(ear)
    }

    /// The virtual time, in microseconds.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// The wearer presses the button: what is said next needs no wake phrase.
    pub fn press(&mut self, engines: &mut Engines) -> Result<()> {
        self.core.push(Input::Button(Button::Press));
        self.settle(engines)
    }

    /// Hears this sound, at 16 kHz; what does not fill its last packet is silence.
    pub fn hear(&mut self, engines: &mut Engines, pcm: &[i16]) -> Result<()> {
        for samples in pcm.chunks(PACKET_SAMPLES) {
            let mut packet = samples.to_vec();
            packet.resize(PACKET_SAMPLES, 0);
            self.add_hiss(&mut packet);
            let payload = self.encoder.encode(&packet)?;
            let capture_us = self.now_us;
            for _ in 0..PACKET_US / STEP_US {
                self.now_us += STEP_US;
                self.settle(engines)?;
            }
            self.sequence += 1;
            let mut facts = Vec::new();
            self.listener.push_packet(self.sequence, capture_us, &payload, self.now_us, &mut facts)?;
            for fact in facts {
                if matches!(fact, Fact::SpeechStarted { .. }) {
                    self.note(What::Began);
                }
                self.core.push(Input::Voice(facts::of_listener(fact)));
            }
            self.listen_for_wake(false)?;
            self.settle(engines)?;
        }
        Ok(())
    }

    /// When this happened, in microseconds of virtual time.
    pub fn times_us(&self, what: What) -> impl Iterator<Item = u64> {
        self.log.iter().filter(move |event| event.what == what).map(|event| event.at_us)
    }

    /// What the last decode gave.
    pub fn last_decoded(&self) -> Option<&Transcript> {
        self.decoded.as_ref()
    }

    fn note(&mut self, what: What) {
        self.log.push(Event { at_us: self.now_us, what });
    }

    fn add_hiss(&mut self, packet: &mut [i16]) {
        let most = i64::from(self.manner.hiss);
        if most == 0 {
            return;
        }
        for sample in packet {
            let noise = self.random.below(2 * most as u64 + 1) as i64 - most;
            *sample = (i64::from(*sample) + noise).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        }
    }

    /// Has the head listen to what is new of the open utterance; `is_over`: no more of it follows.
    fn listen_for_wake(&mut self, is_over: bool) -> Result<()> {
        let (Some(acoustic), Some(open)) = (&mut self.acoustic, self.listener.open_utterance()) else { return Ok(()) };
        if let Some(Phrase { utterance, at_us, score, .. }) = acoustic.listen(open, is_over)? {
            self.core.push(Input::Voice(VoiceFact::WakeHeard { utterance, at_us, score }));
            self.note(What::WakeHeard);
        }
        Ok(())
    }

    /// Samples of an utterance before this capture time, by the wake phrase that was heard in it.
    fn samples_before(&self, utterance: u32, from_us: u64) -> usize {
        self.acoustic.as_ref().map_or(0, |acoustic| acoustic.samples_before(utterance, from_us))
    }

    /// Does what is due, and what follows from it and from what was pushed.
    fn settle(&mut self, engines: &mut Engines) -> Result<()> {
        let now_us = self.now_us;
        let now = Timestamp { mono_us: now_us, wall_ms: (now_us / 1_000) as i64, offset_s: 0 };
        self.core.push(Input::Alive { at_us: now_us });
        let due: Vec<Due> = self.due.extract_if(.., |due| due.at_us <= now_us).collect();
        for Due { work, .. } in due {
            match work {
                Work::Decode(decode) => {
                    let transcript = self.decode(engines, decode)?;
                    self.core.push(Input::Transcript(transcript));
                }
                Work::Answer(turn) => {
                    let done = ModelEvent::Done { stop: StopReason::End, usage: Usage::default() };
                    for event in [ModelEvent::Text("All right.".to_owned()), done] {
                        self.core.push(Input::Model { turn, event });
                    }
                }
            }
        }
        if self.core.poll_timeout().is_some_and(|(at_us, _)| at_us <= now_us) {
            self.core.push_timeout();
        }
        while let Some(output) = self.core.poll_output(now) {
            self.carry_out(engines, output)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, engines: &mut Engines, output: Output) -> Result<()> {
        match output {
            Output::Transcribe { utterance, revision, kind, from_us, .. } => {
                let first = from_us.map_or(0, |from_us| self.samples_before(utterance, from_us));
                self.transcribe(engines, (utterance, revision), kind, first);
            }
            Output::MeasureFrom { utterance, from_us } => {
                let samples = self.samples_before(utterance, from_us);
                self.listener.measure_from(utterance, samples);
            }
            Output::PauseAfter { utterance, silence_us } => self.listener.pause_after(utterance, silence_us),
            Output::CancelTranscribe { utterance, revision, except } => self.due.retain(|due| match &due.work {
                Work::Decode(decode) => {
                    let is_kept = decode.revision >= revision || except.contains(&decode.revision);
                    decode.utterance != utterance || is_kept
                }
                Work::Answer(_) => true,
            }),
            Output::CloseUtterance { utterance } => {
                if let Some(pcm) = self.listener.utterance_pcm(utterance) {
                    self.kept = Some((utterance, pcm.to_vec()));
                    self.listen_for_wake(true)?;
                }
                self.listener.close_utterance(utterance);
                self.note(What::Ended);
            }
            Output::MatchCommand { utterance, revision, text, pending } => {
                let request = Request { pending, ..fixture::request(&text, &engines.tools) };
                let found = engines.commands.match_command(&request);
                let (matched, vocabulary) = found.map(|found| (found.matched, found.vocabulary)).unzip();
                let matched = matched.unwrap_or(CommandMatch::None);
                self.core.push(Input::CommandMatched { utterance, revision, matched, vocabulary });
            }
            Output::SetVocabulary(vocabulary) => self.vocabulary = vocabulary,
            Output::Chime(Chime::Attentive) => self.note(What::Called),
            Output::RequestTurn { turn, .. } => {
                self.note(What::Requested);
                self.core.push(Input::Granted { turn, history: Vec::new(), route: ModelRoute::default() });
            }
            Output::TurnReopened { .. } => self.note(What::Reopened),
            Output::AskModel { turn, messages, pending, .. } => {
                let (tools, now) = (engines.tools.clone(), fixture::now());
                match engines.answer_on_box(&Request { messages, pending, tools, now, ..Request::default() }) {
                    Some(events) => self.core.push(Input::AnsweredOnBox { turn, events }),
                    None => self.due.push(Due { at_us: self.now_us + engines.model_us, work: Work::Answer(turn) }),
                }
            }
            Output::CancelModel { turn } => {
                self.due.retain(|due| !matches!(due.work, Work::Answer(answered) if answered == turn));
            }
            Output::Speak { speech, clause, last, .. } => {
                let playback = if last { Playback::Finished } else { Playback::Playing };
                self.core.push(Input::Spoken { speech, clause, duration_us: CLAUSE_US });
                self.core.push(Input::Played { speech, clauses_done: clause + 1, clause_part: 0.0, playback });
            }
            Output::Caption { text, .. } if !text.trim().is_empty() => self.note(What::Told(text)),
            _ => {}
        }
        Ok(())
    }

    /// Has an utterance decoded, but for its first samples.
    fn transcribe(&mut self, engines: &Engines, (utterance, revision): (u32, u16), kind: TranscriptKind, first: usize) {
        let kept = self.kept.as_ref().filter(|(of, _)| *of == utterance).map(|(_, pcm)| pcm.as_slice());
        let Some(pcm) = self.listener.utterance_pcm(utterance).or(kept) else {
            self.core.push(Input::TranscriptFailed { utterance, revision });
            return;
        };
        // Of more than can be decoded at once the end is.
        let first = first.max(pcm.len().saturating_sub(SAMPLES_MAX));
        let pcm = pcm.get(first..).unwrap_or_default().to_vec();
        let work = Work::Decode(Decode { utterance, revision, kind, pcm });
        self.due.push(Due { at_us: self.now_us + engines.decode_us, work });
    }

    fn decode(&mut self, engines: &mut Engines, decode: Decode) -> Result<Transcript> {
        let Decode { utterance, revision, kind, pcm } = decode;
        let mut options = Options { wake_phrases: self.phrases.clone(), ..Options::default() };
        if matches!(kind, TranscriptKind::SecondPass | TranscriptKind::ThirdPass) {
            options.vocabulary = self.vocabulary.clone();
            options.second_model = kind == TranscriptKind::SecondPass;
        }
        let heard = engines.recogniser.transcribe(&pcm, &options)?;
        engines.decodes_us.push(heard.decode_us as i64);
        let (confidence, last_word, breaks_off) = (heard.confidence(), heard.last_word_confidence(), heard.breaks_off);
        let text = heard.text;
        self.note(What::Decoded(text.clone()));
        let transcript =
            Transcript { utterance, revision, kind, text, confidence, last_word, breaks_off, foreign: false };
        self.decoded = Some(transcript.clone());
        Ok(transcript)
    }
}

/// Glasses with a speaker, without a display.
fn device() -> DeviceInfo {
    DeviceInfo {
        id: "bench".to_owned(),
        user: "bench".to_owned(),
        display: None,
        bitmaps: false,
        speaker: true,
        echo_cancelled: true,
        captions: false,
    }
}
