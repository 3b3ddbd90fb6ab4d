//! Jitter buffer: reorders packets and handles gaps and late packets.
//!
//! A packet in order is never held back. Only a gap makes the buffer wait, and only as long as packets of this stream
//! have recently been reordered. The estimate of interarrival jitter is that of RFC 3550, section 6.4.1.
//!
//! Where the sender keeps what it has sent, it is then asked for gaps, of single packets as well while somebody speaks (a negative
//! acknowledgement, as in RFC 4585, section 6.2.1), and the buffer waits as long as missing packets come. While nothing at all comes
//! of a sender that sends, the link has stalled: a gap is then not given up, because what is missing comes when the link is back.

mod requests;

use std::{collections::BTreeMap, ops::Range};

pub use requests::Missing;
use requests::Requests;

use crate::frame::FRAME_US;

/// Longest packet of a codec, in microseconds.
const PACKET_US_MAX: u64 = 60_000;

/// Most packets held behind a gap: 3.8 s of 20 ms packets. That many come while an outage of 10 s is sent again at four
/// times real time.
pub const HELD_MAX: usize = 192;

/// Depth in jitter estimates (mean deviations): covers all but rare packets.
const DEPTH_PER_JITTER: u64 = 3;

/// Decay of the reordering estimate per packet that arrives in order, as a shift: it halves in about 5 s of 20 ms
/// packets.
const FORGET_SHIFT: u32 = 8;

/// Time without any packet from a sender that is sending after which the link has stalled, in microseconds: longer than packets come
/// together in over a radio that sleeps in between.
const STALL_US: u64 = 200_000;

/// Longest stall in which a gap is not given up, in microseconds: a device keeps its sound for 10 s.
const STALL_US_MAX: u64 = 8_000_000;

/// Limits of the wait for a missing packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Shortest wait for a missing packet, in microseconds.
    pub depth_us_min: u64,
    /// Longest wait for a missing packet, in microseconds.
    pub depth_us_max: u64,
    /// Longest wait for a missing packet of which the sender can be asked, before it is asked, in microseconds.
    pub ask_us: u64,
    /// How long the sender may take to send a gap again, and from one packet of it to the next, in microseconds; 0: it
    /// is not asked. For short gaps it is less, for long ones more.
    pub resend_us: u64,
    /// A packet may carry a copy of the one before it, which is good enough while nobody speaks: a single lost packet for which the
    /// sender is not asked is then waited for no longer than `depth_us_min`.
    pub has_copies: bool,
}

impl Config {
    /// For a transport that keeps order (WebSocket, a QUIC stream): a gap was made by the sender and will never fill,
    /// so the buffer does not wait.
    pub const ORDERED: Self = Self { depth_us_min: 0, depth_us_max: 0, ask_us: 0, resend_us: 0, has_copies: false };
    /// For datagrams: at least one frame, and at most a delay that a listener does not notice.
    pub const DATAGRAM: Self =
        Self { depth_us_min: 20_000, depth_us_max: 120_000, ask_us: 0, resend_us: 0, has_copies: false };
    /// For datagrams of a sender that keeps them: it is asked when a packet is later than two that overtook it, and may
    /// take a round trip over a slow link.
    pub const RESENT: Self = Self { ask_us: 40_000, resend_us: 400_000, ..Self::DATAGRAM };

    /// The same for packets with or without copies.
    #[must_use]
    pub fn with_copies(self, has_copies: bool) -> Self {
        Self { has_copies, ..self }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DATAGRAM
    }
}

/// Outcome of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// It will be delivered.
    Accepted,
    /// It was already given up as lost.
    TooLate,
    /// The same sequence number is held or was delivered.
    Duplicate,
    /// [`HELD_MAX`] packets are held, because the caller does not drain the buffer.
    Full,
}

/// What comes next in the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Slot<T> {
    /// The next packet in order.
    Packet {
        /// Its sequence number.
        seq: u32,
        /// Its capture time, as sent by the device.
        capture_us: u64,
        /// The pushed payload.
        payload: T,
    },
    /// Packets given up as lost.
    Lost {
        /// Sequence number of the first one.
        seq: u32,
        /// How many in a row.
        count: u32,
    },
    /// Nothing yet.
    Wait,
}

/// Counts since the buffer was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets delivered.
    pub delivered: u64,
    /// Sequence numbers given up.
    pub lost: u64,
    /// Packets that arrived after they were given up.
    pub late: u64,
    /// Packets that arrived twice.
    pub duplicate: u64,
    /// Packets that overtook another one.
    pub overtook: u64,
    /// Packets refused because [`HELD_MAX`] were held.
    pub overflow: u64,
}

struct Held<T> {
    capture_us: u64,
    arrived_us: u64,
    payload: T,
}

/// Puts packets back in order.
pub struct JitterBuffer<T> {
    config: Config,
    /// Next sequence number, extended to 64 bits so that wrapping has no special case.
    next: Option<u64>,
    /// Extended number of the newest packet seen.
    newest: u64,
    held: BTreeMap<u64, Held<T>>,
    /// Which of the 64 numbers before `next` were delivered; bit 0 is the one just before.
    delivered: u64,
    /// RFC 3550 jitter in sixteenths of a microsecond.
    jitter_16th_us: u64,
    /// How long packets were recently overtaken, decaying.
    overtaken_us: u64,
    /// Arrival and capture time of the last packet.
    last: Option<(u64, u64)>,
    /// Capture time of the last packet that was delivered.
    delivered_capture_us: Option<u64>,
    requests: Requests,
    /// Somebody is speaking.
    is_voice: bool,
    /// The sender goes on sending: where nothing comes, the link has stalled.
    is_sending: bool,
    stats: Stats,
}

impl<T> JitterBuffer<T> {
    /// An empty buffer; the first packet pushed sets the sequence.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            next: None,
            newest: 0,
            held: BTreeMap::new(),
            delivered: 0,
            jitter_16th_us: 0,
            overtaken_us: 0,
            last: None,
            delivered_capture_us: None,
            requests: Requests::new(),
            is_voice: false,
            is_sending: false,
            stats: Stats::default(),
        }
    }

    /// Takes in one packet that arrived at `now_us`.
    pub fn push(&mut self, seq: u32, capture_us: u64, payload: T, now_us: u64) -> Pushed {
        let extended = self.extend(seq);
        let next = *self.next.get_or_insert(extended);
        if self.stalls_until_us().is_some_and(|_| self.asked_until_us() <= Some(now_us)) {
            self.requests.restart(now_us);
        }
        self.observe(extended, capture_us, now_us);
        if extended < next {
            let behind = next - 1 - extended;
            if behind < 64 && self.delivered >> behind & 1 == 1 {
                self.stats.duplicate += 1;
                return Pushed::Duplicate;
            }
            self.stats.late += 1;
            self.requests.note_late(extended, now_us, self.config.resend_us);
            return Pushed::TooLate;
        }
        if self.held.contains_key(&extended) {
            self.stats.duplicate += 1;
            return Pushed::Duplicate;
        }
        if self.held.len() >= HELD_MAX {
            self.stats.overflow += 1;
            return Pushed::Full;
        }
        self.requests.note_arrival(extended, now_us);
        self.held.insert(extended, Held { capture_us, arrived_us: now_us, payload });
        Pushed::Accepted
    }

    /// The next slot of the stream at `now_us`. Call until it returns [`Slot::Wait`].
    pub fn pop_ready(&mut self, now_us: u64) -> Slot<T> {
        let (Some(next), Some((&first, _))) = (self.next, self.held.first_key_value()) else {
            return Slot::Wait;
        };
        if first > next {
            self.ask(now_us);
            if self.gap_deadline_us().is_some_and(|deadline| now_us < deadline) {
                return Slot::Wait;
            }
            let count = first - next;
            self.advance(count, false);
            self.stats.lost += count;
            // Extended numbers differ by less than 2^31, so the count fits.
            return Slot::Lost { seq: next as u32, count: count as u32 };
        }
        match self.held.pop_first() {
            Some((seq, held)) => {
                self.advance(1, true);
                self.requests.note_delivered();
                self.stats.delivered += 1;
                self.delivered_capture_us = Some(held.capture_us);
                Slot::Packet { seq: seq as u32, capture_us: held.capture_us, payload: held.payload }
            }
            None => Slot::Wait,
        }
    }

    /// Whether somebody is speaking in the sound that was delivered. In a voice each lost packet costs words, so that single ones
    /// are asked for, however many are lost; in a pause, what they hold up would delay the end of the turn.
    pub fn note_voice(&mut self, is_voice: bool) {
        self.is_voice = is_voice;
    }

    /// Whether the sender goes on sending, so that packets should come: it has neither ended its stream nor begun a pause.
    pub fn note_sending(&mut self, is_sending: bool) {
        self.is_sending = is_sending;
    }

    /// Whether packets are held behind a gap.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// The newest packet that is held.
    pub fn newest(&self) -> Option<&T> {
        self.held.last_key_value().map(|(_, held)| &held.payload)
    }

    /// The packets behind [`last`](Self::last) that the sender is to send again; it is told at once.
    pub fn take_missing(&mut self, now_us: u64) -> Option<Missing> {
        self.requests.take(self.next?, now_us)
    }

    /// Until when a gap is waited for that the sender was asked for.
    pub fn asked_until_us(&self) -> Option<u64> {
        let first = self.held.first_key_value().map(|(first, _)| *first);
        self.requests.waits_until_us(self.next?, first, self.is_voice, self.config.resend_us)
    }

    /// Whether [`take_missing`](Self::take_missing) has something.
    pub fn is_missing(&self) -> bool {
        self.next.is_some_and(|next| self.requests.is_untold(next))
    }

    /// When [`pop_ready`](Self::pop_ready) will have something new without another push.
    pub fn next_wake_us(&self) -> Option<u64> {
        let first = *self.held.first_key_value()?.0;
        if Some(first) == self.next {
            return Some(0);
        }
        let ask_us = self.next_to_ask().map(|(_, ripe_us)| ripe_us);
        [self.gap_deadline_us(), ask_us, self.requests.next_again_us()].into_iter().flatten().min()
    }

    /// Whether packet `seq` was delivered or given up, or no packet came at all.
    pub fn is_past(&self, seq: u32) -> bool {
        // Wrapping comparison: past if it is behind by less than half the number space.
        self.next.is_none_or(|next| (seq.wrapping_sub(next as u32) as i32) < 0)
    }

    /// The present wait for a gap, in microseconds.
    pub fn depth_us(&self) -> u64 {
        let jitter = self.jitter_16th_us / 16 * DEPTH_PER_JITTER;
        jitter.max(self.overtaken_us).clamp(self.config.depth_us_min, self.config.depth_us_max)
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The last packet that was delivered or given up; `None`: none yet.
    pub fn last(&self) -> Option<u32> {
        self.next.map(|next| (next as u32).wrapping_sub(1))
    }

    /// The stream goes on over another connection after a break: other limits hold, and the break is no jitter. The
    /// sender sends again all that came behind [`last`](Self::last).
    pub fn resume(&mut self, config: Config) {
        self.config = config;
        self.last = None;
        self.held.clear();
        self.requests.reset();
    }

    /// Drops the held packets; the next packet starts a new sequence.
    pub fn reset(&mut self) {
        self.next = None;
        self.held.clear();
        self.delivered = 0;
        self.last = None;
        self.delivered_capture_us = None;
        self.requests.clear();
        (self.is_voice, self.is_sending) = (false, false);
    }

    /// When the gap before the first held packet is given up: at once if the buffer is full.
    fn gap_deadline_us(&self) -> Option<u64> {
        if self.held.len() >= HELD_MAX {
            return Some(0);
        }
        if let Some(until_us) = self.asked_until_us() {
            return Some(until_us.max(self.stalls_until_us().unwrap_or(0)));
        }
        let (&first, _) = self.held.first_key_value()?;
        self.ripe_us(self.next?..first)
    }

    /// Until when the gap that was asked for is not given up if nothing comes any more; `None`: something came shortly before the wait
    /// for it is over.
    fn stalls_until_us(&self) -> Option<u64> {
        let (last_us, _) = self.last.filter(|_| self.is_sending && self.requests.may_stall())?;
        let is_stalled = self.asked_until_us()? > last_us.saturating_add(STALL_US);
        is_stalled.then(|| last_us.saturating_add(STALL_US_MAX))
    }

    /// When the wait is over for this gap, in which it may come by itself.
    fn ripe_us(&self, gap: Range<u64>) -> Option<u64> {
        // The packets behind a gap may be reordered themselves; the first to arrive started the wait.
        let arrived_us = self.held.range(gap.end..).map(|(_, held)| held.arrived_us).min()?;
        let most_us = if self.may_ask(&gap) {
            self.config.ask_us
        } else if self.config.has_copies && !self.is_voice && gap.end - gap.start == 1 {
            self.config.depth_us_min
        } else {
            u64::MAX
        };
        Some(arrived_us.saturating_add(self.depth_us().min(most_us)))
    }

    /// Asks for all gaps that have been waited for.
    fn ask(&mut self, now_us: u64) {
        self.requests.ask_again(now_us);
        while let Some((gap, ripe_us)) = self.next_to_ask()
            && ripe_us <= now_us
        {
            let packet_us = self.packet_us(&gap);
            self.requests.ask(gap, packet_us, now_us);
        }
    }

    /// The first gap that the sender may be asked for and was not, and when that is due.
    fn next_to_ask(&self) -> Option<(Range<u64>, u64)> {
        let next = self.next?;
        let mut from = next;
        let gap = self.held.keys().find_map(|held| {
            let gap = from..*held;
            from = held + 1;
            // One that no request reaches has its time when one does.
            let is_reached = gap.start == next || gap.end - next <= requests::REACH;
            let is_open = !gap.is_empty() && is_reached && !self.requests.covers(gap.start);
            (is_open && self.may_ask(&gap)).then_some(gap)
        })?;
        let ripe_us = self.ripe_us(gap.clone())?;
        Some((gap, ripe_us))
    }

    /// Length of the packets in a gap, by the capture times on both sides of it.
    fn packet_us(&self, gap: &Range<u64>) -> u64 {
        let before = self.held.get(&gap.start.wrapping_sub(1)).map(|held| held.capture_us);
        let before_us = before.or(self.delivered_capture_us);
        let span_us = self.held.get(&gap.end).and_then(|held| held.capture_us.checked_sub(before_us?));
        let packets = (gap.end - gap.start).saturating_add(1);
        // What takes much longer than packets can has a pause in it, in which nothing was sent.
        let packet_us = span_us.map(|span_us| span_us / packets).filter(|packet_us| *packet_us < PACKET_US_MAX * 3 / 2);
        packet_us.map_or(FRAME_US, |packet_us| packet_us.clamp(FRAME_US, PACKET_US_MAX))
    }

    /// Whether the sender can be asked for this gap.
    fn may_ask(&self, gap: &Range<u64>) -> bool {
        self.config.resend_us > 0
            && self.held.len() < HELD_MAX
            && self.requests.may_ask(gap.end - gap.start, self.is_voice)
    }

    fn advance(&mut self, count: u64, delivered: bool) {
        if let Some(next) = &mut self.next {
            *next += count;
        }
        let next = self.next.unwrap_or(0);
        self.requests.end_before(next);
        let shifted = if count >= 64 { 0 } else { self.delivered << count };
        self.delivered = shifted | u64::from(delivered);
    }

    /// The 64-bit number nearest to the newest one whose low bits are `seq`.
    fn extend(&mut self, seq: u32) -> u64 {
        if self.next.is_none() {
            // Far from zero, so that the number of an older packet never becomes negative.
            self.newest = (1 << 33) | u64::from(seq);
            return self.newest;
        }
        let ahead = seq.wrapping_sub(self.newest as u32) as i32;
        self.newest.saturating_add_signed(i64::from(ahead))
    }

    /// Updates both estimates and `newest`.
    fn observe(&mut self, extended: u64, capture_us: u64, now_us: u64) {
        if let Some((last_now_us, last_capture_us)) = self.last.replace((now_us, capture_us)) {
            let transit =
                (i128::from(now_us) - i128::from(last_now_us)) - (i128::from(capture_us) - i128::from(last_capture_us));
            // Limits the effect of a device with a wrong clock on the estimate.
            let deviation = transit.unsigned_abs().min(u128::from(self.config.depth_us_max)) as u64;
            self.jitter_16th_us = self.jitter_16th_us - self.jitter_16th_us / 16 + deviation;
        }
        if extended > self.newest {
            self.newest = extended;
            self.overtaken_us -= self.overtaken_us >> FORGET_SHIFT;
        } else if extended < self.newest {
            self.stats.overtook += 1;
            self.overtaken_us = self.overtaken_us.max(self.overtaken_for_us(extended, now_us));
        }
    }

    /// How long the packet `extended` was overtaken: since the first held packet after it arrived.
    fn overtaken_for_us(&self, extended: u64, now_us: u64) -> u64 {
        let since = self.held.range(extended..).map(|(_, held)| held.arrived_us).min();
        let waited = match since {
            Some(arrived_us) => now_us.saturating_sub(arrived_us),
            // It arrived after it was given up: the wait was too short, by an unknown time.
            None => self.depth_us().max(FRAME_US) * 3 / 2,
        };
        waited.min(self.config.depth_us_max)
    }
}
