//! Rules for Rust files: length, module line, imports, clocks and audio in the core, spawned tasks, panics, and
//! unfinished code.

use std::collections::BTreeSet;

use super::tree::File;
use super::use_trees::paths;
use super::{every_rust_file, no_complaints, tree};

/// A longer file should be split.
const LINES_MAX: usize = 500;
/// The shell, which routes and does not decide, has the same limit.
const SHELL: &str = "gateway/src/";
const SHELL_LINES_MAX: usize = 400;

/// Crates that process bytes from a network, a file or a model.
const PRODUCT: [&str; 7] = [
    "device-protocol/src/",
    "audio/src/",
    "gateway/",
    "tools/src/",
    "tools/kit/src/",
    "tools/sandbox/src/",
    "firmware-sim/src/",
];

/// Libraries: they report through `tracing` only.
const LIBRARIES: [&str; 6] =
    ["device-protocol/src/", "audio/src/", "gateway/core/src/", "gateway/chat/src/", "tools/src/", "tools/kit/src/"];

/// Parts of `audio` that the simulator must not share with the gateway.
const GATEWAYS_OWN_EARS: [&str; 8] = ["listener", "speaker", "jitter", "vad", "preroll", "wake", "asr", "*"];

fn too_long(file: &File) -> Vec<String> {
    let lines = file.production().len();
    let max = if file.path.starts_with(SHELL) { SHELL_LINES_MAX } else { LINES_MAX };
    if file.is_test() || lines <= max {
        return Vec::new();
    }
    vec![format!("{}: {lines} lines without tests; at most {max}", file.path)]
}

fn without_module_line(file: &File) -> Vec<String> {
    let first = file.text.lines().next().unwrap_or_default();
    if first.strip_prefix("//! ").is_some_and(|line| !line.trim().is_empty()) {
        return Vec::new();
    }
    vec![format!("{}: the first line is not a `//!` line that says what it is for", file.path)]
}

fn forbidden_imports(file: &File) -> Vec<String> {
    let code: Vec<&str> = file.code().iter().map(|(_, line)| *line).collect();
    let code = code.join("\n");
    let mut complaints = Vec::new();
    let mut forbid = |name: &str, is_forbidden: &dyn Fn(&str) -> bool| {
        let parts = paths(&code, name).into_iter().filter_map(|path| path.segments.get(1).copied());
        for part in parts.filter(|part| is_forbidden(part)).collect::<BTreeSet<_>>() {
            complaints.push(format!("{}: must not use {name}::{part}", file.path));
        }
    };
    if file.is_in(&["tools/", "gateway/chat/"]) {
        forbid("gateway_core", &|part| part != "vocab");
    }
    if file.is_in(&["firmware-sim/"]) {
        // Glasses may have the same detector of wake phrases: there is one kind of heads.
        let has_detector = file.path == "firmware-sim/src/wake.rs";
        forbid("audio", &|part| GATEWAYS_OWN_EARS.contains(&part) && !(has_detector && part == "wake"));
    }
    // Examples are separate programs: one of them is an MCP server.
    if !file.is_in(&["tools/src/mcp", "tools/examples", "tests/"]) {
        forbid("rmcp", &|_| true);
    }
    complaints
}

/// Forbidden words in code, by place.
fn forbidden_words(file: &File) -> Vec<String> {
    let banned = [
        (concat!("todo", "!("), "finish it"),
        (concat!("unimplemented", "!("), "finish it"),
        (concat!("FIX", "ME"), "finish it, or open an issue"),
        (concat!("#[ign", "ore"), "a test that does not run proves nothing"),
    ];
    let mut production_only: Vec<(&str, &str)> = Vec::new();
    if file.is_in(&["gateway/core/src/"]) {
        production_only.extend([
            ("std::", "the core has no clock, thread, socket or file"),
            ("HashMap", "the core's order of events must not depend on a hash"),
            ("HashSet", "the core's order of events must not depend on a hash"),
            ("Instant", "the core never reads a clock: time is an argument"),
            ("SystemTime", "the core never reads a clock: time is an argument"),
            ("[i16", "sound never enters the core"),
            ("Vec<i16>", "sound never enters the core"),
            ("[f32", "sound never enters the core"),
            ("Vec<f32>", "sound never enters the core"),
            ("Pcm", "sound never enters the core"),
        ]);
    }
    if file.is_in(&["gateway/src/"]) && !file.is_in(&["gateway/src/runtime"]) {
        let why = "one task per device: elsewhere work is started in `runtime`, or in a `JoinSet` \
                   or `TaskTracker` that shutdown waits for";
        production_only.extend([("tokio::spawn(", why), ("task::spawn", why), ("spawn_blocking(", why)]);
    }
    if file.is_in(&PRODUCT) {
        production_only.push((".unwrap()", "return an error, or `expect` what makes it impossible"));
    }
    if file.is_in(&LIBRARIES) {
        production_only.push(("println!(", "libraries speak through `tracing`"));
    }
    let find = |words: &[(&str, &str)], lines: Vec<(usize, &str)>| -> Vec<String> {
        lines
            .into_iter()
            .flat_map(|(number, line)| {
                let found = words.iter().filter(move |(word, _)| line.contains(word));
                found.map(move |(word, why)| format!("{}:{number}: `{word}`: {why}", file.path))
            })
            .collect()
    };
    let everywhere = file.text.lines().enumerate().map(|(index, line)| (index + 1, line)).collect();
    let mut complaints = find(&banned, everywhere);
    if !file.is_test() {
        complaints.extend(find(&production_only, file.code()));
    }
    complaints
}

/// Allowed unsafe code without a reason in the same attribute.
fn unreasoned_unsafe(file: &File) -> Vec<String> {
    file.text
        .match_indices("unsafe_code")
        .filter(|(at, _)| {
            let start = file.text[..*at].rfind('#').unwrap_or_default();
            let attribute = file.text[start..].split(")]").next().unwrap_or_default();
            let allows = attribute.contains("allow(") || attribute.contains("expect(");
            allows && !attribute.contains("reason")
        })
        .map(|_| format!("{}: unsafe code is allowed without a reason", file.path))
        .collect()
}

#[test]
fn files_are_short() {
    every_rust_file(too_long);
    let files = tree::files();
    let lines = |folder: &str| -> usize {
        let judged = files.iter().filter(|file| file.is_in(&[folder]) && file.path.ends_with(".rs") && !file.is_test());
        judged.map(|file| file.code().iter().filter(|(_, line)| !line.trim().is_empty()).count()).sum()
    };
    println!("lines of code without tests: {} in the shell, {} in the core", lines(SHELL), lines("gateway/core/src/"));
}

#[test]
fn every_module_says_what_it_is_for() {
    every_rust_file(without_module_line);
}

#[test]
fn imports_stay_inside_their_rooms() {
    every_rust_file(forbidden_imports);
}

#[test]
fn no_forbidden_words() {
    every_rust_file(forbidden_words);
}

#[test]
fn unsafe_code_gives_its_reason() {
    every_rust_file(unreasoned_unsafe);
}

#[test]
fn a_long_file_is_found_and_its_tests_do_not_count() {
    let long = "x\n".repeat(LINES_MAX + 1);
    assert_eq!(too_long(&File::new("audio/src/a.rs", &long)).len(), 1);
    let shell = "x\n".repeat(SHELL_LINES_MAX + 1);
    assert_eq!(too_long(&File::new("gateway/src/a.rs", &shell)).len(), 1);
    no_complaints(&too_long(&File::new("audio/src/a.rs", &shell)));
    no_complaints(&too_long(&File::new("audio/tests/a.rs", &long)));
    let tested = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "    x\n".repeat(900));
    no_complaints(&too_long(&File::new("audio/src/a.rs", &tested)));
}

#[test]
fn a_missing_module_line_is_found() {
    for bad in ["", "use a;\n", "//!\n", "/// Item.\n", "\n//! Late.\n"] {
        assert_eq!(without_module_line(&File::new("a.rs", bad)).len(), 1, "{bad:?}");
    }
    no_complaints(&without_module_line(&File::new("a.rs", "//! What it is for.\n")));
}

#[test]
fn a_forbidden_import_is_found() {
    let judged = |path: &str, text: &str| forbidden_imports(&File::new(path, text)).len();
    assert_eq!(judged("tools/src/a.rs", "use gateway_core::floor::Floor;"), 1);
    assert_eq!(judged("gateway/chat/src/a.rs", "use gateway_core::{vocab::ToolSpec, user};"), 1);
    assert_eq!(judged("tools/src/a.rs", "use gateway_core::{vocab::{A, b}};"), 0);
    assert_eq!(judged("tools/src/a.rs", "use gateway_core::*;"), 1);
    assert_eq!(judged("gateway/src/a.rs", "use gateway_core::floor::Floor;"), 0);
    assert_eq!(judged("firmware-sim/src/a.rs", "let l = audio::listener::Listener::new();"), 1);
    assert_eq!(judged("firmware-sim/src/a.rs", "use audio::{codec::opus,\n    vad};"), 1);
    assert_eq!(judged("firmware-sim/src/a.rs", "use audio::wake::Head;"), 1);
    assert_eq!(judged("firmware-sim/src/wake.rs", "use audio::wake::Head;"), 0);
    assert_eq!(judged("firmware-sim/src/a.rs", "use audio::codec; use crate::audio::vad;"), 0);
    assert_eq!(judged("tools/src/registry.rs", "use rmcp::model::Tool;"), 1);
    assert_eq!(judged("tools/src/mcp/client.rs", "use rmcp::model::Tool;"), 0);
    assert_eq!(judged("tools/examples/shopping_list.rs", "use rmcp::model::Tool;"), 0);
}

#[test]
fn a_forbidden_word_is_found() {
    let judged = |path: &str, text: &str| forbidden_words(&File::new(path, text)).len();
    assert_eq!(judged("gateway/core/src/a.rs", "use alloc::collections::HashMap;"), 1);
    assert_eq!(judged("gateway/core/src/a.rs", "let now = std::time::Instant::now();"), 2);
    assert_eq!(judged("gateway/core/src/a.rs", "fn hear(pcm: &[i16]) {}"), 1);
    assert_eq!(judged("audio/src/a.rs", "fn hear(pcm: &[i16]) {}"), 0);
    assert_eq!(judged("gateway/src/a.rs", "let a = b.unwrap();"), 1);
    assert_eq!(judged("gateway/src/a.rs", "/// let a = b.unwrap();"), 0);
    assert_eq!(judged("gateway/src/a.rs", "#[cfg(test)]\nmod tests {\n    b.unwrap();\n}"), 0);
    assert_eq!(judged("gateway/tests/a.rs", "b.unwrap();"), 0);
    assert_eq!(judged("gateway/src/ear.rs", "tokio::spawn(listen());"), 1);
    assert_eq!(judged("gateway/src/runtime/mod.rs", "tokio::spawn(listen());"), 0);
    assert_eq!(judged("gateway/src/ear.rs", "tasks.spawn(listen());"), 0);
    assert_eq!(judged("tools/src/a.rs", "eprintln!(\"x\");"), 1);
    for open in [concat!("todo", "!()"), concat!("// FIX", "ME"), concat!("#[ign", "ore]")] {
        assert_eq!(judged("tests/it/a.rs", open), 1, "{open}");
    }
}

#[test]
fn unsafe_code_without_a_reason_is_found() {
    let judged = |text: &str| unreasoned_unsafe(&File::new("a.rs", text)).len();
    let allow = concat!("#[allow(unsafe", "_code");
    assert_eq!(judged(&format!("{allow})]\nfn a() {{}} // reason")), 1);
    assert_eq!(judged(&format!("{allow}, reason = \"a C library\")]")), 0);
    assert_eq!(judged(&allow.replace("allow", "forbid")), 0);
}

#[test]
fn the_project_is_really_read() {
    let files = tree::files();
    assert!(files.iter().any(|file| file.path == "tests/it/tidy/rust_sources.rs"));
}
