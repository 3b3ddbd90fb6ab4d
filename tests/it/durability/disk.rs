//! The disk is full, read-only, or has lost a part of the store: words instead of crashes, glasses can be revoked, and
//! when it is over everything goes on.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use firmware_sim::{Glasses, Seen};
use gateway::control::{Answer, Request};
use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};

use super::{kept, power::compile, told};
use crate::{
    namespaces::again_in,
    process::{Process, configure, fails, lorgnette, succeeds},
    upgrade::upgrade,
    world::{self, USER, WAIT, answered, ask, text, until, write_secret},
};

/// A library that makes a running gateway's files read-only.
pub const READ_ONLY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/durability/readonly.c");
/// Bytes of the file system: more than the gateway wants to be free.
const DISK: &str = "size=48m";

/// A folder with a small file system of its own.
fn small_disk(folder: &Path) -> PathBuf {
    disk(folder, DISK)
}

/// A folder with a file system in memory of its own, with these options.
pub fn disk(folder: &Path, options: &str) -> PathBuf {
    let data = folder.join("data");
    fs::create_dir_all(&data).unwrap();
    mount("tmpfs", &data, "tmpfs", MountFlags::empty(), Some(&*std::ffi::CString::new(options).unwrap()))
        .expect("mounted");
    data
}

/// Two pairs of glasses; one of them will be lost.
async fn pair(gateway: &Process, data: &Path) -> (Glasses, Glasses) {
    let glasses = world::connect(data, gateway.options()).await;
    let mut options = gateway.options();
    options.state = data.with_extension("lost");
    (glasses, world::connect(data, options).await)
}

/// Revokes glasses, which are cut off at once; what the operator is told, and whether it is for ever.
async fn revoke(data: &Path, lost: &mut Glasses) -> (String, bool) {
    let (message, is_stored) = match ask(data, Request::Revoke { device: lost.fingerprint().to_owned() }).await {
        Ok(Answer::Done { message }) => (message, true),
        Err(message) => (message, false),
        Ok(other) => panic!("{other:?}"),
    };
    assert!(message.contains("its session was ended"), "{message}");
    until(lost, "the goodbye", |event| matches!(&event.seen, Seen::Goodbye { reason, .. } if reason == "revoked"))
        .await;
    (message, is_stored)
}

async fn is_kept_out(gateway: &Process, data: &Path) {
    let mut options = gateway.options();
    options.state = data.with_extension("lost");
    let error = Glasses::start(options).unwrap().welcomed().await.expect_err("it is kept out").to_string();
    assert!(error.contains("revoked"), "{error}");
}

/// Waits until `/healthz` says that something is wrong, or that all is well; its words.
async fn until_problems(gateway: &Process, are_there: bool) -> String {
    // Only the first call counts.
    drop(rustls::crypto::ring::default_provider().install_default());
    let address = format!("http://{}/healthz", gateway.web);
    let seen = async {
        loop {
            let health = reqwest::get(&address).await.expect("an answer");
            let status = health.status();
            assert!(status == 200 || status == 503, "{status}");
            if (status == 503) == are_there {
                return health.text().await.expect("words");
            }
        }
    };
    tokio::time::timeout(WAIT, seen).await.expect("health tells it")
}

/// What `/healthz` says, and `lorgnette status`.
async fn words_of(gateway: &Process, data: &Path) -> String {
    let told = until_problems(gateway, true).await;
    let config = data.with_extension("toml").display().to_string();
    let output = lorgnette(&["status", "--config", &config]).await;
    assert!(!output.status.success(), "scripts look at the status");
    told + &String::from_utf8_lossy(&output.stdout)
}

/// A note cannot be kept, and the wearer hears so; everything that only reads goes on. `true`: it was kept, and the wearer hears
/// that: on a full disk the pages that the store has given up may have room for it.
async fn keeps_a_note(glasses: &mut Glasses) -> bool {
    // The answer before is over.
    until(glasses, "its end", |event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. })).await;
    text(glasses, "take a note call the dentist").await;
    let answer = answered(glasses).await;
    let is_kept = answer.contains("noted");
    let words = ["full", "could not", "couldn't", "cannot", "can't", "not keep"];
    assert!(is_kept || words.iter().any(|word| answer.contains(word)), "{answer}");
    told(glasses, "what is two plus two", "4").await;
    told(glasses, "read my notes", "milk").await;
    is_kept
}

/// Nothing is handed over: neither the next gateway nor, after it, this one could open the data folder.
async fn is_not_replaced(data: &Path, glasses: &mut Glasses) {
    let output = upgrade(data, &[]).await;
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && words.contains("No gateway starts on such a disk"), "{words}");
    told(glasses, "what is two plus two", "4").await;
}

/// The fault is over: notes are kept again, the next one at once, and everything that was said to be kept is there after kill -9.
/// `kept_meanwhile`: also a note from the time of the fault.
async fn goes_on(
    gateway: Process,
    data: &Path,
    (mut glasses, lost): (Glasses, Glasses),
    (is_stored, kept_meanwhile): (bool, bool),
) {
    told(&mut glasses, "take a note buy bread", "bread").await;
    until_problems(&gateway, false).await;
    if !is_stored {
        let device = lost.fingerprint().to_owned();
        assert!(matches!(ask(data, Request::Revoke { device }).await, Ok(Answer::Done { .. })));
    }
    drop(lost.goodbye().await);
    let log = gateway.kill().await;
    assert!(!log.iter().any(|line| line.contains("panicked")), "{log:#?}");
    let (notes, _) = kept(data);
    let expected = ["buy bread", "call the dentist", "buy oat milk"].into_iter();
    let expected: Vec<&str> = expected.filter(|note| kept_meanwhile || !note.contains("dentist")).collect();
    assert_eq!(notes, expected);
    let gateway = Process::start(data, "", &[]).await;
    is_kept_out(&gateway, data).await;
    gateway.kill().await;
}

/// Writes until not one byte more fits.
fn fill(disk: &Path) -> PathBuf {
    let filler = disk.join("filler");
    let mut file = File::create(&filler).unwrap();
    for block in [1 << 20, 1 << 12, 1] {
        while file.write_all(&vec![1; block]).is_ok() {}
    }
    assert!(fs::write(disk.join("more"), [1; 8192]).is_err(), "it is full");
    filler
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_told_and_passes() {
    if again_in(&["--mount"], "durability::disk::a_full_disk_is_told_and_passes") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = small_disk(folder.path());
    let gateway = Process::start(&data, "", &[]).await;
    let (mut glasses, mut lost) = pair(&gateway, &data).await;
    told(&mut glasses, "take a note buy oat milk", "milk").await;
    let filler = fill(&data);
    let kept_meanwhile = keeps_a_note(&mut glasses).await;
    let words = words_of(&gateway, &data).await;
    assert!(words.contains("free some") && words.contains("disk"), "{words}");
    is_not_replaced(&data, &mut glasses).await;
    let (_, is_stored) = revoke(&data, &mut lost).await;
    is_kept_out(&gateway, &data).await;
    fs::remove_file(filler).unwrap();
    goes_on(gateway, &data, (glasses, lost), (is_stored, kept_meanwhile)).await;
}

/// The data folder's disk becomes read-only under a gateway, and can be written to again later: what was open as well as
/// what is opened then. `from` is the first write that fails: any, or that of a root page, behind which LMDB takes nothing.
async fn read_only_passes(from: &str) {
    let folder = tempfile::tempdir().unwrap();
    let data = small_disk(folder.path());
    let switch = folder.path().join("switch");
    let [library, below, file] =
        [&compile(folder.path(), READ_ONLY), &data, &switch].map(|path| path.display().to_string());
    let environment = [("LD_PRELOAD", &*library), ("FOLDER", &*below), ("SWITCH", &*file)];
    let gateway = Process::start(&data, "", &environment).await;
    let (mut glasses, mut lost) = pair(&gateway, &data).await;
    told(&mut glasses, "take a note buy oat milk", "milk").await;
    mount_bind(&data, &data).expect("mounted");
    mount_remount(&data, MountFlags::BIND | MountFlags::RDONLY, "").expect("read-only");
    fs::write(&switch, from).unwrap();
    assert!(!keeps_a_note(&mut glasses).await, "nothing can be kept");
    let words = words_of(&gateway, &data).await;
    assert!(words.contains("cannot be written to") && words.contains("Read-only"), "{words}");
    is_not_replaced(&data, &mut glasses).await;
    let (message, is_stored) = revoke(&data, &mut lost).await;
    assert!(!is_stored && message.contains("kept out until the next start"), "{message}");
    is_kept_out(&gateway, &data).await;
    // Glasses that come meanwhile are served as well.
    glasses.goodbye().await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    told(&mut glasses, "read my notes", "milk").await;
    fs::remove_file(&switch).unwrap();
    mount_remount(&data, MountFlags::BIND, "").expect("writable");
    goes_on(gateway, &data, (glasses, lost), (is_stored, false)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_becomes_read_only_is_told_and_passes() {
    if again_in(&["--mount"], "durability::disk::a_disk_that_becomes_read_only_is_told_and_passes") {
        return;
    }
    read_only_passes("now").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_root_cannot_be_written_is_read_and_passes() {
    if again_in(&["--mount"], "durability::disk::a_store_whose_root_cannot_be_written_is_read_and_passes") {
        return;
    }
    read_only_passes("root").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_does_not_start_on_a_full_or_read_only_disk_and_says_why() {
    if again_in(&["--mount"], "durability::disk::a_gateway_does_not_start_on_a_full_or_read_only_disk_and_says_why") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = small_disk(folder.path());
    let config = configure(&data, "").display().to_string();
    let filler = fill(&data);
    let error = fails(&["serve", "--config", &config]).await;
    assert!(error.contains("No space left") && error.contains(&data.display().to_string()), "{error}");
    fs::remove_file(filler).unwrap();
    let gateway = Process::start(&data, "", &[]).await;
    let (mut glasses, _lost) = pair(&gateway, &data).await;
    told(&mut glasses, "take a note buy oat milk", "milk").await;
    gateway.kill().await;
    mount_bind(&data, &data).expect("mounted");
    mount_remount(&data, MountFlags::BIND | MountFlags::RDONLY, "").expect("read-only");
    let error = fails(&["serve", "--config", &config]).await;
    assert!(error.contains("Read-only file system") && error.contains(&data.display().to_string()), "{error}");
    mount_remount(&data, MountFlags::BIND, "").expect("writable");
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    text(&mut glasses, "read my notes").await;
    assert!(answered(&mut glasses).await.contains("milk"));
    gateway.kill().await;
}

/// A backup copies the store into the data folder, under a gateway that needs what room there is.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_would_fill_the_disk_is_refused() {
    if again_in(&["--mount"], "durability::disk::a_backup_that_would_fill_the_disk_is_refused") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = small_disk(folder.path());
    let secret = folder.path().join("passphrase");
    write_secret(&secret, "an okapi among zebras");
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    let [file, secret, config] = [&folder.path().join("one.backup"), &secret, &data.with_extension("toml")]
        .map(|path| path.display().to_string());
    let refused = fails(&["backup", &file, "--passphrase-file", &secret, "--config", &config]).await;
    assert!(refused.contains("no room for a copy of the store") && refused.contains("MiB are free"), "{refused}");
    assert!(!data.join("backing-up").exists(), "nothing is left of it");
    told(&mut glasses, "take a note buy oat milk", "milk").await;
    gateway.kill().await;
    assert_eq!(kept(&data).0.len(), 1);
}

/// An erasure copies everything else. It does not begin where that has no room, since its user would be kept out.
#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_has_no_room_does_not_begin() {
    if again_in(&["--mount"], "durability::disk::an_erasure_that_has_no_room_does_not_begin") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = small_disk(folder.path());
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    told(&mut glasses, "take a note buy oat milk", "milk").await;
    let filler = fill(&data);
    // Room for its record. (An open file would keep its room below.)
    {
        let file = File::options().write(true).open(&filler).unwrap();
        file.set_len(file.metadata().unwrap().len() - 16 * 1024).unwrap();
    }
    let config = data.with_extension("toml").display().to_string();
    let refused = fails(&["users", "erase", USER, "--yes", "--config", &config]).await;
    assert!(refused.contains("nothing was erased: the copy"), "{refused}");
    assert!(!data.join("erasing.json").exists());
    told(&mut glasses, "what is two plus two", "4").await;
    fs::remove_file(filler).unwrap();
    succeeds(&["users", "erase", USER, "--yes", "--config", &config]).await;
    gateway.kill().await;
    assert!(kept(&data).0.is_empty());
}

/// The file of the store ends too early, by a little and by much: the gateway starts, or says what to do.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_whose_end_is_missing_kills_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let (mut glasses, _lost) = pair(&gateway, &data).await;
    for note in ["milk", "bread", "butter"] {
        told(&mut glasses, &format!("take a note buy {note}"), note).await;
    }
    gateway.kill().await;
    let file = data.join("store/data.mdb");
    let whole = fs::read(&file).unwrap();
    let config = configure(&data, "").display().to_string();
    let (mut started, mut refused) = (0, 0);
    let page = 4096;
    let pages = whole.len() / page;
    for length in [whole.len() - 1, (pages - 1) * page, pages / 2 * page, 3 * page, 2 * page, page + 1, page, 100] {
        drop(fs::remove_file(data.join("store/lock.mdb")));
        fs::write(&file, &whole[..length]).unwrap();
        // A crash has neither words nor a status.
        let output = lorgnette(&["check", "--store", "--config", &config]).await;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code().is_some(), "{length} of {}: {:?} {words}", whole.len(), output.status);
        fs::write(&file, &whole[..length]).unwrap();
        match Process::try_start(&data).await {
            Ok(gateway) => {
                let (status, log) = gateway.terminate().await;
                assert!(status.success(), "{length}: {log:#?}");
                started += 1;
            }
            Err((status, log)) => {
                let error = log.join("\n");
                assert_eq!(status.code(), Some(1), "{length}: {error}");
                assert!(
                    error.contains("the store's file is damaged") && error.contains("from a backup"),
                    "{length}: {error}"
                );
                refused += 1;
            }
        }
    }
    println!("{started} starts, {refused} refusals");
    assert!(started > 0 && refused > 0);
    // A backup in its place is a gateway as before.
    fs::write(&file, &whole).unwrap();
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    text(&mut glasses, "read my notes").await;
    assert!(answered(&mut glasses).await.contains("butter"));
    gateway.kill().await;
}
