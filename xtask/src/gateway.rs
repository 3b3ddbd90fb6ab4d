//! A child process that reports when it is ready: started, awaited, stopped cleanly.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::interrupt;
use crate::process::{self, Failure};

/// Time limit for readiness: loading the models takes two seconds on a slow machine.
const READY_MAX: Duration = Duration::from_secs(60);
/// Time limit for a clean stop, which notifies every device and closes the store.
const STOP_MAX: Duration = Duration::from_secs(10);
/// Interval at which a child's exit and the interrupt flag are checked.
const LOOK: Duration = Duration::from_millis(50);

/// A running server process. Dropping it kills it; [`Gateway::stop`] stops it cleanly.
pub(crate) struct Gateway {
    child: Child,
    log: PathBuf,
}

impl Gateway {
    /// Starts `command` and waits until it prints a line that begins with `ready`; returns that line too. Standard
    /// error goes to the file `log`.
    pub(crate) fn start(command: &mut Command, ready: &str, log: &Path) -> Result<(Self, String), Failure> {
        let file = File::create(log).map_err(Failure::at(log))?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .map_err(|error| Failure::new(format!("`{}`: {error}", process::spelled(command))))?;
        let output = child.stdout.take().ok_or_else(|| Failure::new("no standard output"))?;
        let (lines, received) = mpsc::sync_channel(16);
        // Reads to the end of the output, even without a receiver, so that the child never blocks on a full pipe.
        let read = move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = lines.try_send(line);
            }
        };
        let gateway = Self { child, log: log.to_path_buf() };
        thread::Builder::new()
            .name("gateway-output".into())
            .spawn(read)
            .map_err(|error| Failure::new(format!("no thread for the gateway: {error}")))?;
        let started = Instant::now();
        loop {
            match received.recv_timeout(LOOK) {
                Ok(line) if line.starts_with(ready) => return Ok((gateway, line)),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(gateway.complaint("ended before it was ready"));
                }
                Err(RecvTimeoutError::Timeout) if interrupt::came() => {
                    return Err(Failure::new("interrupted"));
                }
                Err(RecvTimeoutError::Timeout) if started.elapsed() > READY_MAX => {
                    return Err(gateway.complaint("was not ready after a minute"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Asks the child to stop and waits; an unclean exit is an error.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        terminate(&self.child);
        match wait(&mut self.child, STOP_MAX)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.complaint(&format!("ended with {status} when asked to stop"))),
            None => Err(self.complaint("did not stop within 10 s and was killed")),
        }
    }

    /// Waits until the child exits; an unclean exit is an error.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        match wait(&mut self.child, STOP_MAX)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.complaint(&format!("ended with {status}"))),
            None => Err(self.complaint("did not end within 10 s and was killed")),
        }
    }

    fn complaint(&self, what: &str) -> Failure {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let mut last: Vec<&str> = log.lines().rev().take(8).collect();
        last.reverse();
        Failure::new(format!("the child {what}; the end of {}:\n{}", self.log.display(), last.join("\n")))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Both fail only if the child has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a child with the terminal's input and output; on an interrupt it is asked to stop.
pub(crate) fn run_interruptible(command: &mut Command) -> Result<(), Failure> {
    let mut child =
        command.spawn().map_err(|error| Failure::new(format!("`{}`: {error}", process::spelled(command))))?;
    let status = loop {
        if let Some(status) = wait(&mut child, LOOK)? {
            break status;
        }
        if interrupt::came() {
            terminate(&child);
            if wait(&mut child, STOP_MAX)?.is_none() {
                // It has exited meanwhile, or does not respond.
                let _ = child.kill();
                let _ = child.wait();
            }
            return Err(Failure::new("interrupted"));
        }
    };
    if status.success() {
        return Ok(());
    }
    Err(Failure::new(format!("`{}` ended with {status}", process::spelled(command))))
}

/// Waits at most `longest` for the child to end.
fn wait(child: &mut Child, longest: Duration) -> Result<Option<ExitStatus>, Failure> {
    let started = Instant::now();
    loop {
        let ended = child.try_wait().map_err(|error| Failure::new(error.to_string()))?;
        if ended.is_some() || started.elapsed() >= longest {
            return Ok(ended);
        }
        thread::park_timeout(LOOK.min(longest));
    }
}

/// Sends SIGTERM with the system's `kill` command: the standard library can only kill.
fn terminate(child: &Child) {
    // Fails if the child has exited already, which is fine.
    let _ = process::read(Command::new("kill").args(["-TERM", &child.id().to_string()]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn log(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("xtask-{name}-{}.log", std::process::id()))
    }

    #[test]
    fn it_waits_for_the_ready_line_and_stops_cleanly() {
        let log = log("ready");
        let script = "trap 'exit 0' TERM; echo loading; echo ready ws=1; while :; do sleep 0.02; done";
        let (gateway, line) = Gateway::start(&mut shell(script), "ready", &log).unwrap();
        assert_eq!(line, "ready ws=1");
        gateway.stop().unwrap();
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_gateway_that_dies_is_reported_with_the_end_of_its_log() {
        let log = log("dies");
        let outcome = Gateway::start(&mut shell("echo port in use >&2; exit 1"), "ready", &log);
        let failure = outcome.err().unwrap().to_string();
        assert!(failure.contains("port in use"), "{failure}");
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn an_unclean_stop_is_a_failure() {
        let log = log("unclean");
        let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";
        let (gateway, _) = Gateway::start(&mut shell(script), "ready", &log).unwrap();
        let failure = gateway.stop().unwrap_err().to_string();
        assert!(failure.contains('9'), "{failure}");
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_child_that_fails_is_named() {
        let failure = run_interruptible(&mut shell("exit 4")).unwrap_err().to_string();
        assert!(failure.contains("exit 4") && failure.contains("status: 4"), "{failure}");
        run_interruptible(&mut shell("exit 0")).unwrap();
    }
}
