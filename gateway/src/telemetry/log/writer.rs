//! The only writer of the log: lines are stored in groups, so that a card lasts.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use tokio::sync::{oneshot, watch};
use tools::inspection::logs::{LogCursor, LogFilter, LogScope};

use super::{
    Error,
    disk::{Disk, Group},
    dropped,
    row::{self, ArchivedRow, ArchivedTurn, Line, Turn, Wanted},
};

/// Jobs that may wait: a burst of some groups.
pub(super) const WAITING_MAX: usize = 1_024;
/// Lines that are stored together at most.
const GROUP_MAX: usize = 256;
/// How long the first line of a group waits for others: one commit a second wears a card no faster than the store does.
const GROUP_WAIT: Duration = Duration::from_secs(1);

/// The answer to a job.
pub(super) type Reply = oneshot::Sender<Result<u64, Error>>;

/// A job of the writer.
pub(super) enum Job {
    /// Store a line.
    Line(Line),
    /// Store the record of a turn that ended then, in milliseconds since the Unix epoch.
    Turn(i64, Turn),
    /// Answer when everything before it is stored.
    Settle(Reply),
    /// Drop lines for good.
    Clear(LogFilter, LogScope, Reply),
    /// Drop everything about a user and these devices for good.
    Erase(String, Vec<String>, Reply),
    /// Close the file and end.
    Close(Reply),
    /// For a test: it fails.
    #[cfg(test)]
    Panic(Reply),
}

/// The state of the log's thread, which alone changes the file.
pub(super) struct Writer {
    pub(super) disk: Disk,
    /// Grows with each group that is stored.
    pub(super) groups: Arc<watch::Sender<u64>>,
    /// The number of the next line.
    pub(super) next: u64,
}

impl Writer {
    /// Works until the file is closed, or nobody can send a job any more.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(first) = jobs.recv() {
            let mut group = Group::default();
            let mut job = group_or(first, &mut group);
            let until = Instant::now() + GROUP_WAIT;
            while job.is_none() && group.lines.len() + group.turns.len() < GROUP_MAX {
                match jobs.recv_timeout(until.saturating_duration_since(Instant::now())) {
                    Ok(next) => job = group_or(next, &mut group),
                    Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
                }
            }
            self.store(&group);
            let Some(job) = job else { continue };
            if self.carry_out(job) {
                return;
            }
        }
    }

    /// Stores a group. Where that fails, which is not logged, its lines are counted as dropped.
    fn store(&mut self, group: &Group) {
        if group.lines.is_empty() && group.turns.is_empty() {
            return;
        }
        match caught(|| self.disk.append(group, &mut self.next)) {
            Ok(()) => self.groups.send_modify(|groups| *groups += 1),
            Err(_) => dropped::add(group.lines.len()),
        }
    }

    /// Carries out a job; true: it was the last one.
    fn carry_out(&mut self, job: Job) -> bool {
        let (reply, result) = match job {
            Job::Line(_) | Job::Turn(..) => return false,
            Job::Settle(reply) => (reply, Ok(0)),
            Job::Clear(filter, scope, reply) => {
                let wanted = Wanted::new(&filter, &scope);
                let is_dropped = |place, key: &[u8], row: &ArchivedRow| {
                    row::parts(key).is_some_and(|(_, level)| wanted.fits_key(place, level)) && wanted.fits(row)
                };
                (reply, caught(|| self.disk.without(is_dropped, |_| false)))
            }
            Job::Erase(user, devices, reply) => {
                let is_dropped = |_: LogCursor, _: &[u8], row: &ArchivedRow| row::belongs_to(row, &user, &devices);
                let is_turn_dropped = |turn: &ArchivedTurn| row::is_turn_of(turn, &user, &devices);
                (reply, caught(|| self.disk.without(is_dropped, is_turn_dropped)))
            }
            #[cfg(test)]
            Job::Panic(reply) => (reply, caught(|| panic!("on purpose"))),
            Job::Close(reply) => {
                self.disk.close();
                // The caller may be gone.
                let _gone = reply.send(Ok(0));
                return true;
            }
        };
        let _gone = reply.send(result);
        false
    }
}

/// Runs work on the disk. A panic becomes [`Error::Unknown`], and the thread goes on: erasures need it.
fn caught<R>(work: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Err(Error::Unknown))
}

/// Puts a line or a turn into the group; another job is returned.
fn group_or(job: Job, group: &mut Group) -> Option<Job> {
    match job {
        Job::Line(line) => {
            group.lines.push(line);
            None
        }
        Job::Turn(wall_ms, turn) => {
            group.turns.push((wall_ms, turn));
            None
        }
        job => Some(job),
    }
}
