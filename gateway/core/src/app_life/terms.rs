//! What is told to the life cycle of apps, and what it answers.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::vocab::{AppEvent, AppKind};

/// Number of a connection, unique in the process.
pub type Connection = u64;
/// Number of a call of a webhook, unique among a user's.
pub type CallNumber = u64;

/// What is known of an app when it is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Package.
    pub package: String,
    /// Name for people.
    pub name: String,
    /// How it shares the glasses.
    pub kind: AppKind,
    /// What its session is called; the app gives it back when it dials.
    pub session: String,
}

/// Where an app is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The webhook was called; its socket is awaited.
    Connecting,
    /// Its socket is acknowledged.
    Running,
    /// The socket is lost and may come back.
    Grace,
    /// It ran before and is called again.
    Resurrecting,
    /// It ran before and could not be called; it is tried again.
    Away,
    /// It was told to stop and still has its socket.
    Stopping,
    /// It would run, but no glasses are there.
    Dormant,
}

/// Why an app is stopped, in the webhook's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The wearer or an operator wants it.
    User,
    /// Another app takes its place, or nobody wears the glasses.
    System,
    /// It failed.
    Error,
}

impl StopReason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user_disabled",
            Self::System => "system_stop",
            Self::Error => "error",
        }
    }
}

/// What happens to apps.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Somebody wants it to run.
    Start(Card),
    /// It ran when the gateway stopped.
    Restore(Card),
    /// What came of a call of its webhook. An error: the app has not heard of it, and why.
    Answered { package: String, call: CallNumber, outcome: Result<(), String> },
    /// A socket that was to be its own was turned away: no other one will come.
    TurnedAway { package: String, why: String },
    /// Its socket said the right things and was acknowledged. `resumed`: it goes on where it was; any other one that
    /// comes back belongs to an app that was told of the loss.
    Joined { package: String, connection: Connection, resumed: bool },
    /// Its socket is gone.
    Lost { package: String, connection: Connection },
    /// It hands its session over or shuts down: it will not come back by itself, and should not be called back.
    Released { package: String, connection: Connection },
    /// Somebody wants it to stop.
    Stop { package: String, reason: StopReason },
    /// The user has glasses on, or none any more.
    Present(bool),
}

/// What is to be done.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Call the webhook with a session request. `afresh`: with a stop request before it, after which the socket `old` is
    /// closed, as after any stop: its session gives way to one of the same name and must not dial again.
    Call { package: String, session: String, call: CallNumber, afresh: bool, old: Option<Connection> },
    /// Call the webhook with a stop request.
    CallStop { package: String, session: String, call: CallNumber, reason: StopReason },
    /// Tell the app that it is stopped, and close its socket. `heard`: it has taken its stop by webhook, and must not be
    /// made to stop a second time.
    Close { connection: Connection, heard: bool },
    /// Drop the socket without a word.
    Drop { connection: Connection },
    /// Tell the glasses.
    Glasses(AppEventOf),
    /// It runs. Answers whoever waits.
    Started { package: String },
    /// It did not start. Answers whoever waits. `again_ms`: when it is tried again by itself.
    Failed { package: String, why: String, again_ms: Option<u64> },
    /// It waits for glasses. Answers whoever waits.
    Asleep { package: String },
    /// It has stopped. Answers whoever waits.
    Stopped { package: String },
    /// Remember it beyond a restart.
    Remember(Card),
    /// Do not.
    Forget { package: String },
}

/// The life's part of [`AppEvent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppEventOf {
    /// It is being started.
    Starting(Card),
    /// It can draw.
    Running(String),
    /// It is gone.
    Stopped(String),
}

impl From<AppEventOf> for AppEvent {
    fn from(event: AppEventOf) -> Self {
        match event {
            AppEventOf::Starting(Card { package, name, kind, .. }) => Self::Starting { package, name, kind },
            AppEventOf::Running(package) => Self::Running { package },
            AppEventOf::Stopped(package) => Self::Stopped { package },
        }
    }
}
