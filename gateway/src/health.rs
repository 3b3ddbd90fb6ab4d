//! Whether the gateway works: its tasks and threads, its disk and its store, tried, and its file descriptors.

use std::{
    fs::read_dir,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};
use tokio::{
    fs,
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::{
    runtime::{essential::EssentialTasks, on_own_thread},
    store::{self, Store},
    units::number_of,
};

/// Bytes that there must be room for: those of a short conversation.
const TRIED_BYTES: usize = 64 * 1024;
/// Bytes that must be free on the disk: the store and the system's own files grow by less in a day.
pub(crate) const DISK_BYTES_MIN: u64 = 16 * 1024 * 1024;
/// File descriptors that must be free: for a few connections, and to open the store again after an erasure.
const DESCRIPTORS_MIN: u64 = 32;
/// How long a result is cached: more frequent requests cause no disk access.
const HOLDS: Duration = Duration::from_millis(500);
/// How long the success of a write to the store is cached: each wears the disk.
const WRITE_HOLDS: Duration = Duration::from_secs(10);
/// How long the disk and the store may take.
const TRIED_MS_MAX: u64 = 3_000;
/// The file that is written and removed.
const FILE: &str = ".health";
/// In the data folder: the record of the erasures that are under way.
pub(crate) const ERASURES: &str = "erasing.json";
/// How long an erasure may take; a store of 1 GiB on a card takes minutes.
const ERASURE_MAX: Duration = Duration::from_secs(15 * 60);
/// In the data folder: records of erasures that could not be read.
pub(crate) const ERASURES_DAMAGED: &str = "erasing.json.damaged";

/// What does not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// `gateway` (its tasks and threads), `users` (their tasks), `disk`, `store`, `descriptors` or `erasures`.
    pub part: String,
    /// Why, and what to do.
    pub why: String,
    /// Whether a new start of the gateway may repair it. It makes no room on a disk.
    #[serde(skip)]
    pub is_repaired_by_restart: bool,
}

/// How many there are at this moment.
type Count = Box<dyn Fn() -> usize + Send + Sync>;

/// What was found last.
#[derive(Default)]
pub struct Health {
    essential: Arc<EssentialTasks>,
    /// Users whose tasks are down.
    users_down: Option<Count>,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    last: Option<(Instant, Vec<Problem>)>,
    written: Option<Instant>,
    /// Rows that erasures in the store had looked at.
    copied: u64,
    erasures: Option<Seen>,
}

/// The record of erasures: the time of its last change, and when it was seen with it first.
type Seen = (SystemTime, Instant);

impl Found {
    /// Whether the store's thread goes on with an erasure since this was asked last. A full store on a card takes minutes,
    /// and a restart in the middle would only begin it again.
    fn is_erasing(&mut self, copied: u64) -> bool {
        std::mem::replace(&mut self.copied, copied) != copied
    }
}

impl Health {
    /// Nothing is tried yet. `users_down` counts the users whose tasks have panicked and do not run.
    pub(crate) fn new(essential: Arc<EssentialTasks>, users_down: impl Fn() -> usize + Send + Sync + 'static) -> Self {
        Self { essential, users_down: Some(Box::new(users_down)), ..Self::default() }
    }

    /// What does not work at this moment.
    pub async fn problems(&self, data_dir: &Path, store: &Store) -> Vec<Problem> {
        // Held while it is tried: one at a time.
        let mut found = self.found.lock().await;
        if let Some((at, problems)) = &found.last
            && at.elapsed() < HOLDS
        {
            return problems.clone();
        }
        let within = Duration::from_millis(TRIED_MS_MAX);
        let disk = timeout(within, disk(data_dir)).await.unwrap_or_else(|_elapsed| Err(late("the disk")));
        let is_due = found.written.is_none_or(|at| at.elapsed() >= WRITE_HOLDS);
        let answered = timeout(within, tried(store, is_due)).await;
        let is_erasing = found.is_erasing(store.disk().copied());
        let (store, is_stuck) = match answered {
            Err(_elapsed) if is_erasing => {
                (Err("an erasure is under way: what is written waits for it".to_owned()), false)
            }
            Err(_elapsed) => (Err(late("the store")), true),
            Ok(Err(error)) => (Err(error.to_string()), matches!(error, store::Error::Closed)),
            Ok(Ok(())) => (Ok(()), false),
        };
        if store.is_err() {
            found.written = None;
        } else if is_due {
            found.written = Some(Instant::now());
        }
        let problem = |part: &str, is_repaired_by_restart, tried: Result<(), String>| {
            tried.err().map(|why| Problem { part: part.to_owned(), why, is_repaired_by_restart })
        };
        let all = [
            problem("gateway", true, gateway(self.essential.ended())),
            // Each was started again from what is stored, as by a restart, which would end the sessions of all others.
            problem("users", false, users(self.users_down.as_ref().map_or(0, |count| count()))),
            problem("disk", false, disk),
            problem("store", is_stuck, store),
            problem("descriptors", false, enough_descriptors(descriptors().await)),
            problem("erasures", false, erasures(data_dir, &mut found.erasures, Instant::now()).await),
        ];
        let problems: Vec<Problem> = all.into_iter().flatten().collect();
        found.last = Some((Instant::now(), problems.clone()));
        problems
    }
}

fn gateway(ended: Option<&str>) -> Result<(), String> {
    let Some(part) = ended else { return Ok(()) };
    Err(format!("a part that it cannot do without ended by itself: {part}; start it again"))
}

fn users(down: usize) -> Result<(), String> {
    if down == 0 {
        return Ok(());
    }
    Err(format!(
        "the tasks of {} panicked and were not started again: what is due is not told to them until somebody needs them; \
         the log says who and why",
        number_of(down, "user")
    ))
}

/// Whether the store has room, and, where that is due, whether it commits a write.
async fn tried(store: &Store, is_due: bool) -> Result<(), store::Error> {
    store.try_room(TRIED_BYTES).await?;
    if is_due { store.try_write().await } else { Ok(()) }
}

/// Open file descriptors of this process, and as many as it may have; `None` where the system does not say.
pub(crate) async fn descriptors() -> Option<(u64, u64)> {
    let count = || {
        let open = read_dir("/proc/self/fd").ok()?.count();
        Some((u64::try_from(open).ok()?, getrlimit(Resource::Nofile).current?))
    };
    on_own_thread(count).await.ok().flatten()
}

fn enough_descriptors(found: Option<(u64, u64)>) -> Result<(), String> {
    match found {
        Some((open, most)) if most.saturating_sub(open) < DESCRIPTORS_MIN => Err(format!(
            "{open} of {most} file descriptors are open; lower `limits.connections` or raise the limit of the system \
             (`LimitNOFILE` of systemd, `ulimit -n`)"
        )),
        _ => Ok(()),
    }
}

/// Whether every erasure that was asked for is known, and none is left undone. How long the record stays unchanged is
/// measured from the look that found it, since a clock that is set would make its file decades old.
async fn erasures(data_dir: &Path, seen: &mut Option<Seen>, now: Instant) -> Result<(), String> {
    let aside = data_dir.join(ERASURES_DAMAGED);
    if fs::try_exists(&aside).await.unwrap_or_default() {
        return Err(format!(
            "the record of erasures that were under way was damaged: erase the users again whose erasure was not \
             finished, then remove {}",
            aside.display()
        ));
    }
    let recorded = fs::metadata(data_dir.join(ERASURES)).await.and_then(|there| there.modified());
    *seen = recorded.ok().map(|changed| match *seen {
        Some(known) if known.0 == changed => known,
        _ => (changed, now),
    });
    let age = seen.map_or(Duration::ZERO, |(_, since)| now.saturating_duration_since(since));
    if age <= ERASURE_MAX {
        return Ok(());
    }
    Err(format!(
        "the erasure of a user could not be finished for {} minutes: the user is kept out until it is; the log says \
         why",
        age.as_secs() / 60
    ))
}

fn late(what: &str) -> String {
    format!("{what} did not take {TRIED_BYTES} bytes within {} s", TRIED_MS_MAX / 1_000)
}

/// Whether a file can be written into the folder.
async fn disk(folder: &Path) -> Result<(), String> {
    let path = folder.join(FILE);
    // Not synced: a system that has no room for it says so when it takes it.
    let written = fs::write(&path, vec![0; TRIED_BYTES]).await;
    match fs::remove_file(&path).await {
        Err(error) if written.is_ok() && error.kind() != ErrorKind::NotFound => return Err(in_words(&error)),
        _ => {}
    }
    written.map_err(|error| in_words(&error))?;
    let folder = PathBuf::from(folder);
    match on_own_thread(move || space(&folder)).await {
        Ok(Some((free, _))) => enough_space(free),
        _ => Ok(()),
    }
}

fn enough_space(free: u64) -> Result<(), String> {
    if free >= DISK_BYTES_MIN {
        return Ok(());
    }
    Err(format!("the disk of the data folder has {} KiB left; free some space", free / 1024))
}

fn in_words(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "the disk of the data folder is full; free some space".to_owned()
        }
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            format!("the data folder cannot be written to: {error}")
        }
        ErrorKind::NotFound | ErrorKind::NotADirectory => "the data folder is gone".to_owned(),
        _ => format!("the data folder: {error}"),
    }
}

/// Bytes that are free for the data folder, and those of its whole disk.
pub(crate) fn space(folder: &Path) -> Option<(u64, u64)> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some((stat.f_bavail.saturating_mul(stat.f_frsize), stat.f_blocks.saturating_mul(stat.f_frsize)))
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test]
    async fn a_folder_that_is_gone_or_no_folder_is_told() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(disk(folder.path()).await, Ok(()));
        assert!(!folder.path().join(FILE).exists());
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        for gone in [folder.path().join("absent"), file] {
            assert_eq!(disk(&gone).await, Err("the data folder is gone".to_owned()), "{}", gone.display());
        }
        assert!(space(folder.path()).is_some_and(|(free, all)| free <= all && all > 0));
    }

    #[tokio::test]
    async fn a_record_of_erasures_that_was_damaged_is_told_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store"), 4).unwrap();
        let aside = folder.path().join(ERASURES_DAMAGED);
        std::fs::write(&aside, "{").unwrap();
        let problems = Health::default().problems(folder.path(), &store).await;
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert!(problem.part == "erasures" && problem.why.contains(ERASURES_DAMAGED), "{problem:?}");
        assert!(!problem.is_repaired_by_restart);
        std::fs::remove_file(&aside).unwrap();
        assert_eq!(Health::default().problems(folder.path(), &store).await, []);
    }

    #[tokio::test]
    async fn an_erasure_that_stays_undone_is_told_whatever_the_clock_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(ERASURES);
        let record = std::fs::File::create(&path).unwrap();
        let (mut seen, mut now) = (None, Instant::now());
        // The clock was decades behind, is right, or was set back.
        for changed in [SystemTime::UNIX_EPOCH, SystemTime::now(), SystemTime::now() + 2 * ERASURE_MAX] {
            record.set_modified(changed).unwrap();
            assert_eq!(erasures(folder.path(), &mut seen, now).await, Ok(()), "it has just begun");
            now += 2 * ERASURE_MAX;
            let told = erasures(folder.path(), &mut seen, now).await.unwrap_err();
            assert!(told.contains("for 30 minutes"), "{told}");
        }
        std::fs::remove_file(path).unwrap();
        assert_eq!(erasures(folder.path(), &mut seen, now).await, Ok(()));
        assert_eq!(seen, None);
    }

    #[tokio::test]
    async fn a_store_that_erases_is_not_stuck_as_long_as_it_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store"), 4).unwrap();
        let mut found = Found::default();
        assert!(!found.is_erasing(store.disk().copied()), "it does not answer for another reason");
        let note = crate::store::NoteRecord { text: "x".into(), created_wall_ms: 0 };
        store.write(crate::store::Write::AddNote { user: "ann".into(), note }).await.unwrap();
        store.erase(crate::store::Scope::Pairings).await.unwrap();
        assert!(found.is_erasing(store.disk().copied()));
        assert!(!found.is_erasing(store.disk().copied()), "it stands still");
    }

    #[test]
    fn what_gets_scarce_is_told() {
        assert_eq!((enough_space(DISK_BYTES_MIN), enough_descriptors(Some((10, 1024)))), (Ok(()), Ok(())));
        assert!(enough_space(DISK_BYTES_MIN - 1).unwrap_err().contains("16383 KiB"));
        assert!(enough_descriptors(Some((1000, 1024))).unwrap_err().contains("1000 of 1024"));
    }

    #[tokio::test]
    async fn open_descriptors_are_counted() {
        let (before, most) = descriptors().await.unwrap();
        let files: Vec<_> = (0..64).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let (after, _) = descriptors().await.unwrap();
        assert!(after >= before.max(64) && most >= after, "{before} {after} {most} {}", files.len());
    }

    #[tokio::test]
    async fn a_part_that_ended_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store"), 4).unwrap();
        let essential = EssentialTasks::new(CancellationToken::new());
        let health = Health::new(essential.clone(), || 0);
        essential.spawn("control", async {}).await.unwrap();
        let problems = health.problems(folder.path(), &store).await;
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert!(problem.part == "gateway" && problem.why.contains("control") && problem.is_repaired_by_restart);
    }

    #[tokio::test]
    async fn users_whose_tasks_are_down_are_counted_and_not_named() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store"), 4).unwrap();
        let problems = Health::new(Arc::default(), || 2).problems(folder.path(), &store).await;
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert!(problem.part == "users" && problem.why.contains("the tasks of 2 users panicked"), "{problem:?}");
        assert!(!problem.is_repaired_by_restart, "nobody else is cut off for it");
        assert_eq!(users(0), Ok(()));
    }

    #[tokio::test]
    async fn a_store_without_room_is_told_before_anything_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store"), 4).unwrap();
        assert_eq!(Health::default().problems(folder.path(), &store).await, []);
        let note = |bytes: usize| crate::store::Write::AddNote {
            user: "ann".into(),
            note: crate::store::NoteRecord { text: "x".repeat(bytes), created_wall_ms: 0 },
        };
        while store.write(note(TRIED_BYTES)).await.is_ok() {}
        let problems = Health::default().problems(folder.path(), &store).await;
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert_eq!(problem.part, "store");
        assert!(problem.why.contains("store.size_max_mib") && !problem.is_repaired_by_restart, "{problem:?}");
        store.close().await.unwrap();
        let problems = Health::default().problems(folder.path(), &store).await;
        assert!(matches!(problems.as_slice(), [closed] if closed.is_repaired_by_restart), "it is closed: {problems:?}");
    }
}
