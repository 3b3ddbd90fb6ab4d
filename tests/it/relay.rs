//! A way for datagrams that can be blocked, as a firewall does: nothing is answered, nothing is refused.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{net::UdpSocket, task::JoinHandle};

/// Passes datagrams between one client and a gateway, while it is not blocked.
pub struct Relay {
    /// Where the client sends to.
    pub address: SocketAddr,
    blocked: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Relay {
    /// A way to this gateway.
    pub async fn to(gateway: SocketAddr) -> io::Result<Self> {
        let front = UdpSocket::bind("127.0.0.1:0").await?;
        let back = UdpSocket::bind("127.0.0.1:0").await?;
        back.connect(gateway).await?;
        let address = front.local_addr()?;
        let blocked = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(carry(front, back, blocked.clone()));
        Ok(Self { address, blocked, task })
    }

    /// From now on datagrams vanish, or pass again.
    pub fn block(&self, blocked: bool) {
        self.blocked.store(blocked, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(front: UdpSocket, back: UdpSocket, blocked: Arc<AtomicBool>) {
    let (mut up, mut down) = ([0; 2_048], [0; 2_048]);
    let mut client = None;
    loop {
        tokio::select! {
            Ok((length, peer)) = front.recv_from(&mut up) => {
                client = Some(peer);
                if !blocked.load(Ordering::Relaxed) {
                    drop(back.send(&up[..length]).await);
                }
            }
            Ok(length) = back.recv(&mut down) => {
                if let Some(client) = client.filter(|_| !blocked.load(Ordering::Relaxed)) {
                    drop(front.send_to(&down[..length], client).await);
                }
            }
        }
    }
}
