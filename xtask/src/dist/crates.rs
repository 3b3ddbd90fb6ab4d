//! The crates whose code is in the programs, as `cargo tree` and the lock file name them.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cargo::cargo;
use crate::places::Places;
use crate::process::{self, Failure};

/// One crate. Macros and build scripts are left out: their code is not in the programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression.
    pub(super) licence: String,
    pub(super) repository: String,
    /// SHA-256 of its archive in the registry; the crates of this workspace have none.
    pub(super) checksum: Option<String>,
    /// Positions of its dependencies in the list.
    pub(super) needs: Vec<usize>,
}

impl Crate {
    /// Whether it is of this workspace.
    pub(super) fn is_ours(&self) -> bool {
        self.checksum.is_none()
    }

    /// Where cargo has unpacked it.
    pub(super) fn folder(&self) -> Result<PathBuf, Failure> {
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
        let sources = home.ok_or_else(|| Failure::new("neither CARGO_HOME nor HOME is set"))?.join("registry/src");
        let registries = fs::read_dir(&sources).map_err(Failure::at(&sources))?;
        let folder = format!("{}-{}", self.name, self.version);
        let found = registries.flatten().map(|registry| registry.path().join(&folder)).find(|path| path.is_dir());
        found.ok_or_else(|| Failure::new(format!("{folder} is not in {}", sources.display())))
    }
}

/// All crates of both programs, sorted by name.
pub(super) fn shipped(places: &Places) -> Result<Vec<Crate>, Failure> {
    process::read(&mut cargo(places, &["fetch", "--locked", "--quiet"]))?;
    let words = ["tree", "--locked", "--offline", "-p", "gateway", "-p", "firmware-sim"];
    let mut tree = cargo(places, &words);
    tree.args(["--edges", "normal,no-proc-macro", "--prefix", "depth", "--format", " {p}|{l}|{r}"]);
    let lock = places.root.join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(Failure::at(&lock))?;
    parse(&process::read(&mut tree)?, &checksums(&lock))
}

/// Checksums of the lock file, by name and version.
fn checksums(lock: &str) -> HashMap<(&str, &str), &str> {
    let mut sums = HashMap::new();
    for package in lock.split("[[package]]") {
        let value = |key: &str| {
            package.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
        };
        if let (Some(name), Some(version), Some(sum)) = (value("name"), value("version"), value("checksum")) {
            sums.insert((name, version), sum);
        }
    }
    sums
}

/// A line is `DEPTH NAME vVERSION[ (PATH)]|LICENCE|REPOSITORY[ (*)]`; the mark says that its dependencies were listed
/// before.
fn parse(tree: &str, checksums: &HashMap<(&str, &str), &str>) -> Result<Vec<Crate>, Failure> {
    let mut crates: Vec<Crate> = Vec::new();
    // Positions of the crates above the present line.
    let mut above: Vec<usize> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let read = || {
            let (depth, rest) = line.split_once(' ')?;
            let mut fields = rest.strip_suffix(" (*)").unwrap_or(rest).splitn(3, '|');
            let mut words = fields.next()?.split(' ');
            let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
            Some((depth.parse::<usize>().ok()?, name, version, fields.next()?, fields.next()?))
        };
        let (depth, name, version, licence, repository) = read()
            .filter(|line| line.0 <= above.len())
            .ok_or_else(|| Failure::new(format!("`cargo tree` printed a line that is not understood: {line}")))?;
        let known = crates.iter().position(|known| known.name == name && known.version == version);
        let at = known.unwrap_or(crates.len());
        if known.is_none() {
            crates.push(Crate {
                name: name.to_owned(),
                version: version.to_owned(),
                // Before SPDX expressions, `/` stood for a choice.
                licence: licence.replace('/', " OR "),
                repository: repository.to_owned(),
                checksum: checksums.get(&(name, version)).map(|&sum| sum.to_owned()),
                needs: Vec::new(),
            });
        }
        above.truncate(depth);
        if let Some(&parent) = above.last()
            && !crates[parent].needs.contains(&at)
        {
            crates[parent].needs.push(at);
        }
        above.push(at);
    }
    Ok(sorted(crates))
}

fn sorted(crates: Vec<Crate>) -> Vec<Crate> {
    let mut order: Vec<usize> = (0..crates.len()).collect();
    order.sort_by(|&a, &b| (&crates[a].name, &crates[a].version).cmp(&(&crates[b].name, &crates[b].version)));
    let mut place = vec![0; crates.len()];
    for (new, &old) in order.iter().enumerate() {
        place[old] = new;
    }
    let renamed = order.iter().map(|&old| {
        let mut one = crates[old].clone();
        one.needs.iter_mut().for_each(|need| *need = place[*need]);
        one.needs.sort_unstable();
        one
    });
    renamed.collect()
}

/// Files with licences below a crate's folder, also those of the C code in it, sorted by path.
pub(super) fn licence_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    look_below(folder, 0, &mut found)?;
    found.sort();
    Ok(found)
}

fn look_below(folder: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    /// The deepest one is three folders down.
    const DEPTH_MAX: u32 = 6;
    const BEGINNINGS: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];
    /// Code of other languages is no licence.
    const NOT_TEXT: [&str; 6] = ["rs", "c", "h", "py", "js", "html"];
    for entry in fs::read_dir(folder).map_err(Failure::at(folder))? {
        let path = entry.map_err(Failure::at(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let is_text = path.extension().is_none_or(|ending| !NOT_TEXT.iter().any(|code| ending == *code));
        if path.is_dir() && depth < DEPTH_MAX {
            look_below(&path, depth + 1, found)?;
        } else if path.is_file() && is_text && BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\nsource = \"registry\"\nchecksum = \"cafe\"\n\
                        \n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n";

    #[test]
    fn a_tree_becomes_a_list_with_arrows() {
        let tree = "0 z v1.0.0 (/z)|MIT|\n1 b v2.0.0|MIT/Apache-2.0|https://b\n2 c v3.0.0|Zlib|\n\n\
                    0 a v1.0.0 (/a)|MIT|\n1 z v1.0.0 (/z)|MIT| (*)\n1 b v2.0.0|MIT/Apache-2.0|https://b (*)\n";
        let crates = parse(tree, &checksums(LOCK)).unwrap();
        let names: Vec<&str> = crates.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "z"]);
        assert_eq!(
            [&crates[0].needs[..], &crates[1].needs, &crates[2].needs, &crates[3].needs],
            [&[1, 3][..], &[2], &[], &[1]]
        );
        assert_eq!((crates[1].licence.as_str(), crates[1].repository.as_str()), ("MIT OR Apache-2.0", "https://b"));
        assert_eq!(crates[1].checksum.as_deref(), Some("cafe"));
        assert!(crates[0].is_ours() && !crates[1].is_ours());
    }

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        for tree in ["0 a|MIT|", "warning: something", "1 a v1.0.0|MIT|"] {
            assert!(parse(tree, &HashMap::new()).unwrap_err().to_string().contains(tree));
        }
    }
}
