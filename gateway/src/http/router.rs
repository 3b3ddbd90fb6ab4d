//! All paths of the port. Each endpoint is a file in this folder, whose `routes` takes what it works with; it checks
//! the caller itself.

use axum::{Router, middleware::from_fn_with_state};

use super::{
    Endpoints,
    access::{self, Names},
    app_requests, app_socket, console, glasses, health, mcp, metrics,
    reply::NOTHING_HERE,
    try_page,
};

/// What a mini-app on another machine is told.
const APPS_FROM_HERE: &str = "mini-apps connect from this machine only; for those on other machines, set `apps.url`\n";

/// The router of all requests.
pub(super) fn router(endpoints: &Endpoints) -> Router {
    let Endpoints { services, admin, mcp, health, metrics: numbers, websocket, try_page, names, apps_elsewhere } =
        endpoints;
    let admission = &services.admission;
    let names = Names::new(names.iter().cloned());
    let mut apps = Router::new()
        .merge(app_requests::routes(&services.apps))
        .merge(app_socket::routes(services.apps.clone(), admission.open.clone()))
        .layer(from_fn_with_state(names.clone(), access::by_name));
    if !apps_elsewhere {
        apps = apps.layer(from_fn_with_state(APPS_FROM_HERE, access::from_here));
    }
    let health =
        health::routes(health.clone(), services.settings.data_dir.clone(), services.store.clone(), names.clone());
    let mut router = Router::new()
        .merge(health)
        .merge(metrics::routes(numbers.clone(), names.clone()))
        .merge(console::routes(admin.clone(), names))
        .merge(try_page::routes(try_page.clone(), admission.pairings.clone(), services.store.clone()))
        .merge(mcp::routes(mcp.clone()))
        .merge(apps);
    if *websocket {
        router = router.merge(glasses::routes(services.clone()));
    }
    router.fallback(async || NOTHING_HERE)
}
