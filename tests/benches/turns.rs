//! The ends of turns with voices: false cut-offs against latency, and what becomes of hesitations.
//!
//! `cargo xtask bench turns [--part ends|hesitations] [--turns FILE] [--voices others|NAME,NAME] [--rows N] [--clips N] [--seed 1]
//! [--decode-ms 150] [--model-ms 700] [--out FILE] [--require]`
//!
//! The turns are `data/turns.tsv` in synthetic voices (`--turns`: another table, on which a rule may be tuned), and the recordings of
//! people that `bench speech` holds out. Voice detector, recogniser, command engine and core are the product's own, in virtual time
//! (`common/ear.rs`): the wearer presses the button and speaks. A decode is done after `--decode-ms`, a model begins to answer after `--model-ms` (0: there is none but the command
//! engine). `--rows`: so many rows of each kind.
//!
//! `ends`: each pause is followed by silence, and it is measured after how much of it the turn is over. Pauses before it in the same
//! turn are short. Those of the recordings have their own length, the others one that is drawn from the lengths that people's
//! pauses have in livekit's eot-bench. Printed is what that bench prints: the share of the pauses inside of turns that are cut off
//! at a mean latency of 300 and of 600 ms, and the least mean latency with 5 % of them, over all policies that hold every turn for
//! at least and at most so long; then the same of silence alone, and the product as it is. `--out`: a line for each pause, with what
//! was heard last, and how sure the recogniser was. Then the recordings are cut off in the middle of what is said.
//!
//! `hesitations`: whole turns with all pauses of 0.4, 0.7, 1.0 and 1.5 s: how many of the pauses are taken for the end, and how many
//! of these are put right, since what follows becomes part of the same request.
//!
//! With `--require` it ends with an error where an aim is missed.

mod common;
#[path = "turns/policy.rs"]
mod policy;
#[path = "turns/sound.rs"]
mod sound;

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use audio::codec::Codec;
use common::clips::CLIP_HZ;
use common::ear::{Ear, Engines, Manner, What};
use common::voices::Speaker;
use common::{argument, number, quantile, row};
use gateway_core::vocab::Transcript;
use policy::{Pause, Point};
use sound::{Kind, Turn};

/// How the ear of a wearer listens.
const MANNER: Manner = Manner { codec: Codec::Pcm16, always_listening: false, hiss: 8, seed: 1 };
/// Pauses before the one that is judged: too short to end a turn, and long enough to be heard.
const SHORT_US: u64 = 100_000;
/// Silence in a pause that is judged: more than any turn is waited for. It is heard in parts.
const SILENCE_US: u64 = 5_000_000;
const SILENCE: usize = 5 * CLIP_HZ as usize;
const PART: usize = CLIP_HZ as usize / 10;
/// Silence behind a turn with hesitations, until all of it is decoded.
const BEHIND: usize = 4 * CLIP_HZ as usize;
/// A voice is known of so late: what is decided before that is decided without it.
const KNOWN_US: u64 = 100_000;
/// Aims: cut-offs at a mean latency, and a latency in microseconds with a share of cut-offs.
const CUT_AIMS: [(f64, f64); 2] = [(300_000.0, 0.20), (600_000.0, 0.08)];
const LATENCY_AIM: (f64, f64) = (0.05, 800_000.0);
/// Hesitations, in milliseconds, and the share of plain ones that may be cut.
const HESITATIONS: [(u64, f64); 4] = [(400, 0.0), (700, 0.05), (1_000, 0.10), (1_500, 0.20)];
/// The labelled pauses that there are to be.
const PAUSES_MIN: usize = 500;

fn main() -> Result<()> {
    let part = argument("--part");
    let is_wanted = |name: &str| part.as_ref().is_none_or(|part| part == name);
    ensure!(is_wanted("ends") || is_wanted("hesitations"), "--part ends or hesitations");
    let all = usize::MAX as u64;
    let (rows, clips) = (number("--rows", all)? as usize, number("--clips", all)? as usize);
    common::calibrate("before")?;
    let mut engines = Engines::load()?;
    let mut turns = sound::synthetic(
        argument("--turns").as_deref().map(Path::new),
        &Speaker::asked_for()?,
        rows,
        number("--seed", 1)?,
    )?;
    let mut missed = Vec::new();
    if is_wanted("hesitations") {
        missed.extend(hesitations(&mut engines, &turns)?);
    }
    if is_wanted("ends") {
        turns.extend(sound::recorded(clips)?);
        missed.extend(ends(&mut engines, &turns)?);
        cut_off(&mut engines, &sound::cut_off(clips)?)?;
    }
    row("what a decode really took", std::mem::take(&mut engines.decodes_us));
    common::calibrate("after")?;
    common::aims::judge(&missed)
}

/// Judges each pause; the aims that were missed.
fn ends(engines: &mut Engines, turns: &[Turn]) -> Result<Vec<String>> {
    let (mut pauses, mut lines, mut unfinished, mut before) = (Vec::new(), String::new(), 0, 0);
    for turn in turns {
        for index in 0..turn.pieces.len() {
            let (over_us, early, heard) = over(engines, turn, index).with_context(|| turn.name.clone())?;
            let lasts_us = turn.pauses_us.get(index).copied();
            pauses.push(Pause { kind: turn.kind, lasts_us, over_us });
            unfinished += usize::from(over_us.is_none());
            before += usize::from(early);
            let ms = |us: Option<u64>| us.map_or_else(|| "-".to_owned(), |us| (us / 1_000).to_string());
            let (kind, name) = (turn.kind.name(), &turn.name);
            lines.push_str(&format!("{kind}\t{}\t{}\t{}\t{name}\t{heard}\n", index + 1, ms(lasts_us), ms(over_us)));
        }
    }
    if let Some(file) = argument("--out") {
        let head = "# Kind, pause, its length in ms (-: the end), silence in ms after which the turn is over, turn, \
                    confidence, that of the last word, probability that it breaks off, text\n";
        std::fs::write(Path::new(&file), head.to_owned() + &lines).with_context(|| file.clone())?;
    }
    println!("{} pauses; {unfinished} turns were never over, {before} before the pause", pauses.len());
    kinds(&pauses);
    let (clips, synthetic): (Vec<Pause>, Vec<Pause>) =
        pauses.iter().copied().partition(|pause| pause.kind == Kind::Clip);
    report("recordings", &clips);
    report("synthetic voices", &synthetic);
    let mut missed = report("all", &pauses);
    if pauses.len() < PAUSES_MIN {
        missed.push(format!("{} pauses of {PAUSES_MIN}", pauses.len()));
    }
    Ok(missed)
}

/// How soon the turns of people are over who stop in the middle of what they say. Nobody pauses like that, so it counts for no aim.
fn cut_off(engines: &mut Engines, turns: &[Turn]) -> Result<()> {
    let mut over_us = Vec::new();
    for turn in turns {
        over_us.push(over(engines, turn, 0)?.0.unwrap_or(SILENCE_US));
    }
    let over_by =
        |ms: u64| over_us.iter().filter(|us| **us <= ms * 1_000).count() as f64 * 100.0 / over_us.len() as f64;
    let [early, late] = [600, 1_500].map(over_by);
    println!("{} recordings cut off in the middle: over after 600, 1500 ms: {early:.1}, {late:.1} %", over_us.len());
    Ok(())
}

/// The silence in microseconds behind a piece of a turn after which the turn is over; `None`: it never was. And whether a
/// turn was over before the piece had ended.
fn over(engines: &mut Engines, turn: &Turn, index: usize) -> Result<(Option<u64>, bool, String)> {
    let said = turn.said(index + 1, |_| SHORT_US);
    let (mut ear, from_us) = speak(engines, &said.pcm)?;
    let &(begins_us, ends_us) = said.voices_us.last().context("a piece")?;
    let (begins_us, ends_us) = (from_us + begins_us, from_us + ends_us);
    let before = ear.times_us(What::Ended).count();
    for silence in vec![0; SILENCE].chunks(PART) {
        ear.hear(engines, silence)?;
        if ear.times_us(What::Ended).count() > before {
            break;
        }
    }
    let over_us = ear.times_us(What::Ended).filter(|at_us| *at_us >= begins_us).last();
    let early = ear.times_us(What::Ended).any(|at_us| at_us < ends_us);
    let heard = ear.last_decoded().map(|Transcript { text, confidence, last_word, breaks_off, .. }| {
        format!("{confidence:.3}\t{last_word:.3}\t{breaks_off:.4}\t{text}")
    });
    let heard = heard.unwrap_or_else(|| "-\t-\t-\t".to_owned());
    Ok((over_us.map(|at_us| at_us.saturating_sub(ends_us)), early, heard))
}

/// An ear that has heard this after a press of the button, and when the sound began.
fn speak(engines: &mut Engines, pcm: &[i16]) -> Result<(Ear, u64)> {
    let mut ear = Ear::new(engines, MANNER)?;
    ear.press(engines)?;
    let from_us = ear.now_us();
    ear.hear(engines, pcm)?;
    Ok((ear, from_us))
}

/// How soon the turns of each kind are over, in pauses inside of them and at their ends.
fn kinds(pauses: &[Pause]) {
    for kind in [Kind::Plain, Kind::Whole, Kind::Request, Kind::End, Kind::Clip] {
        for (place, is_end) in [("inside", false), ("at the end", true)] {
            let of_kind = pauses.iter().filter(|pause| pause.kind == kind && pause.lasts_us.is_none() == is_end);
            let mut over_us: Vec<i64> = of_kind.map(|pause| pause.over_us.unwrap_or(SILENCE_US) as i64).collect();
            if over_us.is_empty() {
                continue;
            }
            let shares = [300, 600, 1_000, 1_500].map(|ms| {
                let over = over_us.iter().filter(|us| **us <= ms * 1_000).count();
                format!("{:.1}", 100.0 * over as f64 / over_us.len() as f64)
            });
            println!(
                "  {:8} {place:10} n {:4}, over after {} ms at the median; after 300, 600, 1000, 1500 ms: {} %",
                kind.name(),
                over_us.len(),
                quantile(&mut over_us, 0.5).unwrap_or(0) / 1_000,
                shares.join(", ")
            );
        }
    }
}

/// Prints what policies come to; the aims that were missed.
fn report(name: &str, pauses: &[Pause]) -> Vec<String> {
    let inner = pauses.iter().filter(|pause| pause.lasts_us.is_some()).count();
    if inner == 0 || inner == pauses.len() {
        return Vec::new();
    }
    println!("{name}: {inner} pauses inside of turns, {} ends", pauses.len() - inner);
    let (points, silences) = (policy::points(pauses), policy::by_silence(pauses));
    let as_it_is = policy::point(pauses, 0, SILENCE_US);
    println!("  as it is: {}", show(Some(as_it_is)));
    let mut missed = Vec::new();
    for (latency_us, aim) in CUT_AIMS {
        let best = policy::fewest_cut(&points, latency_us);
        let plain = policy::fewest_cut(&silences, latency_us);
        let ms = latency_us / 1e3;
        println!("  within {ms:.0} ms: {}; silence alone: {}", show(best), show(plain));
        if best.is_none_or(|best| best.cut > aim) {
            missed.push(format!("{name}, cut-offs within {ms:.0} ms: {}, aim {:.0} %", show(best), 100.0 * aim));
        }
    }
    let (cut, aim_us) = LATENCY_AIM;
    let (best, plain) = (policy::soonest(&points, cut), policy::soonest(&silences, cut));
    let percent = 100.0 * cut;
    println!("  with {percent:.0} % of cut-offs: {}; silence alone: {}", show(best), show(plain));
    if best.is_none_or(|best| best.latency_us > aim_us) {
        missed.push(format!("{name}, latency with {percent:.0} %: {}, aim {:.0} ms", show(best), aim_us / 1e3));
    }
    missed
}

fn show(point: Option<Point>) -> String {
    let Some(Point { delay_us, timeout_us, cut, latency_us }) = point else {
        return "-".to_owned();
    };
    let (delay_ms, timeout_ms) = (delay_us / 1_000, timeout_us / 1_000);
    format!("{:.1} % cut off, {:.0} ms (held for {delay_ms} to {timeout_ms})", 100.0 * cut, latency_us / 1e3)
}

/// What became of the pauses of some turns.
#[derive(Default)]
struct Hesitated {
    pauses: usize,
    /// Those that were taken for the end of a turn, and those of them that were put right.
    cut: usize,
    together: usize,
}

/// Says the commands with long pauses; the aims that were missed.
fn hesitations(engines: &mut Engines, turns: &[Turn]) -> Result<Vec<String>> {
    let mut missed = Vec::new();
    for kind in [Kind::Plain, Kind::Whole, Kind::Request] {
        for (ms, aim) in HESITATIONS {
            let mut sum = Hesitated::default();
            for turn in turns.iter().filter(|turn| turn.kind == kind) {
                hesitate(engines, turn, ms * 1_000, &mut sum).with_context(|| turn.name.clone())?;
            }
            let share = sum.cut as f64 / sum.pauses.max(1) as f64;
            println!(
                "{:8} pauses of {ms:4} ms: {:3} of {:3} taken for the end ({:.1} %), {:3} of these put together again",
                kind.name(),
                sum.cut,
                sum.pauses,
                100.0 * share,
                sum.together
            );
            if kind == Kind::Plain && share > aim {
                missed.push(format!("pauses of {ms} ms: {:.1} % cut, aim {:.0} %", 100.0 * share, 100.0 * aim));
            }
        }
    }
    Ok(missed)
}

/// Says a turn with all its pauses of this length.
fn hesitate(engines: &mut Engines, turn: &Turn, pause_us: u64, sum: &mut Hesitated) -> Result<()> {
    let said = turn.said(turn.pieces.len(), |_| pause_us);
    let (mut ear, from_us) = speak(engines, &said.pcm)?;
    ear.hear(engines, &vec![0; BEHIND])?;
    let is_cut = |pair: &&[(u64, u64)]| {
        let (ends_us, goes_on_us) = (from_us + pair[0].1, from_us + pair[1].0 + KNOWN_US);
        ear.times_us(What::Ended).any(|at_us| (ends_us..goes_on_us).contains(&at_us))
    };
    let cut = said.voices_us.windows(2).filter(is_cut).count();
    sum.pauses += turn.pauses_us.len();
    sum.cut += cut;
    // One request in the end, to which all that followed was added.
    let is_one = ear.times_us(What::Requested).count() == 1 && ear.times_us(What::Reopened).count() >= cut;
    if is_one {
        sum.together += cut;
    }
    Ok(())
}
