//! What the tools need from outside, as the house has it.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::{
    input::{self, ScheduleEntry, ScheduleKind},
    vocab::{ErrorCode, Timestamp, ToolResult},
};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tools::ports::{Clock, DeviceCall, DeviceStatus, Due, Entry, EntryKind, Note, Notes, PortError, Schedule};

use crate::{
    clock,
    mail::{CallDevice, Mail},
    roster::Roster,
    store::{self, NoteRecord, Store, Write},
    users::{UserMail, Users},
};

pub(super) fn port(error: store::Error) -> PortError {
    match error {
        store::Error::Full(_) => PortError::Full(error.to_string()),
        store::Error::Busy | store::Error::Closed => PortError::Unavailable(error.to_string()),
        other => PortError::Failed(other.to_string()),
    }
}

fn stopping<E>(_: E) -> PortError {
    PortError::Unavailable("the gateway is stopping".to_owned())
}

/// The box's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        clock::now()
    }

    fn zone(&self) -> jiff::tz::TimeZone {
        clock::zone()
    }
}

/// Timers and reminders, through the user's machine.
pub struct UserSchedule(pub Arc<Users>);

#[async_trait]
impl Schedule for UserSchedule {
    async fn add(&self, user: &str, due: Due, kind: EntryKind, text: &str) -> Result<Entry, PortError> {
        let due = match due {
            Due::In { duration_ms } => input::Due::In { duration_ms },
            Due::At { wall_ms } => input::Due::At { wall_ms },
        };
        let kind = match kind {
            EntryKind::Timer => ScheduleKind::Timer,
            EntryKind::Reminder => ScheduleKind::Reminder,
        };
        let (reply, answer) = oneshot::channel();
        let letter = UserMail::Add { due, kind, text: text.to_owned(), reply };
        self.0.address(user).map_err(port)?.send(letter).await.map_err(stopping)?;
        let entry = answer.await.map_err(stopping)?.map_err(PortError::Failed)?;
        Ok(entry_of(entry, None))
    }

    async fn list(&self, user: &str) -> Result<Vec<Entry>, PortError> {
        let (reply, answer) = oneshot::channel();
        self.0.address(user).map_err(port)?.send(UserMail::List { reply }).await.map_err(stopping)?;
        let entries = answer.await.map_err(stopping)?;
        Ok(entries.into_iter().map(|(entry, remaining_ms)| entry_of(entry, remaining_ms)).collect())
    }

    async fn remove(&self, user: &str, id: u64) -> Result<Option<Entry>, PortError> {
        let (reply, answer) = oneshot::channel();
        self.0.address(user).map_err(port)?.send(UserMail::Remove { id, reply }).await.map_err(stopping)?;
        let entry = answer.await.map_err(stopping)?.map_err(PortError::Failed)?;
        Ok(entry.map(|entry| entry_of(entry, None)))
    }
}

fn entry_of(entry: ScheduleEntry, remaining_ms: Option<u64>) -> Entry {
    Entry {
        id: entry.id,
        kind: match entry.kind {
            ScheduleKind::Timer => EntryKind::Timer,
            ScheduleKind::Reminder => EntryKind::Reminder,
        },
        text: entry.text,
        due_wall_ms: entry.due_wall_ms,
        duration_ms: entry.duration_ms,
        remaining_ms,
    }
}

/// Notes in the store.
pub struct StoredNotes(pub Store);

impl StoredNotes {
    fn read(&self, user: &str, limit: usize, keep: impl Fn(&NoteRecord) -> bool) -> Result<Vec<Note>, PortError> {
        let notes = self.0.disk().notes(user, limit, keep).map_err(port)?;
        Ok(notes.into_iter().map(|(id, note)| note_of(id, note)).collect())
    }
}

fn note_of(id: u64, note: NoteRecord) -> Note {
    Note { id, text: note.text, created_wall_ms: note.created_wall_ms }
}

#[async_trait]
impl Notes for StoredNotes {
    async fn add(&self, user: &str, text: &str) -> Result<Note, PortError> {
        let note = NoteRecord { text: text.to_owned(), created_wall_ms: clock::wall_ms() };
        let write = Write::AddNote { user: user.to_owned(), note: note.clone() };
        let id = self.0.write(write).await.map_err(port)?;
        Ok(note_of(id, note))
    }

    async fn list(&self, user: &str, limit: usize) -> Result<Vec<Note>, PortError> {
        self.read(user, limit, |_| true)
    }

    async fn search(&self, user: &str, query: &str, limit: usize) -> Result<Vec<Note>, PortError> {
        self.read(user, limit, |note| tools::matching::matches(&note.text, query))
    }

    async fn delete(&self, user: &str, id: u64) -> Result<Option<Note>, PortError> {
        let found = self.0.disk().note(user, id).map_err(port)?;
        let removed = self.0.write(Write::RemoveNote { user: user.to_owned(), id }).await.map_err(port)?;
        Ok(found.filter(|_| removed == 1).map(|note| note_of(id, note)))
    }
}

/// The glasses' own tools, through their tasks.
pub struct ConnectedDevices(pub Arc<Roster>);

#[async_trait]
impl DeviceCall for ConnectedDevices {
    async fn call(
        &self,
        device: &str,
        name: &str,
        arguments: Value,
        deadline: Duration,
        cancel: CancellationToken,
    ) -> ToolResult {
        let gone = || ToolResult::failed(ErrorCode::AppNotAvailable, "the glasses are not connected", true);
        let Some(present) = self.0.get(device) else {
            return gone();
        };
        let (reply, answer) = oneshot::channel();
        let call = CallDevice { name: name.to_owned(), arguments, deadline, reply };
        if present.mail.try_send(Mail::CallDevice(call)).is_err() {
            return gone();
        }
        let lost = || {
            let message = "the glasses went away during the call; whether it was done is unknown";
            ToolResult::failed(ErrorCode::AppNotAvailable, message, false)
        };
        tokio::select! {
            result = answer => result.unwrap_or_else(|_| lost()),
            () = tokio::time::sleep(deadline) => {
                ToolResult::failed(ErrorCode::Timeout, "the glasses did not answer in time", true)
            }
            () = cancel.cancelled() => ToolResult::failed(ErrorCode::Cancelled, "cancelled", true),
        }
    }

    fn status(&self, device: &str) -> Option<DeviceStatus> {
        let present = self.0.get(device)?;
        let status = present.status.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(status)
    }
}
