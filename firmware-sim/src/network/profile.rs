//! Named networks: what a packet meets on its way, as a schedule over time.

use std::time::Duration;

/// Loss in bursts, after Gilbert and Elliott: packets meet a good or a bad state, and each one may change it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    /// Share of packets lost in the good state.
    pub good: f64,
    /// Share of packets lost in the bad state.
    pub bad: f64,
    /// Chance, with each packet, that the good state turns bad.
    pub worsens: f64,
    /// Chance, with each packet, that the bad state turns good: a burst has 1 / `recovers` packets.
    pub recovers: f64,
}

impl Loss {
    /// Each packet is lost with this chance, whatever happened to the others.
    pub const fn even(share: f64) -> Self {
        Self { good: share, bad: 0.0, worsens: 0.0, recovers: 0.0 }
    }
}

/// The narrowest place of one direction, and the queue in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Bits per second, headers of IP included.
    pub bits: u64,
    /// How long a packet may wait there; what would wait longer is dropped.
    pub queue: Duration,
}

impl Rate {
    const fn new(kilobits: u64, queue_ms: u64) -> Self {
        Self { bits: kilobits * 1_000, queue: Duration::from_millis(queue_ms) }
    }
}

/// What packets meet for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// One-way delay.
    pub delay: Duration,
    /// Maximum of a random additional delay; it keeps the order of packets.
    pub jitter: Duration,
    /// Lost packets.
    pub loss: Loss,
    /// Share of packets that are held back so long that those behind overtake them.
    pub reorder: f64,
    /// Share of packets that arrive twice.
    pub duplicate: f64,
    /// From the glasses to the gateway; `None`: as fast as they come.
    pub up: Option<Rate>,
    /// From the gateway to the glasses.
    pub down: Option<Rate>,
    /// UDP vanishes, TCP passes.
    pub blocks_udp: bool,
    /// Nothing passes.
    pub outage: bool,
    /// The glasses have a new address from here on: TCP connections die, QUIC may migrate.
    pub new_address: bool,
}

/// Conditions that last a random time between two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Least and most milliseconds.
    pub lasts_ms: (u64, u64),
    /// What holds meanwhile.
    pub conditions: Conditions,
}

/// How a network changes over time: phases one after the other, each with its conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// By which it is found.
    pub name: String,
    /// What happens, in this order. The last one stays, unless `repeats`.
    pub phases: Vec<Phase>,
    /// After the last phase comes the first.
    pub repeats: bool,
    /// Each connection breaks so long after it was opened.
    pub cut_after: Option<Duration>,
}

/// All names, each with what it does.
pub const NAMES: [(&str, &str); 8] = [
    ("home", "Wi-Fi of a flat: 3 ms, 5 ms of jitter, 0.2 % of packets lost"),
    ("office-roam", "every 6 to 12 s a weaker signal, a gap of 0.15 to 0.4 s, and a new address"),
    ("train", "40 ms, 60 ms of jitter, bursts of loss, 64 to 500 kbit/s, a tunnel of 2 to 5 s each half minute"),
    ("elevator", "after 5 to 8 s the signal fades, is gone for 6 to 9 s, and comes back"),
    ("hotel-wifi", "512 kbit/s with a queue of 1 s; after 10 to 20 s UDP vanishes, TCP goes on"),
    ("throttle", "32 kbit/s each way"),
    ("bufferbloat", "40 kbit/s each way, behind a queue of 3 s"),
    ("rough", "10 % of packets lost, 60 ms of jitter, 5 % overtaken, 1 % twice"),
];

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const PERFECT: Conditions = Conditions {
    delay: ms(0),
    jitter: ms(0),
    loss: Loss::even(0.0),
    reorder: 0.0,
    duplicate: 0.0,
    up: None,
    down: None,
    blocks_udp: false,
    outage: false,
    new_address: false,
};

const OUTAGE: Conditions = Conditions { outage: true, ..PERFECT };

const HOME: Conditions = Conditions { delay: ms(3), jitter: ms(5), loss: Loss::even(0.002), ..PERFECT };

/// Far from the access point: retries, which look like jitter, and bursts of loss.
const WEAK: Conditions = Conditions {
    delay: ms(8),
    jitter: ms(40),
    loss: Loss { good: 0.05, bad: 0.5, worsens: 0.05, recovers: 0.3 },
    up: Some(Rate::new(400, 300)),
    down: Some(Rate::new(400, 300)),
    ..PERFECT
};

const CELLULAR: Conditions = Conditions {
    delay: ms(40),
    jitter: ms(60),
    loss: Loss { good: 0.005, bad: 0.3, worsens: 0.01, recovers: 0.25 },
    reorder: 0.01,
    up: Some(Rate::new(250, 800)),
    down: Some(Rate::new(500, 800)),
    ..PERFECT
};

/// A mobile network with a weak signal: 64 kbit/s up, and losses in bursts.
const CELL_EDGE: Conditions = Conditions {
    delay: ms(70),
    jitter: ms(120),
    loss: Loss { good: 0.02, bad: 0.4, worsens: 0.03, recovers: 0.25 },
    up: Some(Rate::new(64, 1_000)),
    down: Some(Rate::new(96, 1_000)),
    ..CELLULAR
};

const HOTEL: Conditions = Conditions {
    delay: ms(15),
    jitter: ms(20),
    loss: Loss::even(0.01),
    up: Some(Rate::new(512, 1_000)),
    down: Some(Rate::new(512, 1_000)),
    ..PERFECT
};

impl Profile {
    /// The network of this name.
    pub fn named(name: &str) -> Option<Self> {
        let moved = |conditions: Conditions| Conditions { new_address: true, ..conditions };
        let phase = |least, most, conditions| Phase { lasts_ms: (least, most), conditions };
        let (phases, repeats) = match name {
            "home" => (vec![phase(0, 0, HOME)], false),
            "office-roam" => {
                let gap = phase(150, 400, OUTAGE);
                (vec![phase(6_000, 12_000, HOME), phase(800, 1_500, WEAK), gap, phase(100, 100, moved(HOME))], true)
            }
            "train" => {
                let tunnel = phase(2_000, 5_000, OUTAGE);
                let handover = phase(100, 300, OUTAGE);
                let ride = [phase(6_000, 12_000, CELLULAR), phase(3_000, 6_000, CELL_EDGE)];
                let next = [phase(8_000, 14_000, moved(CELLULAR)), tunnel, phase(1_000, 2_000, CELL_EDGE)];
                (ride.into_iter().chain([handover]).chain(next).collect(), true)
            }
            "elevator" => {
                let fades = Conditions { up: Some(Rate::new(64, 500)), down: Some(Rate::new(64, 500)), ..WEAK };
                let phases = [phase(5_000, 8_000, HOME), phase(700, 1_200, fades), phase(6_000, 9_000, OUTAGE)];
                (phases.into_iter().chain([phase(400, 800, fades), phase(15_000, 25_000, HOME)]).collect(), true)
            }
            "hotel-wifi" => {
                let blocked = Conditions { blocks_udp: true, ..HOTEL };
                (vec![phase(10_000, 20_000, HOTEL), phase(0, 0, blocked)], false)
            }
            "throttle" => (vec![phase(0, 0, limited(Rate::new(32, 500)))], false),
            "bufferbloat" => (vec![phase(0, 0, limited(Rate::new(40, 3_000)))], false),
            "rough" => (vec![phase(0, 0, rough())], false),
            _ => return None,
        };
        Some(Self { name: name.to_owned(), phases, repeats, cut_after: None })
    }

    /// A network that does not change.
    pub fn steady(conditions: Conditions) -> Self {
        let phases = vec![Phase { lasts_ms: (0, 0), conditions }];
        Self { name: "steady".to_owned(), phases, repeats: false, cut_after: None }
    }
}

fn limited(rate: Rate) -> Conditions {
    Conditions { delay: ms(20), jitter: ms(5), up: Some(rate), down: Some(rate), ..PERFECT }
}

fn rough() -> Conditions {
    let loss = Loss::even(0.1);
    Conditions { delay: ms(20), jitter: ms(60), loss, reorder: 0.05, duplicate: 0.01, ..PERFECT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_a_network_that_goes_on() {
        for (name, what) in NAMES {
            let profile = Profile::named(name).unwrap();
            assert_eq!(profile.name, name);
            assert!(!profile.phases.is_empty() && !what.is_empty());
            // A schedule without an end must take time.
            assert!(!profile.repeats || profile.phases.iter().all(|phase| phase.lasts_ms.0 > 0), "{name}");
            assert!(profile.phases.iter().all(|phase| phase.lasts_ms.0 <= phase.lasts_ms.1), "{name}");
        }
        assert_eq!(Profile::named("moon"), None);
    }
}
