//! `lorgnette-sim fleet`: many glasses at once, with sound that is encoded only once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use audio::codec::{Codec, lc3};
use audio::wav;
use bytes::Bytes;
use device_protocol::Codecs;
use firmware_sim::latency::{self, Latency};
use firmware_sim::microphone::{CLIP_HZ, Clip, Sound, encode_all, voiced_end_us};
use firmware_sim::profile::Profile;
use firmware_sim::random::Random;
use firmware_sim::{Glasses, Options, Seen};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::options::Common;
use super::{pair, show};

/// Most glasses in one process: each needs a socket, and the packets of a second must fit the network of one machine.
const GLASSES_MAX: u32 = 1_000;
/// Delay between two connects, so that a gateway's limit on handshakes is not what is measured.
const STAGGER: Duration = Duration::from_millis(50);
/// How long after its sentence a turn may be answered.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// Run many glasses at once. Each is paired the first time, one after the other: type the codes that are shown.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Number of glasses.
    count: u32,
    /// What each of them says, over and over.
    #[arg(long)]
    wav: PathBuf,
    /// Percent of the time that each of them speaks.
    #[arg(long, default_value_t = 20.0)]
    duty: f64,
    /// Seconds to run.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
}

#[derive(Default)]
struct Tally {
    said: usize,
    answered: usize,
    lost: usize,
    violations: usize,
    latencies: Vec<Latency>,
}

/// Shared by all glasses.
struct EncodedClip {
    packets: Arc<[Bytes]>,
    voiced_us: u64,
    length: Duration,
    duty: f64,
}

pub(super) async fn run(common: &Common, arguments: &Arguments) -> Result<()> {
    ensure!((1..=GLASSES_MAX).contains(&arguments.count), "1 to {GLASSES_MAX} glasses");
    ensure!(arguments.duty > 0.0 && arguments.duty <= 100.0, "--duty is a percentage above 0");
    ensure!(
        common.acoustics().is_empty(),
        "a fleet sends sound that was encoded before: --echo, --room, --half-duplex, --microphone and noise around the wearer are for single glasses"
    );
    let options = common.options()?;
    let codec = match options.profile {
        Profile { codecs: Codecs::OPUS, .. } => Codec::Opus,
        Profile { codecs: Codecs::LC3, lc3: (us, bytes), .. } => Codec::Lc3(lc3::Format::new(us.into(), bytes)?),
        _ => Codec::Pcm16,
    };
    let pcm = wav::read(&arguments.wav, CLIP_HZ)?;
    let encode = |pcm: &[i16]| {
        encode_all(pcm, codec, options.profile.microphone_hz, codec.usual_packet_us()).map_err(anyhow::Error::msg)
    };
    let encoded = Arc::new(EncodedClip {
        packets: encode(&pcm).with_context(|| arguments.wav.display().to_string())?,
        voiced_us: voiced_end_us(&pcm),
        length: Duration::from_secs_f64(pcm.len() as f64 / f64::from(CLIP_HZ)),
        duty: arguments.duty / 100.0,
    });
    let silence = encode(&vec![0; CLIP_HZ as usize])?;

    let mut glasses = Vec::new();
    for number in 0..arguments.count {
        let mut options: Options = options.clone();
        options.state = common.state().join(format!("{number:04}"));
        options.profile.device_id = format!("fleet-{number:04}");
        options.seed = common.seed.wrapping_add(u64::from(number));
        options.decode = false;
        options.silence = Some(Arc::clone(&silence));
        glasses.push(pair::connect(options, common).await.with_context(|| format!("glasses {number}"))?);
        sleep(STAGGER).await;
    }
    if !common.json && !common.quiet {
        println!("{} glasses are connected; they speak for {} s", glasses.len(), arguments.seconds);
    }
    let ends = Instant::now() + Duration::from_secs(arguments.seconds);
    let mut tasks = JoinSet::new();
    for (number, glasses) in glasses.into_iter().enumerate() {
        let random = Random::new(common.seed ^ (number as u64) << 32);
        tasks.spawn(live(glasses, Arc::clone(&encoded), random, ends));
    }
    let mut total = Tally::default();
    while let Some(tally) = tasks.join_next().await {
        let tally = tally.context("a task of the fleet failed")?;
        total.said += tally.said;
        total.answered += tally.answered;
        total.lost += tally.lost;
        total.violations += tally.violations;
        total.latencies.extend(tally.latencies);
    }
    report(common, arguments.count, &total);
    ensure!(total.violations == 0, "{} violations of the protocol", total.violations);
    Ok(())
}

/// One pair of glasses speaks, waits, and speaks again.
async fn live(glasses: Glasses, encoded: Arc<EncodedClip>, mut random: Random, ends: Instant) -> Tally {
    let mut tally = Tally::default();
    let period = encoded.length.div_f64(encoded.duty);
    // If all glasses spoke at once, the run would measure a queue that no household has.
    let mut next = Instant::now() + period.mul_f64(random.unit());
    while next < ends && !glasses.is_over() {
        sleep_until(next).await;
        next = (next + period).max(Instant::now());
        let mark = glasses.log().mark();
        let sound = Sound::Packets(Arc::clone(&encoded.packets));
        let clip = Clip { label: "fleet".to_owned(), voiced_us: encoded.voiced_us, sound };
        tally.said += 1;
        let Ok(said) = glasses.say(clip).await else {
            break;
        };
        let log = glasses.log();
        let heard = log.find(mark, |event| event.at_us > said.t0_us && matches!(event.seen, Seen::FirstSound { .. }));
        if timeout(ANSWER_MAX.min(period), heard).await.is_ok() {
            tally.answered += 1;
        }
        tally.latencies.push(latency::measure(&log.since(mark), said.t0_us));
    }
    for event in glasses.log().since(0) {
        tally.lost += usize::from(matches!(event.seen, Seen::LinkLost { .. } | Seen::Goodbye { .. }));
        tally.violations += usize::from(matches!(event.seen, Seen::Violation { .. }));
    }
    glasses.goodbye().await;
    tally
}

fn report(common: &Common, count: u32, total: &Tally) {
    let stages = Latency::default().stages().map(|(name, _)| name);
    let columns: Vec<(&str, Vec<i64>)> = stages
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let mut values: Vec<i64> =
                total.latencies.iter().filter_map(|latency| latency.stages().get(at).and_then(|(_, us)| *us)).collect();
            values.sort_unstable();
            (*name, values)
        })
        .collect();
    if common.json {
        let latencies: serde_json::Map<_, _> = columns
            .iter()
            .map(|(name, values)| {
                let of = |share| percentile(values, share);
                let value = serde_json::json!({"count": values.len(), "p50_us": of(0.5), "p90_us": of(0.9), "p99_us": of(0.99)});
                ((*name).to_owned(), value)
            })
            .collect();
        let summary = serde_json::json!({
            "glasses": count, "said": total.said, "answered": total.answered, "links_lost": total.lost,
            "violations": total.violations, "latencies": latencies,
        });
        println!("{}", serde_json::json!({ "summary": summary }));
        return;
    }
    println!(
        "{count} glasses: {} sentences, {} answered, {} links lost, {} violations",
        total.said, total.answered, total.lost, total.violations
    );
    let style = show::Style::detect();
    println!(
        "{}",
        style.bold(&format!(
            "{:30}{:>8}{:>12}{:>12}{:>12}",
            "from the last voiced sample to", "count", "p50", "p90", "p99"
        ))
    );
    for (name, values) in &columns {
        let of = |share| percentile(values, share).map_or_else(|| "-".to_owned(), |us| format!("{} ms", us / 1_000));
        println!("{name:30}{:>8}{:>12}{:>12}{:>12}", values.len(), of(0.5), of(0.9), of(0.99));
    }
}

/// Nearest-rank percentile of sorted values.
fn percentile(values: &[i64], share: f64) -> Option<i64> {
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied()
}
