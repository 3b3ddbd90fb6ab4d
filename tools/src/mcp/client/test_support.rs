//! Servers for tests: one of the configuration, and its connection to what serves it in memory.

use std::sync::Arc;

use serde_json::json;
use tokio::{io::DuplexStream, sync::broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Downstream,
    link::{self, Running},
};
use crate::{mcp::config, secret::Secrets};

/// A server of the configuration; nothing connects to it.
pub(super) fn downstream() -> Arc<Downstream> {
    let file = json!({ "mcpServers": { "notes": { "url": "http://127.0.0.1:9" } } }).to_string();
    let config = config::check_file(&file, &|_| None).unwrap().remove(0);
    let (tracker, changes) = (TaskTracker::new(), broadcast::channel(8).0);
    Arc::new(Downstream::new(config, tracker, CancellationToken::new(), changes, Secrets::default()))
}

/// Connects it with whatever serves the other end.
pub(super) async fn connect(server: &Arc<Downstream>, near: DuplexStream, is_modern: bool) -> Running {
    let (running, link) = link::meet(server, near, !is_modern, CancellationToken::new()).await.unwrap();
    assert_eq!(link.is_modern(), is_modern);
    server.now.send_modify(|now| now.link = Some(link));
    running
}
