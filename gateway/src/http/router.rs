//! All paths of the port. Each endpoint is a file in this folder, whose `routes` takes what it works with; it checks
//! the caller itself.

use axum::Router;

use super::{Doors, app_requests, app_socket, glasses, health, mcp, reply::NOTHING_HERE, try_page};

/// The router of all requests.
pub(super) fn router(doors: &Doors) -> Router {
    let Doors { services, mcp, health, websocket, try_page } = doors;
    let admission = &services.admission;
    let mut router = Router::new()
        .merge(health::routes(health.clone(), services.settings.data_dir.clone(), services.store.clone()))
        .merge(try_page::routes(try_page.clone(), admission.pairings.clone(), services.store.clone()))
        .merge(mcp::routes(mcp.clone()))
        .merge(app_requests::routes(&services.apps))
        .merge(app_socket::routes(services.apps.clone(), admission.open.clone()));
    if *websocket {
        router = router.merge(glasses::routes(services.clone()));
    }
    router.fallback(async || NOTHING_HERE)
}
