//! Providers of tools, and the scope in which a tool is visible.

use std::fmt;

use serde::{Deserialize, Serialize};

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
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::Device(id) => write!(f, "device:{id}"),
            Self::App(package) => write!(f, "app:{package}"),
            Self::Mcp(name) => write!(f, "mcp:{name}"),
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
    /// Whether tools of this scope are offered to this user on this device; without a user, to everybody.
    pub(crate) fn covers(&self, user: Option<&str>, device: Option<&str>) -> bool {
        match self {
            Self::Global => true,
            Self::User(name) => Some(name.as_str()) == user,
            Self::Device(id) => Some(id.as_str()) == device,
        }
    }
}
