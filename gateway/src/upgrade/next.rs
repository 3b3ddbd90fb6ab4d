//! The old process's side: starts the next one and hands over to it.

use std::{
    ffi::OsString,
    future::Future,
    os::{fd::OwnedFd, unix::net::UnixStream as Pair},
    path::Path,
    pin::Pin,
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use super::{
    Version,
    channel::{Channel, FromNew, FromOld, send_sockets},
};
use crate::{environment, transport::sockets::Sockets};

/// Says to `serve` that it replaces a gateway.
pub(crate) const TAKE_OVER: &str = "--take-over";
/// How long a program may take to tell its version, which loads nothing.
const VERSION_MAX: Duration = Duration::from_secs(10);
/// How long the next process may take from `go` to serving: it opens the store, and may migrate it.
pub(crate) const SERVING_MAX: Duration = Duration::from_secs(120);
/// How long it may take to stop in order.
const END_MAX: Duration = Duration::from_secs(10);
/// Largest answer to the question for the version.
const VERSION_BYTES_MAX: usize = 4 * 1024;

/// A process that is ready to replace this one.
pub(crate) struct Next {
    child: Child,
    channel: Channel,
    /// Of its program, protocol and store.
    pub version: Version,
}

impl Next {
    /// Starts `program` with these arguments and waits until its models are loaded.
    ///
    /// # Errors
    /// It does not fit, fails, or takes longer than `wait`: it has been ended, and this process goes on.
    pub(super) async fn start(
        program: &Path,
        arguments: &[OsString],
        sockets: &Sockets,
        wait: Duration,
    ) -> Result<Self> {
        let version = version_of(program).await?;
        if let Some(why) = Version::own().cannot_be_replaced_by(&version) {
            bail!("{why}");
        }
        let (own, its) = Pair::pair().context("making a socket pair")?;
        send_sockets(&own, sockets)?;
        let child = Command::new(program)
            .args(arguments)
            .arg(TAKE_OVER)
            // It is meant for this process, and the next one would take it for another's.
            .env_remove("WATCHDOG_PID")
            .stdin(Stdio::from(OwnedFd::from(its)))
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let mut next = Self { child, channel: Channel::new(own)?, version };
        match next.expect(FromNew::Loaded, wait).await {
            Ok(()) => Ok(next),
            Err(error) => Err(next.ended(error).await),
        }
    }

    /// Its process; `None`: it has ended.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Lets it take the data folder, which has to be free. Where `end` completes before it serves, it is ended.
    ///
    /// # Errors
    /// It does not serve in time: it has been ended.
    pub(crate) async fn go(mut self, end: Pin<&mut impl Future<Output = ()>>) -> Result<Handover> {
        let pid = self.pid();
        let served = async {
            self.channel.tell(&FromOld::Go).await?;
            self.expect(FromNew::Serving, SERVING_MAX).await
        };
        let served = tokio::select! {
            // A service manager may signal both processes at once.
            biased;
            () = end => None,
            served = served => Some(served),
        };
        match served {
            None => {
                self.end().await;
                Ok(Handover::Ended)
            }
            Some(Ok(())) => Ok(Handover::Served(pid)),
            Some(Err(error)) => Err(self.ended(error).await),
        }
    }

    /// Has it stop, also where it has begun to serve, and waits for that; one that does not is killed.
    pub(crate) async fn end(self) {
        let Self { mut child, channel, .. } = self;
        // One that waits for `go` gives up.
        drop(channel);
        signal(child.id(), Signal::TERM);
        if timeout(END_MAX, child.wait()).await.is_err() {
            drop(child.kill().await);
        }
    }

    async fn expect(&mut self, wanted: FromNew, wait: Duration) -> Result<()> {
        let heard = timeout(wait, self.channel.hear()).await;
        let heard = heard.with_context(|| format!("the new process was not ready within {} s", wait.as_secs()))?;
        match heard? {
            FromNew::Failed(why) => Err(anyhow!("the new process cannot start: {why}")),
            heard => {
                ensure!(heard == wanted, "the new process says {heard:?} in place of {wanted:?}");
                Ok(())
            }
        }
    }

    /// Ends it.
    async fn ended(mut self, why: anyhow::Error) -> anyhow::Error {
        drop(self.child.kill().await);
        why
    }
}

/// What became of handing over.
pub(crate) enum Handover {
    /// The next process serves: its number.
    Served(Option<u32>),
    /// Neither process is to serve: the next one has been ended.
    Ended,
}

/// Sends a signal to a child that has not been waited for, so that the number is its own; `None`: it has.
pub(crate) fn signal(pid: Option<u32>, signal: Signal) {
    let pid = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    // It may have ended meanwhile.
    let _ended = pid.map(|pid| kill_process(pid, signal));
}

/// Asks a program for its versions.
async fn version_of(program: &Path) -> Result<Version> {
    let asked = Command::new(program)
        .args(["version", "--json"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    let unusable = || format!("{} is no program that can replace this gateway", program.display());
    let output = timeout(VERSION_MAX, asked).await.with_context(unusable)?.map_err(|error| {
        let place = environment::out_of_reach(&error, "/usr/local/lib");
        let place = place.map_or_else(String::new, |place| format!("; {place}"));
        anyhow!("{}: {error}{place}", unusable())
    })?;
    ensure!(output.status.success() && output.stdout.len() <= VERSION_BYTES_MAX, unusable());
    serde_json::from_slice(&output.stdout).with_context(unusable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_the_gateway_does_not_see_has_a_better_place() {
        let told = version_of(Path::new("/nonexistent/lorgnette")).await.unwrap_err().to_string();
        assert!(told.contains("is no program that can replace this gateway: No such file"), "{told}");
        assert!(told.contains("put it into /usr/local/lib, readable for all"), "{told}");
    }
}
