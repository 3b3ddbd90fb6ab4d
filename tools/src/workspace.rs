//! Files that programs keep: a workspace for each user. The gateway implements it.

use std::fmt;

use async_trait::async_trait;
use thiserror::Error;

/// Longest path, in bytes.
pub const PATH_BYTES_MAX: usize = 255;
/// Longest name of a file or folder, in bytes: file systems allow 255, and a name that is being written is longer.
pub const FILE_NAME_BYTES_MAX: usize = 128;
/// Folders below each other, and the file.
pub const PATH_DEPTH_MAX: usize = 8;
/// Files and folders of one user.
pub const FILES_MAX: usize = 256;
/// Bytes of one user's files.
pub const WORKSPACE_BYTES_MAX: u64 = 16 << 20;

/// A path within a workspace: relative, without `.` and `..`. The empty path is the workspace itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePath(String);

impl FilePath {
    /// Checks a path. A trailing slash is left out, so that a folder may have one.
    ///
    /// # Errors
    /// [`FileError::Path`] says which rule it breaks.
    pub fn parse(path: &str) -> Result<Self, FileError> {
        let wrong = |why: &str| Err(FileError::Path(why.to_owned()));
        if path.len() > PATH_BYTES_MAX {
            return wrong("it is longer than 255 bytes");
        }
        if path.starts_with('/') {
            return wrong("it begins with '/'; paths are relative to the workspace");
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.is_empty() || path == "." {
            return Ok(Self(String::new()));
        }
        let names: Vec<&str> = path.split('/').collect();
        if names.len() > PATH_DEPTH_MAX {
            return wrong("it has more than 8 parts");
        }
        for name in &names {
            match *name {
                "" => return wrong("it has an empty part"),
                "." | ".." => return wrong("it has a part '.' or '..'"),
                name if name.len() > FILE_NAME_BYTES_MAX => return wrong("a part of it is longer than 128 bytes"),
                name if name.chars().any(char::is_control) => return wrong("it has a control character"),
                _ => {}
            }
        }
        Ok(Self(path.to_owned()))
    }

    /// The path; empty for the workspace itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the workspace itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// What is done with files. Paths follow no links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRequest {
    /// The content of a file.
    Read(FilePath),
    /// Replaces a file, or makes it, with the folders above it; a reader sees the old content or the new one.
    Write(FilePath, Vec<u8>),
    /// Adds to the end of a file, or makes it, with the folders above it.
    Append(FilePath, Vec<u8>),
    /// What is in a folder, by name.
    List(FilePath),
    /// What is known of a file or folder.
    Stat(FilePath),
    /// Removes a file, or an empty folder.
    Remove(FilePath),
    /// Makes a folder, with those above it; one that is there stays.
    MakeFolder(FilePath),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAnswer {
    /// It is done, and on the disk.
    Done,
    /// The bytes that were read.
    Content(Vec<u8>),
    /// What is in the folder.
    Entries(Vec<FileEntry>),
    /// What is known of it.
    Entry(FileEntry),
}

/// A file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// The last part of its path.
    pub name: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Bytes of a file; 0 for a folder.
    pub bytes: u64,
    /// When it was last changed, in milliseconds since the Unix epoch.
    pub modified_wall_ms: i64,
}

/// Why nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileError {
    /// The path is not allowed.
    #[error("the path is not allowed: {0}")]
    Path(String),
    /// There is nothing at this path.
    #[error("there is nothing at '{0}'")]
    NotFound(String),
    /// Something of another kind is there: a folder in place of a file, a folder that is not empty.
    #[error("{0}")]
    Kind(String),
    /// The workspace or the disk has no room.
    #[error("there is no room: {0}")]
    Full(String),
    /// Too much waits for the disk, or there is no workspace.
    #[error("not available: {0}")]
    Unavailable(String),
    /// The disk failed.
    #[error("{0}")]
    Failed(String),
}

/// The files of all users.
#[async_trait]
pub trait Workspace: Send + Sync {
    /// Carries out one request for a user.
    ///
    /// # Errors
    /// Nothing was done.
    async fn run(&self, user: &str, request: FileRequest) -> Result<FileAnswer, FileError>;
}

/// A workspace that keeps nothing.
pub struct NoWorkspace;

#[async_trait]
impl Workspace for NoWorkspace {
    async fn run(&self, _user: &str, _request: FileRequest) -> Result<FileAnswer, FileError> {
        Err(FileError::Unavailable("no workspace is configured".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_stay_inside() {
        for (path, parsed) in [("a", "a"), ("a/b.txt", "a/b.txt"), ("a/", "a"), ("", ""), (".", ""), ("…/é", "…/é")]
        {
            assert_eq!(FilePath::parse(path).unwrap().as_str(), parsed);
        }
        assert!(FilePath::parse("").unwrap().is_root());
        let deep = "a/".repeat(8) + "a";
        let long = "a".repeat(129);
        for path in
            ["/", "/etc/passwd", "..", "a/../b", "./a", "a/./b", "a//b", "a\0b", "a\nb", "//", deep.as_str(), &long]
        {
            assert!(matches!(FilePath::parse(path), Err(FileError::Path(_))), "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn no_path_leaves_the_workspace(path in "[a./\\\\\0~]{0,40}") {
            if let Ok(path) = FilePath::parse(&path) {
                let is_legal = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
                prop_assert!(path.is_root() || path.as_str().split('/').all(is_legal));
            }
        }
    }
}
