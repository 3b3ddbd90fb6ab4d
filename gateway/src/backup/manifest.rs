//! The first file of a backup: what made it, and each of its files with size and checksum.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read as _,
    path::{Component, Path},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{DEPTH_MAX, FILES_MAX, LeftOut, PATH_BYTES_MAX, STORE_FILE, is_path_text, snapshot};
use crate::{clock, store};

/// The version of the format that this program writes.
const FORMAT: u32 = 2;
/// The first one that says what was left out.
const LEFT_OUT_SINCE: u32 = 2;
/// Bytes that are read at once.
pub(super) const PIECE_BYTES: usize = 64 * 1024;

/// What a backup has in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    /// Version of the format.
    pub(crate) format: u32,
    /// Version of the gateway that made it.
    pub(crate) version: String,
    /// Version of the store's stored forms.
    pub(crate) schema: u32,
    /// When it was made, in milliseconds since the Unix epoch.
    pub(crate) made_wall_ms: i64,
    /// Whether the gateway's keys and the pairings of devices are in it.
    pub(crate) device_keys: bool,
    /// Rows of the store by table, of the tables that have any.
    pub(crate) rows: BTreeMap<String, u64>,
    /// How many of them are damaged.
    pub(crate) damaged: usize,
    /// The files, by path.
    pub(crate) files: Vec<Entry>,
    /// What of the data folder is not in it; `None`: it was made by a version that did not say so.
    #[serde(default)]
    pub(crate) left_out: Option<LeftOut>,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Its path within the data folder.
    pub(crate) path: String,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// SHA-256 of its content, in hexadecimal digits.
    pub(crate) sha256: String,
}

/// What every version has, so that a newer one can be told.
#[derive(Deserialize)]
struct Head {
    format: u32,
    version: String,
}

impl Manifest {
    /// Of a snapshot.
    pub(super) fn of(stage: &Path, device_keys: bool, left_out: LeftOut) -> Result<Self> {
        // The store's size limits what is written, and nothing is.
        let store = store::contents(&stage.join("store"), 1).context("reading the copy of the store")?;
        snapshot::without_store_lock(stage)?;
        let mut files = Vec::new();
        for path in snapshot::files_below(stage, |_| true)?.paths {
            let (bytes, sha256) = measured(&stage.join(&path)).with_context(|| gone(&path))?;
            files.push(Entry { path, bytes, sha256 });
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let (schema, rows, damaged) = (store.schema, store.rows, store.damaged);
        Ok(Self {
            format: FORMAT,
            version,
            schema,
            made_wall_ms: clock::wall_ms(),
            device_keys,
            rows,
            damaged,
            files,
            left_out: Some(left_out),
        })
    }

    /// Reads and checks a manifest.
    ///
    /// # Errors
    /// It is of a newer version, has another form, or a path that leads anywhere but to a state file of a data folder.
    pub(super) fn parse(json: &[u8]) -> Result<Self> {
        let Head { format, version } = serde_json::from_slice(json).context("its manifest has not the right form")?;
        ensure!(
            format <= FORMAT,
            "it has format {format}, made by version {version} of the gateway; this one, {}, reads formats up to {FORMAT}: \
             restore it with that version or a newer one",
            env!("CARGO_PKG_VERSION")
        );
        let manifest: Self = serde_json::from_slice(json).context("its manifest has not the right form")?;
        ensure!(
            manifest.schema <= store::SCHEMA,
            "its store has version {}, made by version {version} of the gateway; this one, {}, reads versions up to {}: \
             restore it with that version or a newer one",
            manifest.schema,
            env!("CARGO_PKG_VERSION"),
            store::SCHEMA
        );
        ensure!(manifest.files.len() <= FILES_MAX, "it has more than {FILES_MAX} files");
        let mut seen = BTreeSet::new();
        for Entry { path, .. } in &manifest.files {
            check_path(path).with_context(|| format!("its manifest has the path {path:?}"))?;
            ensure!(seen.insert(path.as_str()), "its manifest has the path {path:?} twice");
        }
        ensure!(seen.contains(STORE_FILE), "it has no store");
        match &manifest.left_out {
            Some(left_out) => left_out.check().context("its manifest has not the right form")?,
            None => ensure!(format < LEFT_OUT_SINCE, "its manifest does not say what was left out"),
        }
        Ok(manifest)
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }
}

/// What it means where a file of a snapshot is not there any more.
pub(super) fn gone(path: &str) -> String {
    format!(
        "reading the snapshot's {path}; if it is gone, the gateway was stopped, or everything of a user was erased \
         meanwhile: make the backup once more"
    )
}

fn check_path(path: &str) -> Result<()> {
    ensure!(!path.is_empty() && path.len() <= PATH_BYTES_MAX, "which is empty, or longer than {PATH_BYTES_MAX} bytes");
    let parts: Vec<Component<'_>> = Path::new(path).components().collect();
    let is_plain = parts.iter().all(|part| matches!(part, Component::Normal(_)));
    // `a//b` and `a/./b` have other texts than their parts.
    let is_same = path.split('/').count() == parts.len() && is_path_text(path);
    ensure!(is_plain && is_same && parts.len() <= DEPTH_MAX, "which is no path of a data folder");
    let first = path.split('/').next().unwrap_or_default();
    if path != STORE_FILE && snapshot::is_no_state(first) {
        bail!("which a backup has not");
    }
    Ok(())
}

/// Size and SHA-256 of a file.
fn measured(path: &Path) -> Result<(u64, String)> {
    let mut file = File::open(path)?;
    let (mut sum, mut bytes, mut piece) = (Sha256::new(), 0_u64, vec![0; PIECE_BYTES]);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((bytes, in_digits(&sum.finalize())));
        }
        sum.update(piece.get(..read).unwrap_or_default());
        bytes += read as u64;
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn in_digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest(change: impl FnOnce(&mut serde_json::Value)) -> Result<Manifest> {
        let file = json!({"path": STORE_FILE, "bytes": 1, "sha256": "00"});
        let mut value = json!({
            "format": FORMAT, "version": "0.0.1", "schema": store::SCHEMA, "made_wall_ms": 0, "device_keys": true,
            "rows": {}, "damaged": 0, "files": [file], "left_out": {"first": [], "more": 0},
        });
        change(&mut value);
        Manifest::parse(value.to_string().as_bytes())
    }

    #[test]
    fn a_path_stays_in_the_data_folder() {
        let with = |path: &str| {
            let entry = json!({"path": path, "bytes": 1, "sha256": "00"});
            manifest(|value| value["files"].as_array_mut().unwrap().push(entry))
        };
        for good in ["gateway.key", "photos/ann/1.jpg", "erasing.json", "capabilities/a.json"] {
            with(good).unwrap();
        }
        let long = "x".repeat(PATH_BYTES_MAX + 1);
        let deep = "x/".repeat(DEPTH_MAX) + "x";
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a//b",
            "a/./b",
            "./a",
            "a/",
            ".",
            "a\0b",
            "a\nb",
            &long,
            &deep,
            "lock",
            "control.sock",
            "store/lock.mdb",
            "store/x",
            "restoring/x",
            "models/x.bin",
            STORE_FILE,
        ] {
            let error = format!("{:#}", with(bad).unwrap_err());
            assert!(error.contains("its manifest has the path"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_newer_one_is_told() {
        let newer = |key: &str| {
            let told = manifest(|value| {
                value[key] = 9.into();
                value["version"] = "7.1.0".into();
                // A newer version may have more fields.
                value["more"] = (key == "format").into();
                if key != "format" {
                    value.as_object_mut().unwrap().remove("more");
                }
            });
            format!("{:#}", told.unwrap_err())
        };
        for key in ["format", "schema"] {
            let told = newer(key);
            assert!(told.contains("version 7.1.0 of the gateway") && told.contains("a newer one"), "{told}");
        }
        // One that an older version has made is read, and one of this version says more than that.
        let silent = |format: u32| {
            manifest(|value| {
                value["format"] = format.into();
                value.as_object_mut().unwrap().remove("left_out");
            })
        };
        assert_eq!(silent(1).unwrap().left_out, None);
        assert!(silent(FORMAT).unwrap_err().to_string().contains("what was left out"));
        assert!(manifest(|value| value["left_out"]["first"] = json!([{"path": "a", "why": "whim"}])).is_err());
        let store_less = manifest(|value| value["files"] = json!([])).unwrap_err();
        assert!(store_less.to_string().contains("no store"));
        assert!(manifest(|value| value["surprise"] = 1.into()).is_err());
    }
}
