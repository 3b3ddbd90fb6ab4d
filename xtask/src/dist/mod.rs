//! `cargo xtask dist`: packages for machines without a compiler: a tarball and a Debian package of both programs, the
//! licences of all code in them, a software bill of materials, checksums.
//!
//! Debian packages are built by `dpkg-deb` from the same folder as the tarball: every Debian has it, and the list of
//! dependencies comes from `dpkg-shlibdeps`. A cargo sub-command for it would have to be compiled first.

mod crates;
mod deb;
mod level;
mod licences;
mod sbom;
mod stage;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::debian;
use crate::needs;
use crate::places::Places;
use crate::process::{self, Failure};
use crate::steps::step;

use level::Level;

const USAGE: &str = "dist: there are --native or --dev, --no-build, --out FOLDER, --try";

/// The product's version: that of the workspace.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What the command line asks for.
struct Wanted {
    level: Level,
    /// The programs are built already.
    is_built: bool,
    out: PathBuf,
    is_tried: bool,
}

/// The packages of one level.
struct Made {
    level: Level,
    /// The tree of installed files, from which a second version is packaged for the trial.
    tree: PathBuf,
    deb: PathBuf,
}

/// Options: see [`USAGE`].
pub(crate) fn run(places: &Places, options: &[String]) -> Result<(), Failure> {
    let wanted = Wanted::parse(places, options)?;
    // Before a build of many minutes.
    if wanted.is_tried && !debian::may_install() {
        return Err(Failure::new("--try needs Debian and root: it boots a container"));
    }
    step("system packages", || {
        needs::require(&[&needs::BUILD, &needs::PACKAGE])?;
        if wanted.is_tried { needs::require(&[&needs::TRIAL, &needs::FETCH]) } else { Ok(()) }
    })?;
    if !wanted.is_built {
        step("build", || wanted.level.build(places))?;
    }
    let made = step("package", || package(places, &wanted))?;
    let tried = if wanted.is_tried { trial::run(places, &made) } else { Ok(()) };
    fs::remove_dir_all(&made.tree).map_err(Failure::at(&made.tree))?;
    tried
}

impl Wanted {
    fn parse(places: &Places, options: &[String]) -> Result<Self, Failure> {
        let mut wanted =
            Self { level: Level::Portable, is_built: false, out: places.root.join("target/dist"), is_tried: false };
        let mut options = options.iter().map(String::as_str);
        while let Some(option) = options.next() {
            match (option, wanted.level) {
                ("--native", Level::Portable) => wanted.level = Level::Native,
                ("--dev", Level::Portable) => wanted.level = Level::Development,
                ("--no-build", _) => wanted.is_built = true,
                ("--try", _) => wanted.is_tried = true,
                ("--out", _) => wanted.out = options.next().ok_or_else(|| Failure::new(USAGE))?.into(),
                _ => return Err(Failure::new(format!("`{option}`: {USAGE}"))),
            }
        }
        Ok(wanted)
    }
}

/// Makes all files in the output folder, replacing those of the same names.
fn package(places: &Places, wanted: &Wanted) -> Result<Made, Failure> {
    let Wanted { level, out, .. } = wanted;
    fs::create_dir_all(out).map_err(Failure::at(out))?;
    let out = &fs::canonicalize(out).map_err(Failure::at(out))?;
    let crates = crates::shipped(places)?;
    let (licences, sbom) = (licences::text(places, &crates)?, sbom::text(&crates, VERSION));
    let tree = stage::lay_out(places, *level, &out.join("tree"), &stage::Inventory { licences, sbom: &sbom })?;
    let name = format!("lorgnette-{VERSION}-{}", level.name());
    let (archive, deb, bill) = (format!("{name}.tar.gz"), deb::file_name(*level, "")?, format!("{name}.cdx.json"));
    stage::tarball(places, &tree, &out.join(&archive), &name)?;
    deb::build(places, *level, &tree, "", &out.join(&deb))?;
    write(&out.join(&bill), &sbom)?;
    let sums = process::read(Command::new("sha256sum").args([&archive, &deb, &bill]).current_dir(out))?;
    write(&out.join("SHA256SUMS"), &sums)?;
    for file in [&archive, &deb, &bill, "SHA256SUMS"] {
        let path = out.join(file);
        let bytes = fs::metadata(&path).map_err(Failure::at(&path))?.len();
        println!("  {:>8.1} MB  {}", bytes as f64 / 1e6, path.display());
    }
    Ok(Made { level: *level, tree, deb: out.join(deb) })
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(Failure::at(path))
}

/// The time of the last commit, in seconds since 1970: two packages of one commit are the same.
fn epoch(places: &Places) -> String {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return epoch;
    }
    let asked = process::read(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(&places.root));
    // A source archive has no history.
    asked.map_or_else(|_| "0".to_owned(), |seconds| seconds.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: &[&str]) -> Result<Wanted, Failure> {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        Wanted::parse(&Places::find()?, &options)
    }

    #[test]
    fn options_are_taken_in_any_order_and_others_refused() {
        let wanted = parse(&["--try", "--out", "somewhere", "--dev", "--no-build"]).unwrap();
        assert!(wanted.is_tried && wanted.is_built && wanted.level == Level::Development);
        assert_eq!(wanted.out, Path::new("somewhere"));
        assert!(parse(&[]).unwrap().out.ends_with("target/dist"));
        for wrong in [&["--native", "--dev"][..], &["--out"], &["--release"]] {
            assert!(parse(wrong).err().unwrap().to_string().contains("--native or --dev"));
        }
    }
}
