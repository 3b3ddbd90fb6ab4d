//! Recognition beside faster-whisper, from the same weights, on the same clips: word error rate and processor time.
//!
//! `cargo xtask bench peer [--half held-out|all] [--clips N] [--only clean|babble-20|babble-10|babble-5] [--out FILE] [--require]`
//!
//! Telephone prompts (with `all` other readings as well), clean and in babble of synthetic voices, are decoded as whole files: by the gateway's recogniser as it
//! decodes a request (context by length, the default wake phrases as its prompt), and by faster-whisper with 8-bit weights,
//! without timestamps, with beams of 1 and of 5, and its own fallback to higher temperatures. Each has one thread; they decode a clip one after the other, with each clip another
//! one first, so that what else runs meets all alike. Processor time is that of the whole process, from the samples to the
//! text. Both are scored by the same normaliser; the interval is that of a paired bootstrap over the clips.
//!
//! The Python packages are installed into `.cache`. With `--require` it ends with an error where an aim is missed.

#[path = "../it/cache.rs"]
mod cache;
mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Error, Result, bail, ensure};
use audio::asr::wer::{Wer, wer};
use audio::asr::{Decoder, Options};
use audio::models::{catalogue, sha256_file};
use common::aims::Aims;
use common::argument;
use common::clips::{self, CLIP_HZ, Clip};
use common::paired::{interval, sum};
use firmware_sim::acoustics::noise::Kind;
use firmware_sim::acoustics::{Ambience, Change, Noise, Scene};
use gateway_core::conversation::Config;
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

/// What the clips are heard in: the distance of a babble below the voice, in decibels.
const CONDITIONS: [(&str, Option<f64>); 4] =
    [("clean", None), ("babble-20", Some(20.0)), ("babble-10", Some(10.0)), ("babble-5", Some(5.0))];
/// The peer's beams: the cheapest, and its default.
const BEAMS: [u32; 2] = [1, 5];
/// Ours, and the peer with each beam.
const SYSTEMS: usize = 1 + BEAMS.len();
const PACKET: usize = CLIP_HZ as usize / 50;
/// Aims: points of the word error rate above the peer's at most, and times less processor time at least.
const POINTS_MAX: f64 = 0.5;
const TIMES_MIN: f64 = 2.0;

/// What a system made of a clip.
#[derive(Clone, Default)]
struct Decoded {
    text: String,
    words: Wer,
    cpu_us: u64,
}

type Outcome = [Decoded; SYSTEMS];

/// A condition, and what the systems made of each clip in it.
type Results = (&'static str, Vec<Outcome>);

fn main() -> Result<()> {
    let half = argument("--half").unwrap_or_else(|| "held-out".to_owned());
    ensure!(["held-out", "all"].contains(&half.as_str()), "--half is held-out or all");
    let mut clips = clips::all()?;
    clips.retain(|clip| half == "all" || !clip.development);
    if let Some(most) = argument("--clips") {
        clips.truncate(most.parse()?);
    }
    let only = argument("--only");
    let conditions = CONDITIONS.into_iter().filter(|(name, _)| only.as_ref().is_none_or(|only| only == name));
    let conditions: Vec<_> = conditions.collect();
    ensure!(!conditions.is_empty(), "--only: {}", CONDITIONS.map(|(name, _)| name).join(", "));
    let seconds: f64 = clips.iter().map(Clip::seconds).sum();
    println!("{} clips ({half}), {seconds:.0} s", clips.len());

    common::calibrate("before")?;
    let mut systems = Systems::start()?;
    let longest = clips.iter().max_by_key(|clip| clip.pcm.len()).context("no clips")?;
    systems.decode(&longest.text, &longest.pcm, 0)?;
    let babble = Noise { kind: Kind::Babble, snr_db: 0.0, seed: 1 };
    let babble = Ambience::render(&babble).map_err(Error::msg)?;
    let mut results: Vec<Results> = conditions.iter().map(|(name, _)| (*name, Vec::new())).collect();
    for (index, clip) in clips.iter().enumerate() {
        for ((_, below_db), (_, outcomes)) in conditions.iter().zip(&mut results) {
            let pcm = match below_db {
                Some(snr_db) => in_babble(&clip.pcm, *snr_db, index as u64, &babble)?,
                None => clip.pcm.clone(),
            };
            outcomes.push(systems.decode(&clip.text, &pcm, index)?);
        }
    }
    systems.peer.end()?;
    common::calibrate("after")?;

    if let Some(file) = argument("--out") {
        write(Path::new(&file), &clips, &results)?;
    }
    results.push(("all", of_all(&results)));
    report(&results)
}

/// A clip in a babble, which begins elsewhere for each seed.
fn in_babble(clip: &[i16], snr_db: f64, seed: u64, babble: &Ambience) -> Result<Vec<i16>> {
    let mut scene = Scene::new(CLIP_HZ);
    let noise = Noise { kind: Kind::Babble, snr_db, seed };
    scene.apply(Change::Noise(Some(noise)), Some(babble)).map_err(Error::msg)?;
    scene.begin(clip);
    // Its level glides to that below the clip within the first packet.
    scene.mix(0, &mut [0; PACKET]);
    let mut pcm = clip.to_vec();
    scene.mix(0, &mut pcm);
    Ok(pcm)
}

/// Processor microseconds of this process so far, by the clock that the peer reads as well.
fn cpu_us() -> u64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as u64 * 1_000_000 + now.tv_nsec as u64 / 1_000
}

/// Both recognisers.
struct Systems {
    ours: Decoder,
    options: Options,
    peer: Peer,
}

impl Systems {
    fn start() -> Result<Self> {
        let options = Options { wake_phrases: Config::default().wake_phrases.into(), ..Options::default() };
        Ok(Self { ours: common::engine()?.decoder()?, options, peer: Peer::start()? })
    }

    /// Decodes a clip by each, beginning with another one for each number.
    fn decode(&mut self, said: &str, pcm: &[i16], number: usize) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        for turn in 0..SYSTEMS {
            let system = (number + turn) % SYSTEMS;
            let (text, cpu_us) = match system.checked_sub(1) {
                None => self.decode_ours(pcm)?,
                Some(beam) => self.peer.decode(pcm, BEAMS[beam])?,
            };
            outcome[system] = Decoded { words: wer(said, &text), text, cpu_us };
        }
        Ok(outcome)
    }

    fn decode_ours(&mut self, pcm: &[i16]) -> Result<(String, u64)> {
        let before = cpu_us();
        let heard = self.ours.transcribe(pcm, &self.options)?;
        Ok((heard.text, cpu_us() - before))
    }
}

/// The process in Python (`tests/python/asr_peer.py`). It ends with its input.
struct Peer {
    child: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    /// Starts it, and checks that its weights are those that ours are made from.
    fn start() -> Result<Self> {
        let child = Command::new(cache::python("faster-whisper", "asr_peer_requirements.txt"))
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/python/asr_peer.py"))
            // Threads of NumPy that wait for work would count as its own.
            .envs([("OMP_NUM_THREADS", "1"), ("OPENBLAS_NUM_THREADS", "1")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut peer = Self::of(child)?;
        let packages = peer.answers.next().context("faster-whisper did not start")??;
        for file in catalogue::find(catalogue::WHISPER_TINY_EN)?.packaged {
            let found = sha256_file(&Path::new(&packages).join(file.path))?;
            ensure!(found == file.sha256, "{} is another one than the catalogue's", file.path);
        }
        Ok(peer)
    }

    fn of(mut child: Child) -> Result<Self> {
        let requests = child.stdin.take().context("its standard input")?;
        let answers = BufReader::new(child.stdout.take().context("its standard output")?).lines();
        Ok(Self { child, requests, answers })
    }

    fn decode(&mut self, pcm: &[i16], beam: u32) -> Result<(String, u64)> {
        let samples: Vec<u8> = pcm.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        writeln!(self.requests, "{} {beam}", pcm.len())?;
        self.requests.write_all(&samples)?;
        let answer: Value = serde_json::from_str(&self.answers.next().context("faster-whisper has ended")??)?;
        match (answer["text"].as_str(), answer["cpu_us"].as_u64()) {
            (Some(text), Some(cpu_us)) => Ok((text.to_owned(), cpu_us)),
            _ => bail!("no answer: {answer}"),
        }
    }

    fn end(mut self) -> Result<()> {
        drop(self.requests);
        let status = self.child.wait()?;
        ensure!(status.success(), "faster-whisper ended with {status}");
        Ok(())
    }
}

/// Each clip's outcomes of all conditions in one; times are the mean.
fn of_all(results: &[Results]) -> Vec<Outcome> {
    let clips = results.first().map_or(0, |(_, outcomes)| outcomes.len());
    let mut all = vec![Outcome::default(); clips];
    for (_, outcomes) in results {
        for (whole, part) in all.iter_mut().flatten().zip(outcomes.iter().flatten()) {
            whole.words += part.words;
            whole.cpu_us += part.cpu_us;
        }
    }
    all.iter_mut().flatten().for_each(|whole| whole.cpu_us /= results.len() as u64);
    all
}

/// A row of the table: ours beside the peer with a beam.
struct Row {
    name: String,
    points: f64,
    mean_ms: (f64, f64),
}

impl Row {
    /// Prints it.
    fn of(name: &str, beam: usize, outcomes: &[Outcome]) -> Self {
        let pairs: Vec<(Wer, Wer)> = outcomes.iter().map(|of| (of[0].words, of[1 + beam].words)).collect();
        let ((ours, peer), (low, high)) = (sum(&pairs), interval(&pairs));
        let times = |system: usize| outcomes.iter().map(move |of| of[system].cpu_us as i64);
        let mean_ms = |system| times(system).sum::<i64>() as f64 / 1e3 / outcomes.len().max(1) as f64;
        let median_ms =
            |system| common::quantile(&mut times(system).collect::<Vec<_>>(), 0.5).unwrap_or(0) as f64 / 1e3;
        let (points, mean_ms) = (100.0 * (ours.rate() - peer.rate()), (mean_ms(0), mean_ms(1 + beam)));
        let (ours_ms, peer_ms) = (median_ms(0), median_ms(1 + beam));
        let span = format!("({:+.2} to {:+.2})", 100.0 * low, 100.0 * high);
        println!(
            "{name:10} {:4} {:6} {:6.2} {:6.2}  {points:+6.2} {span:17}     {:6.0} {:6.0} {:5.2}        {ours_ms:6.0} \
             {peer_ms:6.0} {:5.2}",
            BEAMS[beam],
            ours.words,
            100.0 * ours.rate(),
            100.0 * peer.rate(),
            mean_ms.0,
            mean_ms.1,
            mean_ms.1 / mean_ms.0,
            peer_ms / ours_ms
        );
        Self { name: format!("{name}, beam of {}", BEAMS[beam]), points, mean_ms }
    }

    fn judge(&self, aims: &mut Aims) {
        let Self { name, points, mean_ms: (ours, peer) } = self;
        let is_met = *points <= POINTS_MAX;
        aims.note(is_met, format!("{name}: {points:+.2} points of the word error rate, aim {POINTS_MAX:+} at most"));
        aims.times_less(&format!("{name}, processor time"), *ours, *peer, TIMES_MIN);
    }
}

/// Prints the table and the aims.
fn report(results: &[Results]) -> Result<()> {
    println!(
        "word error rates in percent, their difference in points with its 95 % interval; milliseconds of processor time of a clip"
    );
    println!(
        "condition  beam  words   ours   peer  difference                mean: ours   peer times  median: ours   peer times"
    );
    let mut rows = Vec::new();
    for (name, outcomes) in results {
        rows.extend((0..BEAMS.len()).map(|beam| Row::of(name, beam, outcomes)));
    }
    let mut aims = Aims::default();
    rows.iter().for_each(|row| row.judge(&mut aims));
    aims.judge()
}

/// A line for each clip and condition: edits and microseconds of each system, what was said, and the texts.
fn write(file: &Path, clips: &[Clip], results: &[Results]) -> Result<()> {
    let mut lines = String::new();
    for (name, outcomes) in results {
        for (clip, outcome) in clips.iter().zip(outcomes) {
            let numbers = outcome.iter().map(|of| format!("{}\t{}", of.words.edits, of.cpu_us));
            let texts = outcome.iter().map(|of| of.text.replace(['\t', '\n'], " "));
            let cells: Vec<String> = numbers.chain([clip.text.clone()]).chain(texts).collect();
            lines.push_str(&format!("{}\t{name}\t{:.1}\t{}\n", clip.name, clip.seconds(), cells.join("\t")));
        }
    }
    fs::write(file, lines).with_context(|| file.display().to_string())
}
