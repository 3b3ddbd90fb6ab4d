//! Erasing everything of a user: recorded before it begins, carried on after a crash, and done when not one byte of it
//! is left in the data folder. docs/memory.md says what that is.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use device_protocol::GoodbyeReason;
use gateway_core::app_life::StopReason;
use serde::{Deserialize, Serialize};

use crate::{
    gate::Gate,
    photos,
    store::{Scope, Store},
};

/// How long devices may take to say goodbye, and apps to stop.
const GOODBYE_WAIT: Duration = Duration::from_secs(3);
/// Between two looks whether they have.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is being erased.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erasure {
    /// Whose.
    pub user: String,
    /// Also the pairings of the user's devices.
    pub devices: bool,
}

/// The record of an erasure that is under way: a file beside the store, since a record in the store would stay in its
/// pages.
fn record(data_dir: &Path) -> PathBuf {
    data_dir.join("erasing.json")
}

fn begin(data_dir: &Path, erasure: &Erasure) -> Result<()> {
    let path = record(data_dir);
    let new = path.with_extension("new");
    let mut file = fs::File::create(&new).with_context(|| format!("writing {}", new.display()))?;
    file.write_all(&serde_json::to_vec(erasure)?)?;
    file.sync_all()?;
    fs::rename(&new, &path)?;
    sync(data_dir)
}

fn end(data_dir: &Path) -> Result<()> {
    fs::remove_file(record(data_dir)).context("removing the record of the erasure")?;
    sync(data_dir)
}

fn sync(folder: &Path) -> Result<()> {
    fs::File::open(folder)?.sync_all().with_context(|| format!("syncing {}", folder.display()))
}

/// Carries on what the last run did not finish; before anything else uses the store.
///
/// # Errors
/// It cannot be finished now either: nothing may be served before it is.
pub async fn resume(data_dir: &Path, store: &Store) -> Result<()> {
    let path = record(data_dir);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    let erasure: Erasure = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is damaged: erase the user again and remove the file", path.display()))?;
    tracing::warn!("an erasure was interrupted; it is carried on");
    on_disk(data_dir, store, &erasure).await?;
    end(data_dir)
}

/// All files: photos and the store.
async fn on_disk(data_dir: &Path, store: &Store, erasure: &Erasure) -> Result<()> {
    photos::erase(data_dir, &erasure.user)?;
    let scope = Scope::User { user: erasure.user.clone(), devices: erasure.devices };
    store.erase(scope).await.context("erasing from the store")
}

/// Ends the user's sessions, apps and questions, erases everything, and lets the user in again.
///
/// # Errors
/// Not everything was erased. It is recorded, and carried on at the next start.
pub async fn everything(gate: &Gate, erasure: &Erasure) -> Result<()> {
    let Erasure { user, devices: _ } = erasure;
    let _one_at_a_time = gate.erasing.lock().await;
    begin(&gate.config.data_dir, erasure).context("nothing was erased, since the erasure cannot be recorded")?;
    let erased = erase(gate, erasure).await.context("not everything was erased; it goes on at the next start");
    // The user's glasses come back by themselves, also where something went wrong.
    gate.store.bar(user, false);
    gate.executor.in_flight().admit(user);
    gate.users.admit(user);
    erased
}

async fn erase(gate: &Gate, erasure: &Erasure) -> Result<()> {
    let Erasure { user, devices } = erasure;
    // Nothing new comes in, nothing more is written.
    gate.users.bar(user);
    gate.store.bar(user, true);
    // Calls and photos that are under way are dropped where they stand. What has not noticed in time finds the door
    // closed when it does.
    if tokio::time::timeout(GOODBYE_WAIT, gate.executor.in_flight().end(user)).await.is_err() {
        tracing::warn!("a call of the user goes on; nothing of it is written");
    }
    let paired = gate.store.disk().devices()?;
    let own = || paired.iter().filter(|(_, device)| device.user == *user).map(|(id, _)| id);
    let present = || gate.roster.all().into_iter().filter(|(_, present)| present.user == *user);
    let (reason, message) = match devices {
        true => (GoodbyeReason::Revoked, "everything of this user was erased, the pairing too"),
        false => (GoodbyeReason::ShuttingDown, "everything of this user is being erased; connect again in a moment"),
    };
    for (id, _) in present() {
        gate.roster.dismiss(&id, reason, message);
    }
    let gone = async {
        while present().next().is_some() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    if tokio::time::timeout(GOODBYE_WAIT, gone).await.is_err() {
        tracing::warn!("a device did not take its goodbye; what it still says is not written");
    }
    for package in gate.apps.states(user).into_keys() {
        gate.apps.stop(user, &package, StopReason::User).await;
    }
    on_disk(&gate.config.data_dir, &gate.store, erasure).await?;
    // What is in memory.
    gate.switches.erase(user);
    gate.memory.that.erase(user);
    gate.remembered.erase(user);
    for id in own() {
        gate.turns.erase(id);
    }
    end(&gate.config.data_dir)?;
    tracing::info!("everything of a user was erased");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{DeviceRecord, EntryRecord, Kind, MessageRecord, NoteRecord, Write};

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
        let entry = EntryRecord { reminder: true, text: text("entry"), due_wall_ms: i64::MAX, duration_ms: 0 };
        let mut writes = vec![
            Write::PutDevice { id: format!("id-of-{user}"), device },
            Write::BeginConversation { user: owner(), wall_ms: 1 },
            Write::AppendMessages {
                user: owner(),
                messages: vec![MessageRecord { wall_ms: 0, json: text("message") }],
                title: text("title"),
            },
            Write::PutEntry { user: owner(), id: 1, entry },
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

    fn open(folder: &Path) -> Store {
        Store::open(&folder.join("store"), 64).unwrap()
    }

    #[tokio::test]
    async fn not_one_byte_of_a_user_is_left() {
        for devices in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let store = open(folder.path());
            for user in ["ann", "anne"] {
                plant(&store, user).await;
                photos::keep(folder.path(), user, "image/jpeg", word(user, "photo").as_bytes()).unwrap();
            }
            // It sees what is to be seen, in free pages too.
            for place in ["message", "title", "note", "long", "dropped", "facts", "photo", "device"] {
                assert!(count(folder.path(), &word("ann", place)) > 0, "{place}");
            }
            let before = count(folder.path(), "zq-anne-");
            let erasure = Erasure { user: "ann".into(), devices };
            begin(folder.path(), &erasure).unwrap();
            on_disk(folder.path(), &store, &erasure).await.unwrap();
            end(folder.path()).unwrap();
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

    #[tokio::test]
    async fn an_erasure_that_was_interrupted_is_carried_on() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        plant(&store, "ann").await;
        plant(&store, "bob").await;
        // The process was killed after the record, and in the middle of the copy.
        begin(folder.path(), &Erasure { user: "ann".into(), devices: true }).unwrap();
        fs::create_dir_all(folder.path().join("store.new")).unwrap();
        fs::write(folder.path().join("store.new/data.mdb"), word("ann", "half a copy")).unwrap();
        resume(folder.path(), &store).await.unwrap();
        assert_eq!(count(folder.path(), &word("ann", "note")), 0);
        assert_eq!(count(folder.path(), &word("ann", "half a copy")), 0);
        assert_eq!(store.disk().notes("bob", 9, |_| true).unwrap().len(), 2);
        // Once more does nothing, and a damaged record is not passed over.
        resume(folder.path(), &store).await.unwrap();
        fs::write(record(folder.path()), "{").unwrap();
        assert!(resume(folder.path(), &store).await.is_err());
    }

    #[tokio::test]
    async fn nothing_is_written_of_a_user_who_is_being_erased() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
        let fact = |user: &str| Write::AddRow { kind: Kind::Facts, owner: user.into(), value: vec![1] };
        store.bar("ann", true);
        assert!(store.write(fact("ann")).await.unwrap_err().to_string().contains("erased"));
        store.write(fact("bob")).await.unwrap();
        store.bar("ann", false);
        store.write(fact("ann")).await.unwrap();
    }

    #[tokio::test]
    async fn reads_go_on_during_an_erasure() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path());
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
}
