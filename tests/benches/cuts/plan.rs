//! When a link breaks, for how long, and how it comes back.

use std::time::Duration;

use firmware_sim::network::{Conditions, Profile};
use firmware_sim::random::Random;
use firmware_sim::transport::Scheme;

use super::stage::{Asked, POLISH, SHELVE, SLOW_MS, WIPE};

/// When in a spoken turn the link may break, in milliseconds from the first sample: the answer is over by then.
const TURN_MS: u64 = 7_000;
/// When it may break while an answer is owed, in milliseconds from when the sentence was understood: the answer is longer.
const OWED_MS: u64 = 400;
/// The first so many sentences have answers that are longer than what is sent ahead of the ear.
const LONG_ANSWERS: usize = 2;

/// How long links stay broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Not longer than glasses keep their sound.
    Kept,
    /// Longer, but the session waits.
    Long,
    /// Longer than the session waits.
    Expired,
}

/// What goes on when the link breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Anywhere in a spoken turn: this sentence, up to the end of its answer.
    Spoken(usize),
    /// The answer to this sentence is owed: it was understood, and its answer not heard.
    Owed(usize),
    /// The wearer is asked.
    Question,
    /// A tool takes its time.
    SlowTool,
    /// A mini-app carries out a call.
    App,
    /// The microphone is muted.
    Muted,
}

impl State {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spoken(_) => "spoken",
            Self::Owed(_) => "owed",
            Self::Question => "question",
            Self::SlowTool => "slow tool",
            Self::App => "app",
            Self::Muted => "muted",
        }
    }

    /// The sentence that is said.
    pub fn sentence(self) -> Option<usize> {
        match self {
            Self::Spoken(sentence) | Self::Owed(sentence) => Some(sentence),
            Self::Question | Self::SlowTool | Self::App | Self::Muted => None,
        }
    }

    /// The request that is typed.
    pub fn asked(self) -> Option<Asked> {
        match self {
            Self::Question => Some(WIPE),
            Self::SlowTool => Some(POLISH),
            Self::App => Some(SHELVE),
            Self::Spoken(_) | Self::Owed(_) | Self::Muted => None,
        }
    }
}

/// What happens soon after the return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    Nothing,
    /// The link breaks again, so long after the attempt to come back began: perhaps in the middle of the handshake or of the
    /// replay.
    Cut(Duration),
    /// The address changes, so long after the welcome: in the middle of the replay. Over WebSocket nothing happens.
    Move(Duration),
}

/// When the link breaks, for how long, and how it comes back.
#[derive(Clone, Debug)]
pub struct Plan {
    pub state: State,
    /// From the moment at which the state holds.
    pub cut: Duration,
    pub gap: Duration,
    pub over: Scheme,
    /// Over what the glasses come back after a second cut.
    pub over_then: Scheme,
    pub after: After,
    /// Whether a question is answered while the link is lost.
    pub answers_in_gap: bool,
    /// Whether nothing tells the gateway that the link is broken.
    pub is_silent: bool,
}

impl Plan {
    /// `gap_ms`: least and most; `sentences`: how many there are; `silent`: percent of the cuts of which nothing tells the
    /// gateway.
    pub fn drawn(random: &mut Random, group: Group, gap_ms: [u64; 2], (sentences, silent): (u64, u64)) -> Self {
        let sentence = random.below(sentences) as usize;
        let (state, within_ms) = match random.below(10) {
            _ if group == Group::Expired => (State::Owed(sentence % LONG_ANSWERS), OWED_MS),
            0..=5 => (State::Spoken(sentence), TURN_MS),
            6 => (State::Question, 1_500),
            7 => (State::SlowTool, SLOW_MS - 500),
            8 => (State::App, 1_500),
            _ => (State::Muted, 1_000),
        };
        let soon = Duration::from_millis(random.below(300));
        let after = match random.below(5) {
            // A return in the middle would be in time.
            0 if group != Group::Expired => After::Cut(soon),
            1 => After::Move(soon),
            _ => After::Nothing,
        };
        Self {
            state,
            cut: Duration::from_millis(random.below(within_ms)),
            gap: Duration::from_millis(gap_ms[0] + random.below(gap_ms[1] - gap_ms[0])),
            over: scheme(random),
            over_then: scheme(random),
            after,
            answers_in_gap: random.below(2) == 0,
            // A session begins to wait when the gateway knows of the loss.
            is_silent: random.below(100) < silent && group != Group::Expired,
        }
    }
}

/// One of both transports.
pub fn scheme(random: &mut Random) -> Scheme {
    if random.below(2) == 0 { Scheme::Wss } else { Scheme::Quic }
}

/// The network with this one-way delay; `outage`: nothing passes.
pub fn network(delay: Duration, outage: bool) -> Profile {
    Profile::steady(Conditions { delay, outage, ..Conditions::default() })
}
