//! A child process: its start, its socket, its end.

use std::{
    io,
    os::{fd::OwnedFd, unix::process::ExitStatusExt as _},
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use code_sandbox::{
    ARGUMENT,
    protocol::{Hello, ToParent},
};
use rustix::{param::clock_ticks_per_second, process::Signal};
use tokio::{
    io::AsyncReadExt as _,
    net::UnixStream,
    process::{Child, Command},
    time::timeout,
};

use super::bridge::Bridge;

/// From the start of a process to its greeting: a loaded box takes a second.
const START_MAX: Duration = Duration::from_secs(15);
/// Until a process whose socket is closed has ended.
const END_MAX: Duration = Duration::from_secs(1);
/// Bytes of one read.
pub(super) const CHUNK_BYTES: usize = 64 * 1024;

/// A child process. It is killed when this is dropped.
pub(super) struct Process {
    child: Child,
    pub(super) socket: UnixStream,
    pub(super) bridge: Bridge,
}

impl Process {
    /// Starts a child. It needs a while until it is [ready](Self::greeting).
    pub(super) fn start(program: &Path) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let child = Command::new(program)
            .arg(ARGUMENT)
            .env_clear()
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { child, socket: UnixStream::from_std(ours)?, bridge: Bridge::default() })
    }

    /// Waits until the child is ready, with its fences up.
    pub(super) async fn greeting(&mut self) -> Result<Hello, String> {
        match timeout(START_MAX, self.first_message()).await {
            Ok(Ok(ToParent::Hello(hello))) => Ok(hello),
            Ok(Ok(ToParent::Failed(failure))) => Err(failure.message),
            Ok(Ok(_)) => Err("it did not greet".to_owned()),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(format!("it was not ready after {} s", START_MAX.as_secs())),
        }
    }

    async fn first_message(&mut self) -> Result<ToParent, String> {
        let mut chunk = [0; 1024];
        loop {
            if let Some(message) = self.bridge.message().map_err(|violation| violation.to_string())? {
                return Ok(message);
            }
            let read = self.socket.read(&mut chunk).await.map_err(|error| error.to_string())?;
            if read == 0 {
                return Err("it ended at once".to_owned());
            }
            self.bridge.arrived(chunk.get(..read).unwrap_or_default());
        }
    }

    /// The child's number, which nobody else gets before its end was waited for.
    pub(super) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Whether the child still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the child.
    pub(super) async fn kill(mut self) {
        // It may have ended already.
        let _ = self.child.kill().await;
    }

    /// How a child ended that closed its socket.
    pub(super) async fn end(mut self) -> String {
        match timeout(END_MAX, self.child.wait()).await {
            Ok(Ok(status)) => describe(status),
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                self.kill().await;
                "it closed its socket".to_owned()
            }
        }
    }
}

/// Processor time that a process has used so far; `None` where the kernel does not tell it.
pub(super) fn computed(process: u32) -> Option<Duration> {
    in_stat(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Processor time in a process' line of `/proc/PID/stat` (proc_pid_stat(5), fields 14 and 15).
fn in_stat(stat: &str) -> Option<Duration> {
    // The name, in brackets, may have blanks and brackets.
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_millis(user.checked_add(system)?.checked_mul(1_000)? / clock_ticks_per_second().max(1)))
}

fn describe(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else { return format!("its process ended early, {status}") };
    let is = |other: Signal| signal == other.as_raw();
    if is(Signal::SYS) {
        "its process was killed: it tried what no program may do".to_owned()
    } else if is(Signal::XCPU) || is(Signal::KILL) {
        "its process was killed: it used too much of the processor or of the memory".to_owned()
    } else if is(Signal::SEGV) || is(Signal::BUS) || is(Signal::ABORT) {
        "its process crashed: it nests too deeply, or has found a fault of the engine".to_owned()
    } else {
        format!("its process ended early, {status}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_of_a_process_is_read() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 500 0 0 0 250 50 9 9 20 0 1 0 100 1000 10 1";
        let ticks = Duration::from_millis(300 * 1_000 / clock_ticks_per_second());
        assert_eq!(in_stat(stat), Some(ticks));
        assert_eq!(in_stat("7 (a) S 1 7 7 0 -1 4194560 500 0 0 0 x 50"), None);
        assert_eq!(in_stat("7 (a) S 1"), None);
        assert_eq!(in_stat(""), None);
        assert!(computed(std::process::id()).is_some());
    }
}
