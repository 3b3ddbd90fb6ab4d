//! Backups of a running gateway, and gateways that go on from them.

use std::{fs, path::Path, time::Duration};

use firmware_sim::{Event, Seen};
use gateway::control::{Request, client, memory::MemoryRequest};
use rustix::fs::{FlockOperation, flock};
use tokio::sync::watch;

use crate::{
    durability::{kept, told},
    memory::counts,
    process::{Process, configure, fails, succeeds},
    world::{self, USER, World, answered, text, until, write_secret},
};

const PASSPHRASE: &str = "an okapi among zebras";

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Words that all have to be in a text.
fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_confirmed_before_a_backup_is_there_on_another_box() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (data, other, file, secret) = (at("data"), at("other"), at("one.backup"), at("passphrase"));
    write_secret(&secret, PASSPHRASE);
    let (file, secret) = (shown(&file), shown(&secret));
    let gateway = Process::start(&data, "", &[]).await;
    let (old, new) = (shown(&data.with_extension("toml")), shown(&configure(&other, "")));
    let mut glasses = world::connect(&data, gateway.options()).await;
    told(&mut glasses, "remind me in two hours to check the oven", "oven").await;
    let app = ["apps", "add", "--url", "http://127.0.0.1:9", "--package", "com.example.zoo", "--name", "Zoo"];
    succeeds(&[&app[..], &["--config", old.as_str()][..]].concat()).await;
    fs::create_dir_all(data.join("photos").join(USER)).unwrap();
    fs::write(data.join("photos").join(USER).join("000000000000001.jpg"), "a photo").unwrap();
    std::os::unix::fs::symlink(folder.path(), data.join("elsewhere")).unwrap();

    // Glasses write one note after the other, before, while and after the backup is made.
    let (confirmed, mut seen) = watch::channel(0);
    let (stop, stopped) = watch::channel(false);
    let writing = tokio::spawn(async move {
        while !*stopped.borrow() {
            let number = *confirmed.borrow() + 1;
            let note = format!("zebra {number}");
            // Of this one: what comes of an answer may still be on its way when the next note is typed.
            told(&mut glasses, &format!("take a note {note}"), &note).await;
            let is_end = |event: &Event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. });
            until(&mut glasses, "the end", is_end).await;
            confirmed.send_replace(number);
        }
        glasses
    });
    seen.wait_for(|count| *count >= 2).await.unwrap();
    let before = *seen.borrow_and_update();
    let written = succeeds(&["backup", &file, "--passphrase-file", &secret, "--config", &old]).await;
    has(&written, &["of the running gateway, was written, read back and checked", "1 devices", "1 apps", "1 entries"]);
    has(&written, &["never in a backup: the configuration file", "left out, although", "elsewhere: a link"]);
    let during = *seen.borrow_and_update();
    seen.wait_for(|count| *count > during).await.unwrap();
    stop.send_replace(true);
    let glasses = writing.await.unwrap();
    let after = *seen.borrow_and_update();
    assert!(!data.join("backing-up").exists(), "the snapshot is removed");
    let refused = fails(&["backup", &file, "--passphrase-file", &secret, "--config", &old]).await;
    has(&refused, &["is not written over"]);
    let inside = shown(&data.join("x"));
    has(&fails(&["backup", &inside, "--passphrase-file", &secret, "--config", &old]).await, &["another place"]);
    has(&fails(&["restore", &file, "--passphrase-file", &secret, "--config", &old]).await, &["while no gateway runs"]);
    glasses.goodbye().await;
    gateway.kill().await;
    let (notes, _) = kept(&data);
    assert!(notes.len() >= after, "{after} {notes:?}");

    let checked = succeeds(&["restore", &file, "--check", "--passphrase-file", &secret, "--config", &new]).await;
    has(&checked, &["is whole", "with the keys and pairings", "elsewhere: a link"]);
    assert!(!other.exists(), "a check keeps nothing");
    let restored = succeeds(&["restore", &file, "--passphrase-file", &secret, "--config", &new]).await;
    has(&restored, &["is restored into", "connect as before", "elsewhere: a link"]);
    has(&fails(&["restore", &file, "--passphrase-file", &secret, "--config", &new]).await, &["is not empty"]);
    let (notes, reminders) = kept(&other);
    for number in 1..=before {
        let count = notes.iter().filter(|note| note.ends_with(&format!("zebra {number}"))).count();
        assert_eq!(count, 1, "{number} of {before}: {notes:?}");
    }
    assert!(notes.len() <= after + 1 && reminders.len() == 1, "{notes:?} {reminders:?}");
    assert_eq!(fs::read_to_string(other.join("photos").join(USER).join("000000000000001.jpg")).unwrap(), "a photo");

    // The other box: the same glasses, not paired again, find everything.
    let gateway = Process::start(&other, "", &[]).await;
    let mut options = gateway.options();
    options.state = data.with_extension("glasses");
    let mut glasses = firmware_sim::Glasses::start(options).unwrap();
    glasses.welcomed().await.expect("without being paired again");
    text(&mut glasses, "what are my reminders").await;
    has(&answered(&mut glasses).await, &["oven"]);
    has(&succeeds(&["conversations", "search", "oven", "--config", &new]).await, &["oven"]);
    has(&succeeds(&["apps", "list", "--config", &new]).await, &["com.example.zoo"]);
    glasses.goodbye().await;
    gateway.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_of_a_stopped_gateway_without_keys_makes_another_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (data, other, file, secret) = (at("data"), at("other"), at("one.backup"), at("passphrase"));
    let (old, new) = (shown(&configure(&data, "")), shown(&configure(&other, "")));
    write_secret(&secret, PASSPHRASE);
    let (file, secret) = (shown(&file), shown(&secret));
    has(&fails(&["backup", &file, "--passphrase-file", &secret, "--config", &old]).await, &["nothing to back up"]);
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    told(&mut glasses, "take a note buy oat milk", "milk").await;
    gateway.terminate().await;
    let written =
        succeeds(&["backup", &file, "--without-device-keys", "--passphrase-file", &secret, "--config", &old]).await;
    has(&written, &["of a gateway that does not run", "without the keys and pairings"]);
    let restored = succeeds(&["restore", &file, "--passphrase-file", &secret, "--config", &new]).await;
    has(&restored, &["has its own identity"]);
    assert_eq!(kept(&other).0.len(), 1);
    let gateway = Process::start(&other, "", &[]).await;
    assert!(!succeeds(&["devices", "list", "--config", &new]).await.contains("G1"));
    gateway.terminate().await;
    assert_ne!(fs::read(data.join("gateway.key")).unwrap(), fs::read(other.join("gateway.key")).unwrap());
    // Without a terminal nobody can type a passphrase, and another one does not open it.
    has(&fails(&["restore", &file, "--check", "--config", &new]).await, &["--passphrase-file"]);
    write_secret(Path::new(&secret), "some other words");
    let wrong = fails(&["restore", &file, "--check", "--passphrase-file", &secret, "--config", &new]).await;
    has(&wrong, &["the passphrase is wrong"]);
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    write_secret(Path::new(&secret), PASSPHRASE);
    let cut =
        fails(&["restore", &file, "--passphrase-file", &secret, "--config", &shown(&configure(&at("new"), ""))]).await;
    has(&cut, &["cut off"]);
    assert!(!at("new/gateway.key").exists());
}

/// An erasure does not wait for a backup that is being written, and leaves nothing in the snapshot.
#[tokio::test(flavor = "multi_thread")]
async fn erasing_a_user_ends_a_backup_that_is_being_made() {
    let world = World::start().await;
    let mut glasses = world.glasses("ws", "glasses").await;
    text(&mut glasses, "take a note the okapi is here").await;
    answered(&mut glasses).await;
    let data = world.data();
    let snapshot = move || {
        let wait = Duration::from_secs(60);
        client::converse(&data, &Request::Backup { device_keys: true }, wait).map(|(_, connection)| connection)
    };
    let held = tokio::task::spawn_blocking(snapshot.clone()).await.unwrap().expect("a snapshot");
    let stage = world.data().join("backing-up");
    assert_eq!(counts(&stage, ["okapi"]).map(|count| count > 0), [true]);
    let second = tokio::task::spawn_blocking(snapshot.clone()).await.unwrap().unwrap_err().to_string();
    assert!(second.contains("another backup is being made"), "{second}");
    let request = MemoryRequest::EraseUser { user: USER.into(), devices: false };
    world.ask(Request::Memory { request }).await.expect("erased");
    assert!(!stage.exists());
    assert_eq!(counts(&world.data(), ["okapi"]), [0]);
    drop(held);
    // When the place is free again, the next one is made.
    let again = async {
        loop {
            if let Ok(held) = tokio::task::spawn_blocking(snapshot.clone()).await.unwrap() {
                return held;
            }
        }
    };
    drop(tokio::time::timeout(world::WAIT, again).await.expect("another backup"));
    world.stop().await;
}

/// As of a command that has made it before this gateway started.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_is_none_of_the_gateways_own_goes_when_nobody_uses_it() {
    let world = World::start().await;
    let stage = world.data().join("backing-up");
    fs::create_dir(&stage).unwrap();
    let held = fs::File::open(&stage).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    world.gateway().admin().eraser.carry_on().await;
    assert!(stage.exists());
    // The command was killed.
    drop(held);
    world.gateway().admin().eraser.carry_on().await;
    assert!(!stage.exists());
    world.stop().await;
}
