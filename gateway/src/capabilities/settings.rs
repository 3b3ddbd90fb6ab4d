//! The section `[capabilities]`, used as configured.

use std::collections::BTreeMap;

use serde::Deserialize;
use tools::{
    code::std::{
        StdConfig, StdPolicy,
        policy::{HostConfig, HttpConfig, SecretConfig},
    },
    source::check_users,
};

use crate::{environment::Machine, problems::Problems};

/// Which capabilities, apps and MCP servers are for whom. Files are read when the gateway starts, and by `lorgnette
/// check`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CapabilitySettings {
    /// For all users.
    pub global: Vec<String>,
    /// For single users, by name.
    pub users: BTreeMap<String, OfUser>,
    /// What handlers may do, by capability.
    pub policy: BTreeMap<String, HandlerPolicy>,
}

/// What is for one user.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OfUser {
    /// References as in `global`.
    #[serde(rename = "use")]
    pub uses: Vec<String>,
}

/// What the handlers of a capability may do.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HandlerPolicy {
    /// Hosts that they may reach; none by default.
    pub hosts: Vec<HostConfig>,
    /// Secrets that are filled in for them.
    pub secrets: BTreeMap<String, SecretConfig>,
}

impl HandlerPolicy {
    /// As the standard library takes it.
    pub(super) fn library(&self) -> StdConfig {
        StdConfig { http: HttpConfig { hosts: self.hosts.clone() }, secrets: self.secrets.clone() }
    }
}

impl CapabilitySettings {
    /// Checks what does not depend on files.
    pub(crate) fn check(&self, problems: &mut Problems<'_>, machine: &Machine) {
        let names: Vec<String> = self.users.keys().cloned().collect();
        if let Err(why) = check_users(&names).or_else(|why| if names.is_empty() { Ok(()) } else { Err(why) }) {
            problems.nowhere(format!("`capabilities.users`: {why}"));
        }
        // Whether a variable is set is checked when the files are read.
        for (capability, policy) in &self.policy {
            if let Err(error) = StdPolicy::check_for(capability, policy.library(), |name| machine.secret(name)) {
                problems.nowhere(error.to_string());
            }
        }
    }

    /// All references with their key, and the user that each is for; `None`: all users.
    pub(super) fn references(&self) -> impl Iterator<Item = (String, Option<&str>, &str)> {
        let global = self.global.iter().map(|text| ("capabilities.global".to_owned(), None, text.as_str()));
        let of_users = self.users.iter().flat_map(|(user, of_user)| {
            let key = format!("capabilities.users.{user}.use");
            of_user.uses.iter().map(move |text| (key.clone(), Some(user.as_str()), text.as_str()))
        });
        global.chain(of_users)
    }
}
