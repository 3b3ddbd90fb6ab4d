//! The gateway's implementations of the tools' ports: clock, schedule, notes and devices.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{
    Due, ErrorCode, OpenEntry, ScheduleChange, ScheduleEntry, ScheduleKind, Timestamp, ToolCall, ToolResult, Turn,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tools::ports::{Clock, DeviceCall, DeviceStatus, Note, Notes, PortError, Schedule};

use crate::{
    clock,
    mailbox::{CallDevice, DeviceMessage, Mailbox},
    roster::{Present, Roster},
    store::{self, NoteRecord, Store, Write},
    users::{UserMessage, Users},
};

pub(super) fn port(error: store::Error) -> PortError {
    match error {
        store::Error::Full(_) | store::Error::TooMany { .. } => PortError::Full(error.to_string()),
        store::Error::ReadOnly(_) => PortError::ReadOnly(error.to_string()),
        store::Error::Busy | store::Error::Closed | store::Error::TooManyUsers(_) => {
            PortError::Unavailable(error.to_string())
        }
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
pub(crate) struct UserSchedule(pub Arc<Users>);

impl UserSchedule {
    /// Asks the user's machine for a change; returns the changed entry, if any.
    async fn change(&self, user: &str, change: ScheduleChange) -> Result<Option<ScheduleEntry>, PortError> {
        let (reply, answer) = oneshot::channel();
        let message = UserMessage::Schedule { change, reply };
        self.0.mailbox(user).map_err(port)?.send(message).await.map_err(stopping)?;
        answer.await.map_err(stopping)?.map_err(PortError::Failed)
    }
}

#[async_trait]
impl Schedule for UserSchedule {
    async fn add(&self, user: &str, due: Due, kind: ScheduleKind) -> Result<ScheduleEntry, PortError> {
        let added = self.change(user, ScheduleChange::Add { due, kind }).await?;
        added.ok_or_else(|| PortError::Failed("nothing was added".to_owned()))
    }

    async fn list(&self, user: &str) -> Result<Vec<OpenEntry>, PortError> {
        let (reply, answer) = oneshot::channel();
        self.0.mailbox(user).map_err(port)?.send(UserMessage::List { reply }).await.map_err(stopping)?;
        answer.await.map_err(stopping)
    }

    async fn remove(&self, user: &str, id: u64) -> Result<Option<ScheduleEntry>, PortError> {
        self.change(user, ScheduleChange::Remove { id }).await
    }

    async fn extend(&self, user: &str, id: u64, more_ms: u64) -> Result<Option<ScheduleEntry>, PortError> {
        self.change(user, ScheduleChange::Extend { id, more_ms }).await
    }
}

/// Notes in the store.
pub(crate) struct StoredNotes(pub Store);

impl StoredNotes {
    async fn read(
        &self,
        user: &str,
        limit: usize,
        keep: impl Fn(&NoteRecord) -> bool + Send + 'static,
    ) -> Result<Vec<Note>, PortError> {
        let user = user.to_owned();
        let notes = self.0.read(move |store| store.disk().notes(&user, limit, keep)).await.map_err(port)?;
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
        self.read(user, limit, |_| true).await
    }

    async fn search(&self, user: &str, query: &str, limit: usize) -> Result<Vec<Note>, PortError> {
        let query = query.to_owned();
        self.read(user, limit, move |note| tools::matching::matches(&note.text, &query)).await
    }

    async fn delete(&self, user: &str, id: u64) -> Result<Option<Note>, PortError> {
        let found = self.0.disk().note(user, id).map_err(port)?;
        let removed = self.0.write(Write::RemoveNote { user: user.to_owned(), id }).await.map_err(port)?;
        Ok(found.filter(|_| removed == 1).map(|note| note_of(id, note)))
    }

    async fn clear(&self, user: &str) -> Result<usize, PortError> {
        let cleared = self.0.write(Write::ClearNotes { user: user.to_owned() }).await.map_err(port)?;
        Ok(usize::try_from(cleared).unwrap_or(usize::MAX))
    }
}

/// The glasses' own tools, called through their device tasks.
pub(crate) struct ConnectedDevices(pub Arc<Roster>);

/// A call whose result is awaited. Dropping it notifies the device's task.
struct Awaited {
    answer: Option<oneshot::Receiver<ToolResult>>,
    mailbox: Mailbox,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if self.answer.take().is_some() {
            // If the mailbox is full, the next call notifies the task.
            drop(self.mailbox.try_send(DeviceMessage::CancelCalls));
        }
    }
}

#[async_trait]
impl DeviceCall for ConnectedDevices {
    async fn call(
        &self,
        device: &str,
        turn: Option<Turn>,
        call: ToolCall,
        deadline: Duration,
        cancel: CancellationToken,
    ) -> ToolResult {
        let gone = || ToolResult::failed(ErrorCode::AppNotAvailable, "the glasses are not connected", true);
        let Some(present) = self.0.get(device) else {
            return gone();
        };
        let (reply, answer) = oneshot::channel();
        let call = CallDevice { turn, call, deadline, cancel: cancel.clone(), reply };
        if present.mailbox.try_send(DeviceMessage::CallDevice(Box::new(call))).is_err() {
            return gone();
        }
        let mailbox = present.mailbox.clone();
        let mut awaited = Awaited { answer: Some(answer), mailbox: present.mailbox };
        let lost = || {
            let message = "the glasses went away during the call; whether it was done is unknown";
            ToolResult::failed(ErrorCode::AppNotAvailable, message, false)
        };
        let answered = async {
            match &mut awaited.answer {
                Some(answer) => answer.await.unwrap_or_else(|_| lost()),
                None => lost(),
            }
        };
        let cancelled = async {
            cancel.cancelled().await;
            drop(mailbox.try_send(DeviceMessage::CancelCalls));
            // The glasses report how it ended.
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            result = answered => Some(result),
            () = cancelled => None,
            () = tokio::time::sleep(deadline) => None,
        };
        match result {
            Some(result) => {
                awaited.answer = None;
                result
            }
            None => {
                let message = format!("the glasses did not answer within {:.0} s", deadline.as_secs_f64());
                ToolResult::failed(ErrorCode::Timeout, message, true)
            }
        }
    }

    fn status(&self, device: &str) -> Option<DeviceStatus> {
        let status = |present: &Present| present.status.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let asking = self.0.get(device)?;
        if asking.via.transport.is_glasses {
            return Some(status(&asking));
        }
        // Words over the control socket: they mean the user's glasses.
        let (_, glasses) = self.0.glasses_of(&asking.user).into_iter().next()?;
        glasses.via.lost_us.is_none().then(|| DeviceStatus { elsewhere: true, ..status(&glasses) })
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::{roster::Via, transport::Transport};

    fn fixture() -> (ConnectedDevices, mpsc::Receiver<DeviceMessage>) {
        let (mailbox, messages) = mpsc::channel(8);
        let roster = Arc::new(Roster::default());
        let via = Via::new(Transport::WSS, ([127, 0, 0, 1], 1).into(), clock::mono_us());
        let present = Present {
            session: 1,
            user: "ada".to_owned(),
            language: String::new(),
            mailbox,
            ending: Default::default(),
            status: Arc::default(),
            via,
        };
        assert!(matches!(roster.enter("glasses", present, 1), Ok(None)));
        (ConnectedDevices(roster), messages)
    }

    fn call() -> ToolCall {
        ToolCall { id: "c1".to_owned(), name: "camera.photo".to_owned(), arguments: serde_json::json!({}) }
    }

    async fn called(messages: &mut mpsc::Receiver<DeviceMessage>) -> CallDevice {
        match messages.recv().await {
            Some(DeviceMessage::CallDevice(call)) => *call,
            _ => panic!("no call"),
        }
    }

    #[test]
    fn a_request_without_glasses_is_told_of_those_of_its_user() {
        let (devices, _messages) = fixture();
        let glasses = devices.0.get("glasses").unwrap();
        glasses.status.lock().unwrap().battery_percent = Some(40);
        let via = Via::new(Transport::TEXT, ([127, 0, 0, 1], 1).into(), clock::mono_us());
        for (number, user) in [(2, "ada"), (3, "bob")] {
            let present =
                Present { session: number, user: user.to_owned(), status: Arc::default(), via, ..glasses.clone() };
            assert!(matches!(devices.0.enter(&format!("text.{number}"), present, 3), Ok(None)));
        }
        let told = |device| devices.status(device).map(|status| (status.battery_percent, status.elsewhere));
        assert_eq!(told("glasses"), Some((Some(40), false)));
        assert_eq!(told("text.2"), Some((Some(40), true)));
        assert_eq!(told("text.3"), None, "of another user");
        devices.0.lost("glasses", 1);
        assert_eq!(told("text.2"), None);
    }

    #[tokio::test]
    async fn searches_run_on_threads_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let notes = StoredNotes(store.clone());
        notes.add("ann", "buy milk").await.unwrap();
        let busy = store.occupy_readers();
        let mut searching = notes.search("ann", "milk", 9);
        assert!(futures_util::poll!(&mut searching).is_pending());
        drop(busy);
        assert_eq!(searching.await.unwrap().len(), 1);
        assert!(notes.search("ann", "oats", 9).await.unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_stops_waiting_tells_the_device() {
        let (devices, mut messages) = fixture();
        let limit = Duration::from_secs(30);
        let run = |cancel: &CancellationToken| devices.call("glasses", None, call(), limit, cancel.clone());
        // No answer.
        let never = CancellationToken::new();
        let (result, unanswered) = tokio::join!(run(&never), called(&mut messages));
        assert_eq!(result.error.map(|error| error.code), Some(ErrorCode::Timeout));
        assert!(matches!(messages.recv().await, Some(DeviceMessage::CancelCalls)) && unanswered.reply.is_closed());
        // It is cancelled, and the glasses still report how it ended.
        let cancel = CancellationToken::new();
        let glasses = async {
            let call = called(&mut messages).await;
            cancel.cancel();
            assert!(matches!(messages.recv().await, Some(DeviceMessage::CancelCalls)) && call.cancel.is_cancelled());
            assert!(!call.reply.is_closed());
            drop(call.reply.send(ToolResult::said("Taken after all.")));
        };
        let (result, ()) = tokio::join!(run(&cancel), glasses);
        assert_eq!(result.content, "Taken after all.");
        // The caller is gone.
        let mut asking = Box::pin(run(&never));
        assert!(futures_util::poll!(&mut asking).is_pending());
        let call = called(&mut messages).await;
        drop(asking);
        assert!(matches!(messages.recv().await, Some(DeviceMessage::CancelCalls)) && call.reply.is_closed());
        // Answered: no notification is sent.
        let answering = async { drop(called(&mut messages).await.reply.send(ToolResult::said("Taken."))) };
        let (result, ()) = tokio::join!(run(&never), answering);
        assert_eq!((result.content.as_str(), messages.try_recv().is_err()), ("Taken.", true));
    }
}
