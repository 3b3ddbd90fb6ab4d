//! One user's files. Every path is opened below the folder of the workspace, and the kernel refuses links on the way
//! (`openat2`, Linux 5.6), no matter who made them.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::OwnedFd,
    path::Path,
};

use rustix::{
    fs::{self, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags},
    io::Errno,
};
use tools::workspace::{
    FILES_MAX, FileAnswer, FileEntry, FileError, FilePath, FileRequest, PATH_DEPTH_MAX, WORKSPACE_BYTES_MAX,
};

use crate::private::make_folder;

/// Bytes that stay free on the disk, for the store above all.
const FREE_BYTES: u64 = 256 << 20;
/// Name of a file that is being written. No path of a program has a control character.
const NEW: &str = "\u{1}new";
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const FOLDER_MODE: Mode = Mode::RWXU;

/// The folder of one user. One thread uses it at a time.
pub(super) struct Folder {
    root: OwnedFd,
}

/// What a workspace holds.
#[derive(Default)]
struct Usage {
    count: usize,
    bytes: u64,
}

impl Folder {
    /// Opens the folder, and makes it if there is none.
    ///
    /// # Errors
    /// [`FileError::Failed`]: it cannot be made or opened.
    pub(super) fn open(path: &Path) -> Result<Self, FileError> {
        let failed = |error: io::Error| FileError::Failed(format!("the workspace cannot be opened: {error}"));
        make_folder(path).map_err(failed)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let root = fs::open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        Ok(Self { root })
    }

    /// Carries out a request.
    ///
    /// # Errors
    /// Nothing was done.
    pub(super) fn run(&self, request: FileRequest) -> Result<FileAnswer, FileError> {
        match request {
            FileRequest::Read(path) => self.read(&path).map(FileAnswer::Content),
            FileRequest::Write(path, content) => self.write(&path, &content).map(|()| FileAnswer::Done),
            FileRequest::Append(path, more) => {
                let mut content = match self.read(&path) {
                    Err(FileError::NotFound(_)) => Vec::new(),
                    content => content?,
                };
                content.extend_from_slice(&more);
                self.write(&path, &content).map(|()| FileAnswer::Done)
            }
            FileRequest::List(path) => {
                let folder = self.at(&path, OFlags::DIRECTORY)?;
                Ok(FileAnswer::Entries(entries(&folder).map_err(|error| wrong(error, path.as_str()))?))
            }
            FileRequest::Stat(path) => {
                let file = self.at(&path, OFlags::PATH)?;
                let name = path.as_str().rsplit('/').next().unwrap_or_default();
                entry(name, &fs::fstat(&file).map_err(|error| wrong(error, path.as_str()))?).map(FileAnswer::Entry)
            }
            FileRequest::Remove(path) => self.remove(&path).map(|()| FileAnswer::Done),
            FileRequest::MakeFolder(path) => self.make_folders(path.as_str(), 0, 0).map(|_| FileAnswer::Done),
        }
    }

    /// The paths of all files, in order.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub(super) fn paths(&self) -> Result<Vec<FilePath>, FileError> {
        let mut paths = Vec::new();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            let opened = self.at(&FilePath::parse(&folder)?, OFlags::DIRECTORY)?;
            for entry in entries(&opened).map_err(|error| wrong(error, &folder))? {
                let path = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
                // What somebody else has put there may be too deep for a path.
                match FilePath::parse(&path) {
                    Ok(_) if entry.is_folder => folders.push(path),
                    Ok(path) => paths.push(path),
                    Err(_) => {}
                }
            }
        }
        paths.sort();
        Ok(paths)
    }

    /// The content of a file.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub(super) fn read(&self, path: &FilePath) -> Result<Vec<u8>, FileError> {
        // A pipe that somebody has put there must not block.
        let file = self.at(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        let stat = fs::fstat(&file).map_err(|error| wrong(error, path.as_str()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(FileError::Kind(format!("'{}' is not a file", path.as_str())));
        }
        let mut content = Vec::new();
        let read = File::from(file).take(WORKSPACE_BYTES_MAX + 1).read_to_end(&mut content);
        read.map_err(|error| FileError::Failed(format!("'{}' cannot be read: {error}", path.as_str())))?;
        if content.len() as u64 > WORKSPACE_BYTES_MAX {
            return Err(FileError::Full(format!("'{}' is larger than 16 MiB", path.as_str())));
        }
        Ok(content)
    }

    /// Writes beside the file and renames, so that there is always a whole one.
    fn write(&self, path: &FilePath, content: &[u8]) -> Result<(), FileError> {
        let (folder, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        if name.is_empty() {
            return Err(FileError::Kind("the workspace itself is a folder".to_owned()));
        }
        let old = match self.at(path, OFlags::PATH) {
            Ok(file) => Some(entry(name, &fs::fstat(&file).map_err(|error| wrong(error, name))?)?),
            Err(FileError::NotFound(_)) => None,
            Err(error) => return Err(error),
        };
        if old.as_ref().is_some_and(|old| old.is_folder) {
            return Err(FileError::Kind(format!("'{}' is a folder", path.as_str())));
        }
        let size = content.len() as u64;
        let replaced = old.as_ref().map_or(0, |old| old.bytes);
        let folder = self.make_folders(folder, usize::from(old.is_none()), size.saturating_sub(replaced))?;
        let write = || {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file = File::from(fs::openat(&folder, NEW, flags, FILE_MODE)?);
            file.write_all(content)?;
            file.sync_all()?;
            fs::renameat(&folder, NEW, &folder, name)?;
            fs::fsync(&folder)?;
            Ok(())
        };
        write().map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FileError::Full("the disk is full".to_owned()),
            _ => FileError::Failed(format!("'{}' cannot be written: {error}", path.as_str())),
        })
    }

    fn remove(&self, path: &FilePath) -> Result<(), FileError> {
        if path.is_root() {
            return Err(FileError::Kind("the workspace itself stays".to_owned()));
        }
        let (folder, name) = path.as_str().rsplit_once('/').unwrap_or(("", path.as_str()));
        let folder = self.at(&FilePath::parse(folder)?, OFlags::DIRECTORY)?;
        let removed = match fs::unlinkat(&folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR) => fs::unlinkat(&folder, name, AtFlags::REMOVEDIR),
            removed => removed,
        };
        removed.and_then(|()| fs::fsync(&folder)).map_err(|error| wrong(error, path.as_str()))
    }

    /// Opens a folder and makes it if there is none, with those above it. There has to be room for them, and for so many
    /// more files and bytes.
    fn make_folders(&self, path: &str, files: usize, bytes: u64) -> Result<OwnedFd, FileError> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let mut missing = parts.len();
        let mut known = self.at(&FilePath::parse("")?, OFlags::DIRECTORY)?;
        for depth in 1..=parts.len() {
            match self.at(&FilePath::parse(&parts[..depth].join("/"))?, OFlags::DIRECTORY) {
                Ok(folder) => (known, missing) = (folder, parts.len() - depth),
                Err(FileError::NotFound(_)) => break,
                Err(error) => return Err(error),
            }
        }
        self.check_room(files + missing, bytes)?;
        for part in &parts[parts.len() - missing..] {
            let make = || {
                fs::mkdirat(&known, *part, FOLDER_MODE)?;
                fs::fsync(&known)?;
                fs::openat(&known, *part, OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
            };
            known = make().map_err(|error| wrong(error, path))?;
        }
        Ok(known)
    }

    /// Whether so much more fits.
    fn check_room(&self, files: usize, bytes: u64) -> Result<(), FileError> {
        if files == 0 && bytes == 0 {
            return Ok(());
        }
        let mut usage = Usage::default();
        self.at(&FilePath::parse("")?, OFlags::DIRECTORY)
            .and_then(|root| measure(&root, 0, &mut usage).map_err(|error| wrong(error, "")))?;
        if usage.count + files > FILES_MAX {
            return Err(FileError::Full(format!("a workspace has at most {FILES_MAX} files and folders")));
        }
        if usage.bytes.saturating_add(bytes) > WORKSPACE_BYTES_MAX {
            return Err(FileError::Full(format!("a workspace has at most {} MiB", WORKSPACE_BYTES_MAX >> 20)));
        }
        let disk = fs::fstatvfs(&self.root).map_err(|error| wrong(error, ""))?;
        if disk.f_bavail.saturating_mul(disk.f_frsize).saturating_sub(bytes) < FREE_BYTES {
            return Err(FileError::Full("the disk of the gateway is nearly full".to_owned()));
        }
        Ok(())
    }

    fn at(&self, path: &FilePath, flags: OFlags) -> Result<OwnedFd, FileError> {
        let name = if path.is_root() { "." } else { path.as_str() };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        fs::openat2(&self.root, name, flags, Mode::empty(), resolve).map_err(|error| wrong(error, path.as_str()))
    }
}

/// Counts what is below a folder. What a power cut has left of a write is removed.
fn measure(folder: &OwnedFd, depth: usize, usage: &mut Usage) -> Result<(), Errno> {
    match fs::unlinkat(folder, NEW, AtFlags::empty()) {
        Err(error) if error != Errno::NOENT => return Err(error),
        _ => {}
    }
    for entry in entries(folder)? {
        usage.count += 1;
        usage.bytes = usage.bytes.saturating_add(entry.bytes);
        if entry.is_folder && depth < PATH_DEPTH_MAX {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            measure(&fs::openat(folder, entry.name.as_str(), flags, Mode::empty())?, depth + 1, usage)?;
        }
    }
    Ok(())
}

/// Files and folders by name. Anything else that an operator has put there is left out, and so are names that no path
/// can have.
fn entries(folder: &OwnedFd) -> Result<Vec<FileEntry>, Errno> {
    let mut entries = Vec::new();
    for found in Dir::read_from(folder)? {
        let found = found?;
        let Ok(name) = found.file_name().to_str() else { continue };
        if matches!(name, "." | "..") || name.chars().any(char::is_control) {
            continue;
        }
        let stat = fs::statat(folder, found.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
        entries.extend(entry(name, &stat));
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

fn entry(name: &str, stat: &fs::Stat) -> Result<FileEntry, FileError> {
    let kind = FileType::from_raw_mode(stat.st_mode);
    if !matches!(kind, FileType::RegularFile | FileType::Directory) {
        return Err(FileError::Kind(format!("'{name}' is neither a file nor a folder")));
    }
    let is_folder = kind == FileType::Directory;
    Ok(FileEntry {
        name: name.to_owned(),
        is_folder,
        bytes: if is_folder { 0 } else { u64::try_from(stat.st_size).unwrap_or(0) },
        modified_wall_ms: stat.st_mtime.saturating_mul(1_000),
    })
}

fn wrong(error: Errno, path: &str) -> FileError {
    match error {
        Errno::NOENT => FileError::NotFound(path.to_owned()),
        Errno::NOTDIR => FileError::Kind(format!("'{path}', or a part of it, is no folder")),
        Errno::NOTEMPTY | Errno::EXIST => FileError::Kind(format!("the folder '{path}' is not empty")),
        Errno::LOOP | Errno::XDEV => FileError::Kind(format!("'{path}' leads through a link")),
        Errno::NOSPC | Errno::DQUOT => FileError::Full("the disk is full".to_owned()),
        Errno::NXIO => FileError::Kind(format!("'{path}' is neither a file nor a folder")),
        error => FileError::Failed(format!("'{path}': {}", io::Error::from(error))),
    }
}
