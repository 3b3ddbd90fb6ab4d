//! What a session owes its wearer when its glasses are gone: it is told on the next device.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::Conversation;
use crate::{agent::phrases, output::Output, vocab::LostCall};

/// What a restart has cut off, as it is told where the session does not go on. `asks`: the wearer was to be asked again.
pub fn restart_told_elsewhere(unknown: &[LostCall], asks: bool) -> String {
    let unknown = unknown_told(unknown);
    if unknown.is_none() && !asks {
        return phrases::RESTARTED.to_string();
    }
    let question = asks.then(|| phrases::QUESTION_LOST.to_string());
    let parts = [Some(phrases::RESTARTED_IN_CALL.to_string()), unknown, question];
    parts.into_iter().flatten().collect::<Vec<String>>().join(" ")
}

/// That nobody knows what became of these calls; `None`: there are none.
pub(super) fn unknown_told(unknown: &[LostCall]) -> Option<String> {
    let calls = unknown.iter().map(call_told).collect::<Vec<String>>().join(", ");
    (!unknown.is_empty()).then(|| format!("{}: {calls}.", phrases::UNKNOWN_CALL))
}

/// How a lost call is named to the wearer.
fn call_told(LostCall { title, done }: &LostCall) -> String {
    if done.is_empty() { title.clone() } else { format!("{title} ({}: {})", phrases::ALREADY_DONE, done.join(", ")) }
}

impl Conversation {
    /// The next of what is told once nobody has the floor. It is owed until what it is said in has ended.
    pub(super) fn next_afterwards(&mut self) -> Option<String> {
        let text = self.afterwards.pop_front()?;
        self.telling.push(text.clone());
        Some(text)
    }

    /// What was to be told was heard, or, with nothing being said any more, cut off by the wearer.
    pub(super) fn settle_telling(&mut self) {
        if !self.reply.is_active() || self.reply.has_told_asides() {
            self.telling.clear();
        }
    }

    /// Has everything that is owed told elsewhere, oldest first. The answer comes last: where there is too much of it all, its
    /// end is left out.
    pub(super) fn tell_elsewhere(&mut self) {
        let is_of_restart = self.restart_untold.is_some();
        let request = self.has_waiting().then(|| phrases::REQUEST_LOST.to_string());
        let answer = self.unheard();
        let news = self.restart_untold.take().into_iter();
        let notes = self.telling.drain(..).chain(self.afterwards.drain(..));
        let owed: Vec<String> = news.chain(notes).chain(request).chain(answer).collect();
        if !owed.is_empty() {
            self.cx.push(Output::Undelivered { text: owed.join(" ") });
        }
        if is_of_restart {
            self.cx.push(Output::RestartTold { elsewhere: true });
        }
    }

    /// The answer that the wearer has not heard to its end, if there is one.
    fn unheard(&self) -> Option<String> {
        let answer = self.reply.unheard_answer(&self.cx)?;
        match (answer.is_empty(), self.agent.is_thinking()) {
            (true, true) => Some(phrases::CUT_OFF.to_string()),
            (true, false) => None,
            (false, true) => Some(format!("{answer} {}", phrases::CUT_OFF)),
            (false, false) => Some(answer),
        }
    }
}
