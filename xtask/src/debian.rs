//! Debian's package client: installs what a command needs, unpacks speech for the tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::process::{self, Failure};

/// Whether this command may install system packages: Debian's client is available and the user is root.
pub(crate) fn may_install() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        process::on_path("apt-get") && process::read(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
    })
}

/// Installs packages; refreshes the package lists if one is unknown.
pub(crate) fn install(packages: &[&str]) -> Result<(), Failure> {
    let install = || {
        let mut command = apt_get();
        command.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(packages);
        process::run(&mut command)
    };
    install().or_else(|_| {
        process::run(apt_get().args(["update", "--quiet"]))?;
        install()
    })
}

/// Whether `apt-get download` and `dpkg -x` are available; neither needs root.
pub(crate) fn may_download() -> bool {
    process::on_path("apt-get") && process::on_path("dpkg")
}

/// Downloads one package of the configured release into `folder` and returns its file.
///
/// No version and no checksum are pinned here: a release keeps one version of a package, and apt verifies the file
/// against the release's signed list.
pub(crate) fn download(package: &str, folder: &Path) -> Result<PathBuf, Failure> {
    let download = || process::read(apt_get().args(["download", package]).current_dir(folder));
    download().or_else(|refusal| {
        if !may_install() {
            return Err(Failure::new(format!(
                "{refusal}\n(are the package lists there? `apt-get update` as root fetches them)"
            )));
        }
        process::run(apt_get().args(["update", "--quiet"]))?;
        download()
    })?;
    let files = std::fs::read_dir(folder).map_err(Failure::at(folder))?;
    files
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&format!("{package}_")) && name.ends_with(".deb")
        })
        .ok_or_else(|| Failure::new(format!("apt-get download left no file for {package}")))
}

/// Unpacks a package's files below `folder`, without installing it.
pub(crate) fn unpack(package: &Path, folder: &Path) -> Result<(), Failure> {
    process::read(Command::new("dpkg").arg("-x").arg(package).arg(folder)).map(drop)
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        // Another package client may hold the lock on a machine that has just started.
        .args(["-o", "DPkg::Lock::Timeout=300"])
        // Root may download into a folder that apt's sandbox user cannot write to.
        .args(["-o", "APT::Sandbox::User=root"]);
    command
}
