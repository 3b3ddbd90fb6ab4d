//! The decode policy: which decodes of an utterance are worth their cost.
//!
//! A decode takes a tenth of a second of processor time or more, so partial transcripts would be most of the recogniser's
//! work. They are therefore made only if something follows them: glasses or apps that show captions (see
//! `partials`), and words that may stop the assistant while it speaks, or that its turn waits for. If a wake word is needed, one early partial shows whether it was
//! spoken; an utterance that does not begin with it is not decoded further. Where wake words are heard in the sound, an
//! utterance that needs one is not decoded at all before it was heard (see `acoustic`). While talk is translated, a short
//! utterance is decoded when it is over all the same: "stop translating" needs no wake phrase.

use super::{
    Activity, Floor,
    origin::Grounds,
    utterance::{Interruption, Open},
    wake_evidence::{InSound, WakeEvidence},
};
use crate::{
    context::Context,
    output::Output,
    timers::Timer,
    vocab::{Addressing, TranscriptKind},
};

/// Voice before the partial for a wake word: long enough for the phrase and a few words after it.
const LOOK_MS: u32 = 2_000;
/// A wake-word partial without a result is repeated when the utterance has grown by this fraction of its length: the cost
/// of a decode grows with the length, too.
const LOOK_GROWTH: u64 = 2;
/// Least time between two partials that nobody follows.
const LOOK_INTERVAL_MS: u32 = 300;
/// Longest voice that may be the end of the translation: one sentence of a few words, spoken slowly.
const END_OF_TRANSLATION_US_MAX: u64 = 4_000_000;

impl Floor {
    /// Whether words are shown while they are spoken.
    pub(super) fn is_followed(&self, cx: &Context) -> bool {
        self.followed || cx.captions || (cx.config.display.captions && cx.display.is_some())
    }

    /// Whether nothing needs the words of an utterance: it lacks the wake phrase that it would need.
    pub(super) fn is_overheard(&self, cx: &Context, activity: &Activity, open: &Open) -> bool {
        lacks_wake_word(cx, open)
            && needs_wake_word(cx, open)
            && !(open.wake.in_text || open.is_interrupting() || activity.busy || activity.asked || self.is_followed(cx))
    }

    /// Arms the timer for the next partial transcript of the open utterance, if anything needs one.
    pub(super) fn watch_words(&self, cx: &mut Context, activity: &Activity) {
        let open = self.open.as_ref().filter(|open| open.voiced);
        match open.and_then(|open| self.next_look(cx, activity, open)) {
            Some(at_us) => cx.arm_at(Timer::PartialDue, at_us),
            None => cx.disarm(Timer::PartialDue),
        }
    }

    /// Disarms it if nothing needs another partial transcript.
    pub(super) fn watch_words_less(&self, cx: &mut Context, activity: &Activity) {
        if self.open.as_ref().is_some_and(|open| self.next_look(cx, activity, open).is_none()) {
            cx.disarm(Timer::PartialDue);
        }
    }

    /// When the next partial transcript is due, monotonic.
    fn next_look(&self, cx: &Context, activity: &Activity, open: &Open) -> Option<u64> {
        let interval_ms = cx.config.partial_interval_ms;
        let least_ms = interval_ms.max(LOOK_INTERVAL_MS);
        let words_us = are_words_awaited(activity, open).then(|| cx.after_ms(least_ms));
        if self.is_followed(cx) {
            let caption_us = open.partials.due_us(interval_ms).max(cx.now_us());
            return Some(words_us.map_or(caption_us, |words_us| words_us.min(caption_us)));
        }
        if words_us.is_some() || open.wake.in_text || !needs_wake_word(cx, open) || lacks_wake_word(cx, open) {
            return words_us;
        }
        let so_far_ms = cx.now_us().saturating_sub(open.started_us) / 1_000;
        let until_look_ms = u64::from(LOOK_MS).saturating_sub(so_far_ms);
        Some(if until_look_ms > 0 {
            cx.after_ms(u32::try_from(until_look_ms).unwrap_or(LOOK_MS))
        } else {
            cx.after_ms(u32::try_from(so_far_ms / LOOK_GROWTH).unwrap_or(u32::MAX).max(least_ms))
        })
    }
}

/// Whether the words of the open utterance are awaited while it goes on: they may stop the assistant, whatever was spoken before
/// them; and nothing is done of a request before it is known whether what is said behind it are words.
pub(super) fn are_words_awaited(activity: &Activity, open: &Open) -> bool {
    let may_stop = activity.speaking && open.interrupted < Interruption::Words;
    let is_waited_for = activity.held && open.interrupted == Interruption::None && open.captions == 0;
    may_stop || is_waited_for
}

/// Whether an utterance that is over is translated: talk, as far as is known, and not the assistant's own voice alone.
pub(super) fn is_translated(cx: &Context, open: &Open) -> bool {
    let is_expected = matches!(open.origin.grounds, Grounds::Called | Grounds::Asked);
    let is_own = open.origin.echo && !open.has_others;
    cx.translating && !is_expected && !is_own && !open.wake.is_likely()
}

/// Whether an utterance that is over may be the end of the translation, as far as its length tells.
pub(super) fn may_end_translation(cx: &Context, open: &Open) -> bool {
    cx.translating && open.last_voice_us.saturating_sub(open.began_us) <= END_OF_TRANSLATION_US_MAX
}

/// Whether an utterance is not decoded before a wake phrase was heard in it.
pub(super) fn waits_for_sound(cx: &Context, open: &Open) -> bool {
    cx.config.acoustic_wake && open.wake.in_sound == InSound::No && !open.unaddressed
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

/// Requests a decode of the utterance so far.
pub(super) fn ask(
    cx: &mut Context,
    (utterance, revision): (u32, u16),
    kind: TranscriptKind,
    (meant, wake): (Addressing, WakeEvidence),
) {
    cx.push(Output::Transcribe { utterance, revision, kind, meant, from_us: wake.decoded_from_us() });
}
