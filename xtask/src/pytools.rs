//! Tools that PyPI ships prebuilt: found on the search path, or installed into `.cache/tools`.

use std::path::PathBuf;
use std::process::Command;

use crate::places::Places;
use crate::process::{self, Failure, on_path};

/// Installs `NAME==VERSION` packages into one ignored folder; returns that folder.
///
/// With a stamp file next to the folder the second call is immediate.
pub(crate) fn install(places: &Places, folder: &str, packages: &[&str]) -> Result<PathBuf, Failure> {
    let target = places.cache.join(folder);
    let stamp = target.join("installed");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(target);
    }
    std::fs::create_dir_all(&target).map_err(Failure::at(&target))?;
    let mut command = pip()?;
    command.args(["install", "--quiet", "--no-deps", "--upgrade", "--target"]).arg(&target).args(packages);
    // A compilation uses all cores but not all memory: some builds start every job at once.
    let jobs = std::thread::available_parallelism().map_or(1, |cores| cores.get()).to_string();
    command.env("CMAKE_BUILD_PARALLEL_LEVEL", &jobs).env("MAX_JOBS", &jobs).env("MAKEFLAGS", format!("-j{jobs}"));
    process::run(&mut command)?;
    std::fs::write(&stamp, wanted).map_err(Failure::at(&stamp))?;
    Ok(target)
}

/// A cargo sub-command: the installed one, else the pinned one, else `None` with a message that gives the reason.
pub(crate) fn cargo_tool(places: &Places, name: &str, package: &str) -> Option<PathBuf> {
    if on_path(name) {
        return Some(name.into());
    }
    let built = match install(places, &format!("tools/{name}"), &[package]) {
        Ok(folder) => folder.join("bin").join(name),
        Err(refusal) => {
            eprintln!("  {name} is not on this machine, and installing it failed: {refusal}");
            return None;
        }
    };
    // A wheel made for another C library installs but does not start.
    match process::read(Command::new(&built).arg("--version")) {
        Ok(_) => Some(built),
        Err(refusal) => {
            eprintln!("  {refusal}");
            None
        }
    }
}

fn pip() -> Result<Command, Failure> {
    let program = ["pip3", "pip"]
        .into_iter()
        .find(|name| on_path(name))
        .ok_or_else(|| Failure::new("`pip3` is missing: install the package `python3-pip`"))?;
    let mut command = Command::new(program);
    command.env("PIP_DISABLE_PIP_VERSION_CHECK", "1").env("PIP_ROOT_USER_ACTION", "ignore");
    Ok(command)
}
