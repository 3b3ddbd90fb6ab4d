//! What the measuring programs share: a gateway in this process, paired glasses, the machine's state.
#![allow(dead_code)] // each program uses its part

pub mod acoustic;
pub mod aims;
pub mod clips;
pub mod ear;
pub mod figures;
#[path = "../../it/intents/fixture.rs"]
pub mod fixture;
pub mod g722;
pub mod pages;
pub mod paired;
pub mod planted;
pub mod process;
#[path = "../../it/relay.rs"]
pub mod relay;
pub mod second;
pub mod voices;
pub mod watch;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use audio::asr::{self, Engine};
use audio::codec::Codec;
use bytes::Bytes;
use firmware_sim::microphone::{CLIP_HZ, Clip, ClipTimes, Sound, encode_all, voiced_end_us};
use firmware_sim::random::Random;
use firmware_sim::transport::{Scheme, Target};
use firmware_sim::{Glasses, Options, Seen};
use gateway::identity::grant::Grant;
use gateway::serve::Running;
use gateway::telemetry::TurnRecord;
use gateway::{clock, config, serve};
use gateway_core::vocab::{Message, Part, ToolCall};

pub use figures::{flag, quantile};
use voices::Speaker;

/// Length of a packet of sound.
pub const FRAME_US: u64 = 20_000;
/// How long nothing may happen before a turn counts as over, in microseconds.
const REST_US: u64 = 1_500_000;
/// Configuration for glasses that do not encode: their silence is one value, as that of a dead microphone, of which their
/// wearers would be told in the middle of everything else.
pub const ANY_SILENCE: &str = "[hearing]\ndead_microphone_s = 0\n";

/// A gateway and its folder.
pub struct TestGateway {
    pub running: Running,
    pub folder: tempfile::TempDir,
}

impl TestGateway {
    /// Starts one on free ports; `extra` is appended to its configuration (whole tables).
    pub async fn start(extra: &str) -> Result<Self> {
        gateway::telemetry::start(false);
        let folder = tempfile::tempdir()?;
        let text = format!(
            "data_dir = {:?}\nmodels_dir = {:?}\n[listen]\nweb = \"127.0.0.1:0\"\nquic = \"127.0.0.1:0\"\n{extra}\n",
            folder.path().join("gateway"),
            audio::models::default_dir(),
        );
        let config = config::check(&text, "bench").map_err(|problems| anyhow!("{problems:?}"))?;
        let running = serve::start(config).await?;
        Ok(Self { running, folder })
    }

    /// Where to connect.
    pub fn target(&self, scheme: Scheme) -> Result<Target> {
        let address = match scheme {
            Scheme::Quic => self.running.quic.context("QUIC is off")?,
            Scheme::Ws | Scheme::Wss => self.running.web,
        };
        Ok(Target {
            scheme,
            host: address.ip().to_string(),
            port: address.port(),
            path: device_protocol::PATH.to_owned(),
        })
    }

    /// Options of glasses with a key of their own.
    pub fn options(&self, scheme: Scheme, name: &str) -> Result<Options> {
        let state = self.folder.path().join(name);
        let mut options = Options::new(self.target(scheme)?, &state);
        options.profile.device_id = name.to_owned();
        Ok(options)
    }

    /// Lets these glasses in, as an operator does who read their fingerprint.
    pub fn pair(&self, fingerprint: &str, user: &str) {
        let grant = Grant { user: user.to_owned(), name: String::new() };
        let fingerprint = fingerprint.replace(['-', ':', ' '], "").to_lowercase();
        let pairings = &self.running.services().admission.pairings;
        pairings.by_fingerprint(clock::mono_us(), &fingerprint, grant).expect("a window");
    }

    /// Switches glasses on, pairs them, waits for the welcome.
    pub async fn glasses(&self, options: Options, user: &str) -> Result<Glasses> {
        let mut glasses = Glasses::start(options)?;
        self.pair(glasses.fingerprint(), user);
        glasses.welcomed().await?;
        Ok(glasses)
    }

    /// What a speaker says: samples at 16 kHz.
    pub async fn spoken(&self, speaker: Speaker, text: &str) -> Result<Vec<i16>> {
        let (text, folder) = (text.to_owned(), self.folder.path().to_owned());
        tokio::task::spawn_blocking(move || speaker.say(&text, &folder)).await?
    }

    /// All finished turns of these glasses that are still kept.
    pub fn turns(&self, glasses: &Glasses) -> Vec<TurnRecord> {
        let id = plain(glasses.fingerprint());
        let mut turns = self.running.services().telemetry.turns.last(usize::MAX);
        turns.retain(|turn| plain(&turn.device) == id);
        turns
    }

    /// From the last voiced sample of what these glasses have said last to the decision that its turn ends, in microseconds. The
    /// record is complete when its turn is.
    pub fn end_of_turn_us(&self, glasses: &Glasses, said: &ClipTimes) -> Option<i64> {
        // Both clocks are of this process.
        let offset_us = clock::mono_us() as i64 - glasses.now_us() as i64;
        let decided_us = self.turns(glasses).pop()?.end_decided_us?;
        Some(decided_us as i64 - offset_us - said.t0_us as i64).filter(|us| *us > 0)
    }

    /// All tool calls in the user's stored conversation.
    pub fn calls(&self, user: &str) -> Result<Vec<ToolCall>> {
        let records = self.running.services().store.disk().messages(user, 100_000)?;
        let mut calls = Vec::new();
        for record in records {
            let message: Message = serde_json::from_str(&record.json)?;
            calls.extend(message.parts.into_iter().filter_map(|part| match part {
                Part::ToolCall { call } => Some(call),
                _ => None,
            }));
        }
        Ok(calls)
    }
}

fn plain(fingerprint: &str) -> String {
    fingerprint.replace(['-', ':', ' '], "").to_lowercase()
}

/// A runtime as the gateway's own.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(gateway::runtime::build()?)
}

/// Loads the recogniser that the gateway uses by default.
pub fn engine() -> Result<Engine> {
    let model = audio::models::default_dir().join("whisper-tiny.en.bin");
    Ok(Engine::load(&model, asr::Config::default())?)
}

/// Prints what the machine is doing, and how long a known decode takes on it now: 1.3 s of sound at
/// a context of 512, the median of five. What it costs on an idle machine is the unit of all times.
pub fn calibrate(when: &str) -> Result<()> {
    let clip = clips::path("alsa-utils", "usr/share/sounds/alsa/Front_Center.wav")?;
    let pcm = audio::wav::read(&clip, clips::CLIP_HZ)?;
    let mut decoder = engine()?.decoder()?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let heard = decoder.transcribe(pcm.as_slice(), &asr::Options::default())?;
        times.push(heard.decode_us as i64);
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let profile = if cfg!(debug_assertions) { "dev" } else { "optimised" };
    println!(
        "machine {when}: {cores} cores, load {}, calibration decode {:.0} ms, {profile} profile",
        load.split_whitespace().take(3).collect::<Vec<_>>().join(" "),
        quantile(&mut times, 0.5).unwrap_or(0) as f64 / 1e3
    );
    Ok(())
}

/// One line of a table of times in milliseconds.
pub fn row(name: &str, mut us: Vec<i64>) {
    let ms = |us: Option<i64>| us.map_or_else(|| "-".to_owned(), |us| format!("{:.2}", us as f64 / 1e3));
    let count = us.len();
    println!(
        "  {name:44} n {count:4}  median {:>8}  p90 {:>8}  p95 {:>8}  p99 {:>8} ms",
        ms(quantile(&mut us, 0.5)),
        ms(quantile(&mut us, 0.9)),
        ms(quantile(&mut us, 0.95)),
        ms(quantile(&mut us, 0.99)),
    );
}

/// Processor microseconds of the threads of a process so far, by the beginning of their names.
pub fn cpu_by_thread(process: &str) -> Vec<(String, u64)> {
    let mut sums = std::collections::BTreeMap::<String, u64>::new();
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"));
    for task in tasks.into_iter().flatten().flatten() {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).unwrap_or_default();
        let ran = read("schedstat");
        let ns: u64 = ran.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        let name = read("comm");
        let name = name.trim().trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
        *sums.entry(name.to_owned()).or_default() += ns / 1_000;
    }
    sums.into_iter().collect()
}

/// Processor microseconds of the calling thread so far.
pub fn cpu_of_thread_us() -> u64 {
    let ran = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    ran.split_whitespace().next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0) / 1_000
}

/// Processor microseconds of a whole process, threads that have ended included.
pub fn cpu_us(process: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // utime and stime, in hundredths of a second on Linux.
    let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<u64>().ok());
    (ticks(11).unwrap_or(0) + ticks(12).unwrap_or(0)) * 10_000
}

/// Share of the machine's processor time that was not idle between two readings of [`busy`].
pub fn busy() -> (u64, u64) {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<u64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    let total = fields.iter().take(8).sum::<u64>();
    let idle = fields.iter().skip(3).take(2).sum::<u64>();
    (total - idle, total)
}

/// Percent busy since `before`.
pub fn busy_percent(before: (u64, u64)) -> f64 {
    let now = busy();
    100.0 * (now.0 - before.0) as f64 / (now.1 - before.1).max(1) as f64
}

/// Waits until `done` says so; false after `within`.
pub async fn until(within: Duration, mut done: impl FnMut() -> bool) -> bool {
    let ends = Instant::now() + within;
    while !done() {
        if Instant::now() >= ends {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    true
}

/// The transcripts that glasses were shown since a moment on their clock, partial and final.
pub fn heard(glasses: &Glasses, mark: u64, since_us: u64) -> Vec<String> {
    let events = glasses.log().since(mark).into_iter().filter(|event| event.at_us >= since_us);
    let texts = events.filter_map(|event| match event.seen {
        Seen::Transcript { text, .. } => Some(text),
        _ => None,
    });
    texts.collect()
}

/// Waits until nothing has been heard, answered or said for a while, or until `within` is over; `mark`: from the turn or
/// before it.
pub async fn rest(glasses: &Glasses, mark: u64, within: Duration) {
    let is_over = || {
        let events = glasses.log().since(mark);
        let last = events.iter().rev().find_map(|event| match &event.seen {
            Seen::Listening { state, .. } => Some((event.at_us, matches!(state.as_str(), "idle" | "wake"))),
            _ => None,
        });
        last.is_some_and(|(at_us, is_free)| is_free && glasses.now_us() >= at_us + REST_US)
    };
    until(within, is_over).await;
}

/// Resident bytes of this process.
pub fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4_096
}

/// Number behind `--name`.
pub fn number(name: &str, otherwise: u64) -> Result<u64> {
    argument(name).map_or(Ok(otherwise), |text| text.parse().with_context(|| format!("{name} {text}")))
}

/// A sentence in the product's own voice as packets, coded once for all who say it.
pub fn coded(text: &str, folder: &Path) -> Result<Clip> {
    clip(text, &Speaker::HIBARI.say(text, folder)?)
}

/// Samples at 16 kHz as packets.
pub fn clip(label: &str, pcm: &[i16]) -> Result<Clip> {
    Ok(Clip { label: label.to_owned(), voiced_us: voiced_end_us(pcm), sound: Sound::Packets(packets(pcm)?) })
}

/// A second of silence as packets, for glasses that do not encode.
pub fn silence() -> Result<Arc<[Bytes]>> {
    quiet(0)
}

/// A second of white noise of this amplitude, as packets.
pub fn quiet(amplitude: u16) -> Result<Arc<[Bytes]>> {
    let (mut random, range) = (Random::new(1), 2 * u64::from(amplitude) + 1);
    let pcm: Vec<i16> = (0..CLIP_HZ).map(|_| (random.below(range) as i64 - i64::from(amplitude)) as i16).collect();
    packets(&pcm)
}

fn packets(pcm: &[i16]) -> Result<Arc<[Bytes]>> {
    encode_all(pcm, Codec::Opus, CLIP_HZ, FRAME_US).map_err(anyhow::Error::msg)
}

/// The transports that `--transport` asks for; otherwise WebSocket and QUIC.
pub fn schemes() -> Result<Vec<Scheme>> {
    match argument("--transport").as_deref() {
        None => Ok(vec![Scheme::Ws, Scheme::Quic]),
        Some("ws") => Ok(vec![Scheme::Ws]),
        Some("quic") => Ok(vec![Scheme::Quic]),
        Some(other) => bail!("--transport {other}: ws or quic"),
    }
}

/// Value behind `--name`.
pub fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args();
    arguments.find(|argument| argument == name)?;
    arguments.next()
}

/// Folder for a program's scratch files.
pub fn scratch(gateway: &TestGateway) -> &Path {
    gateway.folder.path()
}
