//! What a query of the stored log takes, beside SQLite: 10,000 and 100,000 lines, alone and with 10 readers beside a writer.
//!
//! `cargo xtask bench logs`
//!
//! The query is `query_logs {"level": "error", "limit": 100}` through the executor, from the call to its result as JSON. One
//! line in a hundred is an error. SQLite stands behind the same port: a table with an index on the time, in WAL mode, each
//! reader with a connection and a prepared statement, its reads on threads of their own as well. The writer commits a
//! line after the other, durably, and does nothing else.

#[path = "../../benches/common/nobody.rs"]
mod nobody;

use std::{
    hint::black_box,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use gateway::{ports::logs::StoredLogs, store::Store, telemetry::log};
use gateway_core::vocab::{ClientClass, ToolCall};
use rusqlite::{Connection, params};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tools::{
    call::CallContext,
    executor::Executor,
    inspection::{
        self, Inspection,
        logs::{LogEntry, LogFilter, LogLevel, LogPage, LogQuery, LogScope, LogStats, Logs},
    },
    permissions::ConfiguredClients,
    ports::PortError,
    registry::Registry,
    secret::Secrets,
};

const LINES: [usize; 2] = [10_000, 100_000];
/// Queries of each reader.
const ALONE: usize = 300;
const TOGETHER: usize = 60;
const READERS: usize = 10;

/// A line as a gateway writes them.
fn line(number: usize) -> LogEntry {
    let level = match number % 100 {
        50 => LogLevel::Error,
        10 | 30 | 70 | 90 => LogLevel::Warn,
        _ => LogLevel::Info,
    };
    let (context, source) = match number % 4 {
        0 => ("turn", "device:3f9a61c04be2d87715aa09c3"),
        1 => ("gateway::device_task", "device:3f9a61c04be2d87715aa09c3"),
        2 => ("tools::mcp::client::keep", "mcp:files"),
        _ => ("gateway::control::server", "gateway"),
    };
    LogEntry {
        wall_ms: 1_700_000_000_000 + 250 * number as i64,
        level,
        context: context.to_owned(),
        source: source.to_owned(),
        message: format!(
            "turn device=3f9a61c04be2d87715aa09c3 turn={number} transport=wss outcome=completed requests=1 tokens=431 \
             final_ms=612 display_ms=655 speech_ms=702"
        ),
    }
}

/// The same lines in SQLite.
struct Sqlite(Arc<Mutex<Connection>>);

impl Sqlite {
    fn open(path: &Path) -> Result<Self> {
        let connection = Connection::open(path)?;
        // The name of the mode comes back.
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.execute_batch(
            "PRAGMA synchronous = FULL;
             CREATE TABLE IF NOT EXISTS logs (time INTEGER, level INTEGER, context TEXT, source TEXT, message TEXT);
             CREATE INDEX IF NOT EXISTS logs_time ON logs (time);",
        )?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    fn insert(&self, lines: impl Iterator<Item = LogEntry>) -> Result<()> {
        let mut connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO logs VALUES (?, ?, ?, ?, ?)")?;
            for LogEntry { wall_ms, level, context, source, message } in lines {
                insert.execute(params![wall_ms, level as i64, context, source, message])?;
            }
        }
        Ok(transaction.commit()?)
    }
}

fn failed(error: impl std::fmt::Display) -> PortError {
    PortError::Failed(error.to_string())
}

#[async_trait]
impl Logs for Sqlite {
    async fn query(&self, query: LogQuery) -> Result<LogPage, PortError> {
        let connection = self.0.clone();
        let read = move || -> rusqlite::Result<Vec<LogEntry>> {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            let mut select = connection.prepare_cached(
                "SELECT time, level, context, source, message FROM logs WHERE level <= ? ORDER BY time DESC LIMIT ?",
            )?;
            let least = query.filter.level.unwrap_or(LogLevel::Info) as i64;
            let rows = select.query_map(params![least, query.limit as i64], |row| {
                let level = LogLevel::ALL[row.get::<_, usize>(1)?];
                let [context, source, message] = [row.get(2)?, row.get(3)?, row.get(4)?];
                Ok(LogEntry { wall_ms: row.get(0)?, level, context, source, message })
            })?;
            rows.collect()
        };
        let logs = tokio::task::spawn_blocking(read).await.map_err(failed)?.map_err(failed)?;
        Ok(LogPage { logs, cursor: None })
    }

    async fn stats(&self, _: LogScope) -> Result<LogStats, PortError> {
        Err(failed("not measured"))
    }

    async fn clear(&self, _: LogFilter, _: LogScope) -> Result<u64, PortError> {
        Err(failed("not measured"))
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

fn row(what: &str, mut spans: Vec<Duration>) {
    spans.sort();
    let at = |share: f64| spans.get((spans.len() as f64 * share) as usize).copied().unwrap_or_default();
    println!("  {what:<44} median {:>10.1?}   p99 {:>10.1?}   n {}", at(0.5), at(0.99), spans.len());
}

async fn alone(what: &str, executor: &Executor) -> Result<()> {
    let mut spans = Vec::with_capacity(ALONE);
    for _ in 0..ALONE {
        spans.push(query(executor).await?);
    }
    row(&format!("{what}, alone"), spans);
    Ok(())
}

/// Ten readers at once, while `write` commits a line after the other.
async fn together<W>(what: &str, executors: Vec<Executor>, write: impl Fn(usize) -> W + Send + 'static) -> Result<()>
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
                spans.push(query(&executor).await?);
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
    row(&format!("{what}, {READERS} readers and a writer"), spans);
    println!("  {:<44} {reads:.0} queries/s, {commits:.0} commits/s", "");
    Ok(())
}

async fn measure(lines: usize) -> Result<()> {
    println!("{lines} lines");
    let folder = tempfile::tempdir()?;
    let logs = log::Logs::open_larger(&folder.path().join("log"), lines as u64 * 2)?;
    logs.fill((0..lines).map(line)).await?;
    let path = folder.path().join("sqlite");
    let sqlite = Sqlite::open(&path)?;
    sqlite.insert((0..lines).map(line))?;

    let store = Store::open(&folder.path().join("store"), 4)?;
    let own = executor(Arc::new(StoredLogs { logs: logs.clone(), store }))?;
    let other = executor(Arc::new(Sqlite::open(&path)?))?;
    alone("stored log", &own).await?;
    alone("SQLite", &other).await?;
    let writing = logs.clone();
    let write = move |number| {
        let logs = writing.clone();
        async move { logs.fill([line(number)]).await.context("the stored log") }
    };
    together("stored log", vec![own; READERS], write).await?;
    let readers = (0..READERS).map(|_| executor(Arc::new(Sqlite::open(&path)?))).collect::<Result<_>>()?;
    let sqlite = Arc::new(sqlite);
    let write = move |number| {
        let sqlite = sqlite.clone();
        async move { tokio::task::spawn_blocking(move || sqlite.insert([line(number)].into_iter())).await? }
    };
    together("SQLite", readers, write).await?;
    logs.close().await?;
    Ok(())
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build()?;
    LINES.into_iter().try_for_each(|lines| runtime.block_on(measure(lines)))
}
