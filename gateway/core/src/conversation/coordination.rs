//! What the machines' events mean for one another: who stops whom, and what comes next.

use alloc::{string::String, sync::Arc, vec::Vec};

use super::{
    Conversation,
    stopping::{NOTICE_HEARD_PART, Stop},
};
use crate::{
    agent::{self, Spoken, phrases},
    floor::{
        self, Activity, Utterance,
        commands::{self, Command, Translate},
    },
    link::Link,
    output::{Chime, Output, TurnOutcome},
    reply::{Ended, Purpose},
    script,
    vocab::{CommandMatch, ListeningState, ModelEvent, Priority, Transcript, Turn, VoiceFact},
};

impl Conversation {
    pub(super) fn voice(&mut self, fact: VoiceFact) {
        // A wake phrase is heard some time after its sound has come, and is heard but once.
        let is_late = matches!(fact, VoiceFact::WakeHeard { .. });
        if self.muted || !(self.link.is_up() || is_late) {
            return;
        }
        let activity = self.activity();
        let event = self.floor.handle_voice(&mut self.cx, &activity, fact);
        self.heard(event);
    }

    pub(super) fn transcript(&mut self, transcript: Transcript) {
        let activity = self.activity();
        let event = self.floor.handle_transcript(&mut self.cx, &activity, transcript);
        self.heard(event);
    }

    pub(super) fn transcript_begun(&mut self, utterance: u32, revision: u16) {
        self.floor.handle_transcript_begun(&mut self.cx, utterance, revision);
    }

    pub(super) fn transcript_failed(&mut self, utterance: u32, revision: u16) {
        let activity = self.activity();
        let event = self.floor.handle_transcript_failed(&mut self.cx, &activity, utterance, revision);
        self.heard(event);
    }

    pub(super) fn command_matched(
        &mut self,
        utterance: u32,
        revision: u16,
        matched: CommandMatch,
        vocabulary: Option<Arc<[String]>>,
    ) {
        // Before what follows, which may be a second pass.
        if let Some(vocabulary) = vocabulary {
            self.cx.push(Output::SetVocabulary(vocabulary));
        }
        let activity = self.activity();
        let event = self.floor.handle_command_matched(&mut self.cx, &activity, (utterance, revision), matched);
        self.heard(event);
    }

    pub(super) fn partial_due(&mut self) {
        let activity = self.activity();
        self.floor.handle_partial_due(&mut self.cx, &activity);
    }

    pub(super) fn followed(&mut self, followed: bool) {
        let activity = self.activity();
        self.floor.note_followed(&mut self.cx, &activity, followed);
    }

    pub(super) fn talk_released(&mut self) {
        let activity = self.activity();
        let event = self.floor.handle_talk_released(&mut self.cx, &activity);
        self.heard(event);
    }

    pub(super) fn pause_over(&mut self) {
        let activity = self.activity();
        let event = self.floor.decide(&mut self.cx, &activity);
        self.heard(event);
    }

    pub(super) fn utterance_stalled(&mut self) {
        let activity = self.activity();
        let event = self.floor.handle_stalled(&mut self.cx, &activity);
        self.heard(event);
    }

    pub(super) fn transcript_missing(&mut self) {
        let activity = self.activity();
        let event = self.floor.handle_transcript_missing(&mut self.cx, &activity);
        self.heard(event);
    }

    pub(super) fn voice_confirmed(&mut self) {
        let activity = self.activity();
        let event = self.floor.handle_voice_confirmed(&activity);
        self.heard(event);
    }

    pub(super) fn heard(&mut self, event: Option<floor::Event>) {
        match event {
            None | Some(floor::Event::Nothing) => {}
            Some(floor::Event::VoiceOver | floor::Event::Interrupt) if self.is_older_than_reply(self.cx.now_us()) => {}
            Some(floor::Event::VoiceOver) => self.voice_over(),
            Some(floor::Event::Interrupt) => self.interrupted(),
            Some(floor::Event::Lost { addressed }) => {
                // What interrupts is addressed; behind anything else, and before a question for consent, the answer goes on.
                if addressed && self.reply.is_set_aside() && self.approvals.standing().is_none() {
                    self.stop(Stop::Replaced);
                }
                self.cx.push(Output::UtteranceLost { addressed });
                self.not_understood(addressed);
            }
            Some(floor::Event::Said(said)) => self.said(said),
        }
    }

    /// What was said over an announcement tells whether it has served its purpose.
    pub(super) fn settle_notice(&mut self, heard: bool) {
        if let Some(id) = self.cut_notice.take() {
            self.cx.push(Output::Announced { id, heard });
        }
    }

    fn said(&mut self, said: Utterance) {
        self.settle_notice(said.cancels);
        if self.approvals.standing().is_some() {
            let settled = self.answered_by_voice(&said);
            if settled.is_some() {
                self.interpreter.note_addressed(said.utterance);
                self.approval_settled(settled);
                return;
            }
            // Only a wake word or a cancel word gets past a question.
            if !said.woken && !said.cancels {
                self.put_again();
                return;
            }
        }
        let expecting = self.floor.is_expecting(self.cx.now_us());
        // Talk ends no translation that waits to be read out.
        let is_stoppable = if said.request.is_some() { self.can_be_stopped() } else { self.is_answering() };
        let going_on = is_stoppable || said.over_turn || expecting;
        let is_older = self.is_older(said.started_us);
        if said.cancels && going_on {
            self.interpreter.note_addressed(said.utterance);
            // What it was to end was ended by hand meanwhile, and the wearer has called since.
            if said.started_us < self.by_hand_us && !self.is_busy() {
                return;
            }
            if is_older || self.is_void_stop(said.started_us) {
                self.floor.end_call(&mut self.cx);
                return self.forget_waiting();
            }
            // Its first words may have ended what it was said over: translations that wait behind that are not meant.
            let has_ended_it = said.over_turn && !self.is_answering() && !self.reply.is_translation();
            self.stop(if has_ended_it { Stop::Called } else { Stop::Dismissed });
            self.floor.close_ear(&mut self.cx);
            return;
        }
        if said.request.is_some() {
            self.interpreter.note_addressed(said.utterance);
        } else if self.is_end_of_translation(&said) {
            self.interpreter.note_addressed(said.utterance);
            return self.translate(Translate::End);
        }
        let Some(request) = said.request.filter(|request| !self.is_void_answer(request, said.started_us)) else {
            return;
        };
        if !commands::has_words(&request) {
            return self.called(is_older, said.last_voice_us);
        }
        if self.is_speaking() && !said.woken && !self.reply.asks() && said.listens {
            return;
        }
        let spoken = Spoken {
            started_us: said.started_us,
            last_voice_us: said.last_voice_us,
            waited_us: said.waited_us,
            decided_us: said.decided_us,
            is_command: matches!(said.matched, Some(CommandMatch::Exact | CommandMatch::Closed)),
        };
        match commands::command(&request) {
            Some(Command::Mute) => self.mute(true, true),
            _ if is_older => self.wait_for_typed(request, spoken),
            Some(Command::Repeat) => self.repeat(),
            Some(Command::Unmute) => self.tell_of_unmuting(true),
            Some(Command::Translate(wanted)) => self.translate(wanted),
            Some(Command::Cancel) if self.interpreter.is_on() => self.translate(Translate::End),
            Some(Command::Cancel) | None => {
                if said.woken || !self.reopen_turn(&request, spoken) {
                    self.start_turn(request, Some(spoken));
                    self.cx.chime(Chime::Understood);
                }
                self.cx.name_turn(self.agent.turn());
            }
        }
    }

    /// Who has said it is asked to say it again; nobody else hears anything.
    fn not_understood(&mut self, addressed: bool) {
        if !addressed {
            return;
        }
        if !self.is_busy() {
            self.reply.begin(&mut self.cx, Purpose::Aside, None);
            self.reply.trouble(&mut self.cx);
            return self.say_all(phrases::NOT_UNDERSTOOD);
        }
        // An earlier sentence, while a later one is answered; of several it is told once.
        if !self.afterwards.iter().any(|text| text == phrases::NOT_UNDERSTOOD) {
            self.tell_when_free(phrases::NOT_UNDERSTOOD.into());
        }
    }

    /// A bare wake phrase. One that the glasses repeat ends nothing that is newer: the request behind it waits for that.
    fn called(&mut self, is_older: bool, ended_us: u64) {
        self.floor.called_until(&self.cx, ended_us);
        if is_older {
            return self.floor.open_ear(&mut self.cx);
        }
        self.stop(Stop::Replaced);
        self.call();
    }

    /// The wearer wants attention and has not said for what.
    pub(super) fn call(&mut self) {
        self.floor.open_ear(&mut self.cx);
        self.cx.chime(Chime::Attentive);
    }
}

/// Turns and what is said in them.
impl Conversation {
    pub(super) fn start_turn(&mut self, request: String, spoken: Option<Spoken>) {
        self.stop(Stop::Replaced);
        self.microphone.handle_request(spoken.is_some());
        let times = spoken.map(|spoken| (spoken.started_us, spoken.decided_us));
        let pending = self.floor.take_request(&mut self.cx, &request, times);
        self.agent.start(&mut self.cx, request, pending, spoken);
        let turn = self.agent.turn();
        self.reply.begin(&mut self.cx, Purpose::Answer, turn);
    }

    /// The request to a model was answered locally.
    pub(super) fn answered_on_box(&mut self, turn: Turn, events: Vec<ModelEvent>) {
        self.agent.handle_on_box(turn);
        for event in events {
            let events = self.agent.handle_model(&mut self.cx, turn, event);
            self.answer(events);
        }
    }

    pub(super) fn answer(&mut self, events: Vec<agent::Event>) {
        for event in events {
            let ended = match event {
                agent::Event::Text { step, text } => self.reply.push(&mut self.cx, step, &text),
                agent::Event::Pause => {
                    self.reply.flush(&mut self.cx);
                    None
                }
                agent::Event::Trouble => {
                    self.reply.trouble(&mut self.cx);
                    None
                }
                agent::Event::Say { step, text } => self.reply.push_sentence(&mut self.cx, step, &text),
                agent::Event::Aside { text, shown } => self.reply.push_aside(&mut self.cx, &text, shown),
                agent::Event::Afterwards(text) => {
                    self.tell_when_free(text);
                    None
                }
                agent::Event::Asks(text, pending) => {
                    self.floor.note_question(&mut self.cx, text, pending);
                    None
                }
                agent::Event::Show(content) => {
                    self.reply.show(&mut self.cx, content, Priority::Assistant);
                    None
                }
                agent::Event::Complete => {
                    // A call that failed meanwhile has no use for consent any more.
                    self.approvals.cancel_all(&mut self.cx);
                    let follow_ups = self.agent.take_follow_ups();
                    self.reply.suggest(follow_ups);
                    self.reply.finish(&mut self.cx)
                }
            };
            self.ended(ended);
        }
    }

    /// The tools have changed and are to count at once.
    pub(super) fn apply_tools(&mut self) {
        let heard = self.reply.is_heard();
        if self.agent.apply_tools(&mut self.cx, heard) {
            self.reply.begin_anew(&mut self.cx);
        }
    }

    /// Sound was played, or will not be; `ended`: what was said to its end with it.
    pub(super) fn played(&mut self, ended: Option<Ended>) {
        self.question_played();
        self.ended(ended);
    }

    /// Something was said to its end.
    pub(super) fn ended(&mut self, ended: Option<Ended>) {
        let Some(ended) = ended else {
            return;
        };
        match ended.purpose {
            Purpose::Answer => {
                if ended.is_wordless {
                    self.confirm();
                }
                self.agent.complete(&mut self.cx, &ended.heard);
                self.floor.answer_heard(&mut self.cx, ended.asks);
            }
            Purpose::Notice { id } => {
                self.notice_only_read = ended.only_read;
                self.cx.push(Output::Announced { id, heard: ended.part >= NOTICE_HEARD_PART });
            }
            Purpose::Aside => self.floor.question_heard(&mut self.cx),
            Purpose::Question => {}
        }
    }

    pub(super) fn repeat(&mut self) {
        self.stop(Stop::Replaced);
        let again = match self.reply.last_answer() {
            "" => String::from(phrases::NOTHING_TO_REPEAT),
            answer => String::from(answer),
        };
        self.aside(&again);
        self.floor.answer_heard(&mut self.cx, script::ends_in_question(&again));
    }

    /// Says something that belongs to no turn.
    pub(super) fn aside(&mut self, text: &str) {
        self.reply.begin(&mut self.cx, Purpose::Aside, None);
        self.say_all(text);
    }

    /// Says the whole text of what has begun.
    pub(super) fn say_all(&mut self, text: &str) {
        let ended = self.reply.push_sentence(&mut self.cx, 0, text);
        self.ended(ended);
        let ended = self.reply.finish(&mut self.cx);
        self.ended(ended);
    }

    /// The device plays nothing of what it was given: the answer is over as it is.
    pub(super) fn speech_stalled(&mut self) {
        // Where nothing comes of it at all, the link has stalled, or was lost before there was sound of the answer: it goes
        // on when that is back, or is told.
        let is_up = self.link.is_up();
        if !is_up || self.link.is_silent(&self.cx) {
            return self.reply.watch(&mut self.cx, is_up);
        }
        let Some(ended) = self.reply.stop(&mut self.cx) else {
            return;
        };
        match ended.purpose {
            Purpose::Answer => {
                self.approvals.cancel_all(&mut self.cx);
                self.reply.trouble(&mut self.cx);
                self.agent.interrupt(&mut self.cx, ended.heard, TurnOutcome::Failed);
            }
            Purpose::Notice { .. } | Purpose::Question | Purpose::Aside => self.ended(Some(ended)),
        }
    }
}

/// What the machines need to know of one another.
impl Conversation {
    pub(super) fn is_busy(&self) -> bool {
        self.agent.turn().is_some() || self.reply.is_active()
    }

    /// Whether something is said or prepared, or pages of an answer that is complete are shown.
    pub(super) fn is_answering(&self) -> bool {
        self.is_busy() || self.reply.display.is_paging(&self.cx)
    }

    /// Whether anything goes on that the wearer may want to end: also translations that wait to be read out. A question for
    /// consent goes before those.
    pub(super) fn can_be_stopped(&self) -> bool {
        self.is_answering() || (self.interpreter.has_unsaid() && self.approvals.standing().is_none())
    }

    /// Whether the assistant speaks, or has paused until it is known whether somebody interrupts it.
    pub(super) fn is_speaking(&self) -> bool {
        self.reply.is_speaking() || self.reply.is_set_aside()
    }

    pub(super) fn activity(&self) -> Activity {
        Activity {
            busy: self.is_busy(),
            speaking: self.is_speaking(),
            asked: self.approvals.standing().is_some(),
            held: self.agent.is_held(),
            spoken: match self.floor.echo_since_us() {
                None if self.cx.echo_cancelled => String::new(),
                since_us => commands::plain(&self.reply.spoken(since_us.unwrap_or(u64::MAX))),
            },
        }
    }

    /// After every input: what follows from the new state of things.
    pub(super) fn settle(&mut self) {
        self.floor.report_settled(&mut self.cx);
        self.watch_hold();
        if !self.floor.is_hearing() {
            self.settle_notice(false);
        }
        self.settle_question();
        self.settle_telling();
        self.begin_waiting();
        self.tell_afterwards();
        self.tell_translations();
        self.ask_again();
        self.settle_restart();
        self.announce_next();
        self.ask_next();
        self.tell_of_microphone();
        let is_speaking = self.is_speaking();
        self.floor.note_speaking(&self.cx, is_speaking);
        if self.reply.take_began() {
            let activity = self.activity();
            self.floor.speech_began(&mut self.cx, &activity);
        }
        let listening = self.listening_now();
        if listening != self.listening && self.link != Link::Fresh {
            self.listening = listening;
            self.watch_silence(listening);
            if self.link.is_up() {
                let turn = self.agent.turn();
                self.cx.push(Output::Listening { turn, state: listening });
            }
        }
    }

    fn listening_now(&self) -> ListeningState {
        if self.muted {
            ListeningState::Muted
        } else if self.reply.is_speaking() {
            ListeningState::Speaking
        } else if self.agent.is_thinking() && !self.agent.is_held() {
            ListeningState::Thinking
        } else if self.floor.is_hearing() {
            ListeningState::Hearing
        } else if self.floor.is_expecting(self.cx.now_us()) {
            ListeningState::Attentive
        } else {
            ListeningState::Idle
        }
    }
}
