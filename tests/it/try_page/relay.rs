//! A TCP relay between page and gateway, whose connections a test breaks.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

#[derive(Clone, Copy, PartialEq)]
enum State {
    Whole,
    /// Nothing is forwarded, and nobody is told.
    Frozen,
    Cut,
}

/// Forwards connections to a port of this machine.
pub struct Relay {
    pub port: u16,
    gateway: Arc<AtomicU16>,
    state: watch::Sender<State>,
}

impl Relay {
    pub async fn start(gateway: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, seen) = watch::channel(State::Whole);
        let gateway = Arc::new(AtomicU16::new(gateway));
        let to = gateway.clone();
        tokio::spawn(async move {
            while let Ok((page, _)) = listener.accept().await {
                tokio::spawn(forward(page, to.load(Ordering::Relaxed), seen.clone()));
            }
        });
        Self { port, gateway, state }
    }

    /// Leads new connections to another gateway.
    pub fn lead_to(&self, gateway: u16) {
        self.gateway.store(gateway, Ordering::Relaxed);
    }

    /// Forwards nothing more, without closing anything.
    pub fn freeze(&self) {
        self.state.send_replace(State::Frozen);
    }

    /// Breaks all connections, and each new one at once.
    pub fn cut(&self) {
        self.state.send_replace(State::Cut);
    }

    /// Forwards again what is not cut, and new connections.
    pub fn mend(&self) {
        self.state.send_replace(State::Whole);
    }
}

/// Forwards one connection until it ends, is cut, or the relay is gone.
async fn forward(mut page: TcpStream, gateway: u16, mut state: watch::Receiver<State>) {
    let Ok(mut gateway) = TcpStream::connect(("127.0.0.1", gateway)).await else { return };
    loop {
        let now = *state.borrow_and_update();
        let forwarding = async {
            match now {
                // Either side may close.
                State::Whole => drop(copy_bidirectional(&mut page, &mut gateway).await),
                State::Frozen => std::future::pending().await,
                State::Cut => {}
            }
        };
        tokio::select! {
            biased;
            changed = state.changed() => if changed.is_err() { return },
            () = forwarding => return,
        }
    }
}
