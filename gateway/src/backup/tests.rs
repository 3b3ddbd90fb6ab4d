//! Tests of backups as a whole: of folders on which no gateway runs. `tests/it/backup.rs` has those of a running one.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Write as _,
    iter::once,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
    },
    path::{Path, PathBuf},
};

use age::{Encryptor, Recipient, scrypt, secrecy::SecretString};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use super::{manifest::in_digits, *};
use crate::{
    private::{FolderLock, GATEWAY},
    store::{DeviceRecord, NoteRecord, Store, Write},
};

const PASSPHRASE: &str = "an okapi among zebras";

/// A data folder with one of each kind of file, and a place for others beside it.
struct Place(TempDir);

impl Place {
    async fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let data = place.at("data");
        fs::create_dir_all(data.join("photos/ann")).unwrap();
        fs::create_dir_all(data.join("workspace/ann/deep/er")).unwrap();
        fs::create_dir_all(data.join("models")).unwrap();
        for (file, content) in [
            ("gateway.key", "the key"),
            ("tls-key.pem", "the other key"),
            ("erasing.json", ""),
            ("photos/ann/1.jpg", "a photo"),
            ("photos/ann/2.jpg.new", "half a ph"),
            ("workspace/ann/deep/er/list.new", "a list"),
            ("workspace/ann/\u{1}new", "half a list"),
            ("models/large.bin", "weights"),
            ("lock", ""),
            ("credentials", "not quite a folder"),
        ] {
            fs::write(data.join(file), content).unwrap();
        }
        symlink("/etc/passwd", data.join("link")).unwrap();
        let store = Store::open(&data.join("store"), 16).unwrap();
        // Larger than a piece of the encryption, so that a cut may hit any of them.
        let note = NoteRecord { text: "quagga ".repeat(40_000), created_wall_ms: 0 };
        store.write(Write::AddNote { user: "ann".into(), note }).await.unwrap();
        let (name, user, model) = ("G1".into(), "ann".into(), "G1".into());
        let device = DeviceRecord { key: [1; 32], name, user, model, paired_wall_ms: 0, revoked: false };
        store.write(Write::PutDevice { id: "ab".into(), device }).await.unwrap();
        store.close().await.unwrap();
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn snapshot(&self, device_keys: bool) -> Result<Closed> {
        let data = self.at("data");
        Ok(Closed::snapshot(&data, &data.join("models"), 16, device_keys)?.expect("no gateway runs"))
    }

    fn back_up(&self, file: &str, device_keys: bool) -> Result<Manifest> {
        let data = self.at("data");
        let closed = self.snapshot(device_keys)?;
        let manifest = write(&data, &self.at(file), &passphrase(), (device_keys, closed.left_out.clone()));
        drop(closed);
        manifest
    }

    fn restore(&self, file: &str, to: &str, device_keys: bool) -> Result<Restored> {
        let to = self.at(to);
        restore(&self.at(file), &passphrase(), (&to, &to.join("models")), 16, device_keys)
    }

    /// The file with other bytes, and what is said of it.
    fn refusal(&self, bytes: &[u8]) -> String {
        fs::write(self.at("other"), bytes).unwrap();
        let refused = format!("{:#}", verify(&self.at("other"), &passphrase()).unwrap_err());
        let again = self.restore("other", "new", true).err().map(|error| format!("{error:#}"));
        assert_eq!(again.as_deref(), Some(refused.as_str()), "a restore says the same");
        let left: Vec<_> = fs::read_dir(self.at("new")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["lock"], "nothing is left of it");
        refused
    }
}

fn passphrase() -> Passphrase {
    Passphrase::new(PASSPHRASE).unwrap()
}

fn paths(manifest: &Manifest) -> Vec<&str> {
    manifest.files.iter().map(|file| file.path.as_str()).collect()
}

#[tokio::test]
async fn everything_is_there_again_after_a_restore() {
    let place = Place::new().await;
    let manifest = place.back_up("one.backup", true).unwrap();
    let all = [
        "credentials",
        "erasing.json",
        "gateway.key",
        "photos/ann/1.jpg",
        "store/data.mdb",
        "tls-key.pem",
        "workspace/ann/deep/er/list.new",
    ];
    assert_eq!(paths(&manifest), all);
    assert_eq!((manifest.rows["notes"], manifest.rows["devices"], manifest.damaged), (1, 1, 0));
    assert!(!place.at("data/backing-up").exists() && !place.at("one.backup.part").exists());
    assert_eq!(fs::metadata(place.at("one.backup")).unwrap().permissions().mode() & 0o777, 0o600);
    let restored = place.restore("one.backup", "new", true).unwrap();
    assert!(restored.device_keys && restored.manifest == manifest);
    for file in all.iter().filter(|file| **file != "store/data.mdb") {
        let [old, new] = ["data", "new"].map(|folder| fs::read(place.at(folder).join(file)).unwrap());
        assert_eq!(old, new, "{file}");
        assert_eq!(fs::metadata(place.at("new").join(file)).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
    }
    let store = Store::open(&place.at("new/store"), 16).unwrap();
    assert_eq!(store.disk().notes("ann", 9, |_| true).unwrap().len(), 1);
    assert_eq!(store.disk().devices().unwrap().len(), 1);
    store.close().await.unwrap();
    // A backup of the restored one has the same in it.
    fs::rename(place.at("data"), place.at("old")).unwrap();
    fs::rename(place.at("new"), place.at("data")).unwrap();
    assert_eq!(paths(&place.back_up("two.backup", true).unwrap()), all);
}

#[tokio::test]
async fn what_is_left_out_is_told_when_it_is_made_when_it_is_checked_and_when_it_is_restored() {
    let place = Place::new().await;
    let data = place.at("data");
    // The photos of another user lie on another disk.
    symlink(place.0.path(), data.join("photos/ben")).unwrap();
    fs::write(data.join("two\nlines"), "x").unwrap();
    let no_text = data.join(OsStr::from_bytes(b"skills-\xff"));
    fs::create_dir(&no_text).unwrap();
    fs::write(no_text.join("SKILL.md"), "x").unwrap();
    let left_out = place.back_up("one", true).unwrap().left_out.unwrap();
    let link = "a link, or something else that is neither a file nor a folder";
    let name = "its path has control characters, is no text, or is too long";
    let unfinished = "not written to its end";
    let expected = [
        ("link", link),
        ("photos/ann/2.jpg.new", unfinished),
        ("photos/ben", link),
        ("skills-\u{fffd}", name),
        ("two\\u000alines", name),
        ("workspace/ann/\\u0001new", unfinished),
    ];
    let expected = expected.map(|(path, why)| format!("  {path}: {why}"));
    assert_eq!(left_out.lines().get(1..), Some(&expected[..]));
    let checked = verify(&place.at("one"), &passphrase()).unwrap();
    let restored = place.restore("one", "new", true).unwrap();
    assert_eq!([checked.left_out, restored.manifest.left_out], [Some(left_out.clone()), Some(left_out)]);
    // Of a folder that has nothing else, nothing is told.
    fs::rename(&data, place.at("old")).unwrap();
    fs::rename(place.at("new"), &data).unwrap();
    assert_eq!(place.back_up("two", true).unwrap().left_out, Some(LeftOut::default()));
}

#[tokio::test]
async fn keys_and_pairings_can_be_left_out_when_it_is_made_and_when_it_is_restored() {
    let place = Place::new().await;
    let without = place.back_up("without", false).unwrap();
    assert!(!without.device_keys && !paths(&without).contains(&"gateway.key") && !without.rows.contains_key("devices"));
    place.back_up("with", true).unwrap();
    for (file, to, wanted) in [("without", "a", true), ("with", "b", false)] {
        assert!(!place.restore(file, to, wanted).unwrap().device_keys);
        let to = place.at(to);
        assert!(!to.join("gateway.key").exists() && !to.join("tls-key.pem").exists());
        let store = Store::open(&to.join("store"), 16).unwrap();
        assert_eq!(store.disk().devices().unwrap().len(), 0);
        assert_eq!(store.disk().notes("ann", 9, |_| true).unwrap().len(), 1);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_folder_with_data_or_with_a_gateway_takes_no_restore() {
    let place = Place::new().await;
    place.back_up("one", true).unwrap();
    let error = format!("{:#}", place.restore("one", "data", true).err().unwrap());
    assert!(error.contains("is not empty (credentials, erasing.json,") && error.contains("data_dir"), "{error}");
    assert!(place.at("data/gateway.key").exists());
    // Models may be there already.
    fs::create_dir_all(place.at("new/models")).unwrap();
    let lock = FolderLock::take(&place.at("new"), GATEWAY).unwrap();
    let error = format!("{:#}", place.restore("one", "new", true).err().unwrap());
    assert!(error.contains("while no gateway runs"), "{error}");
    drop(lock);
    place.restore("one", "new", true).unwrap();
    // No file is written over.
    let error = format!("{:#}", place.back_up("one", true).unwrap_err());
    assert!(error.contains("is not written over"), "{error}");
    verify(&place.at("one"), &passphrase()).unwrap();
}

#[tokio::test]
async fn a_wrong_passphrase_a_cut_and_damage_are_told_apart() {
    let place = Place::new().await;
    place.back_up("one", true).unwrap();
    let whole = fs::read(place.at("one")).unwrap();
    let wrong = verify(&place.at("one"), &Passphrase::new("another one").unwrap()).unwrap_err();
    assert_eq!(wrong.to_string(), "the passphrase is wrong");
    // The header, then pieces of 64 KiB and their checksums: of 16 bytes each, after a nonce of 16.
    let header = whole.windows(5).position(|part| part == b"\n--- ").unwrap();
    let header = header + 1 + whole[header + 1..].iter().position(|byte| *byte == b'\n').unwrap() + 1 + 16;
    let piece = 64 * 1024 + 16;
    assert!(whole.len() > header + 3 * piece, "{}", whole.len());
    let last = header + (whole.len() - header) / piece * piece;
    for (cut, told) in [
        (0, "is an empty file"),
        (10, "cut off in its first bytes"),
        (60, "cut off in its first bytes"),
        (header - 8, "cut off"),
        (header, "cut off"),
        (header + 100, "cut off"),
        (header + piece, "cut off"),
        (header + piece + 1, "cut off"),
        (header + 2 * piece - 1, "cut off"),
        (last, "cut off"),
        (whole.len() - 1, "cut off"),
    ] {
        let refused = place.refusal(&whole[..cut]);
        assert!(refused.contains(told), "{cut}: {refused}");
    }
    for at in [30, header - 40, header + 5, header + piece + 5, whole.len() - 5] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        let refused = place.refusal(&damaged);
        assert!(refused.contains("damaged") || refused.contains("no backup"), "{at}: {refused}");
    }
    assert!(place.refusal(&[&whole[..], b"x"].concat()).contains("damaged"), "something behind its end");
    assert!(place.refusal(b"PK\x03\x04 and so on").contains("no backup"));
    place.restore("one", "new", true).unwrap();
}

#[test]
fn a_new_passphrase_is_long_enough() {
    assert!(Passphrase::new("").is_err() && Passphrase::new(&"x".repeat(2_000)).is_err());
    assert!(Passphrase::new("öäüöäüöäü").unwrap().check_new().is_err());
    passphrase().check_new().unwrap();
}

/// Encrypts bytes as a backup is.
fn encrypted(bytes: &[u8]) -> Vec<u8> {
    let mut recipient = scrypt::Recipient::new(SecretString::from(PASSPHRASE.to_owned()));
    recipient.set_work_factor(4);
    let encryptor = Encryptor::with_recipients(once(&recipient as &dyn Recipient)).unwrap();
    let mut out = Vec::new();
    let mut stream = encryptor.wrap_output(&mut out).unwrap();
    stream.write_all(bytes).unwrap();
    stream.finish().unwrap();
    out
}

/// An archive of these entries.
fn archive(entries: &[(EntryType, &str, &[u8])]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (kind, name, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, name, *content).unwrap();
    }
    tar.into_inner().unwrap()
}

fn manifest(files: &[(&str, &[u8])]) -> Value {
    let files: Vec<Value> = files
        .iter()
        .map(|(path, content)| {
            json!({"path": path, "bytes": content.len(), "sha256": in_digits(&Sha256::digest(content))})
        })
        .collect();
    json!({
        "format": 1, "version": "9.9.9", "schema": 2, "made_wall_ms": 0, "device_keys": true, "rows": {}, "damaged": 0,
        "files": files,
    })
}

#[tokio::test]
async fn an_archive_that_somebody_else_made_is_refused_where_it_is_wrong() {
    let place = Place::new().await;
    let (store, file) = (("store/data.mdb", &b"no store"[..]), EntryType::Regular);
    let of = |manifest: Value, entries: &[(EntryType, &str, &[u8])]| {
        let json = manifest.to_string().into_bytes();
        let all = [&[(file, "manifest.json", json.as_slice())], entries].concat();
        place.refusal(&encrypted(&archive(&all)))
    };
    let told = |refused: String, words: &str| assert!(refused.contains(words), "{words}: {refused}");
    told(place.refusal(&encrypted(b"")), "is empty");
    told(place.refusal(&encrypted(&[7; 4096])), "damaged");
    told(place.refusal(&encrypted(&archive(&[(file, "manifest.json", b"{}")]))), "has not the right form");
    told(place.refusal(&encrypted(&archive(&[(EntryType::Symlink, "manifest.json", b"")]))), "kind Symlink");
    let (costly, rounds) = (encrypted(b"x"), b" 4\n");
    let at = costly.windows(3).position(|part| part == rounds).unwrap();
    let costly = [&costly[..at], b" 20\n", &costly[at + 3..]].concat();
    told(place.refusal(&costly), "takes 2^20 rounds");
    let mut newer = manifest(&[store]);
    newer["format"] = 3.into();
    told(of(newer, &[]), "made by version 9.9.9 of the gateway");
    for path in ["../evil", "/etc/evil", "lock", "restored/evil"] {
        told(of(manifest(&[store, (path, b"x")]), &[]), path);
    }
    told(of(manifest(&[store]), &[]), "ends before store/data.mdb");
    told(of(manifest(&[store]), &[(file, store.0, b"no stores")]), "has another size");
    told(of(manifest(&[store]), &[(file, store.0, b"my store")]), "has another checksum");
    told(of(manifest(&[store]), &[(EntryType::Directory, store.0, b"")]), "kind Directory");
    told(of(manifest(&[store]), &[(EntryType::Symlink, store.0, b"")]), "kind Symlink");
    let one = (file, store.0, store.1);
    told(of(manifest(&[store]), &[one, one]), "more files than its manifest");
    let mut long = archive(&[(file, "manifest.json", manifest(&[store]).to_string().as_bytes()), one]);
    long.extend_from_slice(&[0; 128 * 1024]);
    told(place.refusal(&encrypted(&long)), "something follows its last file");
    // Whole in itself, but what should be the store is none: only a restore sees it.
    let json = manifest(&[store]).to_string();
    fs::write(place.at("lie"), encrypted(&archive(&[(file, "manifest.json", json.as_bytes()), one]))).unwrap();
    told(format!("{:#}", place.restore("lie", "new", true).err().unwrap()), "opening the restored store");
    assert!(!place.at("new/restoring").exists());
}

/// A file that others made with more folders than a data folder has.
#[tokio::test]
async fn a_data_folder_that_is_none_is_not_backed_up() {
    let place = Place::new().await;
    let error = Closed::snapshot(&place.at("data/photos"), Path::new("none"), 16, true).err().unwrap().to_string();
    assert!(error.contains("nothing to back up"), "{error}");
    fs::create_dir_all(place.at("data").join("x/".repeat(DEPTH_MAX))).unwrap();
    let error = format!("{:#}", place.back_up("one", true).unwrap_err());
    assert!(error.contains("too many folders"), "{error}");
    assert!(!place.at("data/backing-up").exists() && !place.at("one").exists());
}

#[tokio::test]
async fn what_was_interrupted_is_completed_or_told() {
    let place = Place::new().await;
    place.back_up("one", true).unwrap();
    // A backup: its snapshot is removed.
    fs::create_dir(place.at("data/backing-up")).unwrap();
    recover(&place.at("data")).unwrap();
    assert!(!place.at("data/backing-up").exists());
    // A restore that had not everything: no gateway starts on it, and the next restore begins anew.
    fs::create_dir_all(place.at("new/restoring/photos")).unwrap();
    let error = recover(&place.at("new")).unwrap_err().to_string();
    assert!(error.contains("run `lorgnette restore` once more"), "{error}");
    place.restore("one", "new", true).unwrap();
    assert!(!place.at("new/restoring").exists());
    // One that had everything, and had moved half of it.
    fs::create_dir(place.at("new/restored")).unwrap();
    for name in ["photos", "store"] {
        fs::rename(place.at("new").join(name), place.at("new/restored").join(name)).unwrap();
    }
    recover(&place.at("new")).unwrap();
    assert!(place.at("new/photos/ann/1.jpg").exists() && place.at("new/store/data.mdb").exists());
    assert!(!place.at("new/restored").exists());
}

#[tokio::test]
async fn a_gateway_starts_while_a_backup_of_its_folder_is_written() {
    let place = Place::new().await;
    let data = place.at("data");
    let closed = place.snapshot(true).unwrap();
    let gateway = FolderLock::take(&data, GATEWAY).expect("the folder is free");
    recover(&data).unwrap();
    assert!(data.join("backing-up/store/data.mdb").exists(), "the snapshot is in use");
    drop(gateway);
    let second = place.snapshot(true).err().unwrap().to_string();
    assert!(second.contains("another backup is being made"), "{second}");
    write(&data, &place.at("one"), &passphrase(), (true, closed.left_out.clone())).unwrap();
    drop(closed);
    assert!(!data.join("backing-up").exists());
    verify(&place.at("one"), &passphrase()).unwrap();
}

#[tokio::test]
async fn an_erasure_removes_a_snapshot_in_use_and_its_backup_does_not_remove_the_next_one() {
    let place = Place::new().await;
    let data = place.at("data");
    let closed = place.snapshot(true).unwrap();
    assert!(!discard_left(&data).unwrap() && data.join("backing-up").exists());
    discard(&data).unwrap();
    assert!(!data.join("backing-up").exists());
    let refused = write(&data, &place.at("one"), &passphrase(), (true, closed.left_out.clone()));
    assert!(refused.is_err() && !place.at("one").exists());
    let next = place.snapshot(true).unwrap();
    drop(closed);
    assert!(data.join("backing-up/store/data.mdb").exists(), "it is another one's");
    drop(next);
    assert!(!data.join("backing-up").exists());
}

#[tokio::test]
async fn a_snapshot_that_changes_is_no_backup() {
    let place = Place::new().await;
    let data = place.at("data");
    let closed = place.snapshot(true).unwrap();
    let manifest = Manifest::of(&recovery::folder(&data), true, closed.left_out.clone()).unwrap();
    fs::write(data.join("backing-up/gateway.key"), "another").unwrap();
    let part = place.at("part");
    let out =
        container::write(&recovery::folder(&data), &manifest, File::create(&part).unwrap(), &passphrase()).unwrap();
    drop(out);
    let error = format!("{:#}", verify(&part, &passphrase()).unwrap_err());
    assert!(error.contains("gateway.key has another checksum"), "{error}");
    fs::remove_file(data.join("backing-up/photos/ann/1.jpg")).unwrap();
    let error = container::write(&recovery::folder(&data), &manifest, File::create(&part).unwrap(), &passphrase());
    let error = format!("{:#}", error.unwrap_err());
    assert!(error.contains("make the backup once more"), "{error}");
    drop(closed);
}

#[test]
fn what_would_fill_the_disk_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    check_room(folder.path(), 0).unwrap();
    let refused = check_room(folder.path(), u64::MAX).unwrap_err().to_string();
    assert!(refused.contains("MiB are needed and"), "{refused}");
}
