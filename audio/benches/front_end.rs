//! Whether a high-pass, a gain and noise suppression before voice detection and recognition help.
//!
//! `cargo xtask bench front_end [--half choosing|judging] [--clips N] [--only CONDITION] [--out FILE]`
//!
//! Telephone prompts with their texts, each behind another one, as Opus of 24 kbit/s, in each condition, through each
//! candidate. The word error rate is that of the whole sentence, cut out by the clean clip, decoded as the gateway does it.
//! Begin and end are those of the listener, with the silence that ends a turn; a fault is one that is missing or more
//! than 0.33 s away from where the clean clip's energy has it. The halves are by a hash of the clip's name, and have
//! different noises: settings are chosen on the first and judged on the second.

#[path = "front_end/candidates.rs"]
mod candidates;
#[path = "../../tests/benches/common/clips.rs"]
#[allow(dead_code, reason = "it is made for other programs as well")]
mod clips;
#[path = "../../tests/benches/common/g722.rs"]
mod g722;
#[path = "../tests/listener_clips/mod.rs"]
mod listener_clips;
#[path = "front_end/scenes.rs"]
mod scenes;

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use audio::asr::wer::{Wer, wer};
use audio::asr::{self, Decoder, Engine, Options};
use audio::codec::Codec;
use audio::listener::{Config, Fact, Listener};
use audio::microphone::Fault;
use audio::vad::silero;
use candidates::Candidate;
use clips::{CLIP_HZ, Clip};
use listener_clips::{Random, model, model_path};
use scenes::{Heard, PACKET, conditions, hear};

/// Clips of a half, if no other number is asked for.
const CLIPS: usize = 12;
/// Clips are sentences, short enough to be decoded fast.
const WORDS_MIN: usize = 4;
const SECONDS_MAX: f64 = 6.0;
/// Tolerance of begin and end: breath before a sentence is no voice, a last consonant is not loud.
const NEAR_US: u64 = 330_000;
/// Silence that ends a turn, as by default.
const SILENCE_US: u64 = 600_000;
/// Sound around the voice that is decoded with it.
const AROUND: usize = 3 * CLIP_HZ as usize / 10;
/// Repetitions of the measurement of cost: the kernel counts processor time in steps.
const TIMES: u32 = 10;
/// Samples of the bootstrap.
const RESAMPLES: usize = 2_000;

/// What came of a clip under a condition.
#[derive(Clone, Copy)]
struct Outcome {
    words: Wer,
    begin_fault: bool,
    end_fault: bool,
    found: bool,
}

fn main() -> Result<()> {
    let half = argument("--half").unwrap_or_else(|| "judging".to_owned());
    ensure!(["choosing", "judging"].contains(&half.as_str()), "--half is choosing or judging");
    let (clips, seed) = if half == "choosing" { (chosen(0)?, 1) } else { (chosen(1)?, 2) };
    let only = argument("--only");
    println!("{half}: {} clips, {:.0} s", clips.len(), clips.iter().map(Clip::seconds).sum::<f64>());
    let vad = model();
    let mut decoder = Engine::load(&model_path("whisper-tiny.en.bin"), asr::Config::default())?.decoder()?;
    let mut lines = String::new();
    let mut all = BTreeMap::<Candidate, Vec<Outcome>>::new();
    println!("{:16} {:>12}  word error rate  begin faults  end faults  of {} clips", "condition", "", clips.len());
    for (name, condition) in conditions() {
        if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        let mut here = BTreeMap::<Candidate, Vec<Outcome>>::new();
        for (index, clip) in clips.iter().enumerate() {
            let heard = hear(&clips, index, &condition, seed)?;
            for candidate in Candidate::ALL {
                let (outcome, text) = judge(candidate, clip, &heard, &vad, &mut decoder)?;
                here.entry(candidate).or_default().push(outcome);
                let Outcome { words: Wer { edits, words }, begin_fault, end_fault, .. } = outcome;
                lines.push_str(&format!(
                    "{name}\t{}\t{}\t{edits}\t{words}\t{begin_fault}\t{end_fault}\t{}\t{text}\n",
                    candidate.name(),
                    clip.name,
                    clip.text
                ));
            }
        }
        for (candidate, outcomes) in here {
            row(&name, candidate, &outcomes);
            all.entry(candidate).or_default().extend(outcomes);
        }
    }
    summary(&all, clips.len());
    if let Some(file) = argument("--out") {
        std::fs::write(&file, lines).context(file)?;
    }
    cost(&clips, &vad)
}

/// Clips of one half, by a hash of their names, as many as are wanted.
fn chosen(half: u8) -> Result<Vec<Clip>> {
    use sha2::Digest as _;
    let of_half = |clip: &Clip| sha2::Sha256::digest(clip.name.as_bytes())[1] % 2 == half;
    let mut clips = clips::prompts_of("en", "en_US_f_Allison")?;
    clips.retain(|clip| clip.text.split_whitespace().count() >= WORDS_MIN && clip.seconds() <= SECONDS_MAX);
    clips.retain(of_half);
    clips.sort_by(|a, b| a.name.cmp(&b.name));
    let count = argument("--clips").map_or(Ok(CLIPS), |count| count.parse())?;
    let mut random = Random(7);
    while clips.len() > count {
        clips.remove(random.below(clips.len() as u64) as usize);
    }
    Ok(clips)
}

fn judge(
    candidate: Candidate,
    clip: &Clip,
    heard: &Heard,
    vad: &Arc<silero::Model>,
    decoder: &mut Decoder,
) -> Result<(Outcome, String)> {
    let pcm = candidate.apply(&heard.pcm)?;
    let cut = heard.begin.saturating_sub(AROUND)..(heard.end + AROUND).min(pcm.len());
    let text = decoder.transcribe(&pcm[cut], &Options::default())?.text;
    let (utterances, _) = listen(&pcm, vad)?;
    let us = |at: usize| at as u64 * 1_000_000 / u64::from(CLIP_HZ);
    let near = |a: u64, b: usize| a.abs_diff(us(b)) <= NEAR_US;
    let outcome = Outcome {
        words: wer(&clip.text, &text),
        begin_fault: !utterances.iter().any(|(begin, _)| near(*begin, heard.begin)),
        end_fault: !utterances.iter().any(|(_, end)| end.is_some_and(|end| near(end, heard.end))),
        found: utterances
            .iter()
            .any(|(begin, end)| *begin <= us(heard.end) && end.is_none_or(|end| end >= us(heard.begin))),
    };
    Ok((outcome, text))
}

/// Begins and ends of utterances; one that did not end has none. And the faults of the microphone that were found.
type Utterances = Vec<(u64, Option<u64>)>;

fn listen(pcm: &[i16], vad: &Arc<silero::Model>) -> Result<(Utterances, Vec<Fault>)> {
    let config = Config { codec: Codec::Pcm16, rate_hz: CLIP_HZ, ..Config::default() };
    let mut ear = Listener::new(config, vad.clone())?;
    let (mut facts, mut utterances, mut faults) = (Vec::new(), Utterances::new(), Vec::new());
    for (packet, index) in pcm.chunks_exact(PACKET).zip(0_u32..) {
        let bytes: Vec<u8> = packet.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let at_us = u64::from(index) * 20_000;
        ear.push_packet(index, at_us, &bytes, at_us, &mut facts)?;
        for fact in facts.drain(..) {
            match fact {
                Fact::SpeechStarted { at_us, .. } => utterances.push((at_us, None)),
                Fact::Silence { utterance, at_us, silence_us, .. } if silence_us >= SILENCE_US => {
                    ear.close_utterance(utterance);
                    if let Some((_, end)) = utterances.last_mut() {
                        *end = Some(at_us);
                    }
                }
                _ => {}
            }
        }
        faults.extend(std::iter::from_fn(|| ear.take_fault()).filter_map(|(fault, found)| found.then_some(fault)));
    }
    Ok((utterances, faults))
}

fn row(name: &str, candidate: Candidate, outcomes: &[Outcome]) {
    let count = |is: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| is(outcome)).count();
    let mut words = Wer::default();
    outcomes.iter().for_each(|outcome| words += outcome.words);
    println!(
        "{name:16} {:>12}  {:13.1} %  {:12}  {:10}  found {}",
        candidate.name(),
        100.0 * words.rate(),
        count(|outcome| outcome.begin_fault),
        count(|outcome| outcome.end_fault),
        count(|outcome| outcome.found),
    );
}

/// All conditions together, against nothing, paired.
fn summary(all: &BTreeMap<Candidate, Vec<Outcome>>, clips: usize) {
    let Some(nothing) = all.get(&Candidate::Nothing) else { return };
    for (candidate, outcomes) in all {
        row("all", *candidate, outcomes);
        let pairs: Vec<(Wer, Wer)> =
            outcomes.iter().zip(nothing).map(|(with, without)| (with.words, without.words)).collect();
        let ((with, without), (low, high)) = (sum(&pairs), interval(&pairs, clips));
        println!(
            "{:16} {:>12}  {:+.2} points (95 % interval {:+.2} to {:+.2})",
            "",
            "",
            100.0 * (with.rate() - without.rate()),
            100.0 * low,
            100.0 * high
        );
    }
}

fn sum(pairs: &[(Wer, Wer)]) -> (Wer, Wer) {
    let mut total = (Wer::default(), Wer::default());
    for (with, without) in pairs {
        total.0 += *with;
        total.1 += *without;
    }
    total
}

/// Percentile bootstrap of the difference of the rates, paired, over the clips, which come in turn.
fn interval(pairs: &[(Wer, Wer)], clips: usize) -> (f64, f64) {
    let of_clip = |clip| sum(&pairs.iter().copied().skip(clip).step_by(clips).collect::<Vec<_>>());
    let pairs: Vec<(Wer, Wer)> = (0..clips).map(of_clip).collect();
    let mut random = Random(20);
    let mut differences: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let sample: Vec<(Wer, Wer)> =
                (0..pairs.len()).map(|_| pairs[random.below(pairs.len() as u64) as usize]).collect();
            let (with, without) = sum(&sample);
            with.rate() - without.rate()
        })
        .collect();
    differences.sort_by(f64::total_cmp);
    let at = |share: f64| differences.get((share * RESAMPLES as f64) as usize).copied().unwrap_or_default();
    (at(0.025), at(0.975))
}

/// Processor time of this process's threads so far, in microseconds: not distorted by other load on the machine.
fn cpu_us() -> Result<f64> {
    let mut ns = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        ns += text.split_whitespace().next().context("a time")?.parse::<u64>()?;
    }
    Ok(ns as f64 / 1e3)
}

/// What each costs for a second of sound, beside the voice detector on the same sound, in which a healthy microphone has
/// no fault.
fn cost(clips: &[Clip], vad: &Arc<silero::Model>) -> Result<()> {
    let pcm: Vec<i16> = clips.iter().flat_map(|clip| clip.pcm.iter().copied()).take(30 * CLIP_HZ as usize).collect();
    let seconds = pcm.len() as f64 / f64::from(CLIP_HZ);
    let began = cpu_us()?;
    let (_, faults) = listen(&pcm, vad)?;
    let detector = cpu_us()? - began;
    ensure!(faults.is_empty(), "a healthy microphone has {faults:?}");
    println!("voice detector: {:.0} us of processor time for a second of sound", detector / seconds);
    for candidate in Candidate::ALL {
        let began = cpu_us()?;
        for _ in 0..TIMES {
            candidate.apply(&pcm)?;
        }
        let took = (cpu_us()? - began) / f64::from(TIMES);
        println!("{}: {:.0} us, {:.3} of the voice detector", candidate.name(), took / seconds, took / detector);
    }
    Ok(())
}

/// The value behind a name on the command line.
fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args();
    arguments.find(|argument| argument == name)?;
    arguments.next()
}
