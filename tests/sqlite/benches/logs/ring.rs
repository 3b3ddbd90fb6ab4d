//! A ring that is full: writing to it, and queries of it.

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use gateway::{ports::logs::StoredLogs, store::Store, telemetry::log};
use tools::inspection::logs::{LINES_MAX, LogEntry, LogFilter, LogLevel, LogQuery, Logs};
use tracing::dispatcher::{Dispatch, with_default};
use tracing_subscriber::layer::SubscriberExt as _;

use super::{aims::Aims, beside, span, sqlite::Sqlite};

/// Lines of the ring, as a gateway keeps them.
const RING: usize = 50_000;
/// Lines that are written together: as many as the stored log commits at once.
const GROUP: usize = 256;
/// Parts of writing that are measured.
const PARTS: usize = 10;
const PART: usize = 8 * GROUP;
/// Milliseconds between two lines, so that the ring holds three days and a half.
const BETWEEN_MS: i64 = 6_000;
const HOUR_MS: i64 = 3_600_000;
/// Queries of a kind, and how long they may take together.
const ROUNDS: usize = 50;
const ROUNDS_MIN: usize = 10;
const ROUNDS_TIME: Duration = Duration::from_secs(4);
/// Is in three of the lines.
const RARE: &str = "zirconium";
/// Lines that a thread logs at once, fewer than may wait, so that none is dropped; and how often.
const BURST: usize = 200;
const BURSTS: usize = 50;
/// The context of these lines.
const TARGET: &str = "bench::caller";

fn line(number: usize) -> LogEntry {
    let mut line = super::line(number);
    line.wall_ms = time(number);
    if number % 20_000 == 7_777 {
        line.message = format!("{} {RARE}", line.message);
    }
    line
}

fn time(number: usize) -> i64 {
    1_700_000_000_000 + BETWEEN_MS * number as i64
}

/// Fills a ring and measures it.
pub async fn measure(aims: &mut Aims) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = log::Logs::open_larger(&folder.path().join("log"), RING as u64)?;
    let sqlite = Arc::new(Sqlite::open(&folder.path().join("sqlite"))?);
    logs.fill((0..RING).map(line)).await?;
    sqlite.insert((0..RING).map(line), None)?;
    println!("a full ring of {RING} lines");
    write(&logs, &sqlite, aims).await?;
    let store = Store::open(&folder.path().join("store"), 4)?;
    let own = StoredLogs { logs: logs.clone(), store };
    for (what, query) in queries(RING + PARTS * PART) {
        compare(what, query, &own, &*sqlite, aims).await?;
    }
    logs.close().await?;
    Ok(())
}

/// Bytes that this process has caused to be written to disks so far; 0 where the system counts none.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let bytes = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.trim().parse().ok());
    bytes.unwrap_or(0)
}

/// What parts of writing took.
#[derive(Default)]
struct Parts {
    /// Nanoseconds of each line.
    spans: Vec<i64>,
    disk: u64,
}

impl Parts {
    /// Measures one part.
    async fn measure(&mut self, write: impl Future<Output = Result<()>>) -> Result<()> {
        let (before, began) = (written(), Instant::now());
        write.await?;
        self.spans.push(began.elapsed().as_nanos() as i64 / PART as i64);
        self.disk += written().saturating_sub(before);
        Ok(())
    }
}

/// Writes to both in turns, durably, in groups.
async fn write(logs: &log::Logs, sqlite: &Arc<Sqlite>, aims: &mut Aims) -> Result<()> {
    let (mut own, mut other, mut bytes) = (Parts::default(), Parts::default(), 0);
    for part in 0..PARTS {
        let first = RING + part * PART;
        let lines: Vec<LogEntry> = (first..first + PART).map(line).collect();
        // What stands in a line: two names, the text, the time and a byte for the level.
        bytes +=
            lines.iter().map(|line| line.context.len() + line.source.len() + line.message.len() + 9).sum::<usize>();
        let groups: Vec<Vec<LogEntry>> = lines.chunks(GROUP).map(<[LogEntry]>::to_vec).collect();
        own.measure(async { logs.fill(lines).await.context("the stored log") }).await?;
        let sqlite = sqlite.clone();
        let insert = move || groups.into_iter().try_for_each(|group| sqlite.insert(group, Some(RING)).map(drop));
        other.measure(async { tokio::task::spawn_blocking(insert).await? }).await?;
    }
    for (side, Parts { spans, .. }) in [("stored log", &mut own), ("SQLite", &mut other)] {
        println!("  {side}: {:.0} lines/s at the median", 1.0 / span(spans, 0.5).as_secs_f64());
    }
    beside("a line, written durably in groups", &mut own.spans, &mut other.spans, 1.0, aims);
    let [of_own, of_other] = [&own, &other].map(|parts| parts.disk as f64 / bytes as f64);
    if own.disk == 0 || other.disk == 0 {
        println!("  bytes on the disk: unknown, the system counts none here");
        return Ok(());
    }
    println!("  bytes on the disk for a byte of a line: stored log {of_own:.2}, SQLite {of_other:.2}");
    aims.times_less("bytes on the disk for a byte of a line", of_own, of_other, 1.0);
    Ok(())
}

/// Queries of a log of so many lines, of which the ring has the newest.
fn queries(lines: usize) -> Vec<(&'static str, LogQuery)> {
    let hour_ago = Some(time(lines) - HOUR_MS);
    let of = |limit, filter| LogQuery { limit, filter, ..LogQuery::default() };
    let all = LogFilter::default;
    let level = Some(LogLevel::Error);
    let (since_wall_ms, before_wall_ms) = (Some(time(lines - RING / 2)), Some(time(lines - RING / 2) + HOUR_MS));
    let word = |text: &str| LogFilter { text: Some(text.to_owned()), ..all() };
    vec![
        ("the newest 100", of(100, all())),
        ("the last hour", of(LINES_MAX, LogFilter { since_wall_ms: hour_ago, ..all() })),
        ("errors of the last hour", of(100, LogFilter { since_wall_ms: hour_ago, level, ..all() })),
        ("an hour in the middle", of(LINES_MAX, LogFilter { since_wall_ms, before_wall_ms, ..all() })),
        ("by level: errors", of(100, LogFilter { level, ..all() })),
        ("by target: one in four", of(100, LogFilter { context: Some("tools::mcp".to_owned()), ..all() })),
        ("by turn", of(100, word(&format!("turn={} ", lines - RING / 2)))),
        ("a rare word", of(100, word(RARE))),
    ]
}

/// Puts a query to both in turns. Both must find the same lines.
async fn compare(what: &str, mut query: LogQuery, stored: &dyn Logs, sqlite: &dyn Logs, aims: &mut Aims) -> Result<()> {
    let page = stored.query(query.clone()).await.context("the stored log")?.logs;
    ensure!(!page.is_empty(), "{what}: nothing is found");
    // A page of the stored log has a maximum of bytes.
    query.limit = page.len();
    ensure!(sqlite.query(query.clone()).await.context("SQLite")?.logs == page, "{what}: SQLite finds other lines");
    let (mut own, mut other) = (Vec::new(), Vec::new());
    let began = Instant::now();
    while own.len() < ROUNDS && (own.len() < ROUNDS_MIN || began.elapsed() < ROUNDS_TIME) {
        for (side, spans) in [(stored, &mut own), (sqlite, &mut other)] {
            let asked = Instant::now();
            black_box(side.query(query.clone()).await?);
            spans.push(asked.elapsed().as_nanos() as i64);
        }
    }
    beside(&format!("{what} ({})", page.len()), &mut own, &mut other, 1.0, aims);
    Ok(())
}

/// What a line costs the thread that logs it: the layer of `tracing`, beside making its text and an INSERT within a
/// transaction, without the commit.
pub async fn caller(aims: &mut Aims) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let logs = log::Logs::open(&folder.path().join("log"))?;
    let sqlite = Sqlite::open(&folder.path().join("sqlite"))?;
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(log::layer()));
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for burst in 0..BURSTS {
        let numbers = burst * BURST..(burst + 1) * BURST;
        let began = Instant::now();
        with_default(&dispatch, || numbers.clone().for_each(say));
        own.push(began.elapsed().as_nanos() as i64 / BURST as i64);
        logs.settled().await?;
        let took = sqlite.insert(numbers.map(line), None)?;
        other.push(took.as_nanos() as i64 / BURST as i64);
    }
    let stats = logs.stats()?;
    let stored = stats.by_context.get(TARGET).copied().unwrap_or_default();
    ensure!(stored == (BURSTS * BURST) as u64, "{stored} lines are stored, {} were dropped", stats.dropped);
    println!("logging");
    beside("a line, on the thread that logs it", &mut own, &mut other, 1.0, aims);
    logs.close().await?;
    Ok(())
}

/// Logs a line with as many values as that of a turn.
fn say(turn: usize) {
    tracing::info!(
        target: TARGET,
        device = super::DEVICE,
        turn,
        transport = "wss",
        outcome = "completed",
        requests = 1,
        tokens = 431,
        final_ms = 612,
        display_ms = 655,
        speech_ms = 702,
        "turn"
    );
}
