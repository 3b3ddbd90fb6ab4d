//! The life cycle of one user's mini-apps: a machine without sockets and clocks.
//!
//! An app is started by its webhook and counts as running once its socket has been acknowledged. A socket that is
//! lost has [`GRACE_MS`] to come back by itself (`@mentra/sdk` dials again after 1 s and 3 s); then the app is
//! started anew, or sleeps until glasses are there again.

use alloc::{
    borrow::ToOwned,
    collections::{BTreeMap, VecDeque},
    format,
    string::String,
    vec::Vec,
};

use serde::{Deserialize, Serialize};

use crate::vocab::{AppEvent, AppKind};

/// How long a start may take from the webhook to the socket's first message: the SDK itself gives up 5 s after it
/// dialled, and the webhook may be tried twice.
pub const START_MS_MAX: u64 = 8_000;
/// How long a lost socket has to come back.
pub const GRACE_MS: u64 = 5_000;
/// How long after the gateway's own start sockets have to come back: the SDK dials again within 3 s of the loss.
pub const RESTART_GRACE_MS: u64 = 8_000;
/// How long an app may take to close its socket after it was told to stop.
pub const STOP_MS_MAX: u64 = 3_000;
/// How long apps run on without any glasses.
pub const ABSENT_MS_MAX: u64 = 60_000;
/// Apps that one user may have running: each has a socket and a task.
pub const RUNNING_MAX: usize = 32;

/// Number of a connection, unique in the process.
pub type Connection = u64;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The webhook was called; its socket is awaited.
    Connecting,
    /// Its socket is acknowledged.
    Running,
    /// The socket is lost and may come back.
    Grace,
    /// It is started again after its socket did not come back.
    Resurrecting,
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
    /// The webhook came to nothing; no socket will come.
    WebhookFailed { package: String, why: String },
    /// Its socket said the right things and was acknowledged.
    Joined { package: String, connection: Connection },
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
    /// Call the webhook with a session request. `afresh`: with a stop request before it.
    Call { package: String, session: String, afresh: bool },
    /// Call the webhook with a stop request.
    CallStop { package: String, session: String, reason: StopReason },
    /// Tell the app that it is stopped, and close its socket with code 1000.
    Close { connection: Connection },
    /// Drop the socket without a word: another one has taken its place.
    Drop { connection: Connection },
    /// Tell the glasses.
    Glasses(AppEventOf),
    /// It runs. Answers whoever waits.
    Started { package: String },
    /// It did not start. Answers whoever waits.
    Failed { package: String, why: String },
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

struct Life {
    card: Card,
    state: State,
    connection: Option<Connection>,
    due_us: Option<u64>,
    released: bool,
}

/// One user's apps. What has stopped is not in it.
#[derive(Default)]
pub struct Lives {
    lives: BTreeMap<String, Life>,
    present: bool,
    /// When everything goes to sleep for want of glasses.
    absent_due_us: Option<u64>,
    out: VecDeque<Output>,
}

fn after(now_us: u64, ms: u64) -> Option<u64> {
    Some(now_us.saturating_add(ms * 1_000))
}

impl Lives {
    /// Something happened.
    pub fn handle_input(&mut self, now_us: u64, input: Input) {
        match input {
            Input::Start(card) => self.start(now_us, card),
            Input::Restore(card) => {
                self.watch_absence(now_us);
                let due_us = after(now_us, RESTART_GRACE_MS);
                let life = Life { state: State::Grace, connection: None, due_us, released: false, card };
                self.tell_started(&life.card);
                self.lives.insert(life.card.package.clone(), life);
            }
            Input::WebhookFailed { package, why } => {
                let starting = self.state(&package);
                if matches!(starting, Some(State::Connecting | State::Resurrecting)) {
                    self.fail(&package, why);
                }
            }
            Input::Joined { package, connection } => self.joined(&package, connection),
            Input::Lost { package, connection } => self.lost(now_us, &package, connection),
            Input::Released { package, connection } => {
                if let Some(life) = self.lives.get_mut(&package).filter(|life| life.connection == Some(connection)) {
                    life.released = true;
                }
            }
            Input::Stop { package, reason } => self.stop(now_us, &package, reason),
            Input::Present(present) => self.present(now_us, present),
        }
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due, on the monotonic clock.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.lives.values().filter_map(|life| life.due_us).chain(self.absent_due_us).min()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now_us: u64) {
        let due: Vec<String> = self
            .lives
            .iter()
            .filter(|(_, life)| life.due_us.is_some_and(|due_us| due_us <= now_us))
            .map(|(package, _)| package.clone())
            .collect();
        for package in due {
            self.overdue(now_us, &package);
        }
        if self.absent_due_us.is_some_and(|due_us| due_us <= now_us) {
            self.absent_due_us = None;
            self.all_asleep();
        }
    }

    /// Where an app is; `None`: stopped.
    pub fn state(&self, package: &str) -> Option<State> {
        self.lives.get(package).map(|life| life.state)
    }

    /// The app of a session, unless it is stopped or stopping.
    pub fn by_session(&self, session: &str) -> Option<&Card> {
        let mut cards = self.lives.values().filter(|life| life.state != State::Stopping).map(|life| &life.card);
        cards.find(|card| card.session == session)
    }

    /// Everything that has not stopped.
    pub fn all(&self) -> impl Iterator<Item = (&Card, State)> {
        self.lives.values().map(|life| (&life.card, life.state))
    }

    /// The connection of a running app.
    pub fn connection(&self, package: &str) -> Option<Connection> {
        self.lives.get(package).filter(|life| life.state == State::Running).and_then(|life| life.connection)
    }

    /// What an app's session is called.
    pub fn session(&self, package: &str) -> Option<&str> {
        self.lives.get(package).map(|life| life.card.session.as_str())
    }

    fn start(&mut self, now_us: u64, card: Card) {
        self.watch_absence(now_us);
        match self.state(&card.package) {
            Some(State::Running) => return self.out.push_back(Output::Started { package: card.package }),
            // Whoever waits is answered when it is there.
            Some(State::Connecting | State::Grace | State::Resurrecting) => return,
            Some(State::Stopping) => {
                // Its old socket goes now: the new session must not be mistaken for it.
                if let Some(connection) = self.lives.get(&card.package).and_then(|life| life.connection) {
                    self.out.push_back(Output::Close { connection });
                }
            }
            Some(State::Dormant) | None => {}
        }
        if self.lives.len() >= RUNNING_MAX && !self.lives.contains_key(&card.package) {
            let why = format!("{RUNNING_MAX} mini-apps are running already; stop one first");
            return self.out.push_back(Output::Failed { package: card.package, why });
        }
        if card.kind == AppKind::Foreground {
            let others = self.lives.values().filter(|life| life.card.kind == AppKind::Foreground);
            let others: Vec<String> = others
                .filter(|life| life.card.package != card.package && life.state != State::Stopping)
                .map(|life| life.card.package.clone())
                .collect();
            for other in others {
                self.stop(now_us, &other, StopReason::System);
            }
        }
        self.out.push_back(Output::Remember(card.clone()));
        self.out.push_back(Output::Glasses(AppEventOf::Starting(card.clone())));
        self.out.push_back(Output::Call {
            package: card.package.clone(),
            session: card.session.clone(),
            afresh: false,
        });
        let life = Life {
            state: State::Connecting,
            connection: None,
            due_us: after(now_us, START_MS_MAX),
            released: false,
            card,
        };
        self.lives.insert(life.card.package.clone(), life);
    }

    fn tell_started(&mut self, card: &Card) {
        self.out.push_back(Output::Glasses(AppEventOf::Starting(card.clone())));
    }

    fn joined(&mut self, package: &str, connection: Connection) {
        let Some(life) = self.lives.get_mut(package).filter(|life| life.state != State::Stopping) else {
            return self.out.push_back(Output::Drop { connection });
        };
        if let Some(old) = life.connection.replace(connection) {
            self.out.push_back(Output::Drop { connection: old });
        }
        life.state = State::Running;
        life.due_us = None;
        life.released = false;
        let package = package.to_owned();
        self.out.push_back(Output::Glasses(AppEventOf::Running(package.clone())));
        self.out.push_back(Output::Started { package });
    }

    fn lost(&mut self, now_us: u64, package: &str, connection: Connection) {
        let Some(life) = self.lives.get_mut(package).filter(|life| life.connection == Some(connection)) else {
            return;
        };
        life.connection = None;
        match life.state {
            State::Stopping => self.gone(package),
            State::Running if life.released => {
                self.out.push_back(Output::Glasses(AppEventOf::Stopped(package.to_owned())));
                self.gone(package);
            }
            State::Running => {
                life.state = State::Grace;
                life.due_us = after(now_us, GRACE_MS);
            }
            _ => {}
        }
    }

    fn stop(&mut self, now_us: u64, package: &str, reason: StopReason) {
        let Some(life) = self.lives.get_mut(package) else {
            return self.out.push_back(Output::Stopped { package: package.to_owned() });
        };
        if life.state == State::Stopping {
            return;
        }
        let was = core::mem::replace(&mut life.state, State::Stopping);
        life.due_us = after(now_us, STOP_MS_MAX);
        let (package, session, connected) =
            (life.card.package.clone(), life.card.session.clone(), life.connection.is_some());
        self.out.push_back(Output::Forget { package: package.clone() });
        self.out.push_back(Output::Glasses(AppEventOf::Stopped(package.clone())));
        if matches!(was, State::Connecting | State::Resurrecting | State::Grace) {
            let why = "it was stopped before it was ready".to_owned();
            self.out.push_back(Output::Failed { package: package.clone(), why });
        }
        if was != State::Dormant {
            self.out.push_back(Output::CallStop { package: package.clone(), session, reason });
        }
        if !connected {
            self.gone(&package);
        }
    }

    /// Its last trace goes.
    fn gone(&mut self, package: &str) {
        self.lives.remove(package);
        self.out.push_back(Output::Forget { package: package.to_owned() });
        self.out.push_back(Output::Stopped { package: package.to_owned() });
    }

    fn fail(&mut self, package: &str, why: String) {
        self.lives.remove(package);
        let package = package.to_owned();
        self.out.push_back(Output::Forget { package: package.clone() });
        self.out.push_back(Output::Glasses(AppEventOf::Stopped(package.clone())));
        self.out.push_back(Output::Failed { package, why });
    }

    fn overdue(&mut self, now_us: u64, package: &str) {
        let present = self.present;
        let Some(life) = self.lives.get_mut(package) else {
            return;
        };
        match life.state {
            State::Connecting | State::Resurrecting => {
                self.fail(package, "its server did not connect in time".to_owned());
            }
            State::Grace if present => {
                life.state = State::Resurrecting;
                life.due_us = after(now_us, START_MS_MAX + STOP_MS_MAX);
                let (package, session) = (life.card.package.clone(), life.card.session.clone());
                self.out.push_back(Output::Call { package, session, afresh: true });
            }
            State::Grace => {
                life.state = State::Dormant;
                life.due_us = None;
                let why = "no glasses are connected".to_owned();
                self.out.push_back(Output::Failed { package: package.to_owned(), why });
            }
            State::Stopping => {
                if let Some(connection) = life.connection.take() {
                    self.out.push_back(Output::Close { connection });
                }
                self.gone(package);
            }
            State::Running | State::Dormant => life.due_us = None,
        }
    }

    fn watch_absence(&mut self, now_us: u64) {
        if !self.present && self.absent_due_us.is_none() {
            self.absent_due_us = after(now_us, ABSENT_MS_MAX);
        }
    }

    fn present(&mut self, now_us: u64, present: bool) {
        if core::mem::replace(&mut self.present, present) == present {
            return;
        }
        if !present {
            if !self.lives.is_empty() {
                self.watch_absence(now_us);
            }
            return;
        }
        self.absent_due_us = None;
        for life in self.lives.values_mut().filter(|life| life.state == State::Dormant) {
            life.state = State::Resurrecting;
            life.due_us = after(now_us, START_MS_MAX);
            let (package, session) = (life.card.package.clone(), life.card.session.clone());
            self.out.push_back(Output::Call { package, session, afresh: false });
        }
    }

    /// Nobody wears glasses: the apps stop, and are started again when somebody does.
    fn all_asleep(&mut self) {
        for life in self.lives.values_mut() {
            if matches!(life.state, State::Stopping | State::Dormant) {
                continue;
            }
            if let Some(connection) = life.connection.take() {
                self.out.push_back(Output::CallStop {
                    package: life.card.package.clone(),
                    session: life.card.session.clone(),
                    reason: StopReason::System,
                });
                self.out.push_back(Output::Close { connection });
            }
            life.state = State::Dormant;
            life.due_us = None;
        }
    }
}

#[cfg(test)]
#[path = "app_life_tests.rs"]
mod tests;
