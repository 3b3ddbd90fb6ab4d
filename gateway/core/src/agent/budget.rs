//! Deadlines of a turn: until it is granted, until the model responds, until a tool is done, and overall. Each ends in
//! a short sentence to the wearer.

use alloc::vec::Vec;

use super::{Active, Agent, Event, Phase, calls::Pending, phrases};
use crate::{
    context::Context,
    limits::{TOOL_MARGIN_MS, TOOL_MS_MAX},
    output::Output,
    timers::Timer,
    vocab::{ErrorCode, ModelOutcome, ToolFlags, Turn},
};

impl Agent {
    /// The link is lost. The user's machine forgets a request that waits, so it is not waited for until the link is back.
    pub(crate) fn handle_link_lost(&self, cx: &mut Context) {
        if self.awaits_grant().is_some() {
            cx.disarm(Timer::GrantMissing);
        }
    }

    /// The link is back: a turn that waits is requested again.
    pub(crate) fn handle_resumed(&self, cx: &mut Context) {
        if let Some(active) = self.awaits_grant() {
            active.request_turn(cx);
        }
    }

    fn awaits_grant(&self) -> Option<&Active> {
        self.active.as_ref().filter(|active| active.phase == Phase::Grant)
    }

    pub(crate) fn handle_grant_missing(&mut self, cx: &mut Context) -> Vec<Event> {
        match &mut self.active {
            Some(active) if active.phase == Phase::Grant => active.fail(cx, phrases::STILL_BUSY, ErrorCode::Cancelled),
            _ => Vec::new(),
        }
    }

    pub(crate) fn handle_model_silent(&mut self, cx: &mut Context) -> Vec<Event> {
        match &mut self.active {
            Some(active) if active.phase == (Phase::Model { started: false }) => {
                active.model_dropped(cx, ModelOutcome::Failed);
                active.phase = Phase::Tools;
                if active.fall_back(cx) {
                    return Vec::new();
                }
                active.fail_or_tell(cx, phrases::MODEL_SILENT, ErrorCode::Timeout)
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn handle_turn_budget(&mut self, cx: &mut Context) -> Vec<Event> {
        match &mut self.active {
            Some(active) if active.phase != Phase::Answer => {
                active.fail_or_tell(cx, phrases::MODEL_SILENT, ErrorCode::Timeout)
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn handle_tool_missing(&mut self, cx: &mut Context) -> Vec<Event> {
        match &mut self.active {
            Some(active) if active.phase != Phase::Answer => active.fail(cx, phrases::TOOL_SILENT, ErrorCode::Timeout),
            _ => Vec::new(),
        }
    }

    /// What the tool of a call declares about itself. One that takes long is announced at once, unless the wearer is
    /// asked about it first.
    pub(crate) fn handle_tool_known(
        &mut self,
        cx: &mut Context,
        turn: Turn,
        call_id: &str,
        (flags, timeout_ms): (ToolFlags, Option<u32>),
    ) -> Vec<Event> {
        let Some(active) = self.current(turn) else {
            return Vec::new();
        };
        if let Some(step) = active.steps.last_mut().filter(|step| step.is_waiting()) {
            step.declare(call_id, !flags.read_only, timeout_ms);
            active.make_room(cx);
            active.watch_tools(cx);
        }
        if flags.slow && !flags.requires_approval { self.handle_preamble_due(cx) } else { Vec::new() }
    }

    /// The wearer is asked for consent: the deadlines are suspended.
    pub(crate) fn pause(&mut self, cx: &mut Context) {
        if let Some(active) = &mut self.active
            && active.asking_since_us.is_none()
        {
            active.asking_since_us = Some(cx.now_us());
            cx.disarm(Timer::TurnBudget);
            cx.disarm(Timer::ToolMissing);
            cx.disarm(Timer::PreambleDue);
        }
    }

    /// The question is settled: the deadlines are extended by the time that it took.
    pub(crate) fn resume(&mut self, cx: &mut Context) {
        if let Some(active) = &mut self.active
            && let Some(since_us) = active.asking_since_us.take()
        {
            let asked_us = cx.now_us().saturating_sub(since_us);
            active.budget_us = active.budget_us.saturating_add(asked_us);
            active.budget_us_max = active.budget_us_max.saturating_add(asked_us);
            for pending in active.steps.iter_mut().flat_map(|step| &mut step.calls) {
                pending.extend(asked_us);
            }
            if active.phase != Phase::Answer {
                cx.arm_at(Timer::TurnBudget, active.budget_us);
                active.watch_tools(cx);
            }
        }
    }
}

impl Active {
    /// Requests the turn of the user's machine, and waits for it only so long.
    pub(super) fn request_turn(&self, cx: &mut Context) {
        cx.push(Output::RequestTurn { turn: self.turn, request: self.request.clone() });
        cx.arm(Timer::GrantMissing, cx.config.grant_ms_max);
    }

    /// The budget that is granted with the turn.
    pub(super) fn set_budget(&mut self, cx: &mut Context) {
        self.budget_us = cx.after_ms(cx.config.turn_ms_max);
        let tools_ms = TOOL_MS_MAX.saturating_add(TOOL_MARGIN_MS);
        self.budget_us_max = cx.after_ms(cx.config.turn_ms_max.saturating_add(tools_ms));
        cx.arm_at(Timer::TurnBudget, self.budget_us);
    }

    /// A tool whose own time-out is beyond the default may use it, and the model may answer afterwards: the turn takes
    /// as much longer, within bounds.
    pub(super) fn make_room(&mut self, cx: &mut Context) {
        let waiting = self.steps.iter().flat_map(|step| &step.calls);
        if let Some(deadline_us) = waiting.filter(|pending| pending.is_long()).filter_map(Pending::deadline_us).max() {
            let answer_us = u64::from(cx.config.model_first_ms_max).saturating_mul(1_000);
            let wanted_us = deadline_us.saturating_add(answer_us).min(self.budget_us_max);
            self.budget_us = self.budget_us.max(wanted_us);
            if self.asking_since_us.is_none() {
                cx.arm_at(Timer::TurnBudget, self.budget_us);
            }
        }
    }

    pub(super) fn watch_tools(&self, cx: &mut Context) {
        let next_us = self.steps.iter().flat_map(|step| &step.calls).filter_map(Pending::deadline_us).min();
        match next_us {
            Some(at_us) if self.asking_since_us.is_none() => cx.arm_at(Timer::ToolMissing, at_us),
            _ => cx.disarm(Timer::ToolMissing),
        }
    }
}
