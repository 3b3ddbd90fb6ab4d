//! Spoken commands through shaped networks, end to end: what is understood, and how long after the last word.
//!
//! `cargo xtask bench networks [--networks none,rough,...] [--transport quic|wss] [--sentences N] [--seed N]`
//! `cargo xtask bench networks --virtual SEEDS [--networks none,rough,...] [--sentences N]`
//!
//! Simulated glasses say commands (flite's voice) behind "Hey Mentra," to a gateway with the settings that are shipped, each
//! network in turn, beginning with none. The word error rate is that of the final transcript against what was said, and the
//! end of the turn when the gateway decides it, from the capture of the last voiced sample on.
//!
//! With `--virtual`, the microphone, the networks, the gateway's ear and its core run in virtual time, without sockets, each
//! network with so many seeds; what the ear heard is decoded. So there are many more words in the same time, and what else the machine does
//! changes nothing. The end of a turn is then that of words among people.
//!
//! It ends with an error where `rough` is among the networks and its word error rate is more than 2 points above that of
//! `none`, or its median end of turn more than 100 ms later.

mod common;
#[path = "networks/virtual_time.rs"]
mod virtual_time;
#[path = "../it/networks/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use audio::asr::wer::{Wer, wer};
use common::voices::Speaker;
use common::{TestGateway, argument, quantile};
use firmware_sim::latency::measure;
use firmware_sim::network::Profile;
use firmware_sim::transport::Scheme;
use firmware_sim::{Event, Seen};
use tokio::time::{sleep, timeout};

const TABLE: &str = include_str!("data/commands.tsv");
const TURN_MAX: Duration = Duration::from_secs(40);
/// The networks that are compared: without one, and the one that has aims.
const NONE: &str = "none";
const ROUGH: &str = "rough";
/// By how much the word error rate may be above that without a network, as a share of the words.
const MORE_WER_MAX: f64 = 0.02;
/// By how much the median end of a turn may be later, in microseconds.
const LATER_US_MAX: i64 = 100_000;
/// Between two sentences: the second is not taken for a part of the first.
const REST: Duration = Duration::from_secs(1);

/// What came of one network.
#[derive(Default)]
struct Tally {
    wer: Wer,
    right: usize,
    missed: usize,
    ends_us: Vec<i64>,
    sounds_us: Vec<i64>,
    codings: usize,
}

fn main() -> Result<()> {
    common::calibrate("before")?;
    match argument("--virtual") {
        Some(seeds) => finish(&virtual_time::run(&networks(), seeds.parse()?, &sentences()?)?)?,
        None => common::runtime()?.block_on(run())?,
    }
    common::calibrate("after")
}

fn networks() -> Vec<String> {
    let names = argument("--networks").unwrap_or_else(|| format!("{NONE},{ROUGH}"));
    names.split(',').map(str::to_owned).collect()
}

/// `None`: without one.
fn profile(name: &str) -> Result<Option<Profile>> {
    if name == NONE {
        return Ok(None);
    }
    Profile::named(name).with_context(|| format!("{name} is no network")).map(Some)
}

fn sentences() -> Result<Vec<&'static str>> {
    let most: usize = argument("--sentences").map_or(Ok(usize::MAX), |most| most.parse())?;
    let rows = TABLE.lines().filter(|line| !line.starts_with('#'));
    Ok(rows.filter_map(|line| line.split('\t').next()).take(most).collect())
}

/// Word error rates and median ends of turns, by network.
type Figures = BTreeMap<String, (f64, Option<i64>)>;

fn finish(figures: &Figures) -> Result<()> {
    let missed = judge(figures);
    ensure!(missed.is_empty(), "missed: {}", missed.join("; "));
    Ok(())
}

async fn run() -> Result<()> {
    let seed: u64 = argument("--seed").map_or(Ok(1), |seed| seed.parse())?;
    let scheme = if argument("--transport").is_some_and(|name| name == "wss") { Scheme::Wss } else { Scheme::Quic };
    let gateway = TestGateway::start("").await?;
    let sentences = sentences()?;
    println!("{} commands over {}, seed {seed}", sentences.len(), scheme.name());
    let mut figures = Figures::new();
    for name in networks() {
        let mut tally = through(&gateway, scheme, &name, profile(&name)?, seed, &sentences).await?;
        report(&name, sentences.len(), &mut tally);
        figures.insert(name, (tally.wer.rate(), quantile(&mut tally.ends_us, 0.5)));
    }
    gateway.running.stop().await;
    finish(&figures)
}

/// The aims that were missed, by the word error rates and median ends of turns in the networks.
fn judge(figures: &Figures) -> Vec<String> {
    let (Some((wer, ends_us)), Some((rough_wer, rough_ends_us))) = (figures.get(NONE), figures.get(ROUGH)) else {
        println!("no aim is compared: that takes the networks {NONE} and {ROUGH}");
        return Vec::new();
    };
    let mut missed = Vec::new();
    if rough_wer - wer > MORE_WER_MAX {
        let [more, most] = [rough_wer - wer, MORE_WER_MAX].map(|share| 100.0 * share);
        missed.push(format!("the word error rate in {ROUGH} is {more:.2} points above {NONE}, of {most:.0}"));
    }
    match (ends_us, rough_ends_us) {
        (Some(ends_us), Some(rough_us)) if rough_us - ends_us <= LATER_US_MAX => {}
        (Some(ends_us), Some(rough_us)) => {
            let [later, most] = [rough_us - ends_us, LATER_US_MAX].map(|us| us / 1_000);
            missed.push(format!("the median turn in {ROUGH} ends {later} ms later than in {NONE}, of {most}"));
        }
        _ => missed.push("no turn has ended".to_owned()),
    }
    missed
}

async fn through(
    gateway: &TestGateway,
    scheme: Scheme,
    name: &str,
    network: Option<Profile>,
    seed: u64,
    sentences: &[&str],
) -> Result<Tally> {
    let mut options = gateway.options(scheme, name)?;
    options.seed = seed;
    options.network = network;
    let glasses = gateway.glasses(options, name).await?;
    let mut tally = Tally::default();
    for sentence in sentences {
        let text = format!("Hey Mentra, {sentence}");
        let folder = gateway.folder.path().to_owned();
        let pcm = tokio::task::spawn_blocking(move || Speaker::FLITE.say(&text, &folder)).await??;
        let mark = glasses.log().mark();
        let said = glasses.say_pcm(sentence, &pcm, None).await?;
        let is_final = |event: &Event| {
            matches!(&event.seen, Seen::Transcript { is_final: true, .. }) && event.at_us >= said.begins_us
        };
        if timeout(TURN_MAX, glasses.log().find(mark, is_final)).await.is_ok() {
            let over = |event: &Event| matches!(event.seen, Seen::SpeechHeard { .. });
            // A sentence that was not understood may have no answer.
            drop(timeout(TURN_MAX / 4, glasses.log().find(mark, over)).await);
        } else {
            tally.missed += 1;
        }
        let events = glasses.log().since(mark);
        let heard: Vec<String> = events
            .iter()
            .filter_map(|event| match &event.seen {
                Seen::Transcript { is_final: true, text, .. } => Some(text.clone()),
                _ => None,
            })
            .collect();
        let score = wer(&format!("Hey Mentra, {sentence}"), &heard.join(" "));
        if score.edits > 0 {
            println!("{name:12} {sentence:?} was heard as {heard:?}");
        }
        tally.right += usize::from(score.edits == 0);
        tally.wer += score;
        let latency = measure(&events, said.t0_us);
        tally.sounds_us.extend(latency.sound_us);
        tally.codings += events.iter().filter(|event| matches!(event.seen, Seen::Coding { .. })).count();
        sleep(REST).await;
        tally.ends_us.extend(gateway.end_of_turn_us(&glasses, &said));
    }
    glasses.goodbye().await;
    Ok(tally)
}

fn report(name: &str, sentences: usize, tally: &mut Tally) {
    let ms = |of: &mut Vec<i64>, share| quantile(of, share).map_or(-1, |us| us / 1_000);
    println!(
        "{name:12} word error rate {:5.2} %, {} of {sentences} right, {} without a transcript; end of turn {} ms (p90 {}), first sound {} ms (p90 {}); {} other codings",
        100.0 * tally.wer.rate(),
        tally.right,
        tally.missed,
        ms(&mut tally.ends_us, 0.5),
        ms(&mut tally.ends_us, 0.9),
        ms(&mut tally.sounds_us, 0.5),
        ms(&mut tally.sounds_us, 0.9),
        tally.codings,
    );
}
