//! A bundle: the installed files of several models in one zip archive, for machines without internet.
//!
//! Its files have the paths that they have in the models folder. `MARK` is one more file, which tells a bundle from a
//! package and lists the checksums for people, as `sha256sum` does; an import compares with the catalogue only.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::catalogue::{self, Entry};
use super::checksum::Hashing;
use super::folder::Temporary;
use super::package::Archive;
use super::{Error, Progress, Result, Stage, Status, install};

/// The file that makes an archive a bundle.
pub(super) const MARK: &str = "SHA256SUMS.lorgnette-models";
/// The name of a bundle in a folder.
pub const FILE_NAME: &str = "lorgnette-models.zip";

/// Writes a bundle of models that are installed in `dir` to the file `target`, replacing one that is there. Each file is
/// verified while it is copied.
///
/// # Errors
/// [`Error::Checksum`] for a damaged file, [`Error::Io`] for one that is missing. `target` is unchanged then.
pub fn export(entries: &[&'static Entry], dir: &Path, target: &Path, progress: &mut dyn FnMut(Progress)) -> Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Beside the target, so that it can be renamed into place.
    let incoming = Temporary::inside(folder)?;
    let unfinished = incoming.path().join("bundle");
    let out = File::create(&unfinished).map_err(Error::io("create", &unfinished))?;
    let mut zip = ZipWriter::new(BufWriter::new(out));
    let mut sums = String::new();
    for entry in entries {
        for file in entry.installed {
            add(&mut zip, file, dir, target)?;
            let _ = writeln!(sums, "{}  {}", file.sha256, file.path);
        }
        progress(Progress { entry, stage: Stage::Exported });
    }
    let finished = zip
        .start_file(MARK, options())
        .and_then(|()| Ok(zip.write_all(sums.as_bytes())?))
        .and_then(|()| zip.finish())
        .and_then(|out| Ok(out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?));
    finished.map_err(|error| Error::io("write", target)(error.into()))?;
    fs::rename(&unfinished, target).map_err(Error::io("move into place", target))
}

/// Copies one installed file into the archive and compares its checksum.
fn add(zip: &mut ZipWriter<BufWriter<File>>, file: &catalogue::File, dir: &Path, target: &Path) -> Result<()> {
    let path = dir.join(file.path);
    let mut from = BufReader::new(File::open(&path).map_err(Error::io("open", &path))?);
    zip.start_file(file.path, options()).map_err(|error| Error::io("write", target)(error.into()))?;
    let mut out = Hashing::new(zip);
    io::copy(&mut from, &mut out).map_err(Error::io("write", target))?;
    let (.., got) = out.finish();
    if got == file.sha256 {
        return Ok(());
    }
    Err(Error::Checksum { what: path.display().to_string(), expected: file.sha256.into(), got })
}

/// Weights hardly compress.
fn options() -> SimpleFileOptions {
    SimpleFileOptions::default().compression_method(CompressionMethod::Stored)
}

/// Installs the models of an opened bundle; returns them. Files that the catalogue does not know are left out. A model of
/// which a part is missing or altered ends the import, with those before it installed.
pub(super) fn import(
    catalogue: &'static [Entry],
    archive: &mut Archive,
    dir: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<&'static Entry>> {
    let known = catalogue.iter().filter(|entry| entry.installed.iter().any(|file| archive.has(file)));
    let known: Vec<&'static Entry> = known.collect();
    for entry in &known {
        if install::judged(entry, dir) == Status::Verified {
            progress(Progress { entry, stage: Stage::AlreadyThere });
            continue;
        }
        progress(Progress { entry, stage: Stage::Unpacking });
        let incoming = Temporary::inside(dir)?;
        let mut ready = Vec::with_capacity(entry.installed.len());
        for (index, file) in entry.installed.iter().enumerate() {
            let path = incoming.path().join(format!("part-{index}"));
            archive.extract(file, &path)?;
            ready.push(path);
        }
        install::place_all(entry, &ready, dir)?;
        progress(Progress { entry, stage: Stage::Installed });
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::{Client, Package, Recipe};
    use super::super::import::import_from;
    use super::super::status;
    use super::*;

    /// A file of `content`; only its checksum is computed.
    const fn file(path: &'static str, bytes: u64, sha256: &'static str) -> catalogue::File {
        catalogue::File { path, bytes, sha256 }
    }

    /// SHA-256 of "one", "two" and "three".
    const ONE: &str = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
    const TWO: &str = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3";
    const THREE: &str = "8b5b9db0c13db24256c829aa364aa90c6d2eba318b9232a4ab9313b954d3555f";

    static PACKAGES: [Package; 1] = [Package { client: Client::Pip, name: "p", version: "1", bytes: 1 }];
    static CATALOGUE: [Entry; 2] = [
        Entry {
            id: "pair",
            what: "two files",
            licence: "MIT",
            needed: true,
            packages: &PACKAGES,
            packaged: &[file("in/1", 3, ONE), file("in/2", 3, TWO)],
            recipe: Recipe::Copy,
            installed: &[file("pair/one", 3, ONE), file("pair/two", 3, TWO)],
        },
        Entry {
            id: "single",
            what: "one file",
            licence: "MIT",
            needed: false,
            packages: &PACKAGES,
            packaged: &[file("in/3", 5, THREE)],
            recipe: Recipe::Copy,
            installed: &[file("three", 5, THREE)],
        },
    ];

    /// A folder with both models.
    fn models() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("pair")).unwrap();
        for (name, content) in [("pair/one", "one"), ("pair/two", "two"), ("three", "three")] {
            fs::write(dir.path().join(name), content).unwrap();
        }
        dir
    }

    fn all() -> Vec<&'static Entry> {
        CATALOGUE.iter().collect()
    }

    #[test]
    fn what_is_exported_is_what_is_imported() {
        let (from, to) = (models(), tempfile::tempdir().unwrap());
        let bundle = to.path().join(FILE_NAME);
        fs::write(&bundle, "an older one").unwrap();
        export(&all(), from.path(), &bundle, &mut |_| ()).unwrap();
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1, "nothing else is left behind");
        let dir = to.path().join("models");
        for stage in [Stage::Installed, Stage::AlreadyThere] {
            let mut stages = Vec::new();
            let import =
                import_from(&CATALOGUE, std::slice::from_ref(&bundle), &dir, &mut |step| stages.push(step.stage));
            let ids: Vec<&str> = import.unwrap().iter().map(|entry| entry.id).collect();
            assert_eq!(ids, ["pair", "single"]);
            assert_eq!(stages.last(), Some(&stage));
            assert!(CATALOGUE.iter().all(|entry| status(entry, &dir) == Status::Verified));
        }
        assert_eq!(fs::read(dir.join("pair/two")).unwrap(), b"two");
    }

    #[test]
    fn a_bundle_of_some_models_leaves_the_others_alone() {
        let (from, to) = (models(), tempfile::tempdir().unwrap());
        let bundle = to.path().join("bundle");
        export(&[&CATALOGUE[1]], from.path(), &bundle, &mut |_| ()).unwrap();
        let dir = to.path().join("models");
        let entries = import_from(&CATALOGUE, &[bundle], &dir, &mut |_| ()).unwrap();
        assert_eq!(entries.iter().map(|entry| entry.id).collect::<Vec<_>>(), ["single"]);
        assert_eq!(status(&CATALOGUE[0], &dir), Status::Missing);
    }

    #[test]
    fn a_damaged_or_missing_model_is_not_exported() {
        let (from, to) = (models(), tempfile::tempdir().unwrap());
        let bundle = to.path().join("bundle");
        fs::write(&bundle, "an older one").unwrap();
        fs::write(from.path().join("pair/two"), "tow").unwrap();
        let error = export(&all(), from.path(), &bundle, &mut |_| ()).unwrap_err();
        assert!(matches!(&error, Error::Checksum { what, .. } if what.ends_with("pair/two")), "{error}");
        fs::remove_file(from.path().join("pair/two")).unwrap();
        let error = export(&all(), from.path(), &bundle, &mut |_| ()).unwrap_err().to_string();
        assert!(error.contains("pair/two"), "{error}");
        assert_eq!(fs::read(&bundle).unwrap(), b"an older one");
        assert_eq!(fs::read_dir(to.path()).unwrap().count(), 1, "nothing else is left behind");
    }

    #[test]
    fn an_altered_or_truncated_bundle_is_refused() {
        let (from, to) = (models(), tempfile::tempdir().unwrap());
        let bundle = to.path().join("bundle");
        export(&all(), from.path(), &bundle, &mut |_| ()).unwrap();
        let whole = fs::read(&bundle).unwrap();
        let import = |bytes: &[u8]| {
            fs::write(&bundle, bytes).unwrap();
            import_from(&CATALOGUE, std::slice::from_ref(&bundle), &to.path().join("models"), &mut |_| ())
        };
        let mut altered = whole.clone();
        // Stored as it is, in front of the next file.
        let at = whole.windows(5).position(|bytes| bytes == b"twoPK").unwrap();
        altered[at] = b'T';
        let error = import(&altered).unwrap_err().to_string();
        assert!(error.contains("pair/two"), "{error}");
        for length in [0, 10, whole.len() / 2, whole.len() - 1] {
            import(&whole[..length]).unwrap_err();
        }
        assert!(CATALOGUE.iter().all(|entry| status(entry, &to.path().join("models")) == Status::Missing));
        assert_eq!(import(&whole).unwrap().len(), 2);
    }
}
