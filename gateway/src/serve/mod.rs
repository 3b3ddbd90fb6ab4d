//! `lorgnette serve`: puts the house together, runs it, and takes it down cleanly.

mod engines;

use std::{fs, os::unix::fs::DirBuilderExt as _, path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use device_protocol::GoodbyeReason;
use gateway_core::user::{self, Compaction};
use tokio_util::sync::CancellationToken;
use tools::{
    apps::client::Client,
    executor::{CallRecords, Executor},
    in_flight::InFlight,
    memory::Memory,
    permissions::Switches as _,
    ports::{Ports, Style},
    registry::Registry,
    source::Source,
};

use crate::{
    approvals::ApprovalBroker,
    apps::{host::Host, installed::Installed, scene::Scenes, sound::Sounds},
    clock,
    config::{APP_SOCKET_PATH, Checked},
    control::{self, admin::Admin},
    device_task::{
        prepare::Preparer,
        services::{Admission, Services},
    },
    erasing::{self, Eraser, Forgets},
    health::Health,
    http::{Bound, Doors, Listen},
    identity::{GatewayKey, Pairings},
    mcp::Mcp,
    models::tool_selection::BySentences,
    models::{ToolSelection, ranks},
    ports::{
        context::{Personalities, Remembered},
        intents::StoredIntents,
        memory::{StoredConversations, StoredTexts},
        preferences::Preferences,
        records::{StoredCatalogue, StoredLedger, StoredSwitches},
        stores::{ConnectedDevices, StoredNotes, SystemClock, UserSchedule},
    },
    roster::Roster,
    runtime::spawn,
    skills::SkillStore,
    store::Store,
    telemetry::{Losses, Turns},
    transport::tls,
    users::{Summariser, Users},
};

/// How long sessions may take to say goodbye.
const GOODBYE_MS_MAX: u64 = 3_000;

/// A gateway that listens.
pub struct Running {
    /// Address of WebSocket and pages.
    pub web: std::net::SocketAddr,
    /// Address of QUIC.
    pub quic: Option<std::net::SocketAddr>,
    /// The gateway's public key, which devices pin.
    pub public_key: [u8; 32],
    admin: Arc<Admin>,
    stop: CancellationToken,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

/// The models that the configuration names, with their keys.
///
/// # Errors
/// A key cannot be read, or an address or a header is wrong.
pub(crate) fn models(config: &Checked, sentences: Option<Arc<BySentences>>) -> Result<ranks::Ranks> {
    ranks::set_up(&config.ranks, &ToolSelection::new(config.router, &config.router_by, sentences)?)
}

/// Starts a gateway; returns when it listens.
///
/// # Errors
/// A model is missing, a port in use, a folder not writable: the text says what to do.
pub async fn start(config: Checked) -> Result<Running> {
    let started_us = clock::mono_us();
    let config = Arc::new(config);
    // One TLS stack in the house; only the first call in a process counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    make_private_dir(&config.data_dir)?;
    let control_socket = control::server::bind(&config.data_dir)?;
    let is_known = GatewayKey::is_in(&config.data_dir);
    let key = GatewayKey::load_or_make(&config.data_dir)?;
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "lorgnette.local".to_owned()];
    let tls = tls::load_or_make(&config.data_dir, names)?;
    let folder = config.data_dir.join("store");
    if is_known && Store::is_empty(&folder) {
        tracing::warn!(
            store = %folder.display(),
            "there is a key of this gateway and no store: devices that were paired have to be paired again. If there is a \
             backup of the store, stop the gateway and restore it"
        );
    }
    let store = Store::open(&folder, config.store_size_max_mib).with_context(|| {
        format!(
            "opening the store {}; it holds pairings and all that is kept of users: restore it from a backup, or move \
             it away to begin with nothing",
            folder.display()
        )
    })?;
    erasing::resume(&config.data_dir, &store).await.context("carrying on the erasure of the last run")?;
    let mcp = crate::mcp::Prepared::load(&config).map_err(|problems| anyhow!("{}", problems.join("\n")))?;
    let listen = Listen { web: config.web, quic: config.quic, plain_everywhere: config.plain };
    let bound = Bound::bind(&listen, tls).await?;
    let (web, quic) = (bound.web_address()?, bound.quic_address());

    let (engines, sentences) = engines::load(&config).await?;
    let models = models(&config, sentences.clone())?;
    let roster = Arc::new(Roster::default());
    let registry = Arc::new(Registry::with_built_ins().map_err(|error| anyhow!("a built-in tool is wrong: {error}"))?);
    let client = Arc::new(Client::new()?);
    let installed = Arc::new(Installed::load(store.clone(), registry.clone(), client)?);
    let stop = CancellationToken::new();
    let sounds = Sounds::new(engines.compute.clone())?;
    let known = (config.language.as_str(), config.apps_location);
    let in_flight = InFlight::default();
    let apps =
        Host::new(store.clone(), in_flight.clone(), roster.clone(), installed.clone(), sounds, known, stop.clone());
    apps.set_url(config.apps_url.clone().unwrap_or_else(|| apps_url(web)));
    let approvals = Arc::new(ApprovalBroker::new(roster.clone(), registry.clone()));
    let users = Users::new(
        store.clone(),
        roster.clone(),
        approvals.clone(),
        (user_config(&config), config.limits.users_max),
        Summariser { models: models.clone(), language: config.language.clone() },
    );
    let personalities = Arc::new(Personalities::new(&config.personality));
    let skill_folders = std::iter::once(config.data_dir.join("skills")).chain(config.skills.iter().cloned());
    let skills = Arc::new(SkillStore::new(skill_folders.collect()));
    let facts = Arc::new(StoredTexts::facts(store.clone()));
    let instructions = Arc::new(StoredTexts::instructions(store.clone()));
    let (told, kept) = (facts.clone(), instructions.clone());
    let remembered = Arc::new(Remembered::new(told, kept, personalities.clone(), skills.clone()));
    let memory = Memory {
        facts,
        instructions,
        conversations: Arc::new(StoredConversations { store: store.clone(), users: users.clone() }),
        skills: skills.clone(),
        personality: personalities,
        ..Memory::default()
    };
    let ports = Ports {
        schedule: Arc::new(UserSchedule(users.clone())),
        notes: Arc::new(StoredNotes(store.clone())),
        device: Arc::new(ConnectedDevices(roster.clone())),
        consent: approvals.clone(),
        apps: apps.clone(),
        memory: memory.clone(),
        clock: Arc::new(SystemClock),
        style: Style::default(),
    };
    let restored = registry
        .keep_in(Arc::new(StoredCatalogue(store.clone())), |source| match source {
            // Installed apps are offered already, from what is kept of themselves.
            Source::App(_) => false,
            Source::Mcp(server) => mcp.has_server(server),
            Source::BuiltIn | Source::Device(_) => true,
        })
        .context("reading the catalogue of tools")?;
    tracing::debug!(restored, "tools of apps and servers as they were last known");
    let switches = Arc::new(StoredSwitches::load(store.clone()).context("reading what users have switched off")?);
    let preferences =
        Arc::new(Preferences::load(store.clone()).context("reading what users have chosen between tools")?);
    let ledger = Arc::new(StoredLedger(store.clone()));
    let journal = StoredIntents::new(store.clone());
    journal.tell_of_open(ledger.as_ref()).context("reading the intents of the last run")?;
    let records = CallRecords {
        journal: Some(Arc::new(journal)),
        ledger: Some(ledger),
        switches: Some(switches.clone()),
        limits: config.tool_limits,
        in_flight,
    };
    let executor = Executor::with_records(registry.clone(), ports, records);
    let mcp = Arc::new(Mcp::start(mcp, &executor, roster.clone(), web.port()));
    let public_key = key.public();
    let preparer = Preparer::start(executor.clone(), models.clone(), roster.clone(), config.language.clone())
        .context("starting the thread that prepares")?;
    let turns = Arc::<Turns>::default();
    let eraser = Eraser::new(
        config.data_dir.clone(),
        store.clone(),
        (users.clone(), roster.clone()),
        (executor.clone(), apps.clone()),
        turns.clone(),
        Forgets {
            switches: switches.clone(),
            preferences: preferences.clone(),
            memory,
            remembered: remembered.clone(),
        },
    );
    let scenes = Scenes::new(store.clone(), apps.clone(), preferences.clone());
    let (pairings, losses, health) = (Arc::<Pairings>::default(), Arc::<Losses>::default(), Arc::<Health>::default());
    let connections_max = config.limits.connections_max;
    let services = Arc::new(Services {
        config: config.clone(),
        admission: Admission::new(key, store.clone(), pairings.clone(), connections_max, stop.clone()),
        engines: engines.clone(),
        roster: roster.clone(),
        users: users.clone(),
        apps: apps.clone(),
        approvals: approvals.clone(),
        preferences: preferences.clone(),
        scenes: scenes.clone(),
        registry: registry.clone(),
        executor: executor.clone(),
        models,
        preparer: preparer.clone(),
        remembered,
        turns: turns.clone(),
        losses: losses.clone(),
    });
    let doors = Doors { services: services.clone(), mcp: mcp.clone(), health: health.clone() };
    let admin = Arc::new(Admin {
        config: config.clone(),
        stop: stop.clone(),
        store,
        pairings,
        roster,
        users: users.clone(),
        approvals,
        eraser: eraser.clone(),
        skills: skills.clone(),
        registry: registry.clone(),
        executor,
        switches: switches.clone(),
        preferences,
        scenes,
        installed,
        apps: apps.clone(),
        mcp,
        engines,
        turns,
        losses,
        health,
        sessions: services,
        started_us,
        web,
        quic,
    });
    users.wake_all();
    apps.restore().await;
    let mut tasks = vec![
        spawn("apps", apps.run()),
        spawn(
            "tool-changes",
            tools_changed(registry.clone(), switches, preparer, config.apply_tools_now, stop.clone()),
        ),
        spawn("erasing", eraser.keep_trying(stop.clone())),
        spawn("skills", skills.watch(stop.clone())),
        spawn("control", control::server::serve(control_socket, admin.clone(), stop.clone())),
        spawn("listen", bound.serve(doors, stop.clone())),
    ];
    tasks.extend(sentences.map(|sentences| spawn("sentences", sentences.keep_up(registry, stop.clone()))));
    Ok(Running { web, quic, public_key, admin, stop, tasks })
}

impl Running {
    /// Everything of this gateway, for tests.
    pub fn admin(&self) -> &Arc<Admin> {
        &self.admin
    }

    /// Tells the devices, waits for their goodbyes, stops, and closes the store: a gateway may start on the same
    /// folder afterwards, in this process too.
    pub async fn stop(self) {
        self.stop.cancel();
        for (id, _) in self.admin.roster.all() {
            self.admin.roster.dismiss(&id, GoodbyeReason::ShuttingDown, "the gateway is stopping");
        }
        self.admin.sessions.admission.open.close();
        let wait = Duration::from_millis(GOODBYE_MS_MAX);
        if tokio::time::timeout(wait, self.admin.sessions.admission.open.wait()).await.is_err() {
            tracing::warn!("some devices did not take their goodbye");
        }
        self.admin.mcp.stop().await;
        for task in self.tasks {
            drop(task.await);
        }
        if let Err(error) = self.admin.store.close().await {
            tracing::warn!(%error, "the store was not closed in order");
        }
    }
}

/// What the core is told of every user.
fn user_config(config: &Checked) -> user::Config {
    let ranks = &config.ranks;
    let compaction = Compaction { summarise: ranks.terms.iter().any(|model| !model.on_box), ..Compaction::default() };
    let (models, nano_per_day) = (ranks.terms.clone(), ranks.nano_per_day);
    user::Config { models, nano_per_day, compaction, ..config.user.clone() }
}

/// Prepares the models for the tools that there are, again whenever they change; and tells all glasses of a change,
/// where that is to count at once.
async fn tools_changed(
    registry: Arc<Registry>,
    switches: Arc<StoredSwitches>,
    preparer: Preparer,
    at_once: bool,
    stop: CancellationToken,
) {
    let (mut changes, mut switched) = (registry.changes(), switches.changes());
    preparer.prepare_all(false);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Ok(()) = changes.changed() => preparer.prepare_all(at_once),
            Ok(()) = switched.changed() => preparer.prepare_all(false),
            else => return,
        }
    }
}

/// Where apps on this machine reach the gateway.
fn apps_url(web: std::net::SocketAddr) -> String {
    let mut address = web;
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    format!("ws://{address}{}", APP_SOCKET_PATH)
}

/// Makes a folder that only its owner may enter.
fn make_private_dir(path: &Path) -> Result<()> {
    if !path.exists() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("making the data folder {}; set `data_dir`", path.display()))?;
    }
    Ok(())
}
