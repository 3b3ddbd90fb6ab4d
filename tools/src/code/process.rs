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
use rustix::process::Signal;
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

/// Processor time that a process has used so far; `None` where the kernel does not tell it. Not from `/proc`, which hides a process
/// that cannot be traced where it is mounted so.
#[allow(unsafe_code, reason = "no safe call names the clock of another process")]
pub(super) fn computed(process: u32) -> Option<Duration> {
    let process = libc::pid_t::try_from(process).ok()?;
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both write to a variable of the right type that outlives the call.
    let is_read =
        unsafe { libc::clock_getcpuclockid(process, &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0 };
    is_read.then(|| Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0)))
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
