//! Files of programs on a real disk.

use std::{fs, os::unix::fs::symlink, pin::pin};

use futures_util::poll;
use tools::workspace::{FILES_MAX, FileEntry, FilePath, WORKSPACE_BYTES_MAX};

use super::*;

struct Fixture {
    data: tempfile::TempDir,
    in_flight: InFlight,
    workspaces: Workspaces,
}

impl Fixture {
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let in_flight = InFlight::default();
        let workspaces = Workspaces::start(data.path().to_owned(), in_flight.clone()).unwrap();
        Self { data, in_flight, workspaces }
    }

    async fn run(&self, request: FileRequest) -> Result<FileAnswer, FileError> {
        self.workspaces.run("ann", request).await
    }

    async fn write(&self, path: &str, content: &[u8]) -> Result<FileAnswer, FileError> {
        self.run(FileRequest::Write(at(path), content.to_vec())).await
    }

    async fn read(&self, path: &str) -> Result<Vec<u8>, FileError> {
        match self.run(FileRequest::Read(at(path))).await? {
            FileAnswer::Content(content) => Ok(content),
            other => panic!("{other:?}"),
        }
    }

    async fn names(&self, path: &str) -> Vec<String> {
        match self.run(FileRequest::List(at(path))).await.unwrap() {
            FileAnswer::Entries(entries) => {
                entries.into_iter().map(|entry| entry.name + if entry.is_folder { "/" } else { "" }).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn folder(&self) -> PathBuf {
        self.data.path().join("workspace/ann")
    }
}

fn at(path: &str) -> FilePath {
    FilePath::parse(path).unwrap()
}

#[tokio::test]
async fn files_are_written_read_listed_and_removed() {
    let fixture = Fixture::new();
    assert_eq!(fixture.names("").await, [""; 0]);
    assert_eq!(fixture.read("notes/a.txt").await, Err(FileError::NotFound("notes/a.txt".into())));
    fixture.write("notes/a.txt", b"one").await.unwrap();
    fixture.write("notes/a.txt", b"two").await.unwrap();
    fixture.run(FileRequest::Append(at("notes/a.txt"), b" three".to_vec())).await.unwrap();
    fixture.run(FileRequest::Append(at("b.csv"), b"x".to_vec())).await.unwrap();
    fixture.run(FileRequest::MakeFolder(at("empty/inner/"))).await.unwrap();
    fixture.run(FileRequest::MakeFolder(at("empty"))).await.unwrap();
    assert_eq!(fixture.read("notes/a.txt").await.unwrap(), b"two three");
    assert_eq!(fixture.names("").await, ["b.csv", "empty/", "notes/"]);
    let FileAnswer::Entry(FileEntry { name, is_folder, bytes, modified_wall_ms }) =
        fixture.run(FileRequest::Stat(at("notes/a.txt"))).await.unwrap()
    else {
        panic!("no entry")
    };
    assert_eq!((name.as_str(), is_folder, bytes), ("a.txt", false, 9));
    assert!(modified_wall_ms > 1_700_000_000_000);
    // Of another user nothing is seen.
    let other = fixture.workspaces.run("bob", FileRequest::Read(at("notes/a.txt"))).await;
    assert!(matches!(other, Err(FileError::NotFound(_))));
    for (path, kind) in [("notes", "not empty"), ("", "stays")] {
        let refused = fixture.run(FileRequest::Remove(at(path))).await.unwrap_err();
        assert!(matches!(&refused, FileError::Kind(why) if why.contains(kind)), "{refused:?}");
    }
    for path in ["notes/a.txt", "notes", "empty/inner"] {
        fixture.run(FileRequest::Remove(at(path))).await.unwrap();
    }
    assert_eq!(fixture.names("").await, ["b.csv", "empty/"]);
    for refused in
        [fixture.write("empty", b"").await, fixture.write("b.csv/c", b"").await, fixture.write("", b"").await]
    {
        assert!(matches!(refused, Err(FileError::Kind(_))), "{refused:?}");
    }
    assert!(matches!(fixture.read("empty").await, Err(FileError::Kind(_))));
}

#[tokio::test]
async fn no_link_is_followed_and_nothing_blocks() {
    let fixture = Fixture::new();
    fixture.write("inside", b"mine").await.unwrap();
    let secret = fixture.data.path().join("secret");
    fs::write(&secret, "private").unwrap();
    symlink(&secret, fixture.folder().join("file")).unwrap();
    symlink(fixture.data.path(), fixture.folder().join("folder")).unwrap();
    symlink("inside", fixture.folder().join("near")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, fixture.folder().join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    for path in ["file", "folder/secret", "near", "pipe"] {
        assert!(matches!(fixture.read(path).await, Err(FileError::Kind(_))), "{path}");
        assert!(matches!(fixture.run(FileRequest::Stat(at(path))).await, Err(FileError::Kind(_))), "{path}");
        assert!(matches!(fixture.write(path, b"x").await, Err(FileError::Kind(_))), "{path}");
    }
    assert!(matches!(fixture.run(FileRequest::List(at("folder"))).await, Err(FileError::Kind(_))));
    assert!(matches!(fixture.run(FileRequest::MakeFolder(at("folder/new"))).await, Err(FileError::Kind(_))));
    assert_eq!(fixture.names("").await, ["inside"]);
    assert_eq!(fs::read_to_string(secret).unwrap(), "private");
    assert!(!fixture.data.path().join("new").exists());
}

#[tokio::test]
async fn a_workspace_has_an_end() {
    let fixture = Fixture::new();
    let most = usize::try_from(WORKSPACE_BYTES_MAX).unwrap();
    let full = |result| assert!(matches!(result, Err(FileError::Full(_))), "{result:?}");
    fixture.write("big", &vec![1; most - 1]).await.unwrap();
    fixture.run(FileRequest::Append(at("big"), vec![2])).await.unwrap();
    full(fixture.run(FileRequest::Append(at("big"), vec![3])).await);
    full(fixture.write("small", b"x").await);
    fixture.write("big", b"less").await.unwrap();
    for number in 0..FILES_MAX - 3 {
        fixture.write(&format!("many/{number}"), b"").await.unwrap();
    }
    fixture.write("many/last", b"").await.unwrap();
    full(fixture.write("another", b"").await);
    full(fixture.run(FileRequest::MakeFolder(at("folder"))).await);
    full(fixture.write("new/file", b"").await);
    fixture.write("many/last", b"replaced").await.unwrap();
    assert_eq!(fixture.names("").await, ["big", "many/"], "and nothing half made");
}

#[tokio::test]
async fn what_a_power_cut_left_is_removed_and_counts_for_nothing() {
    let fixture = Fixture::new();
    fixture.write("a/b", b"whole").await.unwrap();
    let half = fixture.folder().join("a/\u{1}new");
    fs::write(&half, "ha").unwrap();
    assert_eq!(fixture.names("a").await, ["b"]);
    fixture.write("c", b"").await.unwrap();
    assert!(!half.exists());
}

#[tokio::test]
async fn an_erasure_waits_for_what_is_written_and_lets_nothing_begin() {
    let fixture = Fixture::new();
    fixture.write("a", b"1").await.unwrap();
    let lease = fixture.in_flight.enter("ann").unwrap();
    let mut ending = pin!(fixture.in_flight.end("ann"));
    assert!(poll!(&mut ending).is_pending());
    assert!(matches!(fixture.write("b", b"2").await, Err(FileError::Unavailable(_))));
    drop(lease);
    ending.await;
    erase(fixture.data.path(), "ann").unwrap();
    assert!(!fixture.folder().exists());
    assert!(file(fixture.data.path(), "ann", 0).unwrap().is_none());
    fixture.in_flight.admit("ann");
    fixture.write("c/d", b"3").await.unwrap();
    assert_eq!(file(fixture.data.path(), "ann", 0).unwrap(), Some(("c/d".to_owned(), b"3".to_vec())));
    assert_eq!(file(fixture.data.path(), "ann", 1).unwrap(), None);
}
