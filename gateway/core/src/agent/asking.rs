//! Requests to models: which model is asked, with which messages, how its usage is counted, and which one follows after
//! a failure.

use alloc::{string::String, vec::Vec};

use super::{
    Active, Agent, Event, Phase, calls::Step, history, history::Heard, phrases, pictures::ImagePolicy, turn_context,
};
use crate::{
    context::Context,
    limits::RESTARTS_MAX,
    output::Output,
    timers::Timer,
    vocab::{
        Candidate, ErrorCode, FailureKind, FallbackReason, Message, ModelEvent, ModelOutcome, Part, Role, ServiceLevel,
        Turn, Usage,
    },
};

/// Characters per token for estimates: about the figure that providers give for English.
const CHARS_PER_TOKEN: usize = 4;

impl Agent {
    /// The local engine answers instead of the model.
    pub(crate) fn handle_on_box(&mut self, turn: Turn) {
        if let Some(active) = self.current(turn) {
            active.on_box = true;
        }
    }

    /// Tools have changed and are to take effect at once: the turn restarts, unless it has made calls, any of its
    /// answer was heard or the restarts are used up. Otherwise the tools apply from the next request on. Returns
    /// whether it restarts.
    pub(crate) fn apply_tools(&mut self, cx: &mut Context, heard: bool) -> bool {
        match &mut self.active {
            Some(active)
                if matches!(active.phase, Phase::Model { .. })
                    && !heard
                    && active.calls_made == 0
                    && active.restarts < RESTARTS_MAX =>
            {
                active.restarts += 1;
                active.begin_anew(cx);
                true
            }
            _ => false,
        }
    }
}

impl Active {
    fn candidate(&self) -> Option<Candidate> {
        self.route.candidates.get(self.choice).copied()
    }

    fn has_another(&self) -> bool {
        self.choice + 1 < self.route.candidates.len()
    }

    /// Asks the model, with everything that is known so far.
    pub(super) fn ask(&mut self, cx: &mut Context) -> Vec<Event> {
        let Some(candidate) = self.candidate() else {
            return self.fail(cx, phrases::MONEY_USED_UP, ErrorCode::Cancelled);
        };
        let messages = self.messages(cx, if candidate.images { ImagePolicy::Attach } else { ImagePolicy::Unsupported });
        // Requests after tool calls continue no earlier utterance.
        let pending = self.pending.clone().filter(|_| self.steps.is_empty());
        self.steps.push(Step::default());
        self.phase = Phase::Model { started: false };
        self.on_box = false;
        let wait_ms = if self.has_another() { cx.config.model_fall_back_ms } else { cx.config.model_first_ms_max };
        cx.arm(Timer::ModelSilent, wait_ms);
        cx.push(Output::AskModel { turn: self.turn, rank: candidate.rank, messages, pending });
        Vec::new()
    }

    fn messages(&self, cx: &Context, images: ImagePolicy) -> Vec<Message> {
        let mut messages: Vec<Message> =
            cx.config.instructions.iter().map(|text| Message::text(Role::System, text.clone())).collect();
        messages.extend(self.history.iter().cloned());
        let turn = messages.len();
        messages.extend(history::messages(&self.request, &self.steps, &Heard::All, images));
        turn_context::with_context(cx, messages, turn)
    }

    /// Whether this answer is still empty: no text and no calls.
    fn is_untold(&self) -> bool {
        self.steps.last().is_some_and(|step| step.text.trim().is_empty() && step.calls.is_empty())
    }

    /// Asks the next model, if there is one and the answer is still empty. Late output of the previous one belongs to
    /// an older revision.
    pub(super) fn fall_back(&mut self, cx: &mut Context) -> bool {
        if !self.is_untold() || !self.has_another() {
            return false;
        }
        self.choice += 1;
        self.repeat(cx);
        true
    }

    /// Asks the same model once more, with the current tools; once in a turn.
    pub(super) fn ask_again(&mut self, cx: &mut Context) -> bool {
        if !self.is_untold() || self.asked_again {
            return false;
        }
        self.asked_again = true;
        self.repeat(cx);
        true
    }

    fn repeat(&mut self, cx: &mut Context) {
        self.steps.pop();
        self.turn.revision = self.turn.revision.saturating_add(1);
        self.ask(cx);
    }

    fn begin_anew(&mut self, cx: &mut Context) {
        self.cancel(cx, ErrorCode::Cancelled);
        self.turn.revision = self.turn.revision.saturating_add(1);
        self.steps.clear();
        self.answer_chars = 0;
        if let Some(held) = &mut self.held {
            held.clear();
        }
        self.ask(cx);
    }

    /// What the wearer should be told about the model that answers now; once per service level.
    pub(super) fn news(&mut self, cx: &mut Context, event: &ModelEvent) -> Option<Event> {
        let level = self.candidate()?.level;
        if matches!(event, ModelEvent::Failed { .. }) || level <= self.route.told {
            return None;
        }
        let reason = self.route.reason;
        let text = match (reason, level) {
            (_, ServiceLevel::Full) => return None,
            (FallbackReason::Outage, ServiceLevel::Fallback) => phrases::OTHER_MODEL,
            (FallbackReason::Outage, ServiceLevel::Commands) => phrases::COMMANDS_ONLY,
            (FallbackReason::Budget, ServiceLevel::Fallback) => phrases::FREE_MODEL,
            (FallbackReason::Budget, ServiceLevel::Commands) => phrases::COMMANDS_FREE,
        };
        self.route.told = level;
        self.spoke = true;
        cx.push(Output::FallbackTold { reason, level });
        Some(Event::Aside { text: String::from(text), shown: true })
    }

    /// Records the end of a request. Answers of the local engine use no tokens and do not affect the model's state.
    pub(super) fn model_used(&mut self, cx: &mut Context, usage: Usage, outcome: ModelOutcome) {
        let Some(candidate) = self.candidate().filter(|_| !self.on_box) else {
            return;
        };
        let tokens = u64::from(usage.input).saturating_add(usage.output.into());
        self.tokens = self.tokens.saturating_add(tokens);
        cx.push(Output::ModelUsed { turn: self.turn, rank: candidate.rank, usage, outcome });
    }

    /// Cancels the request. Its usage will never be reported and is estimated.
    pub(super) fn model_dropped(&mut self, cx: &mut Context, outcome: ModelOutcome) {
        let usage = self.estimate(cx);
        cx.push(Output::CancelModel { turn: self.turn });
        self.model_used(cx, usage, outcome);
    }

    /// Of a request that failed. One that broke off when its answer had begun is paid for, as far as it came. `unseen`: bytes of
    /// the answer that were held back.
    pub(super) fn usage_of_failed(&self, cx: &Context, kind: FailureKind, unseen: usize) -> Usage {
        let is_seen = self.steps.last().is_some_and(|step| !step.text.is_empty() || !step.calls.is_empty());
        if !is_seen && unseen == 0 && kind != FailureKind::BadCall {
            return Usage::default();
        }
        let estimate = self.estimate(cx);
        Usage { output: estimate.output.saturating_add(tokens(unseen)), ..estimate }
    }

    fn estimate(&self, cx: &Context) -> Usage {
        let Some((answer, before)) = self.steps.split_last() else {
            return Usage::default();
        };
        let mut asked = history::messages(&self.request, before, &Heard::All, ImagePolicy::Omit);
        asked.extend(cx.config.instructions.iter().map(|text| Message::text(Role::System, text.clone())));
        let asked = asked.iter().chain(&self.history).flat_map(|message| &message.parts).map(chars).sum();
        Usage { input: tokens(asked), cached: 0, output: tokens(answer.text.len()) }
    }

    /// Whether the turn has used all the tokens that it may.
    pub(super) fn is_spent(&self, cx: &Context) -> bool {
        cx.config.turn_tokens_max.is_some_and(|most| self.tokens >= u64::from(most))
    }
}

fn tokens(chars: usize) -> u32 {
    u32::try_from(chars.div_ceil(CHARS_PER_TOKEN)).unwrap_or(u32::MAX)
}

fn chars(part: &Part) -> usize {
    match part {
        Part::Text { text } => text.len(),
        Part::ToolResult { result, .. } => result.for_model().len(),
        Part::ToolCall { call } => call.name.len(),
        Part::Image { .. } | Part::Thinking { .. } => 0,
    }
}

/// The sentence for the wearer if a model has failed and no other one can be asked.
pub(super) fn apology(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Transient | FailureKind::BadCall | FailureKind::Bug => phrases::MODEL_FAILED,
        FailureKind::Limited => phrases::MODEL_LIMITED,
        FailureKind::Refused => phrases::MODEL_REFUSED,
        FailureKind::Auth => phrases::MODEL_AUTH,
    }
}
