//! The words of the open utterance while they are spoken: partial transcripts are asked for, and their texts handled.

use alloc::string::String;

use super::{Activity, Event, Floor, barge_in, partials::Part};
use crate::{context::Context, output::Output, vocab::TranscriptKind};

impl Floor {
    /// Asks for the partial that is due.
    pub(crate) fn handle_partial_due(&mut self, cx: &mut Context, activity: &Activity) {
        let (is_followed, now_us) = (self.is_followed(cx), cx.now_us());
        let Some(open) = self.open.as_mut().filter(|open| open.voiced) else {
            return;
        };
        if open.partials.has_room(now_us) {
            let whole_us = open.wake.decoded_from_us();
            let of_sound = (whole_us.unwrap_or(open.began_us), open.heard_us(now_us));
            let known = open.caption.is_long();
            let end_us = is_followed.then(|| open.partials.begin_us(now_us, of_sound, known)).flatten();
            let (revision, meant) = (open.next_revision(), open.meant(cx));
            open.partials.ask(revision, now_us, if end_us.is_some() { Part::End } else { Part::Whole });
            let (utterance, kind, from_us) = (open.id, TranscriptKind::Partial, end_us.max(whole_us));
            cx.push(Output::Transcribe { utterance, revision, kind, meant, from_us });
        }
        self.watch_words(cx, activity);
    }

    /// Handles the text of a partial of the open utterance. In a pause the text of the pause's own decode comes after it, and is
    /// waited for, unless words are followed or these stop the assistant.
    pub(super) fn handle_partial(
        &mut self,
        cx: &mut Context,
        activity: &Activity,
        (revision, kind): (u16, TranscriptKind),
        text: String,
    ) -> Option<Event> {
        let is_followed = self.is_followed(cx);
        let open = self.open.as_mut()?;
        let part = open.partials.take(revision, cx.now_us())?;
        let stops = || activity.speaking && barge_in::cancels_through_echo(activity, &text);
        let counts = open.voiced || (open.speculative_text().is_none() && (is_followed || stops()));
        if !counts {
            return None;
        }
        let text = match part {
            Part::Whole => {
                open.caption.follow(&text);
                text
            }
            Part::End if open.caption.follow_end(&text) => open.caption.text(),
            Part::End => {
                open.partials.give_up_end(cx.now_us());
                self.partial_ended(cx, activity);
                return None;
            }
        };
        // That of a pause has nothing of the voice that went on behind it.
        if kind == TranscriptKind::Partial {
            self.note_wordless(cx, activity, &text);
        }
        let event = self.words_over_speech(cx, activity, &text);
        self.partial_ended(cx, activity);
        event
    }

    /// A partial has ended: where words are followed the next one is due, and none is if nothing needs it.
    pub(super) fn partial_ended(&mut self, cx: &mut Context, activity: &Activity) {
        if self.is_followed(cx) && !self.deaf {
            self.watch_words(cx, activity);
        } else {
            self.watch_words_less(cx, activity);
        }
    }
}
