//! Permission to use a tool: its client classes, and the tools that a user has switched off.

use std::sync::Arc;

use gateway_core::vocab::{ClientClass, ToolSpec};
use tokio::sync::watch;

/// The tools that users have switched off. The gateway stores them; reading must not leave memory, since it happens
/// with every call and every request to a model.
pub trait Switches: Send + Sync {
    /// The switches of a user: full names, or prefixes of names followed by `*`.
    fn denied(&self, user: &str) -> Arc<[String]>;

    /// Changes with every switch that is set, to notify components that have published a list of tools. It never
    /// changes if no switch can be set.
    fn changes(&self) -> watch::Receiver<u64> {
        watch::Sender::default().subscribe()
    }
}

/// No tool is switched off for anybody.
pub struct AllOn;

impl Switches for AllOn {
    fn denied(&self, _user: &str) -> Arc<[String]> {
        Arc::default()
    }
}

/// Whether one of the switches applies to this tool.
pub fn is_denied(denied: &[String], tool: &str) -> bool {
    denied.iter().any(|switch| match switch.strip_suffix('*') {
        Some(beginning) => tool.starts_with(beginning),
        None => switch == tool,
    })
}

/// Whether this class of clients can see the tool.
pub fn is_for(spec: &ToolSpec, client: ClientClass) -> bool {
    spec.clients.as_ref().is_none_or(|classes| classes.contains(&client))
}
