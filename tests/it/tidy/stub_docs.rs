//! Comments of items, fields and variants that say no more than the name: `/// The user.` above `user`, `/// Which
//! one.` above anything, `/// A message.` above an item.

use std::collections::BTreeSet;

use super::tree::File;
use super::{every_rust_file, no_complaints};

/// Words that add nothing to a name.
const FILLERS: [&str; 17] = [
    "a", "an", "for", "his", "in", "is", "it", "its", "number", "of", "s", "that", "the", "their", "these", "this",
    "those",
];

/// Words that only point at what is declared, alone or in front of one more word: "Which one.", "The file.", "How
/// many.". Whoever sees the name and the type knows as much.
const POINTERS: [&str; 6] = ["how", "its", "the", "what", "which", "whose"];

/// The same for items: "A message.", "One row.". Above a field such words may tell its form.
const ARTICLES: [&str; 3] = ["a", "an", "one"];

/// Words in front of an item's name.
const KEYWORDS: [&str; 13] =
    ["async", "const", "enum", "extern", "fn", "mod", "mut", "static", "struct", "trait", "type", "union", "unsafe"];

/// Whether a comment is one of these words, or one of them and one more.
fn is_only(said: &str, first_words: &[&str]) -> bool {
    let mut words = said.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_lowercase();
    first_words.contains(&first.as_str()) && words.nth(1).is_none()
}

fn stub_docs(file: &File) -> Vec<String> {
    let lines: Vec<&str> = file.text.lines().collect();
    let is_doc = |at: usize| lines.get(at).is_some_and(|line| line.trim_start().starts_with("///"));
    let mut complaints = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        // A longer comment says more than a name can, unless only its errors follow, and so does what is quoted from a
        // program.
        let errors_follow = lines.get(at + 2).is_some_and(|line| line.trim_start().starts_with("/// # "));
        let alone = !(at > 0 && is_doc(at - 1)) && (errors_follow || !is_doc(at + 1));
        let Some(said) = line.trim_start().strip_prefix("/// ").filter(|said| alone && !said.contains('`')) else {
            continue;
        };
        let Some(declaration) = declaration_behind(&lines[at + 1..]) else { continue };
        let item = item_of(declaration);
        let Some(name) = item.or_else(|| field_of(declaration)) else { continue };
        let mut words = words(said);
        words.retain(|word| !FILLERS.contains(&word.as_str()));
        let repeats = words.is_subset(&self::words(name));
        let points = is_only(said, &POINTERS) || (item.is_some() && is_only(said, &ARTICLES));
        // Tests have comments by choice only.
        if repeats || (points && !file.is_test()) {
            let (path, line) = (&file.path, at + 1);
            complaints.push(format!("{path}:{line}: `{said}` says no more than `{name}`: say more, or nothing"));
        }
    }
    complaints
}

/// The first line that belongs to no attribute and no comment.
fn declaration_behind<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let mut lines = lines.iter().copied();
    loop {
        let mut line = lines.next()?;
        if line.trim_start().starts_with("///") {
            continue;
        }
        if !line.trim_start().starts_with("#[") {
            return Some(line);
        }
        while !line.ends_with(']') {
            line = lines.next()?;
        }
    }
}

/// A declaration without its visibility.
fn bare(line: &str) -> Option<&str> {
    let code = line.trim_start();
    match code.strip_prefix("pub(") {
        Some(rest) => Some(rest.split_once(") ")?.1),
        None => Some(code.strip_prefix("pub ").unwrap_or(code)),
    }
}

/// The name at the beginning of a declaration, and what follows it.
fn split_name(code: &str) -> (&str, &str) {
    let code = code.strip_prefix("r#").unwrap_or(code);
    code.split_at(code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len()))
}

/// The name of an item that this line declares: a type, trait, constant, function or module.
fn item_of(line: &str) -> Option<&str> {
    let code = bare(line)?;
    let mut rest = code;
    while let Some((_, behind)) = rest.split_once(' ').filter(|(word, _)| KEYWORDS.contains(word)) {
        rest = behind;
    }
    let (name, _) = split_name(rest);
    (rest.len() < code.len() && !name.is_empty()).then_some(name)
}

/// The name of a field or variant that this line declares.
fn field_of(line: &str) -> Option<&str> {
    if !line.starts_with(' ') {
        return None;
    }
    let (name, rest) = split_name(bare(line)?);
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
fn every_comment_says_more_than_the_name_below_it() {
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
        "/// The user.\nfn user() {}",
        "/// A message.\n#[derive(Debug)]\npub enum DeviceMessage {",
        "/// The journal.\npub struct StoredCalls {",
        "/// One row.\npub(super) struct Total {",
        "/// What happened.\npub enum Event {",
        "/// Its name.\n    pub(crate) const fn label(&self) -> &str {",
        "/// Modes of files.\nconst FILE_MODE: u32 = 0o600;",
        "trait A {\n    /// Its inputs.\n    type Input;\n}",
        "trait A {\n    /// Handles an event.\n    async fn handle_event(&mut self);\n}",
        "message! {\n    /// A touch.\n    pub struct Touch {\n        gesture: Gesture,\n    }\n}",
        "/// Results.\npub mod result;",
        "/// One note.\n///\n/// # Errors\n/// The store cannot be read.\npub fn note(id: u64) -> Result<Note> {",
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
        "struct A {\n    /// One line.\n    title: String,\n}",
        "/// A paired device.\nstruct Paired {}",
        "/// Signs with the gateway's key.\nfn sign() {}",
        "/// `true`.\nconst TRUE: bool = true;",
        "/// A user.\nimpl A {}",
        "/// A message.\n///\n/// It is sent twice.\nstruct Message;",
    ] {
        no_complaints(&stub_docs(&File::new("a.rs", good)));
    }
    for pointer in ["struct A {\n    /// What.\n    words: String,\n}", "/// The server.\nstruct Provider;"] {
        no_complaints(&stub_docs(&File::new("tests/it/a.rs", pointer)));
    }
}
