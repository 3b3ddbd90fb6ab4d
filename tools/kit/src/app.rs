//! An app: its name, its tools, its session handler.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{limits::SESSIONS_MAX, session::Session, tool::Tool};

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;
type OnSession = Box<dyn Fn(Session) -> Running + Send + Sync>;

/// An app before it is served.
pub struct App {
    pub(crate) package: String,
    name: String,
    description: String,
    version: String,
    permissions: Vec<String>,
    background: bool,
    pub(crate) key: String,
    pub(crate) gateway: Option<String>,
    pub(crate) tools: Vec<Tool>,
    on_session: Option<OnSession>,
}

impl App {
    /// An app with this package (`com.example.todo`) and name, which the wearer says to start it.
    pub fn new(package: &str, name: &str) -> Self {
        Self {
            package: package.to_owned(),
            name: name.to_owned(),
            description: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            permissions: Vec::new(),
            background: false,
            key: String::new(),
            gateway: None,
            tools: Vec::new(),
            on_session: None,
        }
    }

    /// Sets its description, one sentence.
    #[must_use]
    pub fn description(mut self, sentence: &str) -> Self {
        self.description = sentence.to_owned();
        self
    }

    /// Sets its version, in any format.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.to_owned();
        self
    }

    /// Sets the key shared by app and gateway. Calls without it are refused.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.key = key.to_owned();
        self
    }

    /// Requests a permission, for example `MICROPHONE` for transcripts.
    #[must_use]
    pub fn permission(mut self, name: &str) -> Self {
        self.permissions.push(name.to_owned());
        self
    }

    /// Marks it as an app that runs beside others and draws occasionally.
    #[must_use]
    pub fn background(mut self) -> Self {
        self.background = true;
        self
    }

    /// Sets the only gateway that it connects to and sends its key to, for example `ws://127.0.0.1:8443`. Without one,
    /// any gateway that requests a session is accepted.
    #[must_use]
    pub fn gateway(mut self, origin: &str) -> Self {
        self.gateway = Some(origin.trim_end_matches('/').to_owned());
        self
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Sets the handler that runs in every session from its beginning. It is dropped when the session ends.
    #[must_use]
    pub fn on_session<H, F>(mut self, handler: H) -> Self
    where
        H: Fn(Session) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_session = Some(Box::new(move |session| Box::pin(handler(session))));
        self
    }

    /// The app's manifest, in the format of `app_config.json`.
    pub fn manifest(&self, public_url: &str) -> Value {
        json!({
            "packageName": self.package,
            "name": self.name,
            "description": self.description,
            "version": self.version,
            "publicUrl": public_url,
            "appType": if self.background { "background" } else { "standard" },
            "permissions": self.permissions.iter().map(|name| json!({"type": name})).collect::<Vec<_>>(),
            "settings": [],
            "tools": self.tools.iter().map(Tool::definition).collect::<Vec<_>>(),
        })
    }
}

/// State shared by all connections of a serving app.
pub(crate) struct State {
    pub(crate) app: App,
    sessions: Mutex<BTreeMap<String, Session>>,
}

impl State {
    pub(crate) fn new(app: App) -> Self {
        Self { app, sessions: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn session(&self, user: &str) -> Option<Session> {
        self.sessions().get(user).cloned()
    }

    pub(crate) fn count(&self) -> usize {
        self.sessions().len()
    }

    /// Adds a session; an existing one of the same user is ended. `false` if there are too many.
    pub(crate) fn enter(&self, session: &Session) -> bool {
        let mut sessions = self.sessions();
        if !sessions.contains_key(session.user()) && sessions.len() >= SESSIONS_MAX {
            return false;
        }
        if let Some(before) = sessions.insert(session.user().to_owned(), session.clone()) {
            before.end();
        }
        true
    }

    pub(crate) fn end_all(&self) {
        for session in std::mem::take(&mut *self.sessions()).into_values() {
            session.end();
        }
    }

    /// Removes a session, unless a newer one has replaced it.
    pub(crate) fn leave(&self, session: &Session) {
        let mut sessions = self.sessions();
        if sessions.get(session.user()).is_some_and(|current| current.is(session)) {
            sessions.remove(session.user());
        }
    }

    pub(crate) fn on_session(&self, session: Session) -> Option<Running> {
        self.app.on_session.as_ref().map(|handler| handler(session))
    }

    /// SHA-256 of the key in hexadecimal digits, as sent by the gateway.
    pub(crate) fn key_sha256(&self) -> Option<String> {
        let key = &self.app.key;
        (!key.is_empty()).then(|| Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
