//! `cargo xtask dist --try`: the package on a clean Debian, under systemd, without internet.
//!
//! `mmdebstrap` makes the root, `systemd-nspawn` boots it with a network namespace of its own; a unit in it runs
//! `deploy/try.sh` and powers off with its status.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::level::PROGRAMS;
use super::{Made, deb, write};
use crate::gateway;
use crate::interrupt;
use crate::places::Places;
use crate::process::{self, Failure};
use crate::steps::step;

/// What the root has besides Debian's essential packages: the dependencies of the package, since it is installed without
/// internet, and what makes a second machine for the glasses.
const INCLUDED: &str = "ca-certificates,iproute2,libstdc++6,systemd,systemd-sysv";

/// The unit that runs the script. Its end is that of the container.
const UNIT: &str = "[Unit]
After=systemd-user-sessions.service
SuccessAction=exit-force
FailureAction=exit-force
SuccessActionExitStatus=0
FailureActionExitStatus=1

[Service]
Type=oneshot
ExecStart=/bin/sh /opt/try/try.sh
Environment=HOME=/root DEBIAN_FRONTEND=noninteractive
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console

[Install]
WantedBy=multi-user.target
";

/// Packages a second version, makes the root, and boots it.
pub(super) fn run(places: &Places, made: &Made) -> Result<(), Failure> {
    let base = step("a clean Debian root", || root(places))?;
    let scratch = made.tree.with_file_name("try");
    remove(&scratch)?;
    let machine = scratch.join("root");
    step("fetch models", || process::run(&mut models(places, made, "fetch")))?;
    step("fill the root", || fill(places, made, &base, &machine))?;
    interrupt::listen();
    let tried = step("try", || {
        let mut command = Command::new("systemd-nspawn");
        // It belongs to no service manager of this machine, if there is one.
        command.args(["--quiet", "--register=no", "--keep-unit", "--private-network", "--boot", "--directory"]);
        command.arg(&machine).arg(format!("--machine=lorgnette-try-{}", std::process::id()));
        // The messages of its boot are left out.
        command.args(["--", "--show-status=no", "--log-level=err", "--log-target=null"]);
        gateway::run_interruptible(&mut command)
    });
    remove(&scratch)?;
    tried
}

/// The archive of the root, made once for a checkout.
fn root(places: &Places) -> Result<PathBuf, Failure> {
    let release = fs::read_to_string("/etc/os-release").map_err(Failure::at(Path::new("/etc/os-release")))?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let suite = suite.ok_or_else(|| Failure::new("/etc/os-release has no VERSION_CODENAME"))?;
    let archive = places.cache.join(format!("root-{suite}-{}.tar", INCLUDED.replace(',', "-")));
    if !archive.exists() {
        fs::create_dir_all(&places.cache).map_err(Failure::at(&places.cache))?;
        let unfinished = places.cache.join("root.tar");
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--variant=apt", "--include", INCLUDED, suite]).arg(&unfinished);
        process::run(&mut command)?;
        fs::rename(&unfinished, &archive).map_err(Failure::at(&archive))?;
    }
    Ok(archive)
}

fn fill(places: &Places, made: &Made, base: &Path, machine: &Path) -> Result<(), Failure> {
    let inside = machine.join("opt/try");
    fs::create_dir_all(&inside).map_err(Failure::at(&inside))?;
    process::read(Command::new("tar").arg("-xf").arg(base).arg("-C").arg(machine))?;
    for (from, to) in [(made.deb.as_path(), "first.deb"), (&places.root.join("deploy/try.sh"), "try.sh")] {
        fs::copy(from, inside.join(to)).map_err(Failure::at(from))?;
    }
    deb::build(places, made.level, &made.tree, "+upgrade", &inside.join("second.deb"))?;
    process::run(models(places, made, "export").arg(&inside))?;
    let units = machine.join("etc/systemd/system");
    write(&units.join("lorgnette-try.service"), UNIT)?;
    let systemctl = |words: &[&str]| process::read(Command::new("systemctl").arg("--root").arg(machine).args(words));
    systemctl(&["enable", "lorgnette-try.service"])?;
    // A login prompt would take the console away from the script.
    systemctl(&["mask", "console-getty.service"]).map(drop)
}

/// A command of the program that was packaged, about the models of this checkout.
fn models(places: &Places, made: &Made, command: &str) -> Command {
    let mut program = Command::new(made.level.program(places, PROGRAMS[0]));
    program.args(["models", command]).env("LORGNETTE_MODELS", &places.models);
    program
}

fn remove(folder: &Path) -> Result<(), Failure> {
    if folder.exists() { fs::remove_dir_all(folder).map_err(Failure::at(folder)) } else { Ok(()) }
}
