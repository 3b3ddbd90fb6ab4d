//! Damaged rows, and stores of older versions.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use gateway_core::vocab::{ScheduleEntry, ScheduleKind};
use tokio_util::sync::CancellationToken;
use tools::{apps::client::Client, registry::Registry};

use super::{
    keys::user_key,
    migrations,
    opened::Opened,
    schema,
    table::{Damage, decode, unseal},
    *,
};
use crate::{
    apps::installed::Installed,
    device_task::restart::StoredSessions,
    ports::{
        journal::StoredJournal,
        preferences::Preferences,
        records::{StoredLedger, StoredSwitches},
        routines::StoredRoutines,
        runs::StoredRuns,
        stores::SystemClock,
    },
};

/// A store that a gateway of version 1 has written: two devices, of which one is revoked, two conversations, two entries,
/// two notes, and rows of every kind.
const V1: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/store/v1/data.mdb");
/// The same of version 2, with a session of Ann's glasses in the middle of a turn, a call that had begun, two runs of
/// programs, and a routine.
pub(crate) const V2: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/store/v2/data.mdb");
const SIZE_MIB: usize = 16;

fn old_store() -> tempfile::TempDir {
    copy_of(V1)
}

/// A folder with this store in it.
pub(crate) fn copy_of(data: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(data, folder.path().join("data.mdb")).unwrap();
    folder
}

/// Runs `work` with the raw LMDB tables.
fn raw<R>(folder: &Path, act: impl FnOnce(&Opened) -> R) -> R {
    let opened = Opened::open(folder, SIZE_MIB, &Damage::default()).unwrap();
    let result = act(&opened);
    opened.close();
    result
}

/// The contents of the fixture as read.
fn assert_whole(store: &Store) {
    let disk = store.disk();
    let devices = disk.devices().unwrap();
    let told: Vec<_> = devices.iter().map(|(id, device)| (&id[..2], device.name.as_str(), device.revoked)).collect();
    assert_eq!(told, [("aa", "Ann's", false), ("bb", "Lost", true)]);
    let device = &devices[0].1;
    assert_eq!((device.key[31], device.user.as_str(), device.model.as_str()), (31, "ann", "G1 from a factory"));
    assert_eq!(device.paired_wall_ms, 1_700_000_000_000);
    let conversations = disk.conversations("ann").unwrap();
    let told: Vec<_> = conversations.iter().map(|one| (one.id, one.title.as_str(), one.messages)).collect();
    assert_eq!(told, [(1, "hello", 2), (2, "again", 1)]);
    assert_eq!(conversations[0].summary.as_ref().map(|summary| summary.text.as_str()), Some("They met."));
    let messages = disk.messages_of("ann", &conversations[0]).unwrap();
    assert_eq!((messages.len(), messages[1].wall_ms), (2, 2));
    assert!(messages[1].json.contains("Hello."));
    let due_wall_ms = 1_900_000_000_000;
    let entry = |id, kind, duration_ms| ScheduleEntry { id, kind, due_wall_ms, duration_ms };
    let reminder = entry(1, ScheduleKind::Reminder { text: "oven".into() }, None);
    assert_eq!(
        disk.entries("ann").unwrap(),
        [reminder, entry(2, ScheduleKind::timer("a timer with a longer name".into()), Some(600_000))]
    );
    let notes = disk.notes("ann", 9, |_| true).unwrap();
    assert_eq!(notes.len(), 2);
    assert_eq!((notes[0].0, notes[0].1.text.as_str(), notes[1].1.text.len()), (3, "after", 5_000));
    // Conversations were compared above, and the others are later tables.
    let later = [Kind::DeviceSessions, Kind::Runs, Kind::Routines, Kind::AppSounds, Kind::Speaking];
    let others = |kind| kind != Kind::Conversations && !later.contains(&kind);
    for (at, (kind, name)) in KINDS.into_iter().enumerate().filter(|(_, (kind, _))| others(*kind)) {
        let owner = if kind.is_of_user() { "ann" } else { "box" };
        assert_eq!(disk.row(kind, owner, b"key").unwrap().as_deref(), Some(name.as_bytes()));
        assert_eq!(disk.row(kind, owner, b"large").unwrap(), Some(vec![u8::try_from(at).unwrap(); 5_000]));
        assert_eq!(disk.row(kind, owner, b"nothing").unwrap(), Some(Vec::new()));
        assert_eq!(disk.numbered(kind, "bob", 9).unwrap(), [(1, name.as_bytes().to_vec())]);
    }
    assert_eq!(disk.damaged(), 0);
}

#[tokio::test]
async fn a_store_of_version_1_is_brought_to_the_present_one() {
    let folder = old_store();
    let before = raw(folder.path(), |opened| {
        assert_eq!(schema::version(opened).unwrap(), Some(1), "the fixture");
        rows_of(opened)
    });
    // The unfinished copy of a migration that was killed.
    let beside = folder.path().with_extension("new");
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("data.mdb"), "half").unwrap();
    for _ in 0..2 {
        let store = Store::open(folder.path(), SIZE_MIB).unwrap();
        assert_whole(&store);
        store.close().await.unwrap();
    }
    assert!(!beside.exists());
    let after = raw(folder.path(), |opened| {
        assert_eq!(schema::version(opened).unwrap(), Some(2));
        rows_of(opened)
    });
    assert_eq!(before.len(), after.len());
    for ((table, key, old), (_, _, new)) in before.iter().zip(&after) {
        assert_eq!(unseal(key, new), Some(old.as_slice()), "{table}");
    }
    assert!(check(folder.path(), SIZE_MIB, None).unwrap().is_empty());
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    let note = NoteRecord { text: "new".into(), created_wall_ms: 0 };
    assert_eq!(store.write(Write::AddNote { user: "ann".into(), note }).await.unwrap(), 4);
}

#[tokio::test]
async fn a_store_of_version_2_is_read_as_it_is() {
    let folder = copy_of(V2);
    let before = raw(folder.path(), rows_of);
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    assert_whole(&store);
    assert_eq!(store.disk().rows(Kind::DeviceSessions, "ann", b"", 9).unwrap().len(), 1);
    store.close().await.unwrap();
    assert_eq!(raw(folder.path(), rows_of), before);
}

/// All raw LMDB rows.
fn rows_of(opened: &Opened) -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let txn = opened.env.read_txn().unwrap();
    let mut out = Vec::new();
    for table in opened.tables() {
        for row in table.raw.iter(&txn).unwrap() {
            let (key, value) = row.unwrap();
            out.push((table.name, key.to_vec(), value.to_vec()));
        }
    }
    out
}

/// The layout of rkyv is part of the stored form: a value is always encoded to the same bytes.
#[test]
fn records_are_laid_out_as_version_1_has_written_them() {
    fn again<T>(value: &[u8]) -> Vec<u8>
    where
        T: rkyv::Archive
            + for<'a> rkyv::Serialize<
                rkyv::api::high::HighSerializer<
                    rkyv::util::AlignedVec,
                    rkyv::ser::allocator::ArenaHandle<'a>,
                    rkyv::rancor::Error,
                >,
            >,
        T::Archived: for<'a> rkyv::bytecheck::CheckBytes<rkyv::api::high::HighValidator<'a, rkyv::rancor::Error>>
            + rkyv::Deserialize<T, rkyv::api::high::HighDeserializer<rkyv::rancor::Error>>,
    {
        let record = decode::<T>(value).expect("it is valid");
        rkyv::to_bytes::<rkyv::rancor::Error>(&record).unwrap().to_vec()
    }
    let folder = old_store();
    let mut seen = 0;
    for (table, _, value) in raw(folder.path(), rows_of) {
        let written = match table {
            "devices" => again::<DeviceRecord>(&value),
            "messages" => again::<MessageRecord>(&value),
            "entries" => again::<records::EntryRecord>(&value),
            "notes" => again::<NoteRecord>(&value),
            _ => continue,
        };
        assert_eq!(written, value, "{table}");
        seen += 1;
    }
    assert_eq!(seen, 2 + 3 + 2 + 2);
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_a_damaged_version_is_not() {
    let folder = old_store();
    migrations::open(folder.path(), SIZE_MIB, &Damage::default()).unwrap().close();
    let set = |first: &[u8], again: &[u8]| {
        raw(folder.path(), |opened| {
            let mut txn = opened.env.write_txn().unwrap();
            opened.meta.put(&mut txn, "schema", first).unwrap();
            opened.meta.put(&mut txn, "schema-again", again).unwrap();
            txn.commit().unwrap();
        });
        migrations::open(folder.path(), SIZE_MIB, &Damage::default()).map(Opened::close)
    };
    let two = 2_u32.to_le_bytes();
    for damaged in [[0, 0, 0, 0], [1, 0, 0, 0], [3, 0, 0, 0], [2, 0, 0, 1], [0xff; 4]] {
        assert!(set(&damaged, &two).is_ok(), "{damaged:?}");
        assert!(set(&two, &damaged).is_ok(), "{damaged:?}");
    }
    let error = set(&[3, 0, 0, 0], &[3, 0, 0, 0]).unwrap_err();
    assert!(matches!(error, Error::Schema { found: 3, expected: 2 }), "{error}");
}

/// Flips a bit of one row's value in each table, as a worn disk does. Returns the number of changed rows.
fn damage(folder: &Path) -> usize {
    raw(folder, |opened| {
        let first: Vec<_> = opened
            .tables()
            .map(|table| {
                let txn = opened.env.read_txn().unwrap();
                let mut rows = table.raw.iter(&txn).unwrap().map(Result::unwrap);
                let (key, value) = rows.find(|(key, _)| !key.starts_with(b"\x03bob")).unwrap();
                let mut value = value.to_vec();
                value[0] ^= 4;
                (table, key.to_vec(), value)
            })
            .collect();
        let mut txn = opened.env.write_txn().unwrap();
        for (table, key, value) in &first {
            table.raw.put(&mut txn, key, value).unwrap();
        }
        txn.commit().unwrap();
        first.len()
    })
}

/// Writes another value over a row, without its checksum.
pub(crate) fn spoil(store: &Store, kind: Kind, owner: &str, key: &[u8]) {
    let spoilt = store.disk().with(|opened| {
        let mut txn = opened.env.write_txn()?;
        let table = opened.rows.of(kind);
        table.raw.put(&mut txn, &rows::full_key(table.name, owner, key)?, b"nonsense")?;
        Ok(txn.commit()?)
    });
    spoilt.unwrap();
}

#[tokio::test]
async fn one_damaged_row_in_each_table_stops_nothing() {
    let folder = old_store();
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    // Tables of later versions need rows too.
    for (kind, name) in KINDS.into_iter().skip(14) {
        let name = name.as_bytes().to_vec();
        for (key, value) in [("key", name.clone()), ("large", vec![14; 5_000]), ("nothing", Vec::new())] {
            let key = key.as_bytes().to_vec();
            store.write(Write::PutRow { kind, owner: "ann".to_owned(), key, value }).await.unwrap();
        }
        store.write(Write::AppendRow { kind, owner: "bob".to_owned(), value: name }).await.unwrap();
    }
    store.close().await.unwrap();
    let damaged = damage(folder.path());
    assert_eq!(damaged, 4 + KINDS.len());
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    let disk = store.disk();
    // Reads leave it out.
    let devices = disk.devices().unwrap();
    assert_eq!(devices.iter().map(|(id, _)| &id[..2]).collect::<Vec<_>>(), ["bb"]);
    assert_eq!(disk.device(&"aa".repeat(16)).unwrap(), None);
    assert_eq!(disk.entries("ann").unwrap().iter().map(|entry| entry.id).collect::<Vec<_>>(), [2]);
    assert_eq!(disk.notes("ann", 9, |_| true).unwrap().len(), 1);
    assert_eq!(disk.note("ann", 2).unwrap(), None);
    let conversations = disk.conversations("ann").unwrap();
    assert_eq!(conversations.iter().map(|one| one.id).collect::<Vec<_>>(), [2]);
    assert_eq!(disk.messages("ann", 9).unwrap().len(), 2);
    assert_eq!(disk.messages_of("ann", &conversations[0]).unwrap().len(), 1);
    for (kind, name) in KINDS.into_iter().filter(|(kind, _)| *kind != Kind::Conversations) {
        let owner = if kind.is_of_user() { "ann" } else { "box" };
        assert!(matches!(disk.row(kind, owner, b"key"), Err(Error::Damaged { database }) if database == name));
        assert_eq!(disk.rows(kind, owner, b"", 9).unwrap().len(), 2);
        assert_eq!(disk.keys(kind, owner, 9).unwrap().len(), 3, "what is switched off stays so");
        assert!(disk.owners(kind).unwrap().contains(&owner.to_owned()));
    }
    assert_eq!(disk.damaged(), damaged, "each is counted once");
    // Writes go on, also behind a damaged row.
    let note = || NoteRecord { text: "new".into(), created_wall_ms: 0 };
    assert_eq!(store.write(Write::AddNote { user: "ann".into(), note: note() }).await.unwrap(), 4);
    let messages = vec![MessageRecord { wall_ms: 9, json: "{}".into() }];
    store.write(Write::AppendMessages { user: "ann".into(), messages, title: "t".into() }).await.unwrap();
    assert_eq!(disk.conversations("ann").unwrap()[0].messages, 2);
    let add = |kind| Write::AddRow { kind, owner: "bob".into(), value: vec![1] };
    assert_eq!(store.write(add(Kind::Facts)).await.unwrap(), 2);
    let record = DeviceRecord { revoked: true, ..devices[0].1.clone() };
    store.write(Write::PutDevice { id: "bb".repeat(16), device: record }).await.unwrap();
    // A copy keeps damaged rows, except those that may belong to the erased user.
    store.erase(Scope::User { user: "bob".into(), devices: false }).await.unwrap();
    assert_eq!(store.disk().notes("ann", 9, |_| true).unwrap().len(), 2);
    store.close().await.unwrap();

    let listed = check(folder.path(), SIZE_MIB, None).unwrap();
    assert_eq!(listed.len(), damaged - 1, "the catalogue's went with the erasure");
    assert!(listed.iter().all(|row| row.bytes_changed));
    let notes = listed.iter().find(|row| row.table == "notes").unwrap();
    assert_eq!(notes.id, "ann 2");
    let aside = folder.path().join("aside.jsonl");
    assert_eq!(check(folder.path(), SIZE_MIB, Some(&aside)).unwrap(), listed);
    assert_eq!(fs::read_to_string(&aside).unwrap().lines().count(), listed.len());
    assert!(check(folder.path(), SIZE_MIB, None).unwrap().is_empty());
    let again = Store::open(folder.path(), SIZE_MIB).unwrap();
    assert_eq!(again.disk().notes("ann", 9, |_| true).unwrap().len(), 2);
}

/// Moves Ann's row of each kind to every key that differs from its own in one bit.
fn flip_keys(folder: &Path, key: &[u8]) {
    raw(folder, |opened| {
        let mut txn = opened.env.write_txn().unwrap();
        for (kind, name) in KINDS {
            let table = opened.rows.of(kind);
            let own = rows::full_key(name, "ann", key).unwrap();
            let stored = table.raw.get(&txn, &own).unwrap().unwrap().to_vec();
            assert!(table.delete(&mut txn, &own).unwrap());
            for bit in 0..own.len() * 8 {
                let mut flipped = own.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                table.raw.put(&mut txn, &flipped, &stored).unwrap();
            }
        }
        txn.commit().unwrap();
    });
}

#[tokio::test]
async fn a_flipped_bit_in_a_key_keeps_no_gateway_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    // Owners whose names are too long fit into it.
    let key = vec![b'k'; 140];
    for (kind, _) in KINDS {
        let (owner, key, value) = ("ann".to_owned(), key.clone(), b"{}".to_vec());
        store.write(Write::PutRow { kind, owner, key, value }).await.unwrap();
    }
    store.close().await.unwrap();
    flip_keys(folder.path(), &key);
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    for (kind, name) in KINDS {
        let owners = store.disk().owners(kind).unwrap();
        assert!(owners.iter().any(|owner| owner == "ann"), "{name}");
        assert!(owners.iter().all(|owner| owner.len() <= names::NAME_BYTES_MAX), "{name}: {owners:?}");
    }
    assert_eq!(store.disk().damaged(), 5 * KINDS.len(), "two names are too long, and three are no text");
    // Everything that a start reads.
    drop(rustls::crypto::ring::default_provider().install_default());
    let (registry, client) = (Arc::<Registry>::default(), Arc::new(Client::new().unwrap()));
    Installed::load(store.clone(), registry.clone(), client, BTreeMap::new()).unwrap();
    StoredSwitches::load(store.clone(), registry.clone()).unwrap();
    Preferences::load(store.clone()).unwrap();
    let runs = Arc::new(StoredRuns::load(store.clone(), Arc::new(SystemClock)).unwrap());
    let of_programs = (registry, None);
    StoredRoutines::load((store.clone(), runs.clone()), Arc::new(SystemClock), of_programs, "en").unwrap();
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    let left = journal.tell_of_open(&StoredLedger(store.clone()), &runs).unwrap();
    StoredSessions::read(&store, 1_000, left).unwrap();
}

#[tokio::test]
async fn a_counter_that_is_damaged_gives_no_number_twice() {
    let folder = tempfile::tempdir().unwrap();
    let add = || Write::AddRow { kind: Kind::Facts, owner: "ann".into(), value: vec![1] };
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    for wanted in [1, 2, 3] {
        assert_eq!(store.write(add()).await.unwrap(), wanted);
    }
    store.close().await.unwrap();
    raw(folder.path(), |opened| {
        let mut txn = opened.env.write_txn().unwrap();
        let table = opened.rows.of(Kind::Facts);
        let counter = rows::full_key(table.name, "ann", rows::COUNTER).unwrap();
        table.raw.put(&mut txn, &counter, b"nonsense").unwrap();
        txn.commit().unwrap();
    });
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    assert_eq!(store.write(add()).await.unwrap(), 4);
    store.close().await.unwrap();
    // A bit of its key.
    raw(folder.path(), |opened| {
        let mut txn = opened.env.write_txn().unwrap();
        let table = opened.rows.of(Kind::Facts);
        let counter = rows::full_key(table.name, "ann", rows::COUNTER).unwrap();
        let flipped = rows::full_key(table.name, "ann", b"\x7f").unwrap();
        let stored = table.raw.get(&txn, &counter).unwrap().unwrap().to_vec();
        assert!(table.delete(&mut txn, &counter).unwrap());
        table.raw.put(&mut txn, &flipped, &stored).unwrap();
        txn.commit().unwrap();
    });
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    assert_eq!(store.write(add()).await.unwrap(), 5);
}

/// Moves Ann's row of this number to the number that differs from it in one bit.
fn flip_number(folder: &Path, table: &str, number: u64, bit: u32) {
    raw(folder, |opened| {
        let table = opened.tables().find(|one| one.name == table).unwrap();
        let [own, flipped] = [number, number ^ (1 << bit)].map(|number| user_key("ann", number).unwrap());
        let mut txn = opened.env.write_txn().unwrap();
        let stored = table.raw.get(&txn, &own).unwrap().unwrap().to_vec();
        assert!(table.raw.get(&txn, &flipped).unwrap().is_none());
        assert!(table.delete(&mut txn, &own).unwrap());
        table.raw.put(&mut txn, &flipped, &stored).unwrap();
        txn.commit().unwrap();
    });
}

#[tokio::test]
async fn a_flipped_bit_in_the_last_number_drops_no_row_and_overwrites_none() {
    let folder = tempfile::tempdir().unwrap();
    let append = || Write::AppendRowWithin { kind: Kind::Ledger, owner: "ann".into(), value: vec![7], rows_max: 100 };
    let note = || Write::AddNote { user: "ann".into(), note: NoteRecord { text: "x".into(), created_wall_ms: 0 } };
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    for wanted in 1..=5 {
        assert_eq!(store.write(append()).await.unwrap(), wanted);
        assert_eq!(store.write(note()).await.unwrap(), wanted);
    }
    store.close().await.unwrap();
    for table in ["ledger", "notes"] {
        flip_number(folder.path(), table, 5, 40);
        // To 6: the number is taken, although it is not readable.
        flip_number(folder.path(), table, 4, 1);
    }
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    for wanted in [4, 5, 7, 8] {
        assert_eq!(store.write(append()).await.unwrap(), wanted);
        assert_eq!(store.write(note()).await.unwrap(), wanted);
    }
    let kept: Vec<u64> = store.disk().numbered(Kind::Ledger, "ann", 99).unwrap().iter().map(|(id, _)| *id).collect();
    assert_eq!(kept, [1, 2, 3, 4, 5, 7, 8]);
    let kept: Vec<u64> = store.disk().notes("ann", 99, |_| true).unwrap().iter().map(|(id, _)| *id).collect();
    assert_eq!(kept, [8, 7, 5, 4, 3, 2, 1]);
    store.close().await.unwrap();
    assert_eq!(check(folder.path(), SIZE_MIB, None).unwrap().len(), 4, "all can still be set aside");
}

#[tokio::test]
async fn a_flipped_bit_in_a_number_leaves_each_message_in_its_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let say = |texts: &[&str]| {
        let messages = texts.iter().map(|text| MessageRecord { wall_ms: 1, json: (*text).to_owned() }).collect();
        Write::AppendMessages { user: "ann".into(), messages, title: "t".into() }
    };
    let begin = || Write::BeginConversation { user: "ann".into(), wall_ms: 1 };
    let all = |store: &Store| -> Vec<(u64, String)> {
        let disk = store.disk();
        let texts = |one: &Conversation| disk.messages_of("ann", one).unwrap().into_iter().map(|message| message.json);
        disk.conversations("ann").unwrap().iter().map(|one| (one.id, texts(one).collect())).collect()
    };
    let told = |wanted: &[(u64, &str)]| -> Vec<(u64, String)> {
        wanted.iter().map(|(id, texts)| (*id, (*texts).to_owned())).collect()
    };
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    store.write(say(&["a", "b", "c"])).await.unwrap();
    store.close().await.unwrap();
    flip_number(folder.path(), "messages", 3, 40);
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    store.write(say(&["d"])).await.unwrap();
    store.write(begin()).await.unwrap();
    store.write(say(&["e"])).await.unwrap();
    assert_eq!(all(&store), told(&[(1, "abd"), (2, "e")]));
    store.close().await.unwrap();
    // The last message of a conversation that is over: its id is given to none of the next one.
    flip_number(folder.path(), "messages", 5, 50);
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    store.write(begin()).await.unwrap();
    store.write(say(&["f"])).await.unwrap();
    assert_eq!(all(&store), told(&[(1, "abd"), (2, ""), (3, "f")]));
    store.close().await.unwrap();
    // To 4 more, among those of the messages that follow.
    flip_number(folder.path(), "messages", 6, 3);
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    for texts in [&["g", "h"][..], &["i", "j", "k", "l", "m", "n", "o", "p"]] {
        store.write(say(texts)).await.unwrap();
    }
    assert_eq!(all(&store), told(&[(1, "abd"), (2, ""), (3, "ghijklmnop")]));
    store.close().await.unwrap();
    // The row of the conversation: the next message begins another one, in which the one after it is too.
    flip_number(folder.path(), "conversations", 3, 40);
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    store.write(say(&["q"])).await.unwrap();
    store.write(say(&["r"])).await.unwrap();
    assert_eq!(all(&store), told(&[(1, "abd"), (2, ""), (4, "qr")]));
    assert_eq!(store.disk().latest_conversation("ann").unwrap().map(|one| one.id), Some(4));
    store.close().await.unwrap();
    assert_eq!(check(folder.path(), SIZE_MIB, None).unwrap().len(), 4, "all can still be set aside");
}

#[tokio::test]
async fn a_full_store_takes_revocations() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), 4).unwrap();
    let put = |number: usize, model: &str, revoked| {
        let (name, user, model) = (format!("glasses {number}"), "ann".to_owned(), model.to_owned());
        let device = DeviceRecord { key: [7; 32], name, user, model, paired_wall_ms: 0, revoked };
        Write::PutDevice { id: format!("{number:032x}"), device }
    };
    for number in 0..20 {
        store.write(put(number, "G1", false)).await.unwrap();
    }
    let note = |bytes: usize| NoteRecord { text: "x".repeat(bytes), created_wall_ms: 0 };
    let mut bytes = 64 * 1024;
    loop {
        match store.write(Write::AddNote { user: "filler".into(), note: note(bytes) }).await {
            Ok(_) => {}
            Err(Error::Full(_)) if bytes > 0 => bytes /= 2,
            Err(Error::Full(_)) => break,
            Err(error) => panic!("{error}"),
        }
    }
    // A record that needs another page does not fit, unless it revokes a device.
    let long = "x".repeat(1_024);
    let mut refused = 0;
    for number in 0..20 {
        match store.write(put(number, &long, false)).await {
            Ok(_) => {}
            Err(Error::Full(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        store.write(put(number, &long, true)).await.unwrap();
    }
    assert!(refused > 0, "it was full");
    let more = store.write(Write::AddNote { user: "filler".into(), note: note(64 * 1024) }).await;
    assert!(matches!(more, Err(Error::Full(_))), "the reserve is for revocations");
    store.close().await.unwrap();
    let again = Store::open(folder.path(), 4).unwrap();
    assert!(again.disk().devices().unwrap().iter().all(|(_, device)| device.revoked));
}

#[tokio::test]
async fn rows_are_put_together_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), SIZE_MIB).unwrap();
    let put = |owner: &str, rows: &[(&str, &str)]| {
        let rows = rows.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
        let (kind, prefix, owner) = (Kind::AppStorage, b"app\0".to_vec(), owner.to_owned());
        Write::PutRows(RowsWithin { kind, owner, prefix, rows, rows_max: 3, bytes_max: 12 })
    };
    let count = |owner| store.disk().rows(Kind::AppStorage, owner, b"", 9).unwrap().len();
    store.write(put("ann", &[("a", "1"), ("b", "2")])).await.unwrap();
    // One too many, and one byte too many; replaced rows count once.
    for too_much in [&[("a", "9"), ("c", "3"), ("d", "4")][..], &[("a", "9"), ("c", "3456789ab")]] {
        let error = store.write(put("ann", too_much)).await.unwrap_err();
        assert!(matches!(error, Error::TooMuch { .. }), "{error}");
        assert_eq!(count("ann"), 2);
        assert_eq!(store.disk().row(Kind::AppStorage, "ann", b"app\0a").unwrap(), Some(b"1".to_vec()));
    }
    store.write(put("ann", &[("a", "9"), ("c", "3")])).await.unwrap();
    // Rows with another prefix do not count.
    store.write(put("bob", &[("a", "1"), ("b", "2"), ("c", "3")])).await.unwrap();
    assert_eq!((count("ann"), count("bob")), (3, 3));
}
