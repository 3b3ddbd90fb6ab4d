//! Answers as speech and on the display: one thing is said at a time.

mod clause;
mod display;
mod playout;
mod stopping;

use alloc::{string::String, vec::Vec};

use self::{display::AnswerDisplay, playout::Playout};
pub(crate) use self::{
    display::{cards, reading_ms},
    playout::Purpose,
};
use crate::{
    agent::history::Heard,
    context::Context,
    input::Playback,
    output::Chime,
    speech_text::{
        self,
        markup::{Markup, TextRun},
    },
    timers::Timer,
    vocab::{Content, Priority, Turn},
};

/// The end of something that was said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ended {
    /// Why it was said.
    pub(crate) purpose: Purpose,
    /// How much of it was heard.
    pub(crate) heard: Heard,
    /// The heard part of its length, 0 to 1.
    pub(crate) part: f32,
    /// Whether it ends in a question.
    pub(crate) asks: bool,
    /// Whether it could only be read: nothing of it was played.
    pub(crate) only_read: bool,
    /// Whether it was an answer without a word to be said.
    pub(crate) is_wordless: bool,
}

/// What is being said and shown as the answer of a turn, and how much of it was heard.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    last_speech: u32,
    playout: Option<Playout>,
    pub(crate) display: AnswerDisplay,
    markup: Markup,
    last_answer: String,
    last_spoken: String,
    /// Playback has begun since the last check.
    began: bool,
    /// The wearer has heard the sound of trouble with what is being said.
    troubled: bool,
    /// What is being said, or was said last, is a translation of talk.
    is_translation: bool,
}

impl Reply {
    /// Begins to say something. Anything said before must have ended.
    pub(crate) fn begin(&mut self, cx: &mut Context, purpose: Purpose, turn: Option<Turn>) {
        // A wearer who makes a request has seen the announcement.
        if purpose == Purpose::Answer {
            cx.release(Priority::Notice);
        }
        match purpose {
            Purpose::Answer | Purpose::Aside => self.display.begin(cx, turn),
            Purpose::Notice { .. } | Purpose::Question => self.display.begin_between(cx),
        }
        self.markup = Markup::default();
        self.troubled = false;
        self.is_translation = false;
        self.playout = Some(Playout::new(cx, purpose, turn));
    }

    /// Begins to read out a translation of talk, which is shown elsewhere.
    pub(crate) fn begin_translation(&mut self, cx: &mut Context) {
        self.begin(cx, Purpose::Aside, None);
        self.say_only();
        self.is_translation = true;
    }

    /// Whether what is being said, or was said last, is a translation of talk.
    pub(crate) fn is_translation(&self) -> bool {
        self.is_translation
    }

    /// Something goes wrong with what is being said. Of several faults one is heard.
    pub(crate) fn trouble(&mut self, cx: &mut Context) {
        if !core::mem::replace(&mut self.troubled, true) {
            cx.chime(Chime::Trouble);
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.playout.is_some()
    }

    pub(crate) fn is_speaking(&self) -> bool {
        self.playout.as_ref().is_some_and(Playout::is_speaking)
    }

    pub(crate) fn purpose(&self) -> Option<&Purpose> {
        self.playout.as_ref().map(|playout| &playout.purpose)
    }

    /// Whether playback has begun since the last call.
    pub(crate) fn take_began(&mut self) -> bool {
        core::mem::take(&mut self.began)
    }

    /// The complete last answer, for "repeat that".
    pub(crate) fn last_answer(&self) -> &str {
        &self.last_answer
    }

    /// The answer that is being given, if it was not heard, or read, to its end.
    pub(crate) fn unheard_answer(&self, cx: &Context) -> Option<String> {
        if self.playout.is_none() && !cx.speaker {
            return self.display.unread(cx);
        }
        let playout = self.playout.as_ref().filter(|playout| playout.purpose == Purpose::Answer)?;
        (playout.heard() != Heard::All).then(|| playout.text())
    }

    /// Whether all was heard that has been said beside an answer.
    pub(crate) fn has_told_asides(&self) -> bool {
        // Without a speaker all of them count as played at once.
        let answer = |playout: &&Playout| playout.purpose == Purpose::Answer && playout.has_speaker;
        self.playout.as_ref().filter(answer).is_some_and(Playout::has_told_asides)
    }

    /// The spoken text that the microphone may have picked up in what it hears since `since_us`: before anything of an answer is
    /// said, it is the last one's, and of both where it was heard before that.
    pub(crate) fn spoken(&self, since_us: u64) -> String {
        match self.playout.as_ref().filter(|playout| playout.has_begun()) {
            Some(playout) if since_us < playout.made_us => [self.last_spoken.as_str(), &playout.spoken()].join(" "),
            Some(playout) => playout.spoken(),
            None => self.last_spoken.clone(),
        }
    }

    /// Adds text from the answer's stream.
    pub(crate) fn push(&mut self, cx: &mut Context, step: usize, text: &str) -> Option<Ended> {
        let pieces = self.markup.push(text);
        self.add(cx, step, pieces);
        self.go_on(cx)
    }

    fn add(&mut self, cx: &mut Context, step: usize, pieces: Vec<TextRun>) {
        for TextRun { text, spoken } in pieces {
            if let Some(playout) = self.playout.as_mut().filter(|_| spoken) {
                playout.push(step, &text);
            }
            self.display.push(cx, &text);
        }
    }

    /// Adds the rest of a text that has ended.
    fn end_text(&mut self, cx: &mut Context) {
        let pieces = self.markup.finish();
        let step = self.playout.as_ref().map_or(0, Playout::step);
        self.add(cx, step, pieces);
    }

    /// Says the text so far, even if it does not end a clause.
    pub(crate) fn flush(&mut self, cx: &mut Context) {
        self.end_text(cx);
        if let Some(playout) = &mut self.playout {
            playout.flush();
            self.go_on(cx);
        }
        self.display.space();
    }

    /// Adds a complete sentence.
    pub(crate) fn push_sentence(&mut self, cx: &mut Context, step: usize, text: &str) -> Option<Ended> {
        self.end_text(cx);
        let (shown, said) = speech_text::clean(text);
        self.playout.as_mut()?.push_sentence(step, &said);
        self.display.space();
        self.display.push(cx, &shown);
        self.go_on(cx)
    }

    /// Adds a sentence that is not part of the answer: it is neither kept nor repeated.
    pub(crate) fn push_aside(&mut self, cx: &mut Context, text: &str, shown: bool) -> Option<Ended> {
        self.end_text(cx);
        let (read, said) = speech_text::clean(text);
        self.playout.as_mut()?.push_aside(&said);
        if shown {
            self.display.space();
            self.display.push(cx, &read);
            self.display.space();
        }
        self.go_on(cx)
    }

    /// Whether any of the answer was heard; without a speaker: whether any was given.
    pub(crate) fn is_heard(&self) -> bool {
        self.playout.as_ref().is_some_and(Playout::is_heard)
    }

    /// Drops the answer so far, none of which was heard. Sentences in addition to it are still said.
    pub(crate) fn begin_anew(&mut self, cx: &mut Context) {
        if let Some(mut playout) = self.playout.take() {
            playout.hush(cx);
            self.display.clear(cx);
            let beside = playout.asides_left(cx);
            self.begin(cx, playout.purpose, playout.turn);
            if !beside.is_empty() {
                self.push_aside(cx, &beside, true);
            }
        }
    }

    /// Sets the follow-ups, which are shown after the answer if there is room.
    pub(crate) fn suggest(&mut self, follow_ups: Vec<String>) {
        self.display.suggest(follow_ups);
    }

    /// Plays a recorded sound, which nothing follows.
    pub(crate) fn play(&mut self, cx: &mut Context, sound: u64, ms: u32) -> Option<Ended> {
        self.playout.as_mut()?.push_sound(sound, ms);
        self.go_on(cx)
    }

    /// Adds a question for consent, said at its place in the answer.
    pub(crate) fn push_question(&mut self, cx: &mut Context, id: u64, text: &str) {
        if let Some(playout) = &mut self.playout {
            playout.push_question(&speech_text::clean(text).1, id);
            self.go_on(cx);
        }
    }

    /// Whether any of a question has been played, or whether it can only be read.
    pub(crate) fn heard_question(&self, id: u64) -> bool {
        self.playout.as_ref().is_some_and(|playout| playout.heard_question(id, playout.readable))
    }

    /// Whether any of a question has been played.
    pub(crate) fn played_question(&self, id: u64) -> bool {
        self.playout.as_ref().is_some_and(|playout| playout.has_speaker && playout.heard_question(id, false))
    }

    pub(crate) fn drop_question(&mut self, cx: &mut Context, id: u64) -> Option<Ended> {
        self.playout.as_mut()?.drop_question(cx, id);
        self.go_on(cx)
    }

    /// What has begun is only spoken, not shown.
    pub(crate) fn say_only(&mut self) {
        self.display.say_only();
    }

    /// Shows separate content. That of a notice may have no voice beside it: all of it is shown, on as many pages as it needs.
    pub(crate) fn show(&mut self, cx: &mut Context, content: Content, priority: Priority) {
        let pages = match content {
            Content::Card { title, text } if priority == Priority::Notice => cards(&title, &text, cx.display),
            content => alloc::vec![content],
        };
        // Without a speaker the display is the only output for the answer.
        let keeps = cx.speaker || matches!(self.purpose(), Some(Purpose::Notice { .. }));
        self.display.show(cx, pages, priority, keeps);
    }

    /// No more text follows.
    pub(crate) fn finish(&mut self, cx: &mut Context) -> Option<Ended> {
        self.end_text(cx);
        self.playout.as_mut()?.finish();
        self.display.complete(cx);
        self.go_on(cx)
    }

    pub(crate) fn handle_spoken(&mut self, cx: &mut Context, speech: u32, clause: u16, us: u64) {
        if let Some(playout) = &mut self.playout {
            playout.handle_spoken(cx, speech, clause, us);
        }
    }

    pub(crate) fn handle_failed(&mut self, cx: &mut Context, speech: u32, clause: u16) -> Option<Ended> {
        if self.playout.as_mut()?.handle_failed(speech, clause) && cx.display.is_none() {
            self.trouble(cx);
        }
        self.go_on(cx)
    }

    pub(crate) fn handle_played(
        &mut self,
        cx: &mut Context,
        speech: u32,
        clauses_done: u16,
        part: f32,
        playback: Playback,
    ) -> Option<Ended> {
        let playout = self.playout.as_mut()?;
        // What was stopped on a hush is no running speech any more.
        if !playout.handle_played(cx, speech, clauses_done, part, playback == Playback::Finished) {
            return None;
        }
        if playback == Playback::Stopped {
            playout.silence(cx);
        }
        self.go_on(cx)
    }

    /// Stops the playback only; what was not handed out yet is still said.
    pub(crate) fn pause(&mut self, cx: &mut Context) {
        if let Some(playout) = &mut self.playout {
            self.last_spoken = playout.spoken();
            playout.hush(cx);
        }
    }

    /// Stops the playback until it is known whether the wearer interrupts: then it is stopped for good, or resumed.
    pub(crate) fn set_aside(&mut self, cx: &mut Context) {
        if let Some(playout) = &mut self.playout {
            self.last_spoken = playout.spoken();
            playout.pause(cx);
        }
    }

    pub(crate) fn is_set_aside(&self) -> bool {
        self.playout.as_ref().is_some_and(Playout::is_paused)
    }

    /// Goes on where it was set aside.
    pub(crate) fn resume(&mut self, cx: &mut Context) -> Option<Ended> {
        self.playout.as_mut()?.resume();
        self.go_on(cx)
    }

    /// Whether what is said ends in a question that was heard, at least in part.
    pub(crate) fn asks(&self) -> bool {
        self.playout.as_ref().is_some_and(Playout::asks)
    }

    /// Stops for good and removes the answer from the display; pages of one that is complete, too.
    pub(crate) fn stop(&mut self, cx: &mut Context) -> Option<Ended> {
        match &self.playout {
            // The pages around it go on.
            Some(playout) if self.display.is_between() => {
                if matches!(playout.purpose, Purpose::Notice { .. }) {
                    cx.release(Priority::Notice);
                }
            }
            None if !self.display.is_paging(cx) => {}
            _ => self.display.clear(cx),
        }
        self.playout.as_ref()?;
        self.pause(cx);
        self.end()
    }

    /// Arms the timer for the device's acknowledgements, or disarms it without a link.
    pub(crate) fn watch(&self, cx: &mut Context, linked: bool) {
        match &self.playout {
            Some(playout) if linked => playout.watch(cx),
            _ => cx.disarm(Timer::SpeechStalled),
        }
    }

    /// The link is back: what can only be read is sent now.
    pub(crate) fn handle_resumed(&mut self, cx: &mut Context) -> Option<Ended> {
        self.watch(cx, true);
        self.display.handle_resumed(cx);
        self.go_on(cx)
    }

    fn go_on(&mut self, cx: &mut Context) -> Option<Ended> {
        let playout = self.playout.as_mut()?;
        self.began |= playout.release(cx, &mut self.last_speech);
        if playout.is_over() {
            return self.end();
        }
        None
    }

    fn end(&mut self) -> Option<Ended> {
        let playout = self.playout.take()?;
        let (text, asks, only_read) = (playout.text(), playout.asks(), playout.is_only_read());
        let is_wordless = playout.purpose == Purpose::Answer && text.is_empty();
        if playout.purpose == Purpose::Answer && !text.is_empty() {
            self.last_answer = text;
        }
        self.last_spoken = playout.spoken();
        let (heard, part) = (playout.heard(), playout.heard_part());
        Some(Ended { heard, part, asks, only_read, is_wordless, purpose: playout.purpose })
    }
}
