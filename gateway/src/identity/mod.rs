//! Identity of devices: keys, the handshake, pairing; and of people at the console.

mod admitted;
mod context;
pub mod grant;
pub(crate) mod handshake;
pub mod invitations;
pub(crate) mod keys;
pub mod operators;
pub mod pairing;
mod refusal;
pub(crate) mod typed;

pub use admitted::{Admitted, Asked};
pub(crate) use context::AdmissionContext;
pub(crate) use handshake::admit;
pub(crate) use keys::random;
pub use keys::{GatewayKey, fingerprint};
pub use pairing::Pairings;
pub(crate) use refusal::Refusal;
