//! Rows of the store with valid checksums and any content.

use std::sync::{Arc, LazyLock};

use tokio_util::sync::CancellationToken;
use tools::catalogue::CatalogueStore as _;

use super::store;
use crate::{
    device_task::restart::StoredSessions,
    models::spending,
    ports::{
        journal::StoredJournal,
        memory::{self, StoredTexts},
        preferences::Preferences,
        records::{StoredCatalogue, StoredLedger, StoredSwitches},
        routines::StoredRoutines,
        runs::StoredRuns,
        stores::SystemClock,
    },
    store::{KINDS, Store},
};

/// Rows of one input.
const ROWS_MAX: usize = 16;

/// Rows: table, length of the key, key, length of the value (two bytes), value. Owners are `ann` where a key begins so.
pub fn rows(bytes: &[u8]) {
    static STORE: LazyLock<Store> = LazyLock::new(|| store("rows").0);
    let store = &*STORE;
    let mut rest = bytes;
    let mut rows = Vec::new();
    while let [table, key_bytes, after @ ..] = rest
        && rows.len() < ROWS_MAX
    {
        let (key, after) = after.split_at(usize::from(*key_bytes).min(after.len()));
        let Some((value_bytes, after)) = after.split_first_chunk() else { break };
        let (value, after) = after.split_at(usize::from(u16::from_le_bytes(*value_bytes)).min(after.len()));
        rest = after;
        if !key.is_empty() {
            rows.push((usize::from(*table), key, value));
        }
    }
    store.replace_all(&rows).expect("a small store has room");
    everything(store, rows.len()).expect("the store can be read");
}

/// Reads all that a gateway reads of its store.
fn everything(store: &Store, rows: usize) -> Result<(), crate::store::Error> {
    let disk = store.disk();
    assert!(disk.devices()?.len() <= rows);
    disk.device("ann")?;
    let mut users = disk.scheduled()?;
    users.push("ann".to_owned());
    for (kind, _) in KINDS {
        users.extend(disk.owners(kind)?);
    }
    users.sort_unstable();
    users.dedup();
    // Each row has at most one owner.
    assert!(users.len() <= rows + 1, "{users:?}");
    for user in &users {
        assert!(disk.entries(user)?.len() <= rows);
        assert!(disk.notes(user, 100, |_| true)?.len() <= rows);
        assert!(disk.messages(user, 100)?.len() <= rows);
        assert!(disk.messages_from(user, 0, 100)?.len() <= rows);
        for conversation in disk.conversations(user)? {
            assert!(disk.messages_of(user, &conversation)?.len() <= rows);
            disk.conversation(user, conversation.id)?;
        }
        for (kind, _) in KINDS {
            assert!(disk.rows(kind, user, b"", 100)?.len() <= rows);
            assert!(disk.numbered(kind, user, 100)?.len() <= rows);
        }
        StoredLedger(store.clone()).records(user, 0)?;
        spending::days(store, user, 10)?;
        StoredTexts::facts(store.clone()).index(user)?;
        StoredTexts::instructions(store.clone()).index(user)?;
        memory::search(store, user, "oven", 10)?;
    }
    spending::of(store, None, 20_000, 10)?;
    StoredSwitches::load(store.clone(), Arc::default())?;
    StoredCatalogue(store.clone()).last_revision().expect("it can be read");
    Preferences::load(store.clone())?;
    let runs = Arc::new(StoredRuns::load(store.clone(), Arc::new(SystemClock))?);
    for user in &users {
        assert!(runs.list(user)?.len() <= rows);
    }
    let routines =
        StoredRoutines::load((store.clone(), runs.clone()), Arc::new(SystemClock), (Arc::default(), None), "en")?;
    assert!(users.iter().map(|user| routines.of(user).len()).sum::<usize>() <= rows);
    let journal = StoredJournal::new(store.clone(), CancellationToken::new());
    StoredSessions::read(store, 1_000, journal.tell_of_open(&StoredLedger(store.clone()), &runs)?)?;
    Ok(())
}
