//! Wake phrases that are heard in the sound.
//!
//! Where they are, an utterance that needs a wake phrase is decoded only once one was heard in it: from two seconds before
//! the end of the phrase on, or as a whole if it has just begun. What was heard is no more than a reason to look at the
//! text. The text decides: a phrase that it does not have was not said. The longest length of an utterance counts from there
//! as well, so that a request behind long talk is not cut off.
//!
//! A detection may come late, even when the utterance is over: the last one that was passed over is decoded then. So is one
//! that was decoded only because it may end the translation: its text counts with a phrase at its beginning only.

use super::{
    Activity, Event, Floor, cancel_all, caption,
    decode_policy::{self, ask},
    lifecycle::UTTERANCE_STALLED_MS,
    pace::Pace,
    utterance::{Closed, Open},
    wake_evidence::InSound,
};
use crate::{
    context::Context,
    output::{Output, WakeOutcome},
    timers::Timer,
    vocab::{Addressing, TranscriptKind},
};

/// Sound before the end of a heard phrase that is decoded with it, in microseconds: a phrase, and what is unsure about
/// its end.
const BEFORE_US: u64 = 2_000_000;
/// A partial text with more words than this must have the phrase that was heard.
const DOUBTED_WORDS: usize = 8;

impl Floor {
    /// A wake phrase that ended at this capture time was heard in an utterance.
    pub(super) fn wake_heard(
        &mut self,
        cx: &mut Context,
        activity: &Activity,
        utterance: u32,
        at_us: u64,
    ) -> Option<Event> {
        let from_us = at_us.saturating_sub(BEFORE_US);
        let from = InSound::From(from_us);
        if let Some(mut passed) = self.passed.take_if(|passed| passed.id == utterance) {
            passed.wake.in_sound = from;
            passed.pauses = Pace::default();
            passed.deadline_us = cx.after_ms(cx.config.transcript_ms_max);
            if self.is_awaited(utterance) {
                // Its decode for the end of the translation is of no use now, and this one would wait for it.
                self.closed.retain(|closed| closed.id != utterance);
                cancel_all(cx, utterance);
            }
            ask(cx, (utterance, passed.awaited), TranscriptKind::Final, (Addressing::Addressed, passed.wake));
            return self.keep_closed(cx, activity, passed);
        }
        if let Some(closed) = self.closed.iter_mut().find(|closed| closed.id == utterance) {
            if closed.wake.in_sound == InSound::No {
                closed.wake.in_sound = InSound::AsWell;
            }
            return None;
        }
        let open = self.open.as_ref().filter(|open| open.id == utterance)?;
        let is_overheard = self.is_overheard(cx, activity, open);
        let open = self.open.as_mut()?;
        if !is_overheard {
            // Of several, the first one counts.
            if open.wake.in_sound == InSound::No {
                open.wake.in_sound = InSound::AsWell;
            }
            return None;
        }
        open.wake.in_sound = from;
        open.unaddressed = false;
        // What was said before it is not part of what follows.
        open.pauses = Pace::default();
        open.started_us = open.started_us.max(cx.now_us().saturating_sub(BEFORE_US));
        open.spoken_us = open.spoken_us.max(self.sound_clock.spoken_us(cx.now_us(), from_us));
        if from_us > open.began_us {
            cx.push(Output::MeasureFrom { utterance, from_us });
            if !self.deaf {
                cx.arm(Timer::UtteranceStalled, UTTERANCE_STALLED_MS);
            }
        }
        if open.voiced {
            self.watch_words(cx, activity);
        } else {
            self.speculate(cx);
        }
        None
    }

    /// Notes what the words so far tell about a wake phrase in the open utterance.
    pub(super) fn note_words(&mut self, cx: &mut Context, text: &str) {
        let Some(open) = &self.open else { return };
        let in_text = open.wake.in_text || self.after_wake(open.wake, text).is_some();
        let is_heard = matches!(open.wake.in_sound, InSound::From(_));
        let is_without = match is_heard {
            true => self.phrases.is_without_anywhere(text, DOUBTED_WORDS),
            false => self.phrases.is_without(text),
        };
        let Some(open) = &mut self.open else { return };
        open.wake.in_text = in_text;
        open.unaddressed = !in_text && is_without;
        if open.unaddressed && is_heard {
            open.wake.verify(cx, false);
            open.wake.in_sound = InSound::No;
        }
    }

    /// An utterance that nothing needs is over: if a wake phrase is heard in it now, its words are needed after all. Returns
    /// whether it is not decoded before that; one that may end the translation is.
    pub(super) fn pass_over(&mut self, cx: &mut Context, open: &Open, closed: &Closed) -> bool {
        let is_decoded = decode_policy::may_end_translation(cx, open);
        if !is_decoded {
            cancel_all(cx, open.id);
            caption::last(cx, (open.id, open.captions), false, "");
        }
        if decode_policy::waits_for_sound(cx, open) {
            // The number of the decode that a late detection asks for: the one for the translation has a lower one.
            let awaited = open.revision.saturating_add(if is_decoded { 2 } else { 1 });
            self.passed = Some(Closed { awaited, final_asked: true, ..closed.clone() });
            if !is_decoded {
                cx.push(Output::Wake(WakeOutcome::Unheard));
            }
        }
        !is_decoded
    }
}
