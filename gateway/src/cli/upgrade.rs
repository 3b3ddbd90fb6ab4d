//! `lorgnette upgrade`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};

use crate::{
    config::Config,
    control::{Answer, Request, client},
    private::FolderLock,
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
    let Answer::Version { pid: old, started_us, .. } = client::ask(&config.data_dir, &Request::Version)? else {
        bail!("unexpected answer");
    };
    let request = Request::Upgrade { program, wait_s: arguments.wait };
    let wait = Duration::from_secs(arguments.wait).saturating_add(ANSWER_MAX);
    let Answer::Version { pid, version, .. } = client::ask_within(&config.data_dir, &request, wait)? else {
        bail!("unexpected answer");
    };
    println!("process {pid}, version {}, is ready and takes over", version.version);
    served_by(&config.data_dir, pid, (old, started_us))?;
    println!("process {pid} serves");
    Ok(())
}

/// Waits until the new process answers. `old`: the process that it replaces, and when the gateway in it was started.
#[allow(clippy::disallowed_methods, reason = "a command waits for a process that tells nobody")]
fn served_by(data_dir: &Path, pid: u32, (old, replaced_us): (u32, u64)) -> Result<()> {
    let began = Instant::now();
    while began.elapsed() < SERVING_MAX {
        match client::ask(data_dir, &Request::Version) {
            Ok(Answer::Version { pid: answers, .. }) if answers == pid => return Ok(()),
            Ok(Answer::Version { started_us, .. }) if started_us != replaced_us => {
                bail!("the new process failed, and the old one serves again; its log has the reason")
            }
            Err(_) if !is_alive(pid) && !is_alive(old) && is_free(data_dir) => bail!(
                "no gateway runs any more: the new process failed, and the old one could not start again; the log has the \
                 reasons. Start it with `lorgnette serve`, unless a service manager does"
            ),
            // The one that is replaced, before it stops; or none, for a moment.
            Ok(_) | Err(_) => thread::sleep(EVERY),
        }
    }
    bail!("process {pid} does not answer; the log has the reason")
}

/// Whether a process runs; one that nobody has waited for does not.
fn is_alive(pid: u32) -> bool {
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    if test_kill_process(number) == Err(Errno::SRCH) {
        return false;
    }
    // `PID (name) STATE ...`, proc_pid_stat(5); the name may have brackets of its own.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

/// Whether no process has the lock of the data folder. Asked only when none is left that would take it at this moment: it is
/// taken and given up. A folder that is gone, or closed to this user, is not known to be free.
fn is_free(data_dir: &Path) -> bool {
    data_dir.is_dir() && FolderLock::try_take(data_dir, "upgrade").is_ok_and(|lock| lock.is_some())
}

#[cfg(test)]
mod tests {
    use std::process::{self, Command, Stdio};

    use super::*;
    use crate::private::GATEWAY;

    #[test]
    fn a_process_that_has_ended_is_not_alive_whether_or_not_it_was_waited_for() {
        assert!(is_alive(process::id()));
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        assert!(is_alive(child.id()));
        drop(child.stdin.take());
        // The end of its output comes before that of the process, which is waited for without taking its status.
        let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        let pid = Pid::from_child(&child);
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
        assert!(!is_alive(child.id()), "it is still a child");
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
    }

    #[test]
    fn a_folder_is_free_unless_its_lock_is_held() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_free(folder.path()));
        let lock = FolderLock::take(folder.path(), GATEWAY).unwrap();
        assert!(!is_free(folder.path()));
        drop(lock);
        assert!(is_free(folder.path()));
        assert!(!is_free(&folder.path().join("gone")));
    }
}
