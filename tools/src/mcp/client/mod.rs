//! Downstream MCP servers: their tools are offered to all clients of the gateway.
//!
//! One task maintains each server: it connects, lists, registers, listens for changes, and reconnects after a failure,
//! with growing pauses. Only calls to a server wait for it.

mod ask;
mod call;
mod child;
mod convert;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod http;
mod keep;
mod link;
mod renewal;
mod routes;
#[cfg(test)]
mod test_support;
mod watch;
mod words;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use gateway_core::vocab::ErrorCode;
use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use tokio::{
    sync::{Notify, broadcast, watch::Sender},
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::{ask::OnBehalf, call::Failure, watch::Watch};
use self::{link::Link, words::Words};
use super::{config::Server, uris::Prefixes};
use crate::{mutex::lock, registry::Registry, secret::Secrets};

/// Target of the lines that servers have written: the stored log leaves them out, since a server may write what a
/// wearer has said.
pub const SERVER_LINES: &str = "mcp_server_lines";

/// Change notifications that are buffered for a slow reader; a reader that lags behind lists everything again.
const CHANGES_MAX: usize = 256;

/// How long closing all servers may take; a single one has eight seconds.
const STOP_MS_MAX: u64 = 10_000;

/// A change at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerChange {
    /// Which prompts it has.
    Prompts,
    /// Its resources or templates.
    Resources,
    /// The content of a resource.
    Updated {
        /// Its name in the configuration.
        server: String,
        /// Its own URI.
        uri: String,
    },
}

/// What a server offers in addition to tools, as last listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offers {
    pub(crate) tools: Arc<BTreeMap<String, Tool>>,
    pub(crate) prompts: Arc<Vec<Prompt>>,
    pub(crate) resources: Arc<Vec<Resource>>,
    pub(crate) templates: Arc<Vec<ResourceTemplate>>,
}

/// How long a restarted server may take to report its state: as long as one connection attempt.
const RESTART_MS_MAX: u64 = link::CONNECT_MS_MAX + 10_000;

/// The current state of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No connection attempt has ended yet.
    Starting,
    /// It is connected; with its protocol revision.
    Up(String),
    /// It is not connected; with the reason.
    Down(String),
}

/// The status of a server, for its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Name in the configuration.
    pub name: String,
    /// Whether it is connected.
    pub state: State,
    /// Since when it has been in this state.
    pub since: Duration,
    /// Number of tools that it offers, or offered last.
    pub tools: usize,
    /// Why it was last down, and how long ago that was reported.
    pub last_down: Option<(String, Duration)>,
    /// The last failed call, and how long ago.
    pub last_failure: Option<(FailedCall, Duration)>,
}

/// A call that a server did not carry out, as the operator is told of it: secrets are redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// Full name of the tool.
    pub tool: String,
    /// Kind of failure.
    pub code: ErrorCode,
    /// The reason. It may be the server's own text, and repeat what a wearer said.
    pub why: String,
}

/// A server of the configuration while the gateway runs, connected or not.
pub(crate) struct Downstream {
    pub(crate) config: Server,
    now: Sender<Now>,
    /// Signals that the operator restarts it.
    restart: Notify,
    words: Words,
    last_failure: Mutex<Option<(FailedCall, Instant)>>,
    watched: Mutex<watch::Watched>,
    tracker: TaskTracker,
    stop: CancellationToken,
    changes: broadcast::Sender<ServerChange>,
    secrets: Secrets,
}

struct Now {
    state: State,
    since: Instant,
    /// Number of completed connection attempts, successful or not.
    attempts: u64,
    last_down: Option<(String, Instant)>,
    link: Option<Arc<Link>>,
    offers: Offers,
}

impl Downstream {
    fn new(
        config: Server,
        tracker: TaskTracker,
        stop: CancellationToken,
        changes: broadcast::Sender<ServerChange>,
        secrets: Secrets,
    ) -> Self {
        let now = Now {
            state: State::Starting,
            since: Instant::now(),
            attempts: 0,
            last_down: None,
            link: None,
            offers: Offers::default(),
        };
        Self {
            config,
            now: Sender::new(now),
            restart: Notify::new(),
            words: Words::default(),
            last_failure: Mutex::default(),
            watched: Mutex::default(),
            tracker,
            stop,
            changes,
            secrets,
        }
    }

    fn link(&self) -> Option<Arc<Link>> {
        self.now.borrow().link.clone()
    }

    pub(crate) fn offers(&self) -> Offers {
        self.now.borrow().offers.clone()
    }

    fn state(&self) -> State {
        self.now.borrow().state.clone()
    }

    fn status(&self) -> Status {
        let now = self.now.borrow();
        Status {
            name: self.config.name.clone(),
            state: now.state.clone(),
            since: now.since.elapsed(),
            tools: now.offers.tools.len(),
            last_down: now.last_down.as_ref().map(|(why, at)| (why.clone(), at.elapsed())),
            last_failure: lock(&self.last_failure).as_ref().map(|(call, at)| (call.clone(), at.elapsed())),
        }
    }

    /// Keeps a line that the server wrote, for its operator.
    fn wrote(&self, line: &str) {
        let mut line = line.to_owned();
        self.secrets.redact(&mut line);
        tracing::debug!(server = self.config.name, "{}", line.trim_end());
        self.words.push(&line);
    }

    /// Logs what the server wrote about a failure of its own: its last lines after the first `count`.
    fn tell_words(&self, count: u64) {
        for line in self.words.tell(count) {
            tracing::warn!(target: SERVER_LINES, server = self.config.name, "{line}");
        }
    }
}

/// All downstream servers.
pub struct Pool {
    servers: BTreeMap<String, Arc<Downstream>>,
    prefixes: Prefixes,
    changes: broadcast::Sender<ServerChange>,
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl Pool {
    /// Starts to maintain these servers and returns at once; their tools appear in the registry as the servers respond.
    /// `flatten` is exposed to MCP clients unrenamed.
    pub fn start(configs: Vec<Server>, flatten: Option<String>, registry: &Arc<Registry>) -> Arc<Self> {
        let (changes, _) = broadcast::channel(CHANGES_MAX);
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        let names = configs.iter().map(|config| config.name.clone()).collect();
        let mut servers = BTreeMap::new();
        for config in configs {
            let secrets = registry.secrets().clone();
            let server = Arc::new(Downstream::new(config, tracker.clone(), stop.clone(), changes.clone(), secrets));
            servers.insert(server.config.name.clone(), server.clone());
            tracker.spawn(keep::keep(server, registry.clone()));
        }
        Arc::new(Self { servers, prefixes: Prefixes::new(names, flatten), changes, stop, tracker })
    }

    /// Name and state of each server, in order of name.
    pub fn states(&self) -> Vec<(String, State)> {
        self.servers.iter().map(|(name, server)| (name.clone(), server.state())).collect()
    }

    /// Status of each server, in order of name.
    pub fn statuses(&self) -> Vec<Status> {
        self.servers.values().map(|server| server.status()).collect()
    }

    /// Recent lines of a server's standard error and log, oldest first, with the age of each line; `None`: there is no
    /// such server.
    pub fn words(&self, name: &str) -> Option<Vec<(Duration, String)>> {
        self.servers.get(name).map(|server| server.words.all())
    }

    /// Drops what servers have written, and the reasons of failed calls. Any of it may repeat what a user said, and whose
    /// words they are is not known.
    pub fn forget(&self) {
        for server in self.servers.values() {
            server.words.clear();
            *lock(&server.last_failure) = None;
        }
    }

    /// Restarts a server, and returns its status once that has succeeded or failed; `None`: there is no such server.
    pub async fn restart(&self, name: &str) -> Option<Status> {
        let server = self.servers.get(name)?;
        let mut now = server.now.subscribe();
        let before = now.borrow_and_update().attempts;
        server.restart.notify_one();
        let ended = now.wait_for(|now| now.attempts > before);
        // If it takes longer, the current status is returned.
        drop(timeout(Duration::from_millis(RESTART_MS_MAX), ended).await);
        Some(server.status())
    }

    /// Closes all servers; when this returns, children have exited or will be killed.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tracker.close();
        drop(timeout(Duration::from_millis(STOP_MS_MAX), self.tracker.wait()).await);
    }

    pub(crate) fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }

    pub(crate) fn servers(&self) -> impl Iterator<Item = &Arc<Downstream>> {
        self.servers.values()
    }

    pub(crate) fn server(&self, name: &str) -> Option<&Arc<Downstream>> {
        self.servers.get(name)
    }

    pub(crate) fn changes(&self) -> broadcast::Receiver<ServerChange> {
        self.changes.subscribe()
    }
}
