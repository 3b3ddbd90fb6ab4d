//! The files that git tracks or would add, and the part of a Rust file that is not test code.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One file of the checkout.
#[derive(Clone)]
pub(super) struct File {
    /// Relative to the root, with forward slashes.
    pub(super) path: String,
    /// Bytes that are not UTF-8 are replaced.
    pub(super) text: String,
}

impl File {
    pub(super) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    pub(super) fn is_in(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(folder))
    }

    /// Whether the whole file is test code: tests folders, benches, fuzz targets, `tests.rs`, `test_support.rs`.
    pub(super) fn is_test(&self) -> bool {
        let mut folders: Vec<&str> = self.path.split('/').collect();
        let name = folders.pop().unwrap_or_default();
        folders.iter().any(|folder| matches!(*folder, "tests" | "benches" | "fuzz"))
            || name == "tests.rs"
            || name == "test_support.rs"
            || name.ends_with("_tests.rs")
    }

    /// Numbered lines (from 1) outside `#[cfg(test)]` items.
    /// Relies on rustfmt: an item ends at the brace, or after the semicolon, in the column of its attribute.
    pub(super) fn production(&self) -> Vec<(usize, &str)> {
        let mut kept = Vec::new();
        let mut lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        while let Some((number, line)) = lines.next() {
            let code = line.trim_start();
            if !code.starts_with("#[cfg(test)]") && !code.starts_with("#[cfg(all(test") {
                kept.push((number, line));
                continue;
            }
            let indent = &line[..line.len() - code.len()];
            let end = format!("{indent}}}");
            for (_, inner) in lines.by_ref() {
                let same_column = inner.starts_with(indent) && !inner[indent.len()..].starts_with(char::is_whitespace);
                if inner == end || (same_column && inner.ends_with(';')) {
                    break;
                }
            }
        }
        kept
    }

    /// As [`Self::production`], without lines that are comments.
    pub(super) fn code(&self) -> Vec<(usize, &str)> {
        let mut lines = self.production();
        lines.retain(|(_, line)| !line.trim_start().starts_with("//"));
        lines
    }
}

/// The root of the checkout.
pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the checkout").into()
}

/// Every file that is tracked, or new and not ignored.
pub(super) fn files() -> Vec<File> {
    let root = root();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .expect("the project's rules need `git` to know which files are the project's");
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    String::from_utf8_lossy(&listed.stdout)
        .split_terminator('\0')
        // A file that was deleted but is still in the index cannot be read.
        .filter_map(|path| Some((path, std::fs::read(root.join(path)).ok()?)))
        .map(|(path, bytes)| File::new(path, &String::from_utf8_lossy(&bytes)))
        .collect()
}

#[test]
fn test_code_is_told_from_production_code() {
    let text = "fn a() {}\n#[cfg(test)]\nuse x::y;\nfn b() {}\n#[cfg(test)]\nmod tests {\n    \
                fn c() {\n    }\n}\nfn d() {}\n// d\n";
    let file = File::new("gateway/src/x.rs", text);
    let kept: Vec<&str> = file.production().iter().map(|(_, line)| *line).collect();
    assert_eq!(kept, ["fn a() {}", "fn b() {}", "fn d() {}", "// d"]);
    assert_eq!(file.code().last(), Some(&(10, "fn d() {}")));
    assert!(!file.is_test());
    assert!(File::new("gateway/tests/x.rs", "").is_test());
    assert!(File::new("audio/src/vad/tests.rs", "").is_test());
}
