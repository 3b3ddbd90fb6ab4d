//! Who a device is: keys, the handshake, pairing.

pub mod handshake;
pub mod keys;
pub mod pairing;

pub use handshake::{Admitted, admit, turn_away};
pub use keys::{GatewayKey, fingerprint};
pub use pairing::Pairings;
