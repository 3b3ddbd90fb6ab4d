//! Sessions over HTTP whose streams outlive their connections.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{Stream, StreamExt as _};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientNotification, JsonRpcNotification, RequestId, ServerJsonRpcMessage},
    transport::streamable_http_server::session::{
        EventStore as _, ServerSseMessage, SessionId, SessionManager,
        local::{LocalSessionManager, LocalSessionManagerError, SessionError},
    },
};
use tokio_util::sync::CancellationToken;

use super::events::Events;

/// A session without requests for this long is closed.
const IDLE_MS_MAX: u64 = 300_000;
/// Sessions of one user and class. A further one closes the one whose client has asked for nothing for longest: a client that vanished
/// without a word keeps its session open for as long as there is news for it.
const SESSIONS_MAX: usize = 32;
/// The library's id of an event in front of all others of the session's own stream.
const BEGINNING: &str = "0";

/// The library's sessions, which forget the stream of a request with its answer, and drop what is said before anybody follows
/// a session's own stream; so all streams are served from the kept events. Requests of 2026-07-28 have no session: one whose connection
/// breaks is cancelled, as that revision wants it.
#[derive(Default)]
pub(super) struct Sessions {
    open: Mutex<BTreeMap<SessionId, Arc<Session>>>,
    /// Requests so far.
    requests: AtomicU64,
}

/// One session. It has a manager of its own, which so keeps the events of no other one.
struct Session {
    manager: LocalSessionManager,
    events: Events,
    /// Its streams end with it.
    end: CancellationToken,
    /// Number of its client's last request.
    last_request: AtomicU64,
}

impl Sessions {
    fn open(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something may follow this event of this session.
    pub(super) fn may_go_on(&self, id: &SessionId, last_event_id: &str) -> bool {
        last_event_id == BEGINNING || self.get(id).is_ok_and(|session| session.events.may_go_on(last_event_id))
    }

    /// The session of a request.
    fn get(&self, id: &SessionId) -> Result<Arc<Session>, LocalSessionManagerError> {
        let session =
            self.open().get(id).cloned().ok_or_else(|| LocalSessionManagerError::SessionNotFound(id.clone()))?;
        session.last_request.store(self.next_request(), Ordering::Relaxed);
        Ok(session)
    }

    fn next_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// The session that gives way to a further one, if there are as many as there may be.
    fn surplus(&self) -> Option<SessionId> {
        let open = self.open();
        let full = open.len() >= SESSIONS_MAX;
        let oldest = open.iter().min_by_key(|(_, session)| session.last_request.load(Ordering::Relaxed));
        oldest.filter(|_| full).map(|(id, _)| id.clone())
    }
}

impl Session {
    fn new(request: u64) -> Self {
        let events = Events::default();
        let mut manager = LocalSessionManager::default().with_event_store(Arc::new(events.clone()));
        manager.session_config.keep_alive = Some(Duration::from_millis(IDLE_MS_MAX));
        Self { manager, events, end: CancellationToken::new(), last_request: AtomicU64::new(request) }
    }

    /// The client shows that it is there: its session is not closed as idle. An error: the session has ended.
    async fn keep_alive(&self, id: &SessionId) -> Result<(), LocalSessionManagerError> {
        // A request to the session's task; nobody needs the stream.
        self.manager.create_standalone_stream(id).await.map(drop)
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        while let Some(surplus) = self.surplus() {
            tracing::debug!("an MCP session gives way to a newer one");
            self.close_session(&surplus).await?;
        }
        let session = Session::new(self.next_request());
        let (id, transport) = session.manager.create_session().await?;
        self.open().insert(id.clone(), Arc::new(session));
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.get(id)?.manager.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.open().contains_key(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let session = self.open().remove(id);
        let Some(session) = session else { return Ok(()) };
        session.end.cancel();
        session.manager.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let session = self.get(id)?;
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let mut library = Box::pin(session.manager.create_stream(id, message).await?);
        // Its first event, which comes at once, names the stream. The rest is not taken from the library: it waits for a
        // connection that does not read, and with it the whole session would.
        let first = library.next().await.and_then(|event| event.event_id);
        let events = request.zip(first).and_then(|(request, event)| session.events.of_request(request, &event));
        let events = events.ok_or_else(|| LocalSessionManagerError::SessionNotFound(id.clone()))?;
        Ok(events.take_until(session.end.clone().cancelled_owned()))
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        let session = self.get(id)?;
        let cancelled = cancelled(&message);
        session.manager.accept_message(id, message).await?;
        cancelled.iter().for_each(|request| session.events.cancel(request));
        Ok(())
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.resume(id, BEGINNING.to_owned()).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let session = self.get(id)?;
        let events = match last_event_id.as_str() {
            BEGINNING => session.events.of_session(id),
            _ => session.events.replay_events_after(&last_event_id).await.map_err(SessionError::EventStore)?,
        };
        session.keep_alive(id).await?;
        Ok(events.take_until(session.end.clone().cancelled_owned()))
    }
}

/// The request that this message cancels.
fn cancelled(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Notification(JsonRpcNotification {
            notification: ClientNotification::CancelledNotification(cancelled),
            ..
        }) => cancelled.params.request_id.clone(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn beyond_the_maximum_the_session_that_was_idle_for_longest_is_closed() {
        let sessions = Sessions::default();
        let mut transports = Vec::new();
        let mut ids = Vec::new();
        for _ in 0..SESSIONS_MAX {
            let (id, transport) = sessions.create_session().await.unwrap();
            transports.push(transport);
            ids.push(id);
        }
        let end = sessions.get(&ids[1]).map(|session| session.end.clone()).unwrap();
        for id in &ids[2..] {
            sessions.get(id).unwrap();
        }
        sessions.get(&ids[0]).unwrap();
        let (newest, _transport) = sessions.create_session().await.unwrap();
        assert!(end.is_cancelled());
        assert!(!sessions.has_session(&ids[1]).await.unwrap());
        for id in ids.iter().enumerate().filter(|(number, _)| *number != 1).map(|(_, id)| id).chain([&newest]) {
            assert!(sessions.has_session(id).await.unwrap());
        }
    }
}
