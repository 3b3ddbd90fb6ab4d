//! Limits of connections, for TCP and QUIC together. Each connection has a slot from its acceptance until it ends,
//! whether it is a request or a session. Until its peer has proven who it is, it also counts as a newcomer: there are
//! fewer slots for newcomers, and one source address may have only a share of them. Where there is no room for one more,
//! the oldest newcomer that has proven nothing gives way, of the address with the most, and those that wait for pairing
//! only after these; where a source has its share, one of its own. Known glasses that come back are newcomers until their
//! proof, a moment later: nobody who only keeps connections open can lock them out, also from their own network. Nor can
//! who has a key of the HTTP port, with which any number of connections can be opened: peers that are admitted by a request
//! have a part of the slots.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr, SocketAddr},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::telemetry::LogThrottle;

/// Additional slots reserved for this machine: a local supervisor can connect even if remote peers hold all others.
const LOCAL: usize = 16;
/// Newcomers are at most this part of all connections, so that devices in a session keep theirs.
const NEWCOMERS_PART: usize = 2;
/// One source address has at most this part of the newcomers' slots: a stranger pushes out newcomers of its own source
/// long before others.
const SHARE_PART: usize = 4;
/// Peers that are admitted by a request have at most this part of all connections; further ones stay newcomers.
const REQUESTERS_PART: usize = 4;
/// Requests of a newcomer over one connection: more than the files of the try page. A connection that is kept alive by
/// requests would hold its slot for ever.
const REQUESTS_MAX: u32 = 32;

/// How long the answer to a wrong key takes. Who tries keys needs a connection for each, and those that wait push each
/// other out. Keys are too long to be found at any rate that a network allows.
pub(crate) const WRONG_KEY_WAIT: Duration = Duration::from_millis(500);

/// The slot that one connection has until it ends.
pub(crate) struct ConnectionSlot {
    seat: Arc<Seat>,
    newcomer: Mutex<Option<Newcomer>>,
    is_admitted: AtomicBool,
    requests: AtomicU32,
    requesters: Arc<Semaphore>,
    /// Held by a peer that was admitted by a request.
    requester: Mutex<Option<OwnedSemaphorePermit>>,
}

/// What a slot loses to a newer one.
struct Seat {
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    pushed_out: CancellationToken,
}

impl Seat {
    fn new(permit: OwnedSemaphorePermit) -> Arc<Self> {
        Arc::new(Self { permit: Mutex::new(Some(permit)), pushed_out: CancellationToken::new() })
    }

    fn take_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl ConnectionSlot {
    /// Runs what serves the connection. `None`: it is dropped, since the slot is given to a newer connection. That does
    /// not happen any more once the peer is admitted.
    pub(crate) async fn keep<T>(&self, serving: Pin<&mut impl Future<Output = T>>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.pushed_out() => None,
            served = serving => Some(served),
        }
    }

    async fn pushed_out(&self) {
        self.seat.pushed_out.cancelled().await;
        // Admitted in this very moment: a session that may have been taken up again must not be dropped with it.
        if self.is_admitted.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }

    /// Whether the peer is one of the few that wait for an operator, after they have proven a key. They give way after
    /// those that have proven nothing.
    pub(crate) fn waits(&self, waits: bool) {
        if let Some(newcomer) = &*self.newcomer.lock().unwrap_or_else(PoisonError::into_inner) {
            newcomer.waits(waits);
        }
    }

    /// The peer has proven who it is: it no longer counts as a newcomer.
    pub(crate) fn admit(&self) {
        self.is_admitted.store(true, Ordering::Relaxed);
        drop(self.newcomer.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// The peer has proven by a request who it is: it no longer counts as a newcomer, unless as many as may have done the
    /// same already. Then the request is answered all the same.
    pub(crate) fn admit_requester(&self) {
        if self.is_admitted.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(permit) = self.requesters.clone().try_acquire_owned() {
            *self.requester() = Some(permit);
            self.admit();
        }
    }

    /// The connection is gone, whatever goes on without it.
    pub(crate) fn give_back(&self) {
        // The permit first: it must be free before there is room for another newcomer.
        drop(self.seat.take_permit());
        self.admit();
        drop(self.requester().take());
    }

    fn requester(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.requester.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// All slots, and log lines about rejected connections.
pub(crate) struct ConnectionSlots {
    open: Arc<Semaphore>,
    local: Arc<Semaphore>,
    requesters: Arc<Semaphore>,
    newcomers: Arc<Newcomers>,
    crowded: LogThrottle,
    plain: LogThrottle,
}

impl ConnectionSlots {
    /// `connections_max`: slots for all peers.
    pub(crate) fn new(connections_max: usize) -> Self {
        let newcomers_max = (connections_max / NEWCOMERS_PART).max(1);
        let newcomers =
            Newcomers { max: newcomers_max, share: (newcomers_max / SHARE_PART).max(1), here: Mutex::default() };
        Self {
            open: Arc::new(Semaphore::new(connections_max)),
            local: Arc::new(Semaphore::new(LOCAL)),
            requesters: Arc::new(Semaphore::new((connections_max / REQUESTERS_PART).max(1))),
            newcomers: Arc::new(newcomers),
            crowded: LogThrottle::default(),
            plain: LogThrottle::default(),
        }
    }

    /// A newcomer's slot for this peer: a free one, or that of another newcomer. `None`: those that are admitted have
    /// all slots.
    pub(crate) fn take(&self, peer: &SocketAddr) -> Option<Arc<ConnectionSlot>> {
        let slot = |(seat, newcomer)| {
            Arc::new(ConnectionSlot {
                seat,
                newcomer: Mutex::new(newcomer),
                is_admitted: false.into(),
                requests: AtomicU32::new(0),
                requesters: self.requesters.clone(),
                requester: Mutex::default(),
            })
        };
        let address = peer.ip();
        let reserved = || {
            let permit = self.local.clone().try_acquire_owned().ok().filter(|_| address.is_loopback())?;
            Some((Seat::new(permit), None))
        };
        // Under one lock: a newcomer that leaves in between would be neither free room nor one that can give way.
        let mut here = self.newcomers.here();
        let free = self.newcomers.enter(&mut here, address, &self.open);
        if let Some(taken) = free.or_else(reserved) {
            return Some(slot(taken));
        }
        let taken = self.newcomers.replace(&mut here, address, &self.open);
        drop(here);
        if let Some(left_out) = self.crowded.line() {
            let crowded = "as many connections are open as `limits.connections` allows, or as many of them have not said \
                           yet who they are";
            match &taken {
                Some(_) => tracing::warn!(%peer, left_out, "{crowded}: one of these made room"),
                None => tracing::warn!(%peer, left_out, "refused: {crowded}"),
            }
        }
        taken.map(slot)
    }

    /// Whether so many connections are open, or so many newcomers here, or from this address, that a packet with a forged
    /// source address must not take a slot.
    pub(crate) fn is_busy_for(&self, peer: &SocketAddr) -> bool {
        self.open.available_permits() == 0 || self.newcomers.is_busy_for(peer.ip())
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

/// Connections whose peers have not proven yet who they are.
struct Newcomers {
    max: usize,
    share: usize,
    /// At most `max`, the oldest first. One that has given way is not among them, however long it takes to end.
    here: Mutex<Vec<Held>>,
}

struct Held {
    address: IpAddr,
    waits: bool,
    seat: Arc<Seat>,
}

type Entered = (Arc<Seat>, Option<Newcomer>);

impl Newcomers {
    fn here(&self) -> MutexGuard<'_, Vec<Held>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a free slot.
    fn enter(self: &Arc<Self>, here: &mut Vec<Held>, address: IpAddr, open: &Arc<Semaphore>) -> Option<Entered> {
        if here.len() >= self.max || count_of(here, source(address)) >= self.share {
            return None;
        }
        let permit = open.clone().try_acquire_owned().ok()?;
        Some(self.seat(here, address, permit))
    }

    /// Takes the slot of another newcomer: of the same source, where that has its share already.
    fn replace(self: &Arc<Self>, here: &mut Vec<Held>, address: IpAddr, open: &Arc<Semaphore>) -> Option<Entered> {
        let own = source(address);
        let is_full = count_of(here, own) >= self.share;
        let at = gives_way(here, address, |held| !is_full || source(held.address) == own)?;
        let gone = here.remove(at).seat;
        gone.pushed_out.cancel();
        // One that is just leaving has given its permit back already.
        let permit = gone.take_permit().or_else(|| open.clone().try_acquire_owned().ok())?;
        Some(self.seat(here, address, permit))
    }

    fn seat(self: &Arc<Self>, here: &mut Vec<Held>, address: IpAddr, permit: OwnedSemaphorePermit) -> Entered {
        let seat = Seat::new(permit);
        here.push(Held { address, waits: false, seat: seat.clone() });
        let newcomer = Newcomer { all: self.clone(), seat: seat.clone() };
        (seat, Some(newcomer))
    }

    fn is_busy_for(&self, address: IpAddr) -> bool {
        let here = self.here();
        2 * count_of(&here, source(address)) > self.share || 2 * here.len() > self.max
    }
}

fn count_of(here: &[Held], own: IpAddr) -> usize {
    here.iter().filter(|held| source(held.address) == own).count()
}

/// Which one gives way to a newcomer from `coming`: the oldest one of the busiest address of the busiest source, among
/// those that have proven nothing as long as there are any. A stranger pushes out its own connections first.
fn gives_way(here: &[Held], coming: IpAddr, may: impl Fn(&Held) -> bool) -> Option<usize> {
    let (mut of_sources, mut of_addresses) = (BTreeMap::<_, usize>::new(), BTreeMap::<_, usize>::new());
    for address in here.iter().map(|held| held.address).chain([coming]) {
        *of_sources.entry(source(address)).or_default() += 1;
        *of_addresses.entry(address).or_default() += 1;
    }
    let rank = |held: &Held| {
        let of_source = of_sources.get(&source(held.address)).copied();
        (held.waits, Reverse(of_source), Reverse(of_addresses.get(&held.address).copied()))
    };
    // The first one of those that are equal: the oldest.
    let candidates = here.iter().enumerate().filter(|(_, held)| may(held));
    candidates.min_by_key(|(_, held)| rank(held)).map(|(at, _)| at)
}

/// One newcomer; dropping it frees its slot.
struct Newcomer {
    all: Arc<Newcomers>,
    seat: Arc<Seat>,
}

impl Newcomer {
    fn waits(&self, waits: bool) {
        if let Some(held) = self.all.here().iter_mut().find(|held| Arc::ptr_eq(&held.seat, &self.seat)) {
            held.waits = waits;
        }
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.all.here().retain(|held| !Arc::ptr_eq(&held.seat, &self.seat));
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
    use std::pin::pin;

    use super::*;

    fn peer(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().unwrap(), 5)
    }

    /// This many slots for one peer.
    fn fill(slots: &ConnectionSlots, from: &str, count: usize) -> Vec<Arc<ConnectionSlot>> {
        (0..count).map(|_| slots.take(&peer(from)).expect("a slot")).collect()
    }

    fn is_kept(slot: &ConnectionSlot) -> bool {
        !slot.seat.pushed_out.is_cancelled()
    }

    fn kept(slots: &[Arc<ConnectionSlot>]) -> usize {
        slots.iter().filter(|slot| is_kept(slot)).count()
    }

    /// Slots of 512 connections, and the share of one source.
    const SHARE: usize = 512 / NEWCOMERS_PART / SHARE_PART;

    #[test]
    fn strangers_leave_places_for_this_machine_and_for_those_that_are_admitted() {
        let slots = ConnectionSlots::new(3);
        let strangers: Vec<_> =
            (1..=5).map(|at| slots.take(&peer(&format!("192.0.2.{at}"))).expect("one gives way")).collect();
        assert_eq!(kept(&strangers), 1, "half of all slots, for newcomers");
        assert!(is_kept(&strangers[4]), "the latest one");
        let admitted = || {
            let slot = slots.take(&peer("192.0.2.9"))?;
            slot.admit();
            Some(slot)
        };
        let all: Vec<_> = (0..5).map_while(|_| admitted()).collect();
        assert_eq!(all.len(), 3, "all slots, for those that are admitted, also that of a newcomer");
        assert_eq!((kept(&strangers), kept(&all)), (0, 3));
        let local: Vec<_> = (0..LOCAL + 5).map_while(|_| slots.take(&peer("127.0.0.1"))).collect();
        assert_eq!(local.len(), LOCAL);
        drop(strangers);
        assert!(slots.take(&peer("192.0.2.8")).is_none(), "the slot of who was pushed out is taken");
        all[0].give_back();
        assert!(slots.take(&peer("192.0.2.8")).is_some(), "also by who goes on without a connection");
        assert!(is_kept(&all[1]) && all.len() == 3);
    }

    #[test]
    fn whoever_has_a_key_of_the_http_port_leaves_places_for_glasses() {
        let slots = ConnectionSlots::new(64);
        let by_request: Vec<_> = (0..100)
            .map(|_| {
                let slot = slots.take(&peer("192.0.2.1")).expect("newcomers make room");
                slot.admit_requester();
                // The next request over the same connection.
                slot.admit_requester();
                slot
            })
            .collect();
        let admitted = by_request.iter().filter(|slot| slot.is_admitted.load(Ordering::Relaxed)).count();
        assert_eq!(admitted, 64 / REQUESTERS_PART);
        let glasses = fill(&slots, "192.0.2.2", 1);
        glasses[0].admit();
        assert!(is_kept(&glasses[0]));
        // A connection that ends leaves its slot to another one.
        by_request[0].give_back();
        let next = slots.take(&peer("192.0.2.1")).expect("a slot");
        next.admit_requester();
        assert!(next.is_admitted.load(Ordering::Relaxed));
    }

    #[test]
    fn one_source_has_a_share_of_the_newcomers_places() {
        let slots = ConnectionSlots::new(64);
        let share = 64 / NEWCOMERS_PART / SHARE_PART;
        let other = slots.take(&peer("192.0.2.2")).unwrap();
        let strangers = fill(&slots, "192.0.2.1", 100);
        assert_eq!(kept(&strangers), share);
        assert!(strangers[100 - share..].iter().all(|slot| is_kept(slot)), "the latest ones");
        assert!(is_kept(&other), "another address has its own share");
        assert!(slots.is_busy_for(&peer("192.0.2.1")) && !slots.is_busy_for(&peer("192.0.2.2")));
        // A proven peer is no newcomer any more, and so its address may bring another one.
        strangers[99].admit();
        strangers[99].admit();
        assert_eq!(kept(&fill(&slots, "192.0.2.1", 1)), 1);
        assert_eq!(kept(&strangers), share);
        drop(strangers);
        assert!(!slots.is_busy_for(&peer("192.0.2.1")));
        // Addresses of one IPv6 network are one source.
        let network: Vec<_> = (0..100).map(|at| slots.take(&peer(&format!("2001:db8::{at:x}"))).unwrap()).collect();
        assert_eq!(kept(&network), share);
        assert_eq!(kept(&fill(&slots, "2001:db8:0:1::1", 1)), 1);
        assert_eq!(kept(&network), share);
    }

    #[test]
    fn a_stranger_locks_out_nobody_of_its_own_network() {
        // Silent connections from one address, and known glasses at another one of the same network, which come back in
        // their midst.
        for (stranger, glasses) in [("2001:db8::66", "2001:db8::7"), ("fe80::66", "fe80::7")] {
            let slots = ConnectionSlots::new(512);
            let mut strangers = fill(&slots, stranger, 3 * SHARE);
            assert_eq!(kept(&strangers), SHARE);
            let slot = slots.take(&peer(glasses)).expect("a slot");
            assert_eq!(kept(&strangers), SHARE - 1, "one of the stranger's gave way");
            strangers.extend(fill(&slots, stranger, 10 * SHARE));
            assert!(is_kept(&slot), "the stranger pushes out its own only");
            slot.admit();
            strangers.extend(fill(&slots, stranger, SHARE));
            assert!(is_kept(&slot));
        }
    }

    #[test]
    fn a_stranger_with_many_addresses_of_a_network_needs_a_whole_share_of_them() {
        let slots = ConnectionSlots::new(512);
        let addresses = |from: usize, count: usize| -> Vec<_> {
            (from..from + count).map(|at| slots.take(&peer(&format!("2001:db8::1:{at:x}"))).unwrap()).collect()
        };
        let early = addresses(0, SHARE);
        let glasses = slots.take(&peer("2001:db8::7")).unwrap();
        assert_eq!(kept(&early), SHARE - 1);
        let _late = addresses(SHARE, SHARE - 1);
        assert!(is_kept(&glasses), "older ones gave way");
        let _later = addresses(2 * SHARE, 1);
        assert!(!is_kept(&glasses), "it had the time of as many handshakes");
    }

    #[test]
    fn a_stranger_that_is_four_sources_locks_out_nobody() {
        const SOURCES: [&str; 4] = ["192.0.2.66", "fe80::66", "fd00::66", "2001:db8::66"];
        let slots = ConnectionSlots::new(512);
        let mut strangers: Vec<_> = SOURCES.iter().flat_map(|from| fill(&slots, from, SHARE)).collect();
        assert_eq!(kept(&strangers), 4 * SHARE, "all slots of newcomers");
        for glasses in ["192.0.2.7", "fe80::7", "2001:db8::7", "198.51.100.7"] {
            let slot = slots.take(&peer(glasses)).expect("a slot");
            strangers.extend(SOURCES.iter().flat_map(|from| fill(&slots, from, SHARE)));
            assert!(is_kept(&slot), "{glasses}");
            assert_eq!(kept(&strangers), 4 * SHARE - 1);
            slot.admit();
            assert_eq!(slots.newcomers.here().len(), 4 * SHARE - 1);
        }
    }

    #[test]
    fn newcomers_make_room_also_where_those_that_are_admitted_have_most_places() {
        let slots = ConnectionSlots::new(512);
        let admitted = fill(&slots, "127.0.0.1", 1);
        admitted[0].admit();
        let mut sessions = Vec::new();
        for at in 0..499 {
            let slot = slots.take(&peer(&format!("10.0.{}.{}", at / 250, at % 250))).unwrap();
            slot.admit();
            sessions.push(slot);
        }
        // Twelve are left, which is less than a share.
        let strangers = fill(&slots, "192.0.2.66", 12);
        assert!(slots.is_busy_for(&peer("198.51.100.7")), "who may have forged its address pushes out nobody");
        let glasses = slots.take(&peer("198.51.100.7")).expect("a slot");
        assert_eq!((kept(&strangers), kept(&sessions)), (11, 499));
        glasses.admit();
        assert!(is_kept(&glasses));
    }

    #[test]
    fn who_waits_for_an_operator_gives_way_last() {
        let slots = ConnectionSlots::new(8);
        let waits = slots.take(&peer("192.0.2.1")).unwrap();
        waits.waits(true);
        let silent: Vec<_> = (2..50).map(|at| slots.take(&peer(&format!("192.0.2.{at}"))).unwrap()).collect();
        assert!(is_kept(&waits));
        assert_eq!(kept(&silent), 3);
        // They count: slots that strangers wait in are not taken from those of sessions.
        let more: Vec<_> = (50..60).map(|at| slots.take(&peer(&format!("192.0.2.{at}"))).unwrap()).collect();
        more.iter().filter(|slot| is_kept(slot)).for_each(|slot| slot.waits(true));
        let known = slots.take(&peer("192.0.2.99")).unwrap();
        assert!(!is_kept(&waits) && kept(&more) == 3 && is_kept(&known));
        // It was turned away, and its connection is about to close.
        more.iter().for_each(|slot| slot.waits(false));
        known.waits(true);
        let _later = fill(&slots, "198.51.100.7", 1);
        assert!(kept(&more) == 2 && is_kept(&known));
    }

    #[tokio::test]
    async fn who_gives_way_is_dropped_unless_it_is_admitted() {
        let slots = ConnectionSlots::new(8);
        let stranger = slots.take(&peer("192.0.2.1")).unwrap();
        let endless = pin!(std::future::pending::<()>());
        let serving = stranger.keep(endless);
        let glasses = async { slots.take(&peer("192.0.2.1")).unwrap() };
        let (served, glasses) = tokio::join!(serving, glasses);
        assert_eq!(served, None);
        // Its proof came in the moment in which it was to give way.
        let other = slots.take(&peer("192.0.2.1")).unwrap();
        assert!(!is_kept(&glasses) && is_kept(&other));
        glasses.admit();
        let session = pin!(async {
            tokio::task::yield_now().await;
            "its end"
        });
        assert_eq!(glasses.keep(session).await, Some("its end"));
    }

    #[test]
    fn nobody_is_refused_in_the_moment_in_which_another_newcomer_leaves() {
        // No slot is free but those of one newcomer, and two come and go at once.
        let slots = ConnectionSlots::new(8);
        let local: Vec<_> = (0..LOCAL + 1).map(|_| slots.take(&peer("127.0.0.1")).unwrap()).collect();
        let come_and_go = || (0..100_000).filter(|_| slots.take(&peer("127.0.0.1")).is_none()).count();
        let refused = std::thread::scope(|scope| {
            let others = [scope.spawn(come_and_go), scope.spawn(come_and_go)];
            others.map(|other| other.join().unwrap())
        });
        assert_eq!(refused, [0, 0]);
        drop(local);
    }

    #[test]
    fn a_newcomer_has_a_number_of_requests() {
        let slots = ConnectionSlots::new(8);
        let (stranger, known) = (slots.take(&peer("192.0.2.1")).unwrap(), slots.take(&peer("192.0.2.2")).unwrap());
        known.admit();
        for _ in 0..REQUESTS_MAX {
            assert!(!stranger.is_used_up());
            stranger.count_request();
            known.count_request();
        }
        assert!(stranger.is_used_up() && !known.is_used_up());
    }
}
