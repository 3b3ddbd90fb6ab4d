//! Limits of connections, for TCP and QUIC together. Each connection has a place from its acceptance until it ends,
//! whether it is a request or a session. Until its peer has proven who it is, it also counts as a newcomer: there are
//! fewer places for newcomers, and one source address may have only a share of them.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::telemetry::Sparse;

/// Additional places reserved for this machine: a local supervisor can connect even if remote peers hold all others.
const LOCAL: usize = 16;
/// Newcomers are at most this part of all connections, so that devices in a session keep theirs.
const NEWCOMERS_PART: usize = 2;
/// One source address has at most this part of the newcomers' places: four strangers take them all, one does not.
const SHARE_PART: usize = 4;
/// Requests of a newcomer over one connection: more than the files of the try page. A connection that is kept alive by
/// requests would hold its place for ever.
const REQUESTS_MAX: u32 = 32;

/// How long the answer to a wrong key takes. With a source's share of the newcomers' places this limits how many keys it
/// can try.
pub(crate) const WRONG_KEY_WAIT: Duration = Duration::from_millis(500);

/// A connection's place.
pub(crate) struct Place {
    held: Mutex<Option<OwnedSemaphorePermit>>,
    newcomer: Mutex<Option<Newcomer>>,
    is_admitted: AtomicBool,
    requests: AtomicU32,
}

impl Place {
    /// The peer has proven who it is: it no longer counts as a newcomer.
    pub(crate) fn admit(&self) {
        self.is_admitted.store(true, Ordering::Relaxed);
        drop(self.newcomer.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The connection is gone, whatever goes on without it.
    pub(crate) fn give_back(&self) {
        self.admit();
        drop(self.held.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Counts a request of this connection.
    pub(crate) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the connection has had all requests that a newcomer may send over one.
    pub(crate) fn is_used_up(&self) -> bool {
        !self.is_admitted.load(Ordering::Relaxed) && self.requests.load(Ordering::Relaxed) >= REQUESTS_MAX
    }
}

/// All places, and log lines about rejected connections.
pub(crate) struct Places {
    open: Arc<Semaphore>,
    local: Arc<Semaphore>,
    newcomers: Arc<Newcomers>,
    crowded: Sparse,
    plain: Sparse,
}

impl Places {
    /// `connections_max`: places for all peers.
    pub(crate) fn new(connections_max: usize) -> Self {
        let newcomers_max = (connections_max / NEWCOMERS_PART).max(1);
        let newcomers =
            Newcomers { max: newcomers_max, share: (newcomers_max / SHARE_PART).max(1), of_sources: Mutex::default() };
        Self {
            open: Arc::new(Semaphore::new(connections_max)),
            local: Arc::new(Semaphore::new(LOCAL)),
            newcomers: Arc::new(newcomers),
            crowded: Sparse::default(),
            plain: Sparse::default(),
        }
    }

    /// A newcomer's place for this peer, if one is free.
    pub(crate) fn take(&self, peer: &SocketAddr) -> Option<Arc<Place>> {
        let place = self.newcomers.enter(peer.ip()).and_then(|newcomer| {
            let held = self.open.clone().try_acquire_owned().ok()?;
            Some((held, Some(newcomer)))
        });
        let place = place.or_else(|| {
            let held = self.local.clone().try_acquire_owned().ok().filter(|_| peer.ip().is_loopback())?;
            Some((held, None))
        });
        let Some((held, newcomer)) = place else {
            if let Some(left_out) = self.crowded.line() {
                tracing::warn!(
                    %peer,
                    left_out,
                    "refused: as many connections are open as `limits.connections` allows, or as many of them have not \
                     said yet who they are"
                );
            }
            return None;
        };
        Some(Arc::new(Place {
            held: Mutex::new(Some(held)),
            newcomer: Mutex::new(newcomer),
            is_admitted: false.into(),
            requests: AtomicU32::new(0),
        }))
    }

    /// Whether so many newcomers are here, or from this address, that a packet with a forged source address must not
    /// take a place.
    pub(crate) fn is_busy_for(&self, peer: &SocketAddr) -> bool {
        self.newcomers.is_busy_for(peer.ip())
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

/// Connections whose peers have not proven yet who they are, by source.
struct Newcomers {
    max: usize,
    share: usize,
    /// Sources with at least one newcomer, so at most `max`.
    of_sources: Mutex<BTreeMap<IpAddr, usize>>,
}

impl Newcomers {
    fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Newcomer> {
        let source = source(address);
        let mut of_sources = self.of_sources.lock().unwrap_or_else(PoisonError::into_inner);
        let own = of_sources.get(&source).copied().unwrap_or(0);
        if own >= self.share || of_sources.values().sum::<usize>() >= self.max {
            return None;
        }
        of_sources.insert(source, own + 1);
        Some(Newcomer { all: self.clone(), source })
    }

    fn is_busy_for(&self, address: IpAddr) -> bool {
        let of_sources = self.of_sources.lock().unwrap_or_else(PoisonError::into_inner);
        let own = of_sources.get(&source(address)).copied().unwrap_or(0);
        2 * own > self.share || 2 * of_sources.values().sum::<usize>() > self.max
    }
}

/// One newcomer; dropping it frees its place.
struct Newcomer {
    all: Arc<Newcomers>,
    source: IpAddr,
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        let mut of_sources = self.all.of_sources.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = of_sources.get_mut(&self.source) {
            *own -= 1;
            if *own == 0 {
                of_sources.remove(&self.source);
            }
        }
    }
}

/// What counts as one source: an IPv4 address, or the 64 bits of an IPv6 network, in which a host chooses its addresses
/// freely (RFC 4291, section 2.5.1).
pub(crate) fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().unwrap(), 5)
    }

    #[test]
    fn strangers_leave_places_for_this_machine() {
        let places = Places::new(3);
        let own = peer("127.0.0.1");
        let taken: Vec<_> = (1..=5).filter_map(|at| places.take(&peer(&format!("192.0.2.{at}")))).collect();
        assert_eq!(taken.len(), 1, "half of all places, for newcomers");
        taken.iter().for_each(|place| place.admit());
        let more: Vec<_> = (1..=5)
            .filter_map(|at| {
                let place = places.take(&peer(&format!("192.0.2.{at}")))?;
                place.admit();
                Some(place)
            })
            .collect();
        assert_eq!(more.len(), 2, "all places, for those that are admitted");
        let local: Vec<_> = (0..LOCAL + 5).filter_map(|_| places.take(&own)).collect();
        assert_eq!(local.len(), LOCAL);
        drop(taken);
        assert!(places.take(&peer("192.0.2.9")).is_some(), "what was given back is free");
        let last = places.take(&peer("192.0.2.9"));
        last.as_ref().expect("it is free").admit();
        assert!(places.take(&peer("192.0.2.8")).is_none());
        more[0].give_back();
        assert!(places.take(&peer("192.0.2.8")).is_some(), "also by who goes on without a connection");
    }

    #[test]
    fn one_source_has_a_share_of_the_newcomers_places() {
        let places = Places::new(64);
        let stranger = peer("192.0.2.1");
        let mut taken: Vec<_> = (0..100).filter_map(|_| places.take(&stranger)).collect();
        assert_eq!(taken.len(), 64 / NEWCOMERS_PART / SHARE_PART);
        assert!(places.is_busy_for(&stranger) && !places.is_busy_for(&peer("192.0.2.2")));
        assert!(places.take(&peer("192.0.2.2")).is_some(), "another address has its own share");
        // A proven peer is no newcomer any more, and so its address may bring another one.
        taken[0].admit();
        taken[0].admit();
        assert!(places.take(&stranger).is_some());
        taken.clear();
        assert!(!places.is_busy_for(&stranger));
        // Addresses of one IPv6 network are one source.
        let network: Vec<_> = (0..100).filter_map(|at| places.take(&peer(&format!("2001:db8::{at:x}")))).collect();
        assert_eq!(network.len(), 64 / NEWCOMERS_PART / SHARE_PART);
        assert!(places.take(&peer("2001:db8:0:1::1")).is_some());
    }

    #[test]
    fn a_newcomer_has_a_number_of_requests() {
        let places = Places::new(8);
        let (stranger, known) = (places.take(&peer("192.0.2.1")).unwrap(), places.take(&peer("192.0.2.2")).unwrap());
        known.admit();
        for _ in 0..REQUESTS_MAX {
            assert!(!stranger.is_used_up());
            stranger.count_request();
            known.count_request();
        }
        assert!(stranger.is_used_up() && !known.is_used_up());
    }
}
