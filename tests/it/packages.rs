//! Packages of the development build, made by the recipe of the released ones (`cargo xtask dist --dev`).

mod container;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::process::binary;

/// What an operator looks for in the package.
const FILES: [&str; 17] = [
    "/usr/bin/lorgnette",
    "/usr/bin/lorgnette-sim",
    "/usr/lib/systemd/system/lorgnette.service",
    "/usr/lib/systemd/system/lorgnette.socket",
    "/usr/share/bash-completion/completions/lorgnette",
    "/usr/share/bash-completion/completions/lorgnette-sim",
    "/usr/share/doc/lorgnette/LICENCES.gz",
    "/usr/share/doc/lorgnette/PROTOCOL.md",
    "/usr/share/doc/lorgnette/copyright",
    "/usr/share/doc/lorgnette/docs/install.md",
    "/usr/share/doc/lorgnette/lorgnette.cdx.json.gz",
    "/usr/share/fish/vendor_completions.d/lorgnette.fish",
    "/usr/share/lorgnette/config.toml",
    "/usr/share/man/man1/lorgnette.1.gz",
    "/usr/share/man/man1/lorgnette-models-export.1.gz",
    "/usr/share/man/man1/lorgnette-sim-say.1.gz",
    "/usr/share/zsh/vendor-completions/_lorgnette",
];
/// The highest exposure that `systemd-analyze security` may see, times 10. The scale ends at 10; what remains is the
/// network.
const EXPOSURE_MAX: &str = "--threshold=20";

/// Standard output of a command that must succeed. Where it does not, the end of what it said is shown.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (said, words) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}:\n{}\n{}", end(&said), end(&words));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The last lines of a text.
fn end(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(80)..].join("\n")
}

/// The file with this ending.
fn made(folder: &Path, ending: &str) -> PathBuf {
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.to_string_lossy().ends_with(ending)).unwrap_or_else(|| panic!("no {ending}"))
}

#[test]
fn a_package_has_all_that_an_operator_needs() {
    let folder = tempfile::tempdir().unwrap();
    let (out, tree) = (folder.path().join("out"), folder.path().join("tree"));
    output(Command::new(binary().with_file_name("xtask")).args(["dist", "--dev", "--no-build", "--out"]).arg(&out));
    output(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&out));
    let deb = made(&out, ".deb");
    output(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(&tree));
    for file in FILES {
        assert!(tree.join(&file[1..]).is_file(), "{file} is not in the package");
    }
    judge_control(&deb);
    judge_configuration(&tree);
    judge_documents(&tree);
    judge_unit(&tree);
    judge_bill(&made(&out, ".cdx.json"));
    judge_licences(&tree);
    judge_tarball(&made(&out, ".tar.gz"));
    container::judge(&deb);
    let version = output(Command::new(tree.join("usr/bin/lorgnette")).arg("--version"));
    assert!(version.starts_with("lorgnette "), "{version}");
}

/// What an operator does with the package, on a clean Debian under systemd: `deploy/try.sh`.
#[test]
fn the_package_works_on_a_clean_debian() {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("CI").is_none(), "CI has to be root: this test boots a container");
        eprintln!("NOT RUN: only root can boot a container");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary().with_file_name("xtask"));
    let said = output(command.args(["dist", "--dev", "--no-build", "--try", "--out"]).arg(folder.path()));
    assert!(said.contains("== all of it came through"), "{said}");
}

/// The control files; every script is valid for the shell.
fn judge_control(deb: &Path) {
    let folder = tempfile::tempdir().unwrap();
    output(Command::new("dpkg-deb").arg("--control").arg(deb).arg(folder.path()));
    let control = fs::read_to_string(folder.path().join("control")).unwrap();
    for wanted in
        ["Package: lorgnette\n", "~dev\n", "libc6 (>= 2.", "libstdc++6", "ca-certificates", "Recommends: python3-pip\n"]
    {
        assert!(control.contains(wanted), "{wanted:?} is not in {control}");
    }
    assert!(!folder.path().join("conffiles").exists(), "dpkg asks about a conffile that `lorgnette setup` has changed");
    for script in ["postinst", "prerm", "postrm"] {
        output(Command::new("sh").arg("-n").arg(folder.path().join(script)));
    }
}

fn judge_configuration(tree: &Path) {
    let text = fs::read_to_string(tree.join("usr/share/lorgnette/config.toml")).unwrap();
    let config = gateway::config::check(&text, "config.toml").unwrap();
    assert_eq!(config.data_dir, Path::new("/var/lib/lorgnette"));
    assert_eq!(config.models_dir, Path::new("/var/lib/lorgnette-models"));
    assert!(config.listen.web.ip().is_loopback(), "a new installation is reachable from outside");
}

/// The pages that the configuration names, and those to which the installed pages link, are installed.
fn judge_documents(tree: &Path) {
    let documents = tree.join("usr/share/doc/lorgnette");
    let config = fs::read_to_string(tree.join("usr/share/lorgnette/config.toml")).unwrap();
    let named = config.split(|c: char| !(c.is_alphanumeric() || "/-.".contains(c)));
    let named: BTreeSet<&str> =
        named.map(|word| word.trim_end_matches('.')).filter(|word| word.ends_with(".md")).collect();
    assert!(named.len() > 3, "{named:?}");
    for page in named {
        assert!(documents.join(page).is_file(), "the configuration names {page}");
    }
    for page in fs::read_dir(documents.join("docs")).unwrap() {
        let page = page.unwrap().path();
        let text = fs::read_to_string(&page).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        for link in links.filter(|link| link.ends_with(".md")) {
            assert!(page.with_file_name(link).is_file(), "{} links to {link}", page.display());
        }
    }
}

/// systemd finds no fault with the unit, and little exposed.
fn judge_unit(tree: &Path) {
    let unit = tree.join("usr/lib/systemd/system/lorgnette.service");
    let text = fs::read_to_string(&unit).unwrap();
    // The verifier looks for the program on this machine.
    let here = text.replace("/usr/bin/lorgnette", &tree.join("usr/bin/lorgnette").display().to_string());
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("lorgnette.service");
    fs::write(&copy, here).unwrap();
    // It starts the service beside it.
    let sockets = folder.path().join("lorgnette.socket");
    fs::copy(unit.with_extension("socket"), &sockets).unwrap();
    let verified =
        Command::new("systemd-analyze").args(["verify", "--man=no"]).args([&copy, &sockets]).output().unwrap();
    let complaints = String::from_utf8_lossy(&verified.stderr);
    let ours: Vec<&str> = complaints.lines().filter(|line| line.contains("lorgnette")).collect();
    assert!(verified.status.success() && ours.is_empty(), "{complaints}");
    output(Command::new("systemd-analyze").args(["security", "--offline=true", EXPOSURE_MAX]).arg(&copy));
    // The rating does not look at these.
    for wanted in ["Type=notify\n", "WatchdogSec=", "MemoryMax=", "StateDirectory=lorgnette\n", "Restart=on-failure\n"]
    {
        assert!(text.contains(wanted), "{wanted}");
    }
}

/// The bill of materials lists the crates with their checksums, and each arrow ends at something.
fn judge_bill(file: &Path) {
    let bill: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
    let root = &bill["metadata"]["component"];
    let ours = root["components"].as_array().unwrap();
    let components = bill["components"].as_array().unwrap();
    for one in components {
        let hash = one["hashes"][0]["content"].as_str().unwrap_or_default();
        assert_eq!(hash.len(), 64, "{one}");
        assert!(one["licenses"][0]["expression"].as_str().is_some_and(|licence| !licence.is_empty()), "{one}");
    }
    let names: BTreeSet<&str> = components.iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(["tokio", "whisper-rs-sys", "rquickjs-sys", "ring"].iter().all(|name| names.contains(name)), "{names:?}");
    // Compiled for tests, or for the build only.
    assert!(!names.contains("proptest") && !names.contains("cmake"), "{names:?}");
    let reference = |one: &Value| one["bom-ref"].as_str().unwrap().to_owned();
    let all = components.iter().chain(ours).chain([root]).map(reference);
    let all: Vec<String> = all.collect();
    let known: BTreeSet<&str> = all.iter().map(String::as_str).collect();
    assert_eq!(known.len(), all.len(), "a reference is there twice");
    let arrows = bill["dependencies"].as_array().unwrap();
    assert_eq!(arrows.len(), all.len());
    for arrow in arrows {
        let ends = arrow["dependsOn"].as_array().unwrap().iter().chain([&arrow["ref"]]);
        assert!(ends.filter_map(Value::as_str).all(|end| known.contains(end)), "{arrow}");
    }
}

/// The licences of C code are there, too.
fn judge_licences(tree: &Path) {
    let text = output(Command::new("gzip").arg("-dc").arg(tree.join("usr/share/doc/lorgnette/LICENCES.gz")));
    for wanted in ["whisper.cpp/LICENSE)", "quickjs", "lmdb", "opus", "Apache License", "The ggml authors"] {
        assert!(text.contains(wanted), "{wanted:?} is not among the licences");
    }
}

/// One folder, and no file that belongs outside of a prefix.
fn judge_tarball(file: &Path) {
    let listed = output(Command::new("tar").arg("-tzf").arg(file));
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let folder = format!("{}/", name.trim_end_matches(".tar.gz"));
    let inside: Vec<&str> =
        listed.lines().map(|line| line.strip_prefix(&folder).unwrap_or_else(|| panic!("{line}"))).collect();
    assert!(inside.iter().all(|path| path.starts_with("bin/") || path.starts_with("share/")), "{inside:?}");
    for wanted in ["bin/lorgnette", "share/lorgnette/config.toml", "share/doc/lorgnette/lorgnette.service"] {
        assert!(inside.contains(&wanted), "{wanted}");
    }
}

#[test]
fn shells_complete_the_commands_of_both_programs() {
    for (program, word) in [("lorgnette", "devices"), ("lorgnette-sim", "pair")] {
        for shell in ["bash", "zsh", "fish"] {
            let text = output(Command::new(binary().with_file_name(program)).args(["completions", shell]));
            assert!(text.contains(program) && text.contains(word), "{program} {shell}");
        }
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("completions");
        fs::write(&script, output(Command::new(binary().with_file_name(program)).args(["completions", "bash"])))
            .unwrap();
        output(Command::new("bash").arg("-n").arg(&script));
    }
}
