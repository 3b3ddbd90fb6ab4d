//! `/glasses`: the WebSocket of glasses, as in PROTOCOL.md.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    response::Response,
    routing::any,
};
use device_protocol::{PATH, SUBPROTOCOL, SUBPROTOCOL_JSON};

use super::{
    peer::Peer,
    reply::Text,
    upgrade::{self, Upgrade},
};
use crate::{
    clock,
    device_task::{self, services::Services},
    transport::{Link, Receiver, slots::ConnectionSlot, websocket},
};

pub(super) fn routes(services: Arc<Services>) -> Router {
    Router::new().route(PATH, any(answer)).with_state(services)
}

async fn answer(State(services): State<Arc<Services>>, peer: Peer, request: Request) -> Result<Response, Text> {
    link_of(peer, request, async move |link, slot| device_task::serve(&services, link, &slot).await)
}

/// Makes a link of a request; `serve` gets it once the answer has been sent.
pub(super) fn link_of<F>(
    peer: Peer,
    request: Request,
    serve: impl FnOnce(Link, Arc<ConnectionSlot>) -> F + Send + 'static,
) -> Result<Response, Text>
where
    F: Future<Output = ()> + Send,
{
    let upgrade = Upgrade::of(&request)?;
    let (form, protocol) = if upgrade::has(&request, header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL) {
        (websocket::Form::Binary, SUBPROTOCOL)
    } else if upgrade::has(&request, header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL_JSON) {
        (websocket::Form::Json, SUBPROTOCOL_JSON)
    } else {
        return Err((StatusCode::BAD_REQUEST, "ask for the sub-protocol lorgnette.v1 or lorgnette.v1+json\n"));
    };
    Ok(upgrade.accept("websocket", request, peer, Some(protocol), async move |upgraded, peer: Peer| {
        let (up, down) = websocket::open(upgraded, form).await;
        let link = Link {
            opened_us: clock::mono_us(),
            peer: peer.address,
            bindings: peer.bindings,
            transport: peer.transport,
            up: Receiver::WebSocket(up),
            down,
            failures: None,
            answered: None,
        };
        serve(link, peer.slot).await;
    }))
}
