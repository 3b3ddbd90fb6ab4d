//! `lorgnette serve`: puts the house together, runs it, and takes it down cleanly.

use std::{
    fs,
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    sync::{Arc, atomic::AtomicU32},
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use audio::{
    asr::{self, Scheduler, SchedulerConfig},
    end_of_turn,
    tts::Voice,
    vad::silero,
};
use device_protocol::GoodbyeReason;
use gateway_core::user::{self, Compaction};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tools::{
    apps::client::Client,
    executor::{Books, Executor},
    in_flight::InFlight,
    memory::Memory,
    permissions::Switches as _,
    ports::{Ports, Style},
    registry::Registry,
    source::Source,
};

use crate::{
    apps::{host::Host, installed::Installed, sound::Sounds},
    chooser::BySentences,
    clock,
    config::{APP_SOCKET_PATH, Checked, RouterBy},
    control,
    ear::PauseJudge,
    effects::{
        books::{StoredCatalogue, StoredLedger, StoredSwitches},
        context::{Personalities, Remembered},
        intents::StoredIntents,
        memory::{StoredConversations, StoredTexts},
        ports::{ConnectedDevices, StoredNotes, SystemClock, UserSchedule},
        preferences::Preferences,
        prepare::Preparer,
    },
    erasing,
    gate::Gate,
    health::Health,
    identity::{GatewayKey, Pairings},
    mcp::Mcp,
    models::Choosing,
    questions::Questions,
    ranks,
    roster::Roster,
    runtime::{compute::Compute, on_own_thread, spawn},
    server::{Bound, Listen},
    skills::Folders,
    store::Store,
    telemetry::{Losses, Sparse, Turns},
    transport::tls,
    users::{Summariser, Users},
};

/// Jobs that may wait for synthesis: a clause takes some 10 ms.
const SYNTHESIS_WAITING_MAX: usize = 64;
/// Synthesis threads: with a second one, a first clause seldom waits for another's. More would take
/// the cores from recognition.
const SYNTHESIS_THREADS: usize = 2;
/// Pauses that may wait to be judged: behind more, a score comes after the decision.
const PAUSES_WAITING_MAX: usize = 8;
/// Decodes that may wait per thread: at 150 to 500 ms each, who is behind more waits too long. A few only would leave out
/// what was said at one moment by chance, while the machine has time left for it a second later.
const RECOGNITION_WAITING_PER_WORKER: usize = 6;
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
    gate: Arc<Gate>,
    stop: CancellationToken,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

/// The models that the configuration names, with their keys.
///
/// # Errors
/// A key cannot be read, or an address or a header is wrong.
pub(crate) fn models(config: &Checked, sentences: Option<Arc<BySentences>>) -> Result<ranks::Ranks> {
    ranks::set_up(&config.ranks, &Choosing::new(config.router, &config.router_by, sentences)?)
}

/// Starts a gateway; returns when it listens.
///
/// # Errors
/// A model is missing, a port in use, a folder not writable: the text says what to do.
pub async fn start(config: Checked) -> Result<Running> {
    let started_us = clock::mono_us();
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

    let engines = Engines::load(&config).await?;
    let sentences = engines.sentences;
    let models = models(&config, sentences.clone())?;
    let roster = Arc::new(Roster::default());
    let registry = Arc::new(Registry::with_built_ins().map_err(|error| anyhow!("a built-in tool is wrong: {error}"))?);
    let client = Arc::new(Client::new()?);
    let installed = Arc::new(Installed::load(store.clone(), registry.clone(), client)?);
    let stop = CancellationToken::new();
    let compute =
        Compute::start("tts", SYNTHESIS_THREADS, SYNTHESIS_WAITING_MAX).context("starting the synthesis threads")?;
    let sounds = Sounds::new(compute.clone())?;
    let known = (config.language.as_str(), config.apps_location);
    let in_flight = InFlight::default();
    let apps =
        Host::new(store.clone(), in_flight.clone(), roster.clone(), installed.clone(), sounds, known, stop.clone());
    apps.set_url(config.apps_url.clone().unwrap_or_else(|| apps_url(web)));
    let questions = Arc::new(Questions::new(roster.clone(), registry.clone()));
    let users = Users::new(
        store.clone(),
        roster.clone(),
        questions.clone(),
        (user_config(&config), config.limits.users_max),
        Summariser { models: models.clone(), language: config.language.clone() },
    );
    let personalities = Arc::new(Personalities::new(&config.personality));
    let skill_folders = std::iter::once(config.data_dir.join("skills")).chain(config.skills.iter().cloned());
    let skills = Arc::new(Folders::new(skill_folders.collect()));
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
        consent: questions.clone(),
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
    let preferences = Preferences::load(store.clone()).context("reading what users have chosen between tools")?;
    let ledger = Arc::new(StoredLedger(store.clone()));
    let journal = StoredIntents::new(store.clone());
    journal.tell_of_open(ledger.as_ref()).context("reading the intents of the last run")?;
    let books = Books {
        journal: Some(Arc::new(journal)),
        ledger: Some(ledger),
        switches: Some(switches.clone()),
        limits: config.tool_limits,
        in_flight,
    };
    let executor = Executor::with_books(registry.clone(), ports, books);
    let mcp = Mcp::start(mcp, &executor, roster.clone(), web.port());
    let public_key = key.public();
    let preparer = Preparer::start(executor.clone(), models.clone(), roster.clone(), config.language.clone())
        .context("starting the thread that prepares")?;
    let gate = Arc::new(Gate {
        stop: stop.clone(),
        open: TaskTracker::new(),
        executor,
        mcp,
        compute,
        key,
        store,
        pairings: Pairings::default(),
        roster,
        users: users.clone(),
        registry,
        installed,
        apps: apps.clone(),
        switches,
        preferences,
        memory,
        remembered,
        skills: skills.clone(),
        erasing: tokio::sync::Mutex::default(),
        questions,
        models,
        asr: engines.asr,
        silero: engines.silero,
        judge: engines.judge,
        voice: engines.voice,
        preparer,
        turns: Turns::default(),
        sessions: AtomicU32::new(1),
        joining: Semaphore::new((config.limits.connections_max / 2).max(1)),
        started_us,
        web,
        quic,
        health: Health::default(),
        turned_away: Sparse::default(),
        losses: Losses::default(),
        config,
    });
    users.wake_all();
    apps.restore().await;
    let mut tasks = vec![
        spawn("apps", apps.run()),
        spawn("tool-changes", tools_changed(gate.clone(), stop.clone())),
        spawn("erasing", erasing::keep_trying(gate.clone(), stop.clone())),
        spawn("skills", skills.watch(stop.clone())),
        spawn("control", control::server::serve(control_socket, gate.clone(), stop.clone())),
        spawn("listen", bound.serve(gate.clone(), stop.clone())),
    ];
    tasks.extend(sentences.map(|sentences| {
        let registry = gate.registry.clone();
        spawn("sentences", sentences.keep_up(registry, stop.clone()))
    }));
    Ok(Running { web, quic, public_key, gate, stop, tasks })
}

impl Running {
    /// Everything of this gateway, for tests.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Tells the devices, waits for their goodbyes, stops, and closes the store: a gateway may start on the same
    /// folder afterwards, in this process too.
    pub async fn stop(self) {
        self.stop.cancel();
        for (id, _) in self.gate.roster.all() {
            self.gate.roster.dismiss(&id, GoodbyeReason::ShuttingDown, "the gateway is stopping");
        }
        self.gate.open.close();
        let wait = Duration::from_millis(GOODBYE_MS_MAX);
        if tokio::time::timeout(wait, self.gate.open.wait()).await.is_err() {
            tracing::warn!("some devices did not take their goodbye");
        }
        self.gate.mcp.stop().await;
        for task in self.tasks {
            drop(task.await);
        }
        if let Err(error) = self.gate.store.close().await {
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
async fn tools_changed(gate: Arc<Gate>, stop: CancellationToken) {
    let (mut changes, mut switched) = (gate.registry.changes(), gate.switches.changes());
    gate.preparer.prepare_all(false);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            Ok(()) = changes.changed() => gate.preparer.prepare_all(gate.config.apply_tools_now),
            Ok(()) = switched.changed() => gate.preparer.prepare_all(false),
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

struct Engines {
    asr: Arc<Scheduler>,
    silero: Arc<silero::Model>,
    judge: Option<PauseJudge>,
    voice: Arc<Voice>,
    sentences: Option<Arc<BySentences>>,
}

impl Engines {
    /// Loads all models beside the runtime, at the same time.
    async fn load(config: &Checked) -> Result<Self> {
        let missing = "run `lorgnette models fetch`, or set `models_dir`";
        let (whisper, workers) = (config.asr_model.clone(), config.asr_workers);
        let (language, second) = (config.asr_language.clone(), config.asr_second_model.clone());
        let models_dir = config.models_dir.clone();
        let asr = on_own_thread(move || -> Result<Scheduler> {
            let load = |path: &Path| {
                let config = asr::Config { language: language.clone(), ..asr::Config::default() };
                let own = "name another file in the section [hearing], or none and run `lorgnette models fetch`";
                let remedy = if path.starts_with(&models_dir) { missing } else { own };
                asr::Engine::load(path, config).with_context(|| format!("loading {}; {remedy}", path.display()))
            };
            let (usual, larger) = (load(&whisper)?, second.as_deref().map(load).transpose()?);
            let pool = SchedulerConfig { workers, queue_max: workers * RECOGNITION_WAITING_PER_WORKER };
            Ok(Scheduler::start_with(pool, move || asr::Pair::new(&usual, larger.as_ref()))?)
        });
        let path = config.models_dir.join(silero::FILE_NAME);
        let vad = on_own_thread(move || {
            silero::Model::load(&path).with_context(|| format!("loading {}; {missing}", path.display()))
        });
        let path = config.models_dir.join("hibari");
        let voice =
            on_own_thread(move || Voice::load(&path).with_context(|| format!("loading {}; {missing}", path.display())));
        let path = config.models_dir.join(end_of_turn::FILE_NAME);
        let wanted = config.end_of_turn;
        let judge = on_own_thread(move || -> Result<Option<PauseJudge>> {
            if !wanted {
                return Ok(None);
            }
            let model = match end_of_turn::Model::load(&path) {
                Ok(model) => model,
                Err(error) => {
                    // Turns end by silence and text then, as they do without it.
                    tracing::warn!(%error, "the end-of-turn score stays off");
                    return Ok(None);
                }
            };
            let compute = Compute::start("turn", 1, PAUSES_WAITING_MAX).context("starting the end-of-turn thread")?;
            Ok(Some(PauseJudge { model, compute }))
        });
        let sentences = match config.router_by {
            RouterBy::Sentences { wait_ms } => {
                let wait = Duration::from_millis(wait_ms.into());
                Some(Arc::new(BySentences::load(&config.models_dir, wait).await?))
            }
            RouterBy::Words | RouterBy::Model(_) => None,
        };
        Ok(Self {
            asr: Arc::new(asr.await??),
            silero: vad.await??,
            judge: judge.await??,
            voice: Arc::new(voice.await??),
            sentences,
        })
    }
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
