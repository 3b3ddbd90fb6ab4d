//! Providers of tools, and the scope in which a tool is visible.

use std::fmt;

use gateway_core::vocab::RateLimit;
use serde::{Deserialize, Serialize};

use crate::limits::{USER_BYTES_MAX, USERS_MAX};

/// A provider of tools.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum Source {
    /// Compiled in.
    BuiltIn,
    /// A pair of glasses, by device id.
    Device(String),
    /// A mini-app, by package name.
    App(String),
    /// An MCP server, by its name in the configuration.
    Mcp(String),
    /// A file with a definition, by the name of the capability or of the single tool that it defines.
    Capability(String),
}

/// What a capability says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Its name, which no other one has.
    pub name: String,
    /// As its author counts.
    pub version: String,
    /// For the author of a program; may be empty.
    pub description: String,
    /// How often one user may call its functions, all together; those with a limit of their own do not count.
    pub rate_limit: Option<RateLimit>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::Device(id) => write!(f, "device:{id}"),
            Self::App(package) => write!(f, "app:{package}"),
            Self::Mcp(name) => write!(f, "mcp:{name}"),
            Self::Capability(name) => write!(f, "capability:{name}"),
        }
    }
}

/// Who can see the tools. If a name exists in two scopes, the earlier variant wins, so that a narrow scope cannot
/// replace a globally known tool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum Scope {
    /// All users.
    Global,
    /// One user, on all devices.
    User(String),
    /// One device, which has at most one session at a time. Also the session of a client that is not a device, under an
    /// id that no device has.
    Device(String),
}

impl Scope {
    /// The scopes of what is for these users; without any it is for all.
    pub fn of(users: &[String]) -> Vec<Self> {
        if users.is_empty() {
            return vec![Self::Global];
        }
        let mut scopes: Vec<Self> = users.iter().cloned().map(Self::User).collect();
        scopes.sort();
        scopes.dedup();
        scopes
    }

    /// Whether tools of this scope are offered to this user on this device; without a user, to everybody.
    pub(crate) fn covers(&self, user: Option<&str>, device: Option<&str>) -> bool {
        match self {
            Self::Global => true,
            Self::User(name) => Some(name.as_str()) == user,
            Self::Device(id) => Some(id.as_str()) == device,
        }
    }
}

/// Checks the names of the users that something is for.
///
/// # Errors
/// What is wrong with them.
pub fn check_users(users: &[String]) -> Result<(), String> {
    if users.is_empty() {
        return Err("names nobody; name at least one user, or leave it out: then it is for all".to_owned());
    }
    if users.len() > USERS_MAX {
        return Err(format!("{} users; at most {USERS_MAX} are accepted", users.len()));
    }
    let wrong =
        |name: &&String| name.trim().is_empty() || name.len() > USER_BYTES_MAX || name.contains(char::is_control);
    match users.iter().find(wrong) {
        Some(_) => Err(format!("the name of a user has 1 to {USER_BYTES_MAX} bytes, all of visible characters")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_some_users_has_a_scope_for_each() {
        let users = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let user = |name: &str| Scope::User(name.to_owned());
        assert_eq!(Scope::of(&[]), [Scope::Global]);
        assert_eq!(Scope::of(&users(&["bob", "ada", "bob"])), [user("ada"), user("bob")]);
        assert!(Scope::of(&users(&["ada"])).iter().all(|scope| !scope.covers(Some("bob"), None)));
        check_users(&users(&["ada", "Ada Lovelace"])).unwrap();
        for (wrong, words) in [(vec![], "for all"), (users(&[" "]), "1 to"), (users(&["a\nb"]), "visible")] {
            assert!(check_users(&wrong).unwrap_err().contains(words), "{wrong:?}");
        }
        assert!(check_users(&vec!["a".to_owned(); USERS_MAX + 1]).unwrap_err().contains("at most"));
    }
}
