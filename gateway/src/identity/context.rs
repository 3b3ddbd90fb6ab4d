//! What a device has to pass before its session.

use super::{GatewayKey, Pairings};
use crate::{telemetry::LogThrottle, transport::slots::ConnectionSlot};

/// What a handshake needs to decide whether a device gets a session.
#[derive(Clone, Copy)]
pub(crate) struct AdmissionContext<'a> {
    /// The gateway's identity.
    pub(crate) key: &'a GatewayKey,
    /// Pairings under way.
    pub(crate) pairings: &'a Pairings,
    /// Users that may have devices.
    pub(crate) users_max: usize,
    /// Limits log lines about devices that wait for pairing.
    pub(crate) waits: &'a LogThrottle,
    /// The connection's slot, if it counts.
    pub(crate) slot: Option<&'a ConnectionSlot>,
}
