//! Word error rate of real speech through simulated glasses, against whole files at full context; false cut-offs.
//!
//! `cargo xtask bench speech [--glasses N] [--half held-out|all] [--only CLIP] [--reference FILE] [--out FILE]
//! [--from SECONDS] [--clips N] [--network NAME] [--seed N]`
//!
//! Every clip is streamed in real time as Opus, by turns over WebSocket and QUIC, to a gateway with
//! the settings that are shipped, but for `always_listening`. Its final transcripts, in order, are
//! the hypothesis. The reference system is the same weights on the whole file at full context without
//! a prompt; both are scored by the same normaliser. The glasses have no speaker, so that no answer
//! is in the way of the next clip.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use audio::asr::wer::{Wer, wer};
use audio::asr::{Context, Options};
use common::clips::{self, Clip};
use common::paired::{interval, sum};
use common::{TestGateway, argument};
use firmware_sim::network::Profile;
use firmware_sim::transport::Scheme;
use firmware_sim::{Event, Glasses, Seen};
use tokio::task::JoinSet;

const GLASSES: usize = 6;
/// How long after the last voiced sample a final may come.
const FINAL_MAX: Duration = Duration::from_secs(10);
/// Silence between clips: longer than the longest silence that a turn waits for.
const GAP: Duration = Duration::from_millis(1_500);

/// What became of a clip.
struct Outcome {
    clip: Clip,
    transport: &'static str,
    finals: Vec<String>,
    reference: String,
}

fn main() -> Result<()> {
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

    common::calibrate("before")?;
    let mut reference = whole_files(&clips)?;
    let before = common::busy();
    let (outcomes, refused) = common::runtime()?.block_on(stream(clips, glasses))?;
    let empty = outcomes.iter().filter(|(_, _, finals)| finals.is_empty()).count();
    println!(
        "processor {:.0} % busy while streaming; {refused} clips without a final in time, {empty} without any text",
        common::busy_percent(before)
    );
    common::calibrate("after")?;

    let outcomes: Vec<Outcome> = outcomes
        .into_iter()
        .map(|(clip, transport, finals)| {
            let reference = reference.remove(&clip.name).unwrap_or_default();
            Outcome { clip, transport, finals, reference }
        })
        .collect();
    if let Some(file) = argument("--out") {
        write(Path::new(&file), &outcomes)?;
    }
    report(&outcomes);
    Ok(())
}

/// Texts of the whole files at full context; kept in a file where one is named, since they never change.
fn whole_files(clips: &[Clip]) -> Result<BTreeMap<String, String>> {
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

type Heard = (Clip, &'static str, Vec<String>);

async fn stream(clips: Vec<Clip>, count: usize) -> Result<(Vec<Heard>, usize)> {
    let gateway = TestGateway::start("[hearing]\nalways_listening = true").await?;
    let mut shares: Vec<Vec<Clip>> = (0..count).map(|_| Vec::new()).collect();
    // The longest first, each to those who have least to say: all end at about the same time.
    let mut clips = clips;
    clips.sort_by_key(|clip| std::cmp::Reverse(clip.pcm.len()));
    for clip in clips {
        let least = shares.iter_mut().min_by_key(|share| share.iter().map(|clip| clip.pcm.len()).sum::<usize>());
        least.context("at least one pair of glasses")?.push(clip);
    }
    let mut tasks = JoinSet::new();
    for (number, share) in shares.into_iter().enumerate() {
        let scheme = if number % 2 == 0 { Scheme::Ws } else { Scheme::Quic };
        let mut options = gateway.options(scheme, &format!("glasses-{number}"))?;
        options.profile.speaker_hz = 0;
        if let Some(name) = argument("--network") {
            options.network = Some(Profile::named(&name).with_context(|| format!("{name} is no network"))?);
        }
        options.seed = argument("--seed").map_or(Ok(1), |seed| seed.parse())? ^ (number as u64) << 8;
        let glasses = gateway.glasses(options, &format!("user-{number}")).await?;
        tasks.spawn(speak(glasses, scheme.name(), share));
    }
    let (mut heard, mut refused) = (Vec::new(), 0);
    while let Some(done) = tasks.join_next().await {
        let (of_one, without) = done??;
        heard.extend(of_one);
        refused += without;
    }
    gateway.running.stop().await;
    Ok((heard, refused))
}

async fn speak(glasses: Glasses, transport: &'static str, clips: Vec<Clip>) -> Result<(Vec<Heard>, usize)> {
    let (mut heard, mut without) = (Vec::new(), 0);
    for clip in clips {
        let mark = glasses.log().mark();
        let said = glasses.say_pcm(&clip.name, &clip.pcm, None).await?;
        let last = glasses.log().find(mark, |event| {
            event.at_us >= said.t0_us && matches!(event.seen, Seen::Transcript { is_final: true, .. })
        });
        if tokio::time::timeout(FINAL_MAX, last).await.is_err() {
            without += 1;
        }
        let voiced = Duration::from_micros(said.t0_us - said.begins_us).as_secs_f64();
        let rest = Duration::from_secs_f64((clip.seconds() - voiced).max(0.0));
        tokio::time::sleep(rest + GAP).await;
        heard.push((clip, transport, finals(&glasses.log().since(mark))));
    }
    glasses.goodbye().await;
    Ok((heard, without))
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

fn report(outcomes: &[Outcome]) {
    for transport in ["ws", "quic", "both"] {
        let chosen: Vec<&Outcome> =
            outcomes.iter().filter(|outcome| transport == "both" || outcome.transport == transport).collect();
        let pairs: Vec<(Wer, Wer)> = chosen
            .iter()
            .map(|outcome| {
                let text = &outcome.clip.text;
                (wer(text, &outcome.finals.join(" ")), wer(text, &outcome.reference))
            })
            .collect();
        let (glasses, whole) = sum(&pairs);
        let (low, high) = interval(&pairs);
        println!(
            "{transport:5} {} clips, {} words: through the glasses {:.2} %, whole file at full context {:.2} %, \
             difference {:+.2} points (95 % interval {:+.2} to {:+.2})",
            chosen.len(),
            glasses.words,
            100.0 * glasses.rate(),
            100.0 * whole.rate(),
            100.0 * (glasses.rate() - whole.rate()),
            100.0 * low,
            100.0 * high,
        );
    }
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

fn write(file: &Path, outcomes: &[Outcome]) -> Result<()> {
    let mut lines = String::new();
    for Outcome { clip, transport, finals, reference } in outcomes {
        let through = wer(&clip.text, &finals.join(" ")).edits;
        let whole = wer(&clip.text, reference).edits;
        lines.push_str(&format!(
            "{}\t{transport}\t{:.1}\t{through}\t{whole}\t{}\t{}\t{reference}\n",
            clip.name,
            clip.seconds(),
            clip.text,
            finals.join(" | "),
        ));
    }
    fs::write(file, lines).with_context(|| file.display().to_string())
}
