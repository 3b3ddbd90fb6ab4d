//! Second pass: if the text of a short request is no clear command, its audio is decoded once more, biased towards the
//! vocabulary of the tools. The second text counts if it is a complete command.
//!
//! A command with free text ("take a note: …") is also decoded twice if there is a second model. Only the recogniser's
//! confidence tells which of two free texts is right, so the second counts only if its confidence is clearly higher.
//!
//! While the assistant speaks, or is interrupted by it, a second text that tells it to stop counts as well: "Stop." alone is often
//! misheard. With a conversational model, which understands what is misheard, nothing else counts: only a few words over the
//! assistant's have a second pass. An "okay" over it has none.
//!
//! Third pass: if the second model leaves the request unclear, the first model decodes it with the same bias: it is
//! better at short commands.
//!
//! If it is in doubt whether the words are meant for the assistant at all, the same command match decides: words that
//! are not part of a command are talk, and have no second pass.
//!
//! A pass begins while the pause is still being judged, so that it often adds no latency. A text that is clear at first
//! never waits for a pass, and new speech ends the pass: then the first text counts. What begins a command is decoded again
//! only once the utterance has ended: a decode that is biased towards commands would make a whole one of it, and that ends the
//! pause in which the rest may come.

use alloc::string::String;

use super::{
    Activity, Event, Floor, cancel_all, commands,
    confidence::Confidence,
    origin::{Grounds, Origin},
    wake_evidence::WakeEvidence,
};
use crate::{
    config::Config,
    context::Context,
    output::Output,
    vocab::{Addressing, CommandMatch, Transcript, TranscriptKind},
};

/// Most words of a request that has a second pass: a longer one is no command.
const WORDS_MAX: usize = 20;
/// Most words of what may be a misheard stop.
const STOP_WORDS_MAX: usize = 3;
/// Greatest length of an utterance that has a second pass: a longer decode exceeds what a turn may wait.
const LENGTH_US_MAX: u64 = 9_000_000;
/// The second text's doubt may be at most this part of the first's for its free text to count.
const DOUBT_LEFT_MAX: f32 = 0.9;

/// State of the second pass of one utterance.
#[derive(Clone, Debug)]
pub(super) struct SecondPass {
    /// Revision of the awaited command match or decode.
    pub(super) awaited: u16,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    /// The first text is being matched against commands.
    MatchingFirst {
        /// Confidence of the first text, 0 to 1.
        confidence: f32,
        /// What a second pass may find, if one may follow.
        sought: Option<Sought>,
        /// Whether it may be meant for someone else.
        doubtful: bool,
    },
    /// The audio is to be decoded again, at the latest when the utterance has ended; the fields are those of `Decoding`.
    Due { confidence_min: f32, acceptance: Acceptance },
    /// The audio is being decoded again.
    Decoding {
        /// A text with lower confidence is rejected.
        confidence_min: f32,
        acceptance: Acceptance,
    },
    /// The second text is being matched against commands.
    MatchingSecond { text: String, acceptance: Acceptance },
}

/// When a second text counts, and what follows if it does not.
#[derive(Clone, Copy, Debug)]
struct Acceptance {
    sought: Sought,
    /// If it is rejected, the first model decodes the audio.
    third_pass: bool,
}

/// What a second text must be to count. While the assistant speaks, or is interrupted, it may be a stop instead of a command.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sought {
    Command,
    /// The first text is a command with free text: the second must be one, too, and no stop.
    FreeText,
    Stop,
}

/// The first text of an utterance, with its context.
pub(super) struct FirstText<'a> {
    pub(super) utterance: u32,
    pub(super) revision: u16,
    pub(super) text: &'a str,
    /// 0 to 1.
    pub(super) confidence: f32,
    pub(super) origin: Origin,
    pub(super) wake: WakeEvidence,
    /// When the utterance began, monotonic.
    pub(super) started_us: u64,
    /// Whether a better text is worth waiting for: no newer speech is.
    pub(super) may_repeat: bool,
}

/// A pass whose answer arrived, and its utterance.
struct Taken {
    pass: SecondPass,
    origin: Origin,
    wake: WakeEvidence,
    started_us: u64,
    /// Whether it interrupts the assistant, as far as is known.
    interrupts: bool,
}

/// The next step for an utterance in its second pass.
enum Next {
    /// Wait for another answer.
    Wait(SecondPass),
    /// This text counts; `None`: the first one.
    Accept(Option<String>),
}

impl Sought {
    /// What is looked for behind a first text that matches so.
    fn behind(self, matched: CommandMatch) -> Option<Self> {
        match (self, matched) {
            (Self::Command, CommandMatch::FreeText) => Some(Self::FreeText),
            // What is a command is none that was misheard.
            (Self::Stop, CommandMatch::FreeText) => None,
            (sought, _) => Some(sought),
        }
    }
}

impl SecondPass {
    /// Requests the second decode if it is due.
    pub(super) fn decode_if_due(&mut self, cx: &mut Context, utterance: u32, wake: WakeEvidence) {
        if let Stage::Due { confidence_min, acceptance } = self.stage {
            self.awaited = self.awaited.saturating_add(1);
            decode(cx, (utterance, self.awaited), TranscriptKind::SecondPass, wake);
            self.stage = Stage::Decoding { confidence_min, acceptance };
        }
    }
}

impl Floor {
    /// Has a first text matched against commands if a second pass may follow or its addressee is in doubt.
    pub(super) fn begin_second_pass(
        &self,
        cx: &mut Context,
        activity: &Activity,
        first: &FirstText<'_>,
    ) -> Option<SecondPass> {
        let FirstText { utterance, confidence, origin, wake, started_us, .. } = *first;
        if activity.asked || origin.echo || origin.background {
            return None;
        }
        let grounds = self.grounds(cx, activity, origin);
        let request = self.request_in(grounds, wake, first.text)?;
        let pending = self.pending(cx, started_us);
        let is_named = self.after_wake(wake, first.text).is_some();
        let doubtful = !is_named && grounds.is_doubtful(cx, pending.as_ref());
        let words = request.split_whitespace().count();
        let short = cx.now_us().saturating_sub(started_us) <= LENGTH_US_MAX
            && words <= WORDS_MAX
            && commands::yes_or_no(request).is_none();
        let listens = origin.over_speech && commands::is_backchannel(first.text);
        let sought = match cx.config.conversational {
            false => Some(Sought::Command),
            true => (origin.over_speech && words <= STOP_WORDS_MAX).then_some(Sought::Stop),
        };
        let sought = sought.filter(|_| short && !listens && first.may_repeat);
        // Whether something can be added to a short request tells where it ends.
        if !short && !doubtful {
            return None;
        }
        let awaited = first.revision.saturating_add(1);
        let text = String::from(request);
        cx.push(Output::MatchCommand { utterance, revision: awaited, text, pending });
        Some(SecondPass { awaited, stage: Stage::MatchingFirst { confidence, sought, doubtful } })
    }

    /// The part of a text that may be a request to a tool or a model.
    fn request_in<'a>(&self, grounds: Grounds, wake: WakeEvidence, text: &'a str) -> Option<&'a str> {
        let request = self.after_wake(wake, text).or((grounds != Grounds::None).then_some(text))?;
        (commands::has_words(request) && commands::command(request).is_none()).then_some(request)
    }

    /// Handles the result of a command match.
    pub(crate) fn handle_command_matched(
        &mut self,
        cx: &mut Context,
        activity: &Activity,
        (utterance, revision): (u32, u16),
        matched: CommandMatch,
    ) -> Option<Event> {
        let Taken { pass, wake, .. } = self.take_pass(utterance, revision)?;
        let next = match pass.stage {
            Stage::MatchingFirst { confidence, sought, doubtful } => {
                self.note_matched(utterance, matched);
                let is_talk = doubtful && matched == CommandMatch::None;
                let sought = sought.filter(|_| !is_talk).and_then(|sought| sought.behind(matched));
                match sought.zip(confidence_needed(matched, confidence, &cx.config)) {
                    Some((sought, confidence_min)) => {
                        let third_pass = cx.config.second_model && sought != Sought::FreeText;
                        let acceptance = Acceptance { sought, third_pass };
                        let mut pass = SecondPass { stage: Stage::Due { confidence_min, acceptance }, ..pass };
                        let is_open = self.open.as_ref().is_some_and(|open| open.id == utterance);
                        if matched != CommandMatch::Beginning || !is_open {
                            pass.decode_if_due(cx, utterance, wake);
                        }
                        Next::Wait(pass)
                    }
                    None => Next::Accept(None),
                }
            }
            // The second decode was biased towards commands: a match that needs phonetic correction as well does not
            // count.
            Stage::MatchingSecond { text, acceptance } => {
                let accepted = match matched {
                    CommandMatch::FreeText => true,
                    CommandMatch::Exact | CommandMatch::Closed => acceptance.sought == Sought::Command,
                    CommandMatch::None
                    | CommandMatch::Beginning
                    | CommandMatch::Misheard
                    | CommandMatch::Incomplete => false,
                };
                if accepted {
                    self.note_matched(utterance, matched);
                    Next::Accept(Some(text))
                } else {
                    reject(cx, (utterance, pass.awaited), wake, acceptance)
                }
            }
            Stage::Due { .. } | Stage::Decoding { .. } => Next::Wait(pass),
        };
        self.follow(cx, activity, utterance, next)
    }

    /// Handles the transcript of a second pass.
    pub(super) fn handle_second_text(
        &mut self,
        cx: &mut Context,
        activity: &Activity,
        transcript: &Transcript,
        text: String,
    ) -> Option<Event> {
        let utterance = transcript.utterance;
        let Taken { pass, origin, wake, started_us, interrupts } = self.take_pass(utterance, transcript.revision)?;
        let Stage::Decoding { confidence_min, acceptance } = pass.stage else {
            return self.follow(cx, activity, utterance, Next::Wait(pass));
        };
        let stops = commands::is_cancel(self.after_wake(wake, &text).unwrap_or(&text));
        if stops && (interrupts || activity.speaking) && acceptance.sought != Sought::FreeText {
            return self.follow(cx, activity, utterance, Next::Accept(Some(text)));
        }
        let counts = acceptance.sought != Sought::Stop && transcript.confidence >= confidence_min;
        let grounds = self.grounds(cx, activity, origin);
        let next = match self.request_in(grounds, wake, &text).filter(|_| counts).map(String::from) {
            Some(request) => {
                let awaited = pass.awaited.saturating_add(1);
                let pending = self.pending(cx, started_us);
                cx.push(Output::MatchCommand { utterance, revision: awaited, text: request, pending });
                Next::Wait(SecondPass { awaited, stage: Stage::MatchingSecond { text, acceptance } })
            }
            None => reject(cx, (utterance, pass.awaited), wake, acceptance),
        };
        self.follow(cx, activity, utterance, next)
    }

    /// Handles a failed decode; returns `None` if it was not a second pass.
    pub(super) fn handle_second_pass_failed(
        &mut self,
        cx: &mut Context,
        activity: &Activity,
        (utterance, revision): (u32, u16),
    ) -> Option<Event> {
        let Taken { pass, wake, .. } = self.take_pass(utterance, revision)?;
        let next = match pass.stage {
            Stage::Decoding { acceptance, .. } => reject(cx, (utterance, pass.awaited), wake, acceptance),
            Stage::MatchingFirst { .. } | Stage::Due { .. } | Stage::MatchingSecond { .. } => Next::Wait(pass),
        };
        self.follow(cx, activity, utterance, next)
    }

    /// New speech: an utterance in its second pass proceeds with its first text.
    pub(super) fn accept_first(&mut self, cx: &mut Context, activity: &Activity) -> Option<Event> {
        let index = self.closed.iter().position(|closed| closed.second_pass.is_some())?;
        let mut closed = self.closed.remove(index)?;
        cancel_all(cx, closed.id);
        closed.second_pass = None;
        let text = core::mem::take(&mut closed.text);
        self.watch_transcripts(cx);
        Some(self.said(cx, activity, closed, text))
    }

    fn take_pass(&mut self, utterance: u32, revision: u16) -> Option<Taken> {
        let awaited = |pass: &mut SecondPass| pass.awaited == revision;
        if let Some(closed) = self.closed.iter_mut().find(|closed| closed.id == utterance) {
            let pass = closed.second_pass.take_if(awaited)?;
            let (origin, wake, started_us) = (closed.origin, closed.wake, closed.started_us);
            return Some(Taken { pass, origin, wake, started_us, interrupts: closed.is_interrupting() });
        }
        let open = self.open.as_mut().filter(|open| open.id == utterance)?;
        let pass = open.speculative.as_mut()?.second_pass.take_if(awaited)?;
        let (origin, wake, started_us) = (open.origin, open.wake, open.started_us);
        Some(Taken { pass, origin, wake, started_us, interrupts: open.is_interrupting() })
    }

    /// How well the text of an utterance matches a command, as far as is known.
    fn note_matched(&mut self, utterance: u32, matched: CommandMatch) {
        if let Some(closed) = self.closed.iter_mut().find(|closed| closed.id == utterance) {
            closed.matched = Some(matched);
        } else if let Some(open) = self.open.as_mut().filter(|open| open.id == utterance)
            && let Some(speculative) = &mut open.speculative
        {
            speculative.matched = Some(matched);
        }
    }

    fn follow(&mut self, cx: &mut Context, activity: &Activity, utterance: u32, next: Next) -> Option<Event> {
        if let Some(index) = self.closed.iter().position(|closed| closed.id == utterance) {
            match next {
                Next::Wait(pass) => self.closed.get_mut(index)?.second_pass = Some(pass),
                Next::Accept(better) => {
                    let mut closed = self.closed.remove(index)?;
                    self.watch_transcripts(cx);
                    let first = core::mem::take(&mut closed.text);
                    closed.doubtful &= better.is_none();
                    return Some(self.said(cx, activity, closed, better.unwrap_or(first)));
                }
            }
            return None;
        }
        let open = self.open.as_mut().filter(|open| open.id == utterance)?;
        let speculative = open.speculative.as_mut()?;
        match next {
            Next::Wait(pass) => {
                open.revision = open.revision.max(pass.awaited);
                speculative.second_pass = Some(pass);
            }
            Next::Accept(Some(better)) => {
                speculative.text = Some(better);
                speculative.confidence = Confidence::default();
            }
            Next::Accept(None) => {}
        }
        // What is known now may be enough for the pause so far.
        self.decide(cx, activity)
    }
}

/// Requests another decode of the audio. The first text contains a request, or may, so that it is addressed.
fn decode(cx: &mut Context, (utterance, revision): (u32, u16), kind: TranscriptKind, wake: WakeEvidence) {
    let (meant, from_us) = (Addressing::Addressed, wake.decoded_from_us());
    cx.push(Output::Transcribe { utterance, revision, kind, meant, from_us });
}

/// Rejects a second text: the first model decodes the audio, unless it already did; then the first text counts.
fn reject(cx: &mut Context, (utterance, awaited): (u32, u16), wake: WakeEvidence, acceptance: Acceptance) -> Next {
    if !acceptance.third_pass {
        return Next::Accept(None);
    }
    let awaited = awaited.saturating_add(1);
    decode(cx, (utterance, awaited), TranscriptKind::ThirdPass, wake);
    let acceptance = Acceptance { third_pass: false, ..acceptance };
    Next::Wait(SecondPass { awaited, stage: Stage::Decoding { confidence_min: 0.0, acceptance } })
}

/// Minimum confidence of a second text, 0 to 1; `None` if the first has no second pass.
fn confidence_needed(matched: CommandMatch, confidence: f32, config: &Config) -> Option<f32> {
    match matched {
        CommandMatch::None | CommandMatch::Beginning | CommandMatch::Misheard | CommandMatch::Incomplete => Some(0.0),
        CommandMatch::FreeText => config.second_model.then_some(1.0 - DOUBT_LEFT_MAX * (1.0 - confidence)),
        CommandMatch::Exact | CommandMatch::Closed => None,
    }
}
