//! Playout: at most [`CLAUSES_AHEAD_MAX`] clauses are handed out ahead of playback, and what was heard is tracked.

use alloc::{string::String, vec::Vec};

use super::clause::{Clause, Kind, State};
use crate::{
    agent::history::Heard,
    context::Context,
    input::AnnouncementId,
    limits::{CLAUSE_US_MAX, CLAUSES_AHEAD_MAX, SOUND_MS_MAX, SOUND_PIECE_MS, STALL_SLACK_US, SYNTHESIS_US_MAX},
    output::{Output, Stage},
    script,
    speech_text::sentences::Splitter,
    spoken_length,
    timers::Timer,
    vocab::Turn,
};

/// Length of a clause that is not synthesised yet: slow speech takes 80 ms per letter.
const US_PER_LETTER: u64 = 80_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To give the answer of the turn.
    Answer,
    /// To make an announcement.
    Notice {
        /// The announcement whose end is reported.
        id: AnnouncementId,
    },
    /// To ask for consent to a call from outside, and nothing else until it is settled.
    Question,
    /// To repeat an answer, or to report a failure outside of any turn.
    Aside,
}

/// Something that is said, from its first clause to its last. It takes several speeches if playback is stopped and
/// continues.
#[derive(Debug)]
pub(super) struct Playout {
    pub(super) purpose: Purpose,
    pub(super) turn: Option<Turn>,
    /// When it was made, before anything of it was said.
    pub(super) made_us: u64,
    splitter: Splitter,
    step: usize,
    pub(super) clauses: Vec<Clause>,
    /// The running speech and the index of its first clause.
    pub(super) speech: Option<u32>,
    pub(super) base: usize,
    pub(super) released: usize,
    complete: bool,
    pub(super) last_told: bool,
    /// The first clause that is said again if the playback, which is paused, goes on.
    pub(super) paused_at: Option<usize>,
    begun: bool,
    heard_marked: bool,
    /// Whether the wearer can read what cannot be said.
    pub(super) readable: bool,
    pub(super) has_speaker: bool,
    /// The device has stopped the sound by itself: nothing more of it is said.
    pub(super) is_silenced: bool,
}

impl Playout {
    pub(super) fn new(cx: &Context, purpose: Purpose, turn: Option<Turn>) -> Self {
        Self {
            purpose,
            turn,
            made_us: cx.now_us(),
            splitter: Splitter::default(),
            step: 0,
            clauses: Vec::new(),
            speech: None,
            base: 0,
            released: 0,
            complete: false,
            last_told: false,
            paused_at: None,
            begun: false,
            heard_marked: false,
            readable: cx.display.is_some(),
            has_speaker: cx.speaker,
            is_silenced: false,
        }
    }

    /// The request to the model whose text came last.
    pub(super) fn step(&self) -> usize {
        self.step
    }

    /// Adds text of a stream.
    pub(super) fn push(&mut self, step: usize, text: &str) {
        if step != self.step {
            self.flush();
            self.step = step;
        }
        let clauses = self.splitter.push(text);
        self.add(clauses, Kind::Answer);
    }

    /// Adds a complete sentence.
    pub(super) fn push_sentence(&mut self, step: usize, text: &str) {
        self.flush();
        self.step = step;
        self.add(whole(text), Kind::Answer);
    }

    /// Adds a question for consent. What waits of it already gives way, so that it is said once.
    pub(super) fn push_question(&mut self, text: &str, id: u64) {
        self.flush();
        let waiting = self.clauses.split_off(self.released.min(self.clauses.len()));
        self.clauses.extend(waiting.into_iter().filter(|clause| clause.kind != Kind::Question(id)));
        self.add(whole(text), Kind::Question(id));
    }

    /// Adds a sentence that is not part of the answer.
    pub(super) fn push_aside(&mut self, text: &str) {
        self.flush();
        self.add(whole(text), Kind::Aside);
    }

    /// The additional sentences that were not heard to the end. Without a speaker all of them: the display is cleared.
    pub(super) fn asides_left(&self, cx: &Context) -> String {
        let left = |clause: &&Clause| clause.kind == Kind::Aside && (clause.state != State::Played || !cx.speaker);
        let texts: Vec<&str> = self.clauses.iter().filter(left).map(|clause| clause.text.as_str()).collect();
        texts.join(" ")
    }

    /// Whether any of the answer was heard.
    pub(super) fn is_heard(&self) -> bool {
        self.clauses.iter().any(|clause| clause.kind == Kind::Answer && clause.is_heard(false))
    }

    /// Whether the answer so far ends in a question, of which something was heard or which can only be read.
    pub(super) fn asks(&self) -> bool {
        let mut back = self.clauses.iter().rev().filter(|clause| clause.kind == Kind::Answer);
        let Some(last) = back.next().filter(|last| last.ends_in_question()) else {
            return false;
        };
        let mut sentence = back.take_while(|clause| !clause.ends_sentence());
        last.is_heard(self.readable) || sentence.any(|clause| clause.is_heard(self.readable))
    }

    /// No more text follows.
    pub(super) fn finish(&mut self) {
        self.flush();
        self.complete = true;
    }

    /// Ends the unfinished clause.
    pub(super) fn flush(&mut self) {
        let clauses = self.splitter.finish();
        self.add(clauses, Kind::Answer);
    }

    /// Whether each clause beside the answer was played.
    pub(super) fn has_told_asides(&self) -> bool {
        self.clauses.iter().all(|clause| clause.kind != Kind::Aside || clause.state == State::Played)
    }

    fn add(&mut self, clauses: Vec<String>, kind: Kind) {
        let step = self.step;
        self.clauses.extend(clauses.into_iter().map(|text| Clause {
            step,
            text,
            kind,
            sound: None,
            duration_us: None,
            state: State::Waiting,
        }));
    }

    /// Adds a recorded sound, in pieces; nothing follows it.
    pub(super) fn push_sound(&mut self, sound: u64, ms: u32) {
        let mut left_ms = ms.min(SOUND_MS_MAX);
        let mut piece = 0;
        while left_ms > 0 {
            let piece_ms = left_ms.min(SOUND_PIECE_MS);
            left_ms -= piece_ms;
            self.clauses.push(Clause {
                step: self.step,
                text: String::new(),
                kind: Kind::Aside,
                sound: Some((sound, piece)),
                duration_us: Some(u64::from(piece_ms) * 1_000),
                state: State::Waiting,
            });
            piece += 1;
        }
        self.complete = true;
    }

    /// Whether any of it was handed out and is not settled.
    pub(super) fn is_speaking(&self) -> bool {
        self.settled() < self.released
    }

    /// Whether everything was said.
    pub(super) fn is_over(&self) -> bool {
        self.complete && self.paused_at.is_none() && self.settled() >= self.clauses.len()
    }

    /// Hands out as many clauses as may be ahead. Returns whether playback begins with them.
    pub(super) fn release(&mut self, cx: &mut Context, next_speech: &mut u32) -> bool {
        if !cx.speaker {
            // It is read, which nobody can before it is sent.
            if !cx.linked {
                return false;
            }
            for clause in &mut self.clauses {
                clause.state = State::Played;
            }
            self.released = self.clauses.len();
            return false;
        }
        if self.is_silenced {
            self.leave_unsaid();
            return false;
        }
        if self.is_paused() {
            return false;
        }
        let was_silent = !self.is_speaking();
        while self.released < self.clauses.len() && self.released - self.settled() < CLAUSES_AHEAD_MAX {
            let last = self.complete && self.released + 1 == self.clauses.len();
            let Some(clause) = self.clauses.get(self.released).cloned() else { break };
            self.hand_out(cx, next_speech, clause, last);
            self.released += 1;
        }
        if self.complete
            && self.released == self.clauses.len()
            && let Some(speech) = self.speech.filter(|_| !self.last_told)
        {
            self.last_told = true;
            cx.push(Output::EndSpeech { speech, clause: self.next_clause() });
        }
        self.watch(cx);
        was_silent && self.is_speaking()
    }

    fn hand_out(&mut self, cx: &mut Context, next_speech: &mut u32, next: Clause, last: bool) {
        let speech = *self.speech.get_or_insert_with(|| {
            *next_speech = next_speech.saturating_add(1);
            *next_speech
        });
        if let Some(turn) = self.turn.filter(|_| !self.begun) {
            cx.mark(turn, Stage::FirstClause);
        }
        self.begun = true;
        self.last_told |= last;
        let (clause, from) = (self.next_clause(), next.played_part());
        cx.push(match next.sound {
            Some((sound, piece)) => Output::Play { speech, clause, sound, piece, from, last },
            None => Output::Speak { turn: self.turn, speech, clause, from, text: next.text, last },
        });
    }

    /// Number, within its speech, of the clause that is handed out next.
    fn next_clause(&self) -> u16 {
        u16::try_from(self.released - self.base).unwrap_or(u16::MAX)
    }

    pub(super) fn handle_spoken(&mut self, cx: &mut Context, speech: u32, clause: u16, us: u64) {
        if let Some(clause) = self.clause(speech, clause) {
            clause.duration_us = Some(us.min(CLAUSE_US_MAX));
            self.watch(cx);
        }
    }

    pub(super) fn handle_failed(&mut self, speech: u32, clause: u16) -> bool {
        let Some(clause) = self.clause(speech, clause) else {
            return false;
        };
        clause.state = match clause.state {
            State::Waiting => State::Failed,
            // A playback report may have named it as the next clause before it failed.
            State::Partly(part) if part > 0.0 => State::Cut(part),
            State::Partly(_) => State::Failed,
            State::Played | State::Cut(_) | State::Failed => return false,
        };
        true
    }

    /// Handles a playback report. Returns whether it was about the running speech.
    pub(super) fn handle_played(
        &mut self,
        cx: &mut Context,
        speech: u32,
        clauses_done: u16,
        part: f32,
        finished: bool,
    ) -> bool {
        if self.speech != Some(speech) {
            return false;
        }
        let done = if finished && self.last_told {
            self.released
        } else {
            self.released.min(self.base.saturating_add(usize::from(clauses_done)))
        };
        let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
        let heard_any = done > self.base || part > 0.0;
        for clause in self.clauses.iter_mut().take(done).skip(self.base) {
            if matches!(clause.state, State::Waiting | State::Partly(_)) {
                clause.state = State::Played;
            }
        }
        if done < self.released
            && let Some(clause) = self.clauses.get_mut(done)
            && matches!(clause.state, State::Waiting | State::Partly(_))
        {
            // One that goes on after a pause begins a little before the place up to which it was heard.
            clause.state = State::Partly(part.max(clause.played_part()));
        }
        if let Some(turn) = self.turn.filter(|_| heard_any && !self.heard_marked) {
            self.heard_marked = true;
            cx.mark(turn, Stage::Heard);
        }
        true
    }

    /// Whether any of a question has been played; `readable`: also where it can only be read.
    pub(super) fn heard_question(&self, id: u64, readable: bool) -> bool {
        self.clauses.iter().any(|clause| clause.kind == Kind::Question(id) && clause.is_heard(readable))
    }

    /// Whether it can only be read: there is no speaker, or nothing was played.
    pub(super) fn is_only_read(&self) -> bool {
        let is_silent = !self.has_speaker || self.clauses.iter().all(|clause| clause.state == State::Failed);
        self.readable && is_silent
    }

    /// How much of the answer was heard.
    pub(super) fn heard(&self) -> Heard {
        let everything = self.complete
            && self.clauses.iter().all(|clause| {
                clause.kind != Kind::Answer
                    || clause.state == State::Played
                    || (clause.state == State::Failed && self.readable)
            });
        if everything {
            return Heard::All;
        }
        let mut steps: Vec<String> = Vec::new();
        for clause in self.clauses.iter().filter(|clause| clause.kind == Kind::Answer) {
            let text = match clause.state {
                State::Played => clause.text.as_str(),
                State::Failed if self.readable => clause.text.as_str(),
                State::Partly(part) | State::Cut(part) => spoken_length::words_spoken(&clause.text, part),
                State::Waiting | State::Failed => "",
            };
            if text.is_empty() {
                continue;
            }
            while steps.len() <= clause.step {
                steps.push(String::new());
            }
            if let Some(step) = steps.get_mut(clause.step) {
                script::append(step, text);
            }
        }
        Heard::Part(steps)
    }

    /// The heard part of the time or of a sound, 0 to 1; 1 if there was nothing to hear.
    pub(super) fn heard_part(&self) -> f32 {
        let (mut all, mut heard) = (0.0_f32, 0.0_f32);
        for clause in &self.clauses {
            // Lengths are far below the limit up to which an f32 counts exactly.
            let length = if clause.sound.is_some() { 1 } else { spoken_length::of(&clause.text) };
            let length = f32::from(u16::try_from(length).unwrap_or(u16::MAX));
            all += length;
            heard += length
                * match clause.state {
                    State::Played => 1.0,
                    State::Failed if self.readable && clause.sound.is_none() => 1.0,
                    State::Partly(part) | State::Cut(part) => part,
                    State::Waiting | State::Failed => 0.0,
                };
        }
        if all > 0.0 { heard / all } else { 1.0 }
    }

    /// The text of the answer so far.
    pub(super) fn text(&self) -> String {
        joined(self.clauses.iter().filter(|clause| clause.kind == Kind::Answer))
    }

    /// Whether any of it was handed out.
    pub(super) fn has_begun(&self) -> bool {
        self.released > 0
    }

    /// The text that was handed out, questions included.
    pub(super) fn spoken(&self) -> String {
        joined(self.clauses.iter().take(self.released))
    }

    /// Arms the timer by which the device must have acknowledged what was handed out.
    pub(super) fn watch(&self, cx: &mut Context) {
        let settled = self.settled();
        if settled >= self.released {
            cx.disarm(Timer::SpeechStalled);
            return;
        }
        let length_us: u64 = self
            .clauses
            .iter()
            .take(self.released)
            .skip(settled)
            .map(|clause| {
                let guess_us = || US_PER_LETTER * u64::from(spoken_length::of(&clause.text));
                clause.duration_us.unwrap_or_else(guess_us)
            })
            .sum();
        // The length of a clause is known once its sound is sent: of a later one, once this one has been played.
        let is_made = self.clauses.get(settled).is_some_and(|clause| clause.duration_us.is_some());
        let slack_us = if is_made { STALL_SLACK_US } else { SYNTHESIS_US_MAX };
        let at_us = cx.now_us() + length_us + slack_us;
        cx.arm_at(Timer::SpeechStalled, at_us);
    }

    fn clause(&mut self, speech: u32, clause: u16) -> Option<&mut Clause> {
        if self.speech != Some(speech) {
            return None;
        }
        let index = self.base.checked_add(usize::from(clause))?;
        self.clauses.get_mut(index).filter(|_| index < self.released)
    }

    /// Number of clauses, from the first, that need no more waiting.
    pub(super) fn settled(&self) -> usize {
        self.clauses
            .iter()
            .position(|clause| matches!(clause.state, State::Waiting | State::Partly(_)))
            .unwrap_or(self.clauses.len())
    }
}

fn joined<'a>(clauses: impl Iterator<Item = &'a Clause>) -> String {
    let mut text = String::new();
    clauses.for_each(|clause| script::append(&mut text, &clause.text));
    text
}

/// The clauses of a complete text.
fn whole(text: &str) -> Vec<String> {
    let mut own = Splitter::default();
    let mut clauses = own.push(text);
    clauses.extend(own.finish());
    clauses
}

#[cfg(test)]
#[path = "playout_tests.rs"]
mod tests;
