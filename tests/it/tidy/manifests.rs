//! The dependencies between crates, read from the manifests.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{no_complaints, tree};

/// Every crate, and the crates of this workspace that it may name in any dependency table.
const ARROWS: [(&str, &[&str]); 13] = [
    ("device-protocol", &[]),
    ("audio", &[]),
    ("xtask", &[]),
    ("gateway-core", &[]),
    ("chat-models", &["gateway-core"]),
    ("code-sandbox", &[]),
    ("tools", &["gateway-core", "code-sandbox"]),
    ("mini-app-kit", &[]),
    ("firmware-sim", &["device-protocol", "audio"]),
    ("gateway", &["tools", "code-sandbox", "chat-models", "gateway-core", "audio", "device-protocol"]),
    ("sqlite-bench", &["gateway", "tools", "gateway-core"]),
    ("fuzz", &["gateway", "tools", "chat-models", "gateway-core", "audio", "device-protocol"]),
    (
        "tests",
        &[
            "gateway",
            "firmware-sim",
            "tools",
            "mini-app-kit",
            "chat-models",
            "gateway-core",
            "code-sandbox",
            "audio",
            "device-protocol",
        ],
    ),
];

/// Crates with synchronous code only: neither a runtime nor sockets, also not in their tests.
const SYNCHRONOUS: [&str; 4] = ["device-protocol", "audio", "gateway-core", "code-sandbox"];
const RUNTIME: [&str; 10] = [
    "tokio",
    "tokio-util",
    "tokio-rustls",
    "tokio-tungstenite",
    "hyper",
    "hyper-util",
    "quinn",
    "reqwest",
    "axum",
    "async-trait",
];

/// Complaints about one crate's manifest.
fn judge(manifest: &Table) -> Vec<String> {
    let name = manifest["package"]["name"].as_str().unwrap_or("?");
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{name}: a crate that ARROWS does not list")];
    };
    let mut complaints = Vec::new();
    for dependency in dependencies(manifest) {
        let ours = ARROWS.iter().any(|(known, _)| *known == dependency);
        if ours && !allowed.contains(&dependency.as_str()) {
            complaints.push(format!("{name} must not import {dependency}"));
        }
        if SYNCHRONOUS.contains(&name) && RUNTIME.contains(&dependency.as_str()) {
            complaints.push(format!("{name} is synchronous and must not import {dependency}"));
        }
        if name == "xtask" {
            complaints.push(format!("xtask has no dependencies, but imports {dependency}"));
        }
    }
    let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace"));
    if inherits != Some(&Value::Boolean(true)) {
        complaints.push(format!("{name} does not inherit the lints (`[lints] workspace = true`)"));
    }
    complaints
}

/// Package names in every dependency table, also those of one target only.
fn dependencies(manifest: &Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let tables = std::iter::once(manifest)
        .chain(targets.into_iter().flat_map(|targets| targets.values().filter_map(Value::as_table)));
    let mut names = Vec::new();
    for table in tables {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let entries = table.get(kind).and_then(Value::as_table).into_iter().flatten();
            names.extend(
                entries.map(|(key, entry)| entry.get("package").and_then(Value::as_str).unwrap_or(key).to_owned()),
            );
        }
    }
    names
}

/// Bans of the root's clippy.toml that a nearer one lacks. Clippy reads only the nearest file.
fn forgotten_bans(root: &str, nearer: &str) -> Vec<String> {
    let bans = |text: &str| -> Vec<String> {
        let table: Table = text.parse().expect("a clippy.toml is TOML");
        let list = table["disallowed-methods"].as_array().expect("a list of bans");
        list.iter().map(|ban| ban["path"].as_str().expect("a path").to_owned()).collect()
    };
    let nearer = bans(nearer);
    bans(root).into_iter().filter(|ban| !nearer.contains(ban)).collect()
}

fn manifest(text: &str) -> Table {
    text.parse().expect("a manifest is TOML")
}

#[test]
fn imports_point_down() {
    let files: BTreeMap<String, String> = tree::files().into_iter().map(|file| (file.path, file.text)).collect();
    let workspace = manifest(&files["Cargo.toml"]);
    let members = workspace["workspace"]["members"].as_array().expect("members");
    assert_eq!(members.len(), ARROWS.len(), "ARROWS and the workspace list different crates");
    let complaints: Vec<String> = members
        .iter()
        .filter_map(Value::as_str)
        .flat_map(|folder| judge(&manifest(&files[&format!("{folder}/Cargo.toml")])))
        .collect();
    no_complaints(&complaints);
}

#[test]
fn a_wrong_arrow_is_found() {
    let judged = |text: &str| judge(&manifest(&format!("{text}\n[lints]\nworkspace = true")));
    let package = |name: &str, rest: &str| format!("[package]\nname = \"{name}\"\n{rest}");
    assert_eq!(judged(&package("audio", "")), [""; 0]);
    for bad in [
        package("audio", "[dependencies]\ngateway-core.workspace = true"),
        package("audio", "[dev-dependencies]\ntokio = \"1\""),
        package("tools", "[dev-dependencies]\nchat-models.workspace = true"),
        package("gateway", "[dependencies]\nsim = { package = \"firmware-sim\", path = \"x\" }"),
        package("gateway-core", "[target.'cfg(unix)'.dependencies]\naudio = { path = \"x\" }"),
        package("xtask", "[dependencies]\nanyhow = \"1\""),
        package("newcomer", ""),
    ] {
        assert_eq!(judged(&bad).len(), 1, "{bad}");
    }
    assert_eq!(judge(&manifest(&package("audio", ""))).len(), 1, "lints are not inherited");
}

#[test]
fn every_clippy_file_repeats_the_roots_bans() {
    let files = tree::files();
    let root = files.iter().find(|file| file.path == "clippy.toml").expect("clippy.toml");
    let nearer = files.iter().filter(|file| file.path.ends_with("/clippy.toml"));
    let complaints: Vec<String> = nearer
        .flat_map(|file| {
            forgotten_bans(&root.text, &file.text).into_iter().map(|ban| format!("{} forgets to ban {ban}", file.path))
        })
        .collect();
    no_complaints(&complaints);
}

#[test]
fn a_forgotten_ban_is_found() {
    let root = "disallowed-methods = [{ path = \"a\" }, { path = \"b\" }]";
    assert_eq!(forgotten_bans(root, "disallowed-methods = [{ path = \"b\" }]"), ["a"]);
    assert_eq!(forgotten_bans(root, root), [""; 0]);
}
