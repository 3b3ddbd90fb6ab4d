//! What the listeners work with.

use std::sync::Arc;

use anyhow::Result;
use axum::http::Uri;

use super::data;
use crate::{
    config::Config,
    device_task::services::Services,
    health::Health,
    http::{About, Doors, TryLink, TryPage},
    mcp::Mcp,
};

/// The page to talk from a browser, with its token; `None`: switched off.
pub(super) fn try_page(config: &Config, services: &Services) -> Result<Option<(TryPage, String)>> {
    if !config.listen.try_page {
        return Ok(None);
    }
    let (link, token) = TryLink::new()?;
    let about = About::new(services.settings.current.clone(), &config.models.chain);
    Ok(Some((TryPage { about, link: Arc::new(link) }, token)))
}

/// What the endpoints work with.
pub(super) fn doors(
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
