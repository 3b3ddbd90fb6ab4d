//! Starting the gateway with the machine: a unit of systemd, where it runs.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::cli::SYSTEM_CONFIG;

/// The service manager of this machine.
pub(super) struct Systemd {
    /// Whether it runs.
    runs: bool,
    /// Whether it is that of the whole machine, and not a user's.
    is_system: bool,
    /// Where its units are.
    units: PathBuf,
    /// Where packages have put theirs.
    packaged: PathBuf,
    /// Its control program.
    control: PathBuf,
}

/// Name of the unit.
const UNIT: &str = "lorgnette.service";
/// Where packages put units.
const PACKAGED: &str = "/usr/lib/systemd/system";

impl Systemd {
    /// What runs here, for this user.
    pub(super) fn of_this_machine() -> Self {
        let is_system = rustix::process::geteuid().is_root();
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let config = std::env::var_os("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        let units = if is_system { PathBuf::from("/etc/systemd/system") } else { config.join("systemd/user") };
        // As sd_booted(3) finds out.
        let runs = Path::new("/run/systemd/system").is_dir();
        Self { runs, is_system, units, packaged: PathBuf::from(PACKAGED), control: PathBuf::from("systemctl") }
    }

    /// Whether it runs here.
    pub(super) fn is_there(&self) -> bool {
        self.runs
    }

    /// The command that starts the gateway, or one that runs again.
    pub(super) fn start(&self) -> String {
        format!("{} restart {UNIT}", self.words())
    }

    fn words(&self) -> &'static str {
        if self.is_system { "systemctl" } else { "systemctl --user" }
    }

    /// Enables the unit of the package, with its limits, or writes a unit and enables it; where no systemd runs, says what to
    /// do instead.
    ///
    /// # Errors
    /// The unit cannot be written, systemd refuses it, or that of the package reads another configuration.
    pub(super) fn install(&self, config: &Path) -> Result<String> {
        let program = std::env::current_exe().context("the path of this program")?;
        let text = self.unit(&program, config);
        let path = self.units.join(UNIT);
        if self.is_packaged() {
            ensure!(
                config == Path::new(SYSTEM_CONFIG),
                "{UNIT} of the package reads {SYSTEM_CONFIG}: write that one, or name yours with `systemctl edit {UNIT}`"
            );
            self.control(&["enable", UNIT])?;
            return Ok(format!("enabled {UNIT}, as the package has it"));
        }
        if !self.runs {
            return Ok(format!(
                "no systemd runs here: have your service manager run `{} serve --config {}`. With systemd it is {} with\n\n{text}",
                program.display(),
                config.display(),
                path.display()
            ));
        }
        std::fs::create_dir_all(&self.units).with_context(|| format!("making {}", self.units.display()))?;
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        self.control(&["daemon-reload"])?;
        self.control(&["enable", UNIT])?;
        let stays = if self.is_system { "" } else { "; `loginctl enable-linger` starts it without a login, too" };
        Ok(format!("wrote {} and enabled it{stays}", path.display()))
    }

    /// Whether the gateway belongs to a package with a unit, and systemd runs.
    pub(super) fn is_packaged(&self) -> bool {
        self.runs && self.is_system && self.packaged.join(UNIT).is_file()
    }

    fn control(&self, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.control);
        if !self.is_system {
            command.arg("--user");
        }
        let output = command.args(arguments).output().with_context(|| format!("running {}", self.control.display()))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} {} failed: {}", self.words(), arguments.join(" "), said.trim());
        Ok(())
    }

    fn unit(&self, program: &Path, config: &Path) -> String {
        let target = if self.is_system { "multi-user.target" } else { "default.target" };
        let word = |path: &Path| escaped(&path.display().to_string());
        let (program, config) = (word(program), word(config));
        format!(
            "[Unit]\n\
             Description=Lorgnette, gateway for smart glasses\n\
             Wants=network-online.target\n\
             After=network-online.target\n\
             \n\
             [Service]\n\
             Type=notify\n\
             ExecStart={program} serve --config {config}\n\
             ExecReload={program} upgrade --config {config}\n\
             Restart=on-failure\n\
             WatchdogSec=60\n\
             LimitNOFILE=4096\n\
             NoNewPrivileges=yes\n\
             \n\
             [Install]\n\
             WantedBy={target}\n"
        )
    }
}

/// A word of a command line in a unit (systemd.service(5), systemd.syntax(7)).
fn escaped(word: &str) -> String {
    let mut out = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '%' => out.push_str("%%"),
            '$' => out.push_str("$$"),
            c => out.push(c),
        }
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn systemd(folder: &Path, runs: bool, script: &str) -> Systemd {
        let control = folder.join("systemctl");
        std::fs::write(&control, format!("#!/bin/sh\necho \"$@\" >> {}/said\n{script}\n", folder.display())).unwrap();
        std::fs::set_permissions(&control, std::fs::Permissions::from_mode(0o755)).unwrap();
        Systemd { runs, is_system: false, units: folder.join("units"), packaged: folder.join("packaged"), control }
    }

    #[test]
    fn a_unit_is_written_and_enabled_where_systemd_runs() {
        let folder = tempfile::tempdir().unwrap();
        let systemd = systemd(folder.path(), true, "");
        let told = systemd.install(Path::new("/a b/50%.toml")).unwrap();
        assert!(told.contains("enabled it"), "{told}");
        let unit = std::fs::read_to_string(folder.path().join("units/lorgnette.service")).unwrap();
        assert!(unit.contains("serve --config \"/a b/50%%.toml\"\n") && unit.contains("Type=notify"), "{unit}");
        let said = std::fs::read_to_string(folder.path().join("said")).unwrap();
        assert_eq!(said, "--user daemon-reload\n--user enable lorgnette.service\n");
    }

    #[test]
    fn a_packaged_unit_is_enabled_and_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let mut systemd = systemd(folder.path(), true, "");
        systemd.is_system = true;
        std::fs::create_dir(folder.path().join("packaged")).unwrap();
        std::fs::write(folder.path().join("packaged/lorgnette.service"), "[Service]\n").unwrap();
        let told = systemd.install(Path::new(SYSTEM_CONFIG)).unwrap();
        assert!(told.contains("as the package has it"), "{told}");
        let said = std::fs::read_to_string(folder.path().join("said")).unwrap();
        assert_eq!(said, "enable lorgnette.service\n");
        assert!(!folder.path().join("units").exists());
        let other = systemd.install(Path::new("/root/mine.toml")).unwrap_err().to_string();
        assert!(other.contains(SYSTEM_CONFIG), "{other}");
    }

    #[test]
    fn what_systemd_refuses_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let systemd = systemd(folder.path(), true, "echo no bus >&2; exit 1");
        let error = systemd.install(Path::new("/c")).unwrap_err().to_string();
        assert!(error.contains("daemon-reload failed: no bus"), "{error}");
    }

    #[test]
    fn without_systemd_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let told = systemd(folder.path(), false, "").install(Path::new("/c")).unwrap();
        assert!(told.contains("no systemd runs here") && told.contains("ExecStart="), "{told}");
        assert!(!folder.path().join("units").exists() && !folder.path().join("said").exists());
    }
}
