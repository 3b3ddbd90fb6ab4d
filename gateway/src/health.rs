//! Whether the gateway can keep what it is told: its disk and its store, tried.

use std::{io::ErrorKind, path::Path, time::Duration};

use serde::{Deserialize, Serialize};
use tokio::{
    fs,
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::store::Store;

/// Bytes that there must be room for: those of a short conversation.
const TRIED_BYTES: usize = 64 * 1024;
/// How long a result is cached: more frequent requests cause no disk access.
const HOLDS: Duration = Duration::from_millis(500);
/// How long the disk and the store may take.
const TRIED_MS_MAX: u64 = 3_000;
/// The file that is written and removed.
const FILE: &str = ".health";

/// What does not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// `disk` or `store`.
    pub part: String,
    /// Why, and what to do.
    pub why: String,
}

/// What was found last.
#[derive(Default)]
pub struct Health(Mutex<Option<(Instant, Vec<Problem>)>>);

impl Health {
    /// What does not work at this moment.
    pub async fn problems(&self, data_dir: &Path, store: &Store) -> Vec<Problem> {
        // Held while it is tried: one at a time.
        let mut found = self.0.lock().await;
        if let Some((at, problems)) = found.as_ref()
            && at.elapsed() < HOLDS
        {
            return problems.clone();
        }
        let within = Duration::from_millis(TRIED_MS_MAX);
        let disk = timeout(within, disk(data_dir)).await.unwrap_or_else(|_elapsed| Err(late("the disk")));
        let store = timeout(within, store.try_room(TRIED_BYTES)).await;
        let store = store.map_or_else(|_elapsed| Err(late("the store")), |tried| tried.map_err(|e| e.to_string()));
        let problem =
            |part: &str, tried: Result<(), String>| tried.err().map(|why| Problem { part: part.to_owned(), why });
        let problems: Vec<Problem> = [problem("disk", disk), problem("store", store)].into_iter().flatten().collect();
        *found = Some((Instant::now(), problems.clone()));
        problems
    }
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
    written.map_err(|error| in_words(&error))
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
        assert!(problem.why.contains("store.size_max_mib"), "{problem:?}");
        store.close().await.unwrap();
        assert!(matches!(Health::default().problems(folder.path(), &store).await.as_slice(), [_]), "it is closed");
    }
}
