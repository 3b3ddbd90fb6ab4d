//! `cargo xtask fuzz`: runs the checks of `tests/fuzz` under libFuzzer, adds up what was run, and keeps the inputs that
//! are worth committing. docs/fuzzing.md says how.

mod corpus;
mod engine;
mod totals;

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    needs,
    places::Places,
    process::{self, Failure},
};
use engine::Engine;
use totals::{Row, Totals};

/// Memory of one process, and seconds for one input: more is a finding.
const LIMITS: [&str; 2] = ["-rss_limit_mb=2048", "-timeout=20"];
/// Between two lines about a run.
const TOLD_EVERY: Duration = Duration::from_secs(60);
/// Lines of the processes that wait to be read.
const LINES_MAX: usize = 64;
/// Lines of a process that are shown when it fails.
const TAIL_MAX: usize = 200;
/// Seconds for making an input that fails smaller.
const SHORTEN_S: u32 = 30;
/// Of the times in `/proc`, on every architecture.
const TICKS_PER_S: u64 = 100;

const USAGE: &str = "\
usage: cargo xtask fuzz                                  list the targets and what was run
       cargo xtask fuzz [TARGET...] --minutes N [--jobs J]  run them (none: all), N minutes each
       cargo xtask fuzz TARGET --replay FILE             run one input";

/// The words behind `fuzz`.
#[derive(Debug, Default, PartialEq)]
struct Wish {
    targets: Vec<String>,
    minutes: Option<u64>,
    jobs: u64,
    replay: Option<PathBuf>,
}

impl Wish {
    fn read(words: &[String]) -> Result<Self, Failure> {
        let mut wish = Self { jobs: 1, ..Self::default() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| Failure::new(format!("{word} needs a value\n{USAGE}")));
            let number = |text: &String| match text.parse() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(Failure::new(format!("`{text}` is no number above 0\n{USAGE}"))),
            };
            match word.as_str() {
                "--minutes" => wish.minutes = Some(number(value()?)?),
                "--jobs" => wish.jobs = number(value()?)?,
                "--replay" => wish.replay = Some(value()?.into()),
                option if option.starts_with('-') => return Err(Failure::new(USAGE)),
                target => wish.targets.push(target.to_owned()),
            }
        }
        Ok(wish)
    }
}

/// Lists the targets, runs some, or runs one input.
pub(crate) fn run(places: &Places, words: &[String]) -> Result<(), Failure> {
    let wish = Wish::read(words)?;
    let folder = places.root.join("tests/fuzz");
    let mut totals = Totals::read(&folder.join("totals.tsv"))?;
    if let Some(unknown) = wish.targets.iter().find(|target| totals.get(target).is_none()) {
        return Err(Failure::new(format!("no target is called `{unknown}`; `cargo xtask fuzz` lists them")));
    }
    if let Some(input) = &wish.replay {
        let [target] = wish.targets.as_slice() else { return Err(Failure::new(USAGE)) };
        needs::require(&[&needs::BUILD])?;
        return process::run(Engine::build(places)?.command(target).args(LIMITS).arg(input));
    }
    let Some(minutes) = wish.minutes else {
        return if wish.targets.is_empty() { print_all(&totals) } else { Err(Failure::new(USAGE)) };
    };
    needs::require(&[&needs::BUILD])?;
    let engine = Engine::build(places)?;
    let mut targets = wish.targets;
    if targets.is_empty() {
        targets = totals.names();
    }
    let mut failed = Vec::new();
    println!("{}", Row::HEAD);
    for target in targets {
        let places = Folders::of(places, &folder, &target)?;
        let ran = fuzz(&engine, &target, &places, minutes, wish.jobs)?;
        let kept = corpus::keep(&engine, &target, &places)?;
        totals.add(&target, ran.minutes, ran.executions, ran.edges, kept)?;
        println!("{}", Row::of(&totals, &target));
        failed.extend(ran.found);
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(failed.join("\n"))) }
}

fn print_all(totals: &Totals) -> Result<(), Failure> {
    println!("{}", Row::HEAD);
    for target in totals.names() {
        println!("{}", Row::of(totals, &target));
    }
    println!("\n{USAGE}");
    Ok(())
}

/// Where the inputs of a target are.
struct Folders {
    /// In the repository.
    committed: PathBuf,
    /// All that were ever of interest on this machine.
    working: PathBuf,
    /// Those that failed.
    found: PathBuf,
}

impl Folders {
    fn of(places: &Places, folder: &Path, target: &str) -> Result<Self, Failure> {
        let own = places.target.join("fuzz");
        let folders = Self {
            committed: folder.join("corpus").join(target),
            working: own.join("corpus").join(target),
            found: own.join("found"),
        };
        for made in [&folders.working, &folders.found] {
            std::fs::create_dir_all(made).map_err(Failure::at(made))?;
        }
        Ok(folders)
    }
}

/// What a run came to.
#[derive(Default)]
struct Ran {
    /// Of computing, rounded: a busy machine gives less than the time that went by.
    minutes: u64,
    executions: u64,
    edges: u64,
    found: Vec<String>,
}

/// Runs a target on some processes, which share their inputs.
fn fuzz(engine: &Engine, target: &str, folders: &Folders, minutes: u64, jobs: u64) -> Result<Ran, Failure> {
    let (tell, told) = mpsc::sync_channel(LINES_MAX);
    let (before, mut children) = (children_cpu_s()?, Vec::new());
    for job in 0..jobs {
        let mut command = engine.command(target);
        command.args(LIMITS).args([&folders.working, &folders.committed]);
        command.arg(format!("-max_total_time={}", minutes * 60)).arg("-print_final_stats=1");
        command.arg(format!("-artifact_prefix={}/{target}-", folders.found.display()));
        let mut child = command.stderr(Stdio::piped()).spawn().map_err(Failure::at(&folders.working))?;
        listen(job, &mut child, &tell)?;
        children.push(child);
    }
    drop(tell);
    let (mut pulses, mut tails, mut last) = (BTreeMap::new(), BTreeMap::<u64, Vec<String>>::new(), Instant::now());
    let mut ran = Ran::default();
    for (job, line) in told {
        if let Some(pulse) = Pulse::read(&line) {
            ran.edges = ran.edges.max(pulse.edges);
            pulses.insert(job, pulse);
            if last.elapsed() >= TOLD_EVERY {
                last = Instant::now();
                let (executions, per_s) = pulses
                    .values()
                    .fold((0, 0), |(all, per_s), pulse: &Pulse| (all + pulse.executions, per_s + pulse.per_s));
                eprintln!("  {target}: {executions} executions, {per_s} a second, {} edges", ran.edges);
            }
        } else if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            ran.executions += count.trim().parse().unwrap_or(0);
        } else {
            let tail = tails.entry(job).or_default();
            tail.push(line);
            if tail.len() > TAIL_MAX {
                tail.remove(0);
            }
        }
    }
    let mut failed = Vec::new();
    for (job, mut child) in (0..).zip(children) {
        if !child.wait().map_err(Failure::at(&folders.working))?.success() {
            failed.push(tails.remove(&job).unwrap_or_default());
        }
    }
    ran.minutes = (children_cpu_s()?.saturating_sub(before) + 30) / 60;
    ran.found = failed.iter().map(|lines| failure_of(engine, target, folders, lines)).collect();
    Ok(ran)
}

/// Computing time, in seconds, of the processes that this one has started and waited for.
fn children_cpu_s() -> Result<u64, Failure> {
    let file = Path::new("/proc/self/stat");
    let text = std::fs::read_to_string(file).map_err(Failure::at(file))?;
    children_ticks(&text).map(|ticks| ticks / TICKS_PER_S).ok_or_else(|| Failure::new("/proc/self/stat cannot be read"))
}

/// Fields 16 and 17 of `/proc/PID/stat` (proc(5)), in ticks: the name, the second one, may have spaces.
fn children_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

/// Sends each line of a process's standard error.
fn listen(job: u64, child: &mut Child, tell: &mpsc::SyncSender<(u64, String)>) -> Result<(), Failure> {
    let (pipe, tell) = (child.stderr.take(), tell.clone());
    let listening = move || {
        for line in BufReader::new(pipe?).lines() {
            tell.send((job, line.ok()?)).ok()?;
        }
        Some(())
    };
    let started = thread::Builder::new().name(format!("fuzzer-{job}")).spawn(listening);
    started.map(drop).map_err(|error| Failure::new(format!("no thread: {error}")))
}

/// What failed, with the input that did it, and how to see it again.
fn failure_of(engine: &Engine, target: &str, folders: &Folders, lines: &[String]) -> String {
    let written = lines.iter().find_map(|line| line.split("Test unit written to ").nth(1));
    let said: Vec<&str> = lines
        .iter()
        .filter(|line| line.contains("panicked at") || line.contains("ERROR"))
        .map(String::as_str)
        .collect();
    let Some(input) = written else {
        return format!("{target} ended early:\n{}", lines.join("\n"));
    };
    let short = folders.found.join(format!("{target}-short"));
    drop(std::fs::copy(input, &short));
    let mut shorten = engine.command(target);
    shorten.args(LIMITS).args(["-minimize_crash=1", &format!("-max_total_time={SHORTEN_S}")]);
    shorten.arg(format!("-exact_artifact_path={}", short.display())).arg(input);
    // Without success the copy stays as it is.
    drop(shorten.stderr(Stdio::null()).status());
    format!(
        "{target}: {}\n  input {input}, shortened {}\n  again: cargo xtask fuzz {target} --replay {}\n  when it is \
         mended: cp {} tests/fuzz/corpus/{target}/found-WORDS",
        said.join("\n  "),
        short.display(),
        short.display(),
        short.display()
    )
}

/// A line of libFuzzer's about its progress: `#4096 pulse  cov: 812 ft: 1020 corp: 88/3Kb lim: 43 exec/s: 2048 rss: 52Mb`.
#[derive(Debug, PartialEq)]
struct Pulse {
    executions: u64,
    edges: u64,
    per_s: u64,
}

impl Pulse {
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let executions = words.next()?.strip_prefix('#')?.parse().ok()?;
        let words: Vec<&str> = words.collect();
        let after = |name: &str| words.iter().skip_while(|word| **word != name).nth(1)?.parse().ok();
        Some(Self { executions, edges: after("cov:")?, per_s: after("exec/s:")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_time_of_children_is_read() {
        let stat = "7 (a (b) c) S 1 7 7 0 -1 4194304 10 20 0 0 5 6 300 40 20 0 1 0 99 1000 5";
        assert_eq!(children_ticks(stat), Some(340));
        assert_eq!(children_ticks("7 (a) S 1"), None);
        assert!(children_cpu_s().is_ok());
    }

    #[test]
    fn progress_is_read() {
        let line = "#4096\tpulse  cov: 812 ft: 1020 corp: 88/3Kb lim: 43 exec/s: 2048 rss: 52Mb";
        assert_eq!(Pulse::read(line), Some(Pulse { executions: 4096, edges: 812, per_s: 2048 }));
        assert_eq!(Pulse::read("INFO: seed corpus: files: 3"), None);
    }

    #[test]
    fn words_are_read() {
        let read = |text: &str| Wish::read(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let wish = read("wire ggml --minutes 3 --jobs 2").ok();
        let targets = vec!["wire".to_owned(), "ggml".to_owned()];
        assert_eq!(wish, Some(Wish { targets, minutes: Some(3), jobs: 2, replay: None }));
        for bad in ["--minutes", "--minutes 0", "--minutes x", "--seconds 3"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
