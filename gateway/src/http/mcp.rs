//! `/mcp`: MCP over HTTP, a path for each class of clients, as in docs/mcp.md.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::any,
};
use gateway_core::vocab::ClientClass;

use super::{
    peer::Peer,
    reply::{Text, to_wrong_key},
};
use crate::mcp::{Mcp, NotAdmitted};

pub(super) fn routes(mcp: Arc<Mcp>) -> Router {
    let of = |class| any(async move |State(mcp), peer, request| answer(&mcp, class, peer, request).await);
    Router::new()
        .route("/mcp", of(ClientClass::Internal))
        .route("/mcp/copilot", of(ClientClass::Copilot))
        .route("/mcp/external", of(ClientClass::External))
        .with_state(mcp)
}

async fn answer(mcp: &Arc<Mcp>, class: ClientClass, peer: Peer, request: Request) -> Response {
    let Some(http) = mcp.http() else {
        return (StatusCode::NOT_FOUND, "MCP over HTTP is off; set `mcp.http = true`\n").into_response();
    };
    let authorization = request.headers().get(header::AUTHORIZATION).map(|value| value.to_str().unwrap_or_default());
    match mcp.admit(class, authorization, peer.is_here()) {
        Ok(who) => {
            peer.slot.admit_requester();
            http.answer(who, request).await.map(Body::new)
        }
        Err(NotAdmitted::NoKey) => refused(NotAdmitted::NoKey),
        Err(why) => to_wrong_key(refused(why)).await,
    }
}

fn refused(why: NotAdmitted) -> Response {
    let unauthorized = |told| (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], told).into_response();
    match why {
        NotAdmitted::NoKey => {
            unauthorized("a key is needed: `Authorization: Bearer KEY`, with the key of an entry in `mcp.keys`\n")
        }
        NotAdmitted::UnknownKey => unauthorized("this key is not known here\n"),
        NotAdmitted::OtherClass => {
            let told: Text =
                (StatusCode::FORBIDDEN, "this key is for another path: /mcp, /mcp/copilot or /mcp/external\n");
            told.into_response()
        }
    }
}
