//! The threads that run until the gateway stops, whose end the supervisor is to notice.

use std::sync::Arc;

use crate::{
    device_task::services::Services, runtime::essential::EssentialTasks, telemetry::log::Logs, workspace::Workspaces,
};

/// Watches the threads that every gateway has. That of the tool router is watched where its task is started.
pub(super) fn watch(essential: &EssentialTasks, services: &Arc<Services>, logs: &Logs, workspaces: Arc<Workspaces>) {
    let watch = |name, is_running: fn(&Services) -> bool| {
        let services = services.clone();
        essential.watch(name, move || is_running(&services));
    };
    watch("store", |services| services.store.is_running());
    let logs = logs.clone();
    essential.watch("log", move || logs.is_running());
    watch("recognition", |services| services.engines.asr.is_running());
    watch("synthesis", |services| services.engines.compute.is_running());
    watch("speech elsewhere", |services| services.engines.elsewhere.voice.as_ref().is_none_or(|it| it.is_running()));
    watch("files", |services| services.engines.files.is_running());
    watch("end of turn", |services| services.engines.judge.as_ref().is_none_or(|judge| judge.compute.is_running()));
    watch("wake words", |services| services.engines.wake.as_ref().is_none_or(|wake| wake.compute.is_running()));
    watch("preparation", |services| services.assistant.preparer.is_running());
    watch("photos", |services| services.gallery.is_running());
    watch("firmware", |services| services.firmware.is_running());
    essential.watch("workspaces", move || workspaces.is_running());
}
