//! The life cycle of one user's mini-apps: a machine without sockets and clocks.
//!
//! An app is started by its webhook and counts as running once its socket has been acknowledged. Who waits for the start is
//! answered when the webhook has answered, too: an app may not know its session before. A lost socket has
//! [`GRACE_MS`] to reconnect (`@mentra/sdk` reconnects after 1 s and 3 s). An app that reconnects and resumes its
//! session continues. Any other one has its webhook called again: its SDK has told the app that it was disconnected,
//! and most apps clean up then. An app that ran and cannot be called is retried with increasing intervals, until it is
//! stopped.

use alloc::{
    borrow::ToOwned,
    collections::{BTreeMap, VecDeque},
    format,
    string::String,
    vec::Vec,
};

mod lifecycle;

use crate::{
    driver::Machine,
    input::AppInput,
    output::AppOutput,
    timers::AppTimer,
    vocab::{AppCard, AppConnection, AppEvent, AppKind, AppState, AppStopReason, Timestamp, WebhookCall},
};
use lifecycle::AppLifecycle;

/// Longest time of a start, from the webhook to the socket's first message: the SDK itself gives up 5 s after it
/// starts to connect, and the webhook may be tried twice.
pub const START_MS_MAX: u64 = 8_000;
/// Time that the webhook has to answer when its socket is there: version 3 of the SDK takes note of its session when it is
/// connected, and answers then.
pub const SETTLE_MS: u64 = 500;
/// Time that a lost socket has to reconnect.
pub const GRACE_MS: u64 = 5_000;
/// Time that sockets have to reconnect after the gateway's own start: the SDK reconnects within 3 s of the loss.
pub const RESTART_GRACE_MS: u64 = 4_000;
/// Longest time of a stop that the app does not answer.
pub const STOP_MS_MAX: u64 = 3_000;
/// Time that an app has to close its socket after it has answered the stop.
pub const CLOSE_MS: u64 = 200;
/// First interval between retries of an app that ran and could not be called; doubled with each failure.
pub const RETRY_MS_MIN: u64 = 1_000;
/// Longest interval between two retries: a restarted app server waits at most this long.
pub const RETRY_MS_MAX: u64 = 60_000;
/// How long apps keep running without any glasses.
pub const ABSENT_MS_MAX: u64 = 60_000;
/// Running apps of one user: each has a socket and a task.
pub const RUNNING_MAX: usize = 32;

/// One user's apps, except stopped ones.
#[derive(Default)]
pub struct AppLifecycles {
    lives: BTreeMap<String, AppLifecycle>,
    present: bool,
    /// When all apps become dormant because no glasses are connected.
    absent_due_us: Option<u64>,
    calls: WebhookCall,
    out: VecDeque<AppOutput>,
}

fn starting(card: &AppCard) -> AppEvent {
    AppEvent::Starting { package: card.package.clone(), name: card.name.clone(), kind: card.kind }
}

fn after(now_us: u64, ms: u64) -> Option<u64> {
    Some(now_us.saturating_add(ms * 1_000))
}

impl AppLifecycles {
    /// The state of an app; `None`: stopped.
    pub fn state(&self, package: &str) -> Option<AppState> {
        self.lives.get(package).map(|life| life.state)
    }

    /// Whether an app runs, and knows its session: its webhook has answered, too, or has had the time for it.
    pub fn is_ready(&self, package: &str) -> bool {
        self.lives.get(package).is_some_and(|life| life.state == AppState::Running && !life.is_settling())
    }

    /// The app of a session, unless it is stopped or stopping.
    pub fn by_session(&self, session: &str) -> Option<&AppCard> {
        let mut cards = self.lives.values().filter(|life| life.state != AppState::Stopping).map(|life| &life.card);
        cards.find(|card| card.session == session)
    }

    /// All apps that have not stopped.
    pub fn all(&self) -> impl Iterator<Item = (&AppCard, AppState)> {
        self.lives.values().map(|life| (&life.card, life.state))
    }

    /// The connection of a running app.
    pub fn connection(&self, package: &str) -> Option<AppConnection> {
        self.lives.get(package).filter(|life| life.state == AppState::Running).and_then(|life| life.connection)
    }

    /// The name of an app's session.
    pub fn session(&self, package: &str) -> Option<&str> {
        self.lives.get(package).map(|life| life.card.session.as_str())
    }

    fn start(&mut self, now_us: u64, card: AppCard) {
        self.watch_absence(now_us);
        let package = card.package.clone();
        match self.state(&package) {
            Some(AppState::Running) if self.is_ready(&package) => {
                return self.out.push_back(AppOutput::Started { package });
            }
            // The callers that wait are answered when it knows its session.
            Some(AppState::Running | AppState::Connecting | AppState::Grace | AppState::Resurrecting) => return,
            Some(AppState::Away) => {
                // A start by request is a reason to retry now: its server may just have been repaired.
                if let Some(life) = self.lives.get_mut(&package) {
                    life.failures = 0;
                }
                return self.call(now_us, &package, false);
            }
            Some(AppState::Stopping) => {
                // Its old socket is closed now. The new session has the same name, so that the old one must not
                // reconnect.
                if let Some(connection) = self.lives.get(&package).and_then(|life| life.connection) {
                    self.out.push_back(AppOutput::Close { connection, heard: true });
                }
                self.out.push_back(AppOutput::Stopped { package: package.clone() });
            }
            Some(AppState::Dormant) | None => {}
        }
        if self.lives.len() >= RUNNING_MAX && !self.lives.contains_key(&package) {
            let why = format!("{RUNNING_MAX} mini-apps are running already; stop one first");
            return self.out.push_back(AppOutput::Failed { package, why, again_ms: None });
        }
        if card.kind == AppKind::Foreground {
            let others = self.lives.values().filter(|life| life.card.kind == AppKind::Foreground);
            let others: Vec<String> = others
                .filter(|life| life.card.package != package && (life.state != AppState::Stopping || life.sleeps))
                .map(|life| life.card.package.clone())
                .collect();
            for other in others {
                self.stop(now_us, &other, AppStopReason::System);
            }
        }
        self.out.push_back(AppOutput::Remember(card.clone()));
        self.out.push_back(AppOutput::Glasses(starting(&card)));
        self.lives.insert(package.clone(), AppLifecycle::new(card, false));
        self.call(now_us, &package, false);
    }

    fn call(&mut self, now_us: u64, package: &str, afresh: bool) {
        let Some(life) = self.lives.get_mut(package) else { return };
        self.calls += 1;
        life.state = if life.ran { AppState::Resurrecting } else { AppState::Connecting };
        life.calling = Some(self.calls);
        life.anew = false;
        life.due_us = after(now_us, START_MS_MAX + if afresh { STOP_MS_MAX } else { 0 });
        let (package, session) = (package.to_owned(), life.card.session.clone());
        let old = life.connection.filter(|_| afresh);
        self.out.push_back(AppOutput::Call { package, session, call: self.calls, afresh, old });
    }

    fn answered(&mut self, now_us: u64, package: &str, call: WebhookCall, outcome: Result<(), String>) {
        let Some(life) = self.lives.get_mut(package).filter(|life| life.calling == Some(call)) else { return };
        life.calling = None;
        match outcome {
            outcome if life.state == AppState::Stopping => {
                life.heard = outcome.is_ok();
                life.due_us = after(now_us, if life.heard { CLOSE_MS } else { 0 });
            }
            Err(why) if life.is_called() => self.failed(now_us, package, why),
            // Only its socket tells whether it runs.
            _ if life.state == AppState::Running => self.settled(package),
            _ => {}
        }
    }

    /// It knows its session now.
    fn settled(&mut self, package: &str) {
        let Some(life) = self.lives.get_mut(package) else { return };
        (life.calling, life.due_us) = (None, None);
        self.out.push_back(AppOutput::Started { package: package.to_owned() });
    }

    fn joined(&mut self, now_us: u64, package: &str, connection: AppConnection, resumed: bool) {
        let Some(life) = self.lives.get_mut(package).filter(|life| life.state != AppState::Stopping) else {
            return self.out.push_back(AppOutput::Drop { connection });
        };
        match life.connection.replace(connection) {
            Some(old) if resumed => self.out.push_back(AppOutput::Drop { connection: old }),
            // An app of the same name may use the old socket: if both reconnected, they would displace each other.
            Some(old) => self.out.push_back(AppOutput::Close { connection: old, heard: true }),
            None => {}
        }
        // It reconnected by itself, so that its SDK has lost the previous socket, whether that was noticed here or not.
        let back = !life.is_called() && life.calling.is_none();
        life.state = AppState::Running;
        life.due_us = None;
        life.released = false;
        life.ran = true;
        life.failures = 0;
        life.anew = back && !resumed;
        if core::mem::take(&mut life.hidden) {
            self.out.push_back(AppOutput::Glasses(starting(&life.card)));
        }
        if life.anew && self.present {
            return self.call(now_us, package, true);
        }
        if life.calling.is_some() {
            life.due_us = after(now_us, SETTLE_MS);
        }
        let is_settling = life.is_settling();
        self.out.push_back(AppOutput::Glasses(AppEvent::Running { package: package.to_owned() }));
        if !is_settling {
            self.settled(package);
        }
    }

    fn lost(&mut self, now_us: u64, package: &str, connection: AppConnection) {
        let Some(life) = self.lives.get_mut(package).filter(|life| life.connection == Some(connection)) else {
            return;
        };
        life.connection = None;
        match life.state {
            AppState::Stopping => self.gone(now_us, package),
            AppState::Running if life.released => {
                let waited_for = life.is_settling();
                self.out.push_back(AppOutput::Glasses(AppEvent::Stopped { package: package.to_owned() }));
                if waited_for {
                    let (package, why) = (package.to_owned(), "it ended before it was ready".to_owned());
                    self.out.push_back(AppOutput::Failed { package, why, again_ms: None });
                }
                self.gone(now_us, package);
            }
            AppState::Running => {
                life.state = AppState::Grace;
                life.due_us = after(now_us, GRACE_MS);
            }
            _ => {}
        }
    }

    fn stop(&mut self, now_us: u64, package: &str, reason: AppStopReason) {
        let Some(life) = self.lives.get_mut(package) else {
            return self.out.push_back(AppOutput::Stopped { package: package.to_owned() });
        };
        // One that was becoming dormant is no longer wanted.
        if life.state == AppState::Stopping && !core::mem::take(&mut life.sleeps) {
            return;
        }
        let waited_for = life.is_called() || life.is_settling() || life.state == AppState::Grace;
        let package = package.to_owned();
        self.out.push_back(AppOutput::Forget { package: package.clone() });
        self.out.push_back(AppOutput::Glasses(AppEvent::Stopped { package: package.clone() }));
        if waited_for {
            let why = "it was stopped before it was ready".to_owned();
            self.out.push_back(AppOutput::Failed { package: package.clone(), why, again_ms: None });
        }
        self.tell_stop(now_us, &package, reason);
    }

    fn tell_stop(&mut self, now_us: u64, package: &str, reason: AppStopReason) {
        let Some(life) = self.lives.get_mut(package) else { return };
        let was = core::mem::replace(&mut life.state, AppState::Stopping);
        if was == AppState::Stopping {
            return;
        }
        life.due_us = after(now_us, STOP_MS_MAX);
        // A server that does not answer in time counts as told.
        life.heard = true;
        let connected = life.connection.is_some();
        if !matches!(was, AppState::Dormant | AppState::Away) {
            self.calls += 1;
            life.calling = Some(self.calls);
            let (package, session) = (package.to_owned(), life.card.session.clone());
            self.out.push_back(AppOutput::CallStop { package, session, call: self.calls, reason });
        }
        if !connected {
            self.gone(now_us, package);
        }
    }

    /// Removes the app, or makes it dormant if it was stopped for that.
    fn gone(&mut self, now_us: u64, package: &str) {
        if let Some(life) = self.lives.get_mut(package)
            && core::mem::take(&mut life.sleeps)
        {
            self.sleep(package);
            if self.present {
                self.call(now_us, package, false);
            }
            return;
        }
        self.lives.remove(package);
        self.out.push_back(AppOutput::Forget { package: package.to_owned() });
        self.out.push_back(AppOutput::Stopped { package: package.to_owned() });
    }

    /// A call failed. An app that never ran is given up, any other is retried.
    fn failed(&mut self, now_us: u64, package: &str, why: String) {
        let Some(life) = self.lives.get_mut(package) else { return };
        if let Some(connection) = life.connection.take() {
            self.out.push_back(AppOutput::Drop { connection });
        }
        life.calling = None;
        let again_ms = life.ran.then(|| (RETRY_MS_MIN << life.failures.min(16)).min(RETRY_MS_MAX));
        life.failures = life.failures.saturating_add(1);
        life.hidden = true;
        life.state = AppState::Away;
        life.due_us = again_ms.and_then(|ms| after(now_us, ms));
        let package = package.to_owned();
        if again_ms.is_none() {
            self.lives.remove(&package);
            self.out.push_back(AppOutput::Forget { package: package.clone() });
        }
        self.out.push_back(AppOutput::Glasses(AppEvent::Stopped { package: package.clone() }));
        self.out.push_back(AppOutput::Failed { package, why, again_ms });
    }

    fn overdue(&mut self, now_us: u64, package: &str) {
        let present = self.present;
        let Some(life) = self.lives.get_mut(package) else {
            return;
        };
        match life.state {
            AppState::Connecting | AppState::Resurrecting => {
                self.failed(now_us, package, "its server did not connect in time".to_owned());
            }
            AppState::Grace if present => self.call(now_us, package, true),
            AppState::Away if present => self.call(now_us, package, false),
            AppState::Grace | AppState::Away => self.sleep(package),
            AppState::Stopping => {
                let heard = life.heard;
                if let Some(connection) = life.connection.take() {
                    self.out.push_back(AppOutput::Close { connection, heard });
                }
                self.gone(now_us, package);
            }
            AppState::Running => self.settled(package),
            AppState::Dormant => life.due_us = None,
        }
    }

    /// The app becomes dormant: it waits for glasses.
    fn sleep(&mut self, package: &str) {
        let Some(life) = self.lives.get_mut(package) else { return };
        life.state = AppState::Dormant;
        life.due_us = None;
        life.calling = None;
        self.out.push_back(AppOutput::Asleep { package: package.to_owned() });
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
        let wanted = |life: &&AppLifecycle| life.anew || life.state == AppState::Dormant;
        let wanted: Vec<(String, bool)> =
            self.lives.values().filter(wanted).map(|life| (life.card.package.clone(), life.anew)).collect();
        for (package, afresh) in wanted {
            self.call(now_us, &package, afresh);
        }
        // Glasses that connect are told of all apps that are being called.
        self.lives.values_mut().filter(|life| life.is_called()).for_each(|life| life.hidden = false);
    }

    /// No glasses are connected: the apps stop, and are started again when some are.
    fn all_asleep(&mut self, now_us: u64) {
        let awake = |life: &&AppLifecycle| !matches!(life.state, AppState::Stopping | AppState::Dormant);
        let awake: Vec<(String, bool)> = self
            .lives
            .values()
            .filter(awake)
            .map(|life| (life.card.package.clone(), life.connection.is_some()))
            .collect();
        for (package, connected) in awake {
            if let (true, Some(life)) = (connected, self.lives.get_mut(&package)) {
                life.sleeps = true;
                life.anew = false;
                self.tell_stop(now_us, &package, AppStopReason::System);
            } else {
                self.sleep(&package);
            }
        }
    }
}

impl Machine for AppLifecycles {
    type Input = AppInput;
    type Output = AppOutput;
    type Timer = AppTimer;

    fn handle_input(&mut self, now: Timestamp, input: AppInput) {
        debug_assert!(self.out.is_empty(), "an input came before all outputs were taken");
        let now_us = now.mono_us;
        match input {
            AppInput::Start(card) => self.start(now_us, card),
            AppInput::Restore(card) => {
                self.watch_absence(now_us);
                let mut life = AppLifecycle::new(card, true);
                life.due_us = after(now_us, RESTART_GRACE_MS);
                self.lives.insert(life.card.package.clone(), life);
            }
            AppInput::Answered { package, call, outcome } => self.answered(now_us, &package, call, outcome),
            AppInput::TurnedAway { package, why } => {
                if self.lives.get(&package).is_some_and(AppLifecycle::is_called) {
                    self.failed(now_us, &package, why);
                }
            }
            AppInput::Joined { package, connection, resumed } => self.joined(now_us, &package, connection, resumed),
            AppInput::Lost { package, connection } => self.lost(now_us, &package, connection),
            AppInput::Released { package, connection } => {
                let life = self.lives.get_mut(&package).filter(|life| life.connection == Some(connection));
                // The SDK releases a session that is called again before it takes it up anew. One that was taken up is given
                // up for good, also if its webhook has not answered yet.
                if let Some(life) = life.filter(|life| life.state == AppState::Running) {
                    life.released = true;
                }
            }
            AppInput::Stop { package, reason } => self.stop(now_us, &package, reason),
            AppInput::Present(present) => self.present(now_us, present),
        }
    }

    fn poll_output(&mut self) -> Option<AppOutput> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<(u64, AppTimer)> {
        let lives = self.lives.values().filter_map(|life| Some((life.due_us?, AppTimer::App(life.state))));
        lives.chain(self.absent_due_us.map(|at_us| (at_us, AppTimer::Absent))).min_by_key(|(at_us, _)| *at_us)
    }

    fn handle_timeout(&mut self, now: Timestamp) {
        debug_assert!(self.out.is_empty(), "a timeout came before all outputs were taken");
        let now_us = now.mono_us;
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
            self.all_asleep(now_us);
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod presence_tests;
