//! The data folder: its disk, rights, keys, certificate, store, and who uses it.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::{StatVfsMountFlags, statvfs};
use x509_parser::{parse_x509_certificate, pem::Pem};

use super::Use;
use crate::{
    backup,
    config::Config,
    findings::{Findings, Level},
    health::DISK_BYTES_MIN,
    identity::GatewayKey,
    private::{FILE_MODE, FolderLock, HOW_TO_BE_USABLE, give_to_owner, unusable},
    store::{self, Store},
    transport::tls,
    units::{ago, bytes},
};

/// Bytes of the disk below which the gateway will stop to store photos soon.
const DISK_BYTES_FEW: u64 = 512 * 1024 * 1024;
/// Files that must be possible: the store and the photos of some days.
const FILES_MIN: u64 = 256;
/// Seconds before a certificate ends.
const CERTIFICATE_S_FEW: i64 = 30 * 24 * 3600;
/// Seconds by which a file may be newer than the clock: clocks are set.
const AHEAD_S_MAX: u64 = 24 * 3600;
/// Files that are looked at.
const FILES_MAX: usize = 100_000;

pub(super) fn examine(config: &Config, used_by: &Use, findings: &mut Findings) {
    let folder = &config.data_dir;
    disk(folder, findings);
    if !folder.is_dir() {
        return match unusable(folder) {
            Some(why) => findings.fault("data folder", why, HOW_TO_BE_USABLE),
            None => {
                findings.ok("data folder", format!("{} is not there yet; the first start makes it", folder.display()))
            }
        };
    }
    usage(folder, used_by, findings);
    rights(folder, findings);
    if let Err(error) = backup::ensure_restore_complete(folder) {
        findings.fault("restore", format!("{error:#}"), "run `lorgnette restore FILE` once more");
    }
    keys(folder, findings);
    certificate(folder, findings);
    stored(config, used_by, findings);
}

fn usage(folder: &Path, used_by: &Use, findings: &mut Findings) {
    let process = || FolderLock::holder(folder).map_or_else(|| "a process".to_owned(), |holder| holder.to_string());
    match used_by {
        Use::Gateway(status) => {
            findings.ok("gateway", format!("version {} runs, for {}", status.version, ago(status.up_s)));
            if status.version != env!("CARGO_PKG_VERSION") {
                let what = format!("version {} runs, and this program has another one", status.version);
                findings.add(Level::Warning, "gateway", what, "restart the gateway after an upgrade");
            }
            for problem in &status.problems {
                let what = format!("{}: {}", problem.part, problem.why);
                findings.fault(
                    "gateway",
                    what,
                    "docs/operate.md says what to do about each part; the gateway's log has more",
                );
            }
        }
        Use::Command(command) => findings.add(
            Level::Warning,
            "gateway",
            format!("none can start: {command} has the lock of {}", folder.display()),
            "wait until it has ended",
        ),
        Use::Starting => findings.add(
            Level::Warning,
            "gateway",
            format!(
                "{} has the lock of {} and does not answer yet: it is starting, which takes minutes where a store \
                 is brought to a new version or an erasure is finished",
                process(),
                folder.display()
            ),
            "wait, and look into its log; a restart would begin anew what it does",
        ),
        Use::Silent(why) => findings.fault(
            "gateway",
            format!(
                "{} has the lock of {} and does not answer on its control socket: {why}",
                process(),
                folder.display()
            ),
            format!("restart the gateway; `fuser {}` names the process", folder.join("lock").display()),
        ),
        Use::Nobody(_) => findings.ok("gateway", "none runs on this data folder"),
        Use::NoFolder => {}
    }
}

/// Room, and whether the folder can be written to.
fn disk(folder: &Path, findings: &mut Findings) {
    let there = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let shown = there.display();
    let stat = match statvfs(there) {
        Ok(stat) => stat,
        Err(error) => {
            return findings.fault("disk", format!("{shown}: {error}"), "check the disk, or set another `data_dir`");
        }
    };
    if stat.f_flag.contains(StatVfsMountFlags::RDONLY) {
        let remedy = "mount it for writing; a disk that turns read-only by itself may be broken: look into `dmesg`";
        return findings.fault("disk", format!("the disk of {shown} is read-only"), remedy);
    }
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let room =
        format!("{} of {} are free for {shown}", bytes(free), bytes(stat.f_blocks.saturating_mul(stat.f_frsize)));
    // To erase a user needs room first.
    let clear = "free some space beside the data folder, such as old packages, logs and caches, or take a larger disk";
    match free {
        0..DISK_BYTES_MIN => findings.fault("disk", room, clear),
        DISK_BYTES_MIN..DISK_BYTES_FEW => findings.add(Level::Warning, "disk", room, clear),
        _ => findings.ok("disk", room),
    }
    // Some file systems have no fixed number.
    if stat.f_files > 0 && stat.f_favail < FILES_MIN {
        let what = format!("only {} more files can be made on the disk of {shown} (inodes)", stat.f_favail);
        findings.fault("disk", what, "remove small files, such as old logs and caches; `df -i` shows the disk");
    }
    if folder.is_dir()
        && let Err(error) = tried(folder)
    {
        let what = format!("{} cannot be written to: {error}", folder.display());
        findings.fault("data folder", what, "give it to the user that runs the gateway (`chown -R`), with mode 700");
    }
}

/// Root tries it in the folder of somebody else, who could have put a link there: nothing that is there is written to.
fn tried(folder: &Path) -> io::Result<()> {
    let path = folder.join(".doctor");
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&path);
    let written = file.and_then(|mut file| file.write_all(&[0; 4096]));
    match fs::remove_file(&path) {
        Err(error) if written.is_ok() => Err(error),
        _ => written,
    }
}

/// Rights of others, files of other users, and files from the future. The folder of a packaged gateway is named by a symbolic
/// link; commands such as `chown -R` do not follow it.
fn rights(folder: &Path, findings: &mut Findings) {
    let folder = &fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    let (mut open, mut foreign, mut ahead) = (Vec::new(), Vec::new(), None::<(PathBuf, u64)>);
    let owner = fs::metadata(folder).map(|meta| meta.uid());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let (mut folders, mut seen) = (vec![folder.to_path_buf()], 0);
    let models = ["models", "speech"].map(|name| folder.join(name));
    while let Some(path) = folders.pop() {
        seen += 1;
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if meta.is_symlink() || seen > FILES_MAX {
            continue;
        }
        if meta.permissions().mode() & 0o077 != 0 && (meta.is_dir() || meta.is_file()) {
            open.push(path.clone());
        }
        if owner.as_ref().is_ok_and(|owner| *owner != meta.uid()) {
            foreign.push((path.clone(), meta.uid()));
        }
        let changed = u64::try_from(meta.mtime()).unwrap_or_default();
        if changed > now.saturating_add(AHEAD_S_MAX) && ahead.as_ref().is_none_or(|(_, latest)| changed > *latest) {
            ahead = Some((path.clone(), changed));
        }
        if meta.is_dir() && !models.contains(&path) {
            folders.extend(fs::read_dir(&path).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())));
        }
    }
    if let Some(first) = open.first() {
        let what = format!("others have rights to {} of its files, such as {}", open.len(), first.display());
        let remedy = format!("run `chmod -R go= {}`; the next start does the same", folder.display());
        findings.add(Level::Warning, "data folder", what, remedy);
    }
    if let (Some((first, uid)), Ok(owner)) = (foreign.first(), &owner) {
        let what =
            format!("{} of its files belong to other users, such as {} to {uid}", foreign.len(), first.display());
        let remedy = format!("run `chown -R {owner} {}`, and the gateway as one user only", folder.display());
        findings.fault("data folder", what, remedy);
    }
    if open.is_empty() && foreign.is_empty() {
        findings.ok("data folder", format!("{} is its owner's only", folder.display()));
    }
    if let Some((file, changed)) = ahead {
        let by = ago(changed.saturating_sub(now));
        let what = format!("the clock was set back: {} was written {by} from now", file.display());
        findings.add(Level::Warning, "clock", what, super::machine::SET_THE_CLOCK);
    }
}

fn keys(folder: &Path, findings: &mut Findings) {
    if !GatewayKey::is_in(folder) {
        if !Store::is_empty(&folder.join("store")) {
            let what = format!(
                "{} has a store and no gateway.key: paired glasses will not trust this gateway",
                folder.display()
            );
            let remedy = "restore a backup with its keys, or pair all glasses again";
            findings.add(Level::Warning, "keys", what, remedy);
        }
        return;
    }
    match GatewayKey::load_or_make(folder) {
        Ok(_) => findings.ok("keys", "gateway.key is whole, and its owner's only"),
        Err(error) => {
            let remedy = "take the rights of others away from it (`chmod 600`) if that is what is wrong; else restore it from a backup";
            findings.fault("keys", format!("{error:#}"), remedy);
        }
    }
}

fn certificate(folder: &Path, findings: &mut Findings) {
    let path = folder.join("tls-cert.pem");
    let are_there = [&path, &folder.join("tls-key.pem")].map(|file| file.exists());
    if are_there == [false; 2] {
        return;
    }
    let anew = "put the pair of an authority in place, or remove both: the next start makes new ones (devices trust the \
                gateway's own key, not these)";
    if let Err(error) = tls::load_or_make(folder, Vec::new()) {
        // The first of them is the remedy of a start.
        let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
        let what =
            format!("tls-cert.pem and tls-key.pem in {} cannot be used: {}", folder.display(), causes.join(": "));
        return findings.fault("certificate", what, anew);
    }
    let shown = path.display();
    let Some((from, until)) = fs::read(&path).ok().and_then(|text| validity(&text)) else {
        return findings.fault("certificate", format!("{shown} cannot be read as a certificate"), anew);
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(0));
    let day = |seconds| jiff::Timestamp::from_second(seconds).map_or("a far day".to_owned(), |day| format!("{day:.0}"));
    match until.saturating_sub(now) {
        ..0 => findings.fault("certificate", format!("{shown} has ended on {}", day(until)), anew),
        0..CERTIFICATE_S_FEW => {
            findings.add(Level::Warning, "certificate", format!("{shown} ends on {}", day(until)), anew);
        }
        _ if from > now => {
            let what = format!("{shown} begins on {} only", day(from));
            findings.fault("certificate", what, super::machine::SET_THE_CLOCK);
        }
        _ => findings.ok("certificate", "it fits its key, and these days"),
    }
}

/// Begin and end of a certificate in PEM, in seconds since the Unix epoch.
fn validity(text: &[u8]) -> Option<(i64, i64)> {
    let pem = Pem::iter_from_buffer(text).next()?.ok()?;
    let (_, certificate) = parse_x509_certificate(&pem.contents).ok()?;
    let validity = certificate.validity();
    Some((validity.not_before.timestamp(), validity.not_after.timestamp()))
}

/// What the store has. Reading it makes LMDB's lock file, which is to be that of the folder's owner.
fn contents(config: &Config, folder: &Path) -> anyhow::Result<store::Contents> {
    let contents = store::contents(folder, config.store.size_max_mib);
    give_to_owner(&config.data_dir, folder)?;
    Ok(contents?)
}

fn stored(config: &Config, used_by: &Use, findings: &mut Findings) {
    let folder = config.data_dir.join("store");
    match used_by {
        Use::Gateway(status) => damage(status.damaged, findings),
        Use::Nobody(_) if Store::is_empty(&folder) => findings.ok("store", "there is none yet"),
        Use::Nobody(_) => match contents(config, &folder) {
            Err(error) => findings.fault("store", error.to_string(), "restore a backup"),
            Ok(found) if found.schema > store::SCHEMA => findings.fault(
                "store",
                format!(
                    "it has version {}, written by a newer gateway; this one reads up to {}",
                    found.schema,
                    store::SCHEMA
                ),
                "install the newer version again, or restore a backup of before",
            ),
            Ok(found) => {
                damage(found.damaged, findings);
                let used = fs::metadata(folder.join("data.mdb")).map_or(0, |file| file.len()) >> 20;
                let most = config.store.size_max_mib as u64;
                if used.saturating_mul(10) >= most.saturating_mul(9) {
                    let what = format!("the store takes {used} MiB of the {most} MiB that it may");
                    findings.add(Level::Warning, "store", what, "raise `store.size_max_mib`");
                }
            }
        },
        Use::Command(_) | Use::Starting | Use::Silent(_) | Use::NoFolder => {}
    }
}

fn damage(damaged: usize, findings: &mut Findings) {
    match damaged {
        0 => findings.ok("store", "no damaged record is known"),
        count => findings.fault(
            "store",
            format!("{count} records are damaged and left out"),
            "stop the gateway and run `lorgnette check --store`, which lists them; restore a backup, or move them away with \
             `--set-aside FILE`. A disk that damages records is about to fail",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dates_of_a_certificate_are_read() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (from, until) = validity(made.cert.pem().as_bytes()).unwrap();
        assert!(from < 1_700_000_000 && until > 4_000_000_000, "{from} {until}");
        assert_eq!(
            (validity(b""), validity(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----")),
            (None, None)
        );
    }

    #[test]
    fn a_gateway_that_is_starting_is_no_fault() {
        let mut findings = Findings::default();
        usage(Path::new("data"), &Use::Starting, &mut findings);
        assert_eq!((findings.count(Level::Warning), findings.count(Level::Fault)), (1, 0));
    }

    #[test]
    fn a_folder_that_takes_no_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        tried(folder.path()).unwrap();
        assert_eq!(tried(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_under_the_name_of_the_trial_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let (data, outside) = (folder.path().join("data"), folder.path().join("outside"));
        fs::create_dir(&data).unwrap();
        fs::write(&outside, "mine").unwrap();
        std::os::unix::fs::symlink(&outside, data.join(".doctor")).unwrap();
        tried(&data).unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
        assert!(fs::read_dir(&data).unwrap().next().is_none(), "nothing is left");
    }
}
