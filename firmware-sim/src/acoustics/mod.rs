//! The acoustic world around the glasses: echo of their own speaker, a room, noise, hardware that does not hear while it
//! speaks, and a microphone that is faulty. Everything is computed from seeds, so that a run can be repeated.
//!
//! [`Acoustics`] are settings; [`Scene`] computes them on the clock of the microphone.

mod convolution;
pub mod echo;
pub mod fault;
pub mod half_duplex;
pub mod level;
pub mod noise;
pub mod room;
mod scene;

pub use echo::Echo;
pub use fault::Fault;
pub use half_duplex::HalfDuplex;
pub use level::active_rms;
pub use noise::{Ambience, Noise};
pub use room::Room;
pub use scene::Scene;

/// What the microphone hears besides the wearer, and how. By default nothing: a silent room without echo.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Acoustics {
    /// The speaker is heard by the microphone.
    pub echo: Option<Echo>,
    /// The room in which the wearer and the speaker sound.
    pub room: Option<Room>,
    /// Noise around the wearer.
    pub noise: Option<Noise>,
    /// The microphone is closed while the speaker plays.
    pub half_duplex: Option<HalfDuplex>,
    /// The microphone is faulty.
    pub fault: Option<Fault>,
}

/// A change of one part; `None` removes it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are the parts")]
pub enum Change {
    Echo(Option<Echo>),
    Room(Option<Room>),
    Noise(Option<Noise>),
    HalfDuplex(Option<HalfDuplex>),
    Fault(Option<Fault>),
}

impl Acoustics {
    /// Changes one part.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Echo(echo) => self.echo = echo,
            Change::Room(room) => self.room = room,
            Change::Noise(noise) => self.noise = noise,
            Change::HalfDuplex(half_duplex) => self.half_duplex = half_duplex,
            Change::Fault(fault) => self.fault = fault,
        }
    }

    /// All parts, as changes of nothing.
    pub(crate) fn parts(&self) -> [Change; 5] {
        [
            Change::Echo(self.echo),
            Change::Room(self.room),
            Change::Noise(self.noise),
            Change::HalfDuplex(self.half_duplex),
            Change::Fault(self.fault),
        ]
    }

    /// Whether there is anything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Amplitude ratio of a level in decibels.
pub(crate) fn gain(db: f64) -> f64 {
    10f64.powf(db / 20.0)
}

/// Microseconds as samples, rounded to the nearest.
pub(crate) fn samples(us: u64, rate_hz: u32) -> u64 {
    ((u128::from(us) * u128::from(rate_hz) + 500_000) / 1_000_000) as u64
}

/// Reads a number between two limits.
pub(crate) fn number(text: &str, what: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64, String> {
    let value = text.trim().parse::<f64>().ok().filter(|value| range.contains(value));
    value.ok_or_else(|| format!("{what} is a number from {} to {}, not '{text}'", range.start(), range.end()))
}

/// Reads a seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("a seed is a whole number, not '{text}'"))
}
