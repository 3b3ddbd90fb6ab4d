//! All paths of the port. A door is a file beside this one, whose `routes` take what it works with; it checks by itself who
//! asks.

use axum::Router;

use super::{Doors, app_requests, app_socket, glasses, health, mcp, reply::NOTHING_HERE, try_page};

/// What answers every request.
pub(super) fn router(doors: &Doors) -> Router {
    let Doors { services, mcp, health } = doors;
    let (config, admission) = (&services.config, &services.admission);
    let mut router = Router::new()
        .merge(health::routes(health.clone(), config.clone(), admission.store.clone()))
        .merge(try_page::routes(config.clone(), admission.pairings.clone()))
        .merge(mcp::routes(mcp.clone()))
        .merge(app_requests::routes(&services.apps))
        .merge(app_socket::routes(services.apps.clone(), admission.open.clone()));
    if config.websocket {
        router = router.merge(glasses::routes(services.clone()));
    }
    router.fallback(async || NOTHING_HERE)
}
