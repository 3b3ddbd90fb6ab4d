//! One step of a turn: the model's text, its tool calls and their results.

use alloc::{format, string::String, vec, vec::Vec};
use serde_json::Value;

use super::{
    Active, Agent, Event, Phase, asking,
    calls::{self, Pending, Step},
    phrases,
};
use crate::{
    context::Context,
    limits::{ANSWER_CHARS_MAX, CALLS_PER_TURN_MAX, THINKING_PARTS_MAX},
    output::{Output, Stage, ToolActivityState},
    timers::Timer,
    vocab::{ErrorCode, FailureKind, ModelEvent, ModelOutcome, Part, StopReason, ToolCall, ToolResult, Turn},
};

impl Agent {
    pub(super) fn take_event(&mut self, cx: &mut Context, turn: Turn, event: ModelEvent) -> Vec<Event> {
        let Some(active) = self.current(turn) else {
            return Vec::new();
        };
        let Phase::Model { started } = active.phase else {
            return Vec::new();
        };
        if !started {
            active.phase = Phase::Model { started: true };
            cx.disarm(Timer::ModelSilent);
            if active.steps.len() == 1 {
                cx.mark(turn, Stage::ModelFirst);
            }
        }
        let mut events: Vec<Event> = active.news(cx, &event).into_iter().collect();
        events.extend(match event {
            ModelEvent::Text(text) => active.take_text(cx, &text),
            ModelEvent::Thinking { provider, data } => active.take_thinking(provider, data),
            ModelEvent::ToolCall(call) => active.take_call(cx, call),
            ModelEvent::Question { text, pending } => {
                let mut asked = active.take_text(cx, &text);
                asked.push(Event::Asks(text, pending));
                asked
            }
            ModelEvent::NotUnderstood { text, without_model, brief } => {
                let told = core::mem::replace(&mut cx.told_of_commands, true);
                let said = match (told, cx.config.conversational) {
                    (true, _) => brief,
                    (false, true) => text,
                    (false, false) => format!("{text} {without_model}"),
                };
                let mut events = vec![Event::Trouble];
                events.extend(active.take_text(cx, &said));
                events
            }
            ModelEvent::Chosen(preference) => {
                cx.push(Output::Prefer(preference));
                Vec::new()
            }
            ModelEvent::Done { stop, usage } => {
                active.model_used(cx, usage, ModelOutcome::Answered);
                active.step_done(cx, stop)
            }
            ModelEvent::Failed { kind, .. } => active.model_failed(cx, kind),
        });
        events
    }
}

impl Active {
    /// Makes calls that waited for consent when the process died, so that the wearer is asked again.
    pub(super) fn call_again(&mut self, cx: &mut Context, calls: Vec<ToolCall>) -> Vec<Event> {
        self.steps.push(Step::default());
        let mut events: Vec<Event> = calls.into_iter().flat_map(|call| self.take_call(cx, call)).collect();
        events.extend(self.step_done(cx, StopReason::ToolCalls));
        events
    }

    fn take_text(&mut self, cx: &mut Context, text: &str) -> Vec<Event> {
        let left = ANSWER_CHARS_MAX.saturating_sub(self.answer_chars);
        let kept: String = text.chars().take(left).collect();
        let cut = kept.len() < text.len();
        self.answer_chars += kept.chars().count();
        let Some(step) = self.steps.last_mut() else {
            return Vec::new();
        };
        step.push_text(&kept);
        let mut events = vec![Event::Text { step: self.steps.len() - 1, text: kept }];
        if cut {
            self.model_dropped(cx, ModelOutcome::Cancelled);
            events.extend(self.step_done(cx, StopReason::Length));
        }
        events
    }

    fn take_thinking(&mut self, provider: String, data: Value) -> Vec<Event> {
        if let Some(step) = self.steps.last_mut() {
            step.push_thinking(Part::Thinking { provider, data }, THINKING_PARTS_MAX);
        }
        Vec::new()
    }

    fn take_call(&mut self, cx: &mut Context, call: ToolCall) -> Vec<Event> {
        let known = self.steps.iter().flat_map(|step| &step.calls).any(|pending| pending.call.id == call.id);
        // A second call with the same id could not be told apart from the first.
        if known {
            return Vec::new();
        }
        let mut pending = Pending::new(call.clone(), cx.now_us());
        pending.result = calls::repeated_failure(&self.steps, &call);
        if self.calls_made >= CALLS_PER_TURN_MAX {
            // At twice the limit the turn ends: the model ignores the failures.
            if self.calls_made >= 2 * CALLS_PER_TURN_MAX {
                return self.fail(cx, phrases::TOO_MANY_STEPS, ErrorCode::Cancelled);
            }
            pending.result = Some(ToolResult::failed(ErrorCode::RateLimited, "too many calls in one turn", false));
        }
        self.calls_made += 1;
        let runs = pending.result.is_none();
        if let Some(step) = self.steps.last_mut() {
            step.push_call(pending);
        }
        if runs {
            if self.calls_made == 1 {
                cx.mark(self.turn, Stage::ToolStart);
            }
            cx.push(Output::ToolActivity {
                turn: self.turn,
                call_id: call.id.clone(),
                tool: call.name.clone(),
                state: ToolActivityState::Started,
            });
            cx.done.push(call.clone());
            cx.push(Output::RunTool { turn: self.turn, call });
            self.watch_tools(cx);
            self.arm_preamble(cx);
        }
        vec![Event::Pause]
    }

    fn step_done(&mut self, cx: &mut Context, stop: StopReason) -> Vec<Event> {
        cx.disarm(Timer::ModelSilent);
        let Some(step) = self.steps.last() else {
            return Vec::new();
        };
        if step.is_waiting() {
            self.phase = Phase::Tools;
            return Vec::new();
        }
        if !step.calls.is_empty() {
            return self.next_step(cx);
        }
        if !step.text.trim().is_empty() {
            self.end(cx);
            return vec![Event::Complete];
        }
        if let Some(say) = self.tools_own_words() {
            return self.last_words(cx, &say);
        }
        let said_before = self.steps.iter().any(|step| !step.text.trim().is_empty());
        if said_before || self.shown {
            self.end(cx);
            return vec![Event::Complete];
        }
        let sentence = match stop {
            StopReason::Filtered => phrases::MODEL_REFUSED,
            _ => phrases::NO_ANSWER,
        };
        self.last_words(cx, sentence)
    }

    fn model_failed(&mut self, cx: &mut Context, kind: FailureKind) -> Vec<Event> {
        // The model has ended by itself: there is nothing to cancel.
        self.phase = Phase::Tools;
        // A refusal is an answer: no other model is asked.
        let refused = kind == FailureKind::Refused;
        let is_there = refused || kind == FailureKind::BadCall;
        let outcome = if is_there { ModelOutcome::Answered } else { ModelOutcome::Failed };
        let usage = self.usage_of_failed(cx, kind, 0);
        self.model_used(cx, usage, outcome);
        if (kind == FailureKind::BadCall && self.ask_again(cx)) || (!refused && self.fall_back(cx)) {
            return Vec::new();
        }
        self.fail_or_tell(cx, asking::apology(kind), ErrorCode::Cancelled)
    }

    /// Ends the turn after a failure of the model. If the current step is still empty, the sentences to say from the
    /// tools of the previous step replace the apology.
    pub(super) fn fail_or_tell(&mut self, cx: &mut Context, sentence: &str, code: ErrorCode) -> Vec<Event> {
        let silent = self.steps.last().is_none_or(|step| step.text.trim().is_empty() && step.calls.is_empty());
        match self.tools_own_words().filter(|_| silent) {
            Some(say) => {
                self.cancel(cx, code);
                self.last_words(cx, &say)
            }
            None => self.fail(cx, sentence, code),
        }
    }

    /// The sentences to say from the tools of the previous step.
    fn tools_own_words(&self) -> Option<String> {
        let before = self.steps.iter().rev().nth(1)?;
        let mut words = String::new();
        let results = before.calls.iter().filter_map(|call| call.result.as_ref());
        for say in results.filter_map(|result| result.say.as_ref()) {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(say.trim());
        }
        (!words.is_empty()).then_some(words)
    }

    pub(super) fn take_result(&mut self, cx: &mut Context, call_id: &str, result: ToolResult) -> Vec<Event> {
        let turn = self.turn;
        if self.steps.last_mut().is_none_or(|step| step.waiting(call_id).is_none()) {
            return Vec::new();
        }
        self.keep_follow_ups(&result);
        let Some(step) = self.steps.last_mut() else {
            return Vec::new();
        };
        let Some(pending) = step.waiting(call_id) else {
            return Vec::new();
        };
        let state = calls::state_after(result.error.as_ref().map(|error| error.code));
        let show = result.show.clone();
        if result.has_not_run() {
            cx.done.retain(|call| call.id != call_id);
        }
        cx.push(Output::ToolActivity {
            turn,
            call_id: pending.call.id.clone(),
            tool: pending.call.name.clone(),
            state,
        });
        pending.result = Some(result);
        step.go_on(cx.now_us());
        let waiting = step.is_waiting();
        let mut events = Vec::new();
        if let Some(content) = show {
            self.shown = true;
            events.push(Event::Show(content));
        }
        self.make_room(cx);
        self.watch_tools(cx);
        if !waiting {
            cx.disarm(Timer::PreambleDue);
            cx.mark(turn, Stage::ToolEnd);
            if self.phase == Phase::Tools {
                events.extend(self.next_step(cx));
            }
        }
        events
    }

    /// All results of a step have arrived: the model is asked to continue.
    fn next_step(&mut self, cx: &mut Context) -> Vec<Event> {
        let handled = self.steps.last().is_some_and(|step| {
            step.calls
                .iter()
                .all(|call| call.result.as_ref().is_some_and(|result| result.handled_display && !result.is_error()))
        });
        if handled {
            self.end(cx);
            return vec![Event::Complete];
        }
        if self.steps.len() >= usize::from(cx.config.model_requests_max) {
            return self.fail(cx, phrases::TOO_MANY_STEPS, ErrorCode::Cancelled);
        }
        if self.is_spent(cx) {
            return self.fail(cx, phrases::TOO_MANY_TOKENS, ErrorCode::Cancelled);
        }
        self.ask(cx)
    }
}
