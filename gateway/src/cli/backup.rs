//! `lorgnette backup` and `lorgnette restore`.

use std::{
    os::unix::net::UnixStream,
    path::{Path, PathBuf, absolute},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use super::passphrase;
use crate::{
    backup::{self, Closed, LeftOut, Manifest, Restored},
    config::Config,
    control::{Answer, Request, client},
    units::bytes,
};

/// How long the gateway may take to make the snapshot: a store of 1 GiB on a slow card.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(600);

/// Write everything that the gateway keeps into one encrypted file, also while it runs. The file is read back and checked.
#[derive(clap::Args)]
pub(super) struct Backup {
    /// The new file.
    file: PathBuf,
    /// Take the passphrase from the first line of this file (mode 600) instead of asking for it.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Leave out the gateway's keys and the pairings: a gateway with this backup has another identity, and glasses are
    /// paired anew.
    #[arg(long)]
    without_device_keys: bool,
}

/// Restore a backup into an empty data folder, while no gateway runs on it.
#[derive(clap::Args)]
pub(super) struct Restore {
    /// File with the backup.
    file: PathBuf,
    /// Take the passphrase from the first line of this file (mode 600) instead of asking for it.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Leave out the gateway's keys and the pairings, if the backup has them: for a second gateway beside the first.
    #[arg(long)]
    without_device_keys: bool,
    /// Only read the backup to its end and check all of it.
    #[arg(long, conflicts_with = "without_device_keys")]
    check: bool,
}

/// What keeps a snapshot.
enum Held {
    /// The connection to the gateway that made it.
    Running(#[expect(dead_code, reason = "held, and so open")] UnixStream),
    /// That of a folder on which no gateway ran.
    Closed(#[expect(dead_code, reason = "held, and so there")] Closed),
}

pub(super) fn run(config: &Config, arguments: &Backup) -> Result<()> {
    let file = absolute(&arguments.file).context("the file of the backup")?;
    let data_dir = absolute(&config.data_dir).context("`data_dir`")?;
    if file.exists() {
        bail!("{} is there; a file that is there is not written over", file.display());
    }
    if file.starts_with(&data_dir) {
        bail!(
            "{} is in the data folder, which is what is backed up: take another place, best on another disk",
            file.display()
        );
    }
    let passphrase = passphrase::new(arguments.passphrase_file.as_deref())?;
    let device_keys = !arguments.without_device_keys;
    let (held, left_out) = snapshot(config, device_keys)?;
    let manifest = backup::write(&config.data_dir, &file, &passphrase, (device_keys, left_out))?;
    let how = match held {
        Held::Running(_) => "of the running gateway",
        Held::Closed(_) => "of a gateway that does not run",
    };
    drop(held);
    let size = std::fs::metadata(&file).map_or(0, |file| file.len());
    println!("{} ({}), {how}, was written, read back and checked", file.display(), bytes(size));
    show(&manifest);
    Ok(())
}

fn snapshot(config: &Config, device_keys: bool) -> Result<(Held, LeftOut)> {
    let (data_dir, models_dir) = (&config.data_dir, &config.models_dir);
    if let Some(closed) = Closed::snapshot(data_dir, models_dir, config.store.size_max_mib, device_keys)? {
        let left_out = closed.left_out.clone();
        return Ok((Held::Closed(closed), left_out));
    }
    match client::converse(data_dir, &Request::Backup { device_keys }, SNAPSHOT_WAIT)? {
        (Answer::Snapshot { left_out }, connection) => Ok((Held::Running(connection), left_out)),
        _ => bail!("the gateway does not say what the backup leaves out: it is another version; use its own program"),
    }
}

pub(super) fn restore(config: &Config, arguments: &Restore) -> Result<()> {
    let file: &Path = &arguments.file;
    if !file.is_file() {
        bail!("there is no file {}", file.display());
    }
    let passphrase = passphrase::existing(arguments.passphrase_file.as_deref())?;
    if arguments.check {
        let manifest = backup::verify(file, &passphrase)?;
        println!("{} is whole", file.display());
        show(&manifest);
        return Ok(());
    }
    let places = (config.data_dir.as_path(), config.models_dir.as_path());
    let device_keys = !arguments.without_device_keys;
    let Restored { manifest, device_keys } =
        backup::restore(file, &passphrase, places, config.store.size_max_mib, device_keys)?;
    println!("{} is restored into {}", file.display(), config.data_dir.display());
    show(&manifest);
    match device_keys {
        true => println!("  glasses that were paired connect as before; no second gateway may run with the same keys"),
        false => {
            println!("  without keys and pairings: this gateway has its own identity, and glasses are paired anew")
        }
    }
    println!("start the gateway as before: `systemctl restart lorgnette`, or `lorgnette serve`");
    Ok(())
}

fn show(manifest: &Manifest) {
    let made = jiff::Timestamp::from_millisecond(manifest.made_wall_ms).unwrap_or_default();
    let keys = if manifest.device_keys { "with" } else { "without" };
    println!(
        "  made {made:.0} by version {}, {} files, {}, {keys} the keys and pairings of devices",
        manifest.version,
        manifest.files.len(),
        bytes(manifest.bytes())
    );
    let rows: Vec<String> = manifest.rows.iter().map(|(table, rows)| format!("{rows} {table}")).collect();
    println!("  records: {}", if rows.is_empty() { "none".to_owned() } else { rows.join(", ") });
    if manifest.damaged > 0 {
        println!(
            "  {} records of the store are damaged; `lorgnette check --store` lists them where the store is, with the gateway \
             stopped",
            manifest.damaged
        );
    }
    println!(
        "  never in a backup: the configuration file and what it names in other places, models, the stored log, \
         recordings"
    );
    match &manifest.left_out {
        Some(left_out) => left_out.lines().iter().for_each(|line| println!("  {line}")),
        None => println!("  it was made by a version that did not say what it left out"),
    }
}
