//! The section `[mcp]`, used as configured.

use std::{collections::BTreeMap, path::PathBuf};

use gateway_core::vocab::ClientClass;
use serde::Deserialize;
use tools::mcp::{config::RawServer, server::Approver};

use crate::problems::Problems;

/// MCP in both directions. Other files and the environment are read when the gateway starts, and by `lorgnette check`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct McpSettings {
    /// Serve MCP over HTTP at `/mcp`, `/mcp/copilot` and `/mcp/external`.
    pub http: bool,
    /// Names of this machine in the Host header, in addition to those of loopback.
    pub hosts: Vec<String>,
    /// Origins of pages that may connect, in addition to the gateway's own on loopback.
    pub origins: Vec<String>,
    /// Programs on this machine need no key for `/mcp`.
    pub without_key: bool,
    /// Bearer keys.
    pub keys: Vec<KeyEntry>,
    /// The downstream server that is exposed unrenamed.
    pub flatten: Option<String>,
    /// A file in the common `mcpServers` form.
    pub file: Option<PathBuf>,
    /// Downstream servers, by name.
    pub servers: BTreeMap<String, RawServer>,
}

/// A bearer key: its user, and where it is stored.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyEntry {
    /// For whom its clients call.
    pub user: String,
    /// Class of the clients that use it.
    pub class: ClientClass,
    /// Who approves their calls; `None`: as usual for the class.
    pub approves: Option<Approver>,
    /// Variable that holds it.
    pub env: Option<String>,
    /// File that holds it.
    pub file: Option<PathBuf>,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            http: true,
            hosts: Vec::new(),
            origins: Vec::new(),
            without_key: false,
            keys: Vec::new(),
            flatten: None,
            file: None,
            servers: BTreeMap::new(),
        }
    }
}

impl McpSettings {
    /// Checks what does not depend on other files or the environment.
    pub(crate) fn check(&self, problems: &mut Problems<'_>) {
        for host in self.hosts.iter().filter(|host| host.is_empty() || host.contains(['/', ' ', '@'])) {
            problems.nowhere(format!(
                "`mcp.hosts` has `{host}`; it must be a name such as box.lan, without http:// and path"
            ));
        }
        for (name, server) in &self.servers {
            for key in server.unknown_keys() {
                problems.nowhere(format!(
                    "`mcp.servers.{name}.{key}`: a server has no such key; write one of those in docs/mcp.md, or remove it"
                ));
            }
        }
    }
}
