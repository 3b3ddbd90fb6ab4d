//! The gateway's interface to the apps: each user's task answers, and publishes a snapshot that can be read at once.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gateway_core::{
    app_lifecycle,
    vocab::{AppConnection, AppState, AppStopReason},
};
use tokio::{sync::oneshot, time::timeout};
use tokio_util::sync::CancellationToken;
use tools::in_flight::InFlight;

use super::{
    app_settings::SettingsLocks,
    feed::Feeds,
    glasses::Glasses,
    installed::Installed,
    message::AppsMessage,
    pending_outcomes::PendingOutcomes,
    settings::Location,
    sound::Sounds,
    speeches::Speeches,
    tasks::{Common, Tasks},
};
use crate::{
    roster::{Present, Roster},
    speech::language::Languages,
    store::{Kind, Store},
    telemetry::LogThrottle,
};

/// All users' apps, and their shared services. One per process.
pub struct Host {
    /// The users' tasks, which decide about the life of apps.
    pub(super) tasks: Arc<Tasks>,
    pub(super) store: Store,
    /// Operations that an erasure of a user ends.
    pub in_flight: InFlight,
    pub(super) roster: Arc<Roster>,
    /// Installed apps.
    pub installed: Arc<Installed>,
    pub(super) sounds: Sounds,
    /// The location of the wearer reported to apps.
    pub(super) location: Option<Location>,
    /// Events of live glasses for apps.
    pub feeds: Feeds,
    /// Which languages are spoken, and which the recogniser knows.
    pub(super) languages: Languages,
    pub(super) speeches: Arc<Speeches>,
    /// What they have asked for and were not told the end of.
    pub(super) pending_outcomes: PendingOutcomes,
    /// Limits log lines about sockets that are refused.
    pub(super) refused: LogThrottle,
    /// Serialises changes of a user's settings of an app.
    pub(super) settings_locks: SettingsLocks,
    /// Set when the gateway stops.
    pub(super) stop: CancellationToken,
    next_connection: AtomicU64,
}

impl Host {
    /// Initial state: nothing runs.
    pub fn new(
        store: Store,
        in_flight: InFlight,
        roster: Arc<Roster>,
        installed: Arc<Installed>,
        sounds: Sounds,
        (languages, location): (Languages, Option<Location>),
        stop: CancellationToken,
    ) -> Arc<Self> {
        let speeches = Arc::new(Speeches::default());
        let common = Common {
            store: store.clone(),
            roster: roster.clone(),
            installed: installed.clone(),
            speeches: speeches.clone(),
            stop: stop.clone(),
        };
        Arc::new(Self {
            tasks: Tasks::new(common),
            pending_outcomes: PendingOutcomes::new(store.clone()),
            store,
            in_flight,
            roster,
            installed,
            sounds,
            location,
            feeds: Feeds::default(),
            languages,
            speeches,
            refused: LogThrottle::default(),
            settings_locks: SettingsLocks::default(),
            stop,
            next_connection: AtomicU64::new(1),
        })
    }

    /// Sets where apps connect; known once the port is bound.
    pub(crate) fn set_url(&self, url: String) {
        self.tasks.set_url(url);
    }

    /// Runs until the gateway and every user's task have stopped.
    pub async fn run(self: Arc<Self>) {
        self.tasks.stopped().await;
    }

    /// Starts an app and waits until it can draw; returns whether it had to be started.
    ///
    /// # Errors
    /// Why it does not run, as text.
    pub async fn start(&self, user: &str, package: &str, deadline: Duration) -> Result<bool, String> {
        let app = self.installed.get_for(user, package).ok_or_else(|| match self.installed.get(package) {
            Some(_) => format!("the mini-app {package} is not for {user}"),
            None => format!("no mini-app {package} is installed"),
        })?;
        let (reply, answer) = oneshot::channel();
        let asked = async {
            self.tasks.send(user, AppsMessage::Start { app, reply }).await;
            answer.await
        };
        match timeout(deadline, asked).await {
            Ok(Ok(started)) => {
                if started == Ok(true) {
                    self.settled(user).await;
                }
                started
            }
            Ok(Err(_)) => Err("the gateway is stopping".to_owned()),
            Err(_) => Err("it was not ready in time".to_owned()),
        }
    }

    /// Stops an app and waits until it is gone; returns whether it ran.
    pub async fn stop(&self, user: &str, package: &str, reason: AppStopReason) -> bool {
        let (reply, gone) = oneshot::channel();
        let stop = AppsMessage::Stop { package: package.to_owned(), reason, reply };
        if !self.tasks.tell(user, stop).await {
            return false;
        }
        // A little more than the machine gives the app. For an app that does not run, the answer is immediate.
        let answer = timeout(Duration::from_millis(app_lifecycle::STOP_MS_MAX * 2), gone).await;
        answer.ok().and_then(Result::ok).unwrap_or(true)
    }

    /// Whether an app runs for this user, or has run: then it has a session name.
    pub(crate) fn has_run_for(&self, package: &str, user: &str) -> bool {
        let named = || self.store.disk().row(Kind::AppSessionNames, user, package.as_bytes());
        self.tasks.snapshot(user).state(package).is_some() || named().is_ok_and(|name| name.is_some())
    }

    /// The users for whom an app runs or is starting.
    pub fn running(&self, package: &str) -> Vec<(String, AppState)> {
        let users = self.tasks.snapshots().into_iter();
        users.filter_map(|(user, apps)| Some((user, apps.state(package)?))).collect()
    }

    /// The apps that are not stopped, by package.
    pub fn states(&self, user: &str) -> BTreeMap<String, AppState> {
        self.tasks.snapshot(user).states()
    }

    /// Glasses of this user have connected. Returns once they know the apps, and the apps know them.
    pub(crate) async fn glasses_came(&self, user: &str, device: &str, glasses: Glasses) {
        let (reply, known) = oneshot::channel();
        self.tasks.send(user, AppsMessage::GlassesCame { device: device.to_owned(), glasses, reply }).await;
        drop(known.await);
    }

    /// The glasses have disconnected.
    pub(crate) async fn glasses_went(&self, user: &str, device: &str) {
        let (reply, known) = oneshot::channel();
        self.tasks.tell(user, AppsMessage::GlassesWent { device: device.to_owned(), reply }).await;
        drop(known.await);
    }

    /// The glasses of this user that the apps know, first those that are meant where one pair is asked for.
    pub(super) fn glasses_of(&self, user: &str) -> Vec<(String, Present, Glasses)> {
        let apps = self.tasks.snapshot(user);
        let known = |(device, present): (String, Present)| {
            let glasses = apps.glasses.get(&device)?.clone();
            Some((device, present, glasses))
        };
        self.roster.glasses_of(user).into_iter().filter_map(known).collect()
    }

    /// Whether the apps know of glasses of this user.
    #[cfg(test)]
    pub(crate) fn has_glasses(&self, user: &str) -> bool {
        !self.tasks.snapshot(user).glasses.is_empty()
    }

    /// The battery level of a device has changed, which apps are told of the glasses that they know.
    pub fn battery(&self, user: &str, device: &str, percent: u8, charging: bool) {
        let glasses = self.roster.glasses_of(user);
        if glasses.first().is_some_and(|(first, _)| first == device) {
            self.tasks.try_tell(user, AppsMessage::Battery { percent, charging });
        }
    }

    pub(super) fn next_connection(&self) -> AppConnection {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }
}
