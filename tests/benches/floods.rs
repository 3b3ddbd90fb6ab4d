//! Strangers who flood the gateway while others talk: how much later their frames are dealt with.
//!
//! `cargo xtask bench floods [--attack NAME] [--glasses 10] [--seconds 25] [--rounds 2]`
//!
//! The frame delay is what a pair of glasses sees: from the moment it sends a frame until the gateway's answer to this
//! frame has arrived. The frame is a mute or unmute, which is read, decided in the core and answered at once. Between
//! these frames the glasses say sentences and hear the answers, each at its own time; their microphones are never off the
//! air. The delays of a run without an attack are taken directly before each attack, from the same glasses; rounds of
//! both are counted together.
//!
//! Glasses and attacker are programs of their own on the same machine: what the attacker's own work takes from the
//! processors is part of the delays. So its rates are named and bounded.

mod common;
#[path = "../it/identity/relay.rs"]
#[allow(dead_code, reason = "of these parts one is used")]
mod relay;

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use audio::codec::Codec;
use common::voices::Speaker;
use common::{House, argument, quantile};
use firmware_sim::microphone::{CLIP_HZ, Clip, Sound, encode_all, voiced_end_us};
use firmware_sim::random::Random;
use firmware_sim::transport::{self, Scheme, Target};
use firmware_sim::{Glasses, Options, Seen};
use quinn::crypto::rustls::QuicClientConfig;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

const SENTENCE: &str = "Hey Mentra, what is fifteen percent of eighty?";
const FRAME_US: u64 = 20_000;
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// Frames that are timed after each answer, and the time between two.
const TIMED: usize = 40;
const TIMED_EVERY: Duration = Duration::from_millis(100);
/// How long a frame may wait for its answer before it counts as this long.
const DELAY_MAX: Duration = Duration::from_secs(2);
/// By how much the 99th percentile may grow, in milliseconds.
const GROWTH_MS_MAX: f64 = 20.0;

/// Connections, or handshakes, of an attack: a thousand, fifty a second.
const CONNECTIONS: usize = 1_000;
const CONNECT_EVERY: Duration = Duration::from_millis(20);
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

const ATTACKS: [(&str, &str); 7] = [
    ("silent-upgrades", "1,000 WebSockets, 50/s, that say nothing"),
    ("half-tls", "1,000 TLS handshakes, 50/s, that stop after their first bytes"),
    ("half-quic", "1,000 QUIC handshakes, 50/s, that stop after their first packet"),
    ("slow-loris", "1,000 requests, 50/s, each with one byte a second"),
    ("pings", "8 WebSockets with 2,500 pings/s each, opened again when closed"),
    ("padded-json", "8 WebSockets with 2.5 MB/s of padded JSON each, opened again when closed"),
    ("reset-streams", "8 QUIC connections with 500 reset streams/s each, opened again when closed"),
];

fn main() -> Result<()> {
    if let Some(name) = argument("--flood") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(attack(&name));
    }
    if argument("--devices").is_some() {
        return common::runtime()?.block_on(devices());
    }
    common::calibrate("before")?;
    common::runtime()?.block_on(run())
}

fn number(name: &str, otherwise: u64) -> Result<u64> {
    argument(name).map_or(Ok(otherwise), |text| text.parse().with_context(|| format!("{name} {text}")))
}

/// The delays of one run, and what became of the sentences.
#[derive(Debug, Default)]
struct Delays {
    us: Vec<i64>,
    said: u64,
    answered: u64,
    lost: u64,
}

impl Delays {
    fn line(&self) -> String {
        let us: Vec<String> = self.us.iter().map(ToString::to_string).collect();
        format!("{} {} {} {}", self.said, self.answered, self.lost, us.join(" "))
    }

    fn parse(line: &str) -> Result<Self> {
        let mut numbers = line.split_whitespace().map(str::parse::<i64>);
        let mut next = || numbers.next().context("a number")?.map_err(anyhow::Error::from);
        let (said, answered, lost) = (next()? as u64, next()? as u64, next()? as u64);
        Ok(Self { us: numbers.collect::<Result<_, _>>()?, said, answered, lost })
    }

    fn add(&mut self, other: Self) {
        self.us.extend(other.us);
        (self.said, self.answered, self.lost) =
            (self.said + other.said, self.answered + other.answered, self.lost + other.lost);
    }

    fn ms(&mut self, share: f64) -> f64 {
        quantile(&mut self.us, share).unwrap_or(0) as f64 / 1e3
    }
}

/// A second program, seen from the first.
struct Other {
    process: Child,
    commands: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(house: &House, arguments: &[&str]) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(arguments)
            .args(["--web", &house.target(Scheme::Ws)?.to_string(), "--quic", &house.target(Scheme::Quic)?.to_string()])
            .arg("--folder")
            .arg(house.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let commands = process.stdin.take().context("its standard input")?;
        let said = BufReader::new(process.stdout.take().context("its standard output")?).lines();
        Ok(Self { process, commands, said })
    }

    async fn line(&mut self) -> Result<String> {
        self.said.next_line().await?.context("the program ended")
    }

    async fn measure(&mut self, seconds: u64) -> Result<Delays> {
        self.commands.write_all(format!("{seconds}\n").as_bytes()).await?;
        Delays::parse(&self.line().await?)
    }
}

async fn run() -> Result<()> {
    let (glasses, seconds, rounds) =
        (number("--glasses", 10)?, number("--seconds", 25)?, number("--rounds", 2)?.max(1));
    let only = argument("--attack");
    let known = |name: &str| ATTACKS.iter().any(|(other, _)| *other == name);
    ensure!(only.as_deref().is_none_or(known), "no such attack; there are: {:?}", ATTACKS.map(|(name, _)| name));
    let house = House::start("").await?;
    let mut devices = Other::start(&house, &["--devices", &glasses.to_string()])?;
    for number in 0..glasses {
        let fingerprint = devices.line().await?;
        house.pair(&fingerprint, &format!("user-{number}"));
        ensure!(devices.line().await? == "welcomed", "glasses {number} were not welcomed");
    }
    // Warm caches are part of the comparison.
    devices.measure(seconds.min(10)).await?;
    println!("{glasses} glasses, {rounds} x {seconds} s each without and with the attack; frame delay in ms");
    println!(
        "{:16} {:>6} {:>8} {:>8} {:>6} {:>8} {:>8} {:>8}  sentences answered",
        "attack", "frames", "median", "p99", "frames", "median", "p99", "growth"
    );
    let mut too_much = Vec::new();
    for (name, about) in ATTACKS.into_iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name)) {
        let (mut before, mut during, mut cores) = (Delays::default(), Delays::default(), (0.0, 0.0));
        let mut counts = String::new();
        for _ in 0..rounds {
            before.add(devices.measure(seconds).await?);
            let mut attacker = Other::start(&house, &["--flood", name, "--seconds", &(seconds + 2).to_string()])?;
            ensure!(attacker.line().await? == "begun", "the attack did not begin");
            let process = attacker.process.id().context("it runs")?.to_string();
            let own = (common::cpu_us("self"), common::cpu_us(&process));
            during.add(devices.measure(seconds).await?);
            let share = |us: u64| us as f64 / 1e6 / (rounds * seconds) as f64;
            cores.0 += share(common::cpu_us("self") - own.0);
            cores.1 += share(common::cpu_us(&process) - own.1);
            counts = attacker.line().await?;
            drop(attacker.process.wait().await);
        }
        let growth = during.ms(0.99) - before.ms(0.99);
        println!(
            "{name:16} {:6} {:8.2} {:8.2} {:6} {:8.2} {:8.2} {growth:+8.2}  {}/{} then {}/{}, {} sessions lost",
            before.us.len(),
            before.ms(0.5),
            before.ms(0.99),
            during.us.len(),
            during.ms(0.5),
            during.ms(0.99),
            before.answered,
            before.said,
            during.answered,
            during.said,
            before.lost + during.lost
        );
        println!("{:16} {about}: {}; processor: gateway {:.2} cores, attacker {:.2}", "", counts, cores.0, cores.1);
        if growth > GROWTH_MS_MAX || before.lost + during.lost > 0 {
            too_much.push(name);
        }
    }
    house.running.stop().await;
    ensure!(too_much.is_empty(), "more than {GROWTH_MS_MAX} ms, or sessions that were lost: {too_much:?}");
    Ok(())
}

// The glasses.

async fn devices() -> Result<()> {
    let count = number("--devices", 10)?;
    let folder = std::path::PathBuf::from(argument("--folder").context("--folder")?);
    let targets: [Target; 2] =
        [argument("--web").context("--web")?.parse()?, argument("--quic").context("--quic")?.parse()?];
    let encode = |pcm: &[i16]| encode_all(pcm, Codec::Opus, CLIP_HZ, FRAME_US).map_err(anyhow::Error::msg);
    let pcm = Speaker::HIBARI.say(SENTENCE, &folder)?;
    let clip = Clip { label: "sum".to_owned(), voiced_us: voiced_end_us(&pcm), sound: Sound::Packets(encode(&pcm)?) };
    let silence = encode(&vec![0; CLIP_HZ as usize])?;
    let mut glasses = Vec::new();
    for number in 0..count {
        let target = targets[number as usize % 2].clone();
        let mut options = Options::new(target, &folder.join(format!("glasses-{number}")));
        options.decode = false;
        options.reconnect = false;
        options.silence = Some(silence.clone());
        options.seed = number;
        let mut one = Glasses::start(options)?;
        println!("{}", one.fingerprint());
        one.welcomed().await?;
        println!("welcomed");
        glasses.push(Arc::new(one));
    }
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Some(seconds) = commands.next_line().await? {
        let ends = Instant::now() + Duration::from_secs(seconds.parse()?);
        let mut tasks = JoinSet::new();
        for (number, one) in glasses.iter().enumerate() {
            tasks.spawn(live(one.clone(), clip.clone(), number as u64, ends));
        }
        let mut all = Delays::default();
        while let Some(of_one) = tasks.join_next().await {
            all.add(of_one??);
        }
        println!("{}", all.line());
    }
    Ok(())
}

/// Says sentences, and times frames between them.
async fn live(glasses: Arc<Glasses>, clip: Clip, seed: u64, ends: Instant) -> Result<Delays> {
    let mut delays = Delays::default();
    let mut random = Random::new(seed + 1);
    // Glasses that all spoke at once would measure a queue that no house has.
    sleep(Duration::from_millis(random.below(4_000))).await;
    while Instant::now() < ends {
        let mark = glasses.log().mark();
        if glasses.say(clip.clone()).await.is_err() {
            delays.lost += 1;
            break;
        }
        delays.said += 1;
        let whole = glasses.log().find(mark, |event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. }));
        delays.answered += u64::from(timeout(ANSWER_MAX, whole).await.is_ok());
        let mut frames = interval(TIMED_EVERY);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for number in 0..TIMED {
            frames.tick().await;
            if Instant::now() >= ends && number % 2 == 0 {
                break;
            }
            delays.us.push(delay_us(&glasses, number % 2 == 0).await?);
        }
    }
    Ok(delays)
}

/// The delay of one frame.
async fn delay_us(glasses: &Glasses, muted: bool) -> Result<i64> {
    let mark = glasses.log().mark();
    let sent_us = glasses.now_us();
    glasses.mute(muted).await?;
    let is_answer = |state: &str| (state == "muted") == muted;
    let answer =
        glasses.log().find(mark, |event| matches!(&event.seen, Seen::Listening { state, .. } if is_answer(state)));
    Ok(match timeout(DELAY_MAX, answer).await {
        Ok((event, _)) => event.at_us.saturating_sub(sent_us) as i64,
        Err(_) => DELAY_MAX.as_micros() as i64,
    })
}

// The attacker.

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

async fn attack(name: &str) -> Result<()> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let target = |name: &str| -> Result<SocketAddr> {
        let target: Target = argument(name).context("a target")?.parse()?;
        Ok(SocketAddr::new(target.host.parse()?, target.port))
    };
    let (web, quic) = (target("--web")?, target("--quic")?);
    let counts = Arc::new(Counts::default());
    println!("begun");
    let flooding = async {
        match name {
            "silent-upgrades" => many(&counts, move |number, counts| silent(web, number, counts)).await,
            "half-tls" => many(&counts, move |number, counts| half_tls(web, number, counts)).await,
            "half-quic" => many(&counts, move |number, counts| half_quic(quic, number, counts)).await,
            "slow-loris" => many(&counts, move |number, counts| slow(web, number, counts)).await,
            "pings" => again(&counts, move |number, counts| pings(web, number, counts)).await,
            "padded-json" => again(&counts, move |number, counts| padded(web, number, counts)).await,
            "reset-streams" => again(&counts, move |number, counts| resets(quic, number, counts)).await,
            name => bail!("no attack {name}"),
        }
        Ok(())
    };
    match timeout(Duration::from_secs(number("--seconds", 25)?), flooding).await {
        Ok(done) => done?,
        Err(_elapsed) => {}
    }
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (opened, closed, sent) = (get(&counts.opened), get(&counts.closed), get(&counts.sent));
    println!("{opened} connections, {closed} closed by the gateway, {sent} sent on them");
    Ok(())
}

/// A thousand connections, one after the other; all stay as long as they may.
async fn many<F>(counts: &Arc<Counts>, one: impl Fn(usize, Arc<Counts>) -> F)
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    let mut ticks = interval(CONNECT_EVERY);
    for number in 0..CONNECTIONS {
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
