//! A clause: the piece in which speech is made, sent and acknowledged.

use alloc::string::String;

/// A piece of speech.
#[derive(Clone, Debug)]
pub(super) struct Clause {
    pub(super) step: usize,
    pub(super) text: String,
    pub(super) kind: Kind,
    /// A piece of this sound, and which one, in place of the text.
    pub(super) sound: Option<(u64, u16)>,
    pub(super) duration_us: Option<u64>,
    pub(super) state: State,
}

/// What a clause is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Answer,
    /// A question for consent, by its number: no part of the answer.
    Question(u64),
    /// Said beside the answer, and no part of it either.
    Aside,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    /// Not handed out, or not acknowledged.
    Waiting,
    /// So much of it was played and no more is coming, or it is going on.
    Partly(f32),
    Played,
    /// Cut off for good after so much of it.
    Cut(f32),
    Failed,
}
