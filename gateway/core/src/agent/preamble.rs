//! Speech in addition to the answer: the preamble while a tool takes long, and follow-ups, which suggest what the
//! wearer may say next.

use alloc::{string::String, vec::Vec};

use super::{Active, Agent, Event, calls::Step, phrases};
use crate::{
    context::Context,
    limits::{FOLLOW_UP_CHARS_MAX, FOLLOW_UPS_MAX},
    timers::Timer,
    vocab::ToolResult,
};

/// How long a tool may take before the preamble is said.
const PREAMBLE_MS: u32 = 1_000;

impl Agent {
    pub(crate) fn handle_preamble_due(&mut self, cx: &mut Context) -> Vec<Event> {
        match &mut self.active {
            Some(active) if active.wants_preamble(cx) && active.steps.iter().any(Step::is_waiting) => {
                active.spoke = true;
                alloc::vec![Event::Aside { text: String::from(phrases::PREAMBLE), shown: false }]
            }
            _ => Vec::new(),
        }
    }

    /// Takes the follow-ups that tools suggested.
    pub(crate) fn take_follow_ups(&mut self) -> Vec<String> {
        self.active.as_mut().map(|active| core::mem::take(&mut active.follow_ups)).unwrap_or_default()
    }
}

impl Active {
    /// A tool was started: the preamble is said unless it answers soon.
    pub(super) fn arm_preamble(&self, cx: &mut Context) {
        if self.wants_preamble(cx) && !cx.armed(Timer::PreambleDue) {
            cx.arm(Timer::PreambleDue, PREAMBLE_MS);
        }
    }

    /// Whether there is a speaker, nothing was said yet, and no question to the wearer is open.
    fn wants_preamble(&self, cx: &Context) -> bool {
        let said = self.spoke || self.steps.iter().any(|step| !step.text.trim().is_empty());
        cx.speaker && !said && self.asking_since_us.is_none()
    }

    /// Keeps the follow-ups of a result.
    pub(super) fn keep_follow_ups(&mut self, result: &ToolResult) {
        for sentence in &result.follow_ups {
            let sentence = sentence.trim();
            let fits = !sentence.is_empty() && sentence.chars().count() <= FOLLOW_UP_CHARS_MAX;
            if fits && self.follow_ups.len() < FOLLOW_UPS_MAX && !self.follow_ups.iter().any(|known| known == sentence)
            {
                self.follow_ups.push(String::from(sentence));
            }
        }
    }
}
