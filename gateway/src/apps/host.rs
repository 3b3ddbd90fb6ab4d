//! All users' apps: their life cycles and what hangs on them, driven by time and by whoever starts and stops.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gateway_core::{
    app_life::{self, Lives},
    driver::Driver,
    input::AppInput,
    vocab::{AppCard, AppConnection, AppEvent, AppState, AppStopReason},
};
use serde_json::Value;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tools::{apps::manifest::App, in_flight::InFlight};

use super::{
    feed::Feeds,
    glasses::{self, Glasses},
    installed::Installed,
    photo::Photos,
    sound::Sounds,
    speech::Speeches,
};
use crate::{clock, config::Location, roster::Roster, runtime::sleep_until, store::Store};

/// Messages that may wait for one app's socket beside its streams.
pub const WAITING_MAX: usize = 64;
/// Sockets that may be open without having said who they are: each has 5 s to do so.
const NEWCOMERS_MAX: usize = 64;

/// What the host tells a socket's task.
#[derive(Debug)]
pub enum ToApp {
    /// Send this.
    Json(Value),
    /// Say that the app is stopped, and close.
    Close {
        /// Its own stop has run, and must not run again.
        heard: bool,
    },
    /// Go without a word.
    Drop,
}

/// A user and a package.
pub(super) type Key = (String, String);

/// One user's apps and what hangs on them.
pub(super) struct User {
    pub(super) driver: Driver<Lives>,
    pub(super) glasses: BTreeMap<String, Glasses>,
    pub(super) sockets: BTreeMap<AppConnection, mpsc::Sender<ToApp>>,
    /// What each app has drawn that still stands, for glasses that come later.
    pub(super) drawn: BTreeMap<String, Drawn>,
    /// The apps that are given what is said.
    pub(super) listening: BTreeSet<String>,
    /// What sessions are called, by package.
    pub(super) names: BTreeMap<String, String>,
    pub(super) starting: BTreeMap<String, Vec<oneshot::Sender<Result<(), String>>>>,
    pub(super) stopping: BTreeMap<String, Vec<oneshot::Sender<()>>>,
}

impl Default for User {
    fn default() -> Self {
        Self {
            driver: Driver::new(Lives::default()),
            glasses: BTreeMap::new(),
            sockets: BTreeMap::new(),
            drawn: BTreeMap::new(),
            listening: BTreeSet::new(),
            names: BTreeMap::new(),
            starting: BTreeMap::new(),
            stopping: BTreeMap::new(),
        }
    }
}

impl User {
    pub(super) fn lives(&self) -> &Lives {
        self.driver.machine()
    }
}

/// What an app has drawn that stands until it draws something else.
#[derive(Default)]
pub(super) struct Drawn {
    /// Its line of the dashboard.
    pub(super) line: Option<AppEvent>,
    /// In front.
    pub(super) main: Option<AppEvent>,
}

/// All users' apps. One per process.
pub struct Host {
    pub(super) me: Weak<Self>,
    pub(super) store: Store,
    /// What an erasure of a user ends.
    pub(super) in_flight: InFlight,
    pub(super) roster: Arc<Roster>,
    pub(super) installed: Arc<Installed>,
    pub(super) sounds: Sounds,
    /// Where apps are told that the wearer is.
    pub(super) location: Option<Location>,
    /// What live glasses tell apps.
    pub feeds: Feeds,
    /// Base tag of the language that the recogniser understands.
    pub(super) language: String,
    pub(super) url: OnceLock<String>,
    users: Mutex<BTreeMap<String, User>>,
    /// Stop requests under way: a start of the same app waits for them.
    stops: Mutex<BTreeMap<Key, CancellationToken>>,
    pub(super) speeches: Speeches,
    /// Photos that apps wait for.
    pub photos: Photos,
    /// One change of an app's storage at a time.
    pub(super) storage: tokio::sync::Mutex<()>,
    /// Sockets whose first frame is awaited.
    pub(super) newcomers: Semaphore,
    /// Set when the gateway stops.
    pub(super) stop: CancellationToken,
    wake: Notify,
    next_connection: AtomicU64,
}

impl Host {
    /// Nothing runs yet.
    pub fn new(
        store: Store,
        in_flight: InFlight,
        roster: Arc<Roster>,
        installed: Arc<Installed>,
        sounds: Sounds,
        (language, location): (&str, Option<Location>),
        stop: CancellationToken,
    ) -> Arc<Self> {
        let language = language.split('-').next().unwrap_or_default().to_lowercase();
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            store,
            in_flight,
            roster,
            installed,
            sounds,
            location,
            feeds: Feeds::default(),
            language,
            url: OnceLock::new(),
            users: Mutex::default(),
            stops: Mutex::default(),
            speeches: Speeches::default(),
            photos: Photos::default(),
            storage: tokio::sync::Mutex::default(),
            newcomers: Semaphore::new(NEWCOMERS_MAX),
            stop,
            wake: Notify::new(),
            next_connection: AtomicU64::new(1),
        })
    }

    /// Where apps are told to connect; known once the port is bound.
    pub fn set_url(&self, url: String) {
        drop(self.url.set(url));
    }

    /// Lets time pass until the gateway stops.
    pub async fn run(self: Arc<Self>) {
        let mut changes = self.installed.changes();
        loop {
            let due_us =
                self.users().values().filter_map(|user| user.driver.poll_timeout()).map(|(at_us, _)| at_us).min();
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = self.wake.notified() => {}
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.stop_removed();
                }
                () = sleep_until(due_us.map(clock::instant_at)) => {
                    let names: Vec<String> = self.users().keys().cloned().collect();
                    for name in names {
                        self.with(&name, |user| user.driver.push_timeout());
                    }
                }
            }
        }
    }

    pub(super) fn users(&self) -> MutexGuard<'_, BTreeMap<String, User>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with a user's apps and carries out what follows.
    pub(super) fn with<R>(&self, user: &str, act: impl FnOnce(&mut User) -> R) -> R {
        let mut users = self.users();
        let entry = users.entry(user.to_owned()).or_default();
        let result = act(entry);
        let now = clock::now();
        while let Some(output) = entry.driver.poll_output(now) {
            self.carry_out(user, entry, output);
        }
        drop(users);
        self.wake.notify_one();
        result
    }

    pub(super) fn input(&self, user: &str, input: AppInput) {
        self.with(user, |apps| apps.driver.push(input));
    }

    pub(super) fn stops_lock(&self) -> MutexGuard<'_, BTreeMap<Key, CancellationToken>> {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop_removed(&self) {
        let running: Vec<Key> = self
            .users()
            .iter()
            .flat_map(|(user, apps)| apps.lives().all().map(|(card, _)| (user.clone(), card.package.clone())))
            .collect();
        for (user, package) in running {
            if self.installed.get(&package).is_none() {
                self.input(&user, AppInput::Stop { package, reason: AppStopReason::System });
            }
        }
    }

    /// Starts an app and waits until it can draw; whether it had to be started.
    ///
    /// # Errors
    /// Why it does not run, in words.
    pub async fn start(&self, user: &str, package: &str, deadline: Duration) -> Result<bool, String> {
        let app = self.installed.get(package).ok_or_else(|| format!("no mini-app {package} is installed"))?;
        let (answer, outcome) = oneshot::channel();
        let begun = self.with(user, |apps| {
            if apps.lives().state(package) == Some(AppState::Running) {
                return Ok(false);
            }
            let worn: Vec<&Glasses> = apps.glasses.values().collect();
            if let Some(missing) = glasses::missing(&app.hardware_required, &worn) {
                return Err(format!("{} needs glasses with: {missing}", name_of(&app)));
            }
            let session = self.session_name(apps, user, package)?;
            apps.starting.entry(package.to_owned()).or_default().push(answer);
            let card = AppCard { package: app.package.clone(), name: name_of(&app), kind: app.kind, session };
            apps.driver.push(AppInput::Start(card));
            Ok(true)
        })?;
        if !begun {
            return Ok(false);
        }
        match tokio::time::timeout(deadline, outcome).await {
            Ok(Ok(Ok(()))) => {
                self.settled(user).await;
                Ok(true)
            }
            Ok(Ok(Err(why))) => Err(why),
            Ok(Err(_)) => Err("the gateway is stopping".to_owned()),
            Err(_) => Err("it was not ready in time".to_owned()),
        }
    }

    /// Stops an app and waits until it is gone; whether it ran.
    pub async fn stop(&self, user: &str, package: &str, reason: AppStopReason) -> bool {
        let (answer, gone) = oneshot::channel();
        let ran = self.with(user, |apps| {
            if apps.lives().state(package).is_none() {
                return false;
            }
            apps.stopping.entry(package.to_owned()).or_default().push(answer);
            apps.driver.push(AppInput::Stop { package: package.to_owned(), reason });
            true
        });
        if ran {
            // A little more than the machine gives the app.
            drop(tokio::time::timeout(Duration::from_millis(app_life::STOP_MS_MAX * 2), gone).await);
        }
        ran
    }

    /// For whom an app runs, or is to run.
    pub fn running(&self, package: &str) -> Vec<(String, AppState)> {
        let users = self.users();
        let running = users.iter().filter_map(|(user, apps)| Some((user.clone(), apps.lives().state(package)?)));
        running.collect()
    }

    /// What has not stopped, by package.
    pub fn states(&self, user: &str) -> BTreeMap<String, AppState> {
        let users = self.users();
        let lives = users.get(user).into_iter().flat_map(|apps| apps.lives().all());
        lives.map(|(card, state)| (card.package.clone(), state)).collect()
    }

    pub(super) fn next_connection(&self) -> AppConnection {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }
}

pub(super) fn name_of(app: &App) -> String {
    if app.name.is_empty() { app.package.clone() } else { app.name.clone() }
}
