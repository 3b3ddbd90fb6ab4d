//! `lorgnette serve`: assembles the gateway, runs it, and stops it cleanly.

mod data;
mod engines;
mod tools;
mod users;

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, anyhow};
use axum::http::Uri;
use device_protocol::GoodbyeReason;
use tokio::{net::UnixListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use self::{data::Data, tools::ToolServices, users::UserServices};
use crate::{
    apps::scene::Scenes,
    capabilities::{Evaluator, Prepared as Capabilities},
    clock,
    config::Config,
    control::{
        self,
        admin::{Admin, Started},
    },
    device_task::{
        prepare::Preparer,
        services::{Admission, Engines, Services},
        settings::SessionSettings,
    },
    discovery::Announcement,
    erasing::{Eraser, Forgets},
    health::{Health, Problem},
    http::{About, Bound, Doors, TryLink, TryPage},
    mcp::{Mcp, Prepared},
    models::{
        ToolSelection,
        chain::{self, ModelChain},
        settings::Models,
        tool_selection::BySentences,
    },
    private::FolderLock,
    runtime::{spawn, vital::Vital},
    store::Store,
    telemetry::SoundPackets,
};

/// How long sessions may take to say goodbye, in milliseconds.
const GOODBYE_MS_MAX: u64 = 3_000;

/// A listening gateway.
pub struct Running {
    /// Address of WebSocket and pages.
    pub web: std::net::SocketAddr,
    /// Address of QUIC.
    pub quic: Option<std::net::SocketAddr>,
    /// The gateway's public key, which devices pin.
    pub public_key: [u8; 32],
    /// What pairs one browser with the try page: its address is `/try#` and this; `None`: no such page.
    pub try_token: Option<String>,
    /// The name under which it is announced on the network; `None`: it is not.
    pub announced: Option<String>,
    admin: Arc<Admin>,
    stop: CancellationToken,
    vital: Arc<Vital>,
    tasks: Vec<JoinHandle<()>>,
    lock: FolderLock,
}

/// Sets up the configured models, with their keys.
///
/// # Errors
/// A key cannot be read, or an address or a header is wrong.
pub(crate) fn models(models: &Models, sentences: Option<Arc<BySentences>>) -> Result<ModelChain> {
    chain::set_up(&models.chain, &ToolSelection::new(&models.tools, models.code.clone(), sentences)?)
}

/// Starts a gateway; returns when it listens.
///
/// # Errors
/// A model is missing, a port in use, a folder not writable: the text says what to do.
pub async fn start(config: Config) -> Result<Running> {
    let at_us = clock::mono_us();
    // One TLS provider for the process; only the first call counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    let stop = CancellationToken::new();
    let vital = Vital::new(stop.clone());
    let Data { lock, control_socket, key, tls, store } = Data::open(&config.data_dir, config.store).await?;
    let mcp = Prepared::load(&config.mcp, config.folder.as_deref());
    let mut mcp = mcp.map_err(|problems| anyhow!("{}", problems.join("\n")))?;
    let folders = (config.folder.as_deref(), config.data_dir.as_path());
    let evaluator = Evaluator::new(config.models.code.executable.as_deref());
    let capabilities = Capabilities::load(&config.capabilities, folders, &mut mcp, &evaluator).await;
    let capabilities = capabilities.map_err(|problems| anyhow!("{}", problems.join("\n")))?;
    let bound = Bound::bind(&config.listen, tls).await?;
    let (web, quic) = (bound.web_address()?, bound.quic_address());
    let (engines, sentences) = engines::load(&config).await?;
    let models = models(&config.models, sentences.clone())?;

    let of_users = UserServices::new(&config, &store, &models, &engines.files, (web, &capabilities), &stop)?;
    let mut of_tools = ToolServices::new(&config, &store, &of_users, &mcp, &stop)?;
    // No revision of this run may be told before it is reserved on the disk.
    if let Err(error) = store.settled().await {
        tracing::warn!(%error, "the store does not write");
    }
    let mcp = Arc::new(Mcp::start(mcp, &of_tools.executor, of_users.roster.clone(), web.port()));
    let public_key = key.public();
    let for_glasses = (config.listen.websocket.then_some(web), quic);
    let announcement = Announcement::new(&config.discovery, &config.name, &public_key, for_glasses);
    let admission = Admission::new(key, stop.clone())?;
    let services = services(&config, store, admission, engines, models, (&of_users, &mut of_tools))?;
    let health = Arc::new(Health::new(vital.clone()));
    watch_threads(&vital, &services);
    let (try_page, try_token) = try_page(&config)?.unzip();
    let doors = doors(&config, try_page, &services, &mcp, &health);
    let admin = Arc::new(Admin {
        eraser: eraser(&services, &of_tools),
        services,
        installed: of_users.installed,
        switches: of_tools.switches,
        routines: of_tools.routines,
        mcp,
        skills: of_tools.skills,
        health,
        started: Started {
            at_us,
            web,
            websocket: config.listen.websocket,
            quic,
            models: config.models.chain,
            hearing: config.hearing,
        },
    });
    admin.services.users.wake_all();
    admin.services.apps.restore().await;
    let mut tasks = run(&admin, control_socket, config.assistant.apply_tools_now, (&vital, &stop));
    tasks.push(vital.spawn("listen", bound.serve(doors, vital.clone(), stop.clone())));
    if let Some(sentences) = sentences {
        let (registry, threads) = (admin.services.registry.clone(), sentences.clone());
        vital.watch("sentences", move || threads.is_running());
        tasks.push(vital.spawn("sentences", sentences.keep_up(registry, stop.clone())));
    }
    tasks.push(spawn("threads", vital.clone().look_after_threads()));
    let announced = announcement.as_ref().map(|announcement| announcement.name().to_owned());
    // Nothing depends on it.
    tasks.extend(announcement.map(|announcement| spawn("discovery", announcement.keep_up(stop.clone()))));
    Ok(Running { web, quic, public_key, try_token, announced, admin, stop, vital, tasks, lock })
}

/// What the sessions of devices share.
fn services(
    config: &Config,
    store: Store,
    admission: Admission,
    engines: Engines,
    models: ModelChain,
    (of_users, of_tools): (&UserServices, &mut ToolServices),
) -> Result<Arc<Services>> {
    let language = config.language.clone();
    let of_programs = (of_tools.executor.clone(), of_users.modules.clone());
    let preparer = Preparer::start(of_programs, models.clone(), of_users.roster.clone(), language)
        .context("starting the thread that prepares")?;
    Ok(Arc::new(Services {
        resumable: Arc::default(),
        stored_sessions: std::mem::take(&mut of_tools.stored_sessions),
        sound: SoundPackets::default(),
        settings: SessionSettings {
            gateway_name: config.name.clone(),
            language: config.language.clone(),
            data_dir: config.data_dir.clone(),
            limits: config.limits.clone(),
            voice: config.voice,
            conversation: config.conversation.clone(),
        },
        scenes: Scenes::new(store.clone(), of_users.apps.clone(), of_tools.preferences.clone()),
        gallery: of_tools.gallery.clone(),
        store,
        admission,
        engines,
        roster: of_users.roster.clone(),
        users: of_users.users.clone(),
        apps: of_users.apps.clone(),
        approvals: of_users.approvals.clone(),
        preferences: of_tools.preferences.clone(),
        registry: of_users.registry.clone(),
        executor: of_tools.executor.clone(),
        models,
        preparer,
        modules: of_users.modules.clone(),
        context: of_tools.context.clone(),
        turns: Arc::default(),
        losses: Arc::default(),
    }))
}

/// The page to talk from a browser, with its token; `None`: switched off.
fn try_page(config: &Config) -> Result<Option<(TryPage, String)>> {
    if !config.listen.try_page {
        return Ok(None);
    }
    let (link, token) = TryLink::new()?;
    let about = About::new(&config.conversation, &config.models.chain);
    Ok(Some((TryPage { about, link: Arc::new(link) }, token)))
}

/// What the endpoints work with.
fn doors(
    config: &Config,
    try_page: Option<TryPage>,
    services: &Arc<Services>,
    mcp: &Arc<Mcp>,
    health: &Arc<Health>,
) -> Doors {
    let apps_host = config.apps.url.as_deref().and_then(|url| url.parse::<Uri>().ok()?.host().map(str::to_owned));
    let own = data::NAMES.map(str::to_owned).into_iter();
    Doors {
        services: services.clone(),
        mcp: mcp.clone(),
        health: health.clone(),
        websocket: config.listen.websocket,
        try_page,
        names: own.chain(config.mcp.hosts.iter().cloned()).chain(apps_host).collect(),
        apps_elsewhere: config.apps.url.is_some(),
    }
}

/// Erases users while the gateway runs.
fn eraser(services: &Services, of_tools: &ToolServices) -> Arc<Eraser> {
    Eraser::new(
        services.settings.data_dir.clone(),
        services.store.clone(),
        (services.users.clone(), services.roster.clone()),
        (services.executor.clone(), services.apps.clone()),
        services.turns.clone(),
        Forgets {
            switches: of_tools.switches.clone(),
            preferences: services.preferences.clone(),
            memory: of_tools.memory.clone(),
            routines: of_tools.routines.clone(),
            context: services.context.clone(),
        },
    )
}

/// Watches the threads that run until the gateway stops.
fn watch_threads(vital: &Vital, services: &Arc<Services>) {
    let watch = |name, is_running: fn(&Services) -> bool| {
        let services = services.clone();
        vital.watch(name, move || is_running(&services));
    };
    watch("store", |services| services.store.is_running());
    watch("recognition", |services| services.engines.asr.is_running());
    watch("synthesis", |services| services.engines.compute.is_running());
    watch("files", |services| services.engines.files.is_running());
    watch("end of turn", |services| services.engines.judge.as_ref().is_none_or(|judge| judge.compute.is_running()));
    watch("preparation", |services| services.preparer.is_running());
}

/// Starts the tasks that run until the gateway stops.
fn run(
    admin: &Arc<Admin>,
    control_socket: UnixListener,
    apply_tools_now: bool,
    (vital, stop): (&Arc<Vital>, &CancellationToken),
) -> Vec<JoinHandle<()>> {
    let services = &admin.services;
    let registry = services.registry.clone();
    vec![
        vital.spawn("apps", services.apps.clone().run()),
        vital.spawn("tool-changes", services.preparer.clone().keep_up(registry, apply_tools_now, stop.clone())),
        vital.spawn("erasing", admin.eraser.clone().keep_trying(stop.clone())),
        vital.spawn("runs", admin.routines.runs.clone().keep_sweeping(stop.clone())),
        vital.spawn("skills", admin.skills.clone().watch(stop.clone())),
        vital.spawn("control", control::server::serve(control_socket, admin.clone(), stop.clone())),
    ]
}

impl Running {
    /// The operator's view and controls, for tests.
    pub fn admin(&self) -> &Arc<Admin> {
        &self.admin
    }

    /// What its sessions share, for tests.
    pub fn services(&self) -> &Arc<Services> {
        &self.admin.services
    }

    /// What does not work at this moment.
    pub async fn problems(&self) -> Vec<Problem> {
        let services = &self.admin.services;
        self.admin.health.problems(&services.settings.data_dir, &services.store).await
    }

    /// Waits until a part ends that the gateway cannot do without: its name.
    pub async fn failed(&self) -> &'static str {
        self.vital.failed().await
    }

    /// Notifies the devices, waits for their goodbyes, stops, and closes the store: afterwards a gateway may start on
    /// the same folder, also in this process.
    pub async fn stop(self) {
        self.stop.cancel();
        let services = &self.admin.services;
        for (id, _) in services.roster.all() {
            services.roster.dismiss(&id, GoodbyeReason::ShuttingDown, "the gateway is stopping");
        }
        services.admission.open.close();
        let wait = Duration::from_millis(GOODBYE_MS_MAX);
        if tokio::time::timeout(wait, services.admission.open.wait()).await.is_err() {
            tracing::warn!("some devices did not take their goodbye");
        }
        self.admin.mcp.stop().await;
        for task in self.tasks {
            drop(task.await);
        }
        if let Err(error) = services.store.close().await {
            tracing::warn!(%error, "the store was not closed in order");
        }
        drop(self.lock);
    }
}
