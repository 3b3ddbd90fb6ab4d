//! The task of one user: its machine, and the outputs that it carries out.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use gateway_core::{
    driver::Driver,
    input::{AnnouncementId, Input, UserInput},
    output::{Record, UserOutput},
    user::{Quiescence, User},
    vocab::{Message, Timestamp, Unkept, Usage},
};
use tokio::sync::{
    mpsc::{self, OwnedPermit},
    oneshot,
};
use tokio_util::sync::CancellationToken;

use super::{
    ScheduleReply, Summariser, UserMessage, Users,
    summary::{self, Summed},
    title,
};
use crate::{
    approvals::ApprovalBroker,
    clock,
    mailbox::DeviceMessage,
    models::spending,
    roster::Roster,
    runtime::{drive::Shell, spawn},
    store::{self, MessageRecord, Store, Write},
};

/// Writes and summaries of one user that may be in progress; the store takes four times as many of all users.
const IN_PROGRESS_MAX: usize = 256;
/// Until it is looked again whether somebody still has a sender of a task that has nothing to do, in microseconds.
const RECHECK_US: u64 = 1_000_000;
/// Until a task that rests says so again, in microseconds. A sender that was handed out meanwhile and dropped unused has woken
/// nobody, and a task that is not known to rest makes no room for another user's.
const REST_AGAIN_US: u64 = 10_000_000;

/// A user's task.
pub(super) struct Task {
    users: Weak<Users>,
    name: String,
    number: u64,
    pub(super) driver: Driver<User>,
    store: Store,
    roster: Arc<Roster>,
    approvals: Arc<ApprovalBroker>,
    summariser: Summariser,
    /// By then the machine has given up a summary.
    summary_wait: Duration,
    /// Callers waiting for a change of the schedule, by request number.
    schedule_replies: BTreeMap<u64, oneshot::Sender<ScheduleReply>>,
    next_request: u64,
    messages: mpsc::Receiver<UserMessage>,
    /// What was in progress, with a place for each result: its sender never waits.
    results: mpsc::Receiver<Box<UserInput>>,
    results_sender: mpsc::Sender<Box<UserInput>>,
    end: CancellationToken,
    ended: bool,
    /// When it ends without anything to do, in microseconds.
    idle_us: u64,
    /// Since when there has been nothing to do, in microseconds.
    quiet_us: Option<u64>,
    /// When to say again that it rests, and whether it may end.
    recheck_us: Option<u64>,
}

/// What happens to a user's task.
pub(super) enum Event {
    Message(Option<UserMessage>),
    Result(Box<UserInput>),
    /// All data of the user is being erased.
    End,
}

impl Shell for Task {
    type Machine = User;
    type Event = Event;
    type End = ();

    fn driver(&mut self) -> &mut Driver<User> {
        &mut self.driver
    }

    fn now(&self) -> Timestamp {
        clock::now()
    }

    async fn next_event(&mut self) -> Event {
        tokio::select! {
            biased;
            () = self.end.cancelled() => Event::End,
            Some(result) = self.results.recv() => Event::Result(result),
            message = self.messages.recv() => Event::Message(message),
        }
    }

    fn handle_event(&mut self, event: Event) {
        (self.quiet_us, self.recheck_us) = (None, None);
        match event {
            Event::Result(input) | Event::Message(Some(UserMessage::Input(input))) => self.driver.push(*input),
            // Nobody has a sender any more: it was ended as idle, or the gateway stops.
            Event::End | Event::Message(None) => self.ended = true,
            Event::Message(Some(UserMessage::Schedule { change, reply })) => {
                let request = self.next_request;
                self.next_request += 1;
                self.schedule_replies.insert(request, reply);
                self.driver.push(UserInput::Schedule { request, change });
            }
            Event::Message(Some(UserMessage::List { reply })) => {
                drop(reply.send(self.driver.machine().entries(clock::now())));
            }
            #[cfg(test)]
            Event::Message(Some(UserMessage::Panic)) => panic!("on purpose"),
        }
    }

    fn carry_out(&mut self, output: UserOutput) {
        match output {
            UserOutput::Grant { device, turn, history, route } => {
                self.tell(&device, Input::Granted { turn, history, route });
            }
            UserOutput::Timers { device, running } => self.tell(&device, Input::Timers(running)),
            UserOutput::Announce { device, announcement } => self.tell(&device, Input::Announce(announcement)),
            UserOutput::Withdraw { device, id } => {
                self.tell(&device, Input::Withdraw { id: AnnouncementId::Schedule(id) });
            }
            UserOutput::MessagesNotKept { device } => self.tell(&device, Input::NotKept(Unkept::Messages)),
            UserOutput::Scheduled { request, entry } => self.schedule_changed(request, Ok(Some(entry))),
            UserOutput::Unscheduled { request, entry } => self.schedule_changed(request, Ok(entry)),
            UserOutput::ScheduleFailed { request, reason } => self.schedule_changed(request, Err(reason)),
            UserOutput::Ask { device, approval } => self.approvals.put(device.as_deref(), approval),
            UserOutput::ApprovalSettled(settled) => self.approvals.settle(None, settled),
            UserOutput::Summarise { request, rank, messages } => self.summarise(request, rank, messages),
            UserOutput::Persist { ticket, record } => self.persist(ticket, record),
        }
    }

    fn settled(&mut self) {
        if !self.driver.is_idle() {
            return;
        }
        match self.quiescence() {
            Some(quiescence) if self.quiet_us.is_none() => self.report_rest(quiescence),
            Some(_) => {}
            None => (self.quiet_us, self.recheck_us) = (None, None),
        }
    }

    fn next_tick_us(&self) -> Option<u64> {
        self.recheck_us
    }

    fn tick(&mut self) {
        if self.recheck_us.is_some_and(|at_us| at_us <= clock::mono_us())
            && let Some(quiescence) = self.quiescence()
        {
            self.report_rest(quiescence);
        }
    }

    fn end(&mut self) -> Option<()> {
        self.ended.then_some(())
    }
}

impl Task {
    /// The task of this user, with this number.
    pub(super) fn new(
        users: &Users,
        (name, number): (&str, u64),
        messages: mpsc::Receiver<UserMessage>,
        end: CancellationToken,
    ) -> Self {
        let (results_sender, results) = mpsc::channel(IN_PROGRESS_MAX);
        Self {
            users: users.this.clone(),
            name: name.to_owned(),
            number,
            driver: Driver::new(User::new(users.config.clone())),
            store: users.store.clone(),
            roster: users.roster.clone(),
            approvals: users.approvals.clone(),
            summariser: users.summariser.clone(),
            summary_wait: Duration::from_millis(users.config.compaction.summary_ms_max.into()),
            schedule_replies: BTreeMap::new(),
            next_request: 1,
            messages,
            results,
            results_sender,
            end,
            ended: false,
            idle_us: users.idle_us,
            quiet_us: None,
            recheck_us: None,
        }
    }

    /// Whether there is nothing to do.
    fn quiescence(&self) -> Option<Quiescence> {
        let in_progress = self.results_sender.capacity() < IN_PROGRESS_MAX;
        self.driver.machine().quiescence().filter(|_| !in_progress)
    }

    /// Reports that there is nothing to do; after a while of that the task is ended.
    fn report_rest(&mut self, quiescence: Quiescence) {
        let now_us = clock::mono_us();
        let over_us = self.quiet_us.get_or_insert(now_us).saturating_add(self.idle_us);
        let leaves = quiescence == Quiescence::Idle && over_us <= now_us;
        let alone = self.users.upgrade().is_none_or(|users| users.rests(&self.name, self.number, quiescence, leaves));
        let wait_us = match (alone, quiescence) {
            (false, _) => RECHECK_US,
            (true, Quiescence::Idle) => over_us.saturating_sub(now_us).clamp(RECHECK_US, REST_AGAIN_US),
            (true, Quiescence::Pending) => REST_AGAIN_US,
        };
        self.recheck_us = Some(now_us.saturating_add(wait_us));
    }

    /// A place for one result; `None`: too much is in progress.
    fn reserve(&self) -> Option<OwnedPermit<Box<UserInput>>> {
        self.results_sender.clone().try_reserve_owned().ok()
    }

    fn schedule_changed(&mut self, request: u64, result: ScheduleReply) {
        if let Some(reply) = self.schedule_replies.remove(&request) {
            drop(reply.send(result));
        }
    }

    fn summarise(&mut self, request: u64, rank: u8, mut messages: Vec<Message>) {
        let Summariser { models, language, secrets } = self.summariser.clone();
        let Some(model) = models.get(usize::from(rank)).cloned() else {
            return self.driver.push(UserInput::Summarised { request, text: None, rank, usage: Usage::default() });
        };
        // Without a place it is asked for again, as when the model fails.
        let (Some(reply), end, wait) = (self.reserve(), self.end.clone(), self.summary_wait) else { return };
        spawn("summary", async move {
            secrets.redact_messages(&mut messages);
            let summing = summary::summarise(wait, model, language, messages);
            let Summed { text, usage } = tokio::select! {
                summed = summing => summed,
                // The user is being erased: stop reading.
                () = end.cancelled() => return,
            };
            reply.send(Box::new(UserInput::Summarised { request, text, rank, usage }));
        });
    }

    fn tell(&self, device: &str, input: Input) {
        let told =
            self.roster.get(device).is_some_and(|present| present.mailbox.try_send(DeviceMessage::from(input)).is_ok());
        if !told {
            tracing::debug!(device, "a device of this user is gone");
        }
    }

    fn persist(&mut self, ticket: u64, record: Record) {
        let failed = move |error: store::Error| UserInput::PersistFailed { ticket, reason: error.to_string() };
        let submitted = match self.reserve() {
            // Runs on the store's thread, which must not wait for any user's task.
            Some(place) => self.store.submit(write_of(&self.name, record), move |result| {
                place.send(Box::new(result.map_or_else(failed, |_| UserInput::Persisted { ticket })));
            }),
            None => Err(store::Error::Busy),
        };
        if let Err(error) = submitted {
            self.driver.push(failed(error));
        }
    }
}

fn write_of(user: &str, record: Record) -> Write {
    let user = user.to_owned();
    match record {
        Record::Messages(messages) => {
            let wall_ms = clock::wall_ms();
            let title = title::title(&messages);
            let messages = messages
                .iter()
                .filter_map(|message| serde_json::to_string(message).ok())
                .map(|json| MessageRecord { wall_ms, json })
                .collect();
            Write::AppendMessages { user, messages, title }
        }
        Record::Summary { text, behind } => Write::PutSummary { user, text, behind },
        Record::Spending(spending) => spending::write(user, spending),
        Record::ConversationBegan => Write::BeginConversation { user, wall_ms: clock::wall_ms() },
        Record::HistoryCleared => Write::ClearMessages { user },
        Record::Entry(entry) => Write::PutEntry { user, entry },
        Record::EntryRemoved { id } => Write::RemoveEntry { user, id },
    }
}

#[cfg(test)]
mod tests {
    use gateway_core::vocab::{ScheduleEntry, ScheduleKind};

    use super::*;
    use crate::{
        runtime::drive::settle,
        users::{Running, WAITING_MAX, tests::open},
    };

    #[tokio::test]
    async fn a_task_whose_sender_was_dropped_unused_makes_room_again() {
        let reminder = ScheduleEntry {
            id: 1,
            kind: ScheduleKind::Reminder { text: "oven".to_owned() },
            due_wall_ms: 4_000_000_000_000,
            duration_ms: None,
        };
        for (schedule, quiescence) in [(vec![reminder], Quiescence::Pending), (Vec::new(), Quiescence::Idle)] {
            let folder = tempfile::tempdir().unwrap();
            let users = open(&folder);
            let (mailbox, messages) = mpsc::channel(WAITING_MAX);
            let end = CancellationToken::new();
            let mut task = Task::new(&users, ("ann", 1), messages, end.clone());
            let running = Running { mailbox, end, number: 1, quiescence: None };
            users.tasks().running.insert("ann".to_owned(), running);
            let (summary, history, last_wall_ms, next_id, spending) = (None, Vec::new(), None, 2, Vec::new());
            task.driver.push(UserInput::Restored { summary, history, last_wall_ms, schedule, next_id, spending });
            settle(&mut task);
            let known = || users.tasks().running["ann"].quiescence;
            assert_eq!(known(), Some(quiescence));
            // Of a device that is refused behind it.
            drop(users.mailbox("ann").unwrap());
            assert_eq!(known(), None);
            let due_us = task.next_tick_us().expect("it looks again");
            assert!(due_us <= clock::mono_us() + REST_AGAIN_US);
            task.recheck_us = Some(0);
            task.tick();
            assert_eq!(known(), Some(quiescence));
            let mut tasks = users.tasks();
            assert!(users.retire(&mut tasks).unwrap());
        }
    }
}
