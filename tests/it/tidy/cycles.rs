//! Sibling modules import in one direction, at every depth of every crate: the imports have no cycles.
//!
//! What a module imports counts for all modules that it is part of. A parent's own file is the root of its children and no
//! node among them: it may import them, and they may import what it defines. A name that it only takes from a child, to use it
//! or to re-export it, counts as that child's. Names behind the `*` of such a re-export are not followed.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::File;
use super::use_trees::{Path, paths, uses};
use super::{no_complaints, tree};

/// The imported siblings of each module of one folder, each with a file that imports it.
pub(super) type Imports = BTreeMap<String, BTreeMap<String, String>>;

/// The names from the root of a crate to a module, or to something in it.
type Names<'a> = Vec<&'a str>;

/// A file, as a module of its crate.
struct Source<'a> {
    file: &'a str,
    /// The source folder of its crate.
    folder: &'a str,
    module: Names<'a>,
    code: String,
}

/// The modules of one crate.
struct Crate<'a> {
    /// What each module names, from the crate's root on, and in which file.
    modules: BTreeMap<Names<'a>, Vec<(Names<'a>, &'a str)>>,
    /// What parents take from their children: what a name in a parent stands for.
    taken: BTreeMap<Names<'a>, Names<'a>>,
}

/// The production code of a library or a program with modules; `None` for anything else.
fn source(file: &File) -> Option<Source<'_>> {
    let at = file.path.find("src/")?;
    let (folder, rest) = file.path.split_at(at + "src/".len());
    let mut module: Names<'_> = rest.strip_suffix(".rs").filter(|_| !file.is_test())?.split('/').collect();
    match module[..] {
        ["bin", ..] => return None,
        ["lib" | "main"] => module.clear(),
        [.., "mod"] => drop(module.pop()),
        _ => {}
    }
    let code = file.code().iter().map(|(_, line)| *line).collect::<Vec<_>>().join("\n");
    Some(Source { file: &file.path, folder, module, code })
}

impl<'a> Crate<'a> {
    fn of(sources: &[&'a Source<'a>]) -> Self {
        let parts = |source: &&'a Source<'a>| (0..=source.module.len()).map(|end| &source.module[..end]);
        let known: BTreeSet<&[&str]> = sources.iter().flat_map(parts).collect();
        let modules = known.iter().map(|module| (module.to_vec(), Vec::new())).collect();
        let mut all = Self { modules, taken: BTreeMap::new() };
        for source in sources {
            let absolute = |segments: &[&'a str]| absolute(&source.module, segments, &known);
            let depth = source.module.len();
            let mut imports = Vec::new();
            for Path { segments, name } in uses(&source.code) {
                let Some(path) = absolute(&segments) else { continue };
                let is_of_child = path.len() > depth + 1 && path.starts_with(&source.module);
                if is_of_child && known.contains(&path[..=depth]) {
                    all.taken.insert([&source.module[..], &[name]].concat(), path.clone());
                }
                imports.push(path);
            }
            let elsewhere = ["crate", "self", "super"].into_iter().flat_map(|root| paths(&source.code, root));
            imports.extend(elsewhere.filter_map(|path| absolute(&path.segments)));
            let imports = imports.into_iter().map(|path| (path, source.file));
            all.modules.entry(source.module.clone()).or_default().extend(imports);
        }
        all
    }

    /// The path itself where a parent has only taken it from a child.
    fn origin(&self, path: &[&'a str]) -> Names<'a> {
        let mut path = path.to_vec();
        let mut seen = BTreeSet::new();
        while seen.insert(path.clone()) {
            let module = (0..=path.len()).rev().find(|end| self.modules.contains_key(&path[..*end])).unwrap_or(0);
            let Some(taken) = path.get(..=module).and_then(|name| self.taken.get(name)) else { break };
            path = [taken, &path[module + 1..]].concat();
        }
        path
    }

    /// The imports between the modules of each folder, by the names to the folder.
    fn imports(&self) -> BTreeMap<Names<'a>, Imports> {
        let mut folders = BTreeMap::<Names<'a>, Imports>::new();
        for module in self.modules.keys() {
            if let Some((name, folder)) = module.split_last() {
                folders.entry(folder.to_vec()).or_default().entry((*name).to_owned()).or_default();
            }
        }
        for (from, named) in &self.modules {
            for (path, file) in named {
                let to = self.origin(path);
                let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
                let (Some(importer), Some(imported)) = (from.get(common), to.get(common)) else { continue };
                if self.modules.contains_key(&to[..=common])
                    && let Some(imports) = folders.get_mut(&to[..common]).and_then(|all| all.get_mut(*importer))
                {
                    imports.entry((*imported).to_owned()).or_insert_with(|| (*file).to_owned());
                }
            }
        }
        folders
    }
}

/// A path from the root of the crate on; `None` if it leads into another crate.
fn absolute<'a>(module: &[&'a str], segments: &[&'a str], known: &BTreeSet<&[&str]>) -> Option<Names<'a>> {
    let supers = segments.iter().take_while(|segment| **segment == "super").count();
    let (base, rest) = match segments {
        ["crate", rest @ ..] => (&[][..], rest),
        ["self", rest @ ..] => (module, rest),
        ["super", ..] => (module.get(..module.len().checked_sub(supers)?)?, &segments[supers..]),
        [child, ..] if known.contains([module, &[*child]].concat().as_slice()) => (module, segments),
        _ => return None,
    };
    Some([base, rest].concat())
}

/// The imports between the modules of each folder of each crate, by its path: `gateway/src/`, `gateway/src/apps/`.
pub(super) fn imports(files: &[File]) -> BTreeMap<String, Imports> {
    let sources: Vec<Source<'_>> = files.iter().filter_map(source).collect();
    let mut crates = BTreeMap::<&str, Vec<&Source<'_>>>::new();
    for source in &sources {
        crates.entry(source.folder).or_default().push(source);
    }
    let folders = crates.into_iter().flat_map(|(folder, sources)| {
        let folders = Crate::of(&sources).imports().into_iter();
        let named = folders
            .map(|(names, imports)| (names.iter().fold(folder.to_owned(), |all, name| all + name + "/"), imports));
        named.collect::<Vec<_>>()
    });
    folders.collect()
}

/// What a module imports, directly or by way of others.
fn reached<'a>(imports: &'a Imports, from: &'a str) -> BTreeSet<&'a str> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        let unseen = imports.get(module).into_iter().flat_map(BTreeMap::keys).filter(|name| seen.insert(name.as_str()));
        next.extend(unseen.map(String::as_str));
    }
    seen
}

/// A complaint for each group of modules that reach each other.
fn cycles(folders: &BTreeMap<String, Imports>) -> Vec<String> {
    let complaints = folders.iter().flat_map(|(folder, imports)| {
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            imports.keys().map(|name| (name.as_str(), reached(imports, name))).collect();
        let group = |name: &&str| {
            reached[*name].iter().copied().filter(|other| reached[*other].contains(*name)).collect::<BTreeSet<_>>()
        };
        let groups: BTreeSet<BTreeSet<&str>> = reached.keys().map(group).filter(|group| !group.is_empty()).collect();
        groups.into_iter().map(move |group| {
            let inside = |(from, all): (&String, &BTreeMap<String, String>)| {
                let all = all.iter().filter(|(to, _)| group.contains(from.as_str()) && group.contains(to.as_str()));
                all.map(|(to, file)| format!("{from} imports {to} ({file})")).collect::<Vec<_>>()
            };
            format!("{folder} has a cycle: {}", imports.iter().flat_map(inside).collect::<Vec<_>>().join(", "))
        })
    });
    complaints.collect()
}

#[test]
fn modules_import_in_one_direction() {
    let folders = imports(&tree::files());
    let modules: usize = folders.values().map(BTreeMap::len).sum();
    let crates = folders.keys().filter(|folder| folder.ends_with("src/")).count();
    let found = cycles(&folders);
    println!("{modules} modules in {crates} crates, {} import cycles between siblings", found.len());
    assert!(crates > 8 && modules > 900, "only {modules} modules in {crates} crates were found");
    no_complaints(&found);
}

/// The cycles of some files.
fn found(files: &[(&str, &str)]) -> Vec<String> {
    cycles(&imports(&files.iter().map(|(path, code)| File::new(path, code)).collect::<Vec<_>>()))
}

#[test]
fn a_planted_import_upwards_is_found() {
    let planted = |folder: &str, root: &str, upper: &str, lower: &str| {
        let file = |module: &str| format!("{folder}{module}.rs");
        let [above, below, beside, deep] = [upper, lower, "a", &format!("{lower}/deep")].map(file);
        let down = format!("use {root}::{{a, {lower}::X}};");
        let down = [(above.as_str(), down.as_str()), (below.as_str(), "//! Nothing.\n"), (beside.as_str(), "")];
        no_complaints(&found(&down));
        let up = format!("fn f() {{ {root}::{upper}::g() }}");
        let found = found(&[&down[..], &[(deep.as_str(), up.as_str())]].concat());
        assert_eq!(found.len(), 1, "{folder}");
        assert!(found[0].contains(&format!("{lower} imports {upper} ({deep})")), "{found:?}");
        assert!(found[0].starts_with(&format!("{folder} has")), "{found:?}");
    };
    planted("gateway/src/", "crate", "server", "runtime");
    planted("gateway/core/src/", "crate", "conversation", "context");
    planted("tools/src/", "crate", "executor", "source");
    planted("tools/src/code/std/", "crate::code::std", "host", "values");
    planted("gateway/chat/src/intents/grammar/", "crate::intents::grammar", "partial", "part");
}

#[test]
fn an_import_by_way_of_the_parent_is_found() {
    let found = |path: &str, import: &str| {
        found(&[
            (path, import),
            ("gateway/src/users/task.rs", "use crate::roster;"),
            ("gateway/src/text.rs", ""),
            ("gateway/src/apps/host/mod.rs", "use crate::apps::socket::Ws;"),
            ("gateway/src/apps/text.rs", ""),
        ])
    };
    for (path, import) in [
        ("gateway/src/roster.rs", "use super::users;"),
        ("gateway/src/roster.rs", "use super::{text, users::Users};"),
        ("gateway/src/roster/mod.rs", "fn f() { super::users::g() }"),
        ("gateway/src/roster/places.rs", "use super::super::users::Users;"),
        ("gateway/src/roster/places/mod.rs", "use super::super::users::Users;"),
        ("gateway/src/apps/socket.rs", "use super::{text, host::{self, Host}};"),
        ("gateway/src/apps/socket/mod.rs", "pub(crate) use super::host;"),
        ("gateway/src/apps/socket/send.rs", "use super::super::host::Host;"),
        ("gateway/src/apps/socket/send.rs", "fn f(host: &crate::apps::host::Host) {}"),
    ] {
        assert_eq!(found(path, import).len(), 1, "{path}: {import}");
    }
    for (path, import) in [
        ("gateway/src/roster.rs", "use super::text;"),
        ("gateway/src/roster/places.rs", "use super::users;"),
        ("gateway/src/roster/places/held.rs", "use super::super::users;"),
        ("gateway/src/roster.rs", "#[cfg(test)]\nmod tests {\n    use super::users;\n}\n"),
        ("gateway/src/apps/socket.rs", "use super::text;"),
        ("gateway/src/apps/socket/send.rs", "use super::host;"),
        ("gateway/src/apps/socket.rs", "#[cfg(test)]\nmod tests {\n    use super::super::host;\n}\n"),
    ] {
        assert!(found(path, import).is_empty(), "{path}: {import}");
    }
}

#[test]
fn a_name_that_a_parent_takes_from_a_child_is_of_that_child() {
    let found = |parent: &str, upper: &str| {
        let folder = |folder: &str| {
            let file = |name: &str| format!("x/src/{folder}{name}.rs");
            let root = if folder.is_empty() { "lib" } else { "mod" };
            let [root, above, below] = [root, "upper", "lower"].map(file);
            found(&[(root.as_str(), parent), (above.as_str(), upper), (below.as_str(), "use super::Upper;")]).len()
        };
        assert_eq!(folder(""), folder("a/b/"), "{parent}");
        folder("")
    };
    let back = "use super::lower::Lower;";
    for parent in [
        "pub use upper::Upper;",
        "pub use self::upper::{Other, Upper};",
        "use upper::Upper;",
        "pub(crate) use upper::deep::Upper;",
        "pub use upper::Other as Upper;",
    ] {
        assert_eq!(found(parent, back), 1, "{parent}");
        assert_eq!(found(parent, "use super::Nothing;"), 0, "{parent}");
    }
    for parent in
        ["pub struct Upper;", "use upper::Upper as Other;", "fn f() { self::upper::Upper() }", "use std::Upper;"]
    {
        assert_eq!(found(parent, back), 0, "{parent}");
    }
}

#[test]
fn each_cycle_is_told_by_itself() {
    let found = found(&[
        ("x/src/a.rs", "use crate::b;"),
        ("x/src/b.rs", "use crate::c;"),
        ("x/src/c.rs", "use crate::{a, d};"),
        ("x/src/d.rs", "use crate::e;"),
        ("x/src/e.rs", "use crate::d;"),
        ("x/src/f.rs", "use crate::{a, d};"),
        ("x/src/f/a.rs", "use super::b;"),
        ("x/src/f/b.rs", "use super::a;"),
    ]);
    assert_eq!(
        found,
        [
            "x/src/ has a cycle: a imports b (x/src/a.rs), b imports c (x/src/b.rs), c imports a (x/src/c.rs)",
            "x/src/ has a cycle: d imports e (x/src/d.rs), e imports d (x/src/e.rs)",
            "x/src/f/ has a cycle: a imports b (x/src/f/a.rs), b imports a (x/src/f/b.rs)",
        ]
    );
}

#[test]
fn parents_tests_and_macros_are_no_imports() {
    no_complaints(&found(&[
        ("x/src/a.rs", "macro_rules! m { () => { $crate::b::f() } }"),
        ("x/src/b.rs", "use crate::a::A;"),
        ("x/src/a_tests.rs", "use crate::b;"),
        ("x/src/lib.rs", "mod a;\nuse crate::a;"),
        ("x/src/c.rs", "#[cfg(test)]\nmod tests {\n    use crate::d;\n}\n"),
        ("x/src/d.rs", "use crate::c;"),
        ("x/src/e/mod.rs", "mod f;\npub struct E;\nfn g() { self::f::g() }"),
        ("x/src/e/f.rs", "use super::E;"),
        ("x/src/bin/a.rs", "use crate::b;"),
    ]));
}
