//! Who may use a tool: its client classes, and what a user has switched off.

use std::sync::Arc;

use gateway_core::vocab::{ClientClass, ToolSpec};
use tokio::sync::watch;

/// What users have switched off. The gateway stores it; reading is a look into memory, since it is
/// done with every call and every request to a model.
pub trait Switches: Send + Sync {
    /// What a user has switched off: full names, or the beginning of names with a `*` behind it.
    fn denied(&self, user: &str) -> Arc<[String]>;

    /// Changes with every switch that is set, for whoever has told others what there is. Never, where none is ever set.
    fn changes(&self) -> watch::Receiver<u64> {
        watch::Sender::default().subscribe()
    }
}

/// Nobody has switched anything off.
pub struct AllOn;

impl Switches for AllOn {
    fn denied(&self, _user: &str) -> Arc<[String]> {
        Arc::default()
    }
}

/// Whether one of the switches is about this tool.
pub fn is_denied(denied: &[String], tool: &str) -> bool {
    denied.iter().any(|switch| match switch.strip_suffix('*') {
        Some(beginning) => tool.starts_with(beginning),
        None => switch == tool,
    })
}

/// Whether this class of clients sees the tool.
pub fn is_for(spec: &ToolSpec, client: ClientClass) -> bool {
    spec.clients.as_ref().is_none_or(|classes| classes.contains(&client))
}
