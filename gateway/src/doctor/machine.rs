//! The machine: clock, file descriptors, kernel, service manager.

use std::{fs, path::Path};

use rustix::process::{Resource, getrlimit};

use super::Use;
use crate::{
    clock,
    config::Config,
    findings::{Findings, Level},
    runtime::descriptors,
};

/// No gateway of this version ran before: 2026-01-01, in milliseconds since the Unix epoch.
const CLOCK_WALL_MS_MIN: i64 = 1_767_225_600_000;
/// The remedy for a wrong clock.
pub(super) const SET_THE_CLOCK: &str = "set the clock, and let a time service keep it (systemd-timesyncd, chrony); reminders \
                                        come when this clock says so";

pub(super) fn examine(config: &Config, used_by: &Use, findings: &mut Findings) {
    let needed = descriptors::needed(config.limits.connections_max);
    let allowed = match used_by {
        Use::Gateway(status) => status.descriptors.map(|(_, most)| most),
        // The gateway raises its soft limit to this one.
        _ => getrlimit(Resource::Nofile).maximum.or(Some(u64::MAX)),
    };
    match allowed {
        Some(allowed) if allowed < needed => {
            let what = format!("{allowed} files may be open at once, and {needed} may be needed");
            let remedy =
                "raise the limit (`LimitNOFILE=` of a systemd unit, `ulimit -Hn`), or lower `limits.connections`";
            findings.add(Level::Warning, "descriptors", what, remedy);
        }
        Some(_) => findings.ok("descriptors", format!("{needed} files may be open at once")),
        None => {}
    }
    match used_by {
        Use::Gateway(status) if status.watchdog => findings.ok("watchdog", "a service manager watches the gateway"),
        Use::Gateway(_) => findings.add(
            Level::Note,
            "watchdog",
            "no service manager watches this gateway",
            "run it as a service with `Type=notify`, `WatchdogSec=60` and `Restart=on-failure` (docs/operate.md)",
        ),
        _ => {}
    }
    examine_clock(clock::wall_ms(), Path::new("/sys/class/rtc"), findings);
}

fn examine_clock(now_wall_ms: i64, batteries: &Path, findings: &mut Findings) {
    if now_wall_ms < CLOCK_WALL_MS_MIN {
        let now = jiff::Timestamp::from_millisecond(now_wall_ms).unwrap_or_default();
        findings.fault("clock", format!("it is {now:.0} by this machine's clock, which cannot be"), SET_THE_CLOCK);
    } else {
        findings.ok("clock", "the date is possible");
    }
    let has_battery = fs::read_dir(batteries).is_ok_and(|mut found| found.next().is_some());
    if !has_battery {
        findings.add(
            Level::Note,
            "clock",
            "this machine has no clock with a battery",
            "after a power cut without a network the time is wrong until it is set; a clock module (RTC) helps",
        );
    }
}

/// What programs of models are fenced in with.
pub(super) fn examine_kernel(findings: &mut Findings) {
    let read = |path: &str| fs::read_to_string(path).ok();
    // Neither file is there in some containers: nothing can be said then.
    let modules = read("/sys/kernel/security/lsm").map(|all| all.split(',').any(|name| name.trim() == "landlock"));
    let actions = read("/proc/sys/kernel/seccomp/actions_avail").map(|all| all.contains("errno"));
    examine_fences(modules, actions, findings);
}

fn examine_fences(landlock: Option<bool>, seccomp: Option<bool>, findings: &mut Findings) {
    for (name, is_there, remedy) in [
        (
            "Landlock",
            landlock,
            "use a kernel of version 5.13 or newer with `landlock` in its list of security modules (`lsm=`)",
        ),
        ("seccomp", seccomp, "use a kernel with seccomp filters"),
    ] {
        match is_there {
            Some(true) => findings.ok("kernel", format!("{name} fences in the programs of models")),
            Some(false) => {
                let what = format!("this kernel has no {name}: one fence less around programs of models");
                findings.add(
                    Level::Warning,
                    "kernel",
                    what,
                    format!("{remedy}, or switch programs off (`[code] enabled`)"),
                );
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(examine: impl FnOnce(&mut Findings)) -> Vec<(Level, String)> {
        let mut findings = Findings::default();
        examine(&mut findings);
        findings.0.into_iter().map(|found| (found.level, found.what)).collect()
    }

    #[test]
    fn a_clock_that_cannot_be_right_and_one_without_a_battery_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let found = levels(|findings| examine_clock(86_400_000, folder.path(), findings));
        assert_eq!(found[0].0, Level::Fault);
        assert!(found[0].1.contains("1970-01-02") && found[1].1.contains("no clock with a battery"), "{found:?}");
        fs::create_dir(folder.path().join("rtc0")).unwrap();
        let found = levels(|findings| examine_clock(CLOCK_WALL_MS_MIN, folder.path(), findings));
        assert!(matches!(found.as_slice(), [(Level::Ok, _)]), "{found:?}");
    }

    #[test]
    fn a_kernel_without_a_fence_is_told() {
        let found = levels(|findings| examine_fences(Some(false), Some(true), findings));
        assert!(found[0].0 == Level::Warning && found[0].1.contains("no Landlock") && found[1].0 == Level::Ok);
        assert!(levels(|findings| examine_fences(None, None, findings)).is_empty());
    }
}
