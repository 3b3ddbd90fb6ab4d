//! Strangers who flood the gateway while others talk: how much later their frames are dealt with.
//!
//! `cargo xtask bench floods [--attack NAME] [--glasses 10] [--seconds 25] [--rounds 2]`
//!
//! The frame delay is what a pair of glasses sees: from the moment it sends a frame until the gateway's answer to this
//! frame has arrived. The frame is a mute or unmute, which is read, decided in the core and answered at once. Between
//! these frames the glasses say sentences and hear the answers, each at its own time; their microphones are never off the
//! air. The delays of a run without an attack are taken directly before each attack, from the same glasses; rounds of
//! both are counted together. Two more pairs, one on each transport, lose their link every 2 s and come back.
//!
//! It ends with an error where the 99th percentile grows by more than 20 ms, a session is lost, a sentence is not answered,
//! glasses that come back are not welcomed within a second or begin anew, or the attack was smaller than it is said to be.
//!
//! Glasses and attacker are programs of their own on the same machine: what the attacker's own work takes from the
//! processors is part of the delays. So its rates are named and bounded.

#[path = "floods/attacks.rs"]
mod attacks;
mod common;
#[path = "../it/identity/relay.rs"]
#[allow(dead_code, reason = "of these parts one is used")]
mod relay;

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use attacks::CONNECTIONS;
use audio::codec::Codec;
use common::voices::Speaker;
use common::{ANY_SILENCE, TestGateway, argument, number, quantile};
use firmware_sim::microphone::{CLIP_HZ, Clip, Sound, encode_all, voiced_end_us};
use firmware_sim::random::Random;
use firmware_sim::transport::{Scheme, Target};
use firmware_sim::{Event, Glasses, Options, Seen};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
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

/// How often a pair of glasses loses its link, and how soon it has to be welcomed again.
const RETURN_EVERY: Duration = Duration::from_secs(2);
const RETURN_US_MAX: i64 = 1_000_000;
/// Pairs of glasses that do: one on each transport.
const RETURNING: u64 = 2;

const ATTACKS: [(&str, &str); 7] = [
    ("silent-upgrades", "1,000 WebSockets that say nothing"),
    ("half-tls", "1,000 TLS handshakes that stop after their first bytes"),
    ("half-quic", "1,000 QUIC handshakes that stop after their first packet"),
    ("slow-loris", "1,000 requests, each with one byte a second"),
    ("pings", "8 WebSockets with 2,500 pings/s each, opened again when closed"),
    ("padded-json", "8 WebSockets with 2.5 MB/s of padded JSON each, opened again when closed"),
    ("reset-streams", "8 QUIC connections with 500 reset streams/s each, opened again when closed"),
];

fn main() -> Result<()> {
    if let Some(name) = argument("--flood") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return runtime.block_on(attacks::attack(&name));
    }
    if argument("--devices").is_some() {
        return common::runtime()?.block_on(devices());
    }
    common::calibrate("before")?;
    common::runtime()?.block_on(run())
}

/// The delays of one run, and what became of the sentences.
#[derive(Debug, Default)]
struct Delays {
    us: Vec<i64>,
    said: u64,
    answered: u64,
    lost: u64,
    /// From the attempt to come back to the welcome.
    back_us: Vec<i64>,
    /// Returns after which a session began anew.
    anew: u64,
}

impl Delays {
    fn line(&self) -> String {
        let numbers = |of: &[i64]| of.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let Self { said, answered, lost, anew, .. } = self;
        format!("{said} {answered} {lost} {anew};{};{}", numbers(&self.back_us), numbers(&self.us))
    }

    fn parse(line: &str) -> Result<Self> {
        let numbers =
            |text: &str| -> Result<Vec<i64>> { Ok(text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?) };
        let mut parts = line.split(';');
        let mut next = || parts.next().context("a part of the line is missing").and_then(numbers);
        let (counts, back_us, us) = (next()?, next()?, next()?);
        let &[said, answered, lost, anew] = counts.as_slice() else { bail!("{counts:?} are no four counts") };
        let [said, answered, lost, anew] = [said, answered, lost, anew].map(|count| count as u64);
        Ok(Self { us, said, answered, lost, back_us, anew })
    }

    fn add(&mut self, other: Self) {
        self.us.extend(other.us);
        self.back_us.extend(other.back_us);
        self.said += other.said;
        self.answered += other.answered;
        self.lost += other.lost;
        self.anew += other.anew;
    }

    /// What is not as it has to be.
    fn broken(&mut self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.lost > 0 {
            broken.push(format!("{} sessions lost", self.lost));
        }
        if self.answered < self.said {
            broken.push(format!("{} of {} sentences answered", self.answered, self.said));
        }
        match quantile(&mut self.back_us, 1.0) {
            None => broken.push("nobody came back".to_owned()),
            Some(us) if us > RETURN_US_MAX => broken.push(format!("welcomed again after {} ms", us / 1_000)),
            Some(_) => {}
        }
        if self.anew > 0 {
            broken.push(format!("{} of {} sessions began anew", self.anew, self.back_us.len()));
        }
        broken
    }

    fn ms(&mut self, share: f64) -> f64 {
        quantile(&mut self.us, share).unwrap_or(0) as f64 / 1e3
    }

    fn back_ms(&mut self, share: f64) -> i64 {
        quantile(&mut self.back_us, share).unwrap_or(0) / 1_000
    }
}

/// A second program, seen from the first.
struct Other {
    process: Child,
    commands: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
}

impl Other {
    fn start(gateway: &TestGateway, arguments: &[&str]) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(arguments)
            .args([
                "--web",
                &gateway.target(Scheme::Ws)?.to_string(),
                "--quic",
                &gateway.target(Scheme::Quic)?.to_string(),
            ])
            .arg("--folder")
            .arg(gateway.folder.path())
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
    let gateway = TestGateway::start(ANY_SILENCE).await?;
    let mut devices = Other::start(&gateway, &["--devices", &glasses.to_string()])?;
    for number in 0..glasses + RETURNING {
        let fingerprint = devices.line().await?;
        gateway.pair(&fingerprint, &format!("user-{number}"));
        ensure!(devices.line().await? == "welcomed", "glasses {number} were not welcomed");
    }
    ensure!(seconds > RETURN_EVERY.as_secs(), "a run is shorter than the time until glasses lose their link");
    // Warm caches are part of the comparison.
    devices.measure(seconds.min(10)).await?;
    println!("{glasses} glasses, {rounds} x {seconds} s each without and with the attack; frame delay in ms");
    println!(
        "{:16} {:>6} {:>8} {:>8} {:>6} {:>8} {:>8} {:>8}  sentences answered",
        "attack", "frames", "median", "p99", "frames", "median", "p99", "growth"
    );
    let mut broken = Vec::new();
    for (name, about) in ATTACKS.into_iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name)) {
        let (mut before, mut during, mut cores) = (Delays::default(), Delays::default(), (0.0, 0.0));
        let (mut counts, mut opened) = (String::new(), u32::MAX);
        for _ in 0..rounds {
            before.add(devices.measure(seconds).await?);
            let mut attacker = Other::start(&gateway, &["--flood", name, "--seconds", &(seconds + 2).to_string()])?;
            ensure!(attacker.line().await? == "begun", "the attack did not begin");
            let process = attacker.process.id().context("it runs")?.to_string();
            let own = (common::cpu_us("self"), common::cpu_us(&process));
            during.add(devices.measure(seconds).await?);
            let share = |us: u64| us as f64 / 1e6 / (rounds * seconds) as f64;
            cores.0 += share(common::cpu_us("self") - own.0);
            cores.1 += share(common::cpu_us(&process) - own.1);
            counts = attacker.line().await?;
            opened = opened.min(counts.split_whitespace().next().context("no count of the attack")?.parse()?);
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
        for (when, delays) in [("without", &mut before), ("with", &mut during)] {
            let (times, most, longest) = (delays.back_us.len(), delays.back_ms(0.95), delays.back_ms(1.0));
            println!("{:16} {when} the attack: back {times} times, 95 % after {most} ms, longest {longest} ms", "");
        }
        println!("{:16} {about}: {}; processor: gateway {:.2} cores, attacker {:.2}", "", counts, cores.0, cores.1);
        let mut what = during.broken();
        what.extend(before.broken().into_iter().map(|what| format!("without the attack: {what}")));
        if growth > GROWTH_MS_MAX {
            what.push(format!("frames at the 99th percentile {growth:.1} ms later, of {GROWTH_MS_MAX}"));
        }
        if about.starts_with("1,000") && opened < CONNECTIONS {
            what.push(format!("only {opened} connections of {CONNECTIONS} were opened"));
        }
        broken.extend(what.into_iter().map(|what| format!("{name}: {what}")));
    }
    gateway.running.stop().await;
    for what in &broken {
        println!("BROKEN: {what}");
    }
    ensure!(broken.is_empty(), "{} requirements broken", broken.len());
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
    for number in 0..count + RETURNING {
        let target = targets[number as usize % 2].clone();
        let mut options = Options::new(target.clone(), &folder.join(format!("glasses-{number}")));
        options.decode = false;
        options.reconnect = false;
        options.silence = Some(silence.clone());
        options.seed = number;
        let mut one = Glasses::start(options)?;
        println!("{}", one.fingerprint());
        one.welcomed().await?;
        println!("welcomed");
        glasses.push((Arc::new(one), target));
    }
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Some(seconds) = commands.next_line().await? {
        let ends = Instant::now() + Duration::from_secs(seconds.parse()?);
        let mut tasks = JoinSet::new();
        for (number, (one, target)) in (0..).zip(&glasses) {
            if number < count {
                tasks.spawn(live(one.clone(), clip.clone(), number, ends));
            } else {
                tasks.spawn(returns(one.clone(), target.clone(), ends));
            }
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
    // Glasses that all spoke at once would measure a queue that no household has.
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
            let Ok(us) = delay_us(&glasses, number % 2 == 0).await else {
                delays.lost += 1;
                return Ok(delays);
            };
            delays.us.push(us);
        }
    }
    Ok(delays)
}

/// Loses its link again and again, and comes back.
async fn returns(glasses: Arc<Glasses>, target: Target, ends: Instant) -> Result<Delays> {
    let mut delays = Delays::default();
    while Instant::now() + RETURN_EVERY < ends {
        sleep(RETURN_EVERY).await;
        let (mark, began_us) = (glasses.log().mark(), glasses.now_us());
        if glasses.cut().await.is_err() || glasses.reconnect(Some(target.clone())).await.is_err() {
            delays.lost += 1;
            return Ok(delays);
        }
        let welcome = |event: &Event| event.at_us >= began_us && matches!(event.seen, Seen::Welcome { .. });
        match timeout(ANSWER_MAX, glasses.log().find(mark, welcome)).await {
            Ok((event, _)) => {
                delays.back_us.push(event.at_us.saturating_sub(began_us) as i64);
                delays.anew += u64::from(matches!(event.seen, Seen::Welcome { resumed: false, .. }));
            }
            Err(_) => delays.back_us.push(ANSWER_MAX.as_micros() as i64),
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
