//! Ledger of one speech: what was sent, what was played, which clauses are complete.

use super::CLAUSES_MAX;

/// What an acknowledgement completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    /// Number of the speech, unique in the session.
    pub speech: u32,
    /// The turn that it answers.
    pub turn: u32,
    /// How much of it was played, in microseconds.
    pub played_us: u64,
    /// Clauses that were played to their end by this acknowledgement, in order.
    pub completed: Vec<u16>,
    /// The whole speech was played; reported once.
    pub finished: bool,
}

/// Position within a speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Number of the speech, unique in the session.
    pub speech: u32,
    /// The turn that it answers.
    pub turn: u32,
    /// Clauses before the position, in the caller's numbers from 0: played to their end, or skipped because they had no
    /// sound.
    pub clauses_done: u16,
    /// The clause that is being played; `None` where everything that was sent of whole clauses has been played.
    pub clause: Option<u16>,
    /// How much of that clause was played, in microseconds.
    pub clause_played_us: u64,
    /// How much of that clause was sent so far, in microseconds.
    pub clause_sent_us: u64,
    /// How much of the speech was played.
    pub played_us: u64,
    /// How much of it was sent.
    pub sent_us: u64,
}

struct Sent {
    clause: u16,
    start_us: u64,
    end_us: u64,
    /// No more packets of this clause follow.
    ended: bool,
}

pub(super) struct Ledger {
    speech: u32,
    turn: u32,
    clauses: Vec<Sent>,
    /// Clauses reported as complete.
    reported: usize,
    sent_us: u64,
    played_us: u64,
    /// The last packet of the speech was sent.
    all_sent: bool,
    finished: bool,
}

impl Ledger {
    pub(super) fn new(speech: u32, turn: u32) -> Self {
        Self {
            speech,
            turn,
            clauses: Vec::new(),
            reported: 0,
            sent_us: 0,
            played_us: 0,
            all_sent: false,
            finished: false,
        }
    }

    pub(super) fn speech(&self) -> u32 {
        self.speech
    }

    pub(super) fn turn(&self) -> u32 {
        self.turn
    }

    pub(super) fn sent_us(&self) -> u64 {
        self.sent_us
    }

    pub(super) fn played_us(&self) -> u64 {
        self.played_us
    }

    pub(super) fn finished(&self) -> bool {
        self.finished
    }

    /// Whether one more clause fits in addition to `queued` clauses that were not sent.
    pub(super) fn has_room(&self, queued: usize) -> bool {
        self.clauses.len() + queued < CLAUSES_MAX
    }

    /// Notes a packet of `length_us`.
    pub(super) fn sent(&mut self, clause: u16, length_us: u64, ended: bool, all: bool) {
        let start_us = self.sent_us;
        self.sent_us += length_us;
        self.all_sent = all;
        match self.clauses.last_mut().filter(|last| !last.ended) {
            Some(last) => {
                last.end_us = self.sent_us;
                last.ended = ended;
            }
            None => self.clauses.push(Sent { clause, start_us, end_us: self.sent_us, ended }),
        }
    }

    /// Marks that nothing more will be sent.
    pub(super) fn close(&mut self) {
        self.finished = true;
    }

    pub(super) fn played(&mut self, played_us: u64) -> Option<Played> {
        let played_us = played_us.min(self.sent_us);
        if played_us <= self.played_us {
            return None;
        }
        self.played_us = played_us;
        let open = self.clauses.get(self.reported..).unwrap_or_default();
        let completed: Vec<u16> =
            open.iter().take_while(|sent| sent.ended && sent.end_us <= played_us).map(|sent| sent.clause).collect();
        self.reported += completed.len();
        let finished = self.all_sent && played_us == self.sent_us && !self.finished;
        self.finished |= finished;
        Some(Played { speech: self.speech, turn: self.turn, played_us, completed, finished })
    }

    pub(super) fn clause_at(&self, at_us: u64) -> Option<u16> {
        self.sent_at(at_us).map(|sent| sent.clause)
    }

    pub(super) fn position(&self) -> Position {
        let current = self.sent_at(self.played_us);
        let next = || self.clauses.last().map_or(0, |sent| sent.clause.saturating_add(1));
        Position {
            speech: self.speech,
            turn: self.turn,
            clauses_done: current.map_or_else(next, |sent| sent.clause),
            clause: current.map(|sent| sent.clause),
            clause_played_us: current.map_or(0, |sent| self.played_us - sent.start_us),
            clause_sent_us: current.map_or(0, |sent| sent.end_us - sent.start_us),
            played_us: self.played_us,
            sent_us: self.sent_us,
        }
    }

    fn sent_at(&self, at_us: u64) -> Option<&Sent> {
        let next = self.clauses.partition_point(|sent| sent.ended && sent.end_us <= at_us);
        self.clauses.get(next)
    }
}
