//! The attacker.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use firmware_sim::transport::{self, Scheme, Target};
use quinn::crypto::rustls::QuicClientConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::common::{argument, number};
use crate::relay;

/// Connections, or handshakes, of an attack: a thousand, fifty a second, or more in a shorter run.
pub const CONNECTIONS: u32 = 1_000;
const CONNECT_EVERY_MAX: Duration = Duration::from_millis(20);
/// Addresses that an attacker has: those of a room full of strangers.
const SOURCES: u8 = 8;
/// Connections of a flood at once; each is opened anew a moment after it was closed.
const FLOODING: u8 = 8;
const AGAIN: Duration = Duration::from_millis(50);
/// Pings at once on each of these connections, and how often: 20,000 a second.
const PINGS: usize = 100;
const PINGS_EVERY: Duration = Duration::from_millis(40);
/// Bytes of a padded message, and how often each of these connections sends one: 20 MB a second.
const PADDED_BYTES: usize = 300 * 1024;
const PADDED_EVERY: Duration = Duration::from_millis(120);
/// Streams that are opened and reset at once, and how often: 4,000 a second.
const RESETS: usize = 20;
const RESETS_EVERY: Duration = Duration::from_millis(40);

/// How many connections were opened, and how many of them the gateway has closed by now.
#[derive(Default)]
struct Counts {
    opened: AtomicU64,
    closed: AtomicU64,
    sent: AtomicU64,
}

fn count(counter: &AtomicU64, more: usize) {
    counter.fetch_add(more as u64, Ordering::Relaxed);
}

fn source(number: usize) -> std::net::Ipv4Addr {
    [127, 0, 0, 2 + (number % usize::from(SOURCES)) as u8].into()
}

/// Attacks with this one of the attacks until the time is over.
pub async fn attack(name: &str) -> Result<()> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let target = |name: &str| -> Result<SocketAddr> {
        let target: Target = argument(name).context("a target")?.parse()?;
        Ok(SocketAddr::new(target.host.parse()?, target.port))
    };
    let (web, quic) = (target("--web")?, target("--quic")?);
    let counts = Arc::new(Counts::default());
    let seconds = number("--seconds", 25)?;
    // All are there when three quarters of the time are over.
    let every = CONNECT_EVERY_MAX.min(Duration::from_secs(seconds) * 3 / 4 / CONNECTIONS).max(Duration::from_millis(1));
    println!("begun");
    let flooding = async {
        match name {
            "silent-upgrades" => many(&counts, every, move |number, counts| silent(web, number, counts)).await,
            "half-tls" => many(&counts, every, move |number, counts| half_tls(web, number, counts)).await,
            "half-quic" => many(&counts, every, move |number, counts| half_quic(quic, number, counts)).await,
            "slow-loris" => many(&counts, every, move |number, counts| slow(web, number, counts)).await,
            "pings" => again(&counts, move |number, counts| pings(web, number, counts)).await,
            "padded-json" => again(&counts, move |number, counts| padded(web, number, counts)).await,
            "reset-streams" => again(&counts, move |number, counts| resets(quic, number, counts)).await,
            name => bail!("no attack {name}"),
        }
        Ok(())
    };
    match timeout(Duration::from_secs(seconds), flooding).await {
        Ok(done) => done?,
        Err(_elapsed) => {}
    }
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (opened, closed, sent) = (get(&counts.opened), get(&counts.closed), get(&counts.sent));
    println!("{opened} connections, {closed} closed by the gateway, {sent} sent on them");
    Ok(())
}

/// A thousand connections, one after the other; all stay as long as they may.
async fn many<F>(counts: &Arc<Counts>, every: Duration, one: impl Fn(usize, Arc<Counts>) -> F)
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    let mut ticks = interval(every);
    for number in 0..CONNECTIONS as usize {
        ticks.tick().await;
        let counts = counts.clone();
        let held = one(number, counts.clone());
        tasks.spawn(async move {
            drop(held.await);
            count(&counts.closed, 1);
        });
    }
    while tasks.join_next().await.is_some() {}
    std::future::pending().await
}

/// A few connections that are opened again and again.
async fn again<F>(counts: &Arc<Counts>, one: impl Fn(usize, Arc<Counts>) -> F + Clone + Send + 'static)
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for number in 0..usize::from(FLOODING) {
        let (counts, one) = (counts.clone(), one.clone());
        tasks.spawn(async move {
            loop {
                drop(one(number, counts.clone()).await);
                count(&counts.closed, 1);
                sleep(AGAIN).await;
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

async fn connect(web: SocketAddr, number: usize, counts: &Counts) -> Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(source(number).into(), 0))?;
    let stream = socket.connect(web).await?;
    count(&counts.opened, 1);
    Ok(stream)
}

/// Reads until the gateway closes.
async fn until_closed(stream: &mut (impl tokio::io::AsyncRead + Unpin)) {
    let mut bytes = [0; 1_024];
    while stream.read(&mut bytes).await.is_ok_and(|length| length > 0) {}
}

async fn upgraded(web: SocketAddr, number: usize, counts: &Counts, protocol: &str) -> Result<TcpStream> {
    let mut stream = connect(web, number, counts).await?;
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {web}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n",
        device_protocol::PATH
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

async fn silent(web: SocketAddr, number: usize, counts: Arc<Counts>) -> Result<()> {
    until_closed(&mut upgraded(web, number, &counts, "lorgnette.v1").await?).await;
    Ok(())
}

async fn half_tls(web: SocketAddr, number: usize, counts: Arc<Counts>) -> Result<()> {
    let mut stream = connect(web, number, &counts).await?;
    // A record of 512 bytes with the beginning of a ClientHello.
    stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]).await?;
    until_closed(&mut stream).await;
    Ok(())
}

/// A whole first packet, from an address that answers nothing.
async fn half_quic(quic: SocketAddr, number: usize, counts: Arc<Counts>) -> Result<()> {
    let client = UdpSocket::bind("127.0.0.1:0").await?;
    let target =
        Target { scheme: Scheme::Quic, host: "127.0.0.1".into(), port: client.local_addr()?.port(), path: "/".into() };
    let mut packet = vec![0; 2_048];
    let length = tokio::select! {
        _ = transport::open(&target) => bail!("nobody is there"),
        received = client.recv(&mut packet) => received?,
    };
    let socket = UdpSocket::bind((source(number), 0)).await?;
    socket.send_to(&packet[..length], quic).await?;
    count(&counts.opened, 1);
    // The gateway's packets come here until it gives up.
    while timeout(Duration::from_secs(20), socket.recv(&mut packet)).await.is_ok_and(|received| received.is_ok()) {}
    Ok(())
}

async fn slow(web: SocketAddr, number: usize, counts: Arc<Counts>) -> Result<()> {
    let stream = connect(web, number, &counts).await?;
    let (mut read, mut write) = stream.into_split();
    let sending = async {
        write.write_all(format!("GET / HTTP/1.1\r\nHost: {web}\r\nX-Slow: ").as_bytes()).await?;
        loop {
            sleep(Duration::from_secs(1)).await;
            write.write_all(b"a").await?;
            count(&counts.sent, 1);
        }
    };
    tokio::select! {
        ended = sending => ended,
        () = until_closed(&mut read) => Ok(()),
    }
}

/// Writes the same bytes again and again.
async fn flood(stream: TcpStream, bytes: &[u8], every: Duration, (counts, each): (&Counts, usize)) -> Result<()> {
    let (mut read, mut write) = stream.into_split();
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let sending = async {
        loop {
            ticks.tick().await;
            write.write_all(bytes).await?;
            count(&counts.sent, each);
        }
    };
    tokio::select! {
        ended = sending => ended,
        () = until_closed(&mut read) => Ok(()),
    }
}

async fn pings(web: SocketAddr, number: usize, counts: Arc<Counts>) -> Result<()> {
    let stream = upgraded(web, number, &counts, "lorgnette.v1").await?;
    let pings = [0x89, 0x80, 1, 2, 3, 4].repeat(PINGS);
    flood(stream, &pings, PINGS_EVERY, (&counts, PINGS)).await
}

async fn padded(web: SocketAddr, number: usize, counts: Arc<Counts>) -> Result<()> {
    let stream = upgraded(web, number, &counts, "lorgnette.v1+json").await?;
    let mut text =
        br#"{"kind":"heartbeat","kind_number":3,"sequence":0,"turn":0,"time_us":1,"echo_us":0,"held_us":0}"#.to_vec();
    text.resize(PADDED_BYTES, b' ');
    // One text frame, masked with zeros.
    let mut frame = vec![0x81, 0xff];
    frame.extend((text.len() as u64).to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(text);
    flood(stream, &frame, PADDED_EVERY, (&counts, 1)).await
}

async fn resets(quic: SocketAddr, number: usize, counts: Arc<Counts>) -> Result<()> {
    let mut tls = relay::client();
    tls.alpn_protocols = vec![device_protocol::ALPN.to_vec()];
    let mut endpoint = quinn::Endpoint::client(SocketAddr::new(source(number).into(), 0))?;
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)));
    let connection = endpoint.connect(quic, "localhost")?.await?;
    count(&counts.opened, 1);
    let (mut control, _answers) = connection.open_bi().await?;
    // A piece of a frame, so that the gateway knows of the stream.
    control.write_all(&[1]).await?;
    let mut ticks = interval(RESETS_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for _ in 0..RESETS {
            let mut stream = connection.open_uni().await?;
            stream.write_all(&[0; 64]).await?;
            stream.reset(quinn::VarInt::from_u32(1))?;
            count(&counts.sent, 1);
        }
    }
}
