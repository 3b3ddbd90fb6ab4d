//! Examines a box: configuration, models, data folder, keys, store, ports, clock, disk, kernel. `lorgnette doctor` prints
//! what is found, and the console shows it.

mod announced;
mod elsewhere;
mod folder;
mod listening;
mod machine;
mod readable;
mod settings;

use std::{fs, io, os::unix::net::UnixStream, path::Path, time::Duration};

use crate::{
    config::{self, Config},
    control::{
        Answer, Request,
        client::{self, NoAnswer},
        socket_path,
        status::Status,
    },
    findings::{Findings, Level},
    private::{FolderLock, Holder, RUN_AS_ROOT, out_of_sight},
};

/// How long a start may take: models load from a slow card, a store is brought to its version, an erasure is finished.
const START_MAX: Duration = Duration::from_secs(10 * 60);

/// Who uses the data folder.
pub(crate) enum Use {
    /// Nobody; as long as this lives.
    Nobody(#[expect(dead_code, reason = "held, and so locked")] FolderLock),
    /// There is no folder yet, or it cannot be used.
    NoFolder,
    /// A gateway that answers.
    Gateway(Box<Status>),
    /// A command that has the lock, such as one that copies the folder.
    Command(Holder),
    /// A process that has the lock, has made its socket a short while ago, and does not answer yet.
    Starting,
    /// A process that has the lock and does not answer.
    Silent(String),
}

impl Use {
    /// Found out from outside.
    pub(crate) fn of(config: &Config) -> Self {
        match FolderLock::try_take(&config.data_dir, "doctor") {
            Ok(Some(lock)) => Self::Nobody(lock),
            Err(_) => Self::NoFolder,
            Ok(None) => match FolderLock::holder(&config.data_dir).filter(|holder| !holder.is_gateway()) {
                Some(command) => Self::Command(command),
                None => Self::asked(&config.data_dir),
            },
        }
    }

    /// Whether it is a gateway, answering or not: its variables are its own.
    fn is_gateway(&self) -> bool {
        match self {
            Self::Gateway(_) | Self::Starting | Self::Silent(_) => true,
            Self::Nobody(_) | Self::NoFolder | Self::Command(_) => false,
        }
    }

    /// Of a gateway, by its answer.
    fn asked(data_dir: &Path) -> Self {
        match client::ask(data_dir, &Request::Status) {
            Ok(Answer::Status { status }) => Self::Gateway(status),
            Ok(other) => Self::Silent(format!("it answers something else: {other:?}")),
            Err(error) if may_be_starting(&error, &socket_path(data_dir)) => Self::Starting,
            Err(error) => {
                let socket = UnixStream::connect(socket_path(data_dir));
                Self::Silent(socket.err().map_or_else(|| format!("{error:#}"), |error| error.to_string()))
            }
        }
    }
}

/// Whether a gateway that did not answer may be at its start, which begins with the socket.
fn may_be_starting(error: &anyhow::Error, socket: &Path) -> bool {
    let made = fs::metadata(socket).and_then(|socket| socket.modified());
    // A clock that was set back makes it new.
    let is_new = made.is_ok_and(|made| made.elapsed().unwrap_or_default() < START_MAX);
    is_new && error.downcast_ref::<NoAnswer>() == Some(&NoAnswer::Late)
}

/// Reads the configuration file, or takes the defaults without one; `None`: it cannot be used.
pub(crate) fn configuration(file: Option<&Path>, findings: &mut Findings) -> Option<Config> {
    match config::load(file) {
        Err(problems) => {
            for problem in problems {
                let remedy = "correct it; `lorgnette check --example` explains every key. The rest was not examined";
                findings.fault("configuration", problem.to_string(), remedy);
            }
            None
        }
        Ok(config) => {
            let shown = file.map_or_else(|| "the defaults".to_owned(), |file| file.display().to_string());
            findings.ok("configuration", format!("{shown} can be read, and every value is allowed"));
            Some(config)
        }
    }
}

/// Examines everything that depends on the configuration; whether all models for speech are there. It blocks: names are
/// looked up, files are read. Of a data folder into which this user may not look nothing is examined.
///
/// # Errors
/// The system starts no runtime.
pub(crate) fn examine(config: &Config, used_by: &Use, findings: &mut Findings) -> io::Result<bool> {
    if let Some(closed) = out_of_sight(&config.data_dir) {
        findings.fault("data folder", closed, RUN_AS_ROOT);
        return Ok(false);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    settings::examine(config, used_by, &runtime, findings);
    elsewhere::examine(config, used_by, findings);
    let are_there = settings::examine_models(config, findings);
    folder::examine(config, used_by, findings);
    readable::examine(config, findings);
    listening::examine(config, used_by, findings);
    announced::examine(used_by, findings);
    machine::examine(config, used_by, findings);
    Ok(are_there)
}

/// What programs of models are fenced in with.
pub(crate) fn examine_kernel(findings: &mut Findings) {
    machine::examine_kernel(findings);
}

/// Examines the box of the gateway that runs in this process, started with this configuration; the worst first. It blocks.
pub(crate) fn examine_own(config: &Config, status: Status) -> Findings {
    let mut findings = Findings::default();
    // The file may have changed since the start.
    configuration(config.file.as_deref(), &mut findings);
    if let Err(error) = examine(config, &Use::Gateway(Box::new(status)), &mut findings) {
        findings.add(Level::Warning, "doctor", error.to_string(), "run `lorgnette doctor` on the box");
    }
    examine_kernel(&mut findings);
    findings.sort();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_has_the_folder_is_no_gateway_that_does_not_answer() {
        let folder = tempfile::tempdir().unwrap();
        let config = config::check(&format!("data_dir = {:?}\n", folder.path()), "x.toml").unwrap();
        let _held = FolderLock::take(folder.path(), "backup").unwrap();
        let Use::Command(holder) = Use::of(&config) else { panic!("the lock names the command") };
        assert!(holder.to_string().starts_with("`lorgnette backup` (process "), "{holder}");
    }

    #[test]
    fn a_gateway_that_has_just_made_its_socket_may_be_starting() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let (late, ended) = (NoAnswer::Late.into(), NoAnswer::Ended.into());
        assert!(!may_be_starting(&late, &socket), "there is none");
        let made = fs::File::create(&socket).unwrap();
        assert!(may_be_starting(&late, &socket) && !may_be_starting(&ended, &socket));
        made.set_modified(std::time::SystemTime::now() - 2 * START_MAX).unwrap();
        assert!(!may_be_starting(&late, &socket));
    }
}
