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
/// Sessions of one user and class. For a further one another gives way: first those in which no call is under way and that nobody
/// listens to, and of these the one whose last request is the oldest. A client that vanished without a word keeps its session open
/// for as long as there is news for it.
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

    /// Enters a new session; those that give way to it.
    fn enter(&self, id: SessionId, session: Arc<Session>) -> Vec<(SessionId, Arc<Session>)> {
        let mut open = self.open();
        let mut surplus = Vec::new();
        while open.len() >= SESSIONS_MAX {
            let rank = |session: &Session| (session.events.is_followed(), session.last_request.load(Ordering::Relaxed));
            let first = open.iter().min_by_key(|(_, session)| rank(session)).map(|(id, _)| id.clone());
            surplus.extend(first.and_then(|id| open.remove_entry(&id)));
        }
        open.insert(id, session);
        surplus
    }
}

impl Session {
    fn new(request: u64) -> Self {
        let events = Events::default();
        let mut manager = LocalSessionManager::default().with_event_store(Arc::new(events.clone()));
        manager.session_config.keep_alive = Some(Duration::from_millis(IDLE_MS_MAX));
        Self { manager, events, end: CancellationToken::new(), last_request: AtomicU64::new(request) }
    }

    /// Ends its streams and its calls.
    async fn close(&self, id: &SessionId) -> Result<(), LocalSessionManagerError> {
        self.end.cancel();
        self.manager.close_session(id).await
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
        let session = Session::new(self.next_request());
        let (id, transport) = session.manager.create_session().await?;
        for (surplus, session) in self.enter(id.clone(), Arc::new(session)) {
            tracing::debug!("an MCP session gives way to a newer one");
            if let Err(error) = session.close(&surplus).await {
                tracing::debug!(%error, "it had ended");
            }
        }
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
        match session {
            Some(session) => session.close(id).await,
            None => Ok(()),
        }
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
    async fn beyond_the_maximum_one_that_nobody_listens_to_and_was_idle_for_longest_is_closed() {
        let sessions = Sessions::default();
        let (mut transports, mut ids) = (Vec::new(), Vec::new());
        for _ in 0..SESSIONS_MAX {
            let (id, transport) = sessions.create_session().await.unwrap();
            transports.push(transport);
            ids.push(id);
        }
        let listening = sessions.get(&ids[0]).map(|session| session.events.of_session(&ids[0])).unwrap();
        for id in &ids[2..] {
            sessions.get(id).unwrap();
        }
        let end = sessions.open().get(&ids[1]).map(|session| session.end.clone()).unwrap();
        let (newest, _transport) = sessions.create_session().await.unwrap();
        assert!(end.is_cancelled());
        let open = || sessions.open().keys().cloned().collect::<Vec<_>>();
        let mut expected: Vec<_> = ids.iter().chain([&newest]).filter(|id| **id != ids[1]).cloned().collect();
        expected.sort();
        assert_eq!(open(), expected);
        drop(listening);
        drop(sessions.create_session().await.unwrap());
        assert!(!open().contains(&ids[0]), "nobody listens any more");
    }
}
