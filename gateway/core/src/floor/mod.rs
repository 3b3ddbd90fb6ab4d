//! The floor: whose turn it is to speak. Utterances from their first voiced frame to their text, whether they were
//! meant for the assistant, and when one is over.

mod acoustic;
mod addressing;
pub(crate) mod barge_in;
mod caption;
pub(crate) mod commands;
mod confidence;
mod decode_policy;
mod echo;
mod endpoint;
mod lifecycle;
mod link_loss;
mod live_words;
mod origin;
mod pace;
mod partials;
mod pending_transcripts;
pub(crate) mod request_form;
mod second_pass;
mod sound_clock;
mod talk;
mod unfinished;
mod utterance;
pub(crate) mod wake;
mod wake_evidence;

use alloc::{collections::VecDeque, string::String, vec::Vec};

pub(crate) use self::addressing::AskedAgain;
use self::{
    addressing::{LastRequest, Question},
    confidence::ConfidenceHistory,
    echo::OwnVoice,
    link_loss::Missed,
    origin::{Grounds, Origin},
    pace::Pace,
    sound_clock::SoundClock,
    talk::Talk,
    utterance::{Closed, Interruption, Open, Silence},
    wake::Phrases,
    wake_evidence::{InSound, WakeEvidence},
};
use crate::{config::Config, context::Context, output::Output, timers::Timer, vocab::CommandMatch};

/// The state of the rest of the conversation, as far as it matters to an utterance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activity {
    /// A turn is under way, or something is being spoken.
    pub(crate) busy: bool,
    /// The assistant's audio is playing or about to.
    pub(crate) speaking: bool,
    /// A question is open that the wearer's words may answer.
    pub(crate) asked: bool,
    /// The turn waits for what the wearer goes on to say.
    pub(crate) held: bool,
    /// The assistant's last words, in plain form.
    pub(crate) spoken: String,
}

/// Result of a fact or a transcript.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// A voice over the assistant has lasted: its words will tell whether it interrupts.
    VoiceOver,
    /// The wearer intentionally speaks over the assistant.
    Interrupt,
    /// An utterance has ended with this text.
    Said(Utterance),
    /// An utterance has ended without words.
    Nothing,
    /// An utterance has ended and could not be understood.
    Lost {
        /// Whether it was certainly meant for the assistant.
        addressed: bool,
    },
}

/// An utterance with its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Utterance {
    pub(crate) utterance: u32,
    /// The whole text.
    pub(crate) text: String,
    /// The part meant for the assistant; empty after a bare wake phrase. `None`: not addressed.
    pub(crate) request: Option<String>,
    /// Whether a wake phrase was said.
    pub(crate) woken: bool,
    /// Whether it began while the assistant was at work, or stopped it.
    pub(crate) over_turn: bool,
    /// Whether it may be the assistant's own voice.
    pub(crate) echo: bool,
    /// Whether it asks to end the current activity.
    pub(crate) cancels: bool,
    /// When it began to be heard, monotonic.
    pub(crate) started_us: u64,
    /// When it began to be spoken, monotonic; 0: not known.
    pub(crate) spoken_us: u64,
    /// Whether it was heard much later than it was spoken.
    pub(crate) late: bool,
    /// Whether it is the rest of a sentence whose beginning is missing: only a wake or cancel word in it counts.
    pub(crate) rest: bool,
    /// Whether, over the assistant's speech, it tells no more than that the wearer listens.
    pub(crate) listens: bool,
    /// How well it matches a command, if that was asked.
    pub(crate) matched: Option<CommandMatch>,
    /// Capture time of its last voiced sample.
    pub(crate) last_voice_us: u64,
    /// The silence behind it when its end was decided.
    pub(crate) waited_us: u64,
    /// When its end was decided.
    pub(crate) decided_us: u64,
}

/// Whether a wake word is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ear {
    /// Yes.
    Closed,
    /// No: the wearer called, or pressed.
    Open { until_us: u64 },
    /// No: an answer was just heard.
    FollowUp { until_us: u64 },
}

/// The floor: the open utterance, those that wait for their text, and whether a wake phrase is needed.
#[derive(Debug)]
pub(crate) struct Floor {
    phrases: Phrases,
    open: Option<Open>,
    closed: VecDeque<Closed>,
    last_closed: Option<u32>,
    /// The last utterance that was not decoded, or only for the end of the translation, because no wake phrase was heard in it:
    /// one may be heard late.
    passed: Option<Closed>,
    /// The last utterance up to which all are reported as dealt with.
    settled: Option<u32>,
    ear: Ear,
    /// What was last reported for a restart: whether the wearer called, and when the ear and the question are both
    /// closed.
    stored_ear: Option<(bool, u64)>,
    /// Whether an app follows speech word by word.
    followed: bool,
    /// The assistant's question, until it is answered.
    question: Option<Question>,
    /// What is stored of it for a restart: whether it was heard, and until when an answer counts.
    stored_question: Option<(bool, u64)>,
    /// After a restart: the question is put again, unless it is answered before.
    asked_again: Option<AskedAgain>,
    /// The previous request, which more words may belong to.
    last: Option<LastRequest>,
    /// Whether a foreground app has begun to listen since the last request.
    handed_over: bool,
    talk: Talk,
    /// The utterance that was open when the talk button went down, and how it had begun.
    before_hold: Option<(u32, Origin)>,
    pace: Pace,
    confidence: ConfidenceHistory,
    own_voice: OwnVoice,
    /// The last voice over the assistant, if it had no words: the next one interrupts by its words only. It counts until
    /// words are heard, and no longer than for the present turn.
    wordless: Option<u32>,
    /// Whether the link is lost, so that no sound arrives.
    deaf: bool,
    /// Sound that is missing in front of what came last, until a voice begins.
    missed: Option<Missed>,
    sound_clock: SoundClock,
    /// When the link was last back, monotonic: what was spoken before it is a replay.
    resumed_us: u64,
}

impl Floor {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            phrases: Phrases::new(config.wake_phrases.iter().map(String::as_str)),
            open: None,
            closed: VecDeque::new(),
            last_closed: None,
            passed: None,
            settled: None,
            ear: Ear::Closed,
            stored_ear: None,
            followed: false,
            question: None,
            stored_question: None,
            asked_again: None,
            last: None,
            handed_over: false,
            talk: Talk::default(),
            before_hold: None,
            pace: Pace::default(),
            confidence: ConfidenceHistory::default(),
            own_voice: OwnVoice::default(),
            wordless: None,
            deaf: false,
            missed: None,
            sound_clock: SoundClock::default(),
            resumed_us: 0,
        }
    }

    /// Whether an utterance is open or waits for its text.
    pub(crate) fn is_hearing(&self) -> bool {
        self.open.is_some() || !self.closed.is_empty()
    }

    /// Whether an utterance whose voice was over at this time, monotonic, may not be, or waits for its text.
    pub(crate) fn has_heard_until(&self, at_us: u64) -> bool {
        let paused = self.open.iter().filter_map(|open| open.silence).map(Silence::began_us);
        let closed = self.closed.iter().map(|closed| closed.decided_us.saturating_sub(closed.waited_us));
        paused.chain(closed).any(|ended_us| ended_us <= at_us)
    }

    /// Whether something is heard whose words may yet interrupt an answer that its voice has paused.
    pub(crate) fn may_interrupt(&self) -> bool {
        let open = self.open.iter().map(|open| open.interrupted);
        let mut heard = open.chain(self.closed.iter().map(|closed| closed.interrupted));
        heard.any(|interrupted| interrupted != Interruption::Wordless)
    }

    /// Whether something is heard, or awaits its text, that has interrupted the assistant.
    pub(crate) fn has_interrupted(&self) -> bool {
        let open = self.open.iter().any(Open::is_interrupting);
        open || self.closed.iter().any(Closed::is_interrupting)
    }

    /// Whether the words of this utterance are still to come.
    pub(crate) fn is_awaited(&self, utterance: u32) -> bool {
        let open = self.open.iter().map(|open| open.id);
        open.chain(self.closed.iter().map(|closed| closed.id)).any(|id| id == utterance)
    }

    /// The rest of an utterance's text after its wake phrase. One that was heard may be behind other words; if an earlier
    /// text had one, less is enough.
    fn after_wake<'a>(&self, wake: WakeEvidence, text: &'a str) -> Option<&'a str> {
        let anywhere = || self.phrases.find(text).filter(|_| matches!(wake.in_sound, InSound::From(_)));
        let likely = || self.phrases.strip_likely(text).filter(|_| wake.in_text);
        self.phrases.strip(text).or_else(anywhere).or_else(likely)
    }

    /// Whether a voice is heard, or awaits its text, that began within `within_us` after `after_us`, both capture times, and
    /// may have words.
    pub(crate) fn is_going_on(&self, after_us: u64, within_us: u64) -> bool {
        let open = self.open.iter().filter(|open| !open.origin.background);
        let open = open.map(|open| (open.began_us, open.interrupted));
        let mut heard = open.chain(self.closed.iter().map(|closed| (closed.began_us, closed.interrupted)));
        heard.any(|(began_us, interrupted)| {
            interrupted != Interruption::Wordless && began_us > after_us && began_us - after_us <= within_us
        })
    }

    /// The turn begins to wait for what the open utterance says.
    pub(crate) fn note_held(&self, cx: &mut Context, activity: &Activity) {
        self.watch_words(cx, activity);
    }

    /// Whether the next utterance needs no wake word.
    pub(crate) fn is_expecting(&self, now_us: u64) -> bool {
        self.grounds_now(now_us) != Grounds::None
    }

    /// Whether the wearer called and has made no request yet, or is to answer a question that waits for it.
    pub(crate) fn is_called(&self, now_us: u64) -> bool {
        self.grounds_now(now_us) == Grounds::Called || self.has_open_question(now_us)
    }

    /// Opens the ear for a request without a wake word.
    pub(crate) fn open_ear(&mut self, cx: &mut Context) {
        self.ear = Ear::Open { until_us: cx.after_ms(cx.config.ear_open_ms) };
        self.watch_ear(cx);
    }

    /// The wearer has called in an utterance that ended at this capture time. What was said behind it, while it was decoded, is said to
    /// the assistant.
    pub(crate) fn called_until(&mut self, cx: &Context, ended_us: u64) {
        let until_us = ended_us.saturating_add(u64::from(cx.config.ear_open_ms) * 1_000);
        let open = self.open.iter_mut().map(|open| (open.began_us, &mut open.origin));
        let closed = self.closed.iter_mut().map(|closed| (closed.began_us, &mut closed.origin));
        for (began_us, origin) in open.chain(closed) {
            let is_whole = !origin.rest && !origin.background;
            if origin.grounds == Grounds::None && is_whole && began_us > ended_us && began_us <= until_us {
                origin.grounds = Grounds::Called;
            }
        }
    }

    /// The wearer's call is dealt with; a question stays open.
    pub(crate) fn end_call(&mut self, cx: &mut Context) {
        if matches!(self.ear, Ear::Open { .. }) {
            self.ear = Ear::Closed;
            self.watch_ear(cx);
        }
    }

    pub(crate) fn close_ear(&mut self, cx: &mut Context) {
        self.ear = Ear::Closed;
        self.question = None;
        self.asked_again = None;
        self.watch_ear(cx);
    }

    /// Discards all open and pending utterances: the microphone was switched off or the session is over.
    pub(crate) fn discard(&mut self, cx: &mut Context) {
        let newest = self.open.as_ref().map(|open| open.id).or(self.last_closed);
        if let Some(open) = self.open.take() {
            cancel_all(cx, open.id);
            cx.push(Output::CloseUtterance { utterance: open.id });
        }
        while let Some(closed) = self.closed.pop_front() {
            cancel_all(cx, closed.id);
        }
        self.settled_until(cx, newest);
        self.last_closed = None;
        self.passed = None;
        self.last = None;
        self.wordless = None;
        self.talk = Talk::default();
        self.deaf = false;
        self.close_ear(cx);
        for timer in lifecycle::OPEN_TIMERS.into_iter().chain([Timer::TranscriptMissing]) {
            cx.disarm(timer);
        }
    }

    /// Reports which utterances have been dealt with: those before the first one whose words are still awaited.
    pub(crate) fn report_settled(&mut self, cx: &mut Context) {
        let awaited = self.closed.iter().map(|closed| closed.id).min();
        // The first one has the number 1.
        let before = |id: u32| Some(id.saturating_sub(1)).filter(|id| *id > 0);
        self.settled_until(cx, awaited.map_or(self.last_closed, before));
    }

    fn settled_until(&mut self, cx: &mut Context, until: Option<u32>) {
        if let Some(until) = until.filter(|until| self.settled.is_none_or(|settled| settled < *until)) {
            self.settled = Some(until);
            cx.push(Output::UtterancesSettled { until });
        }
    }

    /// The assistant begins to speak. An utterance that was open before the assistant was at work is no answer to it:
    /// from now on it is background. The voice of another one counts from its beginning, unless it has just returned.
    pub(crate) fn speech_began(&mut self, cx: &mut Context, activity: &Activity) {
        let is_deaf = self.deaf;
        if let Some(open) = &mut self.open {
            open.origin.background = !open.origin.during_turn;
            open.origin.over_speech |= open.origin.during_turn;
            open.origin.echo |= !cx.echo_cancelled;
            let is_over_it = open.voiced && !open.origin.background && !open.echo.is_present();
            if is_over_it && !is_deaf && !cx.armed(Timer::VoiceConfirmed) {
                let voiced_us = open.voice_us(cx.now_us());
                barge_in::watch_voice(cx, activity, voiced_us);
            }
            self.watch_words(cx, activity);
        }
    }

    /// The assistant speaks, or does no longer: from then on no more than the rest of its echo is heard.
    pub(crate) fn note_speaking(&mut self, cx: &Context, is_speaking: bool) {
        self.own_voice.note(is_speaking, cx.now_us());
    }

    /// Apps begin or cease to follow speech word by word.
    pub(crate) fn note_followed(&mut self, cx: &mut Context, activity: &Activity, followed: bool) {
        if core::mem::replace(&mut self.followed, followed) != followed {
            self.watch_words(cx, activity);
        }
    }
}

fn cancel_all(cx: &mut Context, utterance: u32) {
    cx.push(Output::CancelTranscribe { utterance, revision: u16::MAX, except: Vec::new() });
}
