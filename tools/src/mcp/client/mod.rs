//! Downstream MCP servers: their tools become everybody's.
//!
//! One task keeps each server: it connects, lists, registers, listens for changes, and starts again
//! after a failure, with growing pauses. Nothing waits for a server but the calls to it.

mod ask;
mod call;
mod convert;
mod keep;
mod link;
mod routes;
mod watch;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use tokio::{sync::broadcast, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::link::Link;
pub(crate) use self::{ask::OnBehalf, call::Failure};
use super::{config::Server, uris::Prefixes};
use crate::{registry::Registry, secret::Secrets};

/// News that wait for a slow reader; one that falls behind lists everything again.
const NEWS_MAX: usize = 256;

/// How long taking leave of all servers may take; a single one has eight seconds.
const STOP_MS_MAX: u64 = 10_000;

/// What has changed at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Its prompts.
    Prompts,
    /// Its resources or templates.
    Resources,
    /// The content of a resource.
    Updated {
        /// Server.
        server: String,
        /// Its own URI.
        uri: String,
    },
}

/// What a server offers beside tools, as it was last told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offers {
    pub(crate) tools: Arc<BTreeMap<String, Tool>>,
    pub(crate) prompts: Arc<Vec<Prompt>>,
    pub(crate) resources: Arc<Vec<Resource>>,
    pub(crate) templates: Arc<Vec<ResourceTemplate>>,
}

/// How a server is at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No attempt has ended yet.
    Starting,
    /// It answers; with its protocol revision.
    Up(String),
    /// It does not; why.
    Down(String),
}

/// A downstream server.
pub(crate) struct Downstream {
    pub(crate) config: Server,
    now: Mutex<Now>,
    watched: Mutex<BTreeMap<String, watch::Watched>>,
    tracker: TaskTracker,
    news: broadcast::Sender<News>,
    secrets: Secrets,
}

struct Now {
    state: State,
    link: Option<Arc<Link>>,
    offers: Offers,
}

impl Downstream {
    fn link(&self) -> Option<Arc<Link>> {
        lock(&self.now).link.clone()
    }

    pub(crate) fn offers(&self) -> Offers {
        lock(&self.now).offers.clone()
    }

    fn state(&self) -> State {
        lock(&self.now).state.clone()
    }
}

/// All downstream servers.
pub struct Pool {
    servers: BTreeMap<String, Arc<Downstream>>,
    prefixes: Prefixes,
    news: broadcast::Sender<News>,
    stop: CancellationToken,
    tracker: TaskTracker,
}

impl Pool {
    /// Starts to keep these servers and returns at once; their tools appear in the registry as they
    /// answer. `flatten` is exposed to MCP clients unrenamed.
    pub fn start(configs: Vec<Server>, flatten: Option<String>, registry: &Arc<Registry>) -> Arc<Self> {
        let (news, _) = broadcast::channel(NEWS_MAX);
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        let names = configs.iter().map(|config| config.name.clone()).collect();
        let mut servers = BTreeMap::new();
        for config in configs {
            let server = Arc::new(Downstream {
                now: Mutex::new(Now { state: State::Starting, link: None, offers: Offers::default() }),
                watched: Mutex::default(),
                tracker: tracker.clone(),
                news: news.clone(),
                secrets: registry.secrets().clone(),
                config,
            });
            servers.insert(server.config.name.clone(), server.clone());
            tracker.spawn(keep::keep(server, registry.clone(), stop.clone()));
        }
        Arc::new(Self { servers, prefixes: Prefixes::new(names, flatten), news, stop, tracker })
    }

    /// Each server's name and state, in the order of names.
    pub fn states(&self) -> Vec<(String, State)> {
        self.servers.iter().map(|(name, server)| (name.clone(), server.state())).collect()
    }

    /// Takes leave of all servers; children have ended when this returns, or will be killed.
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

    pub(crate) fn news(&self) -> broadcast::Receiver<News> {
        self.news.subscribe()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
