//! Ending what goes on.

use super::Conversation;
use crate::{
    output::{Output, TurnOutcome},
    reply::Purpose,
};

/// Part of an interrupted announcement from which on it counts as heard.
pub(super) const NOTICE_HEARD_PART: f32 = 0.5;

/// Why what goes on is ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stop {
    /// The wearer wants no more of it. A question in it is dropped.
    Dismissed,
    /// The wearer ends it to speak: that may answer a question in it.
    Called,
    /// Something else takes its place.
    Replaced,
}

impl Conversation {
    /// Ends whatever is going on.
    pub(super) fn stop(&mut self, why: Stop) {
        let on_purpose = why != Stop::Replaced;
        if why == Stop::Dismissed && !self.do_translations_wait_behind() {
            self.interpreter.hush();
        }
        self.approvals.cancel_all(&mut self.cx);
        if on_purpose {
            self.unanswered = None;
            self.forget_waiting();
        }
        let Some(ended) = self.reply.stop(&mut self.cx) else {
            return;
        };
        self.telling.clear();
        let is_question_dropped = why == Stop::Dismissed;
        match ended.purpose {
            Purpose::Answer => {
                let was_heard = ended.part > 0.0 && !self.agent.is_thinking();
                self.agent.interrupt(&mut self.cx, ended.heard, TurnOutcome::Interrupted);
                if is_question_dropped {
                    self.floor.drop_question(&mut self.cx);
                } else if was_heard {
                    self.floor.answer_heard(&mut self.cx, ended.asks);
                }
            }
            Purpose::Notice { id } => {
                self.cx.push(Output::Announced { id, heard: on_purpose || ended.part >= NOTICE_HEARD_PART })
            }
            Purpose::Aside if is_question_dropped => self.floor.drop_question(&mut self.cx),
            Purpose::Question | Purpose::Aside => {}
        }
    }
}
