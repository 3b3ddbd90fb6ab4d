//! One task per user with apps, which drives the machine of their life cycles: it alone decides about the apps and
//! their drawings on the glasses.
//!
//! Others send it messages, and read the snapshot that it published last.

mod display;
mod drawn;
mod outputs;
mod sessions;
mod snapshot;
mod task;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use device_protocol::GoodbyeReason;
use gateway_core::{app_lifecycle::RUNNING_MAX, vocab::AppCard};
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::task::Task;
pub(super) use self::{snapshot::Snapshot, task::name_of};
use super::{installed::Installed, message::AppsMessage, speeches::Speeches};
use crate::{
    roster::Roster,
    runtime::{drive::drive, restarts::Restarts, spawn, spawn_or},
    store::{Kind, Store},
};

/// Messages queued for one user's apps: 32 of them, each with a few pending drawings.
const MESSAGES_MAX: usize = 256;

/// Restored apps per user: as many as may run.
const RESTORED_MAX: usize = RUNNING_MAX;

/// What the apps of all users share.
pub(super) struct Common {
    /// Stores which apps run, and their session names.
    pub store: Store,
    /// The connected glasses.
    pub roster: Arc<Roster>,
    /// Installed apps, the client that calls them, and its log.
    pub installed: Arc<Installed>,
    /// Speeches of apps, which are withdrawn when an app stops.
    pub speeches: Arc<Speeches>,
    /// Set when the gateway stops.
    pub stop: CancellationToken,
}

/// Handle to a user's task.
struct Place {
    mailbox: mpsc::Sender<Box<AppsMessage>>,
    snapshot: Arc<Snapshot>,
}

/// The result of sending a message.
enum Given {
    /// It is in the mailbox.
    Taken,
    /// The mailbox is full.
    NoRoom(mpsc::Sender<Box<AppsMessage>>, Box<AppsMessage>),
    /// There is no task.
    Nobody,
}

/// All users' tasks, started on first use; each ends after its user has had no state for a while.
pub(super) struct Tasks {
    common: Common,
    /// Where apps connect; known once the port is bound.
    url: OnceLock<String>,
    places: Mutex<BTreeMap<String, Place>>,
    running: TaskTracker,
    restarts: Restarts,
}

impl Tasks {
    /// Initial state: no task runs.
    pub(super) fn new(common: Common) -> Arc<Self> {
        let (url, places, running) = (OnceLock::new(), Mutex::default(), TaskTracker::new());
        Arc::new(Self { common, url, places, running, restarts: Restarts::default() })
    }

    /// Sets where apps connect.
    pub(super) fn set_url(&self, url: String) {
        drop(self.url.set(url));
    }

    /// Returns when the gateway has stopped and all tasks have ended.
    pub(super) async fn stopped(&self) {
        self.common.stop.cancelled().await;
        self.running.close();
        self.running.wait().await;
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<String, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message to the task of a user's apps, waiting for room in its mailbox; starts the task if there is none.
    /// `false`: the gateway is stopping.
    pub(super) async fn send(self: &Arc<Self>, user: &str, message: AppsMessage) -> bool {
        self.start(user);
        self.tell(user, message).await
    }

    /// As `send`, but only if there is a task: without one, the message concerns nothing. `false`: there is none.
    pub(super) async fn tell(&self, user: &str, message: AppsMessage) -> bool {
        match self.give(user, message) {
            Given::Taken => true,
            // A waiting sender holds the mailbox, so that the task does not end.
            Given::NoRoom(mailbox, message) => mailbox.send(message).await.is_ok(),
            Given::Nobody => false,
        }
    }

    /// As `tell`, without waiting. `false`: not sent, since there is no task or no room.
    pub(super) fn try_tell(&self, user: &str, message: AppsMessage) -> bool {
        let given = self.give(user, message);
        if matches!(given, Given::NoRoom(..)) {
            tracing::warn!(user, "too many messages wait for a user's apps; one was dropped");
        }
        matches!(given, Given::Taken)
    }

    fn give(&self, user: &str, message: AppsMessage) -> Given {
        let places = self.places();
        let Some(Place { mailbox, .. }) = places.get(user) else { return Given::Nobody };
        // Under the lock: a task that ends removes its place first.
        match mailbox.try_send(Box::new(message)) {
            Ok(()) => Given::Taken,
            Err(TrySendError::Full(message)) => Given::NoRoom(mailbox.clone(), message),
            Err(TrySendError::Closed(_)) => Given::Nobody,
        }
    }

    fn start(self: &Arc<Self>, user: &str) {
        let mut places = self.places();
        let place = places.get(user);
        if place.is_some_and(|place| !place.mailbox.is_closed()) || self.common.stop.is_cancelled() {
            return;
        }
        if place.is_some() {
            tracing::error!(user, "the task of a user's apps has ended by itself; it is started anew");
        }
        let (mailbox, messages) = mpsc::channel(MESSAGES_MAX);
        places.insert(user.to_owned(), Place { mailbox, snapshot: Arc::default() });
        drop(places);
        let mut task = Task::new(self.clone(), user.to_owned(), messages);
        let (own, user) = (Arc::downgrade(self), user.to_owned());
        let panicked = move || own.upgrade().into_iter().for_each(|tasks| tasks.panicked(user.clone()));
        spawn_or("user-apps", self.running.track_future(async move { drive(&mut task).await }), panicked);
    }

    /// The task of a user's apps has panicked. Another one is started with the apps that ran, within
    /// [`RESTARTS_MAX`](crate::runtime::restarts::RESTARTS_MAX); otherwise the next message starts one. The user's
    /// devices are sent away: they come back to the new task, which does not know them yet.
    fn panicked(self: &Arc<Self>, user: String) {
        for (id, _) in self.common.roster.all().iter().filter(|(_, present)| present.user == user) {
            self.common.roster.dismiss(id, GoodbyeReason::Internal, "the task of this user's apps is started again");
        }
        if self.restarts.allow(&user) {
            let tasks = self.clone();
            spawn("restore-apps", async move { tasks.restore(&user).await });
        } else {
            tracing::error!(user, "the task of a user's apps panics again and again");
        }
    }

    /// Starts the task of a user with the apps that ran last; without such apps, nothing.
    pub(super) async fn restore(self: &Arc<Self>, user: &str) {
        let rows = self.common.store.disk().rows(Kind::AppSessions, user, b"", RESTORED_MAX).unwrap_or_default();
        let cards = rows.iter().filter_map(|(_, value)| serde_json::from_slice::<AppCard>(value).ok());
        let cards: Vec<AppCard> =
            cards.filter(|card| self.common.installed.get_for(user, &card.package).is_some()).collect();
        if !cards.is_empty() {
            let (reply, restored) = oneshot::channel();
            self.send(user, AppsMessage::Restore { cards, reply }).await;
            drop(restored.await);
        }
    }

    /// Removes a task from its place, unless a message is queued or a sender waits.
    fn leave(&self, user: &str, messages: &mpsc::Receiver<Box<AppsMessage>>) -> bool {
        let mut places = self.places();
        let unused = places.get(user).is_some_and(|place| place.mailbox.strong_count() == 1) && messages.is_empty();
        if unused {
            places.remove(user);
        }
        unused
    }

    fn publish(&self, user: &str, snapshot: Snapshot) {
        if let Some(place) = self.places().get_mut(user) {
            place.snapshot = Arc::new(snapshot);
        }
    }

    /// The published state of a user's apps; empty if they have no task.
    pub(super) fn snapshot(&self, user: &str) -> Arc<Snapshot> {
        self.places().get(user).map_or_else(Arc::default, |place| place.snapshot.clone())
    }

    /// Whether a user has a task.
    #[cfg(test)]
    pub(super) fn knows(&self, user: &str) -> bool {
        self.places().contains_key(user)
    }

    /// The published state of all users' apps.
    pub(super) fn snapshots(&self) -> Vec<(String, Arc<Snapshot>)> {
        self.places().iter().map(|(user, place)| (user.clone(), place.snapshot.clone())).collect()
    }

    /// The user and the app of a session.
    pub(super) fn by_session(&self, session: &str) -> Option<(String, AppCard)> {
        let places = self.places();
        let mut found = places.iter().filter_map(|(user, place)| Some((user, place.snapshot.by_session(session)?)));
        found.next().map(|(user, card)| (user.clone(), card.clone()))
    }
}

#[cfg(test)]
mod tests {
    use audio::asr::Spoken;
    use gateway_core::{
        app_lifecycle::ABSENT_MS_MAX,
        input::{AppInput, Input},
        vocab::{AppConnection, AppEvent, AppKind, AppState, AppStopReason, Content, Timestamp, View},
    };
    use tools::{
        apps::{client::Client, manifest::App},
        registry::Registry,
    };

    use super::*;
    use crate::{
        apps::{glasses::Glasses, message::ToApp},
        mailbox::{DeviceMessage, Ending, Mailbox},
        roster::{Present, Via},
        runtime::drive::Shell,
        store::damage_tests::spoil,
        transport::Transport,
    };

    const USER: &str = "ann";

    fn tasks(folder: &std::path::Path) -> Arc<Tasks> {
        drop(rustls::crypto::ring::default_provider().install_default());
        let store = Store::open(folder, 16).unwrap();
        let (registry, client) = (Arc::new(Registry::default()), Arc::new(Client::new().unwrap()));
        Tasks::new(Common {
            installed: Arc::new(Installed::load(store.clone(), registry, client, Default::default()).unwrap()),
            store,
            roster: Arc::default(),
            speeches: Arc::default(),
            stop: CancellationToken::new(),
        })
    }

    /// Sends a message and waits for its answer.
    async fn ask<T>(tasks: &Arc<Tasks>, message: impl FnOnce(oneshot::Sender<T>) -> AppsMessage) -> T {
        let (reply, answer) = oneshot::channel();
        assert!(tasks.send(USER, message(reply)).await);
        answer.await.unwrap()
    }

    async fn come(tasks: &Arc<Tasks>) {
        let (device, glasses) = ("glasses".to_owned(), Glasses { model: "Sim".into(), ..Glasses::default() });
        ask(tasks, |reply| AppsMessage::GlassesCame { device, glasses, reply }).await;
    }

    async fn go(tasks: &Arc<Tasks>) {
        ask(tasks, |reply| AppsMessage::GlassesWent { device: "glasses".to_owned(), reply }).await;
    }

    fn present(mailbox: Mailbox) -> Present {
        let via = Via::new(Transport::WSS, ([127, 0, 0, 1], 1).into(), 0);
        let (user, language) = (USER.to_owned(), "en".to_owned());
        Present { session: 1, user, language, mailbox, ending: Ending::default(), status: Arc::default(), via }
    }

    /// Restores an app, which runs on this connection; what its socket is sent.
    async fn run(tasks: &Arc<Tasks>, package: &str, kind: AppKind, connection: AppConnection) -> mpsc::Receiver<ToApp> {
        let (package, session) = (package.to_owned(), format!("s-{package}"));
        let card = AppCard { package: package.clone(), name: String::new(), kind, session };
        ask(tasks, |reply| AppsMessage::Restore { cards: vec![card], reply }).await;
        let (socket, messages) = mpsc::channel(16);
        assert!(tasks.send(USER, AppsMessage::Joined { package, connection, resumed: true, socket }).await);
        messages
    }

    /// What newly connected glasses are told of the apps.
    async fn told(tasks: &Arc<Tasks>) -> Vec<AppEvent> {
        // What was sent before is handled.
        come(tasks).await;
        let (mailbox, mut messages) = mpsc::channel(16);
        assert!(tasks.common.roster.enter("glasses", present(mailbox), 1).is_ok());
        come(tasks).await;
        assert!(tasks.common.roster.leave("glasses", 1));
        let messages = std::iter::from_fn(|| messages.try_recv().ok());
        let event = |message: DeviceMessage| match message.input() {
            Some(Input::App(event)) => Some(event),
            _ => None,
        };
        messages.filter_map(event).collect()
    }

    #[tokio::test]
    async fn glasses_that_come_are_told_of_all_apps_and_shown_what_stands() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        let (chess, news) = (("chess", 1), ("news", 2));
        drop(run(&tasks, chess.0, AppKind::Foreground, chess.1).await);
        drop(run(&tasks, news.0, AppKind::Background, news.1).await);
        let draw = async |(package, connection): (&str, AppConnection), text: Option<&str>, ms: Option<u32>| {
            let content = text.map(|text| Content::Text { text: text.to_owned() });
            let (package, view, duration) = (package.to_owned(), View::Main, ms.into());
            let event = AppEvent::Draw { package: package.clone(), view, content, duration, force: false };
            assert!(tasks.send(USER, AppsMessage::Draw { package, connection, event, over: None }).await);
        };
        let shown = async || {
            let events = told(&tasks).await;
            let [chess, news, drawings @ ..] = events.as_slice() else { panic!("{events:#?}") };
            assert!([chess, news].iter().all(|event| matches!(event, AppEvent::Resumed { .. })), "{events:#?}");
            let text = |event: &AppEvent| match event {
                AppEvent::Draw { content: Some(Content::Text { text }), .. } => text.clone(),
                _ => panic!("{event:?}"),
            };
            drawings.iter().map(text).collect::<Vec<_>>()
        };
        draw(news, Some("rain"), None).await;
        assert_eq!(shown().await, ["rain"]);
        draw(chess, Some("e4 e5"), None).await;
        assert_eq!(shown().await, ["e4 e5"]);
        draw(news, Some("wind"), None).await;
        assert_eq!(shown().await, ["e4 e5"], "that of the app in front");
        draw(chess, None, None).await;
        assert_eq!(shown().await, ["wind"]);
        // What is drawn once does not return after another app.
        draw(chess, Some("menu"), Some(0)).await;
        assert_eq!(shown().await, ["menu"]);
        draw(news, Some("mail"), Some(5_000)).await;
        assert!(shown().await.is_empty());
        // What was superseded does not return when its successor is removed.
        draw(news, Some("snow"), None).await;
        draw(chess, Some("d4 d5"), None).await;
        draw(chess, None, None).await;
        assert!(shown().await.is_empty());
    }

    #[tokio::test]
    async fn an_app_that_became_dormant_does_not_listen_until_it_subscribes_again() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        tasks.set_url("ws://127.0.0.1:1/app-ws".to_owned());
        // It takes connections, and answers nothing.
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (package, public_url) = ("org.example.app".to_owned(), format!("http://{}", server.local_addr().unwrap()));
        let app = App { package: package.clone(), public_url, ..App::default() };
        tasks.common.installed.add(app).await.unwrap();
        let mut task = Task::new(tasks.clone(), USER.to_owned(), mpsc::channel(1).1);
        let began = task.now();
        let absent = Timestamp { mono_us: began.mono_us + ABSENT_MS_MAX * 1_000, ..began };
        let carry_out = |task: &mut Task, now: Timestamp| {
            while let Some(output) = task.driver.poll_output(now) {
                task.carry_out(output);
            }
            task.settled();
        };
        let (name, kind, session) = (String::new(), AppKind::Foreground, "s-1".to_owned());
        let cards = vec![AppCard { package: package.clone(), name, kind, session }];
        let (socket, _told) = mpsc::channel(16);
        let connection = 1;
        for message in [
            AppsMessage::Restore { cards, reply: oneshot::channel().0 },
            AppsMessage::Joined { package: package.clone(), connection, resumed: true, socket },
            AppsMessage::Listens { package: package.clone(), connection, listens: true },
        ] {
            task.handle_event(task::Event::Message(message));
            carry_out(&mut task, began);
        }
        task.driver.push_timeout();
        carry_out(&mut task, absent);
        assert_eq!(task.lives().state(&package), Some(AppState::Stopping));
        task.handle_event(task::Event::Message(AppsMessage::Left { package, connection, reply: oneshot::channel().0 }));
        carry_out(&mut task, absent);
        let (mailbox, mut messages) = mpsc::channel(16);
        assert!(tasks.common.roster.enter("glasses", present(mailbox), 1).is_ok());
        let (device, glasses, reply) = ("glasses".to_owned(), Glasses::default(), oneshot::channel().0);
        task.handle_event(task::Event::Message(AppsMessage::GlassesCame { device, glasses, reply }));
        carry_out(&mut task, absent);
        let told: Vec<_> = std::iter::from_fn(|| messages.try_recv().ok()).filter_map(|told| told.input()).collect();
        assert!(matches!(told.as_slice(), [Input::App(AppEvent::Starting { .. })]), "{told:#?}");
    }

    #[tokio::test]
    async fn apps_are_told_of_the_glasses_that_remain() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        let mut messages = run(&tasks, "chess", AppKind::Foreground, 1).await;
        for (session, device) in [(1, "one"), (2, "two")] {
            let present = Present { session, ..present(mpsc::channel(1).0) };
            assert!(tasks.common.roster.enter(device, present, 2).is_ok());
            let glasses = Glasses { model: device.to_owned(), ..Glasses::default() };
            ask(&tasks, |reply| AppsMessage::GlassesCame { device: device.to_owned(), glasses, reply }).await;
        }
        for (session, device) in [(2, "two"), (1, "one")] {
            assert!(tasks.common.roster.leave(device, session));
            ask(&tasks, |reply| AppsMessage::GlassesWent { device: device.to_owned(), reply }).await;
        }
        let told = std::iter::from_fn(|| messages.try_recv().ok()).filter_map(|message| match message {
            ToApp::Json(message) if message["type"] == "capabilities_update" => Some(message["modelName"].clone()),
            _ => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), ["one", "two", "one"]);
    }

    #[tokio::test]
    async fn apps_are_told_what_is_spoken_to_the_glasses_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        let mut messages = run(&tasks, "chess", AppKind::Foreground, 1).await;
        let [english, spanish] = ["en", "es"].map(|tag| Spoken::of(tag).unwrap());
        // The first pair comes back in another language, and one has no microphone.
        for (device, microphone) in
            [("one", Some(english)), ("two", Some(spanish)), ("three", None), ("one", Some(spanish))]
        {
            let (device, glasses) = (device.to_owned(), Glasses { microphone, ..Glasses::default() });
            ask(&tasks, |reply| AppsMessage::GlassesCame { device, glasses, reply }).await;
        }
        for device in ["one", "two"] {
            ask(&tasks, |reply| AppsMessage::GlassesWent { device: device.to_owned(), reply }).await;
        }
        let told = std::iter::from_fn(|| messages.try_recv().ok()).filter_map(|message| match message {
            ToApp::Spoken(spoken) => Some(spoken),
            _ => None,
        });
        let both = || vec![english, spanish];
        let expected = [vec![], vec![english], both(), both(), vec![spanish, spanish], vec![spanish], vec![]];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }

    #[tokio::test]
    async fn who_was_answered_sees_what_he_was_answered() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        assert!(!tasks.knows(USER));
        come(&tasks).await;
        assert_eq!(tasks.snapshot(USER).glasses["glasses"].model, "Sim");
        let (package, session) = ("org.example.app".to_owned(), "s-1".to_owned());
        let card = AppCard { package: package.clone(), name: String::new(), kind: AppKind::Foreground, session };
        ask(&tasks, |reply| AppsMessage::Restore { cards: vec![card], reply }).await;
        assert_eq!(tasks.by_session("s-1").map(|(user, _)| user).as_deref(), Some(USER));
        let reason = AppStopReason::User;
        let stop = |reply| AppsMessage::Stop { package: package.clone(), reason, reply };
        assert!(ask(&tasks, stop).await);
        assert!(tasks.snapshot(USER).states().is_empty() && tasks.by_session("s-1").is_none());
        assert!(!ask(&tasks, stop).await, "it does not run any more");
        go(&tasks).await;
        assert!(tasks.snapshot(USER).glasses.is_empty());
    }

    #[tokio::test]
    async fn who_starts_an_app_that_does_not_know_its_session_yet_waits_like_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        tasks.set_url("ws://127.0.0.1:1/app-ws".to_owned());
        // It takes connections, and answers nothing: the test answers for it.
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (package, public_url) = ("org.example.app".to_owned(), format!("http://{}", server.local_addr().unwrap()));
        let app = App { package: package.clone(), public_url, ..App::default() };
        let app = tasks.common.installed.add(app).await.unwrap();
        tasks.start(USER);
        let tell = |message| assert!(tasks.try_tell(USER, message));
        let start = || {
            let (reply, answer) = oneshot::channel();
            tell(AppsMessage::Start { app: app.clone(), reply });
            answer
        };
        // On this single thread all of them are in the mailbox before the task takes the first: no time passes for it.
        let (socket, _told) = mpsc::channel(1);
        let first = start();
        tell(AppsMessage::Joined { package: package.clone(), connection: 1, resumed: false, socket });
        let second = start();
        tell(AppsMessage::Input(AppInput::Answered { package, call: 1, outcome: Ok(()) }));
        let third = start();
        assert_eq!(first.await.unwrap(), Ok(true));
        assert_eq!(second.await.unwrap(), Ok(true), "it was called before the webhook had answered");
        assert_eq!(third.await.unwrap(), Ok(false));
    }

    #[tokio::test]
    async fn a_session_keeps_its_name_and_gets_a_new_one_where_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        let (store, package) = (&tasks.common.store, "org.example.app");
        // Each as after a restart.
        let name = || Task::new(tasks.clone(), USER.to_owned(), mpsc::channel(1).1).session_name(package).unwrap();
        let first = name();
        store.settled().await.unwrap();
        assert_eq!(name(), first);
        spoil(store, Kind::AppSessionNames, USER, package.as_bytes());
        let second = name();
        assert_ne!(second, first);
        store.settled().await.unwrap();
        assert_eq!(name(), second);
    }

    #[tokio::test]
    async fn after_a_panic_the_glasses_come_back_to_a_new_task() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        let (mailbox, _told) = mpsc::channel(4);
        let present = present(mailbox);
        let ending = present.ending.clone();
        assert!(tasks.common.roster.enter("glasses", present, 1).is_ok());
        come(&tasks).await;
        assert!(tasks.send(USER, AppsMessage::Panic).await);
        assert_eq!(ending.asked().await.0, GoodbyeReason::Internal);
        come(&tasks).await;
        assert_eq!(tasks.snapshot(USER).glasses.len(), 1);
    }

    #[tokio::test]
    async fn with_an_erasure_the_task_ends_unless_something_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        come(&tasks).await;
        ask(&tasks, |reply| AppsMessage::Erased { reply }).await;
        assert_eq!(tasks.snapshot(USER).glasses.len(), 1);
        go(&tasks).await;
        assert!(tasks.knows(USER), "it stays for a while");
        ask(&tasks, |reply| AppsMessage::Erased { reply }).await;
        tasks.running.close();
        tasks.running.wait().await;
        assert!(!tasks.knows(USER));
        assert!(!tasks.tell(USER, AppsMessage::Battery { percent: 9, charging: false }).await, "nobody is there");
    }

    #[tokio::test]
    async fn a_task_with_a_message_to_come_does_not_leave() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        let (mailbox, messages) = mpsc::channel(1);
        tasks.places().insert(USER.to_owned(), Place { mailbox, snapshot: Arc::default() });
        let battery = || AppsMessage::Battery { percent: 9, charging: false };
        assert!(tasks.try_tell(USER, battery()));
        assert!(!tasks.leave(USER, &messages), "a message waits");
        let mut messages = messages;
        let waiting @ Given::NoRoom(..) = tasks.give(USER, battery()) else { panic!("there is no room") };
        messages.recv().await.unwrap();
        assert!(!tasks.leave(USER, &messages), "somebody waits for room");
        drop(waiting);
        assert!(tasks.leave(USER, &messages) && !tasks.knows(USER));
    }

    #[tokio::test]
    async fn a_full_mailbox_is_waited_for_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        tasks.start(USER);
        // On this single thread the task does not run before a sender waits.
        let battery = || AppsMessage::Battery { percent: 9, charging: false };
        assert!((0..MESSAGES_MAX).all(|_| tasks.try_tell(USER, battery())));
        assert!(!tasks.try_tell(USER, battery()), "what is not waited for is refused");
        come(&tasks).await;
        assert_eq!(tasks.snapshot(USER).glasses.len(), 1);
    }

    #[tokio::test]
    async fn the_gateways_stop_ends_all_tasks_and_starts_none() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = tasks(folder.path());
        come(&tasks).await;
        tasks.common.stop.cancel();
        tasks.stopped().await;
        let (reply, answer) = oneshot::channel();
        assert!(!tasks.send(USER, AppsMessage::Erased { reply }).await);
        assert!(answer.await.is_err());
        assert!(!tasks.send("bob", AppsMessage::Battery { percent: 9, charging: false }).await);
        assert!(!tasks.knows("bob"));
    }
}
