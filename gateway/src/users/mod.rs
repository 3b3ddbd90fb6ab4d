//! One task per user, which drives the user's machine; it outlives connections.

mod summary;
mod task;
mod title;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use device_protocol::GoodbyeReason;

use gateway_core::{
    input::UserInput,
    limits::{HISTORY_MESSAGES_MAX, SPENDING_DAYS_MAX},
    user::{self, Quiescence},
    vocab::{Message, OpenEntry, Role, ScheduleChange, ScheduleEntry},
};
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot,
};
use tokio_util::sync::CancellationToken;
use tools::secret::Secrets;

use self::task::Task;
use crate::{
    approvals::ApprovalBroker,
    limits::Limits,
    models::{chain::ModelChain, spending},
    roster::Roster,
    runtime::{drive::drive, restarts::Restarts, spawn, spawn_or},
    store::{self, Store, names},
};

/// Messages that may wait for one user: several devices and their tools.
const WAITING_MAX: usize = 256;
/// Users that one log line names.
const LEFT_OUT_NAMED_MAX: usize = 8;

/// The models that summarise old turns, and the language.
#[derive(Clone)]
pub struct Summariser {
    /// All models; the user's machine selects one.
    pub models: ModelChain,
    /// BCP 47 tag.
    pub language: String,
    /// No model is sent these.
    pub secrets: Secrets,
}

/// A message to a user's task.
#[allow(missing_docs, reason = "the variants say what their fields are")]
pub enum UserMessage {
    /// An input for the machine.
    Input(Box<UserInput>),
    /// Change the schedule; answered when the change is stored.
    Schedule { change: ScheduleChange, reply: oneshot::Sender<ScheduleReply> },
    /// All entries that are not done.
    List { reply: oneshot::Sender<Vec<OpenEntry>> },
    /// For a test: the task fails.
    #[cfg(test)]
    Panic,
}

impl From<UserInput> for UserMessage {
    fn from(input: UserInput) -> Self {
        Self::Input(Box::new(input))
    }
}

/// The entry that a change created or removed, if any. An error: why nothing was changed, as text.
pub(crate) type ScheduleReply = Result<Option<ScheduleEntry>, String>;

/// All users' tasks, started on first use. One that has nothing to do ends, and is started again on the next use.
pub struct Users {
    this: Weak<Self>,
    store: Store,
    roster: Arc<Roster>,
    approvals: Arc<ApprovalBroker>,
    config: user::Config,
    /// Users that may have a task at once, and that may have devices.
    users_max: usize,
    /// When a task that has nothing to do ends, in microseconds.
    idle_us: u64,
    summariser: Summariser,
    tasks: Mutex<Tasks>,
    restarts: Restarts,
}

/// A task that runs.
struct Running {
    /// The only lasting sender besides those of the user's sessions: without it the task ends.
    mailbox: mpsc::Sender<UserMessage>,
    /// Ends the task at once, whatever waits for it.
    end: CancellationToken,
    /// Number of the task: a user's next task has another one.
    number: u64,
    /// Set by the task while its mailbox is empty and nobody else has a sender.
    quiescence: Option<Quiescence>,
}

#[derive(Default)]
struct Tasks {
    running: BTreeMap<String, Running>,
    /// The last number that was given.
    numbered: u64,
    /// Users whose data is being erased: they have no task.
    barred: BTreeSet<String>,
    /// Users whose task has panicked and was not started again since.
    down: BTreeSet<String>,
}

impl Users {
    /// Initial state: no task runs.
    pub fn new(
        store: Store,
        roster: Arc<Roster>,
        approvals: Arc<ApprovalBroker>,
        (config, limits): (user::Config, &Limits),
        summariser: Summariser,
    ) -> Arc<Self> {
        let users = Arc::new_cyclic(|this| Self {
            this: this.clone(),
            store,
            roster,
            approvals: approvals.clone(),
            config,
            users_max: limits.users_max,
            idle_us: limits.user_idle_ms.saturating_mul(1_000),
            summariser,
            tasks: Mutex::default(),
            restarts: Restarts::default(),
        });
        // Weak: users' tasks hold the questions.
        let weak = Arc::downgrade(&users);
        approvals.set_users(Box::new(move |user, input| {
            let mailbox = weak.upgrade().and_then(|users| users.mailbox(user).ok());
            mailbox.is_some_and(|mailbox| mailbox.try_send(input.into()).is_ok())
        }));
        users
    }

    /// Daily limit of a user's model costs, in billionths; `None`: no limit.
    pub(crate) fn nano_per_day(&self) -> Option<u64> {
        self.config.nano_per_day
    }

    /// Ends a user's task and starts no other until [`admit`](Self::admit).
    pub fn bar(&self, user: &str) {
        let mut tasks = self.tasks();
        tasks.barred.insert(user.to_owned());
        tasks.down.remove(user);
        if let Some(running) = tasks.running.remove(user) {
            running.end.cancel();
        }
    }

    /// Allows the user a task again.
    pub fn admit(&self, user: &str) {
        self.tasks().barred.remove(user);
    }

    /// Sends an input to a user's task, if it runs.
    pub fn tell(&self, user: &str, input: UserInput) {
        // Under the lock, so that the task does not end as idle meanwhile.
        if let Some(running) = self.tasks().running.get_mut(user)
            && running.mailbox().try_send(input.into()).is_err()
        {
            tracing::warn!("a user's task does not take its messages");
        }
    }

    /// Has this told on the user's next device. Starts the user's task where there is none, and waits in the background
    /// where its mailbox is full; `false`: there can be none.
    pub(crate) fn undelivered(&self, user: &str, text: String) -> bool {
        let Ok(mailbox) = self.mailbox(user) else { return false };
        if let Err(TrySendError::Full(message)) = mailbox.try_send(UserInput::Undelivered { text }.into()) {
            spawn("undelivered", async move { mailbox.send(message).await });
        }
        true
    }

    /// The number of a user's task, if it runs: the next one has another.
    pub(crate) fn number(&self, user: &str) -> Option<u64> {
        self.tasks().running.get(user).map(|running| running.number)
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the tasks of all users that have a timer or reminder and a device to announce it on. Failures are logged,
    /// one line per reason, and do not affect other users.
    pub(crate) fn wake_all(&self) {
        match self.with_schedule() {
            Ok(users) => {
                let mut left_out = BTreeMap::<String, Vec<String>>::new();
                for user in users {
                    if let Err(error) = self.mailbox(&user) {
                        left_out.entry(error.to_string()).or_default().push(user);
                    }
                }
                for (error, users) in left_out {
                    let (count, some) = (users.len(), &users[..users.len().min(LEFT_OUT_NAMED_MAX)]);
                    tracing::error!(count, users = ?some, error, "users are left out: what is due is not told");
                }
            }
            Err(error) => tracing::error!(%error, "no user could be woken: what is due is not told"),
        }
    }

    /// Users with a device that may connect.
    fn with_devices(&self) -> Result<BTreeSet<String>, store::Error> {
        let devices = self.store.disk().devices()?;
        Ok(names::users(&devices).into_iter().map(str::to_owned).collect())
    }

    /// Those of them that have timers or reminders, without users that are being erased: these are told nothing.
    fn with_schedule(&self) -> Result<BTreeSet<String>, store::Error> {
        let mut users = self.with_devices()?;
        let scheduled: BTreeSet<String> = self.store.disk().scheduled()?.into_iter().collect();
        let tasks = self.tasks();
        users.retain(|user| scheduled.contains(user) && !tasks.barred.contains(user));
        Ok(users)
    }

    /// Whether a device may be paired for this user.
    ///
    /// # Errors
    /// As many other users have devices as may, this one is being erased, or the store cannot be read.
    pub(crate) fn check_room(&self, user: &str) -> Result<(), store::Error> {
        if self.tasks().barred.contains(user) {
            return Err(store::Error::Erasing);
        }
        names::check_users(&self.store.disk().devices()?, user, self.users_max)
    }

    /// Ends a task that is quiescent: an idle one, else one that waits for what no device could announce. Returns
    /// whether there was one. Its state is in the store, and is loaded when it is needed again.
    fn retire(&self, tasks: &mut Tasks) -> Result<bool, store::Error> {
        let quiescent = |wanted| tasks.running.iter().filter(move |(_, running)| running.quiescence == Some(wanted));
        let mut found = quiescent(Quiescence::Idle).map(|(user, _)| user.clone()).next();
        if found.is_none() {
            let needed = self.with_devices()?;
            found = quiescent(Quiescence::Pending).map(|(user, _)| user.clone()).find(|user| !needed.contains(user));
        }
        // Without a sender the task ends.
        Ok(found.is_some_and(|user| tasks.running.remove(&user).is_some()))
    }

    /// A task has nothing to do at the moment: `quiescence`. Where nobody has a sender to it, it may be ended from now
    /// on, and is if `leaves`. Returns whether it may.
    fn rests(&self, user: &str, number: u64, quiescence: Quiescence, leaves: bool) -> bool {
        let mut tasks = self.tasks();
        let Some(running) = tasks.running.get_mut(user).filter(|running| running.number == number) else {
            return true;
        };
        // Senders are handed out under this lock only.
        let alone = running.mailbox.strong_count() == 1 && running.mailbox.capacity() == WAITING_MAX;
        running.quiescence = alone.then_some(quiescence);
        if alone && leaves {
            tasks.running.remove(user);
        }
        alone
    }

    /// A user's task has panicked. Another one is started from what is stored, within
    /// [`RESTARTS_MAX`](crate::runtime::restarts::RESTARTS_MAX). The user's devices are sent away: they come back to the
    /// new task, which does not know them yet.
    fn panicked(&self, user: &str) {
        {
            let mut tasks = self.tasks();
            if tasks.running.get(user).is_some_and(|running| running.mailbox.is_closed()) {
                tasks.running.remove(user);
            }
        }
        for (id, _) in self.roster.all().iter().filter(|(_, present)| present.user == user) {
            self.roster.dismiss(id, GoodbyeReason::Internal, "the task of this device's user is started again");
        }
        let again = match self.restarts.allow(user) {
            true => self.mailbox(user).map_err(|error| error.to_string()),
            false => Err("it panics again and again".to_owned()),
        };
        match again {
            Ok(_) => tracing::error!(user, "the task of a user has panicked; it is started again"),
            Err(why) => {
                tracing::error!(
                    user,
                    why,
                    "the task of a user has panicked and is not started again: what is due is not told until it is needed"
                );
                self.mark_down(user);
            }
        }
    }

    /// A user's task is not started again by itself. Somebody may have needed it meanwhile, and nothing is missing while
    /// the user is being erased.
    fn mark_down(&self, user: &str) {
        let mut tasks = self.tasks();
        if !tasks.running.contains_key(user) && !tasks.barred.contains(user) {
            tasks.down.insert(user.to_owned());
        }
    }

    /// Number of running tasks.
    pub fn count(&self) -> usize {
        self.tasks().running.len()
    }

    /// Number of users whose task has panicked and does not run: what is due is not told to them.
    pub(crate) fn down(&self) -> usize {
        self.tasks().down.len()
    }

    /// A user's mailbox.
    ///
    /// # Errors
    /// The store cannot be read, there are too many users, or this one is being erased.
    pub fn mailbox(&self, user: &str) -> Result<mpsc::Sender<UserMessage>, store::Error> {
        let mut tasks = self.tasks();
        if tasks.barred.contains(user) {
            return Err(store::Error::Erasing);
        }
        if let Some(running) = tasks.running.get_mut(user).filter(|running| !running.mailbox.is_closed()) {
            return Ok(running.mailbox());
        }
        tasks.running.remove(user);
        if tasks.running.len() >= self.users_max && !self.retire(&mut tasks)? {
            return Err(store::Error::TooManyUsers(self.users_max));
        }
        let restored = restore(&self.store, user)?;
        let (mailbox, messages) = mpsc::channel(WAITING_MAX);
        let end = CancellationToken::new();
        tasks.numbered += 1;
        let number = tasks.numbered;
        let mut task = Task::new(self, (user, number), messages, end.clone());
        task.driver.push(restored);
        let (users, name) = (self.this.clone(), user.to_owned());
        let panicked = move || users.upgrade().into_iter().for_each(|users| users.panicked(&name));
        spawn_or("user", async move { drive(&mut task).await }, panicked);
        tasks.down.remove(user);
        tasks.running.insert(user.to_owned(), Running { mailbox: mailbox.clone(), end, number, quiescence: None });
        Ok(mailbox)
    }
}

impl Running {
    /// A sender, which keeps the task from ending.
    fn mailbox(&mut self) -> mpsc::Sender<UserMessage> {
        self.quiescence = None;
        self.mailbox.clone()
    }
}

fn restore(store: &Store, user: &str) -> Result<UserInput, store::Error> {
    let last = store.disk().latest_conversation(user)?;
    // Under the lock of all tasks: no more is read than is needed.
    let said = match &last {
        Some(last) => store.disk().newest_of(user, last, HISTORY_MESSAGES_MAX as u64)?,
        None => Vec::new(),
    };
    let summary = last.as_ref().and_then(|last| last.summary.as_ref());
    let history: Vec<Message> = said
        .iter()
        .filter_map(|record| serde_json::from_str(&record.json).ok())
        .skip_while(|message: &Message| message.role != Role::User)
        .collect();
    let schedule = store.disk().entries(user)?;
    let next_id = schedule.iter().map(|entry| entry.id + 1).max().unwrap_or(1);
    let summary = summary.map(|summary| summary.text.clone());
    let last_wall_ms = last.map(|last| last.last_wall_ms);
    let spending = spending::days(store, user, SPENDING_DAYS_MAX)?;
    Ok(UserInput::Restored { summary, history, last_wall_ms, schedule, next_id, spending })
}

#[cfg(test)]
mod tests {
    use gateway_core::{output::UserOutput, vocab::ScheduleKind};
    use tools::registry::Registry;

    use super::*;
    use crate::{
        runtime::{drive::Shell as _, restarts::RESTARTS_MAX},
        store::{DeviceRecord, Write},
    };

    pub(super) fn open(folder: &tempfile::TempDir) -> Arc<Users> {
        let store = Store::open(folder.path(), 16).unwrap();
        let roster = Arc::<Roster>::default();
        let approvals = Arc::new(ApprovalBroker::new(roster.clone(), Arc::<Registry>::default()));
        let (models, secrets) = (ModelChain::default(), Secrets::default());
        let summariser = Summariser { models, language: "en".into(), secrets };
        let limits = crate::config::check("", "none").unwrap().limits;
        Users::new(store, roster, approvals, (user::Config::default(), &limits), summariser)
    }

    #[tokio::test]
    async fn users_that_are_being_erased_are_not_among_those_that_are_woken() {
        let folder = tempfile::tempdir().unwrap();
        let users = open(&folder);
        for (at, user) in (1..).zip(["ann", "bob"]) {
            let device = DeviceRecord {
                key: [at; 32],
                name: format!("{user}'s"),
                user: user.to_owned(),
                model: "G1".to_owned(),
                paired_wall_ms: 1,
                revoked: false,
            };
            let kind = ScheduleKind::Reminder { text: "oven".to_owned() };
            let entry = ScheduleEntry { id: 1, kind, due_wall_ms: 4_000_000_000_000, duration_ms: None };
            for write in [
                Write::PutDevice { id: format!("device-{user}"), device },
                Write::PutEntry { user: user.to_owned(), entry },
            ] {
                users.store.write(write).await.unwrap();
            }
        }
        users.bar("ann");
        // Whoever else is left out is logged as an error, with the name.
        assert_eq!(users.with_schedule().unwrap(), BTreeSet::from(["bob".to_owned()]));
        users.wake_all();
        assert!(users.tasks().running.keys().eq(["bob"]));
        users.admit("ann");
        assert_eq!(users.with_schedule().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn a_summary_by_a_model_that_is_not_there_has_failed_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let users = open(&folder);
        let mut task = Task::new(&users, ("ann", 1), mpsc::channel(1).1, CancellationToken::new());
        task.carry_out(UserOutput::Summarise { request: 1, rank: 0, messages: Vec::new() });
        assert!(!task.driver.is_idle(), "the machine is told");
    }

    #[tokio::test]
    async fn a_users_task_that_panics_is_started_again_a_bounded_number_of_times() {
        let folder = tempfile::tempdir().unwrap();
        let users = open(&folder);
        for _ in 0..RESTARTS_MAX {
            let mailbox = users.mailbox("ann").unwrap();
            mailbox.send(UserMessage::Panic).await.unwrap();
            mailbox.closed().await;
            let again = async {
                while users.tasks().running.get("ann").is_none_or(|running| running.mailbox.is_closed()) {
                    tokio::task::yield_now().await;
                }
            };
            again.await;
        }
        let mailbox = users.mailbox("ann").unwrap();
        mailbox.send(UserMessage::Panic).await.unwrap();
        mailbox.closed().await;
        while users.down() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(users.count(), 0);
        // A caller that needs it gets it.
        let mailbox = users.mailbox("ann").unwrap();
        assert_eq!((users.count(), users.down()), (1, 0));
        mailbox.send(UserMessage::Panic).await.unwrap();
        mailbox.closed().await;
        while users.down() == 0 {
            tokio::task::yield_now().await;
        }
        users.bar("ann");
        assert_eq!(users.down(), 0, "nothing is due to who is erased");
    }

    #[tokio::test]
    async fn what_was_not_heard_is_kept_where_the_mailbox_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let users = open(&folder);
        let mailbox = users.mailbox("ann").unwrap();
        // Nothing is awaited, so the task does not run meanwhile.
        while mailbox.try_send(UserMessage::List { reply: oneshot::channel().0 }).is_ok() {}
        assert!(users.undelivered("ann", "It is noon.".to_owned()));
        while users.store.disk().entries("ann").unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_was_not_heard_is_kept_behind_a_panic_and_not_of_a_user_who_is_erased() {
        let folder = tempfile::tempdir().unwrap();
        let users = open(&folder);
        let mailbox = users.mailbox("ann").unwrap();
        mailbox.send(UserMessage::Panic).await.unwrap();
        mailbox.closed().await;
        assert!(users.undelivered("ann", "It is noon.".to_owned()));
        while users.store.disk().entries("ann").unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let kind = ScheduleKind::Answer { text: "It is noon.".to_owned() };
        assert_eq!(users.store.disk().entries("ann").unwrap()[0].kind, kind);
        users.bar("ann");
        assert!(!users.undelivered("ann", "It is noon.".to_owned()));
    }
}
