//! The devices, in a process of their own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use firmware_sim::microphone::Clip;
use firmware_sim::random::Random;
use firmware_sim::transport::{self, Target};
use firmware_sim::{Event, Glasses, Options, Seen};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::common::{self, argument, number};

const TYPED: &str = "What is fifteen percent of eighty?";
const SPOKEN: &str = "Hey Mentra, what is fifteen percent of eighty?";
/// How long an answer may take on a busy machine.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// After so long without a word nothing more is to be told. An answer that did not arrive is stored before it is.
const QUIET: Duration = Duration::from_secs(3);
/// Events that are shown of a cycle that went wrong.
const SHOWN: u64 = 4;

/// What a cycle does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Whole,
    MidTurn,
    MidAnswer,
    Spoken,
    Tcp,
    Opening,
    Handshake,
    Stranger,
}

impl Kind {
    const ALL: [(Self, u64); 7] = [
        (Self::Whole, 30),
        (Self::MidTurn, 22),
        (Self::MidAnswer, 18),
        (Self::Tcp, 8),
        (Self::Opening, 9),
        (Self::Handshake, 10),
        (Self::Stranger, 3),
    ];

    fn drawn(random: &mut Random, spoken_percent: u64) -> Self {
        if let Some(only) = argument("--only").filter(|only| !only.is_empty()) {
            let named = |kind: &Self| format!("{kind:?}").eq_ignore_ascii_case(&only);
            return Self::ALL.into_iter().map(|(kind, _)| kind).find(named).unwrap_or(Self::Spoken);
        }
        if random.below(100) < spoken_percent {
            return Self::Spoken;
        }
        let mut at = random.below(100);
        for (kind, share) in Self::ALL {
            if at < share {
                return kind;
            }
            at -= share;
        }
        Self::Whole
    }
}

/// Cycles by what they did, and turns that were answered.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    whole: u64,
    broken: u64,
    resumed: u64,
    spoken: u64,
    aborted: u64,
    strangers: u64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.whole += other.whole;
        self.broken += other.broken;
        self.resumed += other.resumed;
        self.spoken += other.spoken;
        self.aborted += other.aborted;
        self.strangers += other.strangers;
    }
}

/// One device: its place and what it says.
#[derive(Clone)]
struct Device {
    number: u64,
    folder: PathBuf,
    targets: [Target; 2],
    clip: Clip,
    silence: std::sync::Arc<[bytes::Bytes]>,
    spoken_percent: u64,
}

impl Device {
    fn options(&self, name: &str, target: &Target) -> Options {
        let mut options = Options::new(target.clone(), &self.folder.join(format!("{name}-{}", self.number)));
        options.decode = false;
        options.reconnect = false;
        options.silence = Some(self.silence.clone());
        options
    }

    async fn glasses(&self, target: &Target) -> Result<Glasses> {
        Ok(timeout(ANSWER_MAX, Glasses::connect(self.options("glasses", target))).await.context("no welcome")??)
    }

    /// One connection of a kind that is drawn, to its end; counted by what it did.
    async fn cycle(&self, random: &mut Random, tally: &mut Tally) -> Result<()> {
        let way = random.below(2) as usize;
        let (target, other) = (&self.targets[way], &self.targets[1 - way]);
        match Kind::drawn(random, self.spoken_percent) {
            Kind::Whole => {
                let glasses = self.glasses(target).await?;
                glasses.text(TYPED).await?;
                find(&glasses, "a whole answer", is_whole_answer).await?;
                glasses.goodbye().await;
                tally.whole += 1;
            }
            Kind::MidTurn => {
                let glasses = self.glasses(target).await?;
                glasses.text(TYPED).await?;
                sleep(Duration::from_millis(random.below(150))).await;
                self.broken(glasses, other, random, tally).await?;
            }
            Kind::MidAnswer => {
                let glasses = self.glasses(target).await?;
                glasses.text(TYPED).await?;
                find(&glasses, "sound", |event| matches!(event.seen, Seen::FirstSound { .. })).await?;
                self.broken(glasses, other, random, tally).await?;
            }
            Kind::Spoken => {
                let glasses = self.glasses(target).await?;
                tally.spoken += 1;
                if random.below(2) == 0 {
                    glasses.say(self.clip.clone()).await?;
                    find(&glasses, "a whole answer to speech", is_whole_answer).await?;
                    glasses.goodbye().await;
                    return Ok(());
                }
                let up_to = Duration::from_millis(random.below(5_000));
                drop(timeout(up_to, glasses.say(self.clip.clone())).await);
                self.broken(glasses, other, random, tally).await?;
            }
            Kind::Tcp => {
                self.half_a_connection(random).await;
                tally.aborted += 1;
            }
            Kind::Opening => {
                let within = Duration::from_micros(random.below(15_000));
                // Whatever is open by then is dropped.
                drop(timeout(within, transport::open(target)).await);
                tally.aborted += 1;
            }
            Kind::Handshake => {
                let glasses = Glasses::start(self.options("glasses", target))?;
                sleep(Duration::from_micros(random.below(30_000))).await;
                glasses.cut().await?;
                glasses.goodbye().await;
                tally.aborted += 1;
            }
            Kind::Stranger => {
                let glasses = Glasses::start(self.options("stranger", target))?;
                find(&glasses, "a code", |event| matches!(event.seen, Seen::PairingCode { .. })).await?;
                glasses.cut().await?;
                glasses.goodbye().await;
                tally.strangers += 1;
            }
        }
        Ok(())
    }

    /// The link breaks; half of the devices come back over the other transport and hear the answer.
    async fn broken(&self, glasses: Glasses, other: &Target, random: &mut Random, tally: &mut Tally) -> Result<()> {
        tally.broken += 1;
        glasses.cut().await?;
        if random.below(2) == 0 {
            let mark = glasses.log().mark();
            glasses.reconnect(Some(other.clone())).await?;
            let welcome = |event: &Event| matches!(event.seen, Seen::Welcome { .. });
            let welcomed =
                timeout(ANSWER_MAX, glasses.log().find(mark, welcome)).await.context("not welcomed again")?;
            tally.resumed += u64::from(matches!(welcomed.0.seen, Seen::Welcome { resumed: true, .. }));
            glasses.text(TYPED).await?;
            let answer = timeout(ANSWER_MAX, glasses.log().find(welcomed.1, is_whole_answer)).await;
            answer.context("no answer after the link came back")?;
        }
        glasses.cut().await?;
        glasses.goodbye().await;
        Ok(())
    }

    /// TCP with a part of what should follow.
    async fn half_a_connection(&self, random: &mut Random) {
        const CLIENT_HELLO: [u8; 11] = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        const UPGRADE: &[u8] = b"GET /glasses HTTP/1.1\r\nhost: localhost\r\nconnection: upgr";
        let Ok(mut stream) = TcpStream::connect((self.targets[0].host.as_str(), self.targets[0].port)).await else {
            return;
        };
        let bytes = if random.below(2) == 0 { CLIENT_HELLO.as_slice() } else { UPGRADE };
        let length = random.below(bytes.len() as u64 + 1) as usize;
        drop(stream.write_all(&bytes[..length]).await);
        sleep(Duration::from_millis(random.below(20))).await;
    }

    /// Types one request after the other, each when the answer to the last one begins.
    async fn fill(&self, turns: u64) -> Result<()> {
        let glasses = self.glasses(&self.targets[0]).await?;
        for _ in 0..turns {
            let mark = glasses.log().mark();
            glasses.text(TYPED).await?;
            let begins = |event: &Event| matches!(event.seen, Seen::SpeechStart { .. });
            timeout(ANSWER_MAX, glasses.log().find(mark, begins)).await.context("no answer")?;
        }
        glasses.goodbye().await;
        Ok(())
    }

    /// Hears the answers that did not arrive.
    async fn hear_out(&self) -> Result<()> {
        let glasses = self.glasses(&self.targets[0]).await?;
        let begins = |event: &Event| matches!(event.seen, Seen::SpeechStart { .. });
        let ends = |event: &Event| matches!(event.seen, Seen::SpeechHeard { .. });
        let mut next = 0;
        while let Ok((_, begun)) = timeout(QUIET, glasses.log().find(next, begins)).await {
            let over = timeout(ANSWER_MAX, glasses.log().find(begun, ends)).await;
            next = over.context("what is told does not end")?.1;
        }
        glasses.goodbye().await;
        Ok(())
    }

    /// Speaks, types and walks out of reach at the pace of people.
    async fn live(&self, ends: Instant, mut random: Random, tally: &mut Tally) -> Result<()> {
        let mut glasses = self.glasses(&self.targets[0]).await?;
        while Instant::now() < ends {
            sleep(Duration::from_millis(15_000 + random.below(30_000))).await;
            let mark = glasses.log().mark();
            match random.below(10) {
                0..=5 => {
                    glasses.say(self.clip.clone()).await?;
                    tally.spoken += 1;
                }
                6..=8 => {
                    glasses.text(TYPED).await?;
                    tally.whole += 1;
                }
                _ => {
                    glasses.goodbye().await;
                    glasses = self.glasses(&self.targets[random.below(2) as usize]).await?;
                    continue;
                }
            }
            if random.below(5) == 0 {
                sleep(Duration::from_millis(random.below(2_000))).await;
                glasses.cut().await?;
                sleep(Duration::from_millis(random.below(1_500))).await;
                let lost = glasses.log().mark();
                glasses.reconnect(Some(self.targets[random.below(2) as usize].clone())).await?;
                let welcome = |event: &Event| matches!(event.seen, Seen::Welcome { .. });
                timeout(ANSWER_MAX, glasses.log().find(lost, welcome)).await.context("not welcomed again")?;
                tally.broken += 1;
            }
            let answer = timeout(ANSWER_MAX, glasses.log().find(mark, is_whole_answer)).await;
            answer.context("no answer")?;
        }
        glasses.goodbye().await;
        Ok(())
    }
}

fn is_whole_answer(event: &Event) -> bool {
    matches!(event.seen, Seen::SpeechHeard { complete: true, .. })
}

async fn find(glasses: &Glasses, what: &'static str, wanted: impl FnMut(&Event) -> bool) -> Result<()> {
    let found = timeout(ANSWER_MAX, glasses.log().find(0, wanted)).await;
    let last = || glasses.log().since(glasses.log().mark().saturating_sub(SHOWN));
    found.map(drop).with_context(|| format!("{what} did not come; seen last: {:?}", last()))
}

/// The second process: does what it is told, line by line.
pub async fn devices() -> Result<()> {
    let folder = PathBuf::from(argument("--folder").context("--folder")?);
    let targets: [Target; 2] =
        [argument("--devices").context("--devices")?.parse()?, argument("--quic").context("--quic")?.parse()?];
    let (clip, silence) = (common::coded(SPOKEN, Path::new(&folder))?, common::silence()?);
    let (seed, spoken_percent) = (number("--seed", 1)?, number("--spoken", 2)?);
    let mut all = Vec::new();
    for number in 0..number("--glasses", 20)? {
        let (folder, targets) = (folder.clone(), targets.clone());
        let device = Device { number, folder, targets, clip: clip.clone(), silence: silence.clone(), spoken_percent };
        let mut glasses = Glasses::start(device.options("glasses", &device.targets[0]))?;
        println!("{}", glasses.fingerprint());
        glasses.welcomed().await?;
        glasses.goodbye().await;
        println!("welcomed");
        all.push(device);
    }
    let mut tally = Tally::default();
    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    while let Some(command) = commands.next_line().await? {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["batch", from, count] => run_batch(&all, seed, (from.parse()?, count.parse()?), &mut tally).await?,
            ["fill", turns] => {
                let turns: u64 = turns.parse()?;
                run_each(&all, move |device| async move { device.fill(turns).await }).await?;
            }
            ["soak", seconds] => run_soak(&all, seed, seconds.parse()?, &mut tally).await?,
            ["tally"] => {
                println!("{tally:?}");
                continue;
            }
            _ => break,
        }
        println!("done");
    }
    Ok(())
}

async fn run_batch(all: &[Device], seed: u64, (from, count): (u64, u64), tally: &mut Tally) -> Result<()> {
    let mut tasks = JoinSet::new();
    for device in all.iter().cloned() {
        let every = all.len();
        tasks.spawn(async move {
            let mut tally = Tally::default();
            for number in (from..from + count).skip(device.number as usize).step_by(every) {
                let mut random = Random::new(seed.wrapping_mul(1_000_003) ^ (number << 16));
                if let Err(error) = device.cycle(&mut random, &mut tally).await {
                    println!("cycle {number}: {error:#}");
                }
            }
            tally
        });
    }
    while let Some(done) = tasks.join_next().await {
        tally.add(done?);
    }
    run_each(all, |device| async move { device.hear_out().await }).await
}

async fn run_soak(all: &[Device], seed: u64, seconds: u64, tally: &mut Tally) -> Result<()> {
    let ends = Instant::now() + Duration::from_secs(seconds);
    let mut tasks = JoinSet::new();
    for device in all.iter().cloned() {
        tasks.spawn(async move {
            let mut tally = Tally::default();
            if let Err(error) = device.live(ends, Random::new(seed ^ (device.number << 16)), &mut tally).await {
                println!("glasses {}: {error:#}", device.number);
            }
            tally
        });
    }
    while let Some(done) = tasks.join_next().await {
        tally.add(done?);
    }
    Ok(())
}

/// All devices at once.
async fn run_each<F>(all: &[Device], act: impl Fn(Device) -> F) -> Result<()>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for device in all.iter().cloned() {
        let number = device.number;
        let acting = act(device);
        tasks.spawn(async move {
            if let Err(error) = acting.await {
                println!("glasses {number}: {error:#}");
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done?;
    }
    Ok(())
}
