//! Deadlines of a turn: until it is granted, until the model responds, until a tool is done, and overall. Each ends in
//! a short sentence to the wearer.

use alloc::vec::Vec;

use super::{Active, Agent, Event, Phase, phrases};
use crate::{
    context::{Context, Timer},
    vocab::{ErrorCode, ModelOutcome},
};

impl Agent {
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
            for pending in active.steps.iter_mut().flat_map(|step| &mut step.calls) {
                pending.deadline_us = pending.deadline_us.saturating_add(asked_us);
            }
            if active.phase != Phase::Answer {
                cx.arm_at(Timer::TurnBudget, active.budget_us);
                active.watch_tools(cx);
            }
        }
    }
}

impl Active {
    pub(super) fn watch_tools(&self, cx: &mut Context) {
        let next_us = self
            .steps
            .iter()
            .flat_map(|step| &step.calls)
            .filter(|pending| pending.result.is_none())
            .map(|pending| pending.deadline_us)
            .min();
        match next_us {
            Some(at_us) if self.asking_since_us.is_none() => cx.arm_at(Timer::ToolMissing, at_us),
            _ => cx.disarm(Timer::ToolMissing),
        }
    }
}
