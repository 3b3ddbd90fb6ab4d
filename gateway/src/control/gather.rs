//! Gathers the gateway's status.

use std::collections::BTreeSet;

use super::{
    Answer,
    admin::Admin,
    devices::session,
    mcp,
    status::{Latency, LeftOut, Queue, Recogniser, Status},
};
use crate::{
    clock, device_task::services::Services, discovery::state::State, health, identity::fingerprint,
    speech::wake::WakeTally, telemetry::host_metrics::HostMetrics,
};

/// Turns that count for the latency.
const TURNS_MAX: usize = 100;

pub(super) async fn answer(admin: &Admin) -> Result<Answer, String> {
    Ok(Answer::Status { status: Box::new(status(admin).await) })
}

/// What there is to tell at this moment.
pub(crate) async fn status(admin: &Admin) -> Status {
    let (services, started) = (&admin.services, &admin.started);
    let (limits, data_dir) = (&services.settings.limits, &services.settings.data_dir);
    let problems = admin.health.problems(data_dir, &services.store).await;
    let all = services.roster.all();
    let users: BTreeSet<&str> = all.iter().map(|(_, present)| present.user.as_str()).collect();
    let running_of = |user: &&str| services.apps.states(user).values().filter(|state| state.is_running()).count();
    let apps_running = users.iter().map(running_of).sum();
    let sessions = all.iter().map(|(_, present)| {
        let name = present.status.lock().unwrap_or_else(std::sync::PoisonError::into_inner).name.clone();
        (present.user.clone(), name, session(present))
    });
    let (waiting, running) = services.engines.asr.load();
    let elsewhere = &services.engines.elsewhere;
    let model = started
        .hearing
        .model
        .file_name()
        .filter(|_| !elsewhere.is_alone())
        .map_or_else(|| "no weights here".to_owned(), |name| name.to_string_lossy().into_owned());
    let audio::asr::Shed { partial, second_pass, overheard, unsure, addressed } = services.engines.asr.shed();
    let left_out = LeftOut { partial, second_pass, overheard, unsure, addressed };
    let wake = Some(services.engines.wake_counts.get());
    let wake = wake.filter(|tally| services.engines.wake.is_some() || *tally != WakeTally::default());
    let lost = services.telemetry.losses.get();
    let host = HostMetrics::read().await;
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        up_s: clock::mono_us().saturating_sub(started.at_us) / 1_000_000,
        web: started.web.to_string(),
        quic: started.quic.map(|address| address.to_string()),
        announced: started.announced.as_ref().map(State::get),
        fingerprint: fingerprint(&services.admission.key.public()),
        problems,
        sessions: sessions.collect(),
        sessions_max: limits.sessions_max,
        waiting: services.admission.pairings.waiting(clock::mono_us()).len(),
        users: services.users.count(),
        users_max: limits.users_max,
        questions: services.approvals.list().len(),
        models: started.models.iter().map(ToString::to_string).collect(),
        elsewhere: elsewhere.usage(&services.engines.voice.meter()),
        recogniser: Recogniser { model, workers: started.hearing.workers, running, waiting, left_out, wake, lost },
        mcp: mcp::servers(&admin.mcp),
        tools: services.registry.specs().len(),
        tools_revision: services.registry.revision(),
        apps: admin.installed.list().len(),
        apps_running,
        store: services.store.used().ok(),
        damaged: services.store.disk().damaged(),
        disk: health::space(data_dir),
        descriptors: health::descriptors().await,
        queues: queues(services),
        watchdog: started.watchdog,
        data_dir: data_dir.display().to_string(),
        latency: latency(services),
        sound: services.telemetry.sound.get(),
        cores: host.cores,
        load: host.load,
        memory: host.memory,
        temperature_c: host.temperature_c,
    }
}

fn latency(services: &Services) -> Option<Latency> {
    let turns = services.telemetry.turns.last(TURNS_MAX);
    Latency::of(turns.iter().filter_map(|turn| turn.first_frame_us?.checked_sub(turn.last_voice_us?)).collect())
}

fn queues(services: &Services) -> Vec<Queue> {
    let engines = &services.engines;
    let judge = engines.judge.as_ref().map(|judge| judge.compute.load());
    let loads = [
        ("synthesis", Some(engines.compute.load())),
        ("speech elsewhere", engines.elsewhere.voice.as_ref().map(|voice| voice.load())),
        ("files", Some(engines.files.load())),
        ("end of turn", judge),
        ("wake words", engines.wake.as_ref().map(|wake| wake.compute.load())),
        ("preparation", Some(services.assistant.preparer.load())),
        ("long reads", Some(services.store.reads())),
        ("writes", Some(services.store.load())),
    ];
    let queue = |(name, load): (&str, Option<(usize, u64)>)| {
        load.map(|(waiting, refused)| Queue { name: name.to_owned(), waiting, refused })
    };
    loads.into_iter().filter_map(queue).collect()
}
