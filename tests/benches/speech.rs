//! Word error rate of real speech through simulated glasses: against whole files, in noise, over networks; false cut-offs.
//!
//! `cargo xtask bench speech [--glasses N] [--half held-out|all] [--only CLIP] [--reference FILE] [--out FILE]
//! [--from SECONDS] [--clips N] [--transport ws|quic] [--in WORLD/WORLD/...] [--seed N] [--require]`
//!
//! Every clip is streamed in real time as Opus, by turns over WebSocket and QUIC, to a gateway with
//! the settings that are shipped, but for `always_listening`. Its final transcripts, in order, are
//! the hypothesis. The reference system is the same weights on the whole file at full context without
//! a prompt; both are scored by the same normaliser. The glasses have no speaker, so that no answer
//! is in the way of the next clip.
//!
//! `--in`: all clips are said in one world after the other, and what each one changes is told beside the first one, clip by clip:
//! words, and the time from the last voiced sample to the end of the turn. A world is `clean`, or has a noise around the glasses
//! (`babble,20`), a network (`rough`) and most bits per second of Opus (`16000`), with `+` between them:
//! `--transport quic --in babble,20/babble,20+rough+16000`. With `--require`, it ends with an error where a world with a network
//! has a word error rate more than 2 points above the first world's, or its turns end more than 100 ms later at the median.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use audio::asr::wer::{Wer, wer};
use audio::asr::{Context, Options};
use common::aims::Aims;
use common::clips::{self, Clip};
use common::paired::{interval, sum};
use common::{TestGateway, argument, row};
use firmware_sim::acoustics::Noise;
use firmware_sim::network::Profile;
use firmware_sim::{Event, Glasses, Seen};
use tokio::task::JoinSet;

const GLASSES: usize = 6;
/// How long after the last voiced sample a final may come.
const FINAL_MAX: Duration = Duration::from_secs(10);
/// Silence between clips: longer than the longest silence that a turn waits for.
const GAP: Duration = Duration::from_millis(1_500);
/// A world without noise, over this machine's own network.
const CLEAN: &str = "clean";
/// By how many points the word error rate in a network may be higher.
const POINTS_MAX: f64 = 2.0;
/// By how much the end of a turn in a network may be later, at the median.
const LATER_MS_MAX: i64 = 100;

/// Where clips are said.
#[derive(Default)]
struct World {
    name: String,
    noise: Option<Noise>,
    network: Option<Profile>,
    /// Most bits per second of Opus.
    bitrate: Option<u32>,
}

impl World {
    fn parse(name: &str) -> Result<Self> {
        let mut world = Self { name: name.to_owned(), ..Self::default() };
        for part in name.split('+').filter(|part| *part != CLEAN) {
            if let Some(network) = Profile::named(part) {
                world.network = Some(network);
            } else if let Ok(bitrate) = part.parse::<u32>() {
                world.bitrate = Some(bitrate);
            } else {
                let noise =
                    part.parse::<Noise>().map_err(|what| anyhow!("--in {name}: {part} is no network; {what}"))?;
                world.noise = Some(noise);
            }
        }
        Ok(world)
    }
}

/// What became of a clip.
struct Outcome {
    clip: Arc<Clip>,
    transport: &'static str,
    finals: Vec<String>,
    /// Whether a final came in time.
    in_time: bool,
    /// From the last voiced sample to the end of the turn.
    end_us: Option<i64>,
}

impl Outcome {
    fn wer(&self) -> Wer {
        wer(&self.clip.text, &self.finals.join(" "))
    }
}

fn main() -> Result<()> {
    let worlds = argument("--in").unwrap_or_else(|| CLEAN.to_owned());
    let worlds = worlds.split('/').map(World::parse).collect::<Result<Vec<_>>>()?;
    let wanted = argument("--half").unwrap_or_else(|| "held-out".to_owned());
    let mut clips = clips::all()?;
    clips.retain(|clip| wanted == "all" || !clip.development);
    let glasses = argument("--glasses").map_or(Ok(GLASSES), |count| count.parse())?;
    if let Some(name) = argument("--only") {
        clips.retain(|clip| clip.name == name);
    }
    if let Some(shortest) = argument("--from") {
        let shortest: f64 = shortest.parse()?;
        clips.retain(|clip| clip.seconds() >= shortest);
    }
    if let Some(most) = argument("--clips") {
        clips.truncate(most.parse()?);
    }
    let seconds: f64 = clips.iter().map(Clip::seconds).sum();
    println!("{} clips ({wanted}), {seconds:.0} s, {glasses} glasses", clips.len());
    // The longest first, so that all glasses end at about the same time.
    clips.sort_by_key(|clip| std::cmp::Reverse(clip.pcm.len()));
    let clips: Vec<Arc<Clip>> = clips.into_iter().map(Arc::new).collect();

    common::calibrate("before")?;
    let reference = whole_files(&clips)?;
    let (runtime, mut runs, mut aims) = (common::runtime()?, Vec::<Vec<Outcome>>::new(), Aims::default());
    for world in &worlds {
        let before = common::busy();
        let outcomes = runtime.block_on(stream(&clips, glasses, world))?;
        let late = outcomes.iter().filter(|outcome| !outcome.in_time).count();
        let empty = outcomes.iter().filter(|outcome| outcome.finals.is_empty()).count();
        println!(
            "{}: processor {:.0} % busy while streaming; {late} clips without a final in time, {empty} without any text",
            world.name,
            common::busy_percent(before)
        );
        beside(&outcomes, "whole file at full context", |outcome| {
            wer(&outcome.clip.text, reference.get(&outcome.clip.name).map_or("", String::as_str))
        });
        row("last voice -> end of turn", outcomes.iter().filter_map(|outcome| outcome.end_us).collect());
        report_cuts(&outcomes);
        if let (Some(first), Some(run)) = (worlds.first(), runs.first()) {
            compare(world, &outcomes, &first.name, run, &mut aims);
        }
        runs.push(outcomes);
    }
    common::calibrate("after")?;
    if let Some(file) = argument("--out") {
        write(Path::new(&file), &worlds, &runs, &reference)?;
    }
    aims.judge()
}

/// Texts of the whole files at full context; kept in a file where one is named, since they never change.
fn whole_files(clips: &[Arc<Clip>]) -> Result<BTreeMap<String, String>> {
    let file = argument("--reference");
    let mut known = BTreeMap::new();
    if let Some(text) = file.as_ref().and_then(|file| fs::read_to_string(file).ok()) {
        known.extend(text.lines().filter_map(|line| {
            let (name, text) = line.split_once('\t')?;
            Some((name.to_owned(), text.to_owned()))
        }));
    }
    let options = Options { context: Context::Full, ..Options::default() };
    let mut decoder = common::engine()?.decoder()?;
    for clip in clips {
        if !known.contains_key(&clip.name) {
            let heard = decoder.transcribe(clip.pcm.as_slice(), &options)?;
            known.insert(clip.name.clone(), heard.text.replace(['\t', '\n'], " "));
        }
    }
    if let Some(file) = file {
        let lines: Vec<String> = known.iter().map(|(name, text)| format!("{name}\t{text}\n")).collect();
        fs::write(file, lines.concat())?;
    }
    Ok(known)
}

/// All clips in one world.
async fn stream(clips: &[Arc<Clip>], count: usize, world: &World) -> Result<Vec<Outcome>> {
    let gateway = Arc::new(TestGateway::start("[hearing]\nalways_listening = true").await?);
    let mut shares: Vec<Vec<Arc<Clip>>> = vec![Vec::new(); count];
    for clip in clips {
        // Each to those who have least to say.
        let least = shares.iter_mut().min_by_key(|share| share.iter().map(|clip| clip.pcm.len()).sum::<usize>());
        least.context("at least one pair of glasses")?.push(clip.clone());
    }
    let seed: u64 = argument("--seed").map_or(Ok(1), |seed| seed.parse())?;
    let schemes = common::schemes()?;
    let mut tasks = JoinSet::new();
    for (number, share) in shares.into_iter().enumerate() {
        let scheme = schemes[number % schemes.len()];
        let mut options = gateway.options(scheme, &format!("glasses-{number}"))?;
        options.profile.speaker_hz = 0;
        options.acoustics.noise = world.noise;
        options.network = world.network.clone();
        options.bitrate_max = world.bitrate.unwrap_or(options.bitrate_max);
        options.seed = seed ^ (number as u64) << 8;
        let glasses = gateway.glasses(options, &format!("user-{number}")).await?;
        tasks.spawn(speak(gateway.clone(), glasses, scheme.name(), share));
    }
    let mut outcomes = Vec::new();
    while let Some(done) = tasks.join_next().await {
        outcomes.extend(done??);
    }
    let gateway = Arc::into_inner(gateway).context("glasses that still speak")?;
    gateway.running.stop().await;
    Ok(outcomes)
}

async fn speak(
    gateway: Arc<TestGateway>,
    glasses: Glasses,
    transport: &'static str,
    clips: Vec<Arc<Clip>>,
) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for clip in clips {
        let mark = glasses.log().mark();
        let said = glasses.say_pcm(&clip.name, &clip.pcm, None).await?;
        let last = glasses.log().find(mark, |event| {
            event.at_us >= said.t0_us && matches!(event.seen, Seen::Transcript { is_final: true, .. })
        });
        let in_time = tokio::time::timeout(FINAL_MAX, last).await.is_ok();
        let voiced = Duration::from_micros(said.t0_us - said.begins_us).as_secs_f64();
        let rest = Duration::from_secs_f64((clip.seconds() - voiced).max(0.0));
        tokio::time::sleep(rest + GAP).await;
        let finals = finals(&glasses.log().since(mark));
        let end_us = gateway.end_of_turn_us(&glasses, &said);
        outcomes.push(Outcome { clip, transport, finals, in_time, end_us });
    }
    glasses.goodbye().await;
    Ok(outcomes)
}

/// The last final text of each utterance, in order.
fn finals(events: &[Event]) -> Vec<String> {
    let mut texts = BTreeMap::new();
    for event in events {
        if let Seen::Transcript { utterance, is_final: true, text, .. } = &event.seen
            && !text.trim().is_empty()
        {
            texts.insert(*utterance, text.trim().to_owned());
        }
    }
    texts.into_values().collect()
}

/// Prints the word error rates of each transport beside those of another system on the same clips; by how much that of all is
/// higher.
fn beside(outcomes: &[Outcome], other: &str, of_other: impl Fn(&Outcome) -> Wer) -> f64 {
    let mut higher = 0.0;
    for transport in ["ws", "quic", "both"] {
        let chosen = outcomes.iter().filter(|outcome| transport == "both" || outcome.transport == transport);
        let pairs: Vec<(Wer, Wer)> = chosen.map(|outcome| (outcome.wer(), of_other(outcome))).collect();
        if pairs.is_empty() {
            continue;
        }
        let (glasses, others) = sum(&pairs);
        let (low, high) = interval(&pairs);
        higher = glasses.rate() - others.rate();
        println!(
            "{transport:5} {} clips, {} words: through the glasses {:.2} %, {other} {:.2} %, \
             difference {:+.2} points (95 % interval {:+.2} to {:+.2})",
            pairs.len(),
            glasses.words,
            100.0 * glasses.rate(),
            100.0 * others.rate(),
            100.0 * higher,
            100.0 * low,
            100.0 * high,
        );
    }
    higher
}

/// What a world changes of the same clips in the first one.
fn compare(world: &World, outcomes: &[Outcome], first: &str, run: &[Outcome], aims: &mut Aims) {
    let before: BTreeMap<&str, &Outcome> = run.iter().map(|outcome| (outcome.clip.name.as_str(), outcome)).collect();
    let in_first = |outcome: &Outcome| before.get(outcome.clip.name.as_str()).copied();
    let higher = beside(outcomes, first, |outcome| in_first(outcome).map(Outcome::wer).unwrap_or_default());
    let later: Vec<i64> =
        outcomes.iter().filter_map(|outcome| Some(outcome.end_us? - in_first(outcome)?.end_us?)).collect();
    row(&format!("end of turn, later than in {first}"), later.clone());
    if world.network.is_some() {
        let points = 100.0 * higher;
        let what = format!("{}, beside {first}", world.name);
        aims.note(points <= POINTS_MAX, format!("{what}: {points:+.2} points of word error rate, aim {POINTS_MAX}"));
        aims.at_most_ms(&format!("{what}: end of a turn, later"), &later, 0.5, LATER_MS_MAX);
    }
}

fn report_cuts(outcomes: &[Outcome]) {
    let (mut between, mut within, mut possible) = (0, 0, 0);
    for outcome in outcomes {
        let (ends, cuts) = cuts(&outcome.clip.text, &outcome.finals);
        possible += ends;
        for (at_end, words) in cuts {
            if at_end {
                between += 1;
            } else {
                within += 1;
                println!("  cut off in {}: behind {words:?}: {:?}", outcome.clip.name, outcome.finals);
            }
        }
    }
    println!(
        "cut-offs: {within} inside a sentence, in {} clips ({:.1} %); {between} of {possible} pauses between sentences ended a turn",
        outcomes.len(),
        100.0 * within as f64 / outcomes.len().max(1) as f64
    );
}

/// For each place where an utterance was cut: whether a sentence ends there, and the words before it.
/// The place is the one in the transcript that what was heard so far fits best. A comma or colon does
/// not end a sentence. Also how many ends of sentences there are before the last.
fn cuts(text: &str, finals: &[String]) -> (usize, Vec<(bool, String)>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let ends = |word: &&str| word.trim_end_matches(['"', '\'']).ends_with(['.', '!', '?']);
    let possible = words.iter().rev().skip(1).filter(|word| ends(word)).count();
    let mut heard = String::new();
    let mut found = Vec::new();
    for part in finals.iter().take(finals.len().saturating_sub(1)) {
        heard.push_str(part);
        heard.push(' ');
        let best = (1..words.len()).min_by_key(|count| wer(&words[..*count].join(" "), &heard).edits);
        if let Some(count) = best {
            found.push((ends(&words[count - 1]), words[..count].join(" ")));
        }
    }
    (possible, found)
}

fn write(file: &Path, worlds: &[World], runs: &[Vec<Outcome>], reference: &BTreeMap<String, String>) -> Result<()> {
    let mut lines = String::new();
    for (world, outcomes) in worlds.iter().zip(runs) {
        for outcome in outcomes {
            let clip = &outcome.clip;
            let whole = reference.get(&clip.name).map_or("", String::as_str);
            lines.push_str(&format!(
                "{}\t{}\t{}\t{:.1}\t{}\t{}\t{}\t{}\t{whole}\n",
                world.name,
                clip.name,
                outcome.transport,
                clip.seconds(),
                outcome.wer().edits,
                wer(&clip.text, whole).edits,
                clip.text,
                outcome.finals.join(" | "),
            ));
        }
    }
    fs::write(file, lines).with_context(|| file.display().to_string())
}
