//! Starting the gateway with the machine: a unit of systemd, where it runs.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use crate::private::make_folder;

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

/// The beginning of a unit that was written here. Another one is somebody's own, such as that of a tarball, and stays.
const MARK: &str = "# `lorgnette setup` has written this file, and replaces it.\n";
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

    /// Checks that a unit that is there reads this configuration.
    ///
    /// # Errors
    /// It reads another one.
    pub(super) fn check(&self, config: &Path) -> Result<()> {
        let Some(unit) = self.foreign_unit() else { return Ok(()) };
        let read = self.configuration_of(&unit);
        ensure!(
            read.as_deref() == Some(config),
            "{} reads {}: write that one (`--output`), or have the unit read {} (`systemctl edit {UNIT}`)",
            unit.display(),
            read.as_deref().map_or_else(|| "no configuration".into(), Path::to_string_lossy),
            config.display()
        );
        Ok(())
    }

    /// Enables the unit that is there, of the package or of somebody, with its limits; or writes one and enables it. Where no
    /// systemd runs, says what to do instead.
    ///
    /// # Errors
    /// The unit cannot be written, or systemd refuses it.
    pub(super) fn install(&self, config: &Path, data: &Path) -> Result<String> {
        let program = std::env::current_exe().context("the path of this program")?;
        let text = self.unit(&program, config, data)?;
        let path = self.units.join(UNIT);
        if let Some(unit) = self.foreign_unit() {
            self.control(&["enable", UNIT])?;
            return Ok(format!("enabled {}, as it is", unit.display()));
        }
        if !self.runs {
            return Ok(format!(
                "no systemd runs here: have your service manager run `{} serve --config {}`. With systemd it is {} with\n\n{text}",
                program.display(),
                config.display(),
                path.display()
            ));
        }
        make_folder(data).with_context(|| format!("making the data folder {}", data.display()))?;
        std::fs::create_dir_all(&self.units).with_context(|| format!("making {}", self.units.display()))?;
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        self.control(&["daemon-reload"])?;
        self.control(&["enable", UNIT])?;
        let stays = if self.is_system { "" } else { "; `loginctl enable-linger` starts it without a login, too" };
        Ok(format!("wrote {} and enabled it{stays}", path.display()))
    }

    /// The unit that counts here, if there is one.
    fn present_unit(&self) -> Option<PathBuf> {
        let own = self.units.join(UNIT);
        match own.exists() {
            true => Some(own),
            false => Some(self.packaged.join(UNIT)).filter(|unit| self.is_system && unit.is_file()),
        }
        .filter(|_| self.runs)
    }

    /// The same, where it was not written by setting up.
    fn foreign_unit(&self) -> Option<PathBuf> {
        let is_written_here = |unit: &Path| std::fs::read_to_string(unit).is_ok_and(|text| text.starts_with(MARK));
        self.present_unit().filter(|unit| !is_written_here(unit))
    }

    /// The configuration that a unit names, or the last of the files that add to it.
    fn configuration_of(&self, unit: &Path) -> Option<PathBuf> {
        let added = std::fs::read_dir(self.units.join(format!("{UNIT}.d"))).into_iter().flatten();
        let mut added: Vec<PathBuf> = added.filter_map(|entry| Some(entry.ok()?.path())).collect();
        added.sort();
        let texts = [unit.to_path_buf()].into_iter().chain(added).filter_map(|file| std::fs::read_to_string(file).ok());
        let named = |text: String| {
            let starts = text.lines().filter_map(|line| line.strip_prefix("ExecStart="));
            let mut words = starts.filter_map(|line| first_word(line.split_once("--config")?.1));
            words.next_back()
        };
        texts.filter_map(named).next_back()
    }

    /// Whether a unit is there already that starts the gateway with this configuration.
    pub(super) fn starts(&self, config: &Path) -> bool {
        self.present_unit().is_some_and(|unit| self.configuration_of(&unit).as_deref() == Some(config))
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

    fn unit(&self, program: &Path, config: &Path, data: &Path) -> Result<String> {
        let target = if self.is_system { "multi-user.target" } else { "default.target" };
        let word = |path: &Path| {
            path.to_str().and_then(escaped).with_context(|| format!("{} is no name for a unit", path.display()))
        };
        // A command line knows variables, too.
        let (program, config) = (word(program)?.replace('$', "$$"), word(config)?.replace('$', "$$"));
        // As root, which has to reach the program and the models wherever they are. The package's unit has a user of its own.
        let limits = match self.is_system {
            false => String::new(),
            true => format!(
                "ProtectSystem=strict\n\
                 ReadWritePaths={}\n\
                 PrivateTmp=yes\n\
                 ProtectControlGroups=yes\n\
                 ProtectKernelModules=yes\n\
                 ProtectKernelTunables=yes\n\
                 RestrictSUIDSGID=yes\n\
                 CapabilityBoundingSet=CAP_DAC_OVERRIDE CAP_NET_BIND_SERVICE CAP_CHOWN CAP_FOWNER\n\
                 MemoryMax=2G\n\
                 UMask=0077\n",
                word(data)?
            ),
        };
        Ok(format!(
            "{MARK}\
             [Unit]\n\
             Description=Lorgnette, gateway for smart glasses\n\
             Wants=network-online.target\n\
             After=network-online.target\n\
             StartLimitIntervalSec=0\n\
             \n\
             [Service]\n\
             Type=notify\n\
             ExecStart={program} serve --config {config}\n\
             ExecReload={program} upgrade --config {config}\n\
             Restart=on-failure\n\
             RestartSec=5\n\
             TimeoutStartSec=300\n\
             TimeoutStopSec=30\n\
             WatchdogSec=60\n\
             LimitNOFILE=4096\n\
             OOMPolicy=continue\n\
             NoNewPrivileges=yes\n\
             {limits}\
             \n\
             [Install]\n\
             WantedBy={target}\n"
        ))
    }
}

/// A word in a unit (systemd.syntax(7)). `None`: it would be more than that.
fn escaped(word: &str) -> Option<String> {
    if word.chars().any(char::is_control) {
        return None;
    }
    let mut out = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '%' => out.push_str("%%"),
            c => out.push(c),
        }
    }
    Some(out + "\"")
}

/// The first word of what follows in a command line of a unit: bare, or as [`Systemd::unit`] writes it.
fn first_word(line: &str) -> Option<PathBuf> {
    let Some(quoted) = line.trim_start().strip_prefix('"') else {
        return line.split_whitespace().next().map(PathBuf::from);
    };
    let (mut word, mut rest) = (String::new(), quoted.chars());
    loop {
        match rest.next()? {
            '"' => return Some(word.replace("%%", "%").replace("$$", "$").into()),
            '\\' => word.extend(rest.next()),
            c => word.push(c),
        }
    }
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
        let (systemd, data) = (systemd(folder.path(), true, ""), folder.path().join("data"));
        // Twice: what was written here is replaced.
        for config in ["/old.toml", "/a b/50%.toml"] {
            let told = systemd.install(Path::new(config), &data).unwrap();
            assert!(told.contains("enabled it") && data.is_dir(), "{told}");
            assert!(systemd.starts(Path::new(config)), "the next setup finds it");
        }
        assert!(!systemd.starts(Path::new("/old.toml")));
        let unit = std::fs::read_to_string(folder.path().join("units/lorgnette.service")).unwrap();
        assert!(unit.contains("serve --config \"/a b/50%%.toml\"\n") && unit.contains("Type=notify"), "{unit}");
        let said = std::fs::read_to_string(folder.path().join("said")).unwrap();
        assert_eq!(said, "--user daemon-reload\n--user enable lorgnette.service\n".repeat(2));
    }

    #[test]
    fn a_unit_for_the_whole_machine_has_limits() {
        let folder = tempfile::tempdir().unwrap();
        let mut systemd = systemd(folder.path(), true, "");
        systemd.is_system = true;
        let unit = systemd.unit(Path::new("/x/lorgnette"), Path::new("/c"), Path::new("/var/a $data")).unwrap();
        assert!(
            unit.contains("\nReadWritePaths=\"/var/a $data\"\n") && unit.contains("ProtectSystem=strict"),
            "{unit}"
        );
        let more =
            systemd.unit(Path::new("/x"), Path::new("/c\nUser=nobody"), Path::new("/d")).unwrap_err().to_string();
        assert!(more.contains("is no name for a unit"), "{more}");
    }

    /// A gateway that `setup` enabled is started again, and given time, as a packaged one is.
    #[test]
    fn a_unit_restarts_and_waits_as_the_packaged_one_does() {
        let folder = tempfile::tempdir().unwrap();
        let packaged = include_str!("../../../../deploy/lorgnette.service");
        let unit = systemd(folder.path(), true, "").unit(Path::new("/x"), Path::new("/c"), Path::new("/d")).unwrap();
        let names = ["StartLimit", "Restart", "Timeout", "WatchdogSec", "LimitNOFILE", "OOMPolicy", "NoNewPrivileges"];
        let wanted = packaged.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
        let wanted: Vec<&str> = wanted.collect();
        assert!(wanted.len() >= names.len(), "{wanted:?}");
        for line in wanted {
            assert!(unit.contains(&format!("\n{line}\n")), "no {line} in {unit}");
        }
    }

    #[test]
    fn a_unit_that_is_there_is_enabled_and_not_replaced() {
        for place in ["packaged", "units"] {
            let folder = tempfile::tempdir().unwrap();
            let (mut systemd, data) = (systemd(folder.path(), true, ""), folder.path().join("data"));
            systemd.is_system = true;
            let unit = folder.path().join(place).join("lorgnette.service");
            std::fs::create_dir(unit.parent().unwrap()).unwrap();
            let text = "[Service]\nExecStart=/usr/bin/lorgnette serve --config /etc/lorgnette/config.toml\n";
            std::fs::write(&unit, text).unwrap();
            let (own, mine) = (Path::new("/etc/lorgnette/config.toml"), Path::new("/srv/mine.toml"));
            assert!(systemd.starts(own) && !systemd.starts(mine));
            systemd.check(own).unwrap();
            let other = systemd.check(mine).unwrap_err().to_string();
            assert!(other.contains("reads /etc/lorgnette/config.toml"), "{other}");
            let told = systemd.install(Path::new("/etc/lorgnette/config.toml"), &data).unwrap();
            assert!(told.contains("as it is"), "{told}");
            let said = std::fs::read_to_string(folder.path().join("said")).unwrap();
            assert_eq!(said, "enable lorgnette.service\n");
            assert_eq!(std::fs::read_to_string(&unit).unwrap(), text);
            // As `systemctl edit` does it.
            let added = systemd.units.join("lorgnette.service.d");
            std::fs::create_dir_all(&added).unwrap();
            std::fs::write(
                added.join("override.conf"),
                "[Service]\nExecStart=\nExecStart=/x serve --config /srv/mine.toml\n",
            )
            .unwrap();
            assert!(systemd.starts(mine) && !systemd.starts(own));
        }
    }

    #[test]
    fn what_systemd_refuses_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let systemd = systemd(folder.path(), true, "echo no bus >&2; exit 1");
        let error = systemd.install(Path::new("/c"), &folder.path().join("data")).unwrap_err().to_string();
        assert!(error.contains("daemon-reload failed: no bus"), "{error}");
    }

    #[test]
    fn without_systemd_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let told = systemd(folder.path(), false, "").install(Path::new("/c"), Path::new("/d")).unwrap();
        assert!(told.contains("no systemd runs here") && told.contains("ExecStart="), "{told}");
        assert!(!folder.path().join("units").exists() && !folder.path().join("said").exists());
    }
}
