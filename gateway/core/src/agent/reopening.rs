//! Reopening: the wearer goes on right after the end of a request.
//!
//! The end of an utterance is decided early, and sometimes too early. While a voice that began right after it is
//! heard, nothing of the turn is done: what a model answers is kept, unread. If the voice turns out to be more of the
//! request, the turn restarts as its next revision, with all the words, and nobody notices. If not, the turn goes on
//! with what was kept. A turn of which something was done already is not reopened: what follows is a turn of its own,
//! which is told what was done ([`Pending::done`](crate::vocab::Pending)).

use alloc::{string::String, vec::Vec};

use super::{Active, Agent, Event, Phase, Spoken};
use crate::{
    context::Context,
    limits::HELD_EVENTS_MAX,
    output::Output,
    timers::Timer,
    vocab::{ModelEvent, ModelOutcome, Turn},
};

/// Voice that begins this soon after the end of a request was decided may be more of it.
const GOES_ON_US: u64 = 700_000;

impl Agent {
    /// Capture time of the last voice of a request that may still be reopened, and how soon after it the wearer has to go on.
    pub(crate) fn may_go_on(&self) -> Option<(u64, u64)> {
        let active = self.active.as_ref().filter(|active| active.is_undone())?;
        active.spoken.map(|spoken| (spoken.last_voice_us, spoken.waited_us.saturating_add(GOES_ON_US)))
    }

    /// Whether the turn waits for what the wearer goes on to say.
    pub(crate) fn is_held(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.held.is_some())
    }

    /// From now on answers of the model are kept, unread.
    pub(crate) fn hold(&mut self) {
        if let Some(active) = &mut self.active {
            active.held.get_or_insert_default();
        }
    }

    /// The request was complete: the turn goes on with what was kept.
    pub(crate) fn release(&mut self, cx: &mut Context) -> Vec<Event> {
        let Some(active) = &mut self.active else {
            return Vec::new();
        };
        let turn = active.turn;
        let held = active.held.take().unwrap_or_default();
        held.into_iter().flat_map(|event| self.take_event(cx, turn, event)).collect()
    }

    /// Handles what a model answers; if the turn is held, later. An answer that is too long to be kept ends that.
    pub(crate) fn handle_model(&mut self, cx: &mut Context, turn: Turn, event: ModelEvent) -> Vec<Event> {
        let Some(held) = self.current(turn).and_then(|active| active.held.as_mut()) else {
            return self.take_event(cx, turn, event);
        };
        cx.disarm(Timer::ModelSilent);
        held.push(event);
        if held.len() < HELD_EVENTS_MAX { Vec::new() } else { self.release(cx) }
    }

    /// The wearer has said more of the request: the turn restarts with all its words, which are returned. `is_request`:
    /// these words are one by themselves.
    pub(crate) fn reopen(&mut self, cx: &mut Context, words: &str, is_request: bool, spoken: Spoken) -> Option<String> {
        let active = self.active.as_mut().filter(|active| active.is_undone())?;
        let held = active.held.take()?;
        let is_whole = active.spoken.is_some_and(|spoken| spoken.is_command);
        active.request = joined(&active.request, words, is_whole && is_request);
        active.spoken = Some(spoken);
        if matches!(active.phase, Phase::Model { .. }) {
            active.drop_answer(cx, &held);
            active.turn.revision = active.turn.revision.saturating_add(1);
            active.steps.clear();
        }
        let request = active.request.clone();
        spoken.mark(cx, active.turn);
        cx.push(Output::TurnReopened { turn: active.turn, request: request.clone() });
        if matches!(active.phase, Phase::Model { .. }) {
            active.ask(cx);
        }
        Some(request)
    }
}

impl Active {
    /// Whether nothing of the turn was done, said or shown.
    fn is_undone(&self) -> bool {
        let asked = matches!(self.phase, Phase::Grant | Phase::Model { .. });
        let told = self.shown || self.spoke || self.answer_chars > 0;
        asked && !told && self.calls_made == 0 && self.steps.len() <= 1 && self.unanswered.is_empty()
    }

    /// The answer to half a request is not wanted; if it is complete, it is paid for.
    fn drop_answer(&mut self, cx: &mut Context, held: &[ModelEvent]) {
        let text = |event: &ModelEvent| if let ModelEvent::Text(text) = event { text.len() } else { 0 };
        let unseen = held.iter().map(text).sum();
        let ended = held.iter().find_map(|event| match event {
            ModelEvent::Done { usage, .. } => Some((*usage, ModelOutcome::Answered)),
            ModelEvent::Failed { kind, .. } => Some((self.usage_of_failed(cx, *kind, unseen), ModelOutcome::Failed)),
            _ => None,
        });
        match ended {
            Some((usage, outcome)) => self.model_used(cx, usage, outcome),
            None => self.model_dropped(cx, ModelOutcome::Cancelled),
        }
    }
}

/// Both parts of a request as one: "Set a timer." and "For ten minutes." The recogniser has written each as a sentence.
/// `are_two`: each is a request by itself, "what time is it" and "read my notes".
fn joined(before: &str, words: &str, are_two: bool) -> String {
    let mut joined = String::from(before.trim_end().trim_end_matches(['.', '!', '?', ',', ';', ':', '-', '…']));
    let has_and = words.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("and "));
    joined.push_str(if are_two && !has_and { " and " } else { " " });
    let words = words.trim();
    let mut letters = words.chars();
    match (letters.next(), letters.next()) {
        // "I" and "TV" are written so in the middle of a sentence, too.
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            joined.extend(first.to_lowercase());
            joined.push_str(words.get(first.len_utf8()..).unwrap_or_default());
        }
        _ => joined.push_str(words),
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn two_parts_become_one_sentence() {
        for (before, words, expected) in [
            ("Set a timer.", "For ten minutes.", "Set a timer for ten minutes."),
            ("Remind me to", "Call Ben.", "Remind me to call Ben."),
            ("Is it far...", "I wonder?", "Is it far I wonder?"),
            ("Switch on the,", "TV.", "Switch on the TV."),
            ("Add", "I'm late", "Add I'm late"),
            ("Übersetze", "Äpfel.", "Übersetze äpfel."),
        ] {
            assert_eq!(joined(before, words, false), expected);
        }
        assert_eq!(joined("What time is it?", "Read my notes.", true), "What time is it and read my notes.");
        assert_eq!(joined("What time is it?", "And read my notes.", true), "What time is it and read my notes.");
    }
}
