//! Listeners without endpoints: they hand over each link of a device to somebody who is no gateway.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::any,
};
use device_protocol::PATH;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Bound, accept, glasses::link_of, peer::Peer, reply::Text};
use crate::{
    runtime::spawn,
    transport::{
        Link,
        slots::{ConnectionSlot, ConnectionSlots},
    },
};

/// Connections at once: those of one device, and a few of others, which are sent away.
const CONNECTIONS_MAX: usize = 32;
/// Links that may wait to be taken; more are closed.
const WAITING_MAX: usize = 8;

/// A link with its slot among the connections.
pub(crate) struct Arrival {
    pub(crate) link: Link,
    pub(crate) slot: Arc<ConnectionSlot>,
}

impl Bound {
    /// Accepts connections until `stop`, and hands over their links.
    pub(crate) fn hand_over(self, stop: &CancellationToken) -> mpsc::Receiver<Arrival> {
        let (arrived, arrivals) = mpsc::channel(WAITING_MAX);
        let slots = Arc::new(ConnectionSlots::new(CONNECTIONS_MAX));
        if let Some(endpoint) = self.quic {
            let arrived = arrived.clone();
            let serve = async move |link, slot| hand(&arrived, link, slot);
            spawn("quic-accept", accept::quic(endpoint, self.tls.fingerprint, slots.clone(), serve, stop.clone()));
        }
        let router = Router::new().route(PATH, any(answer)).with_state(arrived);
        let web = accept::Web::new(&self.tls, self.plain_everywhere, slots, router);
        spawn("accept", accept::tcp(self.tcp, web, stop.clone()));
        arrivals
    }
}

async fn answer(State(arrived): State<mpsc::Sender<Arrival>>, peer: Peer, request: Request) -> Result<Response, Text> {
    link_of(peer, request, async move |link, slot| hand(&arrived, link, slot))
}

fn hand(arrived: &mpsc::Sender<Arrival>, link: Link, slot: Arc<ConnectionSlot>) {
    // Too many wait: this one is closed.
    drop(arrived.try_send(Arrival { link, slot }));
}
