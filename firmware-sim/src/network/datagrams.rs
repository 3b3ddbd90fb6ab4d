//! A UDP socket for QUIC, behind a shaped network.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use super::{Network, sleep_or_never};

/// Most datagrams between the socket and its network, and most in the network: a second of a fast sender.
const WAITING_MAX: usize = 2_048;

/// Most bytes of one datagram.
const DATAGRAM_BYTES_MAX: usize = 2_048;

/// Last of the addresses that glasses move to and fro on.
const LAST_HOST: u8 = 254;

/// A datagram, and who it is to or from.
type Datagram = (SocketAddr, Bytes);

/// The near end of the network.
#[derive(Debug)]
pub(crate) struct Datagrams {
    local: SocketAddr,
    up: mpsc::Sender<Datagram>,
    down: Mutex<mpsc::Receiver<Datagram>>,
}

impl Datagrams {
    /// A socket that reaches `peer` through this network.
    pub(crate) async fn open(network: &Network, peer: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(any(peer)).await?;
        let local = socket.local_addr()?;
        let (up, sent) = mpsc::channel(WAITING_MAX);
        let (received, down) = mpsc::channel(WAITING_MAX);
        tokio::spawn(carry(network.clone(), socket, sent, received));
        Ok(Self { local, up, down: Mutex::new(down) })
    }
}

/// Any free port in the peer's family of addresses.
pub(crate) fn any(peer: SocketAddr) -> SocketAddr {
    if peer.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() }
}

/// Where a socket on `local` goes on when its address changes. The whole of 127.0.0.0/8 is this machine on Linux: towards a
/// peer in there it is the next address. Elsewhere it is another port.
pub(crate) fn elsewhere(local: SocketAddr, peer: SocketAddr) -> SocketAddr {
    match (local.ip(), peer.ip()) {
        (IpAddr::V4(local), IpAddr::V4(peer)) if peer.is_loopback() && cfg!(target_os = "linux") => {
            // A socket without an address sends from 127.0.0.1.
            let last = if local.is_loopback() { local.octets()[3] } else { 1 };
            (Ipv4Addr::new(127, 0, 0, if last < LAST_HOST { last + 1 } else { 2 }), 0).into()
        }
        _ => any(peer),
    }
}

impl AsyncUdpSocket for Datagrams {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(AlwaysWritable)
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        // As any UDP socket it drops what it has no room for.
        drop(self.up.try_send((transmit.destination, Bytes::copy_from_slice(transmit.contents))));
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut down = self.down.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(buffer), Some(meta)) = (buffers.first_mut(), meta.first_mut()) else { return Poll::Ready(Ok(0)) };
        match down.poll_recv(cx) {
            Poll::Pending => Poll::Pending,
            // The connection was cut.
            Poll::Ready(None) => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Poll::Ready(Some((addr, bytes))) => {
                let len = bytes.len().min(buffer.len());
                buffer[..len].copy_from_slice(&bytes[..len]);
                *meta = RecvMeta { addr, len, stride: len, ecn: None, dst_ip: None };
                Poll::Ready(Ok(1))
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }
}

#[derive(Debug)]
struct AlwaysWritable;

impl UdpPoller for AlwaysWritable {
    fn poll_writable(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A datagram on its way, by its arrival; those of the same time keep their order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct InFlight {
    at_us: u64,
    order: u64,
    is_up: bool,
    peer: SocketAddr,
    bytes: Bytes,
}

async fn carry(
    network: Network,
    mut socket: UdpSocket,
    mut up: mpsc::Receiver<Datagram>,
    down: mpsc::Sender<Datagram>,
) {
    let (mut up_path, mut down_path, cut) = network.connection();
    let mut addresses = network.addresses();
    let mut flying: BinaryHeap<Reverse<InFlight>> = BinaryHeap::new();
    let mut buffer = [0; DATAGRAM_BYTES_MAX];
    let (mut order, mut open) = (0, true);
    while open || !flying.is_empty() {
        let due = flying.peek().map(|Reverse(first)| network.instant(first.at_us));
        let (is_up, (peer, bytes)) = tokio::select! {
            biased;
            () = sleep_or_never(cut) => return,
            () = sleep_or_never(due) => {
                if let Some(Reverse(first)) = flying.pop() {
                    if first.is_up {
                        // The address is unreachable, or the buffer full: lost.
                        drop(socket.send_to(&first.bytes, first.peer).await);
                    } else {
                        drop(down.try_send((first.peer, first.bytes)));
                    }
                }
                continue;
            }
            datagram = up.recv(), if open => match datagram {
                Some(datagram) => (true, datagram),
                None => {
                    open = false;
                    continue;
                }
            },
            received = socket.recv_from(&mut buffer), if open => match received {
                Ok((length, peer)) => (false, (peer, Bytes::copy_from_slice(&buffer[..length]))),
                // The answer of a port that is closed.
                Err(_) => continue,
            },
        };
        if addresses != network.addresses() {
            addresses = network.addresses();
            // Without a free port the address stays.
            if let Ok(local) = socket.local_addr()
                && let Ok(moved) = UdpSocket::bind(elsewhere(local, peer)).await
            {
                socket = moved;
            }
        }
        let (now_us, conditions) = network.now();
        let (path, rate) = if is_up { (&mut up_path, conditions.up) } else { (&mut down_path, conditions.down) };
        for at_us in path.datagram(now_us, bytes.len(), rate, &conditions).into_iter().flatten() {
            if flying.len() < WAITING_MAX {
                order += 1;
                flying.push(Reverse(InFlight { at_us, order, is_up, peer, bytes: bytes.clone() }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Conditions, Profile};
    use super::*;

    async fn receive(socket: &Datagrams) -> Bytes {
        let mut buffer = [0; 64];
        let mut meta = [RecvMeta::default()];
        let received = std::future::poll_fn(|cx| socket.poll_recv(cx, &mut [IoSliceMut::new(&mut buffer)], &mut meta));
        assert_eq!(received.await.unwrap(), 1);
        Bytes::copy_from_slice(&buffer[..meta[0].len])
    }

    fn send(socket: &Datagrams, destination: SocketAddr, contents: &[u8]) {
        socket.try_send(&Transmit { destination, ecn: None, contents, segment_size: None, src_ip: None }).unwrap();
    }

    #[test]
    fn who_moves_has_another_address_where_there_are_several() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let here = |last: u8| {
            if cfg!(target_os = "linux") { address(&format!("127.0.0.{last}:0")) } else { any(address("127.0.0.1:9")) }
        };
        for (local, peer, moved) in [
            ("0.0.0.0:5", "127.0.0.1:9", here(2)),
            ("127.0.0.1:5", "127.0.0.1:9", here(2)),
            ("127.0.0.2:5", "127.0.0.1:9", here(3)),
            ("127.0.0.254:5", "127.0.0.1:9", here(2)),
            ("0.0.0.0:5", "192.0.2.1:9", address("0.0.0.0:0")),
            ("192.0.2.7:5", "192.0.2.1:9", address("0.0.0.0:0")),
            ("[::]:5", "[::1]:9", address("[::]:0")),
        ] {
            assert_eq!(elsewhere(address(local), address(peer)), moved, "{local} -> {peer}");
        }
    }

    #[tokio::test]
    async fn datagrams_pass_both_ways_and_come_from_another_address_after_a_move() {
        let far = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let peer = far.local_addr().unwrap();
        let network = Network::start(Profile::steady(Conditions::default()), 1);
        let near = Datagrams::open(&network, peer).await.unwrap();
        let mut buffer = [0; 64];
        send(&near, peer, b"up");
        let (length, first) = far.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"up");
        far.send_to(b"down", first).await.unwrap();
        assert_eq!(receive(&near).await, "down");
        network.change_address();
        send(&near, peer, b"moved");
        let (length, second) = far.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"moved");
        assert_ne!(first, second);
        assert_eq!(first.ip() == second.ip(), cfg!(not(target_os = "linux")), "{first}, {second}");
        far.send_to(b"again", second).await.unwrap();
        assert_eq!(receive(&near).await, "again");
    }
}
