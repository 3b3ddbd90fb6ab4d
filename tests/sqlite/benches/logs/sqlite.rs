//! The same lines in SQLite, behind the same port.

use std::{
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use async_trait::async_trait;
use rusqlite::{Connection, params, params_from_iter, types::Value};
use tools::{
    inspection::logs::{LogEntry, LogFilter, LogLevel, LogPage, LogQuery, LogScope, LogStats, Logs},
    ports::PortError,
};

/// A connection to a table with an index on the time, in WAL mode.
pub struct Sqlite(Arc<Mutex<Connection>>);

impl Sqlite {
    pub fn open(path: &Path) -> Result<Self> {
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

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Inserts lines in one durable transaction, and deletes the oldest ones beyond `ring`. Returns how long the inserts took
    /// without the rest.
    pub fn insert(&self, lines: impl IntoIterator<Item = LogEntry>, ring: Option<usize>) -> Result<Duration> {
        let mut connection = self.connection();
        let transaction = connection.transaction()?;
        let began = Instant::now();
        {
            let mut insert = transaction.prepare_cached("INSERT INTO logs VALUES (?, ?, ?, ?, ?)")?;
            for LogEntry { wall_ms, level, context, source, message } in lines {
                insert.execute(params![wall_ms, level as i64, context, source, message])?;
            }
        }
        let took = began.elapsed();
        if let Some(ring) = ring {
            let mut delete =
                transaction.prepare_cached("DELETE FROM logs WHERE rowid <= (SELECT max(rowid) FROM logs) - ?")?;
            delete.execute(params![ring as i64])?;
        }
        transaction.commit()?;
        Ok(took)
    }
}

/// The statement of a query, and its values.
fn select(query: &LogQuery) -> (String, Vec<Value>) {
    let LogFilter { level, context, source, since_wall_ms, before_wall_ms, text } = &query.filter;
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let mut all = |condition: &'static str, wanted: Vec<Value>| {
        conditions.push(condition);
        values.extend(wanted);
    };
    if let Some(level) = level {
        all("level <= ?", vec![Value::Integer(*level as i64)]);
    }
    if let Some(since) = since_wall_ms {
        all("time >= ?", vec![Value::Integer(*since)]);
    }
    if let Some(before) = before_wall_ms {
        all("time < ?", vec![Value::Integer(*before)]);
    }
    if let Some(source) = source {
        all("source = ?", vec![Value::Text(source.clone())]);
    }
    if let Some(context) = context {
        let behind = format!("{context}{}", char::MAX);
        all("context >= ? AND context < ?", vec![Value::Text(context.clone()), Value::Text(behind)]);
    }
    if let Some(text) = text {
        all("message LIKE ?", vec![Value::Text(format!("%{text}%"))]);
    }
    values.push(Value::Integer(query.limit as i64));
    let conditions = if conditions.is_empty() { "TRUE".to_owned() } else { conditions.join(" AND ") };
    let columns = "time, level, context, source, message";
    (format!("SELECT {columns} FROM logs WHERE {conditions} ORDER BY time DESC, rowid DESC LIMIT ?"), values)
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
            let (statement, values) = select(&query);
            let mut select = connection.prepare_cached(&statement)?;
            let rows = select.query_map(params_from_iter(values), |row| {
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
