//! The Debian package: control files around the tree of installed files.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::level::{Level, PROGRAMS};
use super::{VERSION, epoch, write};
use crate::places::Places;
use crate::process::{self, Failure};

/// Who packages: from the variables that Debian's tools read.
pub(super) fn maintainer() -> String {
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    format!("{} <{}>", variable("DEBFULLNAME", "The Lorgnette authors"), variable("DEBEMAIL", "lorgnette@localhost"))
}

/// Scripts of the package, in `deploy/debian`.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// `NAME_VERSION_ARCHITECTURE.deb`.
pub(super) fn file_name(level: Level, suffix: &str) -> Result<String, Failure> {
    Ok(format!("lorgnette_{}_{}.deb", version(level, suffix), architecture()?))
}

fn version(level: Level, suffix: &str) -> String {
    format!("{VERSION}{}{suffix}", level.suffix())
}

fn architecture() -> Result<String, Failure> {
    Ok(process::read(Command::new("dpkg").arg("--print-architecture"))?.trim().to_owned())
}

/// Packages the tree; `suffix` makes another version of it.
pub(super) fn build(places: &Places, level: Level, tree: &Path, suffix: &str, file: &Path) -> Result<(), Failure> {
    let control = tree.join("DEBIAN");
    fs::create_dir_all(&control).map_err(Failure::at(&control))?;
    for script in SCRIPTS {
        let from = places.root.join("deploy/debian").join(script);
        fs::copy(&from, control.join(script)).map_err(Failure::at(&from))?;
    }
    let sums = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum > DEBIAN/md5sums && du -sk usr";
    let sizes = process::read(Command::new("sh").args(["-c", sums]).current_dir(tree))?;
    let kib: u64 = sizes.lines().filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok()).sum();
    let text = format!(
        "Package: lorgnette\nVersion: {}\nArchitecture: {}\nMaintainer: {}\nInstalled-Size: {kib}\n\
         Depends: ca-certificates, {}\nRecommends: python3-pip\nSection: net\nPriority: optional\n\
         Description: low-latency edge gateway for smart glasses\n \
         Glasses stream sound to it; it recognises speech on this machine, asks a\n \
         model, calls tools, and streams text and speech back. With simulated glasses.\n .\n {}\n",
        version(level, suffix),
        architecture()?,
        maintainer(),
        dependencies(tree)?,
        level.demand(),
    );
    write(&control.join("control"), &text)?;
    process::read(
        Command::new("sh")
            .args(["-c", "chmod 0755 DEBIAN && chmod 0644 DEBIAN/* && chmod 0755 DEBIAN/p*"])
            .current_dir(tree),
    )?;
    let mut command = Command::new("dpkg-deb");
    if level == Level::Development {
        // It is a check of the recipe, and large.
        command.args(["-Zgzip", "-z1"]);
    }
    command.args(["--root-owner-group", "--build"]).arg(tree).arg(file).env("SOURCE_DATE_EPOCH", epoch(places));
    let built = process::read(&mut command).map(drop);
    fs::remove_dir_all(&control).map_err(Failure::at(&control))?;
    built
}

/// The packages of the shared libraries that the programs link, with their least versions.
fn dependencies(tree: &Path) -> Result<String, Failure> {
    // It reads the package's name from a source package.
    let source = tree.with_file_name("source");
    let control = source.join("debian/control");
    fs::create_dir_all(source.join("debian")).map_err(Failure::at(&source))?;
    write(&control, "Source: lorgnette\n\nPackage: lorgnette\nArchitecture: any\n")?;
    let mut command = Command::new("dpkg-shlibdeps");
    command.arg("-O").args(PROGRAMS.map(|program| tree.join("usr/bin").join(program))).current_dir(&source);
    let said = process::read(&mut command)?;
    fs::remove_dir_all(&source).map_err(Failure::at(&source))?;
    let found = said.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    found.map(str::to_owned).ok_or_else(|| Failure::new(format!("dpkg-shlibdeps found no library: {said}")))
}
