//! Comments of fields and variants that say no more than the name: `/// The user.` above `user`, `/// Which one.` above
//! anything.

use std::collections::BTreeSet;

use super::tree::File;
use super::{every_rust_file, no_complaints};

/// Words that add nothing to a name.
const FILLERS: [&str; 17] = [
    "a", "an", "for", "his", "in", "is", "it", "its", "number", "of", "s", "that", "the", "their", "these", "this",
    "those",
];

/// Words that only point at a field, alone or in front of one more word.
const POINTERS: [&str; 6] = ["how", "its", "the", "what", "which", "whose"];

/// "Which one.", "The file.", "How many.": whoever sees the name and the type knows as much.
fn only_points(said: &str) -> bool {
    let mut words = said.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_lowercase();
    POINTERS.contains(&first.as_str()) && words.nth(1).is_none()
}

fn stub_docs(file: &File) -> Vec<String> {
    let lines: Vec<&str> = file.text.lines().collect();
    let is_doc = |at: usize| lines.get(at).is_some_and(|line| line.trim_start().starts_with("///"));
    let mut complaints = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        // A longer comment says more than a name can, and so does what is quoted from a program.
        let alone = !(at > 0 && is_doc(at - 1) || is_doc(at + 1));
        let Some(said) = line.trim_start().strip_prefix("/// ").filter(|said| alone && !said.contains('`')) else {
            continue;
        };
        let Some(name) = item_behind(&lines[at + 1..]).and_then(name_of) else { continue };
        let mut words = words(said);
        words.retain(|word| !FILLERS.contains(&word.as_str()));
        let repeats = words.is_subset(&self::words(name));
        // Fields of tests have comments by choice only.
        if repeats || (only_points(said) && !file.is_test()) {
            let (path, line) = (&file.path, at + 1);
            complaints.push(format!("{path}:{line}: `{said}` says no more than `{name}`: say more, or nothing"));
        }
    }
    complaints
}

/// The first line that belongs to no attribute.
fn item_behind<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let mut lines = lines.iter().copied();
    loop {
        let mut line = lines.next()?;
        if !line.trim_start().starts_with("#[") {
            return Some(line);
        }
        while !line.ends_with(']') {
            line = lines.next()?;
        }
    }
}

/// The name of a field or variant that this line declares.
fn name_of(line: &str) -> Option<&str> {
    let code = line.trim_start();
    if code.len() == line.len() {
        return None;
    }
    let code = match code.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => code.strip_prefix("pub ").unwrap_or(code),
    };
    let code = code.strip_prefix("r#").unwrap_or(code);
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
    let (name, rest) = code.split_at(end);
    let is_variant = name.starts_with(|c: char| c.is_uppercase());
    let declares = if is_variant {
        rest.is_empty() || [",", "(", " {", " = "].iter().any(|behind| rest.starts_with(behind))
    } else {
        rest.starts_with(": ")
    };
    (declares && !name.is_empty()).then_some(name)
}

/// The words of a sentence, or of a name in either case, without the s of the plural.
fn words(text: &str) -> BTreeSet<String> {
    let mut spaced = String::new();
    for c in text.chars() {
        if c.is_uppercase() && spaced.ends_with(|before: char| before.is_lowercase() || before.is_numeric()) {
            spaced.push(' ');
        }
        spaced.push(c);
    }
    let words = spaced.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word.to_lowercase()).map(|word| singular(&word).to_owned()).collect()
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').filter(|word| word.len() > 2 && !word.ends_with('s')).unwrap_or(word)
}

#[test]
fn every_comment_of_a_field_says_more_than_its_name() {
    every_rust_file(stub_docs);
}

#[test]
fn a_comment_that_says_no_more_than_the_name_is_found() {
    let judged = |text: &str| stub_docs(&File::new("a.rs", text)).len();
    for bad in [
        "struct A {\n    /// The user.\n    user: String,\n}",
        "struct A {\n    /// Its names.\n    pub(crate) name: String,\n}",
        "struct A {\n    /// Number of the turn.\n    #[serde(default)]\n    pub turn: u32,\n}",
        "enum A {\n    /// A line is too long.\n    #[error(\n        \"too long\"\n    )]\n    LineTooLong,\n}",
        "enum A {\n    /// It is.\n    Full(u8),\n}",
        "struct A {\n    /// Which one.\n    pub button: ButtonId,\n}",
        "struct A {\n    /// Which.\n    pub run: WhichRun,\n}",
        "struct A {\n    /// How many.\n    count: usize,\n}",
        "struct A {\n    /// Its length.\n    #[serde(default)]\n    bytes: usize,\n}",
        "enum A {\n    /// The wearer.\n    User(String),\n}",
        "enum A {\n    B {\n        /// The file.\n        path: String,\n    },\n}",
        "struct A {\n    /// Whose consent.\n    pub(crate) user: String,\n}",
        "message! {\n    pub struct A {\n        /// What happened.\n        kind: Kind,\n    }\n}",
    ] {
        assert_eq!(judged(bad), 1, "{bad}");
    }
    for good in [
        "struct A {\n    /// The user; `None`: nobody.\n    user: Option<String>,\n}",
        "struct A {\n    /// Number of the turn, from 1.\n    turn: u32,\n}",
        "struct A {\n    /// The user.\n    /// Nobody knows why.\n    user: String,\n}",
        "struct A {\n    /// Whose session it is.\n    user: String,\n}",
        "struct A {\n    /// What it speaks.\n    texts: Texts,\n}",
        "struct A {\n    /// Size, in bytes.\n    length: usize,\n}",
        "struct A {\n    /// The `main` one.\n    view: View,\n}",
        "enum A {\n    /// It runs.\n    Applied,\n}",
        "/// The user.\nfn user() {}",
    ] {
        no_complaints(&stub_docs(&File::new("a.rs", good)));
    }
    let pointer = "struct A {\n    /// What.\n    words: String,\n}";
    no_complaints(&stub_docs(&File::new("tests/it/a.rs", pointer)));
}
