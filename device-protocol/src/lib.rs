//! Messages between smart glasses and the gateway.
//!
//! PROTOCOL.md at the top of the repository describes the same messages byte by byte. The two change together, and the
//! files in `vectors/` test both. Start with [`Up`] and [`Down`], the two enums of all messages, then [`encode`],
//! [`decode_up`] and [`decode_down`]. Nothing allocates: texts and bytes borrow from the buffer.
//!
//! ```
//! use device_protocol::{Decoded, Frame, Stamp, Up, decode_up, encode, up};
//!
//! let frame = Frame::new(Stamp { sequence: 1, turn: 0, time_us: 20_000 }, Up::Mute(up::Mute { muted: true }));
//! let mut buffer = [0; 64];
//! let length = encode(&frame, &mut buffer).unwrap();
//! assert_eq!(decode_up(&buffer[..length]), Ok(Decoded::Frame(frame)));
//! ```
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "json")]
extern crate alloc;

#[macro_use]
pub mod schema;

pub mod auth;
mod codec;
pub mod down;
mod envelope;
mod error;
pub mod firmware;
mod frame;
#[cfg(feature = "json")]
pub mod json;
pub mod limits;
mod link;
mod list;
pub mod up;
pub mod values;

pub use down::Down;
pub use envelope::{Class, DOWN_BIT, Header, first_frame, peek};
pub use error::Error;
pub use frame::{Decoded, Frame, Message, Stamp, decode_down, decode_up, encode};
pub use list::{Iter, List};
pub use up::Up;
pub use values::*;

/// The version of the envelope and of every body in it.
pub const VERSION: u8 = 1;

/// WebSocket sub-protocol of the binary form: one binary message is one envelope.
pub const SUBPROTOCOL: &str = "lorgnette.v1";

/// WebSocket sub-protocol of the JSON form: one text message is one JSON object.
pub const SUBPROTOCOL_JSON: &str = "lorgnette.v1+json";

/// Path of the WebSocket.
pub const PATH: &str = "/glasses";

/// ALPN of QUIC.
pub const ALPN: &[u8] = b"lorgnette/1";
