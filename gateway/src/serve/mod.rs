//! `lorgnette serve`: assembles the gateway, runs it, and stops it cleanly.

mod data;
mod endpoints;
mod engines;
mod handover;
mod known_models;
mod loaded;
mod memory;
mod reload;
mod threads;
mod tools;
mod users;

use std::{ffi::OsString, io, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use device_protocol::GoodbyeReason;
use tokio::{net::UnixListener, sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub(crate) use self::handover::HANDOVER_MAX;
pub use self::loaded::{Loaded, Origin};
use self::{
    data::{Data, LOCK_WAIT, START_LOCK_WAIT},
    endpoints::{console, endpoints, started, try_page},
    reload::Reloader,
    tools::ToolServices,
    users::UserServices,
};
use crate::{
    apps::scene::Scenes,
    backup::Backups,
    config::Config,
    control::{
        self,
        admin::{Admin, Reloaded},
        system::OwnSystem,
    },
    device_task::{
        prepare::Preparer,
        services::{Admission, Assistant, Engines, Resumption, Services, SessionTelemetry},
        settings::{Changeable, Current, SessionSettings},
        untold,
    },
    discovery::Announcement,
    erasing::{Eraser, UserCaches},
    firmware::Firmware,
    health::{Health, Problem},
    http::Bound,
    mcp::Mcp,
    models::chain::ModelChain,
    ports::{journal, stores::SystemClock},
    private::FolderLock,
    recordings::Recordings,
    runtime::{essential::EssentialTasks, spawn},
    store::Store,
    telemetry::{SoundPackets, Turns, log::Logs, otlp::Traces},
    transport::sockets::Sockets,
    upgrade::{Ready, Upgrader},
};

/// How long sessions may take to say goodbye, in milliseconds.
const GOODBYE_MS_MAX: u64 = 3_000;

/// A gateway from the moment that it listens until it is told to stop.
pub struct Running {
    /// Address of WebSocket and pages.
    pub web: std::net::SocketAddr,
    /// Address of QUIC.
    pub quic: Option<std::net::SocketAddr>,
    /// The gateway's public key, which devices pin.
    pub public_key: [u8; 32],
    /// What pairs one browser with the try page, once and not for long: its address is `/try#` and this; `None`: no such page.
    pub try_token: Option<String>,
    /// The name under which it is announced on the network; `None`: it is not.
    pub announced: Option<String>,
    admin: Arc<Admin>,
    reloader: Arc<Reloader>,
    stop: CancellationToken,
    essential: Arc<EssentialTasks>,
    tasks: Vec<JoinHandle<()>>,
    lock: FolderLock,
    sockets: Sockets,
    upgrades: Option<mpsc::Receiver<Ready>>,
}

/// Starts a gateway; returns when it listens.
///
/// # Errors
/// A model is missing, a port in use, a folder not writable: the text says what to do.
pub async fn start(config: Config) -> Result<Running> {
    start_from(config, Origin::default()).await
}

/// As [`start`], for a process that was given something.
///
/// # Errors
/// As there; or the gateway that was to be replaced goes on.
pub(crate) async fn start_from(config: Config, origin: Origin) -> Result<Running> {
    // One TLS provider for the process; only the first call counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    let Origin { sockets, take_over, arguments, had_folder } = origin;
    let Some(mut take_over) = take_over else {
        // First: its error names the other gateway.
        let wait = if had_folder { LOCK_WAIT } else { START_LOCK_WAIT };
        let data = Data::open(&config.data_dir, config.store, wait).await?;
        let loaded = Loaded::load(&config, sockets).await?;
        return assemble(config, data, loaded, arguments).await;
    };
    let started = async {
        let loaded = Loaded::load(&config, sockets).await?;
        take_over.loaded().await?;
        loaded.start(config.clone(), arguments).await
    };
    let started = started.await;
    take_over.told(started.as_ref().map(drop).map_err(|error| format!("{error:#}"))).await;
    started
}

/// Puts the parts together and lets them run.
async fn assemble(config: Config, data: Data, loaded: Loaded, arguments: Option<Vec<OsString>>) -> Result<Running> {
    let stop = CancellationToken::new();
    let essential = EssentialTasks::new(stop.clone());
    let Data { lock, control_socket, key, tls, store, logs, kept_out } = data;
    let Loaded { at_us, mcp, capabilities, sockets, engines, sentences, models, known } = loaded;
    let kept = sockets.try_clone().context("keeping the sockets for the process that replaces this one")?;
    let certificate = tls.to_compare();
    let bound = Bound::new(sockets, &config.listen, tls)?;
    let (web, quic) = (bound.web_address()?, bound.quic_address());
    let upgrades = arguments.map(|arguments| Ok::<_, io::Error>(Upgrader::new(kept.try_clone()?, arguments)));
    let (upgrader, upgrades) = upgrades.transpose()?.unzip();

    let of_users =
        UserServices::new(&config, (&store, &logs), (&models, &known), &engines.files, (web, &capabilities), &stop)?;
    let of_tools = ToolServices::new(&config, &store, &of_users, &mcp, &stop)?;
    // No revision of this run may be told before it is reserved on the disk.
    if let Err(error) = store.settled().await {
        tracing::warn!(%error, "the store does not write");
    }
    let mcp = Arc::new(Mcp::start(mcp, &of_tools.executor, of_users.roster.clone(), web.port()));
    let public_key = key.public();
    let for_glasses = (config.listen.websocket.then_some(web), quic);
    let announcement = Announcement::new(&config.discovery, &config.name, &public_key, for_glasses);
    let admission = Admission::new(key, stop.clone())?;
    let (traces, exporter) = config.telemetry.traces.clone().map(Traces::new).transpose()?.unzip();
    let services = services(&config, (store, &logs), admission, (engines, models), (&of_users, &of_tools, traces))?;
    let users = services.users.clone();
    let health = Arc::new(Health::new(essential.clone(), move || users.down()));
    threads::watch(&essential, &services, &logs, of_users.workspaces.clone());
    let (try_page, try_token) = try_page(&config, &services)?.unzip();
    let reloader = Arc::new(Reloader::new(&config, services.settings.current.clone(), announcement.is_some()));
    let reloads = reloader.clone();
    let admin = Arc::new(Admin {
        reload: Box::new(move || reloads.reload()),
        backups: Backups::new(config.data_dir.clone(), config.models_dir.clone(), services.store.clone()),
        eraser: eraser(&services, &logs, &of_tools, &mcp),
        services,
        logs,
        installed: of_users.installed,
        switches: of_tools.switches,
        routines: of_tools.routines,
        mcp,
        skills: of_tools.skills,
        health,
        started: started(&config, at_us, (web, quic), certificate, announcement.as_ref()),
        console: console(&config),
        upgrader,
    });
    let endpoints = endpoints(&config, try_page, (&admin, &of_users.system));
    of_users.system.set(OwnSystem::new(&admin));
    admin.eraser.keep_out(&kept_out).await;
    admin.services.users.wake_all();
    admin.services.apps.restore().await;
    let mut tasks = run(&admin, control_socket, config.assistant.apply_tools_now, (&essential, &stop));
    tasks.push(essential.spawn("listen", bound.serve(endpoints, essential.clone(), stop.clone())));
    if let Some(sentences) = sentences {
        let (registry, threads) = (admin.services.registry.clone(), sentences.clone());
        essential.watch("sentences", move || threads.is_running());
        tasks.push(essential.spawn("sentences", sentences.keep_up(registry, stop.clone())));
    }
    tasks.push(spawn("threads", essential.clone().look_after_threads()));
    let announced = announcement.as_ref().map(|announcement| announcement.name().to_owned());
    // Nothing depends on these.
    tasks.push(spawn("untold", untold::tell_left(admin.services.clone(), stop.clone())));
    tasks.push(spawn("memory", memory::give_back(admin.services.roster.clone(), stop.clone())));
    tasks.extend(exporter.map(|exporter| spawn("otlp", exporter.run(stop.clone()))));
    tasks.extend(announcement.map(|announcement| spawn("discovery", announcement.keep_up(stop.clone()))));
    Ok(Running {
        web,
        quic,
        public_key,
        try_token,
        announced,
        admin,
        reloader,
        stop,
        essential,
        tasks,
        lock,
        sockets: kept,
        upgrades,
    })
}

/// What the sessions of devices share.
fn services(
    config: &Config,
    (store, logs): (Store, &Logs),
    admission: Admission,
    (engines, models): (Engines, ModelChain),
    (of_users, of_tools, traces): (&UserServices, &ToolServices, Option<Traces>),
) -> Result<Arc<Services>> {
    let language = config.language.clone();
    let of_programs = (of_tools.executor.clone(), of_users.modules.clone());
    let preparer = Preparer::start(of_programs, models.clone(), of_users.roster.clone(), language)
        .context("starting the thread that prepares")?;
    let firmware =
        Firmware::start(&config.data_dir, config.firmware.clone()).context("opening the firmware for devices")?;
    let paired = store.disk().devices().context("reading the devices")?;
    let firmware = Arc::new(firmware);
    firmware.keep_only(&paired.into_iter().map(|(id, _)| id).collect());
    Ok(Arc::new(Services {
        firmware,
        resumption: Resumption { resumable: Arc::default(), stored: of_tools.stored_sessions.clone() },
        assistant: Assistant {
            scenes: Scenes::new(store.clone(), of_users.apps.clone(), of_tools.preferences.clone()),
            preferences: of_tools.preferences.clone(),
            models,
            preparer,
            modules: of_users.modules.clone(),
            context: of_tools.context.clone(),
        },
        telemetry: SessionTelemetry {
            turns: Arc::new(Turns::new(logs.clone(), of_users.histograms.clone(), traces)),
            active_turns: Arc::default(),
            losses: Arc::default(),
            sound: SoundPackets::default(),
            recordings: Recordings::new(&config.data_dir, config.recordings),
        },
        settings: SessionSettings {
            language: config.language.clone(),
            device_wake: config.hearing.device_wake,
            data_dir: config.data_dir.clone(),
            limits: config.limits.clone(),
            dead_microphone_us: config.hearing.dead_microphone_us,
            current: Current::new(Changeable {
                gateway_name: config.name.clone(),
                voice: config.voice,
                conversation: config.conversation.clone(),
            }),
        },
        gallery: of_tools.gallery.clone(),
        store,
        admission,
        engines,
        roster: of_users.roster.clone(),
        users: of_users.users.clone(),
        apps: of_users.apps.clone(),
        approvals: of_users.approvals.clone(),
        registry: of_users.registry.clone(),
        executor: of_tools.executor.clone(),
    }))
}

/// Erases users while the gateway runs.
fn eraser(services: &Services, logs: &Logs, of_tools: &ToolServices, mcp: &Mcp) -> Arc<Eraser> {
    Eraser::new(
        services.settings.data_dir.clone(),
        (services.store.clone(), logs.clone()),
        (services.users.clone(), services.roster.clone()),
        (services.executor.clone(), services.apps.clone()),
        services.telemetry.turns.clone(),
        UserCaches {
            switches: of_tools.switches.clone(),
            preferences: services.assistant.preferences.clone(),
            memory: of_tools.memory.clone(),
            routines: of_tools.routines.clone(),
            context: services.assistant.context.clone(),
            sessions: services.resumption.stored.clone(),
            mcp: mcp.pool().clone(),
        },
    )
}

/// Starts the tasks that run until the gateway stops.
fn run(
    admin: &Arc<Admin>,
    control_socket: UnixListener,
    apply_tools_now: bool,
    (essential, stop): (&Arc<EssentialTasks>, &CancellationToken),
) -> Vec<JoinHandle<()>> {
    let services = &admin.services;
    let registry = services.registry.clone();
    vec![
        essential.spawn("apps", services.apps.clone().run()),
        essential.spawn(
            "tool-changes",
            services.assistant.preparer.clone().keep_up(registry, apply_tools_now, stop.clone()),
        ),
        essential.spawn("erasing", admin.eraser.clone().keep_trying(stop.clone())),
        essential.spawn("intents", journal::keep_sweeping(services.store.clone(), Arc::new(SystemClock), stop.clone())),
        essential.spawn("runs", admin.routines.runs.clone().keep_sweeping(stop.clone())),
        essential.spawn("skills", admin.skills.clone().watch(stop.clone())),
        essential.spawn("control", control::server::serve(control_socket, admin.clone(), stop.clone())),
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

    /// Reads the configuration again and takes over what may change while the gateway runs.
    ///
    /// # Errors
    /// It cannot be used: the reasons. Nothing has changed.
    pub fn reload(&self) -> Result<Reloaded, Vec<String>> {
        (self.admin.reload)()
    }

    /// What does not work at this moment.
    pub async fn problems(&self) -> Vec<Problem> {
        let services = &self.admin.services;
        self.admin.health.problems(&services.settings.data_dir, &services.store).await
    }

    /// Names of the threads without which it ends, for tests.
    pub fn watched(&self) -> Vec<&'static str> {
        self.essential.watched()
    }

    /// Waits until a part ends that the gateway cannot do without: its name.
    pub async fn failed(&self) -> &'static str {
        self.essential.failed().await
    }

    /// Processes that are ready to replace this gateway; `None`: it cannot be replaced. Only the first caller gets them.
    pub(crate) fn take_upgrades(&mut self) -> Option<mpsc::Receiver<Ready>> {
        self.upgrades.take()
    }

    /// Notifies the devices, waits for their goodbyes, stops, and closes the store: afterwards a gateway may start on
    /// the same folder, also in this process.
    pub async fn stop(self) {
        self.stop.cancel();
        // Tasks that are waited for below may wait for what an upgrade keeps until this is done.
        self.admin.eraser.running.close();
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
        // After the last line about the others.
        if let Err(error) = self.admin.logs.close().await {
            tracing::warn!(%error, "the stored log was not closed in order");
        }
        drop(self.lock);
    }
}
