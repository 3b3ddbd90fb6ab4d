//! Permission to use a tool: its client classes, and the tools that a user has switched off.

use std::{collections::BTreeMap, sync::Arc};

use gateway_core::vocab::{ClientClass, ToolSpec};

/// The tools that users have switched off. The gateway stores them; reading must not leave memory, since it happens
/// with every call and every request to a model. The code that sets a switch reports it to the registry
/// ([`offers_changed`](crate::registry::Registry::offers_changed)).
pub trait Switches: Send + Sync {
    /// The switches of a user: full names, or prefixes of names followed by `*`.
    fn denied(&self, user: &str) -> Arc<[String]>;
}

/// The classes of clients that the operator has set for single tools, by full name. They replace those of the tool's
/// definition; an empty list: no client at all.
pub type ConfiguredClients = BTreeMap<String, Vec<ClientClass>>;

/// No tool is switched off for anybody.
pub struct AllOn;

impl Switches for AllOn {
    fn denied(&self, _user: &str) -> Arc<[String]> {
        Arc::default()
    }
}

/// The first of the switches that applies to this tool, or to all these tools where it is a prefix followed by `*`.
pub fn denied_by<'a>(denied: &'a [String], tool: &str) -> Option<&'a str> {
    let applies = |switch: &&str| match switch.strip_suffix('*') {
        Some(beginning) => tool.starts_with(beginning),
        None => *switch == tool,
    };
    denied.iter().map(String::as_str).find(applies)
}

/// Whether one of the switches applies to this tool.
pub fn is_denied(denied: &[String], tool: &str) -> bool {
    denied_by(denied, tool).is_some()
}

/// Whether this class of clients can see the tool.
pub fn is_for(spec: &ToolSpec, client: ClientClass) -> bool {
    spec.clients.as_ref().is_none_or(|classes| classes.contains(&client))
}
