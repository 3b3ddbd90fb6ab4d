//! An app: its name, its tools, what it does in a session.

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

/// An app before it serves.
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
    /// An app of this package (`com.example.todo`) and name, which the wearer says to start it.
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

    /// What it does, in a sentence.
    #[must_use]
    pub fn description(mut self, sentence: &str) -> Self {
        self.description = sentence.to_owned();
        self
    }

    /// Its version, in its own words.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.to_owned();
        self
    }

    /// The key by which app and gateway know one another. Calls without it are refused.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.key = key.to_owned();
        self
    }

    /// It wants to hear or see this, for example `MICROPHONE` for transcripts.
    #[must_use]
    pub fn permission(mut self, name: &str) -> Self {
        self.permissions.push(name.to_owned());
        self
    }

    /// It runs beside others and draws now and then.
    #[must_use]
    pub fn background(mut self) -> Self {
        self.background = true;
        self
    }

    /// The only gateway that it connects to and tells its key, for example `ws://127.0.0.1:8443`.
    /// Without one, it is whichever asks for a session.
    #[must_use]
    pub fn gateway(mut self, origin: &str) -> Self {
        self.gateway = Some(origin.trim_end_matches('/').to_owned());
        self
    }

    /// One more tool.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        self.tools.push(tool);
        self
    }

    /// What it does in every session, from its beginning on. Dropped when the session ends.
    #[must_use]
    pub fn on_session<H, F>(mut self, handler: H) -> Self
    where
        H: Fn(Session) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_session = Some(Box::new(move |session| Box::pin(handler(session))));
        self
    }

    /// The app's manifest, as `app_config.json` has it.
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

/// What all connections of a serving app share.
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

    /// Enters a session; one that the user had before is ended. `false` when there are too many.
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

    /// Takes a session out, unless a newer one has its place.
    pub(crate) fn leave(&self, session: &Session) {
        let mut sessions = self.sessions();
        if sessions.get(session.user()).is_some_and(|current| current.is(session)) {
            sessions.remove(session.user());
        }
    }

    pub(crate) fn on_session(&self, session: Session) -> Option<Running> {
        self.app.on_session.as_ref().map(|handler| handler(session))
    }

    /// SHA-256 of the key in hexadecimal digits, as the gateway sends it.
    pub(crate) fn key_sha256(&self) -> Option<String> {
        let key = &self.app.key;
        (!key.is_empty()).then(|| Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
