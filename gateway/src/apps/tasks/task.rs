//! The task of one user's apps: it takes messages, and drives the machine of their life cycles.

use std::{collections::BTreeMap, mem, sync::Arc};

use gateway_core::{
    app_lifecycle::AppLifecycles,
    driver::Driver,
    input::AppInput,
    output::AppOutput,
    vocab::{AppCard, AppConnection, AppState, AppStopReason, Timestamp},
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tools::apps::manifest::App;

use super::{Common, Snapshot, Tasks, drawn::Drawn};
use crate::{
    apps::{
        glasses::{self, Glasses},
        message::{AppsMessage, ToApp},
        wire,
    },
    clock,
    runtime::drive::Shell,
};

/// How long a task stays without any state of its user, in milliseconds: its writes are on disk by then.
const LINGER_MS: u64 = 60_000;

/// One user's apps and their state.
pub(super) struct Task {
    pub(super) user: String,
    pub(super) driver: Driver<AppLifecycles>,
    pub(super) tasks: Arc<Tasks>,
    pub(super) glasses: BTreeMap<String, Glasses>,
    pub(super) sockets: BTreeMap<AppConnection, mpsc::Sender<ToApp>>,
    /// The apps' current drawings, for glasses that connect later.
    pub(super) drawn: Drawn,
    /// The apps that receive transcripts, each with the connection that does.
    pub(super) listening: BTreeMap<String, AppConnection>,
    /// Session names, by package.
    pub(super) names: BTreeMap<String, String>,
    pub(super) starting: BTreeMap<String, Vec<oneshot::Sender<Result<bool, String>>>>,
    pub(super) stopping: BTreeMap<String, Vec<oneshot::Sender<bool>>>,
    /// Stop requests, cancelled once they are answered: a start of the same app waits for them.
    pub(super) stops: BTreeMap<String, CancellationToken>,
    messages: mpsc::Receiver<Box<AppsMessage>>,
    installed: watch::Receiver<u64>,
    /// Callers to answer once all resulting outputs are carried out.
    waiting: Vec<Waiting>,
    /// The published snapshot may be outdated.
    pub(super) stale: bool,
    /// Webhook calls that are not answered yet.
    pub(super) calls: usize,
    /// When the task ends, if no state of its user is left.
    idle_due_us: Option<u64>,
    /// That time has passed, or all data of the user was erased.
    leaves: bool,
    ended: bool,
}

/// A caller that waits until a message and all its outputs are handled.
enum Waiting {
    Restored(oneshot::Sender<()>),
    Came(String, oneshot::Sender<()>),
    Went(oneshot::Sender<()>),
    Left(String, oneshot::Sender<Option<AppState>>),
}

/// What the task waits for beside its timers.
pub(super) enum Event {
    Message(AppsMessage),
    /// An app was installed or removed.
    InstalledChanged,
    Stops,
}

impl Task {
    pub(super) fn new(tasks: Arc<Tasks>, user: String, messages: mpsc::Receiver<Box<AppsMessage>>) -> Self {
        let installed = tasks.common.installed.changes();
        Self {
            user,
            driver: Driver::new(AppLifecycles::default()),
            tasks,
            glasses: BTreeMap::new(),
            sockets: BTreeMap::new(),
            drawn: Drawn::default(),
            listening: BTreeMap::new(),
            names: BTreeMap::new(),
            starting: BTreeMap::new(),
            stopping: BTreeMap::new(),
            stops: BTreeMap::new(),
            messages,
            installed,
            waiting: Vec::new(),
            stale: false,
            calls: 0,
            idle_due_us: None,
            leaves: false,
            ended: false,
        }
    }

    pub(super) fn lives(&self) -> &AppLifecycles {
        self.driver.machine()
    }

    pub(super) fn common(&self) -> &Common {
        &self.tasks.common
    }

    pub(super) fn push(&mut self, input: AppInput) {
        self.stale = true;
        self.driver.push(input);
    }

    fn publish(&mut self) {
        self.stale = false;
        self.tasks.publish(&self.user, Snapshot::new(self.lives(), &self.glasses));
    }

    fn handle(&mut self, message: AppsMessage) {
        match message {
            AppsMessage::Input(input) => {
                if matches!(input, AppInput::Answered { .. }) {
                    self.calls = self.calls.saturating_sub(1);
                }
                self.push(input);
            }
            #[cfg(test)]
            AppsMessage::Panic => panic!("on purpose"),
            AppsMessage::Restore { cards, reply } => {
                cards.into_iter().for_each(|card| self.push(AppInput::Restore(card)));
                self.waiting.push(Waiting::Restored(reply));
            }
            AppsMessage::Start { app, reply } => self.start(&app, reply),
            AppsMessage::Stop { package, reason, reply } => {
                if self.lives().state(&package).is_none() {
                    let _ = reply.send(false);
                    return;
                }
                self.stopping.entry(package.clone()).or_default().push(reply);
                self.push(AppInput::Stop { package, reason });
            }
            AppsMessage::Joined { package, connection, resumed, socket } => {
                // In this order: the machine may close the socket at once.
                self.sockets.insert(connection, socket);
                self.tell_spoken();
                self.push(AppInput::Joined { package, connection, resumed });
            }
            AppsMessage::Left { package, connection, reply } => {
                self.listens(package.clone(), connection, false);
                self.sockets.remove(&connection);
                self.push(AppInput::Lost { package: package.clone(), connection });
                self.waiting.push(Waiting::Left(package, reply));
            }
            AppsMessage::Listens { package, connection, listens } => self.listens(package, connection, listens),
            AppsMessage::Draw { package, connection, event, over } => {
                if !over.is_some_and(|over| over.is_cancelled()) {
                    self.draw(&package, connection, &event);
                }
            }
            AppsMessage::GlassesCame { device, glasses, reply } => {
                self.glasses_came(device.clone(), glasses);
                self.waiting.push(Waiting::Came(device, reply));
            }
            AppsMessage::GlassesWent { device, reply } => {
                self.glasses_went(&device);
                self.waiting.push(Waiting::Went(reply));
            }
            AppsMessage::Battery { percent, charging } => self.battery(percent, charging),
            AppsMessage::SettingsSet { package, settings, system } => {
                let connection = self.lives().connection(&package);
                let socket = connection.and_then(|connection| self.sockets.get(&connection));
                if let (Some(socket), Some(session)) = (socket, self.lives().session(&package)) {
                    for message in wire::settings_update(&package, session, &settings, &system, clock::wall_ms()) {
                        drop(socket.try_send(ToApp::Json(message)));
                    }
                }
            }
            AppsMessage::Removed { package } => drop(self.names.remove(&package)),
            AppsMessage::Erased { reply } => {
                self.names.clear();
                self.leaves = true;
                let _ = reply.send(());
            }
        }
    }

    fn start(&mut self, app: &App, reply: oneshot::Sender<Result<bool, String>>) {
        let package = &app.package;
        if self.lives().is_ready(package) {
            return drop(reply.send(Ok(false)));
        }
        let all: Vec<&Glasses> = self.glasses.values().collect();
        if let Some(missing) = glasses::missing(&app.hardware_required, &all) {
            return drop(reply.send(Err(format!("{} needs glasses with: {missing}", name_of(app)))));
        }
        let session = match self.session_name(package) {
            Ok(session) => session,
            Err(why) => return drop(reply.send(Err(why))),
        };
        self.starting.entry(package.clone()).or_default().push(reply);
        self.push(AppInput::Start(AppCard { package: package.clone(), name: name_of(app), kind: app.kind, session }));
    }

    /// Stops apps that are no longer installed, or no longer for this user.
    fn stop_removed(&mut self) {
        let running: Vec<String> = self.lives().all().map(|(card, _)| card.package.clone()).collect();
        for package in running {
            if self.common().installed.get_for(&self.user, &package).is_none() {
                self.push(AppInput::Stop { package, reason: AppStopReason::System });
            }
        }
    }

    fn answer(&self, waiting: Waiting) {
        match waiting {
            Waiting::Restored(reply) | Waiting::Went(reply) => {
                let _ = reply.send(());
            }
            Waiting::Came(device, reply) => {
                self.catch_up(&device);
                let _ = reply.send(());
            }
            Waiting::Left(package, reply) => drop(reply.send(self.lives().state(&package))),
        }
    }

    /// Whether no state of the user is left. Session names are on disk.
    fn is_idle(&self) -> bool {
        self.lives().all().next().is_none() && self.glasses.is_empty() && self.sockets.is_empty() && self.calls == 0
    }
}

impl Shell for Task {
    type Machine = AppLifecycles;
    type Event = Event;
    type End = ();

    fn driver(&mut self) -> &mut Driver<AppLifecycles> {
        &mut self.driver
    }

    fn now(&self) -> Timestamp {
        clock::now()
    }

    async fn next_event(&mut self) -> Event {
        tokio::select! {
            biased;
            () = self.tasks.common.stop.cancelled() => Event::Stops,
            changed = self.installed.changed() => match changed {
                Ok(()) => Event::InstalledChanged,
                Err(_) => Event::Stops,
            },
            message = self.messages.recv() => message.map_or(Event::Stops, |message| Event::Message(*message)),
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Message(message) => self.handle(message),
            Event::InstalledChanged => self.stop_removed(),
            Event::Stops => self.ended = true,
        }
    }

    fn carry_out(&mut self, output: AppOutput) {
        // Before any caller is answered.
        self.publish();
        self.fulfil(output);
    }

    fn settled(&mut self) {
        if self.stale {
            self.publish();
        }
        for waiting in mem::take(&mut self.waiting) {
            self.answer(waiting);
        }
        self.idle_due_us = self.is_idle().then(|| clock::mono_us() + LINGER_MS * 1_000);
    }

    fn next_tick_us(&self) -> Option<u64> {
        self.idle_due_us
    }

    fn tick(&mut self) {
        // A tick may change the machine's state without an output.
        self.stale = true;
        self.leaves = self.idle_due_us.is_some_and(|due_us| due_us <= clock::mono_us());
    }

    fn end(&mut self) -> Option<()> {
        let leaves = mem::take(&mut self.leaves) && self.is_idle();
        (self.ended || (leaves && self.tasks.leave(&self.user, &self.messages))).then_some(())
    }
}

/// The display name of an app.
pub(crate) fn name_of(app: &App) -> String {
    if app.name.is_empty() { app.package.clone() } else { app.name.clone() }
}
