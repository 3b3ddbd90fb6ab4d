//! The top-level modules of a crate import in one direction: the imports have no cycles. Modules inside them may import each
//! other.

use std::collections::{BTreeMap, BTreeSet};

use super::rust_sources::parts_used;
use super::tree::File;
use super::{no_complaints, tree};

/// The imported top-level modules of each top-level module.
pub(super) type Imports = BTreeMap<String, BTreeSet<String>>;

/// Where a file stands.
struct Place<'a> {
    /// The source folder of its crate.
    folder: &'a str,
    /// The top-level module that it is, or is part of.
    module: &'a str,
    /// How many `super::` lead to the crate's root.
    depth: usize,
}

/// The place of a file below the crate's root. Roots and programs import everything.
fn place(path: &str) -> Option<Place<'_>> {
    let at = path.find("src/")?;
    let (folder, rest) = path.split_at(at + "src/".len());
    let module = rest.split('/').next()?.trim_end_matches(".rs");
    let depth = rest.trim_end_matches("/mod.rs").split('/').count();
    (!matches!(module, "lib" | "main" | "bin")).then_some(Place { folder, module, depth })
}

/// The imports between the top-level modules of each crate, by its source folder.
pub(super) fn imports(files: &[File]) -> BTreeMap<String, Imports> {
    let mut crates = BTreeMap::<String, Imports>::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs") && !file.is_test()) {
        let Some(Place { folder, module, depth }) = place(&file.path) else { continue };
        let code = file.code().iter().map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
        // Names in a macro are imported where it is used.
        let code = code.replace("$crate::", "$");
        let by_parents = parts_used(&code, &vec!["super"; depth].join("::"));
        let used = parts_used(&code, "crate").into_iter().chain(by_parents);
        let imports = crates.entry(folder.to_owned()).or_default().entry(module.to_owned()).or_default();
        imports.extend(used.filter(|other| other != module));
    }
    for modules in crates.values_mut() {
        let names: BTreeSet<String> = modules.keys().cloned().collect();
        modules.values_mut().for_each(|imports| imports.retain(|name| names.contains(name)));
    }
    crates
}

/// Modules that are part of a cycle.
fn in_cycles(imports: &Imports) -> BTreeSet<&str> {
    let comes_back = |module: &&str| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![*module]);
        while let Some(at) = next.pop() {
            for import in imports.get(at).into_iter().flatten() {
                if import == module {
                    return true;
                }
                if seen.insert(import.as_str()) {
                    next.push(import);
                }
            }
        }
        false
    };
    imports.keys().map(String::as_str).filter(comes_back).collect()
}

fn cycles(crates: &BTreeMap<String, Imports>) -> Vec<String> {
    let complain = |(folder, imports): (&String, &Imports)| {
        let cycle = in_cycles(imports);
        let edges = cycle.iter().flat_map(|from| {
            let back = imports[*from].iter().filter(|to| cycle.contains(to.as_str()));
            back.map(move |to| format!("{from} imports {to}"))
        });
        let edges = edges.collect::<Vec<_>>();
        (!edges.is_empty()).then(|| format!("{folder} has a cycle: {}", edges.join(", ")))
    };
    crates.iter().filter_map(complain).collect()
}

#[test]
fn modules_import_in_one_direction() {
    let crates = imports(&tree::files());
    let modules: usize = crates.values().map(BTreeMap::len).sum();
    let found = cycles(&crates);
    println!("{modules} top-level modules in {} crates, {} with an import cycle among them", crates.len(), found.len());
    assert!(crates.len() > 8 && modules > 150, "only {modules} modules in {} crates were found", crates.len());
    no_complaints(&found);
}

#[test]
fn a_planted_import_upwards_is_found() {
    let planted = |folder: &str, upper: &str, lower: &str| {
        let file = |module: &str, import: &str| File::new(&format!("{folder}{module}.rs"), import);
        let down =
            [file(upper, &format!("use crate::{{a, {lower}::X}};")), file(lower, "//! Nothing.\n"), file("a", "")];
        no_complaints(&cycles(&imports(&down)));
        let nested = File::new(&format!("{folder}{lower}/deep.rs"), &format!("fn f() {{ crate::{upper}::g() }}"));
        let found = cycles(&imports(&[&down[..], &[nested]].concat()));
        assert_eq!(found.len(), 1, "{folder}");
        assert!(found[0].contains(&format!("{lower} imports {upper}")), "{found:?}");
    };
    planted("gateway/src/", "server", "runtime");
    planted("gateway/core/src/", "conversation", "context");
    planted("tools/src/", "executor", "source");
}

#[test]
fn an_import_by_way_of_the_parent_is_found() {
    let found = |path: &str, import: &str| {
        let files = [
            File::new(path, import),
            File::new("gateway/src/users/task.rs", "use crate::roster;"),
            File::new("gateway/src/text.rs", ""),
        ];
        cycles(&imports(&files))
    };
    for (path, import) in [
        ("gateway/src/roster.rs", "use super::users;"),
        ("gateway/src/roster.rs", "use super::{text, users::Users};"),
        ("gateway/src/roster/mod.rs", "fn f() { super::users::g() }"),
        ("gateway/src/roster/places.rs", "use super::super::users::Users;"),
        ("gateway/src/roster/places/mod.rs", "use super::super::users::Users;"),
    ] {
        assert_eq!(found(path, import).len(), 1, "{path}: {import}");
    }
    for (path, import) in [
        ("gateway/src/roster.rs", "use super::text;"),
        ("gateway/src/roster/places.rs", "use super::users;"),
        ("gateway/src/roster/places/held.rs", "use super::super::users;"),
        ("gateway/src/roster.rs", "#[cfg(test)]\nmod tests {\n    use super::users;\n}\n"),
    ] {
        assert!(found(path, import).is_empty(), "{path}: {import}");
    }
}

#[test]
fn tests_and_macros_are_no_imports() {
    let files = [
        File::new("x/src/a.rs", "macro_rules! m { () => { $crate::b::f() } }"),
        File::new("x/src/b.rs", "use crate::a::A;"),
        File::new("x/src/a_tests.rs", "use crate::b;"),
        File::new("x/src/lib.rs", "use crate::a;"),
        File::new("x/src/c.rs", "#[cfg(test)]\nmod tests {\n    use crate::d;\n}\n"),
        File::new("x/src/d.rs", "use crate::c;"),
    ];
    no_complaints(&cycles(&imports(&files)));
}
