//! What the gateway tells of itself: tools for an operator's programs, which are MCP clients of class internal, and for
//! `lorgnette tools call`. The gateway gives them ([`tools`]), together with what they read ([`Inspection`]).
//!
//! All but `system.status` are not for conversations: a model of a wearer is not offered them, and may not call them
//! ([`is_for_operators`](crate::sides::is_for_operators)), since their results are about everybody who uses the gateway.

mod clear_logs;
mod database_tools;
mod form;
mod get_log_stats;
pub mod graph;
pub mod logs;
mod model_tools;
pub mod models;
pub mod moment;
mod query_logs;
pub mod system;
mod system_lists;
mod system_status;

use std::sync::Arc;

use async_trait::async_trait;

use self::{
    form::ForOperators,
    graph::{Edge, Graph, GraphStats, Node, NodeId, NodeQuery},
    logs::{LogFilter, LogPage, LogQuery, LogScope, LogStats, Logs},
    models::{ModelInfo, Models},
    system::{System, SystemState},
};
use crate::{builtin::Tool, ports::PortError};

/// Categories of these tools.
const LOGS: &str = "logs";
const DATABASE: &str = "database";
const MODELS: &str = "models";
const SYSTEM: &str = "system";

/// What the tools read.
#[derive(Clone)]
pub struct Inspection {
    /// The stored log.
    pub logs: Arc<dyn Logs>,
    /// The state of the gateway.
    pub system: Arc<dyn System>,
    /// What models there are, and what they have done.
    pub models: Arc<dyn Models>,
    /// What is stored of users.
    pub graph: Arc<dyn Graph>,
}

impl Default for Inspection {
    /// There is nothing to read.
    fn default() -> Self {
        Self { logs: Arc::new(Nothing), system: Arc::new(Nothing), models: Arc::new(Nothing), graph: Arc::new(Nothing) }
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

    async fn stats(&self, _scope: LogScope) -> Result<LogStats, PortError> {
        nothing()
    }

    async fn clear(&self, _filter: LogFilter, _scope: LogScope) -> Result<u64, PortError> {
        nothing()
    }
}

#[async_trait]
impl System for Nothing {
    async fn state(&self) -> Result<SystemState, PortError> {
        nothing()
    }
}

#[async_trait]
impl Graph for Nothing {
    async fn search(&self, _user: &str, _query: NodeQuery) -> Result<Vec<Node>, PortError> {
        nothing()
    }

    async fn node(&self, _user: &str, _id: NodeId) -> Result<Option<(Node, Vec<Edge>)>, PortError> {
        nothing()
    }

    async fn stats(&self, _user: &str) -> Result<GraphStats, PortError> {
        nothing()
    }
}

impl Models for Nothing {
    fn models(&self) -> Vec<ModelInfo> {
        Vec::new()
    }
}

/// All tools.
pub fn tools(inspection: &Inspection) -> Vec<Arc<dyn Tool>> {
    let Inspection { logs, system, models, graph } = inspection;
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(ForOperators(query_logs::QueryLogs(logs.clone()))),
        Arc::new(ForOperators(get_log_stats::GetLogStats(logs.clone()))),
        Arc::new(ForOperators(clear_logs::ClearLogs(logs.clone()))),
        Arc::new(ForOperators(model_tools::ListModels(models.clone()))),
        Arc::new(ForOperators(model_tools::GetModelInfo(models.clone()))),
        Arc::new(ForOperators(model_tools::GetInferenceStats(models.clone()))),
        Arc::new(ForOperators(database_tools::SearchNodes(graph.clone()))),
        Arc::new(ForOperators(database_tools::GetNodeDetails(graph.clone()))),
        Arc::new(ForOperators(database_tools::GetDatabaseStats(graph.clone()))),
        Arc::new(system_status::SystemStatusTool(system.clone())),
    ];
    for part in system_lists::Part::ALL {
        tools.push(Arc::new(ForOperators(system_lists::SystemList(system.clone(), part))));
    }
    tools
}

#[cfg(test)]
mod tests;
