//! Requests of the web port, for `tests/fuzz` only: the server that serves connections, the routes of the page, and what
//! the other routes read of a request before they know who asks.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, extract::Request, response::IntoResponse as _};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    task::JoinHandle,
    time::timeout,
};

use super::{
    accept::serve_http,
    app_requests::{STORAGE, bearer, object, user_and_key},
    mcp,
    origin::{host, host_is_known, host_is_loopback, origin_is_ours},
    peer::Peer,
    try_link::TryLink,
    try_page::{self, About, TryPage, key_of},
    upgrade::Upgrade,
};
use crate::{
    apps::admission::Headers,
    clock,
    device_task::settings::{Changeable, Current},
    identity::Pairings,
    mcp::Mcp,
    runtime::spawn,
    speech::settings::Voice,
    store::Store,
    transport::{Bindings, Transport, slots::ConnectionSlots},
};

/// Bytes of an input that are sent: the pipe must hold all of them.
const SENT_BYTES_MAX: usize = 256 * 1024;
/// How long an answer of MCP is read.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Serves a connection on which these bytes come and then nothing more; the first one: from where.
pub(crate) async fn request(bytes: &[u8], store: &Store) {
    let Some((from, bytes)) = bytes.split_first() else { return };
    let (link, _) = TryLink::new(clock::mono_us()).expect("the system has random numbers");
    let (gateway_name, voice) = (String::new(), Voice { speed: 1.0, volume_percent: 100 });
    let current = Current::new(Changeable { gateway_name, voice, conversation: Default::default() });
    let page = TryPage { about: About::new(current, &[], &[], None, true, Arc::new(Vec::new)), link: Arc::new(link) };
    let router = try_page::routes(Some(page), Arc::new(Pairings::default()), store.clone());
    let (mut client, serving) = begin(from & 1 == 0, bytes, router.merge(Router::new().fallback(others))).await;
    client.shutdown().await.expect("a pipe can be shut");
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.expect("a pipe can be read");
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1."), "{}", answer.escape_ascii());
    drop(serving.await.expect("serving a connection does not panic"));
}

/// Serves a connection from here or from elsewhere on which these bytes come. Returns the client's end.
async fn begin(is_here: bool, bytes: &[u8], router: Router) -> (DuplexStream, JoinHandle<anyhow::Result<()>>) {
    let address = SocketAddr::from((if is_here { [127, 0, 0, 1] } else { [192, 0, 2, 1] }, 1));
    let slot = ConnectionSlots::new(8).take(&address).expect("the first has a slot");
    let peer = Peer { address, bindings: Bindings::NONE, transport: Transport::TEXT, slot };
    let (mut client, server) = duplex(SENT_BYTES_MAX);
    let serving = spawn("fuzz-http", serve_http(server, peer, router));
    client.write_all(&bytes[..bytes.len().min(SENT_BYTES_MAX)]).await.expect("the pipe has room");
    (client, serving)
}

/// What is answered to a request for a path of MCP that closes its connection; as much of it as comes within
/// [`ANSWER_MAX`], since a stream of events may have no end.
pub(crate) async fn to_mcp(is_here: bool, bytes: &[u8], mcp: &Arc<Mcp>) -> Vec<u8> {
    let (mut client, serving) = begin(is_here, bytes, mcp::routes(mcp.clone())).await;
    let mut answer = Vec::new();
    if let Ok(read) = timeout(ANSWER_MAX, client.read_to_end(&mut answer)).await {
        read.expect("a pipe can be read");
    }
    drop(client);
    drop(serving.await.expect("serving a connection does not panic"));
    answer
}

/// A key in a request of the page.
pub(crate) fn key(digits: &[u8]) -> Option<[u8; 32]> {
    key_of(digits)
}

/// What the other routes read of a request.
async fn others(request: Request) -> axum::response::Response {
    let headers = request.headers();
    let named = host(headers).map(|host| (host_is_loopback(host), host_is_known(host, &["box.local".to_owned()])));
    assert!(!matches!(named, Some((true, false))), "this machine is no stranger");
    if origin_is_ours(headers) && headers.contains_key("origin") {
        assert_eq!(named, Some((true, true)));
    }
    let path = request.uri().path().to_owned();
    let _ = (Upgrade::of(&request).is_ok(), Headers::of(headers, &path), bearer(headers).len());
    if let Some((user, key)) = path.strip_prefix(STORAGE).and_then(user_and_key) {
        assert!(!user.is_empty() && user.len() + key.map_or(0, |key| key.len()) <= path.len());
    }
    match object(request.into_body()).await {
        Ok(values) => format!("{}", values.len()).into_response(),
        Err(failure) => failure.into_response(),
    }
}
