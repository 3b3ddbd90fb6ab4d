//! The task of one user: its machine, and the outputs that it carries out.

use std::{collections::BTreeMap, sync::Arc};

use gateway_core::{
    driver::Driver,
    input::{Input, UserInput},
    output::{Record, UserOutput},
    user::User,
    vocab::{Message, Timestamp},
};
use tokio::sync::{mpsc, oneshot};

use super::{
    ScheduleReply, Summariser, UserMessage,
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

/// A user's task.
pub(super) struct Task {
    pub(super) name: String,
    pub(super) driver: Driver<User>,
    pub(super) store: Store,
    pub(super) roster: Arc<Roster>,
    pub(super) approvals: Arc<ApprovalBroker>,
    pub(super) summariser: Summariser,
    pub(super) mailbox: mpsc::Sender<UserMessage>,
    /// Callers waiting for a change of the schedule, by request number.
    pub(super) schedule_replies: BTreeMap<u64, oneshot::Sender<ScheduleReply>>,
    pub(super) next_request: u64,
    pub(super) messages: mpsc::Receiver<UserMessage>,
    pub(super) ended: bool,
}

impl Shell for Task {
    type Machine = User;
    type Event = Option<UserMessage>;
    type End = ();

    fn driver(&mut self) -> &mut Driver<User> {
        &mut self.driver
    }

    fn now(&self) -> Timestamp {
        clock::now()
    }

    async fn next_event(&mut self) -> Option<UserMessage> {
        self.messages.recv().await
    }

    fn handle_event(&mut self, message: Option<UserMessage>) {
        match message {
            Some(UserMessage::Input(input)) => self.driver.push(input),
            Some(UserMessage::End) | None => self.ended = true,
            Some(UserMessage::Schedule { change, reply }) => {
                let request = self.next_request;
                self.next_request += 1;
                self.schedule_replies.insert(request, reply);
                self.driver.push(UserInput::Schedule { request, change });
            }
            Some(UserMessage::List { reply }) => {
                drop(reply.send(self.driver.machine().entries(clock::now())));
            }
            #[cfg(test)]
            Some(UserMessage::Panic) => panic!("on purpose"),
        }
    }

    fn carry_out(&mut self, output: UserOutput) {
        match output {
            UserOutput::Grant { device, turn, history, route } => {
                self.tell(&device, Input::Granted { turn, history, route });
            }
            UserOutput::Timers { device, running } => self.tell(&device, Input::Timers(running)),
            UserOutput::Announce { device, announcement } => self.tell(&device, Input::Announce(announcement)),
            UserOutput::Scheduled { request, entry } => self.schedule_changed(request, Ok(Some(entry))),
            UserOutput::Unscheduled { request, entry } => self.schedule_changed(request, Ok(entry)),
            UserOutput::ScheduleFailed { request, reason } => self.schedule_changed(request, Err(reason)),
            UserOutput::Ask { device, approval } => self.approvals.put(device.as_deref(), approval),
            UserOutput::ApprovalSettled(settled) => self.approvals.settle(None, settled),
            UserOutput::Summarise { request, rank, messages } => self.summarise(request, rank, messages),
            UserOutput::Persist { ticket, record } => self.persist(ticket, record),
        }
    }

    fn end(&mut self) -> Option<()> {
        self.ended.then_some(())
    }
}

impl Task {
    fn schedule_changed(&mut self, request: u64, result: ScheduleReply) {
        if let Some(reply) = self.schedule_replies.remove(&request) {
            drop(reply.send(result));
        }
    }

    fn summarise(&self, request: u64, rank: u8, messages: Vec<Message>) {
        let Summariser { models, language } = self.summariser.clone();
        let mailbox = self.mailbox.clone();
        spawn("summary", async move {
            let Some(model) = models.get(usize::from(rank)).cloned() else { return };
            let summing = summary::summarise(model, language, messages);
            let Summed { text, usage } = tokio::select! {
                summed = summing => summed,
                // The user is being erased: stop reading.
                () = mailbox.closed() => return,
            };
            drop(mailbox.send(UserMessage::Input(UserInput::Summarised { request, text, rank, usage })).await);
        });
    }

    fn tell(&self, device: &str, input: Input) {
        let told = self
            .roster
            .get(device)
            .is_some_and(|present| present.mailbox.try_send(DeviceMessage::Input(input)).is_ok());
        if !told {
            tracing::debug!(device, "a device of this user is gone");
        }
    }

    fn persist(&self, ticket: u64, record: Record) {
        let write = write_of(&self.name, record);
        let mailbox = self.mailbox.clone();
        let reply = move |result: Result<u64, store::Error>| {
            let input = match result {
                Ok(_) => UserInput::Persisted { ticket },
                Err(error) => UserInput::PersistFailed { ticket, reason: error.to_string() },
            };
            // Runs on the store's thread, which may block: the user's task never waits for it.
            drop(mailbox.blocking_send(UserMessage::Input(input)));
        };
        if let Err(error) = self.store.submit(write, reply) {
            let input = UserInput::PersistFailed { ticket, reason: error.to_string() };
            drop(self.mailbox.try_send(UserMessage::Input(input)));
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
