//! `lorgnette upgrade`.

use std::{
    env,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use crate::{
    config::Config,
    control::{Answer, Request, client},
};

/// How long the gateway may take to answer beyond the wait for the new process: it asks the program for its version.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// How long the new process may take to answer after it is ready.
const SERVING_MAX: Duration = Duration::from_secs(150);
/// Between two looks.
const EVERY: Duration = Duration::from_millis(50);

/// Replace the running gateway by another program, usually a newer version of it, without dropping a session.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The program; default: the one that is called.
    program: Option<PathBuf>,
    /// How long it may take to load its models, in seconds. Until then the running gateway serves.
    #[arg(long, default_value_t = 120)]
    wait: u64,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let program = match &arguments.program {
        Some(program) => program.canonicalize().with_context(|| format!("finding {}", program.display()))?,
        None => env::current_exe().context("finding this program")?,
    };
    let request = Request::Upgrade { program, wait_s: arguments.wait };
    let wait = Duration::from_secs(arguments.wait).saturating_add(ANSWER_MAX);
    let Answer::Version { pid, version, started_us } = client::ask_within(&config.data_dir, &request, wait)? else {
        bail!("unexpected answer");
    };
    println!("process {pid}, version {}, is ready and takes over", version.version);
    served_by(&config.data_dir, pid, started_us)?;
    println!("process {pid} serves");
    Ok(())
}

/// Waits until that process answers. `replaced_us`: when the gateway was started that it replaces.
#[allow(clippy::disallowed_methods, reason = "a command waits for a process that tells nobody")]
fn served_by(data_dir: &Path, pid: u32, replaced_us: u64) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < SERVING_MAX {
        match client::ask(data_dir, &Request::Version) {
            Ok(Answer::Version { pid: answers, .. }) if answers == pid => return Ok(()),
            Ok(Answer::Version { started_us, .. }) if started_us != replaced_us => {
                bail!("the new process failed, and the old one serves again; its log has the reason")
            }
            // The one that is replaced, before it stops; or none, for a moment.
            Ok(_) | Err(_) => thread::sleep(EVERY),
        }
    }
    bail!("process {pid} does not answer; the log has the reason")
}
