//! Simulates a bad network between the glasses and the gateway: delay, jitter, loss and a cut, from one seed.
//!
//! The faults apply to whole frames. Only sound on QUIC is really lost or reordered. Everything else travels on
//! ordered, reliable streams that retransmit lost packets: there, loss delays this frame and those after it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use bytes::Bytes;
use device_protocol::{Class, peek};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::random::Random;
use crate::transport::{Inbound, Link, QUEUE_FRAMES_MAX};

/// Time in which a stream repairs one lost packet: the minimum retransmission time-out of RFC 6298, with Linux's value.
const REPAIR_US: u64 = 200_000;

/// Faults of the network.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FaultOptions {
    /// One-way delay in microseconds.
    pub delay_us: u64,
    /// Maximum of a random additional delay in microseconds.
    pub jitter_us: u64,
    /// Share of frames lost, 0.0 to 1.0.
    pub loss: f64,
    /// The link breaks this many microseconds after it was opened.
    pub cut_after_us: Option<u64>,
    /// Seed of everything random.
    pub seed: u64,
}

impl FaultOptions {
    /// True if frames pass unchanged.
    pub fn is_perfect(&self) -> bool {
        self.delay_us == 0 && self.jitter_us == 0 && self.loss <= 0.0 && self.cut_after_us.is_none()
    }
}

/// Outcome of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at this time.
    Arrives(u64),
    /// It never arrives.
    Lost,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Faults {
    options: FaultOptions,
    random: Random,
    /// Arrival of the last frame that must not be overtaken.
    last_us: u64,
}

impl Faults {
    /// `direction` gives each direction its own random numbers.
    pub fn new(options: FaultOptions, direction: u64) -> Self {
        Self { options, random: Random::new(options.seed ^ direction.wrapping_mul(0xd6e8_feb8_6659_fd93)), last_us: 0 }
    }

    /// The outcome of a frame sent at `now_us`. `unordered`: it may be lost and overtaken.
    pub fn judge(&mut self, now_us: u64, unordered: bool) -> Fate {
        // Both numbers are drawn for every frame, so that the kind of one frame does not change the outcome of the
        // next.
        let jitter = self.random.below(self.options.jitter_us.saturating_add(1));
        let lost = self.random.unit() < self.options.loss;
        let arrives = now_us + self.options.delay_us + jitter;
        if unordered {
            return if lost { Fate::Lost } else { Fate::Arrives(arrives) };
        }
        let repaired = if lost { arrives + REPAIR_US } else { arrives };
        self.last_us = self.last_us.max(repaired);
        Fate::Arrives(self.last_us)
    }
}

/// Inserts the faults between the glasses and `link`.
pub fn spoil(link: Link, options: FaultOptions) -> Link {
    if options.is_perfect() {
        return link;
    }
    let opened = Instant::now();
    let cut = options.cut_after_us.map(|after| opened + Duration::from_micros(after));
    let may_lose = link.loses_sound;
    let (up, up_queue) = mpsc::channel(QUEUE_FRAMES_MAX);
    let (down_queue, down) = mpsc::channel(QUEUE_FRAMES_MAX);
    let up_faults = Faults::new(options, 1);
    let down_faults = Faults::new(options, 2);
    tokio::spawn(carry(up_queue, link.up, up_faults, opened, cut, move |frame: &Bytes| may_lose && is_sound(frame)));
    tokio::spawn(carry(link.down, down_queue, down_faults, opened, cut, move |inbound: &Inbound| {
        may_lose && matches!(inbound, Inbound::Frame(frame) if is_sound(frame))
    }));
    Link {
        up,
        down,
        binding: link.binding,
        certificate: link.certificate,
        name: link.name,
        loses_sound: may_lose,
        endpoint: link.endpoint,
    }
}

fn is_sound(frame: &Bytes) -> bool {
    matches!(peek(frame), Ok(Some(header)) if header.class() == Class::Audio)
}

/// Moves frames from one queue to the other, each at its time. When either side ends, or at the cut, it ends and the
/// link with it.
async fn carry<T>(
    mut from: mpsc::Receiver<T>,
    to: mpsc::Sender<T>,
    mut faults: Faults,
    opened: Instant,
    cut: Option<Instant>,
    unordered: impl Fn(&T) -> bool,
) {
    let mut waiting: BinaryHeap<Reverse<InFlight<T>>> = BinaryHeap::new();
    let mut order = 0;
    let mut open = true;
    while open || !waiting.is_empty() {
        let due = waiting.peek().map(|Reverse(first)| opened + Duration::from_micros(first.at_us));
        tokio::select! {
            biased;
            () = sleep_or_never(cut) => return,
            () = sleep_or_never(due) => {
                if let Some(Reverse(first)) = waiting.pop()
                    && to.send(first.frame).await.is_err()
                {
                    return;
                }
            }
            frame = from.recv(), if open && waiting.len() < QUEUE_FRAMES_MAX => match frame {
                Some(frame) => {
                    let now_us = u64::try_from(opened.elapsed().as_micros()).unwrap_or(u64::MAX);
                    if let Fate::Arrives(at_us) = faults.judge(now_us, unordered(&frame)) {
                        order += 1;
                        waiting.push(Reverse(InFlight { at_us, order, frame }));
                    }
                }
                None => open = false,
            },
            () = to.closed() => return,
        }
    }
}

async fn sleep_or_never(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

struct InFlight<T> {
    at_us: u64,
    /// Frames of the same time keep their order.
    order: u64,
    frame: T,
}

impl<T> PartialEq for InFlight<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for InFlight<T> {}

impl<T> PartialOrd for InFlight<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for InFlight<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_us, self.order).cmp(&(other.at_us, other.order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUGH: FaultOptions =
        FaultOptions { delay_us: 40_000, jitter_us: 30_000, loss: 0.1, cut_after_us: None, seed: 7 };

    fn fates(options: FaultOptions, direction: u64, unordered: bool) -> Vec<Fate> {
        let mut faults = Faults::new(options, direction);
        (0..1_000).map(|n| faults.judge(n * 20_000, unordered)).collect()
    }

    #[test]
    fn one_seed_is_one_network() {
        assert_eq!(fates(ROUGH, 1, true), fates(ROUGH, 1, true));
        assert_ne!(fates(ROUGH, 1, true), fates(ROUGH, 2, true));
        assert_ne!(fates(ROUGH, 1, true), fates(FaultOptions { seed: 8, ..ROUGH }, 1, true));
    }

    #[test]
    fn sound_is_lost_as_often_as_asked_and_delayed_as_asked() {
        let fates = fates(ROUGH, 1, true);
        let lost = fates.iter().filter(|fate| **fate == Fate::Lost).count();
        assert!((70..130).contains(&lost), "{lost} of 1000");
        for (n, fate) in fates.iter().enumerate() {
            if let Fate::Arrives(at) = fate {
                let took = at - n as u64 * 20_000;
                assert!((40_000..=70_000).contains(&took), "{took}");
            }
        }
    }

    #[test]
    fn a_stream_loses_nothing_and_keeps_its_order() {
        let mut last = 0;
        let mut repaired = 0;
        for (n, fate) in fates(ROUGH, 1, false).into_iter().enumerate() {
            let Fate::Arrives(at) = fate else { panic!("lost") };
            assert!(at >= last);
            last = at;
            repaired += usize::from(at - n as u64 * 20_000 >= REPAIR_US);
        }
        assert!(repaired > 70, "{repaired}");
    }

    fn pair() -> (Link, mpsc::Receiver<Bytes>, mpsc::Sender<Inbound>) {
        let (up, far_up) = mpsc::channel(16);
        let (far_down, down) = mpsc::channel(16);
        let link =
            Link { up, down, binding: [0; 32], certificate: [0; 32], name: "test", loses_sound: false, endpoint: None };
        (link, far_up, far_down)
    }

    #[tokio::test(start_paused = true)]
    async fn frames_arrive_late_and_the_link_is_cut_on_time() {
        let (link, mut far_up, far_down) = pair();
        let options = FaultOptions { delay_us: 50_000, cut_after_us: Some(1_000_000), ..FaultOptions::default() };
        let mut link = spoil(link, options);
        let opened = Instant::now();
        link.up.send(Bytes::from_static(b"up")).await.unwrap();
        assert_eq!(far_up.recv().await.unwrap(), "up");
        assert_eq!(opened.elapsed().as_millis(), 50);
        far_down.send(Inbound::Frame(Bytes::from_static(b"down"))).await.unwrap();
        assert!(matches!(link.down.recv().await, Some(Inbound::Frame(frame)) if frame == "down"));
        assert_eq!(opened.elapsed().as_millis(), 100);
        assert!(link.down.recv().await.is_none());
        assert_eq!(opened.elapsed().as_millis(), 1_000);
        assert!(far_up.recv().await.is_none());
    }
}
