//! `/app-ws`: the WebSocket of mini-apps, as in docs/apps-host.md.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::any,
};
use tokio_util::task::TaskTracker;

use super::{peer::Peer, reply::Text, upgrade::Upgrade};
use crate::apps::{self, APP_SOCKET_PATH, admission::Headers, host::Host};

#[derive(Clone)]
struct Sockets {
    apps: Arc<Host>,
    /// Stopping the gateway waits for these.
    open: TaskTracker,
}

pub(super) fn routes(apps: Arc<Host>, open: TaskTracker) -> Router {
    let answer = any(answer);
    Router::new()
        .route(APP_SOCKET_PATH, answer.clone())
        .route(apps::PATH_OLD, answer)
        .with_state(Sockets { apps, open })
}

async fn answer(State(sockets): State<Sockets>, peer: Peer, request: Request) -> Result<Response, Text> {
    let upgrade = Upgrade::of(&request)?;
    let headers = Headers::of(request.headers(), request.uri().path());
    Ok(upgrade.accept("app", request, peer, None, async move |upgraded, peer| {
        // Apps are told to reconnect when the gateway stops.
        let _open = sockets.open.token();
        apps::admission::serve(sockets.apps, upgraded, headers, &peer.slot).await;
    }))
}
