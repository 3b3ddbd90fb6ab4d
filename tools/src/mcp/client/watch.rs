//! Resources whose changes somebody watches.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rmcp::{
    ServiceError,
    model::{SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams},
};
use tokio::{
    sync::watch::{Receiver, Sender, channel},
    time::timeout,
};

use super::{
    Downstream, ServerChange,
    link::{Link, REQUEST_MS_MAX},
    renewal::Renewal,
};
use crate::mutex::lock;

/// Maximum watched resources of one server, including those that it is just being asked to let go.
const WATCHED_MAX: usize = 256;

/// The watched resources of a server, by its own URIs. The receivers of a channel are those that watch the resource, its
/// value is whether the server has been asked to subscribe.
pub(super) type Watched = BTreeMap<String, Sender<bool>>;

/// A resource is watched for as long as this exists.
#[derive(Clone)]
pub(crate) struct Watch(Receiver<bool>);

impl Watch {
    /// Waits until the server has been asked to subscribe, and has answered if it does so in time; not for a server that
    /// is not connected.
    pub(crate) async fn asked(mut self) {
        // An error: the gateway stops.
        drop(self.0.wait_for(|asked| *asked).await);
    }
}

impl Downstream {
    /// Watches a resource. `None`: too many are watched.
    pub(crate) fn watch(self: &Arc<Self>, uri: &str) -> Option<Watch> {
        let mut watched = lock(&self.watched);
        if let Some(watchers) = watched.get(uri) {
            return Some(Watch(watchers.subscribe()));
        }
        if watched.len() >= WATCHED_MAX {
            return None;
        }
        let (watchers, watch) = channel(false);
        watched.insert(uri.to_owned(), watchers.clone());
        self.tracker.spawn(follow(self.clone(), uri.to_owned(), watchers));
        Some(Watch(watch))
    }
}

/// Keeps a resource subscribed over all connections of its server, until nobody watches it or the gateway stops.
async fn follow(server: Arc<Downstream>, uri: String, watchers: Sender<bool>) {
    let mut now = server.now.subscribe();
    loop {
        let link = now.borrow_and_update().link.clone();
        let is_other = |other: Option<&Arc<Link>>| other.map(Arc::as_ptr) != link.as_ref().map(Arc::as_ptr);
        let replaced = async { drop(now.wait_for(|now| is_other(now.link.as_ref())).await) };
        let stops = tokio::select! {
            () = hold(&server, link.as_deref(), &uri, &watchers) => false,
            () = replaced => false,
            () = server.stop.cancelled() => true,
        };
        // While this lock is held nobody begins to watch.
        let mut watched = lock(&server.watched);
        if stops || watchers.receiver_count() == 0 {
            watched.remove(&uri);
            return;
        }
    }
}

/// Keeps a resource subscribed over one connection, until nobody watches it.
async fn hold(server: &Downstream, link: Option<&Link>, uri: &str, watchers: &Sender<bool>) {
    let Some(link) = link.filter(|link| link.can_subscribe) else {
        watchers.send_replace(true);
        return watchers.closed().await;
    };
    if link.is_modern() {
        return listen(server, link, uri, watchers).await;
    }
    #[expect(deprecated, reason = "the way before 2026-07-28")]
    let subscribing = link.peer.subscribe(SubscribeRequestParams::new(uri));
    in_time(server, subscribing).await;
    watchers.send_replace(true);
    watchers.closed().await;
    // Who watches from now on waits for the next subscription.
    watchers.send_replace(false);
    #[expect(deprecated, reason = "the way before 2026-07-28")]
    let unsubscribing = link.peer.unsubscribe(UnsubscribeRequestParams::new(uri));
    in_time(server, unsubscribing).await;
}

/// As [`hold`], since 2026-07-28. The server may end a subscription at any time; it is renewed.
async fn listen(server: &Downstream, link: &Link, uri: &str, watchers: &Sender<bool>) {
    let updated = || {
        let change = ServerChange::Updated { server: server.config.name.clone(), uri: uri.to_owned() };
        drop(server.changes.send(change));
    };
    let mut renewal = Renewal::new();
    let mut is_renewed = false;
    loop {
        let filter = SubscriptionFilter::builder().resource_subscription(uri).build();
        let subscription = in_time(server, link.peer.listen(filter)).await;
        watchers.send_replace(true);
        if let Some(mut subscription) = subscription {
            renewal.opened();
            if is_renewed {
                // A change may have been missed.
                updated();
            }
            let ended = async {
                while let Ok(Some(_)) = subscription.next().await {
                    updated();
                }
            };
            tokio::select! {
                () = ended => {}
                () = watchers.closed() => {
                    watchers.send_replace(false);
                    in_time(server, subscription.cancel()).await;
                    return;
                }
            }
        }
        tokio::select! {
            () = renewal.wait() => {}
            () = watchers.closed() => return,
        }
        is_renewed = true;
    }
}

/// The result of a request; `None`: it failed, or the server did not answer in time.
async fn in_time<T>(server: &Downstream, request: impl Future<Output = Result<T, ServiceError>>) -> Option<T> {
    let mut why = match timeout(Duration::from_millis(REQUEST_MS_MAX), request).await {
        Ok(Ok(result)) => return Some(result),
        Ok(Err(error)) => error.to_string(),
        Err(elapsed) => elapsed.to_string(),
    };
    server.secrets.redact(&mut why);
    tracing::debug!(server = server.config.name, why, "a subscription to a resource, or its end, failed");
    None
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
