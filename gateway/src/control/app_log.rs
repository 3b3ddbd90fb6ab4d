//! Follows the events of an app.

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    net::unix::OwnedWriteHalf,
    sync::broadcast::error::RecvError,
    time::{Duration, interval},
};
use tokio_util::sync::CancellationToken;
use tools::apps::log::{Entry, FOLLOWERS_MAX, Log};

use super::{Answer, apps::not_installed, reply::say};
use crate::apps::installed::Installed;

/// Interval of updates on what an app drew and received last, in milliseconds.
const LATEST_MS: u64 = 1_000;

/// Sends an app's log, then its events, until the client disconnects or the gateway stops.
pub(super) async fn follow(
    mut read: impl AsyncRead + Unpin,
    mut write: OwnedWriteHalf,
    installed: &Installed,
    stop: &CancellationToken,
    package: &str,
) -> anyhow::Result<()> {
    let log = installed.client().log();
    if installed.get(package).is_none() {
        return say(&mut write, &Answer::Error { message: not_installed(package) }).await;
    }
    let Some(mut coming) = log.follow() else {
        let message = format!("{FOLLOWERS_MAX} clients follow apps already, and more may not");
        return say(&mut write, &Answer::Error { message }).await;
    };
    let mut told = log.latest_of(package).iter().flatten().map(|(number, _)| *number).max();
    say(&mut write, &Answer::AppLog { entries: log.of(package) }).await?;
    let mut look = interval(Duration::from_millis(LATEST_MS));
    loop {
        let entries = tokio::select! {
            entry = coming.recv() => match entry {
                // What the app drew and received before this entry is sent before it.
                Ok((of, number, entry)) if of == package => {
                    let mut entries = unseen(log, package, &mut told, number);
                    entries.push(entry);
                    entries
                }
                Ok(_) => continue,
                // Missed entries are in the log, at least the latest.
                Err(RecvError::Lagged(_)) => log.of(package),
                Err(RecvError::Closed) => return Ok(()),
            },
            _ = look.tick() => unseen(log, package, &mut told, u64::MAX),
            // The client sends nothing more: any read is its end.
            _ = read.read_u8() => return Ok(()),
            () = stop.cancelled() => return Ok(()),
        };
        if !entries.is_empty() {
            say(&mut write, &Answer::AppLog { entries }).await?;
        }
    }
}

/// The last drawing and the last transcript that were not sent yet and came before `end`, in order.
fn unseen(log: &Log, package: &str, told: &mut Option<u64>, end: u64) -> Vec<Entry> {
    let mut latest: Vec<_> = log.latest_of(package).into_iter().flatten().collect();
    latest.retain(|(number, _)| Some(*number) > *told && *number < end);
    latest.sort_by_key(|(number, _)| *number);
    *told = (*told).max(latest.last().map(|(number, _)| *number));
    latest.into_iter().map(|(_, event)| Entry::Event(event)).collect()
}
