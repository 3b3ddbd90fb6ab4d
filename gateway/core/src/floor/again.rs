//! A second hearing: where the text of a short request makes no clear command, the sound is decoded once
//! more with the words of the tools in mind. Where that text is a command as it stands, it counts.
//!
//! A command that holds free text ("take a note: …") is heard twice as well where larger weights do it. Nothing
//! tells such a text right or wrong but how sure recognition is of it, so that the second counts where there is
//! less doubt about it than about the first.
//!
//! What larger weights leave unclear the usual ones hear again, too: they are better at what is short.
//!
//! Where it is in doubt whether words are meant for the assistant at all, the same question tells; what is no part of a
//! command is talk then, and not heard again.
//!
//! It begins while the pause is still being judged, so that it often costs the wearer nothing. A text that is
//! clear at first never waits for it, and new speech ends it: then the first text counts.

use alloc::string::String;

use super::{
    Activity, Event, Floor,
    addressing::{self, Grounds},
    cancel_all, commands,
    utterance::Origin,
};
use crate::{
    config::Config,
    context::Context,
    output::Output,
    vocab::{Clarity, Meant, Transcript, TranscriptKind},
};

/// Most words of a request that is heard again: a longer one is no command.
const WORDS_MAX: usize = 20;
/// Greatest length of an utterance that is heard again: beyond, a decode costs more than a turn may wait.
const LENGTH_US_MAX: u64 = 9_000_000;
/// Part of the first text's doubt that is left of the second's at most, so that its free text counts.
const DOUBT_LEFT_MAX: f32 = 0.9;

/// Where the second hearing of a text stands.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// Number of the question that is open, of either kind.
    pub(super) awaited: u16,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    /// Whether the first text is a command is asked.
    First {
        /// How sure recognition is of it, 0 to 1.
        confidence: f32,
        /// Whether it may be heard again.
        again: bool,
        /// Whether it may be meant for somebody else.
        doubtful: bool,
    },
    /// The sound is being decoded again; a text that is less sure than `confidence_min` does not count.
    Decoding { confidence_min: f32, rest: Rest },
    /// Whether this other text is a command is asked.
    Second { text: String, rest: Rest },
}

/// What is left to do where another text does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// The usual weights have a try.
    Usual,
    /// Nothing.
    Nothing,
    /// Nothing either; and since the first text is a command with free text, the other one has to be one, too.
    NothingButFree,
}

/// A look that was awaited, and the utterance that it is about.
struct Taken {
    look: Look,
    origin: Origin,
    started_us: u64,
}

/// What follows for a text that is looked at.
enum Next {
    /// Wait for the answer to another question.
    Wait(Look),
    /// This text counts; `None`: the first one.
    Settle(Option<String>),
}

impl Floor {
    /// Begins to weigh a text, where that is worth it.
    pub(super) fn weigh(
        &self,
        cx: &mut Context,
        activity: &Activity,
        (utterance, revision): (u32, u16),
        (text, confidence): (&str, f32),
        (origin, began_us): (Origin, u64),
    ) -> Option<Look> {
        if activity.asked || origin.echo || origin.background {
            return None;
        }
        let grounds = self.grounds(cx, activity, origin);
        let request = self.request_in(grounds, text)?;
        let pending = self.pending(cx, began_us);
        let named = self.phrases.strip(text).is_some();
        let doubtful = !named && addressing::is_doubtful(cx, grounds, pending.as_ref());
        let short = cx.now_us().saturating_sub(began_us) <= LENGTH_US_MAX
            && request.split_whitespace().count() <= WORDS_MAX
            && commands::yes_or_no(request).is_none();
        let again = short && !cx.config.conversational;
        if !again && !doubtful {
            return None;
        }
        let look = Look { awaited: revision.saturating_add(1), stage: Stage::First { confidence, again, doubtful } };
        let text = String::from(request);
        cx.push(Output::Consider { utterance, revision: look.awaited, text, pending });
        Some(look)
    }

    /// The part of a text that may be a request to a tool or a model.
    fn request_in<'a>(&self, grounds: Grounds, text: &'a str) -> Option<&'a str> {
        let request = self.phrases.strip(text).or((grounds != Grounds::None).then_some(text))?;
        (commands::has_words(request) && commands::command(request).is_none()).then_some(request)
    }

    /// The shell knows how clear a text is.
    pub(crate) fn handle_considered(
        &mut self,
        cx: &mut Context,
        activity: &Activity,
        (utterance, revision): (u32, u16),
        clarity: Clarity,
    ) -> Option<Event> {
        let Taken { look, .. } = self.take_look(utterance, revision)?;
        let next = match look.stage {
            Stage::First { confidence, again, doubtful } => {
                self.note_clarity(utterance, clarity);
                let hopeless = doubtful && clarity == Clarity::Unclear;
                match worth_it(clarity, confidence, &cx.config).filter(|_| again && !hopeless) {
                    Some(confidence_min) => {
                        let rest = match clarity {
                            Clarity::Free => Rest::NothingButFree,
                            _ if cx.config.larger_weights => Rest::Usual,
                            _ => Rest::Nothing,
                        };
                        let awaited = look.awaited.saturating_add(1);
                        hear_again(cx, utterance, awaited, TranscriptKind::Again);
                        Next::Wait(Look { awaited, stage: Stage::Decoding { confidence_min, rest } })
                    }
                    None => Next::Settle(None),
                }
            }
            // Recognition leaned towards commands, so that nothing is put right in what came of it.
            Stage::Second { text, rest } => match (clarity, rest) {
                (Clarity::Free, _) | (Clarity::Clear, Rest::Usual | Rest::Nothing) => {
                    self.note_clarity(utterance, clarity);
                    Next::Settle(Some(text))
                }
                _ => give_up(cx, utterance, look.awaited, rest),
            },
            Stage::Decoding { .. } => Next::Wait(look),
        };
        self.follow(cx, activity, utterance, next)
    }

    /// The sound was decoded again.
    pub(super) fn heard_again(
        &mut self,
        cx: &mut Context,
        activity: &Activity,
        transcript: &Transcript,
        text: String,
    ) -> Option<Event> {
        let utterance = transcript.utterance;
        let Taken { look, origin, started_us } = self.take_look(utterance, transcript.revision)?;
        let Stage::Decoding { confidence_min, rest } = look.stage else {
            return self.follow(cx, activity, utterance, Next::Wait(look));
        };
        let sure = transcript.confidence >= confidence_min;
        let grounds = self.grounds(cx, activity, origin);
        let next = match self.request_in(grounds, &text).filter(|_| sure).map(String::from) {
            Some(request) => {
                let awaited = look.awaited.saturating_add(1);
                let pending = self.pending(cx, started_us);
                cx.push(Output::Consider { utterance, revision: awaited, text: request, pending });
                Next::Wait(Look { awaited, stage: Stage::Second { text, rest } })
            }
            None => give_up(cx, utterance, look.awaited, rest),
        };
        self.follow(cx, activity, utterance, next)
    }

    /// A decode failed: whether it was a second one, and what follows then.
    pub(super) fn again_failed(
        &mut self,
        cx: &mut Context,
        activity: &Activity,
        (utterance, revision): (u32, u16),
    ) -> Option<Event> {
        let Taken { look, .. } = self.take_look(utterance, revision)?;
        let next = match look.stage {
            Stage::Decoding { rest, .. } => give_up(cx, utterance, look.awaited, rest),
            Stage::First { .. } | Stage::Second { .. } => Next::Wait(look),
        };
        self.follow(cx, activity, utterance, next)
    }

    /// New speech: what waits for a second hearing goes on with its first text.
    pub(super) fn settle_first(&mut self, cx: &mut Context, activity: &Activity) -> Option<Event> {
        let index = self.closed.iter().position(|closed| closed.look.is_some())?;
        let mut closed = self.closed.remove(index)?;
        cancel_all(cx, closed.id);
        closed.look = None;
        let text = core::mem::take(&mut closed.text);
        self.watch_transcripts(cx);
        Some(self.said(cx, activity, closed, text))
    }

    fn take_look(&mut self, utterance: u32, revision: u16) -> Option<Taken> {
        let awaited = |look: &mut Look| look.awaited == revision;
        if let Some(closed) = self.closed.iter_mut().find(|closed| closed.id == utterance) {
            let look = closed.look.take_if(awaited)?;
            return Some(Taken { look, origin: closed.origin, started_us: closed.started_us });
        }
        let open = self.open.as_mut().filter(|open| open.id == utterance)?;
        let look = open.speculative.as_mut()?.look.take_if(awaited)?;
        Some(Taken { look, origin: open.origin, started_us: open.started_us })
    }

    /// How well the text of an utterance is understood, as far as is known.
    fn note_clarity(&mut self, utterance: u32, clarity: Clarity) {
        if let Some(closed) = self.closed.iter_mut().find(|closed| closed.id == utterance) {
            closed.clarity = Some(clarity);
        } else if let Some(open) = self.open.as_mut().filter(|open| open.id == utterance)
            && let Some(speculative) = &mut open.speculative
        {
            speculative.clarity = Some(clarity);
        }
    }

    fn follow(&mut self, cx: &mut Context, activity: &Activity, utterance: u32, next: Next) -> Option<Event> {
        if let Some(index) = self.closed.iter().position(|closed| closed.id == utterance) {
            match next {
                Next::Wait(look) => self.closed.get_mut(index)?.look = Some(look),
                Next::Settle(better) => {
                    let mut closed = self.closed.remove(index)?;
                    self.watch_transcripts(cx);
                    let first = core::mem::take(&mut closed.text);
                    return Some(self.said(cx, activity, closed, better.unwrap_or(first)));
                }
            }
            return None;
        }
        let open = self.open.as_mut().filter(|open| open.id == utterance)?;
        let speculative = open.speculative.as_mut()?;
        match next {
            Next::Wait(look) => {
                open.revision = open.revision.max(look.awaited);
                speculative.look = Some(look);
            }
            Next::Settle(Some(better)) => speculative.text = Some(better),
            Next::Settle(None) => {}
        }
        None
    }
}

/// The first text holds a request, or what may be one.
fn hear_again(cx: &mut Context, utterance: u32, revision: u16, kind: TranscriptKind) {
    cx.push(Output::Transcribe { utterance, revision, kind, meant: Meant::Addressed });
}

/// A text of a second hearing does not count: the usual weights have a try, unless they had.
fn give_up(cx: &mut Context, utterance: u32, awaited: u16, rest: Rest) -> Next {
    if rest != Rest::Usual {
        return Next::Settle(None);
    }
    let awaited = awaited.saturating_add(1);
    hear_again(cx, utterance, awaited, TranscriptKind::AgainUsual);
    Next::Wait(Look { awaited, stage: Stage::Decoding { confidence_min: 0.0, rest: Rest::Nothing } })
}

/// How sure a second text has to be, 0 to 1; `None` where the first is not heard again.
fn worth_it(clarity: Clarity, confidence: f32, config: &Config) -> Option<f32> {
    match clarity {
        Clarity::Unclear | Clarity::Guessed | Clarity::Partial => Some(0.0),
        Clarity::Free => config.larger_weights.then_some(1.0 - DOUBT_LEFT_MAX * (1.0 - confidence)),
        Clarity::Clear => None,
    }
}
