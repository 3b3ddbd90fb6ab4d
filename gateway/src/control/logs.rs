//! The stored log: pages of it, and following it.

use std::ops::RangeInclusive;

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    net::unix::OwnedWriteHalf,
};
use tokio_util::sync::CancellationToken;
use tools::inspection::logs::{LogCursor, LogFilter, LogPage, LogQuery};

use super::{Answer, reply::say};
use crate::telemetry::log::Logs;

/// Lines in one answer to a follower: it reads them as they come.
const FOLLOWED_MAX: usize = 64;

/// Turns in one answer: as many as are stored.
const TURNS_MAX: usize = 10_000;

/// A page, newest first.
pub(super) async fn page(logs: &Logs, filter: LogFilter, limit: usize, cursor: Option<&str>) -> Result<Answer, String> {
    let cursor = cursor.map(str::parse::<LogCursor>).transpose()?;
    let page = logs.query(LogQuery { filter, limit, cursor, ..LogQuery::default() }).await;
    let LogPage { logs, cursor } = page.map_err(|error| error.to_string())?;
    Ok(Answer::Logs { logs, cursor: cursor.map(|cursor| cursor.to_string()) })
}

/// The latest turns that ended at these times, oldest first.
pub(super) async fn turns(logs: &Logs, ended_wall_ms: RangeInclusive<i64>, count: usize) -> Result<Answer, String> {
    // Those that have just ended are shown, too.
    logs.settled().await.map_err(|error| error.to_string())?;
    let turns = logs.turns(ended_wall_ms, count.min(TURNS_MAX)).await.map_err(|error| error.to_string())?;
    Ok(Answer::Turns { turns })
}

/// Sends the latest lines, at most a page, then new ones as they are stored, oldest first, until the client disconnects or
/// the gateway stops.
pub(super) async fn follow(
    mut read: impl AsyncRead + Unpin,
    mut write: OwnedWriteHalf,
    logs: &Logs,
    stop: &CancellationToken,
    (filter, limit): (LogFilter, usize),
) -> anyhow::Result<()> {
    let mut stored = logs.watch();
    let mut last = logs.end()?;
    // Up to that line, which belongs to it; all others follow.
    let cursor = Some(LogCursor(last.0.saturating_add(1)));
    let mut latest = logs.query(LogQuery { filter: filter.clone(), limit, cursor, ..LogQuery::default() }).await?.logs;
    latest.reverse();
    say(&mut write, &Answer::Logs { logs: latest, cursor: None }).await?;
    loop {
        tokio::select! {
            changed = stored.changed() => changed?,
            // The client sends nothing more: any read is its end.
            _ = read.read_u8() => return Ok(()),
            () = stop.cancelled() => return Ok(()),
        }
        loop {
            let (entries, seen) = logs.after(last, filter.clone(), FOLLOWED_MAX).await?;
            last = seen;
            if entries.is_empty() {
                break;
            }
            say(&mut write, &Answer::Logs { logs: entries, cursor: None }).await?;
        }
    }
}
