//! "Translate what they say": what the interpreter means for the others.

use super::{Conversation, stopping::Stop};
use crate::{
    agent::phrases,
    floor::{
        Utterance,
        commands::{self, Command, Translate},
    },
};

impl Conversation {
    /// The wearer wants talk to be translated, or no longer.
    pub(super) fn translate(&mut self, wanted: Translate) {
        self.stop(Stop::Replaced);
        self.floor.close_ear(&mut self.cx);
        let (can_show, can_say) = (self.cx.display.is_some(), self.cx.speaker);
        let told = match wanted {
            Translate::End if self.interpreter.end(&mut self.cx) => phrases::NO_LONGER_TRANSLATING,
            Translate::End => phrases::NOT_TRANSLATING,
            _ if !self.cx.config.translates => phrases::CANNOT_TRANSLATE,
            Translate::Other => phrases::ENGLISH_ONLY,
            Translate::Show | Translate::Read => {
                let aloud = can_say && (wanted == Translate::Read || !can_show);
                self.interpreter.begin(&mut self.cx, aloud);
                if aloud { phrases::TRANSLATING_ALOUD } else { phrases::TRANSLATING }
            }
        };
        self.aside(told);
    }

    /// Whether talk is an end of the translation: these words need no wake phrase.
    pub(super) fn is_end_of_translation(&self, said: &Utterance) -> bool {
        let is_end = || commands::command(&said.text) == Some(Command::Translate(Translate::End));
        self.interpreter.is_on() && !said.echo && is_end()
    }

    /// Nothing was translated for long.
    pub(super) fn translation_idle(&mut self) {
        if self.interpreter.end(&mut self.cx) {
            self.tell_when_free(phrases::TRANSLATION_IDLE.into());
        }
    }

    /// Whether something else goes on than that a translation is read out: where it is stopped, those that wait are still read
    /// out.
    pub(super) fn do_translations_wait_behind(&self) -> bool {
        self.is_answering() && !self.reply.is_translation()
    }

    /// Shows translations, and reads the next one out where nothing else is said.
    pub(super) fn tell_translations(&mut self) {
        let floor = &self.floor;
        self.interpreter.settle(&mut self.cx, |utterance| floor.is_awaited(utterance));
        let is_called = floor.is_called(self.cx.now_us());
        if !self.link.is_up() || self.is_busy() || is_called || self.approvals.standing().is_some() {
            return;
        }
        // Its words may stop what waits as well.
        if self.floor.has_interrupted() {
            return;
        }
        if let Some(text) = self.interpreter.take_unsaid(&self.cx, self.floor.is_hearing()) {
            self.reply.begin_translation(&mut self.cx);
            self.say_all(&text);
        }
    }
}
