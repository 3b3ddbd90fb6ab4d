//! Carries out what the life cycles want: webhooks, sockets, glasses, the store; and answers who waits.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gateway_core::{input::Input as DeviceInput, vocab::AppEvent};
use serde_json::Value;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tools::{apps::manifest::App, in_flight::InFlight};

use super::{
    Location,
    feed::Feeds,
    glasses::{self, Glasses},
    installed::Installed,
    life::{self, Card, Connection, Input, Lives, Output, State, StopReason},
    photo::Photos,
    sound::Sounds,
    speech::Speeches,
    webhook, wire,
};
use crate::{
    clock,
    effects::spawn,
    mail::Mail,
    roster::Roster,
    store::{Kind, Store, Write},
    users::sleep_until,
};

/// Messages that may wait for one app's socket beside its streams.
pub const WAITING_MAX: usize = 64;
/// Sockets that may be open without having said who they are: each has 5 s to do so.
const NEWCOMERS_MAX: usize = 64;
/// Restored apps per user are as many as may run.
const RESTORED_MAX: usize = life::RUNNING_MAX;

/// What the host tells a socket's task.
#[derive(Debug)]
pub enum ToApp {
    /// Send this.
    Json(Value),
    /// Say that the app is stopped, and close.
    Close,
    /// Go without a word.
    Drop,
}

type Key = (String, String);

/// One user's apps and what hangs on them.
#[derive(Default)]
pub(super) struct User {
    pub(super) lives: Lives,
    pub(super) glasses: BTreeMap<String, Glasses>,
    pub(super) sockets: BTreeMap<Connection, mpsc::Sender<ToApp>>,
    /// The last line of each app's dashboard, for glasses that come later.
    lines: BTreeMap<String, String>,
    starting: BTreeMap<String, Vec<oneshot::Sender<Result<(), String>>>>,
    stopping: BTreeMap<String, Vec<oneshot::Sender<()>>>,
}

/// All users' apps. One per process.
pub struct Host {
    me: Weak<Self>,
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
    url: OnceLock<String>,
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
            let due_us = self.users().values().filter_map(|user| user.lives.poll_timeout()).min();
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
                        self.with(&name, |user| user.lives.handle_timeout(clock::mono_us()));
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
        while let Some(output) = entry.lives.poll_output() {
            self.carry_out(user, entry, output);
        }
        drop(users);
        self.wake.notify_one();
        result
    }

    pub(super) fn input(&self, user: &str, input: Input) {
        self.with(user, |apps| apps.lives.handle_input(clock::mono_us(), input));
    }

    fn carry_out(&self, name: &str, user: &mut User, output: Output) {
        match output {
            Output::Call { package, session, afresh } => self.call(name, package, session, afresh),
            Output::CallStop { package, session, reason } => self.call_stop(name, package, session, reason),
            Output::Close { connection } => tell(user, connection, ToApp::Close),
            Output::Drop { connection } => tell(user, connection, ToApp::Drop),
            Output::Glasses(event) => {
                let event = AppEvent::from(event);
                if let AppEvent::Stopped { package } = &event {
                    user.lines.remove(package);
                    self.speeches.withdraw(&self.roster, name, package);
                }
                self.show(name, &event);
            }
            Output::Started { package } => {
                tracing::info!(user = name, package, "a mini-app runs");
                for waiting in user.starting.remove(&package).unwrap_or_default() {
                    drop(waiting.send(Ok(())));
                }
            }
            Output::Failed { package, why } => {
                tracing::warn!(user = name, package, why, "a mini-app does not run");
                self.note_failed(name, &package, &why);
                for waiting in user.starting.remove(&package).unwrap_or_default() {
                    drop(waiting.send(Err(why.clone())));
                }
            }
            Output::Stopped { package } => {
                for waiting in user.stopping.remove(&package).unwrap_or_default() {
                    let _ = waiting.send(());
                }
            }
            Output::Remember(card) => match serde_json::to_vec(&card) {
                Ok(value) => self.keep(Write::PutRow {
                    kind: Kind::AppSessions,
                    owner: name.to_owned(),
                    key: card.package.into_bytes(),
                    value,
                }),
                Err(error) => tracing::error!(%error, "a session cannot be written"),
            },
            Output::Forget { package } => {
                let owner = name.to_owned();
                self.keep(Write::RemoveRow { kind: Kind::AppSessions, owner, key: package.into_bytes() });
            }
        }
    }

    fn keep(&self, write: Write) {
        let told = |result: Result<u64, _>| {
            if let Err(error) = result {
                tracing::warn!(%error, "whether an app runs is not remembered");
            }
        };
        if let Err(error) = self.store.submit(write, told) {
            tracing::warn!(%error, "whether an app runs is not remembered");
        }
    }

    fn call(&self, user: &str, package: String, session: String, afresh: bool) {
        let failed = |why: &str| Input::WebhookFailed { package: package.clone(), why: why.to_owned() };
        let (Some(host), user) = (self.me.upgrade(), user.to_owned()) else { return };
        let (Some(app), Some(url)) = (self.installed.get(&package), self.url.get().cloned()) else {
            let input = failed("it is not installed any more");
            // Not here: the user's apps are locked.
            spawn("app-gone", async move { host.input(&user, input) });
            return;
        };
        let underway = self.stops_lock().get(&(user.clone(), package.clone())).cloned();
        spawn("app-start", async move {
            if let Some(underway) = underway {
                let limit = Duration::from_millis(life::STOP_MS_MAX);
                drop(tokio::time::timeout(limit, underway.cancelled()).await);
            }
            let http = host.installed.client().http();
            if afresh {
                let body = wire::stop_request(&session, &user, StopReason::System.as_str(), clock::wall_ms());
                webhook::stop(http, &app, &body).await;
            }
            let body = wire::session_request(&session, &user, &url, clock::wall_ms());
            if let Err(why) = webhook::start(http, &app, &body).await {
                host.installed.client().faults().record(&app.package, webhook::fault(&app, &body, &why));
                host.input(&user, Input::WebhookFailed { package: app.package.clone(), why });
            }
        });
    }

    fn call_stop(&self, user: &str, package: String, session: String, reason: StopReason) {
        let (Some(host), Some(app)) = (self.me.upgrade(), self.installed.get(&package)) else { return };
        let done = CancellationToken::new();
        let key = (user.to_owned(), package);
        self.stops_lock().insert(key.clone(), done.clone());
        spawn("app-stop", async move {
            let body = wire::stop_request(&session, &key.0, reason.as_str(), clock::wall_ms());
            webhook::stop(host.installed.client().http(), &app, &body).await;
            done.cancel();
            host.stops_lock().remove(&key);
        });
    }

    fn stops_lock(&self) -> MutexGuard<'_, BTreeMap<Key, CancellationToken>> {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells all of a user's glasses.
    fn show(&self, user: &str, event: &AppEvent) {
        for (_, present) in self.roster.all().into_iter().filter(|(_, present)| present.user == user) {
            drop(present.mail.try_send(Mail::Input(DeviceInput::App(event.clone()))));
        }
    }

    /// Something that a running app wants on the glasses; from any other app it is dropped.
    pub(super) fn draw(&self, user: &str, package: &str, connection: Connection, event: &AppEvent) {
        let runs = self.with(user, |apps| {
            let runs = apps.lives.connection(package) == Some(connection);
            if let (true, AppEvent::DashboardLine { text, .. }) = (runs, event) {
                apps.lines.insert(package.to_owned(), text.clone());
            }
            runs
        });
        if runs {
            self.show(user, event);
        }
    }

    /// Takes up again what ran when the gateway last stopped: before it listens, so that no app that dials again is
    /// turned away.
    pub fn restore(&self) {
        let users = self.store.disk().owners(Kind::AppSessions).unwrap_or_default();
        for user in users {
            let rows = self.store.disk().rows(Kind::AppSessions, &user, b"", RESTORED_MAX).unwrap_or_default();
            for (_, value) in rows {
                let card = serde_json::from_slice::<Card>(&value).ok();
                if let Some(card) = card.filter(|card| self.installed.get(&card.package).is_some()) {
                    self.input(&user, Input::Restore(card));
                }
            }
        }
    }

    fn stop_removed(&self) {
        let running: Vec<Key> = self
            .users()
            .iter()
            .flat_map(|(user, apps)| apps.lives.all().map(|(card, _)| (user.clone(), card.package.clone())))
            .collect();
        for (user, package) in running {
            if self.installed.get(&package).is_none() {
                self.input(&user, Input::Stop { package, reason: StopReason::System });
            }
        }
    }

    /// Glasses of this user have come.
    pub fn glasses_came(&self, user: &str, device: &str, glasses: Glasses) {
        let told = wire::time(clock::wall_ms());
        let state = serde_json::json!({"connected": true, "modelName": glasses.model});
        let capabilities = serde_json::json!({
            "type": "capabilities_update",
            "capabilities": glasses.capabilities(),
            "modelName": glasses.model,
            "timestamp": told,
        });
        let events = self.with(user, |apps| {
            apps.glasses.insert(device.to_owned(), glasses);
            apps.lives.handle_input(clock::mono_us(), Input::Present(true));
            for socket in apps.sockets.values() {
                drop(socket.try_send(ToApp::Json(capabilities.clone())));
                drop(socket.try_send(ToApp::Json(glasses::state_update(state.clone(), false, told.clone()))));
            }
            catch_up(apps)
        });
        if let Some(present) = self.roster.get(device) {
            for event in events {
                drop(present.mail.try_send(Mail::Input(DeviceInput::App(event))));
            }
        }
    }

    /// They have gone.
    pub fn glasses_went(&self, user: &str, device: &str) {
        let told = wire::time(clock::wall_ms());
        self.with(user, |apps| {
            apps.glasses.remove(device);
            if apps.glasses.is_empty() {
                apps.lives.handle_input(clock::mono_us(), Input::Present(false));
                let state = glasses::state_update(serde_json::json!({"connected": false}), false, told);
                for socket in apps.sockets.values() {
                    drop(socket.try_send(ToApp::Json(state.clone())));
                }
            }
        });
    }

    /// Their battery has changed.
    pub fn battery(&self, user: &str, percent: u8, charging: bool) {
        let state = serde_json::json!({"batteryLevel": percent, "charging": charging});
        let update = glasses::state_update(state, false, wire::time(clock::wall_ms()));
        let users = self.users();
        for socket in users.get(user).into_iter().flat_map(|apps| apps.sockets.values()) {
            drop(socket.try_send(ToApp::Json(update.clone())));
        }
    }

    /// Starts an app and waits until it can draw; whether it had to be started.
    ///
    /// # Errors
    /// Why it does not run, in words.
    pub async fn start(&self, user: &str, package: &str, deadline: Duration) -> Result<bool, String> {
        let app = self.installed.get(package).ok_or_else(|| format!("no mini-app {package} is installed"))?;
        let session = session_name(user, package).map_err(|error| error.to_string())?;
        let (answer, outcome) = oneshot::channel();
        let begun = self.with(user, |apps| {
            if apps.lives.state(package) == Some(State::Running) {
                return Ok(false);
            }
            let worn: Vec<&Glasses> = apps.glasses.values().collect();
            if let Some(missing) = glasses::missing(&app.hardware_required, &worn) {
                return Err(format!("{} needs glasses with: {missing}", name_of(&app)));
            }
            apps.starting.entry(package.to_owned()).or_default().push(answer);
            let card = Card { package: app.package.clone(), name: name_of(&app), kind: app.kind, session };
            apps.lives.handle_input(clock::mono_us(), Input::Start(card));
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

    /// Waits until what is to be remembered of a user's apps is on disk: writes take effect in their order, so that one
    /// that changes nothing tells. Who says that an app runs finds it running after a power cut.
    async fn settled(&self, user: &str) {
        let barrier = Write::RemoveRow { kind: Kind::AppSessions, owner: user.to_owned(), key: vec![0] };
        if let Err(error) = self.store.write(barrier).await {
            tracing::warn!(%error, "whether an app runs is not remembered");
        }
    }

    /// Stops an app and waits until it is gone; whether it ran.
    pub async fn stop(&self, user: &str, package: &str, reason: StopReason) -> bool {
        let (answer, gone) = oneshot::channel();
        let ran = self.with(user, |apps| {
            if apps.lives.state(package).is_none() {
                return false;
            }
            apps.stopping.entry(package.to_owned()).or_default().push(answer);
            apps.lives.handle_input(clock::mono_us(), Input::Stop { package: package.to_owned(), reason });
            true
        });
        if ran {
            // A little more than the machine gives the app.
            drop(tokio::time::timeout(Duration::from_millis(life::STOP_MS_MAX * 2), gone).await);
        }
        ran
    }

    /// What has not stopped, by package.
    pub fn states(&self, user: &str) -> BTreeMap<String, State> {
        let users = self.users();
        let lives = users.get(user).into_iter().flat_map(|apps| apps.lives.all());
        lives.map(|(card, state)| (card.package.clone(), state)).collect()
    }

    pub(super) fn next_connection(&self) -> Connection {
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }
}

fn tell(user: &User, connection: Connection, what: ToApp) {
    let Some(socket) = user.sockets.get(&connection) else { return };
    if socket.try_send(what).is_err() {
        tracing::debug!(connection, "an app's socket does not take what it is told");
    }
}

/// What glasses that come later have to know of the apps that run already.
fn catch_up(user: &User) -> Vec<AppEvent> {
    let mut events = Vec::new();
    for (card, state) in user.lives.all().filter(|(_, state)| *state != State::Stopping && *state != State::Dormant) {
        let Card { package, name, kind, .. } = card.clone();
        if matches!(state, State::Running | State::Grace) {
            events.push(AppEvent::Resumed { package: package.clone(), name, kind });
        } else {
            events.push(AppEvent::Starting { package: package.clone(), name, kind });
        }
        if let Some(text) = user.lines.get(&package) {
            events.push(AppEvent::DashboardLine { package, text: text.clone() });
        }
    }
    events
}

fn name_of(app: &App) -> String {
    if app.name.is_empty() { app.package.clone() } else { app.name.clone() }
}

/// Sessions have names that cannot be guessed: one of the SDK's REST calls shows nothing else.
fn session_name(user: &str, package: &str) -> Result<String, getrandom::Error> {
    let mut random = [0; 12];
    getrandom::fill(&mut random)?;
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{user}-{package}-{random}"))
}
