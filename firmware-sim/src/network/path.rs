//! One direction of a network: when each packet arrives. Time is an argument.

use std::time::Duration;

use super::profile::{Conditions, Rate};
use crate::random::Random;

/// Bytes that IP and UDP add to a datagram.
const DATAGRAM_BYTES: usize = 28;

/// Bytes that IP and TCP with time stamps add to a segment.
const SEGMENT_BYTES: usize = 52;

/// Time in which a stream repairs one lost packet: the minimum retransmission time-out of RFC 6298, with Linux's value.
const REPAIR_US: u64 = 200_000;

/// By how much a packet that is overtaken is late: two packets of 20 ms come first.
const OVERTAKEN_US: u64 = 50_000;

/// By how much the second copy of a packet is late.
const AGAIN_US: u64 = 3_000;

/// What one direction remembers between packets: its queue, its random numbers, and whether losses come in a burst.
#[derive(Clone, Debug)]
pub struct Path {
    random: Random,
    is_bad: bool,
    /// When the narrowest place has sent all that it has.
    busy_until_us: u64,
    /// Arrival of the last packet that may not be overtaken.
    last_us: u64,
}

/// When the copies of a datagram arrive: none, one or two.
pub type Arrivals = [Option<u64>; 2];

impl Path {
    /// One seed is one network.
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed), is_bad: false, busy_until_us: 0, last_us: 0 }
    }

    /// A datagram of so many bytes is sent.
    pub fn datagram(&mut self, now_us: u64, bytes: usize, rate: Option<Rate>, conditions: &Conditions) -> Arrivals {
        let drawn = self.draw(conditions);
        if conditions.outage || conditions.blocks_udp || drawn.lost {
            return [None, None];
        }
        if rate.is_some_and(|rate| self.waits_us(now_us) > micros(rate.queue)) {
            return [None, None];
        }
        let sent_us = self.pass(now_us, bytes + DATAGRAM_BYTES, rate);
        let arrives_us = sent_us + micros(conditions.delay) + drawn.jitter_us;
        let arrives_us = if drawn.overtaken {
            arrives_us + OVERTAKEN_US
        } else {
            self.last_us = self.last_us.max(arrives_us);
            self.last_us
        };
        [Some(arrives_us), drawn.twice.then_some(arrives_us + AGAIN_US)]
    }

    /// A part of a stream is sent, which is never lost: what is lost below it delays it, and all behind it.
    pub fn segment(&mut self, now_us: u64, bytes: usize, rate: Option<Rate>, conditions: &Conditions) -> u64 {
        let drawn = self.draw(conditions);
        let sent_us = self.pass(now_us, bytes + SEGMENT_BYTES, rate);
        let repair_us = if drawn.lost { REPAIR_US } else { 0 };
        let arrives_us = sent_us + micros(conditions.delay) + drawn.jitter_us + repair_us;
        self.last_us = self.last_us.max(arrives_us);
        self.last_us
    }

    /// How long a packet would wait in front of the narrowest place.
    pub fn waits_us(&self, now_us: u64) -> u64 {
        self.busy_until_us.saturating_sub(now_us)
    }

    /// When the last bit has passed the narrowest place.
    fn pass(&mut self, now_us: u64, bytes: usize, rate: Option<Rate>) -> u64 {
        let Some(rate) = rate else {
            self.busy_until_us = now_us;
            return now_us;
        };
        let takes_us = bytes as u64 * 8 * 1_000_000 / rate.bits.max(1);
        self.busy_until_us = self.busy_until_us.max(now_us) + takes_us;
        self.busy_until_us
    }

    /// All numbers are drawn for every packet, so that the kind of one packet does not change what happens to the next.
    fn draw(&mut self, conditions: &Conditions) -> Drawn {
        let loss = conditions.loss;
        let turns = self.random.unit();
        self.is_bad = if self.is_bad { turns >= loss.recovers } else { turns < loss.worsens };
        let lost = self.random.unit() < if self.is_bad { loss.bad } else { loss.good };
        Drawn {
            lost,
            jitter_us: self.random.below(micros(conditions.jitter).saturating_add(1)),
            overtaken: self.random.unit() < conditions.reorder,
            twice: self.random.unit() < conditions.duplicate,
        }
    }
}

struct Drawn {
    lost: bool,
    jitter_us: u64,
    overtaken: bool,
    twice: bool,
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::profile::{Loss, Profile};
    use super::*;

    fn rough() -> Conditions {
        Profile::named("rough").unwrap().phases[0].conditions
    }

    /// What becomes of 2,000 packets, one each 20 ms.
    fn arrivals(seed: u64, conditions: &Conditions) -> Vec<Arrivals> {
        let mut path = Path::new(seed);
        (0..2_000).map(|n| path.datagram(n * 20_000, 100, conditions.up, conditions)).collect()
    }

    #[test]
    fn one_seed_is_one_network() {
        assert_eq!(arrivals(7, &rough()), arrivals(7, &rough()));
        assert_ne!(arrivals(7, &rough()), arrivals(8, &rough()));
    }

    #[test]
    fn packets_are_lost_late_overtaken_and_doubled_as_often_as_asked() {
        let arrivals = arrivals(7, &rough());
        let firsts: Vec<_> = arrivals.iter().enumerate().filter_map(|(n, [first, _])| Some((n, (*first)?))).collect();
        let lost = arrivals.len() - firsts.len();
        assert!((160..240).contains(&lost), "{lost} of 2000");
        let twice = arrivals.iter().filter(|[_, second]| second.is_some()).count();
        assert!((8..35).contains(&twice), "{twice} twice");
        let overtaken = firsts.windows(2).filter(|pair| pair[0].1 > pair[1].1).count();
        assert!((50..130).contains(&overtaken), "{overtaken} overtaken");
        for (n, at_us) in firsts {
            let took_us = at_us - n as u64 * 20_000;
            assert!((20_000..=130_000).contains(&took_us), "{took_us}");
        }
    }

    #[test]
    fn bursts_are_longer_than_chance() {
        let loss = Loss { good: 0.0, bad: 1.0, worsens: 0.02, recovers: 0.2 };
        let bursty = arrivals(3, &Conditions { loss, ..Conditions::default() });
        let lost = bursty.iter().filter(|[first, _]| first.is_none()).count();
        let bursts = bursty.windows(2).filter(|pair| pair[0][0].is_some() && pair[1][0].is_none()).count();
        assert!(lost > 100 && lost > 3 * bursts, "{lost} in {bursts} bursts");
    }

    #[test]
    fn a_narrow_place_delays_what_queues_and_drops_what_does_not_fit() {
        let rate = Rate { bits: 32_000, queue: Duration::from_millis(100) };
        let conditions = Conditions { up: Some(rate), ..Conditions::default() };
        let mut path = Path::new(1);
        // 128 bytes with their header take 32 ms at 32 kbit/s.
        let sent: Vec<_> = (0..6).map(|_| path.datagram(0, 100, conditions.up, &conditions)[0]).collect();
        assert_eq!(sent, [Some(32_000), Some(64_000), Some(96_000), Some(128_000), None, None]);
        // A stream has to wait instead; 24 bytes less fit.
        assert_eq!(path.waits_us(28_000), 100_000);
        assert_eq!(path.segment(128_000, 76, conditions.up, &conditions), 160_000);
    }

    #[test]
    fn a_stream_loses_nothing_and_keeps_its_order() {
        let mut path = Path::new(5);
        let mut last_us = 0;
        let mut repaired = 0;
        for n in 0..1_000 {
            let at_us = path.segment(n * 20_000, 100, None, &rough());
            assert!(at_us >= last_us);
            last_us = at_us;
            repaired += usize::from(at_us - n * 20_000 >= REPAIR_US);
        }
        assert!(repaired > 70, "{repaired}");
    }

    #[test]
    fn nothing_passes_an_outage_and_only_streams_where_udp_is_blocked() {
        for (outage, blocks_udp) in [(true, false), (false, true)] {
            let conditions = Conditions { outage, blocks_udp, ..Conditions::default() };
            assert_eq!(Path::new(1).datagram(0, 100, None, &conditions), [None, None]);
        }
    }
}
