//! From a request to a WebSocket, by hyper's upgrade: `transport` and `apps` use the raw connection.

use std::{pin::pin, time::Duration};

use axum::{
    extract::Request,
    http::{
        Method, StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
    response::{IntoResponse as _, Response},
};
use hyper::upgrade::Upgraded;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::{HANDSHAKE_MS_MAX, origin::origin_is_ours, peer::Peer, reply::Text};
use crate::runtime::spawn;

/// A request that may become a WebSocket: its headers and its origin were checked.
pub(super) struct Upgrade {
    /// Confirms to the peer that its request was understood.
    accept_key: String,
}

impl Upgrade {
    /// The upgrade that a request asks for, or why there will be no WebSocket.
    pub(super) fn of(request: &Request) -> Result<Self, Text> {
        let upgrades = has(request, header::UPGRADE, "websocket") && has(request, header::CONNECTION, "upgrade");
        if request.method() != Method::GET || !upgrades {
            return Err((
                StatusCode::UPGRADE_REQUIRED,
                "this path speaks WebSocket: /glasses as in PROTOCOL.md, /app-ws as in docs/apps-host.md\n",
            ));
        }
        if header_of(request, header::SEC_WEBSOCKET_VERSION) != Some("13") {
            return Err((StatusCode::BAD_REQUEST, "WebSocket version 13 is needed\n"));
        }
        // A page of another site must not reach the gateway through its visitor's browser.
        if !origin_is_ours(request.headers()) {
            return Err((StatusCode::FORBIDDEN, "this Origin may not connect\n"));
        }
        match header_of(request, header::SEC_WEBSOCKET_KEY) {
            Some(key) => Ok(Self { accept_key: derive_accept_key(key.as_bytes()) }),
            None => Err((StatusCode::BAD_REQUEST, "Sec-WebSocket-Key is missing\n")),
        }
    }

    /// Switches protocols: `serve` gets the connection, in a task called `name`, once the answer has been sent.
    pub(super) fn accept<F>(
        self,
        name: &'static str,
        mut request: Request,
        peer: Peer,
        protocol: Option<&'static str>,
        serve: impl FnOnce(Upgraded, Peer) -> F + Send + 'static,
    ) -> Response
    where
        F: Future<Output = ()> + Send,
    {
        let upgraded = hyper::upgrade::on(&mut request);
        spawn(name, async move {
            let (slot, address) = (peer.slot.clone(), peer.address);
            let serving = pin!(async {
                match timeout(Duration::from_millis(HANDSHAKE_MS_MAX), upgraded).await {
                    Ok(Ok(upgraded)) => serve(upgraded, peer).await,
                    _ => tracing::debug!(peer = %address, "an upgrade to WebSocket came to nothing"),
                }
            });
            if slot.keep(serving).await.is_none() {
                tracing::debug!(peer = %address, "a WebSocket gave way to a newer connection");
            }
        });
        let mut response = StatusCode::SWITCHING_PROTOCOLS.into_response();
        let headers = response.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        if let Some(protocol) = protocol {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
        }
        if let Ok(key) = HeaderValue::from_str(&self.accept_key) {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, key);
        }
        response
    }
}

fn header_of(request: &Request, name: HeaderName) -> Option<&str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

/// Whether a header with a list of tokens contains this one.
pub(super) fn has(request: &Request, name: HeaderName, token: &str) -> bool {
    header_of(request, name).is_some_and(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(token)))
}
