//! The layers of the gateway's top-level modules: each imports from lower ones only. ARCHITECTURE.md has a diagram of them.

use std::collections::BTreeSet;

use super::cycles::{Imports, imports};
use super::tree::File;
use super::{no_complaints, tree};

const FOLDER: &str = "gateway/src/";

/// Each layer may import from the preceding ones.
const LAYERS: [&[&str]; 17] = [
    &["clock", "environment", "findings", "mailbox", "private", "problems", "runtime", "text", "units"],
    &["limits", "store"],
    &["backup", "firmware", "health", "models", "photos", "recordings", "skills", "speech", "telemetry", "workspace"],
    &["transport"],
    &["identity", "roster", "upgrade"],
    &["approvals", "discovery", "mcp"],
    &["capabilities", "users"],
    &["ports"],
    &["apps"],
    &["device_task"],
    &["erasing"],
    &["control"],
    &["http"],
    &["config"],
    &["conformance", "doctor"],
    &["serve"],
    &["cli", "fuzzing"],
];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn complaints(modules: &Imports) -> Vec<String> {
    let mut found = Vec::new();
    for (module, imports) in modules {
        let Some(own) = layer(module) else {
            found.push(format!(
                "{FOLDER}{module} stands in no layer; tests/it/tidy/layers.rs and ARCHITECTURE.md list them"
            ));
            continue;
        };
        let upwards = imports.keys().filter(|import| layer(import).is_some_and(|other| other >= own));
        found.extend(upwards.map(|import| format!("{FOLDER}{module} imports {import}, which is no lower layer")));
    }
    found
}

fn of(files: &[File]) -> Imports {
    imports(files).remove(FOLDER).unwrap_or_default()
}

#[test]
fn modules_of_the_gateway_import_downwards() {
    let modules = of(&tree::files());
    let named: usize = LAYERS.iter().map(|layer| layer.len()).sum();
    assert_eq!(modules.len(), named, "modules that there are, and those that stand in a layer");
    no_complaints(&complaints(&modules));
}

#[test]
fn an_import_upwards_beside_and_from_nowhere_is_found() {
    let found =
        |path: &str, code: &str| complaints(&of(&[File::new(path, code), File::new("gateway/src/users.rs", "")]));
    no_complaints(&found("gateway/src/apps/host.rs", "use crate::users::Users;"));
    assert_eq!(found("gateway/src/store/rows.rs", "use crate::{clock, users::Users};").len(), 1);
    assert_eq!(found("gateway/src/gate.rs", "").len(), 1);
    let beside =
        [File::new("gateway/src/identity.rs", "use crate::roster::Roster;"), File::new("gateway/src/roster.rs", "")];
    assert_eq!(complaints(&of(&beside)).len(), 1);
}

/// The rows of the drawing in ARCHITECTURE.md, lowest first: names two spaces apart, then, further away, what they are for.
fn drawn(page: &str) -> Vec<BTreeSet<&str>> {
    let drawing = page.split("```").find(|block| block.trim_start().starts_with("cli "));
    let rows = drawing.unwrap_or_default().lines().filter(|line| !line.trim().is_empty());
    rows.rev().map(|row| row.trim().split("   ").next().unwrap_or_default().split_whitespace().collect()).collect()
}

#[test]
fn the_drawing_in_architecture_has_the_same_rows() {
    let layers = LAYERS.map(|layer| layer.iter().copied().collect::<BTreeSet<_>>());
    let page = tree::files().into_iter().find(|file| file.path == "ARCHITECTURE.md").expect("ARCHITECTURE.md");
    assert_eq!(drawn(&page.text), layers);
    for (row, other) in [("identity  roster", "identity\n roster"), ("limits  store", "store"), (" transport\n", "")] {
        assert_ne!(drawn(&page.text.replace(row, other)), layers, "{row}");
    }
}
