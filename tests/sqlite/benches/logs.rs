//! What writing to the stored log takes, and reading it, beside SQLite in the same run.
//!
//! `cargo xtask bench logs [--require]`
//!
//! Three parts. `query_logs {"level": "error", "limit": 100}` through the executor, from the call to its result as JSON, over
//! 10,000 and 100,000 lines of which one in a hundred is an error: alone, and by 10 readers beside a writer, which commits a
//! line after the other, durably, and does nothing else. A full ring: writing to it in groups, bytes on the disk, and queries
//! by time, level, target and words, from the port of the tools to the lines, of which both must find the same. And a line on
//! the thread that logs it.
//!
//! SQLite stands behind the same port: a table with an index on the time, in WAL mode, each reader with a connection and a
//! prepared statement, its reads on threads of their own as well. Aims: `query_logs` over 10,000 lines within 1 ms at the
//! median, and three times as fast as SQLite; everything else that is compared alone no slower than SQLite, and no more bytes.
//! With `--require` it ends with an error where an aim is missed.

#[allow(dead_code, reason = "this program uses its part")]
#[path = "../../benches/common/aims.rs"]
mod aims;
#[path = "../../benches/common/figures.rs"]
mod figures;
#[path = "../../benches/common/nobody.rs"]
mod nobody;
#[path = "logs/ring.rs"]
mod ring;
#[path = "logs/sqlite.rs"]
mod sqlite;

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use gateway::{ports::logs::StoredLogs, store::Store, telemetry::log};
use gateway_core::vocab::{ClientClass, ToolCall};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tools::{
    call::CallContext,
    executor::Executor,
    inspection::{
        self, Inspection,
        logs::{LogEntry, LogLevel, Logs},
    },
    permissions::ConfiguredClients,
    registry::Registry,
    secret::Secrets,
};

use self::{
    aims::Aims,
    figures::{flag, quantile},
    sqlite::Sqlite,
};

const LINES: [usize; 2] = [10_000, 100_000];
/// Queries of each reader.
const ALONE: usize = 300;
const TOGETHER: usize = 60;
const READERS: usize = 10;
/// The fingerprint of the device of most lines.
const DEVICE: &str = "3f9a61c04be2d87715aa09c3";

/// A line as a gateway writes them.
fn line(number: usize) -> LogEntry {
    let level = match number % 100 {
        50 => LogLevel::Error,
        10 | 30 | 70 | 90 => LogLevel::Warn,
        _ => LogLevel::Info,
    };
    let (context, source) = match number % 4 {
        0 => ("turn", format!("device:{DEVICE}")),
        1 => ("gateway::device_task", format!("device:{DEVICE}")),
        2 => ("tools::mcp::client::keep", "mcp:files".to_owned()),
        _ => ("gateway::control::server", "gateway".to_owned()),
    };
    LogEntry {
        wall_ms: 1_700_000_000_000 + 250 * number as i64,
        level,
        context: context.to_owned(),
        source,
        message: format!(
            "turn device={DEVICE} turn={number} transport=wss outcome=completed requests=1 tokens=431 final_ms=612 \
             display_ms=655 speech_ms=702"
        ),
    }
}

fn executor(logs: Arc<dyn Logs>) -> Result<Executor> {
    let given = inspection::tools(&Inspection { logs, ..Inspection::default() });
    let registry = Registry::with_built_ins_and(given, ConfiguredClients::new(), Secrets::default())?;
    Ok(Executor::new(Arc::new(registry), nobody::ports()))
}

async fn query(executor: &Executor) -> Result<Duration> {
    let context = CallContext {
        user: "wearer".into(),
        device: None,
        session: None,
        turn: None,
        cancel: CancellationToken::new(),
        default_timeout: Duration::from_secs(30),
        conversation: Arc::default(),
        language: None,
        client: ClientClass::Internal,
        caller: None,
        session_lease: None,
        watcher: None,
    };
    let arguments = json!({"level": "error", "limit": 100});
    let call = ToolCall { id: "call-1".into(), name: "query_logs".into(), arguments };
    let began = Instant::now();
    let result = black_box(executor.call(context, call).await);
    let took = began.elapsed();
    let count = result.data.as_ref().and_then(|data| data["count"].as_u64());
    ensure!(count.is_some_and(|count| count > 50), "{result:?}");
    Ok(took)
}

/// Prints a row of times in nanoseconds.
fn row(what: &str, spans: &mut [i64]) {
    let [median, p99] = [0.5, 0.99].map(|share| span(spans, share));
    println!("  {what:<44} median {median:>10.1?}   p99 {p99:>10.1?}   n {}", spans.len());
}

/// A quantile of times in nanoseconds, which are sorted by it.
fn span(spans: &mut [i64], share: f64) -> Duration {
    Duration::from_nanos(quantile(spans, share).unwrap_or_default().unsigned_abs())
}

/// Prints times in nanoseconds of the stored log and of SQLite. At the median the former are to be so many times less.
fn beside(what: &str, own: &mut [i64], other: &mut [i64], least: f64, aims: &mut Aims) {
    row(&format!("{what}: stored log"), own);
    row(&format!("{what}: SQLite"), other);
    let [own, other] = [own, other].map(|spans| span(spans, 0.5).as_secs_f64());
    aims.times_less(what, own, other, least);
}

async fn alone(executor: &Executor) -> Result<Vec<i64>> {
    let mut spans = Vec::with_capacity(ALONE);
    for _ in 0..ALONE {
        spans.push(query(executor).await?.as_nanos() as i64);
    }
    Ok(spans)
}

/// Ten readers at once, while `write` commits a line after the other.
async fn together<W>(
    what: &str,
    executors: Vec<Executor>,
    write: impl Fn(usize) -> W + Send + 'static,
) -> Result<Vec<i64>>
where
    W: Future<Output = Result<()>> + Send,
{
    let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (until, count) = (stop.clone(), written.clone());
    let writer = tokio::spawn(async move {
        let mut number = 1_000_000;
        while !until.load(Ordering::Relaxed) {
            write(number).await?;
            number += 1;
            count.fetch_add(1, Ordering::Relaxed);
        }
        anyhow::Ok(())
    });
    let began = Instant::now();
    let readers = executors.into_iter().map(|executor| {
        tokio::spawn(async move {
            let mut spans = Vec::with_capacity(TOGETHER);
            for _ in 0..TOGETHER {
                spans.push(query(&executor).await?.as_nanos() as i64);
            }
            anyhow::Ok(spans)
        })
    });
    let mut spans = Vec::new();
    for reader in readers.collect::<Vec<_>>() {
        spans.extend(reader.await??);
    }
    let took = began.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    writer.await??;
    let (reads, commits) = (spans.len() as f64 / took, written.load(Ordering::Relaxed) as f64 / took);
    println!("  {what}: {reads:.0} queries/s, {commits:.0} commits/s");
    Ok(spans)
}

async fn measure(lines: usize, aims: &mut Aims) -> Result<()> {
    println!("{lines} lines");
    let folder = tempfile::tempdir()?;
    let logs = log::Logs::open_larger(&folder.path().join("log"), lines as u64 * 2)?;
    logs.fill((0..lines).map(line)).await?;
    let path = folder.path().join("sqlite");
    let sqlite = Sqlite::open(&path)?;
    sqlite.insert((0..lines).map(line), None)?;

    let store = Store::open(&folder.path().join("store"), 4)?;
    let own = executor(Arc::new(StoredLogs { logs: logs.clone(), store }))?;
    let other = executor(Arc::new(Sqlite::open(&path)?))?;
    let what = format!("query_logs over {lines} lines");
    let (mut of_own, mut of_other) = (alone(&own).await?, alone(&other).await?);
    let is_first = lines == LINES[0];
    beside(&what, &mut of_own, &mut of_other, if is_first { 3.0 } else { 1.0 }, aims);
    if is_first {
        let us: Vec<i64> = of_own.iter().map(|ns| ns / 1_000).collect();
        aims.at_most_ms(&what, &us, 0.5, 1);
    }

    let writing = logs.clone();
    let write = move |number| {
        let logs = writing.clone();
        async move { logs.fill([line(number)]).await.context("the stored log") }
    };
    let what = format!("{READERS} readers and a writer");
    row(&format!("{what}: stored log"), &mut together("stored log", vec![own; READERS], write).await?);
    let readers = (0..READERS).map(|_| executor(Arc::new(Sqlite::open(&path)?))).collect::<Result<_>>()?;
    let sqlite = Arc::new(sqlite);
    let write = move |number| {
        let sqlite = sqlite.clone();
        let insert = move || sqlite.insert([line(number)], None).map(drop);
        async move { tokio::task::spawn_blocking(insert).await? }
    };
    row(&format!("{what}: SQLite"), &mut together("SQLite", readers, write).await?);
    logs.close().await?;
    Ok(())
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
    let mut aims = Aims::default();
    for lines in LINES {
        runtime.block_on(measure(lines, &mut aims))?;
    }
    runtime.block_on(ring::measure(&mut aims))?;
    runtime.block_on(ring::caller(&mut aims))?;
    aims.judge()
}
