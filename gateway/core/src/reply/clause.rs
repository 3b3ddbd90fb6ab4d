//! A clause: the unit in which speech is synthesised, sent and acknowledged.

use alloc::string::String;

use crate::script;

#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) step: usize,
    pub(super) text: String,
    pub(super) kind: Kind,
    /// Instead of text: a recorded sound and the index of its piece.
    pub(super) sound: Option<(u64, u16)>,
    pub(super) duration_us: Option<u64>,
    pub(super) state: State,
}

impl Clause {
    /// The part of it, 0 to 1, that was played, of one that may still be played.
    pub(super) fn played_part(&self) -> f32 {
        match self.state {
            State::Partly(part) => part,
            State::Waiting | State::Played | State::Cut(_) | State::Failed => 0.0,
        }
    }

    /// Whether any of it was heard; `readable`: also where it can only be read.
    pub(super) fn is_heard(&self, readable: bool) -> bool {
        match self.state {
            State::Played => true,
            State::Partly(part) | State::Cut(part) => part > 0.0,
            State::Failed => readable,
            State::Waiting => false,
        }
    }

    /// Whether a sentence ends with it.
    pub(super) fn ends_sentence(&self) -> bool {
        script::ends_sentence(&self.text)
    }

    pub(super) fn ends_in_question(&self) -> bool {
        script::ends_in_question(&self.text)
    }
}

/// What a clause is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Answer,
    /// A question for consent, with its id: not part of the answer.
    Question(u64),
    /// Speech in addition to the answer, not part of it either.
    Aside,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    /// Not handed out, or not acknowledged.
    Waiting,
    /// This part of it was played, 0 to 1; playback continues, or goes on there once it is handed out again.
    Partly(f32),
    Played,
    /// Cut off for good after this part of it, 0 to 1.
    Cut(f32),
    Failed,
}
