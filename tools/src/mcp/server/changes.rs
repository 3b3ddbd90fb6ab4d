//! Change notifications for clients.

use std::{collections::BTreeMap, sync::Mutex};

use rmcp::{
    RoleServer,
    model::ResourceUpdatedNotificationParam,
    service::{Peer, SubscriptionContext},
};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::Hub;
use crate::{
    mcp::client::{ServerChange, Watch},
    mutex::lock,
};

/// Resources that a session watches, by server and the server's own URI.
pub(super) type Watched = Mutex<BTreeMap<(String, String), Watch>>;

/// What a client is notified of: a list that changed, or a resource of a server.
enum Change {
    Tools,
    Prompts,
    Resources,
    Updated(String, String),
}

/// All changes from now on.
pub(super) struct Changes {
    tools: tokio::sync::watch::Receiver<u64>,
    servers: tokio::sync::broadcast::Receiver<ServerChange>,
}

impl Changes {
    pub(super) fn of(hub: &Hub) -> Self {
        Self { tools: hub.executor.registry().changes(), servers: hub.pool.changes() }
    }

    async fn next(&mut self) -> Option<Change> {
        tokio::select! {
            changed = self.tools.changed() => changed.ok().map(|()| Change::Tools),
            change = self.servers.recv() => match change {
                Ok(ServerChange::Prompts) => Some(Change::Prompts),
                // A receiver that lagged behind assumes changed resources, since these are the frequent changes.
                Ok(ServerChange::Resources) | Err(RecvError::Lagged(_)) => Some(Change::Resources),
                Ok(ServerChange::Updated { server, uri }) => Some(Change::Updated(server, uri)),
                Err(RecvError::Closed) => None,
            },
        }
    }
}

/// Sends these changes to a session of a revision before 2026-07-28, until it ends.
pub(super) async fn tell_session(
    hub: &Hub,
    mut changes: Changes,
    peer: Peer<RoleServer>,
    watched: &Watched,
    ended: CancellationToken,
) {
    let told = async {
        while let Some(change) = changes.next().await {
            let sent = match change {
                Change::Tools => peer.notify_tool_list_changed().await,
                Change::Prompts => peer.notify_prompt_list_changed().await,
                Change::Resources => peer.notify_resource_list_changed().await,
                Change::Updated(server, uri) => {
                    let outer = hub.pool.prefixes().uri_out(&server, &uri);
                    if !lock(watched).contains_key(&(server, uri)) {
                        continue;
                    }
                    peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(outer)).await
                }
            };
            if sent.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = told => {}
        () = ended.cancelled() => {}
        () = hub.stop.cancelled() => {}
    }
}

/// Sends a subscription of 2026-07-28 the requested changes, until it is cancelled.
pub(super) async fn tell_subscription(hub: &Hub, context: &SubscriptionContext) {
    let mut changes = Changes::of(hub);
    let (accepted, sink) = (context.accepted(), context.sink());
    let watch = |outer: &String| {
        let (server, uri) = hub.pool.prefixes().uri_in(outer)?;
        Some(((server.to_owned(), uri.to_owned()), hub.pool.server(server)?.watch(uri)?))
    };
    // Without those of which a server has too many.
    let uris = accepted.resource_subscriptions.iter().flatten();
    let watched: BTreeMap<(String, String), Watch> = uris.filter_map(watch).collect();
    let wants = |flag: Option<bool>| flag == Some(true);
    let told = async {
        while let Some(change) = changes.next().await {
            let sent = match change {
                Change::Tools if wants(accepted.tools_list_changed) => sink.notify_tool_list_changed().await,
                Change::Prompts if wants(accepted.prompts_list_changed) => sink.notify_prompt_list_changed().await,
                Change::Resources if wants(accepted.resources_list_changed) => {
                    sink.notify_resource_list_changed().await
                }
                Change::Updated(server, uri) => {
                    let outer = hub.pool.prefixes().uri_out(&server, &uri);
                    if !watched.contains_key(&(server, uri)) {
                        continue;
                    }
                    sink.notify_resource_updated(outer).await
                }
                _ => continue,
            };
            if sent.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = told => {}
        () = context.cancelled() => {}
        () = hub.stop.cancelled() => {}
    }
}
