//! What the TCP port serves besides the WebSocket.

mod try_page;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, Request, StatusCode, body::Incoming, header, http::uri::Authority};
use serde_json::json;

pub use try_page::About;

use crate::{
    apps::{self, host::Host},
    health::Health,
    identity::Pairings,
    mcp::Mcp,
    reply::{Reply, plain},
    store::Store,
};

/// What requests are answered from. One per process.
pub struct Pages {
    /// Where everything of this gateway lives.
    pub data_dir: PathBuf,
    /// What the page to talk from a browser tells; absent: there is no such page.
    pub try_page: Option<About>,
    /// Mini-apps that run.
    pub apps: Arc<Host>,
    /// MCP in both directions.
    pub mcp: Arc<Mcp>,
    /// Whether the gateway can keep what it is told.
    pub health: Arc<Health>,
    /// What outlives the process.
    pub store: Store,
    /// Pairings under way.
    pub pairings: Arc<Pairings>,
}

/// Whether the request comes from no page at all (glasses, tools) or from one of our own pages.
/// A page of another site that its visitor's browser carries here is told by its Origin.
pub fn origin_is_ours(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return true;
    };
    let (Ok(origin), Some(host)) = (origin.to_str(), host(headers)) else {
        return false;
    };
    let of_origin = origin.split_once("://").map_or("", |(_, rest)| rest);
    of_origin == host && host_is_loopback(host)
}

/// Whether a Host header names this machine: a name that some other site resolves to 127.0.0.1
/// does not.
pub fn host_is_loopback(host: &str) -> bool {
    // What is in front of an `@` would be a user's name: no Host header has one.
    !host.contains('@')
        && host
            .parse::<Authority>()
            .is_ok_and(|authority| matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]"))
}

fn host(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::HOST)?.to_str().ok()
}

/// Answers a request that is no WebSocket.
pub async fn answer(request: Request<Incoming>, peer: SocketAddr, pages: &Pages) -> Reply {
    let path = request.uri().path();
    if path == "/healthz" {
        return health(pages).await;
    }
    if apps::rest::owns(path) {
        return apps::rest::answer(request, &pages.apps).await;
    }
    if path == "/" && try_page::is_for(peer, pages) {
        return try_page::lead();
    }
    if path == try_page::PATH || path.starts_with(try_page::FOLDER) {
        return try_page::answer(request, peer, pages).await;
    }
    if let Some(class) = crate::mcp::class_of(path) {
        return pages.mcp.answer(class, request, peer).await;
    }
    plain(StatusCode::NOT_FOUND, "nothing here; people open /try on this machine, glasses connect to /glasses\n")
}

/// `ok` in one line, or what does not work: whoever supervises the gateway looks at the status alone.
async fn health(pages: &Pages) -> Reply {
    let problems = pages.health.problems(&pages.data_dir, &pages.store).await;
    if problems.is_empty() {
        return plain(StatusCode::OK, "ok\n");
    }
    let told = json!({"status": "failing", "problems": problems}).to_string() + "\n";
    let mut reply = Reply::new(Full::new(Bytes::from(told)).boxed());
    *reply.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    reply.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for host in ["localhost", "localhost:8460", "127.0.0.1:1", "[::1]", "[::1]:8460"] {
            assert!(host_is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example:8460",
            "127.0.0.1.evil.example",
            "evil@localhost",
            "::1",
            "[::1",
            "localhost:8460:1",
            "192.168.1.2:8460",
        ] {
            assert!(!host_is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_foreign_origin_is_told() {
        let ours = |origin: Option<&'static str>, host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            origin_is_ours(&headers)
        };
        assert!(ours(None, "box.lan:8460"));
        assert!(ours(Some("http://localhost:8460"), "localhost:8460"));
        assert!(!ours(Some("http://localhost:9999"), "localhost:8460"));
        assert!(!ours(Some("http://evil.example"), "evil.example"));
        assert!(!ours(Some("null"), "localhost:8460"));
    }
}
