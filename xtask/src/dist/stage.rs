//! The tree of installed files, as the Debian package has it, and the tarball of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::level::{Level, PROGRAMS};
use super::{VERSION, epoch, write};
use crate::places::Places;
use crate::process::{self, Failure};

/// Shells, with the file that each looks for; `{}` is the program.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/{}"),
    ("zsh", "usr/share/zsh/vendor-completions/_{}"),
    ("fish", "usr/share/fish/vendor_completions.d/{}.fish"),
];
/// Paths that the installed configuration sets; in the example they are comments.
const SET: [&str; 2] = ["data_dir = \"/var/lib/lorgnette\"", "models_dir = \"/var/lib/lorgnette-models\""];

/// What `postinst` puts into `/etc/lorgnette` where no configuration is. It is no conffile: dpkg would ask about it at the next
/// upgrade of each gateway that was set up.
const CONFIG: &str = "usr/share/lorgnette/config.toml";
const UNITS: &str = "usr/lib/systemd/system";
const DOCUMENTS: &str = "usr/share/doc/lorgnette";

/// What is known about the code in the programs.
pub(super) struct Inventory<'a> {
    pub(super) licences: String,
    pub(super) sbom: &'a str,
}

/// Fills the folder `tree`, which is made anew.
pub(super) fn lay_out(
    places: &Places,
    level: Level,
    tree: &Path,
    inventory: &Inventory<'_>,
) -> Result<PathBuf, Failure> {
    if tree.exists() {
        fs::remove_dir_all(tree).map_err(Failure::at(tree))?;
    }
    for program in PROGRAMS {
        let built = level.program(places, program);
        let installed = tree.join("usr/bin").join(program);
        copy(&built, &installed)?;
        // The names of functions stay, for backtraces.
        process::read(Command::new("strip").arg("--strip-debug").arg(&installed))?;
        for (shell, file) in SHELLS {
            let text = process::read(Command::new(&built).args(["completions", shell]))?;
            put(&tree.join(file.replace("{}", program)), &text)?;
        }
        process::read(Command::new(&built).arg("man").arg(tree.join("usr/share/man/man1")))?;
    }
    let example = process::read(Command::new(level.program(places, PROGRAMS[0])).args(["check", "--example"]))?;
    put(&tree.join(CONFIG), &configuration(&example)?)?;
    for unit in ["lorgnette.service", "lorgnette.socket"] {
        copy(&places.root.join("deploy").join(unit), &tree.join(UNITS).join(unit))?;
    }
    let documents = tree.join(DOCUMENTS);
    put(&documents.join("LICENCES"), &inventory.licences)?;
    put(&documents.join("lorgnette.cdx.json"), inventory.sbom)?;
    put(&documents.join("changelog"), &changelog(level))?;
    copy(&places.root.join("deploy/debian/copyright"), &documents.join("copyright"))?;
    // The configuration and messages name pages of `docs`, and the pages link to each other.
    for document in ["README.md", "PROTOCOL.md", "ARCHITECTURE.md"] {
        copy(&places.root.join(document), &documents.join(document))?;
    }
    let folder = places.root.join("docs");
    for entry in fs::read_dir(&folder).map_err(Failure::at(&folder))? {
        let page = entry.map_err(Failure::at(&folder))?.path();
        if page.extension().is_some_and(|extension| extension == "md") {
            copy(&page, &documents.join("docs").join(page.file_name().unwrap_or_default()))?;
        }
    }
    let pages = "gzip -9n usr/share/man/man1/*.1 usr/share/doc/lorgnette/LICENCES usr/share/doc/lorgnette/changelog \
                 usr/share/doc/lorgnette/lorgnette.cdx.json && chmod -R u=rwX,go=rX .";
    process::read(Command::new("sh").args(["-c", pages]).current_dir(tree))?;
    Ok(tree.to_path_buf())
}

/// The example, with the paths of an installed gateway.
fn configuration(example: &str) -> Result<String, Failure> {
    let mut text = example.replacen("Every value below is the default: copy the file, change\n# what you need, and run `lorgnette check FILE`.", "Every value below is the default, but the two folders: change\n# what you need, run `lorgnette check`, and restart the gateway.", 1);
    for line in SET {
        let comment = format!("\n# {line}\n");
        if text.matches(&comment).count() != 1 {
            return Err(Failure::new(format!(
                "`lorgnette check --example` has no line `# {line}`, which is to be set"
            )));
        }
        text = text.replace(&comment, &format!("\n{line}\n"));
    }
    Ok(text)
}

/// In Debian's form. What changed is in the commits.
fn changelog(level: Level) -> String {
    let suffix = level.suffix();
    format!(
        "lorgnette ({VERSION}{suffix}) unstable; urgency=medium\n\n  * Version {VERSION}.\n\n -- {}  \
         Thu, 01 Jan 1970 00:00:00 +0000\n",
        super::deb::maintainer()
    )
}

/// A tarball with one folder, whose content belongs below a prefix such as `/usr/local`; the units are among the documents.
pub(super) fn tarball(places: &Places, tree: &Path, file: &Path, name: &str) -> Result<(), Failure> {
    let time = format!("--mtime=@{}", epoch(places));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", &time, "--owner=0", "--group=0", "--numeric-owner", "--use-compress-program=gzip -n"]);
    tar.args([
        &format!("--transform=s,^usr/lib/systemd/system,{name}/share/doc/lorgnette,"),
        &format!("--transform=s,^usr/,{name}/,"),
    ]);
    tar.arg("--create").arg("--file").arg(file).arg("--directory").arg(tree);
    tar.args(["usr/bin", "usr/share", UNITS]);
    process::read(&mut tar).map(drop)
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
    make_folder(path)?;
    write(path, text)
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    make_folder(to)?;
    fs::copy(from, to).map_err(Failure::at(from)).map(drop)
}

fn make_folder(of: &Path) -> Result<(), Failure> {
    let folder = of.parent().unwrap_or(of);
    fs::create_dir_all(folder).map_err(Failure::at(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installed_configuration_sets_its_folders() {
        let example =
            "a = 1\n# data_dir = \"/var/lib/lorgnette\"\n\n# models_dir = \"/var/lib/lorgnette-models\"\nb = 2\n";
        let set = "a = 1\ndata_dir = \"/var/lib/lorgnette\"\n\nmodels_dir = \"/var/lib/lorgnette-models\"\nb = 2\n";
        assert_eq!(configuration(example).unwrap(), set);
        assert!(configuration("a = 1\n").unwrap_err().to_string().contains("data_dir"));
    }
}
