//! Which decodes of an utterance are worth what they cost.
//!
//! A decode takes a tenth of a second of processor time and more, whatever it is for, so that one every 300 ms is what
//! recognition mostly does. Partial transcripts are therefore for those who follow them: glasses or apps that show what is being said,
//! and words that may stop the assistant while it speaks. Where a wake word is needed, one early look tells whether it was said;
//! what does not begin with it is not decoded any further.

use super::{Activity, Floor, addressing::Grounds, utterance::Open};
use crate::context::{Context, Timer};

/// Voice before the look for a wake word: long enough for the phrase and a few words behind it.
const LOOK_MS: u32 = 2_000;
/// A caption is renewed each time when the utterance has become longer by a part of itself: a decode costs more, too, the longer it is.
const CAPTION_GROWTH: u64 = 4;
/// The same of a look that told nothing.
const LOOK_GROWTH: u64 = 2;

impl Floor {
    /// Whether somebody sees words while they are said.
    fn is_followed(&self, cx: &Context) -> bool {
        self.followed || cx.captions || (cx.config.display.captions && cx.display.is_some())
    }

    /// Whether nobody has any use for the words of an utterance: it does not begin with a wake phrase and would have to.
    pub(super) fn is_overheard(&self, cx: &Context, activity: &Activity, open: &Open) -> bool {
        open.unaddressed
            && needs_wake_word(cx, open)
            && !(open.woken || open.interrupted || activity.busy || activity.asked || self.is_followed(cx))
    }

    /// Waits for the next partial transcript of the open utterance, where anybody has a use for one.
    pub(super) fn watch_words(&self, cx: &mut Context, activity: &Activity) {
        let delay_ms =
            self.open.as_ref().filter(|open| open.voiced).and_then(|open| self.next_look(cx, activity, open));
        match delay_ms {
            Some(delay_ms) => cx.arm(Timer::PartialDue, delay_ms),
            None => cx.disarm(Timer::PartialDue),
        }
    }

    /// Waits no more, where nobody has a use for another partial transcript.
    pub(super) fn watch_words_less(&self, cx: &mut Context, activity: &Activity) {
        if self.open.as_ref().is_some_and(|open| self.next_look(cx, activity, open).is_none()) {
            cx.disarm(Timer::PartialDue);
        }
    }

    /// Milliseconds to the next partial transcript.
    fn next_look(&self, cx: &Context, activity: &Activity, open: &Open) -> Option<u32> {
        let least_ms = cx.config.partial_interval_ms;
        let so_far_ms = cx.now_us().saturating_sub(open.started_us) / 1_000;
        let grown = |part: u64| u32::try_from(so_far_ms / part).unwrap_or(u32::MAX).max(least_ms);
        if activity.speaking && !open.interrupted {
            // Words may stop the assistant, whatever else was said before them.
            return Some(least_ms);
        }
        if self.is_followed(cx) {
            return Some(grown(CAPTION_GROWTH));
        }
        if open.woken || open.unaddressed || !needs_wake_word(cx, open) {
            return None;
        }
        let until_look_ms = u64::from(LOOK_MS).saturating_sub(so_far_ms);
        Some(if until_look_ms > 0 { u32::try_from(until_look_ms).unwrap_or(LOOK_MS) } else { grown(LOOK_GROWTH) })
    }
}

/// Whether only a wake phrase at its beginning makes something of an utterance.
fn needs_wake_word(cx: &Context, open: &Open) -> bool {
    let origin = open.origin;
    !(cx.config.always_listening
        || origin.grounds != Grounds::None
        || origin.during_turn
        || origin.over_speech
        || origin.echo)
}
