//! Limit of connections: each has a place from its acceptance until it ends, whether it is a request or a session.

use std::{net::SocketAddr, sync::Arc};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::telemetry::Sparse;

/// Additional places reserved for this machine: a local supervisor can connect even if remote peers hold all others.
const LOCAL: usize = 16;

/// A connection's place.
pub(crate) type Place = Arc<OwnedSemaphorePermit>;

/// All places, and log lines about rejected connections.
pub(crate) struct Places {
    open: Arc<Semaphore>,
    local: Arc<Semaphore>,
    crowded: Sparse,
    plain: Sparse,
}

impl Places {
    /// `connections_max`: places for all peers.
    pub(crate) fn new(connections_max: usize) -> Self {
        Self {
            open: Arc::new(Semaphore::new(connections_max)),
            local: Arc::new(Semaphore::new(LOCAL)),
            crowded: Sparse::default(),
            plain: Sparse::default(),
        }
    }

    /// A place for this peer, if one is free.
    pub(crate) fn take(&self, peer: &SocketAddr) -> Option<Place> {
        let place = self.open.clone().try_acquire_owned().ok();
        let place = place.or_else(|| self.local.clone().try_acquire_owned().ok().filter(|_| peer.ip().is_loopback()));
        if place.is_none()
            && let Some(left_out) = self.crowded.line()
        {
            tracing::warn!(%peer, left_out, "refused: as many connections are open as `limits.connections` allows");
        }
        place.map(Arc::new)
    }

    /// Logs that an unencrypted connection was refused.
    pub(crate) fn refused_plain(&self, peer: &SocketAddr) {
        if let Some(left_out) = self.plain.line() {
            tracing::info!(
                %peer,
                left_out,
                "refused a connection without encryption from another machine: use https:// and wss://, or set \
                 `listen.plain = true`"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_leave_places_for_this_machine() {
        let places = Places::new(3);
        let (stranger, own) = ("192.0.2.1:5".parse().unwrap(), "127.0.0.1:5".parse().unwrap());
        let mut taken: Vec<Place> = (0..5).filter_map(|_| places.take(&stranger)).collect();
        assert_eq!(taken.len(), 3);
        let local: Vec<Place> = (0..LOCAL + 5).filter_map(|_| places.take(&own)).collect();
        assert_eq!(local.len(), LOCAL);
        taken.pop();
        assert!(places.take(&stranger).is_some(), "what was given back is free");
    }
}
