//! Which decodes of an utterance are worth their cost.
//!
//! A decode takes a tenth of a second of processor time or more, so one every 300 ms would be most of the recogniser's
//! work. Partial transcripts are therefore made only if something follows them: glasses or apps that show captions, and
//! words that may stop the assistant while it speaks, or that its turn waits for. If a wake word is needed, one early partial shows whether it was
//! spoken; an utterance that does not begin with it is not decoded further. Where wake words are heard in the sound, an
//! utterance that needs one is not decoded at all before it was heard (see `acoustic`).

use super::{
    Activity, Floor,
    named::InSound,
    origin::Grounds,
    utterance::{Interruption, Open},
};
use crate::{context::Context, timers::Timer};

/// Voice before the partial for a wake word: long enough for the phrase and a few words after it.
const LOOK_MS: u32 = 2_000;
/// A wake-word partial without a result is repeated when the utterance has grown by this fraction of its length: the cost
/// of a decode grows with the length, too.
const LOOK_GROWTH: u64 = 2;
/// Time from one caption to the next, as a multiple of what the last one took: half of a recognition thread at most, as long
/// as there is one that is free.
const CAPTION_PART: u64 = 2;

impl Floor {
    /// Whether words are shown while they are spoken.
    fn is_followed(&self, cx: &Context) -> bool {
        self.followed || cx.captions || (cx.config.display.captions && cx.display.is_some())
    }

    /// Whether nothing needs the words of an utterance: it lacks the wake phrase that it would need.
    pub(super) fn is_overheard(&self, cx: &Context, activity: &Activity, open: &Open) -> bool {
        lacks_wake_word(cx, open)
            && needs_wake_word(cx, open)
            && !(open.named.in_text
                || open.is_interrupting()
                || activity.busy
                || activity.asked
                || self.is_followed(cx))
    }

    /// Arms the timer for the next partial transcript of the open utterance, if anything needs one.
    pub(super) fn watch_words(&self, cx: &mut Context, activity: &Activity) {
        let delay_ms =
            self.open.as_ref().filter(|open| open.voiced).and_then(|open| self.next_look(cx, activity, open));
        match delay_ms {
            Some(delay_ms) => cx.arm(Timer::PartialDue, delay_ms),
            None => cx.disarm(Timer::PartialDue),
        }
    }

    /// Disarms it if nothing needs another partial transcript.
    pub(super) fn watch_words_less(&self, cx: &mut Context, activity: &Activity) {
        if self.open.as_ref().is_some_and(|open| self.next_look(cx, activity, open).is_none()) {
            cx.disarm(Timer::PartialDue);
        }
    }

    /// Milliseconds to the next partial transcript.
    fn next_look(&self, cx: &Context, activity: &Activity, open: &Open) -> Option<u32> {
        let least_ms = cx.config.partial_interval_ms;
        let so_far_ms = cx.now_us().saturating_sub(open.started_us) / 1_000;
        let at_least = |ms: u64| u32::try_from(ms).unwrap_or(u32::MAX).max(least_ms);
        if activity.speaking && open.interrupted < Interruption::Words {
            // Words may stop the assistant, whatever was spoken before them.
            return Some(least_ms);
        }
        if activity.held && open.interrupted == Interruption::None && open.captions == 0 {
            // Nothing is done of the request before it is known whether these are words.
            return Some(least_ms);
        }
        if self.is_followed(cx) {
            return Some(at_least(open.partial_us / 1_000 * CAPTION_PART));
        }
        if open.named.in_text || !needs_wake_word(cx, open) || lacks_wake_word(cx, open) {
            return None;
        }
        let until_look_ms = u64::from(LOOK_MS).saturating_sub(so_far_ms);
        Some(if until_look_ms > 0 {
            u32::try_from(until_look_ms).unwrap_or(LOOK_MS)
        } else {
            at_least(so_far_ms / LOOK_GROWTH)
        })
    }
}

/// Whether an utterance that is over is translated: talk, as far as is known, without the assistant's own voice in it.
pub(super) fn is_translated(cx: &Context, open: &Open) -> bool {
    let is_expected = matches!(open.origin.grounds, Grounds::Called | Grounds::Asked);
    cx.translating && !is_expected && !open.origin.echo && !open.named.is_likely()
}

/// Whether an utterance is not decoded before a wake phrase was heard in it.
pub(super) fn waits_for_sound(cx: &Context, open: &Open) -> bool {
    cx.config.acoustic_wake && open.named.in_sound == InSound::No && !open.unaddressed
}

/// Whether an utterance has no wake phrase, as far as is known.
fn lacks_wake_word(cx: &Context, open: &Open) -> bool {
    open.unaddressed || waits_for_sound(cx, open)
}

/// Whether an utterance counts only with a wake phrase.
fn needs_wake_word(cx: &Context, open: &Open) -> bool {
    let origin = open.origin;
    !(cx.config.always_listening
        || origin.grounds != Grounds::None
        || origin.during_turn
        || origin.over_speech
        || origin.echo)
}
