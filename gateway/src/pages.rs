//! What the TCP port serves besides the WebSocket.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{HeaderMap, Request, Response, StatusCode, body::Incoming, header};

use crate::{gate::Gate, transport::server::plain};

/// Whether the request comes from no page at all (glasses, tools) or from one of our own pages.
/// A page of another site that its visitor's browser carries here is told by its Origin.
pub fn origin_is_ours(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let (Ok(origin), Some(Ok(host))) = (
        origin.to_str(),
        headers.get(header::HOST).map(|host| host.to_str()),
    ) else {
        return false;
    };
    let of_origin = origin.split_once("://").map_or("", |(_, rest)| rest);
    of_origin == host && host_is_loopback(host)
}

/// Whether a Host header names this machine: a name that some other site resolves to 127.0.0.1
/// does not.
pub fn host_is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

/// Answers a request that is no WebSocket.
pub async fn answer(
    request: Request<Incoming>,
    _peer: SocketAddr,
    _gate: &Gate,
) -> Response<Full<Bytes>> {
    match request.uri().path() {
        "/healthz" => plain(StatusCode::OK, "ok\n"),
        _ => plain(
            StatusCode::NOT_FOUND,
            "nothing here; glasses connect to /glasses\n",
        ),
    }
}
