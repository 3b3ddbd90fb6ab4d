//! What the gateway tells of itself: tools for an operator's programs, which are MCP clients of class internal, and for
//! `lorgnette tools call`. The gateway gives them ([`tools`]), together with what they read ([`Inspection`]).
//!
//! All but `system.status` are not for conversations: a model of a wearer is not offered them, and may not call them
//! ([`is_for_operators`](crate::sides::is_for_operators)), since their results are about everybody who uses the gateway.

mod clear_logs;
mod get_log_stats;
pub mod logs;
pub mod moment;
mod query_logs;
pub mod system;
mod system_lists;
mod system_status;

use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags};

use self::{
    logs::{LogFilter, LogPage, LogQuery, LogStats, Logs},
    system::{System, SystemState},
};
use crate::{builtin::Tool, ports::PortError};

/// Categories of these tools.
const LOGS: &str = "logs";
const SYSTEM: &str = "system";

/// For an operator's programs only.
const OPERATORS: Option<&[ClientClass]> = Some(&[ClientClass::Internal]);

/// Read-only, and of no interest to the ledger.
const READ_ONLY: ToolFlags = ToolFlags {
    read_only: true,
    idempotent: true,
    destructive: false,
    requires_approval: false,
    always: false,
    persistent: false,
    requires_display: false,
    slow: false,
};

/// What the tools read.
#[derive(Clone)]
pub struct Inspection {
    /// The stored log.
    pub logs: Arc<dyn Logs>,
    /// The state of the gateway.
    pub system: Arc<dyn System>,
}

impl Default for Inspection {
    /// There is nothing to read.
    fn default() -> Self {
        Self { logs: Arc::new(Nothing), system: Arc::new(Nothing) }
    }
}

/// Tells nothing.
struct Nothing;

fn nothing<T>() -> Result<T, PortError> {
    Err(PortError::Unavailable("it is not kept here".to_owned()))
}

#[async_trait]
impl Logs for Nothing {
    async fn query(&self, _query: LogQuery) -> Result<LogPage, PortError> {
        nothing()
    }

    async fn stats(&self) -> Result<LogStats, PortError> {
        nothing()
    }

    async fn clear(&self, _filter: LogFilter) -> Result<u64, PortError> {
        nothing()
    }
}

#[async_trait]
impl System for Nothing {
    async fn state(&self) -> Result<SystemState, PortError> {
        nothing()
    }
}

/// All tools.
pub fn tools(inspection: &Inspection) -> Vec<Arc<dyn Tool>> {
    let (logs, system) = (|| Arc::clone(&inspection.logs), || Arc::clone(&inspection.system));
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(query_logs::QueryLogs(logs())),
        Arc::new(get_log_stats::GetLogStats(logs())),
        Arc::new(clear_logs::ClearLogs(logs())),
        Arc::new(system_status::SystemStatusTool(system())),
    ];
    for part in system_lists::Part::ALL {
        tools.push(Arc::new(system_lists::SystemList(system(), part)));
    }
    tools
}

#[cfg(test)]
mod tests;
