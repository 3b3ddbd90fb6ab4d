//! How the gateway is: what an operator looks at first.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Answer, McpServer, SessionOf, commands::session, mcp};
use crate::{
    clock,
    control::admin::Admin,
    health::{self, Problem},
};

/// How the gateway is.
#[derive(Debug, Serialize, Deserialize)]
pub struct Status {
    /// Its version.
    pub version: String,
    /// Seconds since it was started.
    pub up_s: u64,
    /// Where it listens: WebSocket and pages.
    pub web: String,
    /// QUIC, where that is on.
    pub quic: Option<String>,
    /// What does not work.
    pub problems: Vec<Problem>,
    /// Sessions that are open: the user, what the device is called, and how it is connected.
    pub sessions: Vec<(String, String, SessionOf)>,
    /// Sessions that may be.
    pub sessions_max: usize,
    /// Devices that wait for pairing.
    pub waiting: usize,
    /// Users whose task runs.
    pub users: usize,
    /// Those that may.
    pub users_max: usize,
    /// Questions to wearers that are open.
    pub questions: usize,
    /// Who answers, best first.
    pub models: Vec<String>,
    /// The recogniser.
    pub recogniser: Recogniser,
    /// MCP servers, in the order of their names.
    pub mcp: Vec<McpServer>,
    /// Mini-apps that are installed.
    pub apps: usize,
    /// Those of them that run, for anybody.
    pub apps_running: usize,
    /// Bytes of the store that are used, and those that it may have.
    pub store: Option<(u64, u64)>,
    /// Bytes that are free for the data folder, and those of its whole disk.
    pub disk: Option<(u64, u64)>,
}

/// The recogniser at this moment.
#[derive(Debug, Serialize, Deserialize)]
pub struct Recogniser {
    /// The weights' file.
    pub model: String,
    /// Threads.
    pub workers: usize,
    /// Decodes under way.
    pub running: usize,
    /// Decodes that wait.
    pub waiting: usize,
    /// What was left out since the start, since there was more to decode than the threads can.
    #[serde(default)]
    pub left_out: LeftOut,
    /// Utterances that were never understood: those that were certainly meant for the assistant, whose wearers were told, and
    /// others.
    #[serde(default)]
    pub lost: (u64, u64),
}

/// Decodes that were left out, in the order in which that is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Looks at utterances that went on.
    pub partial: u64,
    /// Second passes.
    pub second_pass: u64,
    /// Speech that was not meant for the assistant.
    pub overheard: u64,
    /// Speech of which that was not known.
    pub unsure: u64,
    /// Speech that was. What was left out at a pause may have been decoded at the end.
    pub addressed: u64,
}

pub(super) async fn of(admin: &Admin) -> Result<Answer, String> {
    let config = &admin.config;
    let problems = admin.health.problems(&config.data_dir, &admin.store).await;
    let all = admin.roster.all();
    let users: BTreeSet<&str> = all.iter().map(|(_, present)| present.user.as_str()).collect();
    let apps_running = users.iter().map(|user| admin.apps.states(user).len()).sum();
    let sessions = all.iter().map(|(_, present)| {
        let name = present.status.lock().unwrap_or_else(std::sync::PoisonError::into_inner).name.clone();
        (present.user.clone(), name, session(present))
    });
    let (waiting, running) = admin.engines.asr.load();
    let model = config.asr_model.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let audio::asr::Shed { partial, second_pass, overheard, unsure, addressed } = admin.engines.asr.shed();
    let left_out = LeftOut { partial, second_pass, overheard, unsure, addressed };
    let lost = admin.losses.get();
    let status = Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        up_s: clock::mono_us().saturating_sub(admin.started_us) / 1_000_000,
        web: admin.web.to_string(),
        quic: admin.quic.map(|address| address.to_string()),
        problems,
        sessions: sessions.collect(),
        sessions_max: config.limits.sessions_max,
        waiting: admin.pairings.waiting(clock::mono_us()).len(),
        users: admin.users.count(),
        users_max: config.limits.users_max,
        questions: admin.approvals.list().len(),
        models: config.ranks.models.iter().map(ToString::to_string).collect(),
        recogniser: Recogniser { model, workers: config.asr_workers, running, waiting, left_out, lost },
        mcp: mcp::servers(admin),
        apps: admin.installed.list().len(),
        apps_running,
        store: admin.store.used().ok(),
        disk: health::space(&config.data_dir),
    };
    Ok(Answer::Status { status: Box::new(status) })
}
