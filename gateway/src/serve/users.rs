//! What runs for users: their tasks, their apps, and questions to them.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use anyhow::{Context as _, Result, anyhow};
use tokio_util::sync::CancellationToken;
use tools::{
    apps::client::Client,
    code::{
        self, Engine, Sandbox,
        modules::Modules,
        std::{StdHost, StdPolicy},
    },
    in_flight::InFlight,
    inspection::{self, Inspection},
    registry::Registry,
    secret::Secrets,
};

use crate::{
    approvals::ApprovalBroker,
    apps::{APP_SOCKET_PATH, host::Host, installed::Installed, sound::Sounds},
    capabilities::Prepared as Capabilities,
    config::Config,
    models::chain::ModelChain,
    ports::{
        graph::StoredGraph, logs::StoredLogs, models::OwnModels, records::StoredLedger, stores::SystemClock,
        system::DeferredSystem,
    },
    roster::Roster,
    runtime::compute::Compute,
    skills::SkillStore,
    store::Store,
    telemetry::{histogram::Histograms, log::Logs},
    users::{Summariser, Users},
    workspace::Workspaces,
};

/// Handles to these services.
pub(super) struct UserServices {
    /// Connected devices.
    pub(super) roster: Arc<Roster>,
    /// The catalogue of tools.
    pub(super) registry: Arc<Registry>,
    /// Operations that an erasure of a user ends.
    pub(super) in_flight: InFlight,
    /// Files of programs.
    pub(super) workspaces: Arc<Workspaces>,
    /// Runs programs; `None`: they are switched off.
    pub(super) engine: Option<Arc<Engine>>,
    /// The modules for programs.
    pub(super) modules: Arc<Modules>,
    /// Installed mini-apps.
    pub(super) installed: Arc<Installed>,
    /// Running mini-apps.
    pub(super) apps: Arc<Host>,
    /// Open approvals of wearers.
    pub(super) approvals: Arc<ApprovalBroker>,
    /// The users' tasks.
    pub(super) users: Arc<Users>,
    /// Durations.
    pub(super) histograms: Arc<Histograms>,
    /// The state of the gateway, once it is known.
    pub(super) system: Arc<DeferredSystem>,
    pub(super) skills: Arc<SkillStore>,
}

impl UserServices {
    /// Initial state. `web`: where apps on this machine connect; `files` converts the sounds that they play.
    pub(super) fn new(
        config: &Config,
        (store, logs): (&Store, &Logs),
        (models, known): (&ModelChain, &Arc<OwnModels>),
        files: &Compute,
        (web, capabilities): (SocketAddr, &Capabilities),
        stop: &CancellationToken,
    ) -> Result<Self> {
        let roster = Arc::new(Roster::default());
        let in_flight = InFlight::default();
        let workspaces = Workspaces::start(config.data_dir.clone(), in_flight.clone());
        let workspaces = Arc::new(workspaces.context("starting the thread for the files of programs")?);
        let secrets = Secrets::default();
        // Only the first call in a process counts.
        drop(rustls::crypto::ring::default_provider().install_default());
        let library = |policy| library(policy, store, &workspaces, &secrets);
        let modules = Arc::default();
        let engine = engine(config, library, &modules)?;
        let system = Arc::<DeferredSystem>::default();
        let skills = Arc::new(SkillStore::new(config.skills.all(&config.data_dir)));
        let inspection = Inspection {
            logs: Arc::new(StoredLogs { logs: logs.clone(), store: store.clone() }),
            system: system.clone(),
            models: known.clone(),
            graph: Arc::new(StoredGraph {
                logs: StoredLogs { logs: logs.clone(), store: store.clone() },
                skills: skills.clone(),
            }),
        };
        let mut given = inspection::tools(&inspection);
        given.extend(engine.iter().flat_map(code::tools::tools));
        let registry = Registry::with_built_ins_and(given, config.tools.clients.clone(), secrets.clone());
        let registry = Arc::new(registry.map_err(|error| anyhow!("a built-in tool is wrong: {error}"))?);
        let (client, users) = (Arc::new(Client::new()?), capabilities.users_of_apps());
        let installed = Arc::new(Installed::load(store.clone(), registry.clone(), client.clone(), users)?);
        capabilities.offer(&registry, &client, library, |package| installed.get(package).is_some())?;
        let apps = Host::new(
            store.clone(),
            in_flight.clone(),
            roster.clone(),
            installed.clone(),
            Sounds::new(files.clone())?,
            (config.hearing.understood(), config.apps.location),
            stop.clone(),
        );
        apps.set_url(config.apps.url.clone().unwrap_or_else(|| apps_url(web)));
        let approvals = Arc::new(ApprovalBroker::new(roster.clone(), registry.clone()));
        let users = Users::new(
            store.clone(),
            roster.clone(),
            approvals.clone(),
            (config.user.clone(), &config.limits),
            Summariser {
                models: models.clone(),
                language: config.language.clone(),
                secrets: registry.secrets().clone(),
            },
        );
        Ok(Self {
            roster,
            registry,
            in_flight,
            workspaces,
            engine,
            modules,
            installed,
            apps,
            approvals,
            users,
            histograms: Arc::default(),
            system,
            skills,
        })
    }
}

/// The address at which apps on this machine reach the gateway.
fn apps_url(web: SocketAddr) -> String {
    let mut address = web;
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    format!("ws://{address}{APP_SOCKET_PATH}")
}

/// The standard library under a policy.
fn library(policy: StdPolicy, store: &Store, workspaces: &Arc<Workspaces>, secrets: &Secrets) -> Result<StdHost> {
    let (clock, files, ledger) = (Arc::new(SystemClock), workspaces.clone(), Arc::new(StoredLedger(store.clone())));
    StdHost::new(policy, files, clock, Some(ledger), secrets.clone()).context("HTTP for programs")
}

/// What runs programs; `None`: they are switched off.
fn engine(
    config: &Config,
    library: impl Fn(StdPolicy) -> Result<StdHost>,
    modules: &Arc<Modules>,
) -> Result<Option<Arc<Engine>>> {
    let settings = &config.models.code;
    let Some(policy) = settings.policy()? else { return Ok(None) };
    let library = library(policy)?;
    let sandbox = settings.executable.as_deref().map_or_else(Sandbox::default, Sandbox::new);
    if let Err(error) = sandbox.warm_up() {
        tracing::warn!(%error, "no process could be started for programs; it is tried again with the first one");
    }
    Ok(Some(Engine::new(sandbox, library, modules.clone())))
}
