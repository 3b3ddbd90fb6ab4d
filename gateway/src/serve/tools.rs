//! Execution of tools, and the stored data of users that tools need.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use tokio_util::sync::CancellationToken;
use tools::{
    executor::{CallRecords, Executor},
    memory::Memory,
    ports::{Ports, Style},
    source::Source,
};

use super::users::UserServices;
use crate::{
    config::Config,
    device_task::restart::StoredSessions,
    identity::keys::random,
    mcp::Prepared,
    photos::Gallery,
    ports::{
        context::{ContextBuilder, Personalities},
        journal::{Left, StoredJournal},
        memory::{StoredConversations, StoredTexts},
        photos::StoredPhotos,
        preferences::Preferences,
        records::{StoredCatalogue, StoredLedger, StoredSwitches},
        routines::StoredRoutines,
        runs::StoredRuns,
        stores::{ConnectedDevices, StoredNotes, SystemClock, UserSchedule},
    },
    skills::SkillStore,
    store::Store,
};

/// Handles to these services.
pub(super) struct ToolServices {
    /// Runs tools.
    pub(super) executor: Executor,
    /// What users have switched off.
    pub(super) switches: Arc<StoredSwitches>,
    /// What users have chosen between tools.
    pub(super) preferences: Arc<Preferences>,
    /// What tools store about users.
    pub(super) memory: Memory,
    /// Programs that users have kept.
    pub(super) routines: Arc<StoredRoutines>,
    /// Builds the context about wearers for models.
    pub(super) context: Arc<ContextBuilder>,
    pub(super) skills: Arc<SkillStore>,
    /// Photos of users.
    pub(super) gallery: Arc<Gallery>,
    /// What the process before this one has left of sessions.
    pub(super) stored_sessions: Arc<StoredSessions>,
}

impl ToolServices {
    /// Initial state; tools of apps and servers are offered as they were last known.
    pub(super) fn new(
        config: &Config,
        store: &Store,
        of_users: &UserServices,
        mcp: &Prepared,
        stop: &CancellationToken,
    ) -> Result<Self> {
        let skills = of_users.skills.clone();
        let gallery = Gallery::start(config.data_dir.clone()).context("starting the thread for photos")?;
        let gallery = Arc::new(gallery);
        let (memory, context) = memory(config, store, of_users, (&skills, &gallery));
        offer_known(store, of_users, mcp)?;
        let routines = routines(config, store, of_users)?;
        let memory = Memory { programs: routines.clone(), ..memory };
        let switches = StoredSwitches::load(store.clone(), of_users.registry.clone());
        let switches = Arc::new(switches.context("reading what users have switched off")?);
        let preferences =
            Arc::new(Preferences::load(store.clone()).context("reading what users have chosen between tools")?);
        let (records, left) = records(config, store, of_users, (&switches, &routines.runs), stop)?;
        let stored_sessions = StoredSessions::read(store, config.conversation.resume_ms_max, left);
        let stored_sessions = Arc::new(stored_sessions.context("reading the sessions of the last run")?);
        let executor = Executor::with_records(of_users.registry.clone(), ports(store, of_users, &memory), records);
        Ok(Self { executor, switches, preferences, memory, routines, context, skills, gallery, stored_sessions })
    }
}

/// What tools store about users, and what models are told of it.
fn memory(
    config: &Config,
    store: &Store,
    of_users: &UserServices,
    (skills, gallery): (&Arc<SkillStore>, &Arc<Gallery>),
) -> (Memory, Arc<ContextBuilder>) {
    let personalities = Arc::new(Personalities::new(&config.assistant.personality));
    let facts = Arc::new(StoredTexts::facts(store.clone()));
    let instructions = Arc::new(StoredTexts::instructions(store.clone()));
    let (told, kept) = (facts.clone(), instructions.clone());
    let context = Arc::new(ContextBuilder::new(told, kept, personalities.clone(), skills.clone()));
    let memory = Memory {
        facts,
        instructions,
        conversations: Arc::new(StoredConversations { store: store.clone(), users: of_users.users.clone() }),
        photos: Arc::new(StoredPhotos(gallery.clone())),
        workspace: of_users.workspaces.clone(),
        skills: skills.clone(),
        personality: personalities,
        ..Memory::default()
    };
    (memory, context)
}

/// The programs that users have kept, which are offered from now on, and the runs of programs.
fn routines(config: &Config, store: &Store, of_users: &UserServices) -> Result<Arc<StoredRoutines>> {
    let runs = StoredRuns::load(store.clone(), Arc::new(SystemClock)).context("reading the runs of programs")?;
    let of_programs = (of_users.registry.clone(), of_users.engine.clone());
    let stored = (store.clone(), Arc::new(runs));
    let routines = StoredRoutines::load(stored, Arc::new(SystemClock), of_programs, &config.language);
    Ok(Arc::new(routines.context("reading the routines of users")?))
}

/// What tools need from outside.
fn ports(store: &Store, of_users: &UserServices, memory: &Memory) -> Ports {
    Ports {
        schedule: Arc::new(UserSchedule(of_users.users.clone())),
        notes: Arc::new(StoredNotes(store.clone())),
        device: Arc::new(ConnectedDevices(of_users.roster.clone())),
        consent: of_users.approvals.clone(),
        apps: of_users.apps.clone(),
        memory: memory.clone(),
        clock: Arc::new(SystemClock),
        style: Style::default(),
    }
}

/// Offers the tools that were known when the gateway stopped, and stores changes from now on.
fn offer_known(store: &Store, of_users: &UserServices, mcp: &Prepared) -> Result<()> {
    let restored = of_users
        .registry
        .keep_in(Arc::new(StoredCatalogue(store.clone())), |source, scope| match source {
            // Installed apps and capabilities are already offered, from their own records and files.
            Source::App(_) | Source::Capability(_) => false,
            Source::Mcp(server) => mcp.is_in_scope(server, scope),
            Source::BuiltIn | Source::Device(_) => true,
        })
        .context("reading the catalogue of tools")?;
    tracing::debug!(restored, "tools of apps and servers as they were last known");
    for tool in of_users.registry.configured_but_absent() {
        tracing::warn!(
            tool,
            "`tools.clients` names a tool that is not known yet; `lorgnette tools list --reports` tells whether it still is not"
        );
    }
    Ok(())
}

/// Records of calls, and their limits; and the calls that the last run has left open.
fn records(
    config: &Config,
    store: &Store,
    of_users: &UserServices,
    (switches, runs): (&Arc<StoredSwitches>, &StoredRuns),
    stop: &CancellationToken,
) -> Result<(CallRecords, Left)> {
    let ledger = Arc::new(StoredLedger(store.clone()));
    let journal = StoredJournal::new(store.clone(), stop.clone());
    let left = journal.tell_of_open(ledger.as_ref(), runs).context("reading the intents of the last run")?;
    let records = CallRecords {
        journal: Some(Arc::new(journal)),
        ledger: Some(ledger),
        switches: Some(switches.clone()),
        meter: Some(of_users.histograms.clone()),
        limits: config.limits.tool_calls,
        in_flight: of_users.in_flight.clone(),
        boot: random()?,
    };
    Ok((records, left))
}
