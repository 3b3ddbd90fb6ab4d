//! Erasures that are interrupted, fail, or are damaged, and users kept out meanwhile.

use super::*;
use gateway_core::vocab::{ScheduleEntry, ScheduleKind};

use tools::{
    in_flight::InFlight,
    workspace::{FilePath, FileRequest, Workspace as _},
};

use crate::{
    store::{DeviceRecord, Kind, MessageRecord, NoteRecord, Write},
    workspace::Workspaces,
};

/// A word that is nowhere else, for one place.
fn word(user: &str, place: &str) -> String {
    format!("zq-{user}-{place}-qz")
}

/// Something of a user in every table.
async fn plant(store: &Store, user: &str) {
    let text = |place: &str| word(user, place);
    let owner = || user.to_owned();
    let device = DeviceRecord {
        key: [7; 32],
        name: text("device"),
        user: owner(),
        model: "G1".into(),
        paired_wall_ms: 0,
        revoked: false,
    };
    let kind = ScheduleKind::Reminder { text: text("entry") };
    let entry = ScheduleEntry { id: 1, kind, due_wall_ms: i64::MAX, duration_ms: None };
    let mut writes = vec![
        Write::PutDevice { id: format!("id-of-{user}"), device },
        Write::BeginConversation { user: owner(), wall_ms: 1 },
        Write::AppendMessages {
            user: owner(),
            messages: vec![MessageRecord { wall_ms: 0, json: text("message") }],
            title: text("title"),
        },
        Write::PutEntry { user: owner(), entry },
        Write::AddNote { user: owner(), note: NoteRecord { text: text("note"), created_wall_ms: 0 } },
        // Larger than a page of the file.
        Write::AddNote { user: owner(), note: NoteRecord { text: text("long").repeat(900), created_wall_ms: 0 } },
    ];
    for (kind, name) in crate::store::KINDS {
        let (owner, key, value) = (owner(), text("key").into_bytes(), text(name).into_bytes());
        writes.push(Write::PutRow { kind, owner, key, value });
    }
    for write in writes {
        store.write(write).await.unwrap();
    }
    // Written and dropped: its bytes stay in free pages and in the gaps of others.
    for round in 0..60 {
        let note = NoteRecord { text: text("dropped").repeat(round * 10 + 1), created_wall_ms: 0 };
        let id = store.write(Write::AddNote { user: owner(), note }).await.unwrap();
        store.write(Write::RemoveNote { user: owner(), id }).await.unwrap();
    }
}

/// How often a word stands in the files below a folder.
fn count(folder: &Path, word: &str) -> usize {
    let mut found = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found += count(&path, word);
        } else {
            let bytes = fs::read(&path).unwrap();
            found += bytes.windows(word.len()).filter(|window| *window == word.as_bytes()).count();
        }
    }
    found
}

fn open(folder: &Path) -> (Store, Logs) {
    (Store::open(&folder.join("store"), 64).unwrap(), Logs::open(&folder.join("log")).unwrap())
}

#[tokio::test]
async fn not_one_byte_of_a_user_is_left() {
    for devices in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (store, logs) = open(folder.path());
        for user in ["ann", "anne"] {
            plant(&store, user).await;
            photos::keep(folder.path(), user, "image/jpeg", word(user, "photo").as_bytes()).unwrap();
            let file = FileRequest::Write(FilePath::parse("a/b").unwrap(), word(user, "file").into_bytes());
            let workspaces = Workspaces::start(folder.path().to_owned(), InFlight::default()).unwrap();
            workspaces.run(user, file).await.unwrap();
        }
        // It sees what is to be seen, in free pages too.
        for place in ["message", "title", "note", "long", "dropped", "facts", "photo", "file", "device"] {
            assert!(count(folder.path(), &word("ann", place)) > 0, "{place}");
        }
        let before = count(folder.path(), "zq-anne-");
        let erasure = Erasure { user: "ann".into(), devices };
        begin(folder.path(), &erasure).unwrap();
        on_disk(folder.path(), (&store, &logs), &erasure).await.unwrap();
        end(folder.path(), "ann").unwrap();
        // Rows of the box itself, under that name by chance, and the pairing where it was to stay.
        let kept = if devices { 0 } else { 1 };
        assert_eq!(count(folder.path(), &word("ann", "device")), kept);
        assert_eq!(count(folder.path(), "zq-ann-"), kept + 4, "two tables of the box, key and value each");
        assert!(count(folder.path(), "zq-anne-") > 0 && before > 0, "another user's");
        assert!(!record(folder.path()).exists() && !folder.path().join("store.new").exists());
        // It goes on, and what was kept is still there.
        let notes = store.disk().notes("anne", 9, |_| true).unwrap();
        assert_eq!(notes.len(), 2);
        assert!(store.disk().notes("ann", 9, |_| true).unwrap().is_empty());
        assert_eq!(store.disk().devices().unwrap().len(), kept + 1);
        store.write(Write::BeginConversation { user: "ann".into(), wall_ms: 2 }).await.unwrap();
        assert_eq!(store.disk().conversations("ann").unwrap().len(), 1);
    }
}

/// An upgrade keeps an erasure from beginning until the gateway has stopped, which waits for the task that erases.
#[tokio::test]
async fn an_erasure_that_has_not_begun_when_the_gateway_stops_is_refused() {
    let running = OneAtATime::default();
    let upgrading = running.alone_now().expect("nothing runs");
    let (waited, ()) = tokio::join!(running.alone(), async { running.close() });
    let refused = waited.unwrap_err().to_string();
    assert!(refused.contains("another process takes its place: try again"), "{refused}");
    drop(upgrading);
    assert!(running.alone().await.is_err() && running.alone_now().is_none());
}

#[tokio::test]
async fn an_erasure_that_was_interrupted_is_carried_on() {
    let folder = tempfile::tempdir().unwrap();
    let (store, logs) = open(folder.path());
    plant(&store, "ann").await;
    plant(&store, "bob").await;
    // The process was killed after the record, and in the middle of the copy.
    begin(folder.path(), &Erasure { user: "ann".into(), devices: true }).unwrap();
    fs::create_dir_all(folder.path().join("store.new")).unwrap();
    fs::write(folder.path().join("store.new/data.mdb"), word("ann", "half a copy")).unwrap();
    assert!(resume(folder.path(), &store, &logs).await.is_empty());
    assert_eq!(count(folder.path(), &word("ann", "note")), 0);
    assert_eq!(count(folder.path(), &word("ann", "half a copy")), 0);
    assert_eq!(store.disk().notes("bob", 9, |_| true).unwrap().len(), 2);
    assert!(!record(folder.path()).exists());
    // Once more does nothing.
    assert!(resume(folder.path(), &store, &logs).await.is_empty());
    store.write(Write::BeginConversation { user: "ann".into(), wall_ms: 2 }).await.unwrap();
}

/// Something that cannot be removed as a folder of photos.
fn block_photos(folder: &Path, user: &str) -> PathBuf {
    photos::keep(folder, user, "image/jpeg", b"photo").unwrap();
    let photo = photos::of(folder, user).unwrap().remove(0);
    let own = photo.parent().unwrap().to_path_buf();
    fs::remove_dir_all(&own).unwrap();
    fs::write(&own, b"no folder").unwrap();
    own
}

#[tokio::test]
async fn an_erasure_that_cannot_be_finished_keeps_out_its_user_only() {
    let folder = tempfile::tempdir().unwrap();
    let (store, logs) = open(folder.path());
    for user in ["ann", "bob", "eve"] {
        plant(&store, user).await;
    }
    let blocked = block_photos(folder.path(), "ann");
    for user in ["ann", "eve"] {
        begin(folder.path(), &Erasure { user: user.into(), devices: true }).unwrap();
    }
    assert_eq!(resume(folder.path(), &store, &logs).await, ["ann"]);
    // The other one is finished, and this one is still recorded.
    assert_eq!(recorded(folder.path()).unwrap(), [Erasure { user: "ann".into(), devices: true }]);
    assert_eq!(count(folder.path(), &word("eve", "note")), 0);
    let begins = |user: &str| store.write(Write::BeginConversation { user: user.into(), wall_ms: 2 });
    assert!(begins("ann").await.unwrap_err().to_string().contains("erased"));
    assert!(begins("bob").await.is_ok() && begins("eve").await.is_ok());
    fs::remove_file(blocked).unwrap();
    assert!(resume(folder.path(), &store, &logs).await.is_empty());
    assert_eq!(count(folder.path(), &word("ann", "note")), 0);
    assert!(!record(folder.path()).exists());
}

#[tokio::test]
async fn a_damaged_record_is_set_aside_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let (store, logs) = open(folder.path());
    plant(&store, "ann").await;
    let mut damaged = b"{\"user\":\"b\xffb\",\"devices\":true}\n".to_vec();
    let mut bytes = damaged.clone();
    bytes.extend(b"{\"user\":\"ann\",\"devices\":false}\n{");
    fs::write(record(folder.path()), &bytes).unwrap();
    assert!(resume(folder.path(), &store, &logs).await.is_empty());
    assert_eq!(count(folder.path(), &word("ann", "note")), 0, "what can be read is carried on");
    let aside = folder.path().join(ERASURES_DAMAGED);
    damaged.extend(b"{\n");
    assert_eq!(fs::read(&aside).unwrap(), damaged);
    // An erasure begins as ever, and what is set aside once more is added.
    fs::write(record(folder.path()), b"}").unwrap();
    let again = Erasure { user: "ann".into(), devices: true };
    assert_eq!(begin(folder.path(), &again).unwrap(), again);
    assert_eq!(recorded(folder.path()).unwrap(), [again]);
    damaged.extend(b"}\n");
    assert_eq!(fs::read(&aside).unwrap(), damaged);
    // The same again, as where the record could not be mended, is there already.
    set_aside(folder.path(), [&b"}"[..]].into_iter()).unwrap();
    assert_eq!(fs::read(&aside).unwrap(), damaged);
    // No file at all.
    end(folder.path(), "ann").unwrap();
    fs::create_dir(record(folder.path())).unwrap();
    fs::remove_file(&aside).unwrap();
    assert!(resume(folder.path(), &store, &logs).await.is_empty());
    assert!(aside.exists() && !record(folder.path()).exists());
}

#[tokio::test]
async fn what_can_be_read_of_a_record_is_carried_on_also_where_the_rest_cannot_be_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let (store, logs) = open(folder.path());
    plant(&store, "ann").await;
    fs::write(record(folder.path()), b"{\n{\"user\":\"ann\",\"devices\":false}\n").unwrap();
    fs::create_dir(folder.path().join(ERASURES_DAMAGED)).unwrap();
    assert!(resume(folder.path(), &store, &logs).await.is_empty());
    assert_eq!(count(folder.path(), &word("ann", "note")), 0);
}

#[test]
fn an_erasure_does_not_push_another_one_out_of_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let of = |user: &str, devices| Erasure { user: user.into(), devices };
    let begin = |erasure| begin(folder.path(), &erasure).unwrap();
    assert_eq!(begin(of("ann", true)), of("ann", true));
    assert_eq!(begin(of("bob", false)), of("bob", false));
    // Asked again, without the pairings: what was asked first holds.
    assert_eq!(begin(of("ann", false)), of("ann", true));
    assert_eq!(recorded(folder.path()).unwrap(), [of("bob", false), of("ann", true)]);
    end(folder.path(), "bob").unwrap();
    assert_eq!(recorded(folder.path()).unwrap(), [of("ann", true)]);
    end(folder.path(), "ann").unwrap();
    assert!(!record(folder.path()).exists());
}

#[tokio::test]
async fn nothing_is_written_of_a_user_who_is_being_erased() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    let fact = |user: &str| Write::AddRow { kind: Kind::Facts, owner: user.into(), value: vec![1] };
    store.bar("ann", true);
    assert!(store.write(fact("ann")).await.unwrap_err().to_string().contains("erased"));
    store.write(fact("bob")).await.unwrap();
    // A pairing that is made now would be erased with those from before; one is revoked at any time.
    let pairing = |user: &str, revoked| {
        let (name, model) = (String::new(), String::new());
        let device = DeviceRecord { key: [7; 32], name, user: user.into(), model, paired_wall_ms: 0, revoked };
        Write::PutDevice { id: format!("id-of-{user}"), device }
    };
    assert!(store.write(pairing("ann", false)).await.unwrap_err().to_string().contains("erased"));
    store.write(pairing("ann", true)).await.unwrap();
    assert!(store.disk().devices().unwrap().is_empty(), "what was erased does not come back as revoked");
    store.write(pairing("bob", false)).await.unwrap();
    store.write(pairing("bob", true)).await.unwrap();
    assert!(store.disk().devices().unwrap()[0].1.revoked);
    store.bar("ann", false);
    store.write(fact("ann")).await.unwrap();
}

#[tokio::test]
async fn reads_go_on_during_an_erasure() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = open(folder.path());
    plant(&store, "ann").await;
    plant(&store, "bob").await;
    let reading = store.clone();
    let reader = std::thread::Builder::new().spawn(move || {
        (0..2_000).all(|_| reading.disk().notes("bob", 9, |_| true).is_ok_and(|notes| notes.len() == 2))
    });
    for _ in 0..5 {
        store.erase(Scope::User { user: "ann".into(), devices: false }).await.unwrap();
    }
    assert!(reader.unwrap().join().unwrap());
}

#[test]
fn an_erasure_does_not_begin_without_room_for_its_copy() {
    let folder = tempfile::tempdir().unwrap();
    check_room(folder.path(), "ann").unwrap();
    photos::keep(folder.path(), "ann", "image/jpeg", b"photo").unwrap();
    let photo = photos::of(folder.path(), "ann").unwrap().remove(0);
    // Files of zeros, which take no room by themselves.
    let large = |path: &Path| {
        let file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.set_len(1 << 43).unwrap();
    };
    for name in ["store", "log"] {
        let own = folder.path().join(name);
        fs::create_dir(&own).unwrap();
        large(&own.join("data.mdb"));
        let refused = check_room(folder.path(), "ann").unwrap_err().to_string();
        assert!(refused.contains("nothing was erased") && refused.contains("may take 8.0 TiB"), "{refused}");
        fs::remove_dir_all(own).unwrap();
    }
    fs::create_dir(folder.path().join("store")).unwrap();
    large(&folder.path().join("store/data.mdb"));
    large(&photo);
    check_room(folder.path(), "ann").unwrap();
}
