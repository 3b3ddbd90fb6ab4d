//! Rounds of one run, without and with open pages of the console: what disturbs the machine disturbs both.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use gateway::clock;
use gateway::telemetry::TurnRecord;

use crate::common::aims::Aims;
use crate::common::pages::Pages;
use crate::common::{TestGateway, quantile};

/// With open pages, at most so many times as much as without.
const TIMES_MAX: f64 = 1.10;
/// Beginning of the names of the runtime's threads.
const RUNTIME: &str = "tokio";

/// What was measured in one round.
struct Round {
    has_pages: bool,
    /// By the gateway's clock, in microseconds.
    from_us: u64,
    until_us: u64,
    /// Processor time of the runtime's threads, in microseconds.
    runtime_us: u64,
}

impl Round {
    fn has(&self, turn: &TurnRecord) -> bool {
        let lies = |at_us: u64| (self.from_us..self.until_us).contains(&at_us);
        turn.final_us.is_some_and(lies) && turn.first_frame_us.is_some_and(lies)
    }
}

/// The rounds of a run: without pages, with, with, without, and so on, so that a trend counts for both.
pub struct Rounds {
    count: usize,
    length: Duration,
    done: Vec<Round>,
    pages: Option<Pages>,
    from_us: u64,
    runtime_us: BTreeMap<String, u64>,
}

impl Rounds {
    /// With so many pages, each round so long. The first begins after one more such time, when all glasses speak.
    pub fn new(count: usize, length: Duration) -> Self {
        let from_us = clock::mono_us();
        Self { count, length, done: Vec::new(), pages: None, from_us, runtime_us: BTreeMap::new() }
    }

    /// Ends the present round, and begins the next one, if it is time.
    pub async fn go_on(&mut self, gateway: &TestGateway) -> Result<()> {
        let now_us = clock::mono_us();
        if now_us.saturating_sub(self.from_us) < u64::try_from(self.length.as_micros())? {
            return Ok(());
        }
        let is_first = self.runtime_us.is_empty();
        if !is_first {
            let runtime_us = runtime_us()
                .into_iter()
                .map(|(thread, us)| us.saturating_sub(self.runtime_us.get(&thread).copied().unwrap_or(0)));
            let (has_pages, from_us) = (self.pages.is_some(), self.from_us);
            self.done.push(Round { has_pages, from_us, until_us: now_us, runtime_us: runtime_us.sum() });
        }
        let wants_pages = matches!(self.done.len() % 4, 1 | 2);
        if wants_pages != self.pages.is_some() {
            self.close().await?;
            self.pages = if wants_pages { Some(Pages::open(gateway, self.count).await?) } else { None };
        }
        (self.from_us, self.runtime_us) = (clock::mono_us(), runtime_us());
        Ok(())
    }

    async fn close(&mut self) -> Result<()> {
        let Some(pages) = self.pages.take() else { return Ok(()) };
        let received = pages.close().await?;
        println!("pages of the console received {received:?} bytes");
        ensure!(received.iter().all(|bytes| *bytes > 0), "a page of the console was not updated");
        Ok(())
    }

    /// Compares the rounds by these turns. The last round, which the end of the load has cut, does not count.
    pub async fn compare(mut self, turns: &[TurnRecord], aims: &mut Aims) -> Result<()> {
        self.close().await?;
        let [without, with] = [false, true].map(|has_pages| Means::of(&self.done, has_pages, turns));
        let (without, with) = (without?, with?);
        let what = format!("the gateway's own share of a turn, median, with {} open pages", self.count);
        aims.at_most_times(&what, with.own_us, without.own_us, TIMES_MAX);
        let what = format!("processor time of the runtime's threads, with {} open pages", self.count);
        aims.at_most_times(&what, with.runtime_cores, without.runtime_cores, TIMES_MAX);
        Ok(())
    }
}

/// What the rounds of one kind have in common.
struct Means {
    /// The gateway's own share of a turn, at the median, in microseconds.
    own_us: f64,
    runtime_cores: f64,
}

impl Means {
    fn of(rounds: &[Round], has_pages: bool, turns: &[TurnRecord]) -> Result<Self> {
        let rounds: Vec<&Round> = rounds.iter().filter(|round| round.has_pages == has_pages).collect();
        let us: u64 = rounds.iter().map(|round| round.until_us - round.from_us).sum();
        let runtime_us: u64 = rounds.iter().map(|round| round.runtime_us).sum();
        let own = turns.iter().filter(|turn| rounds.iter().any(|round| round.has(turn)));
        let mut own: Vec<i64> = own.filter_map(own_share_us).collect();
        let (kind, count) = (if has_pages { "with" } else { "without" }, own.len());
        let (Some(median_us), Some(p95_us)) = (quantile(&mut own, 0.5), quantile(&mut own, 0.95)) else {
            anyhow::bail!("no turns {kind} pages: the load ended too early for its rounds")
        };
        let runtime_cores = runtime_us as f64 / us as f64;
        println!(
            "{} rounds {kind} pages, {:.0} s, {count} turns: own share {:.2} ms at the median, {:.2} ms at 95 %; \
             the runtime's threads {runtime_cores:.4} cores",
            rounds.len(),
            us as f64 / 1e6,
            median_us as f64 / 1e3,
            p95_us as f64 / 1e3
        );
        Ok(Self { own_us: median_us as f64, runtime_cores })
    }
}

/// The gateway's own share of a turn, in microseconds: from the accepted final to the first speech frame, less the synthesis
/// itself.
pub fn own_share_us(turn: &TurnRecord) -> Option<i64> {
    Some(turn.first_frame_us? as i64 - turn.final_us? as i64 - turn.tts_us? as i64)
}

/// Processor microseconds of each of the runtime's threads so far. Those that end take theirs with them.
fn runtime_us() -> BTreeMap<String, u64> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_runtime = tasks.filter_map(|task| {
        let read = |file: &str| std::fs::read_to_string(task.path().join(file)).ok();
        let ran = read("comm")?.starts_with(RUNTIME).then(|| read("schedstat"))??;
        let ns: u64 = ran.split_whitespace().next()?.parse().ok()?;
        Some((task.file_name().to_string_lossy().into_owned(), ns / 1_000))
    });
    of_runtime.collect()
}
