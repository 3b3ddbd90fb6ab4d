//! What the listeners work with, and what is told of them.

use std::{net::SocketAddr, sync::Arc};

use anyhow::Result;
use axum::http::Uri;

use super::data;
use crate::{
    clock,
    config::{self, Config},
    control::admin::{Admin, Console, Started},
    device_task::services::Services,
    discovery::Announcement,
    doctor,
    http::{About, Endpoints, Metrics, TryLink, TryPage},
    identity::operators::Operators,
    models::settings::Model,
    ports::system::DeferredSystem,
    speech::elsewhere::settings::{Order, Other},
};

/// The page to talk from a browser, with its token; `None`: switched off.
pub(super) fn try_page(config: &Config, services: &Services) -> Result<Option<(TryPage, String)>> {
    if !config.listen.try_page {
        return Ok(None);
    }
    let (link, token) = TryLink::new(clock::mono_us())?;
    let hears = config.hearing.remote.as_ref().map(|remote| {
        let always = remote.order == Order::Instead || services.engines.elsewhere.is_alone();
        (remote.server.base_url.as_str(), always)
    });
    let models = config.models.all().filter_map(|model| match model {
        Model::Provider(provider) => Some(&provider.base_url),
        Model::Offline => None,
    });
    let voice = config.other_voice.as_ref().and_then(Other::server).map(|server| &server.base_url);
    let texts: Vec<&str> = models.chain(voice).map(String::as_str).collect();
    let current = services.settings.current.clone();
    let installed = services.apps.installed.clone();
    let apps = Arc::new(move || installed.list());
    let about = About::new(current, &config.models.chain, &texts, hears, config.listen.console, apps);
    Ok(Some((TryPage { about, link: Arc::new(link) }, token)))
}

/// What only the console works with; `None`: switched off.
pub(super) fn console(config: &Config) -> Option<Arc<Console>> {
    if !config.listen.console {
        return None;
    }
    let examined = config.clone();
    Some(Arc::new(Console {
        operators: Operators::default(),
        examine: Arc::new(move |status| doctor::examine_own(&examined, status)),
        file: config.file.clone(),
        example: config::EXAMPLE,
    }))
}

/// How the gateway was started, at this time, with listeners at these addresses, this certificate and this announcement.
pub(super) fn started(
    config: &Config,
    at_us: u64,
    (web, quic): (SocketAddr, Option<SocketAddr>),
    certificate: Option<String>,
    announcement: Option<&Announcement>,
) -> Started {
    Started {
        at_us,
        web,
        websocket: config.listen.websocket,
        quic,
        certificate,
        announced: announcement.map(Announcement::state),
        models: config.models.chain.clone(),
        hearing: config.hearing.clone(),
        watchdog: std::env::var_os("WATCHDOG_USEC").is_some(),
    }
}

/// What the endpoints work with.
pub(super) fn endpoints(
    config: &Config,
    try_page: Option<TryPage>,
    (admin, system): (&Arc<Admin>, &Arc<DeferredSystem>),
) -> Endpoints {
    let services = &admin.services;
    let apps_host = config.apps.url.as_deref().and_then(|url| url.parse::<Uri>().ok()?.host().map(str::to_owned));
    let own = data::NAMES.map(str::to_owned).into_iter();
    Endpoints {
        services: services.clone(),
        mcp: admin.mcp.clone(),
        health: admin.health.clone(),
        metrics: Metrics {
            system: system.clone(),
            histograms: services.telemetry.turns.histograms().clone(),
            elsewhere: config.listen.metrics_elsewhere,
        },
        websocket: config.listen.websocket,
        try_page,
        admin: admin.clone(),
        names: own.chain(config.mcp.hosts.iter().cloned()).chain(apps_host).collect(),
        apps_elsewhere: config.apps.url.is_some(),
    }
}
