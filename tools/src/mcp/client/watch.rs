//! Resources with subscribers for their changes.

use std::sync::Arc;

use rmcp::model::{SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams};
use tokio_util::sync::CancellationToken;

use super::{Downstream, News, link::Link, lock};

/// Maximum watched resources of one server.
const WATCHED_MAX: usize = 256;

/// A resource with at least one subscriber.
pub(super) struct Watched {
    count: usize,
    stop: CancellationToken,
}

impl Downstream {
    /// Adds a subscriber. `false`: too many resources are watched.
    pub(crate) async fn watch(&self, uri: &str) -> bool {
        let stop = {
            let mut watched = lock(&self.watched);
            if watched.len() >= WATCHED_MAX && !watched.contains_key(uri) {
                return false;
            }
            let entry =
                watched.entry(uri.to_owned()).or_insert_with(|| Watched { count: 0, stop: CancellationToken::new() });
            entry.count += 1;
            (entry.count == 1).then(|| entry.stop.clone())
        };
        if let (Some(stop), Some(link)) = (stop, self.link()) {
            begin(self, &link, uri, stop).await;
        }
        true
    }

    /// Removes a subscriber.
    pub(crate) async fn unwatch(&self, uri: &str) {
        let last = {
            let mut watched = lock(&self.watched);
            let Some(entry) = watched.get_mut(uri) else {
                return;
            };
            entry.count -= 1;
            let last = entry.count == 0;
            last.then(|| watched.remove(uri)).flatten()
        };
        let Some(last) = last else {
            return;
        };
        last.stop.cancel();
        if let Some(link) = self.link().filter(|link| link.can_subscribe && !link.is_modern()) {
            #[expect(deprecated, reason = "the way before 2026-07-28")]
            drop(link.peer.unsubscribe(UnsubscribeRequestParams::new(uri)).await);
        }
    }
}

/// Subscribes to all watched resources again, after a new connection.
pub(super) async fn again(server: &Arc<Downstream>, link: &Arc<Link>) {
    let watched: Vec<(String, CancellationToken)> =
        lock(&server.watched).iter().map(|(uri, watched)| (uri.clone(), watched.stop.clone())).collect();
    for (uri, stop) in watched {
        begin(server, link, &uri, stop).await;
    }
}

async fn begin(server: &Downstream, link: &Arc<Link>, uri: &str, stop: CancellationToken) {
    if !link.can_subscribe {
        return;
    }
    if !link.is_modern() {
        #[expect(deprecated, reason = "the way before 2026-07-28")]
        let subscribed = link.peer.subscribe(SubscribeRequestParams::new(uri)).await;
        if let Err(error) = subscribed {
            tracing::debug!(server = server.config.name, %error, "a resource cannot be watched");
        }
        return;
    }
    let (link, uri, news, name) = (link.clone(), uri.to_owned(), server.news.clone(), server.config.name.clone());
    server.tracker.spawn(async move {
        let filter = SubscriptionFilter::builder().resource_subscription(uri.clone()).build();
        let Ok(mut subscription) = link.peer.listen(filter).await else {
            return;
        };
        loop {
            tokio::select! {
                next = subscription.next() => match next {
                    Ok(Some(_)) => drop(news.send(News::Updated { server: name.clone(), uri: uri.clone() })),
                    Ok(None) | Err(_) => return,
                },
                () = stop.cancelled() => {
                    drop(subscription.cancel().await);
                    return;
                }
            }
        }
    });
}
