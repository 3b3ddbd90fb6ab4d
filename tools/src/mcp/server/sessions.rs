//! Sessions over HTTP whose streams outlive their connections.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{Stream, StreamExt as _};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_server::session::{
        EventStore as _, ServerSseMessage, SessionId, SessionManager,
        local::{LocalSessionManager, LocalSessionManagerError, SessionError},
    },
};
use tokio_util::sync::CancellationToken;

use super::events::Events;

/// A session without requests for this long is closed.
const IDLE_MS_MAX: u64 = 300_000;
/// The library's id of an event in front of all others of the session's own stream.
const BEGINNING: &str = "0";

/// The library's sessions, which forget the stream of a request with its answer; so a client that comes back is served
/// from the kept events. Requests of 2026-07-28 have no session: one whose connection breaks is cancelled, as that
/// revision wants it, and its events are not kept.
pub(super) struct Sessions {
    library: LocalSessionManager,
    events: Events,
    /// Cancelled with the session.
    open: Mutex<BTreeMap<SessionId, CancellationToken>>,
}

impl Sessions {
    pub(super) fn new(events: Events) -> Self {
        let mut library = LocalSessionManager::default().with_event_store(Arc::new(events.clone()));
        library.session_config.keep_alive = Some(Duration::from_millis(IDLE_MS_MAX));
        Self { library, events, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<SessionId, CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.library.create_session().await?;
        self.open().insert(id.clone(), CancellationToken::new());
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.library.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.library.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        if let Some(open) = self.open().remove(id) {
            open.cancel();
        }
        self.library.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.library.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.library.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.library.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let open = self.open().get(id).cloned();
        let open = open.ok_or_else(|| LocalSessionManagerError::SessionNotFound(id.clone()))?;
        let events = match last_event_id.as_str() {
            BEGINNING => self.events.of(&session_stream(id)),
            _ => self.events.replay_events_after(&last_event_id).await.map_err(SessionError::EventStore)?,
        };
        Ok(events.take_until(open.cancelled_owned()))
    }
}

/// The stream of what belongs to no request, as the library names it.
fn session_stream(id: &SessionId) -> String {
    format!("{id}:common")
}
