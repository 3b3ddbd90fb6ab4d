//! The only writer: takes all waiting writes, commits them together, and answers each.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use gateway_core::vocab::ScheduleEntry;
use heed::RwTxn;

use super::{
    Disk, Error, conversations,
    copy::Scope,
    guard::{Reply, answer, caught},
    keys::{user_key, user_prefix},
    names,
    opened::Opened,
    queue::{self, Jobs, Queue},
    records::{DeviceRecord, EntryRecord, MessageRecord, NoteRecord},
    rows::{Kind, RowsWithin},
    table::Table,
    trial,
};

/// Writes that may wait: at a commit of 20 ms (an SD card) this is one second of a busy gateway.
const WAITING_MAX: usize = 1024;
/// Writes that share one commit: bounds how many are tried again after a failed one.
const GROUP_MAX: usize = 256;

/// Notes per user: more than years of dictating. Each search reads all of them.
const NOTES_MAX: u64 = 10_000;

/// A change to the store.
#[allow(missing_docs, reason = "the variants say what their fields are")]
#[derive(Clone, Debug)]
pub enum Write {
    /// Add or replace a device.
    PutDevice { id: String, device: DeviceRecord },
    /// Add or replace a device that is paired now, unless `users_max` other users have devices.
    PairDevice { id: String, device: DeviceRecord, users_max: usize },
    /// Give a device another name, and change nothing else of it; answered with 1 if there was one, else 0.
    RenameDevice { id: String, name: String },
    /// Append messages to a user's latest conversation, which has this title where it has none yet.
    AppendMessages { user: String, messages: Vec<MessageRecord>, title: String },
    /// Begin a conversation for a user's next messages; answered with its number.
    BeginConversation { user: String, wall_ms: i64 },
    /// Store the summary of a user's latest conversation without its newest `behind` messages.
    PutSummary { user: String, text: String, behind: usize },
    /// Drop a user's conversations.
    ClearMessages { user: String },
    /// Add or replace a timer or reminder.
    PutEntry { user: String, entry: ScheduleEntry },
    /// Drop a timer or reminder.
    RemoveEntry { user: String, id: u64 },
    /// Add a note; answered with its id.
    AddNote { user: String, note: NoteRecord },
    /// Drop a note; answered with 1 if there was one, else 0.
    RemoveNote { user: String, id: u64 },
    /// Drop all notes of a user; answered with their number.
    ClearNotes { user: String },
    /// Add or replace a row.
    PutRow { kind: Kind, owner: String, key: Vec<u8>, value: Vec<u8> },
    /// Add or replace rows, all or none, if their number and size stay within limits.
    PutRows(RowsWithin),
    /// Add a row under a number that the owner never used; answered with it.
    AddRow { kind: Kind, owner: String, value: Vec<u8> },
    /// Add a row under the owner's next number; answered with it.
    AppendRow { kind: Kind, owner: String, value: Vec<u8> },
    /// As `AppendRow`; of the owner's rows only the newest `rows_max` are kept.
    AppendRowWithin { kind: Kind, owner: String, value: Vec<u8>, rows_max: u64 },
    /// Drop a row; answered with 1 if there was one, else 0.
    RemoveRow { kind: Kind, owner: String, key: Vec<u8> },
    /// Drop the rows whose key begins with `prefix`; answered with their number.
    ClearRows { kind: Kind, owner: String, prefix: Vec<u8> },
}

impl Write {
    /// The user to whom it belongs; `None`: to the gateway.
    fn user(&self) -> Option<&str> {
        match self {
            // Revoking lost glasses must always work.
            Self::PutDevice { device, .. } => (!device.revoked).then_some(&device.user),
            Self::PairDevice { device, .. } => Some(&device.user),
            // It changes only what is there: a device that was erased does not come back.
            Self::RenameDevice { .. } => None,
            Self::AppendMessages { user, .. }
            | Self::BeginConversation { user, .. }
            | Self::PutSummary { user, .. }
            | Self::ClearMessages { user }
            | Self::PutEntry { user, .. }
            | Self::RemoveEntry { user, .. }
            | Self::AddNote { user, .. }
            | Self::RemoveNote { user, .. }
            | Self::ClearNotes { user } => Some(user),
            Self::PutRow { kind, owner, .. }
            | Self::AddRow { kind, owner, .. }
            | Self::AppendRow { kind, owner, .. }
            | Self::AppendRowWithin { kind, owner, .. }
            | Self::RemoveRow { kind, owner, .. }
            | Self::ClearRows { kind, owner, .. }
            | Self::PutRows(RowsWithin { kind, owner, .. }) => kind.is_of_user().then_some(owner),
        }
    }
}

/// Says what an erasure leaves out.
type FindScope = Box<dyn FnOnce(&Disk) -> Result<Scope, Error> + Send>;

/// A job of the writer.
pub(super) enum Job {
    Write(Write, Reply),
    /// Nothing: its answer says that everything before it is done.
    Flush(Reply),
    /// Test whether so many bytes fit.
    TryRoom(usize, Reply),
    /// Test whether a commit works.
    TryWrite(Reply),
    /// Replace the file by a copy without this, which is looked up when nothing more is written before it.
    Erase(FindScope, Reply),
    /// Close the environment and end: the last job.
    Close(Reply),
}

/// Users who are being erased, for whom nothing is written.
type Barred = Arc<Mutex<BTreeSet<String>>>;

#[derive(Clone)]
pub(super) struct Writer {
    queue: Queue<Job>,
    barred: Barred,
    thread: Arc<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(disk: Disk) -> Result<Self, Error> {
        let (queue, jobs) = queue::bounded(WAITING_MAX);
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || run(&disk, &jobs))
            .map_err(|source| Error::Folder { path: "store thread".to_owned(), source })?;
        Ok(Self { queue, barred: Barred::default(), thread: Arc::new(thread) })
    }

    pub(super) fn submit(&self, write: Write, reply: Reply) -> Result<(), Error> {
        // Held until it is queued: an accepted write comes before an erasure that is submitted after the user was barred.
        let barred = self.barred();
        if write.user().is_some_and(|user| barred.contains(user)) {
            return Err(Error::Erasing);
        }
        self.send(Job::Write(write, reply))
    }

    /// Queues a job. Writes go by [`submit`](Self::submit), which knows who is barred, and closing by
    /// [`close`](Self::close), which waits for room.
    pub(super) fn send(&self, job: Job) -> Result<(), Error> {
        self.queue.put(job)
    }

    /// Ends the writer after what was submitted before. If the queue is full, a thread of its own waits: closing
    /// must not be refused as busy. `reply` is dropped if the writer has ended already.
    pub(super) fn close(&self, reply: Reply) -> Result<(), Error> {
        let queue = self.queue.clone();
        thread::Builder::new()
            .name("store-close".to_owned())
            .spawn(move || queue.put_when_there_is_room(Job::Close(reply)))
            .map(drop)
            .map_err(|source| Error::Folder { path: "store-close thread".to_owned(), source })
    }

    /// Bars writes for this user, or allows them again.
    pub(super) fn bar(&self, user: &str, barred: bool) {
        if barred {
            self.barred().insert(user.to_owned());
        } else {
            self.barred().remove(user);
        }
    }

    pub(super) fn is_barred(&self, user: &str) -> bool {
        self.barred().contains(user)
    }

    fn barred(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.barred.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_running(&self) -> bool {
        !self.thread.is_finished()
    }

    pub(super) fn load(&self) -> (usize, u64) {
        self.queue.load()
    }
}

fn run(disk: &Disk, jobs: &Jobs<Job>) {
    let mut next = None;
    while let Some(first) = next.take().or_else(|| jobs.next()) {
        match first {
            Job::Flush(reply) => answer(reply, Ok(0)),
            Job::TryRoom(bytes, reply) => answer(reply, caught(|| trial::room(disk, bytes))),
            Job::TryWrite(reply) => answer(reply, caught(|| trial::write(disk))),
            Job::Erase(scope, reply) => answer(reply, caught(|| disk.erase(&scope(disk)?))),
            Job::Close(reply) => {
                disk.close();
                // Later submissions are not written.
                for Job::Write(_, reply)
                | Job::Flush(reply)
                | Job::TryRoom(_, reply)
                | Job::TryWrite(reply)
                | Job::Erase(_, reply)
                | Job::Close(reply) in std::iter::from_fn(|| jobs.waiting())
                {
                    answer(reply, Err(Error::Closed));
                }
                answer(reply, Ok(0));
                return;
            }
            Job::Write(write, reply) => {
                let mut group = vec![(write, reply)];
                while group.len() < GROUP_MAX {
                    match jobs.waiting() {
                        Some(Job::Write(write, reply)) => group.push((write, reply)),
                        other => {
                            next = other;
                            break;
                        }
                    }
                }
                commit_group(disk, group);
            }
        }
    }
}

fn commit_group(disk: &Disk, mut group: Vec<(Write, Reply)>) {
    match caught(|| commit(disk, group.iter().map(|(write, _)| write))) {
        Ok(ids) => {
            for ((_, reply), id) in group.into_iter().zip(ids) {
                answer(reply, Ok(id));
            }
        }
        // It may have been written: a second try might store it twice.
        Err(Error::Unknown) => {
            for (_, reply) in group {
                answer(reply, Err(Error::Unknown));
            }
        }
        // One bad write must not make the others fail: each is tried alone.
        Err(error) if group.len() > 1 => {
            tracing::debug!(%error, writes = group.len(), "a group commit failed; trying one by one");
            for (write, reply) in group {
                let tried = caught(|| commit_one(disk, &write));
                answer(reply, or_with_reserve(disk, &write, tried));
            }
        }
        Err(error) => {
            if let Some((write, reply)) = group.pop() {
                answer(reply, or_with_reserve(disk, &write, Err(error)));
            }
        }
    }
}

fn commit_one(disk: &Disk, write: &Write) -> Result<u64, Error> {
    commit(disk, std::iter::once(write)).map(|ids| ids.first().copied().unwrap_or(0))
}

/// The result of a write. A revocation that finds no room uses the reserve: a full store must not keep lost glasses
/// paired.
fn or_with_reserve(disk: &Disk, write: &Write, tried: Result<u64, Error>) -> Result<u64, Error> {
    match (tried, write) {
        (Err(Error::Full(_)), Write::PutDevice { device, .. }) if device.revoked => {
            disk.with_reserve(|| commit_one(disk, write))
        }
        (tried, _) => tried,
    }
}

fn commit<'a>(disk: &Disk, writes: impl Iterator<Item = &'a Write>) -> Result<Vec<u64>, Error> {
    disk.change(|opened| {
        let mut txn = opened.env.write_txn()?;
        let mut ids = Vec::new();
        for write in writes {
            ids.push(apply(opened, &mut txn, write)?);
        }
        txn.commit()?;
        Ok(ids)
    })
}

fn apply(disk: &Opened, txn: &mut RwTxn<'_>, write: &Write) -> Result<u64, Error> {
    match write {
        // Revoked while it was being erased: nothing is left to revoke, and nothing of it is stored again.
        Write::PutDevice { id, device } if device.revoked && disk.devices.raw.get(txn, id.as_bytes())?.is_none() => {
            Ok(0)
        }
        Write::PutDevice { id, device } => {
            check_name(disk, txn, id, device)?;
            disk.devices.put_record::<DeviceRecord>(txn, id.as_bytes(), device)?;
            Ok(0)
        }
        Write::PairDevice { id, device, users_max } => {
            names::check_users(&disk.devices_in(txn)?, &device.user, *users_max)?;
            check_name(disk, txn, id, device)?;
            disk.devices.put_record::<DeviceRecord>(txn, id.as_bytes(), device)?;
            Ok(0)
        }
        Write::RenameDevice { id, name } => rename(disk, txn, id, name),
        Write::AppendMessages { user, messages, title } => {
            conversations::append(disk, txn, user, messages, title).map(|()| 0)
        }
        Write::BeginConversation { user, wall_ms } => conversations::begin(disk, txn, user, *wall_ms),
        Write::PutSummary { user, text, behind } => conversations::summarise(disk, txn, user, text, *behind),
        Write::ClearMessages { user } => {
            disk.rows.clear(txn, Kind::Conversations, user, b"")?;
            disk.messages.clear(txn, &user_prefix(user)?)
        }
        Write::PutEntry { user, entry } => {
            let record = EntryRecord::from(entry);
            disk.entries.put_record(txn, &user_key(user, entry.id)?, &record)?;
            Ok(entry.id)
        }
        Write::RemoveEntry { user, id } => Ok(u64::from(disk.entries.delete(txn, &user_key(user, *id)?)?)),
        Write::AddNote { user, note } => {
            let id = disk.notes.next_number(txn, &user_prefix(user)?, 1)?;
            // Numbers go up: with a small one there cannot be many.
            if id > NOTES_MAX && count(&disk.notes, txn, user)? >= NOTES_MAX {
                return Err(Error::TooMany { what: "notes", max: NOTES_MAX });
            }
            disk.notes.put_record::<NoteRecord>(txn, &user_key(user, id)?, note)?;
            Ok(id)
        }
        Write::RemoveNote { user, id } => Ok(u64::from(disk.notes.delete(txn, &user_key(user, *id)?)?)),
        Write::ClearNotes { user } => disk.notes.clear(txn, &user_prefix(user)?),
        Write::PutRow { kind, owner, key, value } => disk.rows.put(txn, *kind, owner, key, value).map(|()| 0),
        Write::PutRows(rows) => disk.rows.put_within(txn, rows).map(|()| 0),
        Write::AddRow { kind, owner, value } => disk.rows.add(txn, *kind, owner, value),
        Write::AppendRow { kind, owner, value } => disk.rows.append(txn, *kind, owner, value),
        Write::AppendRowWithin { kind, owner, value, rows_max } => {
            let id = disk.rows.append(txn, *kind, owner, value)?;
            disk.rows.trim(txn, *kind, owner, id.saturating_sub(*rows_max))?;
            Ok(id)
        }
        Write::RemoveRow { kind, owner, key } => disk.rows.remove(txn, *kind, owner, key).map(u64::from),
        Write::ClearRows { kind, owner, prefix } => disk.rows.clear(txn, *kind, owner, prefix),
    }
}

/// Changes the record as it is now: it may have been revoked since the request was made.
fn rename(disk: &Opened, txn: &mut RwTxn<'_>, id: &str, name: &str) -> Result<u64, Error> {
    let Some(device) = disk.devices.get_record::<DeviceRecord>(txn, id.as_bytes())? else { return Ok(0) };
    let device = DeviceRecord { name: name.to_owned(), ..device };
    check_name(disk, txn, id, &device)?;
    disk.devices.put_record::<DeviceRecord>(txn, id.as_bytes(), &device)?;
    Ok(1)
}

/// A new name must be free. Devices that already share a name keep it until one is renamed.
fn check_name(disk: &Opened, txn: &RwTxn<'_>, id: &str, device: &DeviceRecord) -> Result<(), Error> {
    let others = disk.devices_in(txn)?;
    let is_old =
        |(other, record): &(String, DeviceRecord)| other == id && record.name == device.name && !record.revoked;
    if others.iter().any(is_old) {
        return Ok(());
    }
    if !device.revoked && names::is_taken(&others, Some(id), &device.name) {
        return Err(Error::NameTaken(device.name.clone()));
    }
    Ok(())
}

fn count(table: &Table, txn: &RwTxn<'_>, user: &str) -> Result<u64, Error> {
    Ok(table.keys(txn, &user_prefix(user)?)?.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    fn note(text: &str) -> Write {
        Write::AddNote { user: "ann".into(), note: NoteRecord { text: text.into(), created_wall_ms: 0 } }
    }

    fn device(user: &str, revoked: bool) -> DeviceRecord {
        DeviceRecord {
            key: [7; 32],
            name: format!("glasses of {user}"),
            user: user.to_owned(),
            model: "G1".to_owned(),
            paired_wall_ms: 0,
            revoked,
        }
    }

    #[tokio::test]
    async fn a_panicking_receiver_does_not_end_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        store.submit(note("one"), |_| panic!("on purpose")).unwrap();
        store.write(note("two")).await.unwrap();
        assert!(store.is_running());
        assert_eq!(store.disk().notes("ann", 9, |_| true).unwrap().len(), 2);
        store.close().await.unwrap();
    }

    #[tokio::test]
    async fn what_waits_and_what_was_refused_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        // The writer is held at its first job.
        use std::sync::mpsc::sync_channel;
        let (held, release) = sync_channel::<()>(0);
        let (begun, has_begun) = sync_channel::<()>(1);
        store
            .submit(note("one"), move |_| {
                begun.send(()).unwrap();
                let _ = held.send(());
            })
            .unwrap();
        has_begun.recv().unwrap();
        assert_eq!(store.load(), (0, 0));
        while store.submit(note("x"), |_| ()).is_ok() {}
        assert_eq!(store.load(), (WAITING_MAX, 1));
        release.recv().unwrap();
        store.close().await.unwrap();
        assert_eq!(store.load(), (0, 1));
    }

    #[tokio::test]
    async fn no_pairing_makes_one_user_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let pair = |user: &str| {
            store.write(Write::PairDevice { id: format!("id-of-{user}"), device: device(user, false), users_max: 2 })
        };
        // Grants that were made while there was one user: all three are used at once.
        let (ann, bob, eve) = tokio::join!(pair("ann"), pair("bob"), pair("eve"));
        assert!(ann.is_ok() && bob.is_ok());
        assert!(matches!(eve, Err(Error::TooManyUsers(2))), "{eve:?}");
        assert_eq!(store.disk().devices().unwrap().len(), 2);
        // Another device of a user who is there, and one for whom there is room again.
        pair("bob").await.unwrap();
        store.write(Write::PutDevice { id: "id-of-ann".to_owned(), device: device("ann", true) }).await.unwrap();
        pair("eve").await.unwrap();
        assert!(pair("ann").await.is_err());
    }

    #[tokio::test]
    async fn a_rename_does_not_undo_a_revocation_that_was_queued_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let put = |revoked| Write::PutDevice { id: "id-of-ann".to_owned(), device: device("ann", revoked) };
        let rename = |id: &str| Write::RenameDevice { id: id.to_owned(), name: "new".to_owned() };
        store.write(put(false)).await.unwrap();
        let (revoked, renamed, other) =
            tokio::join!(store.write(put(true)), store.write(rename("id-of-ann")), store.write(rename("no-id")));
        revoked.unwrap();
        assert_eq!((renamed.unwrap(), other.unwrap()), (1, 0));
        store.close().await.unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let renamed = DeviceRecord { name: "new".to_owned(), ..device("ann", true) };
        assert_eq!(store.disk().devices().unwrap(), [("id-of-ann".to_owned(), renamed)]);
    }

    #[tokio::test]
    async fn a_user_has_a_bounded_number_of_notes() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 64).unwrap();
        // In groups: one commit for each would take long.
        for start in (0..NOTES_MAX).step_by(WAITING_MAX / 2) {
            for _ in start..NOTES_MAX.min(start + WAITING_MAX as u64 / 2) {
                store.submit(note("x"), |added| assert!(added.is_ok())).unwrap();
            }
            store.settled().await.unwrap();
        }
        assert!(matches!(store.write(note("x")).await, Err(Error::TooMany { .. })));
        let other = NoteRecord { text: "x".into(), created_wall_ms: 0 };
        store.write(Write::AddNote { user: "bob".into(), note: other }).await.unwrap();
        store.write(Write::RemoveNote { user: "ann".into(), id: 5 }).await.unwrap();
        store.write(note("x")).await.unwrap();
        assert!(matches!(store.write(note("x")).await, Err(Error::TooMany { .. })));
    }
}
