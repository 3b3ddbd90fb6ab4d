//! The gaps that the sender is asked for: which ones, how often, and how long each is waited for.
//!
//! Several gaps are asked for at once, so that a gap does not wait for the one before it. A gap of a few packets is asked for again
//! when nothing of it has come in the time that answers take, which is estimated as in RFC 6298.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
};

/// Longest gap that is asked for: 10 s of packets of 10 ms, which is as long as every device keeps its sound.
const ASKED_MAX: u64 = 1_000;

/// Gaps in a row that were asked for and did not come, after which the sender counts as one that sends nothing again.
const UNANSWERED_MAX: u32 = 3;

/// Packets for each of which a single one may be asked for while nobody speaks, so that this is only done where few are lost: 5 s
/// of 20 ms packets.
const PACKETS_PER_SINGLE: u32 = 250;

/// Gaps in a row that came later than they were waited for, after which a voice is no reason to ask for single packets: the
/// round trip is too long.
const LATE_MAX: u32 = 3;

/// Single packets that may be asked for at once: a busy machine may drop some at the same moment.
const SINGLES_MAX: u32 = 8;

/// Upper limit of the credit for single packets, in packets.
const CREDIT_MAX: u32 = SINGLES_MAX * PACKETS_PER_SINGLE;

/// Times the length of a gap for which its packets are waited for: what a short one holds up should not be longer than
/// what it would save.
const WAIT_PER_GAP: u64 = 4;

/// Shortest wait for packets that were asked for, in microseconds: a round trip over a usual link.
const RESEND_US_MIN: u64 = 160_000;

/// Longest wait for a long gap, in microseconds. It was an outage, and a link that has just come back is slow: a gap is
/// waited for as long as it is, up to this.
const OUTAGE_WAIT_US_MAX: u64 = 2_000_000;

/// Times that a gap is asked for, and the longest one that is asked for more than once: the request or the answer may be lost, but
/// what is long comes late.
const TIMES_MAX: u8 = 3;
const AGAIN_PACKETS_MAX: u64 = 8;

/// Stalls of the link behind each of which the wait for a gap begins anew.
const STALLS_MAX: u8 = 2;

/// Time after which an answer is not expected any more: as long as none has come, and its limits, in microseconds.
const ANSWER_US: Range<u64> = 60_000..400_000;
const ANSWER_US_FIRST: u64 = 160_000;
/// Least part of it for what varies.
const ANSWER_VARIES_US_MIN: u64 = 20_000;

/// How often it is doubled at most.
const DOUBLINGS_MAX: u8 = 3;

/// Gaps that are over and may still come, late.
const ENDED_MAX: usize = 16;

/// Packets behind the first gap of a request that one request reaches: the bits of [`Missing::others`].
pub(super) const REACH: u64 = u64::BITS as u64;

/// What the sender is to send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missing {
    /// How many packets directly behind the last one that was taken.
    pub count: u32,
    /// Bit i, from the lowest: the packet i + 1 behind those.
    pub others: u64,
}

/// A gap that the sender was asked for.
struct Gap {
    /// Its first packet; its end is its key.
    from: u64,
    /// Length of its packets in microseconds.
    packet_us: u64,
    /// When it was first asked for.
    first_us: u64,
    /// When it was last asked for.
    asked_us: u64,
    /// When a packet of it last came, or it was first asked for.
    progress_us: u64,
    /// Times that it was asked for, the one included that is not told yet.
    times: u8,
    /// Stalls that it has waited through.
    stalls: u8,
    is_answered: bool,
    is_told: bool,
}

/// A gap that is over.
struct EndedGap {
    packets: Range<u64>,
    first_us: u64,
    times: u8,
}

/// The gaps that the sender was asked for, by the packet behind each.
pub(super) struct Requests {
    gaps: BTreeMap<u64, Gap>,
    /// Requests in a row to which nothing came, and the time up to which they are counted: one request may be of several gaps.
    unanswered: u32,
    counted_us: u64,
    /// Gaps in a row that were asked for and came too late.
    late: u32,
    /// Packets that were delivered, less those for which a single one was asked for.
    credit: u32,
    /// The last gaps that are over, the newest last.
    ended: VecDeque<EndedGap>,
    /// Time of an answer and its mean deviation, in microseconds.
    answer_us: Option<(u64, u64)>,
    /// Gaps in a row that came after they were asked for again: nobody knows to which request, so that each doubles the time of the
    /// next one.
    backs_off: u8,
}

impl Requests {
    pub(super) fn new() -> Self {
        Self {
            gaps: BTreeMap::new(),
            unanswered: 0,
            counted_us: 0,
            late: 0,
            credit: CREDIT_MAX,
            ended: VecDeque::new(),
            answer_us: None,
            backs_off: 0,
        }
    }

    /// Whether the sender may be asked for a gap of so many packets.
    pub(super) fn may_ask(&self, packets: u64, is_voice: bool) -> bool {
        let is_worth_it = is_voice && self.late < LATE_MAX;
        let is_cheap = packets > 1 || is_worth_it || self.credit >= PACKETS_PER_SINGLE;
        self.unanswered < UNANSWERED_MAX && is_cheap && packets <= ASKED_MAX
    }

    pub(super) fn ask(&mut self, gap: Range<u64>, packet_us: u64, now_us: u64) {
        if gap.end - gap.start == 1 {
            self.credit -= PACKETS_PER_SINGLE.min(self.credit);
        }
        let asked = Gap {
            from: gap.start,
            packet_us,
            first_us: now_us,
            asked_us: now_us,
            progress_us: now_us,
            times: 1,
            stalls: 0,
            is_answered: false,
            is_told: false,
        };
        self.gaps.insert(gap.end, asked);
    }

    /// Whether this packet is in a gap that was asked for.
    pub(super) fn covers(&self, packet: u64) -> bool {
        self.gaps.range(packet + 1..).next().is_some_and(|(_, gap)| gap.from <= packet)
    }

    /// Asks again for what should have come.
    pub(super) fn ask_again(&mut self, now_us: u64) {
        let most_us = self.answer_us_max();
        for (until, gap) in &mut self.gaps {
            if gap.again_us(*until, most_us).is_some_and(|at_us| at_us <= now_us) {
                (gap.asked_us, gap.is_told) = (now_us, false);
                gap.times += 1;
            }
        }
    }

    /// Whether the first gap may wait through another stall of the link.
    pub(super) fn may_stall(&self) -> bool {
        self.gaps.first_key_value().is_some_and(|(_, gap)| gap.stalls < STALLS_MAX)
    }

    /// The link had stalled, and packets come again: so does the wait for each gap, which is asked for again.
    pub(super) fn restart(&mut self, now_us: u64) {
        for gap in self.gaps.values_mut() {
            (gap.progress_us, gap.asked_us, gap.is_told) = (now_us, now_us, false);
            gap.times = gap.times.saturating_add(1);
            gap.stalls = gap.stalls.saturating_add(1);
        }
    }

    /// When [`ask_again`](Self::ask_again) will have an effect.
    pub(super) fn next_again_us(&self) -> Option<u64> {
        let most_us = self.answer_us_max();
        self.gaps.iter().filter_map(|(until, gap)| gap.again_us(*until, most_us)).min()
    }

    /// A packet came that was not given up.
    pub(super) fn note_arrival(&mut self, packet: u64, now_us: u64) {
        let Some((_, gap)) = self.gaps.range_mut(packet + 1..).next().filter(|(_, gap)| gap.from <= packet) else {
            return;
        };
        gap.progress_us = now_us;
        let is_first = !std::mem::replace(&mut gap.is_answered, true);
        let (times, took_us) = (gap.times, now_us.saturating_sub(gap.first_us));
        if is_first {
            self.measure(times, took_us);
        }
    }

    /// A packet came that had been given up.
    pub(super) fn note_late(&mut self, packet: u64, now_us: u64, resend_us: u64) {
        let Some(place) = self.ended.iter().position(|gap| gap.packets.contains(&packet)) else { return };
        let Some(ended) = self.ended.remove(place) else { return };
        // It does send again, only later than that was waited for.
        self.unanswered = 0;
        let took_us = now_us.saturating_sub(ended.first_us);
        self.late += u32::from(took_us >= resend_us);
        self.measure(ended.times, took_us);
    }

    pub(super) fn note_delivered(&mut self) {
        self.credit = (self.credit + 1).min(CREDIT_MAX);
    }

    /// Everything before `next` was delivered or given up.
    pub(super) fn end_before(&mut self, next: u64) {
        while let Some(first) = self.gaps.first_entry().filter(|first| *first.key() <= next) {
            let (until, gap) = first.remove_entry();
            if gap.is_answered {
                (self.unanswered, self.late) = (0, 0);
            } else if (gap.is_told || gap.times > 1) && gap.first_us > self.counted_us {
                self.unanswered += 1;
                self.counted_us = self.gaps.values().map(|gap| gap.asked_us).fold(gap.asked_us, u64::max);
            }
            if self.ended.len() >= ENDED_MAX {
                self.ended.pop_front();
            }
            self.ended.push_back(EndedGap { packets: gap.from..until, first_us: gap.first_us, times: gap.times });
        }
    }

    /// Until when the gap at `next` is waited for, if it was asked for. `first`: the first packet behind it that has come.
    pub(super) fn waits_until_us(&self, next: u64, first: Option<u64>, is_voice: bool, resend_us: u64) -> Option<u64> {
        let (&until, gap) = self.gaps.first_key_value().filter(|(_, gap)| gap.from <= next)?;
        let gap_us = until.saturating_sub(next).saturating_mul(gap.packet_us);
        // As long as nothing of it was overtaken, it may still come in order.
        let is_behind = first.is_some_and(|first| first >= until);
        let outage_us = if is_behind { gap_us.min(OUTAGE_WAIT_US_MAX) } else { 0 };
        // In a voice there is time: the end of a turn takes longer than this.
        let least_us = if is_voice { resend_us } else { RESEND_US_MIN };
        let wait_us = gap_us.saturating_mul(WAIT_PER_GAP).max(least_us).min(resend_us.max(outage_us));
        Some(gap.progress_us.saturating_add(wait_us))
    }

    /// What the sender is to be asked for, behind `next - 1`, by a message of `now_us`.
    pub(super) fn take(&mut self, next: u64, now_us: u64) -> Option<Missing> {
        let head = self.gaps.first_entry().filter(|head| head.get().from <= next && !head.get().is_told);
        let count = head.map_or(0, |mut head| {
            head.get_mut().tell(now_us);
            head.key().saturating_sub(next)
        });
        let base = next + count;
        let mut others = 0;
        for (until, gap) in self.gaps.iter_mut().filter(|(until, gap)| gap.is_reached(**until, base)) {
            gap.tell(now_us);
            others |= (gap.from..*until).fold(0, |bits, packet| bits | 1 << (packet - base));
        }
        (count > 0 || others > 0).then(|| Missing { count: u32::try_from(count).unwrap_or(u32::MAX), others })
    }

    /// Whether [`take`](Self::take) has something.
    pub(super) fn is_untold(&self, next: u64) -> bool {
        let head = self.gaps.first_key_value();
        head.is_some_and(|(_, head)| head.from <= next && !head.is_told)
            || self.gaps.iter().any(|(until, gap)| gap.is_reached(*until, next))
    }

    /// Over another connection everything may be different; what is missing comes by itself.
    pub(super) fn reset(&mut self) {
        *self = Self::new();
    }

    /// A new sequence begins.
    pub(super) fn clear(&mut self) {
        self.gaps.clear();
        self.ended.clear();
    }

    /// The time after which an answer is not expected any more.
    fn answer_us_max(&self) -> u64 {
        let estimate = self.answer_us.map(|(mean_us, varies_us)| mean_us + (4 * varies_us).max(ANSWER_VARIES_US_MIN));
        (estimate.unwrap_or(ANSWER_US_FIRST) << self.backs_off).clamp(ANSWER_US.start, ANSWER_US.end)
    }

    /// An answer came so long after the first of so many requests. Of several nobody knows which one it follows (P. Karn, C. Partridge,
    /// "Improving round-trip time estimates in reliable transport protocols", 1987).
    fn measure(&mut self, times: u8, took_us: u64) {
        if times > 1 {
            self.backs_off = (self.backs_off + 1).min(DOUBLINGS_MAX);
            return;
        }
        self.backs_off = 0;
        let answer_us = took_us.min(ANSWER_US.end);
        self.answer_us = Some(match self.answer_us {
            None => (answer_us, answer_us / 2),
            Some((mean_us, varies_us)) => {
                ((7 * mean_us + answer_us) / 8, (3 * varies_us + mean_us.abs_diff(answer_us)) / 4)
            }
        });
    }
}

impl Gap {
    /// The sender is told of it. A request may have waited: an answer cannot come before it.
    fn tell(&mut self, now_us: u64) {
        self.is_told = true;
        self.asked_us = self.asked_us.max(now_us);
        if self.times == 1 {
            self.first_us = self.asked_us;
        }
    }

    /// When it is asked for again.
    fn again_us(&self, until: u64, answer_us_max: u64) -> Option<u64> {
        let is_short = until - self.from <= AGAIN_PACKETS_MAX;
        (is_short && self.is_told && !self.is_answered && self.times < TIMES_MAX)
            .then(|| self.asked_us.saturating_add(answer_us_max))
    }

    /// Whether the bits behind `base` reach it, and it is to be told.
    fn is_reached(&self, until: u64, base: u64) -> bool {
        !self.is_told && self.from >= base && until - base <= REACH
    }
}
