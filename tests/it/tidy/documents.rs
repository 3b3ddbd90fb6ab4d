//! Documents that stay short.

use super::tree::File;
use super::{no_complaints, tree};

/// Documents with a limit of their words: today's figures and no history, how things are tested, a grammar, pages that
/// were split once because they had grown too long.
const WORDS_MAX: [(&str, usize); 9] = [
    ("docs/assistant.md", 2_300),
    ("docs/measurements.md", 2_000),
    ("docs/measurements-hearing.md", 3_000),
    ("docs/measurements-noise.md", 1_500),
    ("docs/measurements-reliability.md", 1_500),
    ("docs/measurements-turns.md", 1_500),
    ("docs/requests.md", 2_000),
    ("docs/testing.md", 2_000),
    ("gateway/core/tests/dialogues/README.md", 500),
];

/// Words of a document, without the pipes and rulers of its tables.
fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| !word.chars().all(|c| "|-:".contains(c))).count()
}

fn too_wordy(file: &File) -> Vec<String> {
    let limit = WORDS_MAX.iter().find(|(path, _)| file.path == *path).map(|(_, max)| *max);
    let words = words(&file.text);
    let complaint = |max| format!("{}: {words} words; at most {max}", file.path);
    limit.filter(|max| words > *max).map(complaint).into_iter().collect()
}

#[test]
fn documents_stay_short() {
    let files = tree::files();
    for (path, _) in WORDS_MAX {
        assert!(files.iter().any(|file| file.path == path), "{path} was not found");
    }
    no_complaints(&files.iter().flat_map(too_wordy).collect::<Vec<_>>());
}

#[test]
fn a_document_with_too_many_words_is_found_and_the_lines_of_tables_do_not_count() {
    for (path, max) in WORDS_MAX {
        let full = format!("| a |\n|---|:-:|\n{}", "b ".repeat(max - 1));
        no_complaints(&too_wordy(&File::new(path, &full)));
        assert_eq!(too_wordy(&File::new(path, &format!("{full} c"))).len(), 1, "{path}");
        no_complaints(&too_wordy(&File::new("docs/skills.md", &format!("{full} c"))));
    }
}
