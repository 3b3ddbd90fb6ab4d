//! Who is at the other end of a connection.

use std::net::SocketAddr;

use axum::{
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
};

use super::reply::Text;
use crate::transport::{Bindings, Transport, places::Place};

/// What is known of a connection. Each of its requests carries one as an extension. A handler that names it as an argument
/// takes it out of the request: what keeps the request for longer does not keep the connection's place with it.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    /// What TLS binds a handshake to; none without TLS.
    pub(super) bindings: Bindings,
    /// What glasses on this connection speak over.
    pub(super) transport: Transport,
    /// Goes with the connection: what it is upgraded to keeps it until its end.
    pub(super) place: Place,
}

impl Peer {
    /// Whether it is a program on this machine.
    pub(super) fn is_here(&self) -> bool {
        self.address.ip().is_loopback()
    }
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Text;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Text> {
        let taken = parts.extensions.remove();
        taken.ok_or((StatusCode::INTERNAL_SERVER_ERROR, "the gateway does not know who asks\n"))
    }
}
