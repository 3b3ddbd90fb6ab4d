//! The section `[code]`: whether models may write programs that call tools.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use tools::code::{
    std::{
        StdConfig, StdPolicy,
        policy::{HttpConfig, SecretConfig},
    },
    tools::Programs,
};

use crate::{
    environment::{self, Machine},
    problems::Problems,
};

/// `[code]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodeSettings {
    /// Whether there are the tools `code.api` and `code.run`.
    pub enabled: bool,
    /// What models are offered besides.
    mode: Mode,
    /// Whether models on this machine are offered these tools as well: small ones cannot write programs.
    local_models: bool,
    /// The hosts that programs may reach.
    http: HttpConfig,
    /// Secrets that are filled in for them.
    secrets: BTreeMap<String, SecretConfig>,
    /// The executable whose processes run programs, where it is not the one of this process: in tests.
    #[serde(skip)]
    pub executable: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// All tools.
    #[default]
    Beside,
    /// Nothing.
    Instead,
}

impl CodeSettings {
    /// Checks what the standard library may do, also where it is off: a wrong line is one all the same. Whether a variable
    /// is set is checked at the start.
    pub(crate) fn check(&self, problems: &mut Problems<'_>, machine: &Machine) {
        if let Err(error) = StdPolicy::check(self.library(), |name| machine.secret(name)) {
            problems.nowhere(error.to_string());
        }
    }

    /// What the standard library may do, with the secrets that this process has; `None`: there are no programs.
    ///
    /// # Errors
    /// The variable of a secret is not set, or holds none.
    pub(crate) fn policy(&self) -> Result<Option<StdPolicy>> {
        let policy = || StdPolicy::check(self.library(), environment::variable).context("the section [code]");
        self.enabled.then(policy).transpose()
    }

    /// What the standard library of programs may do.
    fn library(&self) -> StdConfig {
        StdConfig { http: self.http.clone(), secrets: self.secrets.clone() }
    }

    /// What a model at this address may do.
    pub(crate) fn of(&self, base_url: &str) -> Programs {
        match self.mode {
            _ if !self.enabled || (is_local(base_url) && !self.local_models) => Programs::None,
            Mode::Beside => Programs::Beside,
            Mode::Instead => Programs::Instead,
        }
    }
}

/// Whether the server is on this machine.
fn is_local(base_url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(base_url) else { return false };
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::check;

    fn settings(text: &str) -> CodeSettings {
        check(&format!("[code]\n{text}\n"), "x.toml").unwrap_or_else(|problems| panic!("{problems:?}")).models.code
    }

    #[test]
    fn models_elsewhere_write_programs_where_that_is_wanted() {
        let (far, near) =
            ("https://api.example.com/v1", ["http://127.0.0.1:1/v1", "http://localhost", "http://[::1]:2"]);
        for (text, elsewhere, here) in [
            ("", Programs::None, Programs::None),
            ("mode = \"instead\"", Programs::None, Programs::None),
            ("enabled = true", Programs::Beside, Programs::None),
            ("enabled = true\nmode = \"instead\"\nlocal_models = true", Programs::Instead, Programs::Instead),
        ] {
            let settings = settings(text);
            assert_eq!(settings.of(far), elsewhere, "{text}");
            near.iter().for_each(|url| assert_eq!(settings.of(url), here, "{text} {url}"));
        }
        let problems = check("[code]\nhttp.hosts = [\"no host\"]\n", "x.toml").unwrap_err();
        assert!(problems[0].what.contains("no host"), "{problems:?}");
        let problems = check("[code]\nmode = \"only\"\n", "x.toml").unwrap_err();
        assert!(problems[0].line == Some(2) && problems[0].what.contains("`beside`"), "{problems:?}");
    }
}
