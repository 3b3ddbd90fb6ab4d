//! A TCP connection behind a shaped network.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::Instant;

use super::path::{Path, micros};
use super::{Network, sleep_or_never};

/// Bytes that are delayed together: about what one packet of TCP carries.
const SEGMENT_BYTES_MAX: usize = 1_400;

/// Most segments under way: a window of 350 kB.
const FLYING_MAX: usize = 256;

/// Receive buffer of the socket: small, so that what waits does so in the queue of the network and not in the kernel.
const RECEIVE_BYTES: u32 = 4_096;

/// How long the gateway's end of a connection stands whose other end is gone.
const UNAWARE: Duration = Duration::from_secs(60);

/// Opens a connection through the network, which takes a round trip.
pub(crate) async fn connect(network: &Network, address: SocketAddr) -> io::Result<DuplexStream> {
    let mut changed = network.inner.changed.subscribe();
    while network.now().1.outage {
        network.change(&mut changed).await;
    }
    let (now_us, conditions) = network.now();
    sleep_or_never(Some(network.instant(now_us + 2 * micros(conditions.delay)))).await;
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_recv_buffer_size(RECEIVE_BYTES)?;
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(shape(stream, network))
}

fn shape(stream: TcpStream, network: &Network) -> DuplexStream {
    let (near, far) = tokio::io::duplex(SEGMENT_BYTES_MAX);
    let (up, down, cut) = network.connection();
    let (from_glasses, to_glasses) = tokio::io::split(far);
    let (from_gateway, to_gateway) = stream.into_split();
    let way = |is_up, path| Way { network: network.clone(), is_up, path, cut };
    tokio::spawn(way(true, up).carry(from_glasses, to_gateway));
    tokio::spawn(way(false, down).carry(from_gateway, to_glasses));
    near
}

/// One direction of a connection.
struct Way {
    network: Network,
    is_up: bool,
    path: Path,
    cut: Option<Instant>,
}

impl Way {
    /// Moves bytes until the sender is done or the connection breaks: at its time, or with a new address.
    async fn carry(mut self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
        let addresses = self.network.addresses();
        let mut changed = self.network.inner.changed.subscribe();
        let mut flying: VecDeque<(u64, Bytes)> = VecDeque::new();
        let mut buffer = [0; SEGMENT_BYTES_MAX];
        let mut open = true;
        while open || !flying.is_empty() {
            if self.network.addresses() != addresses {
                return self.abandon(from, to).await;
            }
            let due = flying.front().map(|(at_us, _)| self.network.instant(*at_us));
            let (outage, room) = self.room();
            let can_read = open && !outage && room.is_none() && flying.len() < FLYING_MAX;
            tokio::select! {
                biased;
                () = sleep_or_never(self.cut) => return,
                () = sleep_or_never(due), if !outage => {
                    if let Some((_, bytes)) = flying.pop_front()
                        && to.write_all(&bytes).await.is_err()
                    {
                        return;
                    }
                }
                read = from.read(&mut buffer), if can_read => match read {
                    Ok(length) if length > 0 => flying.push_back(self.send(&buffer[..length])),
                    _ => open = false,
                },
                () = sleep_or_never(room) => {}
                () = self.network.change(&mut changed) => {}
            }
        }
        drop(to.shutdown().await);
    }

    /// The glasses know that their address is gone; nobody tells the gateway.
    async fn abandon(self, from: impl AsyncRead, to: impl AsyncWrite) {
        let unaware = Some(Instant::now() + UNAWARE);
        if self.is_up {
            drop(from);
            sleep_or_never(unaware).await;
        } else {
            drop(to);
            sleep_or_never(unaware).await;
        }
    }

    /// Whether nothing passes, and when the full queue has room again.
    fn room(&self) -> (bool, Option<Instant>) {
        let (now_us, conditions) = self.network.now();
        let rate = if self.is_up { conditions.up } else { conditions.down };
        let over_us = rate.map_or(0, |rate| self.path.waits_us(now_us).saturating_sub(micros(rate.queue)));
        (conditions.outage, (over_us > 0).then(|| self.network.instant(now_us + over_us)))
    }

    fn send(&mut self, bytes: &[u8]) -> (u64, Bytes) {
        let (now_us, conditions) = self.network.now();
        let rate = if self.is_up { conditions.up } else { conditions.down };
        (self.path.segment(now_us, bytes.len(), rate, &conditions), Bytes::copy_from_slice(bytes))
    }
}
