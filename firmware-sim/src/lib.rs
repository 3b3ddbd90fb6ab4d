//! Simulated glasses that share no logic with the gateway.
//!
//! Start with [`Glasses`]: it connects, speaks, listens and logs what it saw. The parts underneath are plain state
//! machines that take the time as an argument: [`display::Screen`], [`speaker::Speaker`], [`microphone::Microphone`]
//! and [`network::path::Path`]. Of `audio` only codecs, rate conversion, WAV files, the voice and wake-word detectors are used; everything else
//! is implemented from PROTOCOL.md.
#![forbid(unsafe_code)]

pub mod acoustics;
pub mod clock;
mod command;
pub mod conformance;
pub mod delays;
pub mod discovery;
pub mod display;
mod driver;
mod error;
pub mod firmware;
pub mod glasses;
pub mod handshake;
pub mod identity;
mod incoming;
pub mod invitation;
pub mod latency;
pub mod microphone;
mod names;
pub mod network;
mod options;
pub mod photo;
mod picture;
pub mod profile;
pub mod random;
pub mod record;
pub mod script;
pub mod seen;
pub mod session;
mod sound;
pub mod speaker;
pub mod tools;
pub mod transport;
#[cfg(feature = "tts")]
pub mod voice;
pub mod wake;

pub use error::Error;
pub use glasses::Glasses;
pub use options::Options;
pub use seen::{Event, Seen};
