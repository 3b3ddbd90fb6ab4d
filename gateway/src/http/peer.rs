//! The other end of a connection.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
};

use super::reply::Text;
use crate::transport::{Bindings, Transport, slots::ConnectionSlot};

/// Properties of a connection. Each of its requests carries a copy as an extension. A handler that takes it as an
/// argument removes it from the request, so a request that is kept longer does not keep the connection's slot.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    /// TLS values to which a handshake is bound; none without TLS.
    pub(super) bindings: Bindings,
    /// The transport for glasses on this connection.
    pub(super) transport: Transport,
    /// Lives as long as the connection: an upgraded connection keeps it until its end.
    pub(super) slot: Arc<ConnectionSlot>,
}

impl Peer {
    /// Whether the peer is a program on this machine.
    pub(super) fn is_here(&self) -> bool {
        self.address.ip().is_loopback()
    }

    /// Whether the connection is encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.transport.encrypted
    }
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Text;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Text> {
        let taken = parts.extensions.remove();
        taken.ok_or((StatusCode::INTERNAL_SERVER_ERROR, "the gateway does not know who asks\n"))
    }
}
