//! Who called a tool, as far as that client can be spoken to while its call runs.
//!
//! The wearer is spoken to by the core; this is for clients that speak MCP: they show progress,
//! answer questions, and take results that a wearer could not hear. Values have MCP's own JSON form,
//! so that nothing outside `tools::mcp` needs its types.

use std::{collections::BTreeMap, fmt::Debug};

use async_trait::async_trait;
use gateway_core::vocab::ApprovalOutcome;
use serde_json::Value;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::ports::ConsentRequest;

/// Why a question came to no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotAsked {
    /// The client cannot be asked this.
    #[error("the client cannot be asked this")]
    Unable,
    /// It went away, or did not answer in time.
    #[error("the client did not answer")]
    Silent,
}

/// The outcome of a call exactly as an MCP server gave it.
#[derive(Clone, Debug, PartialEq)]
pub enum Exact {
    /// A `CallToolResult`.
    Result(Value),
    /// A protocol error: code, message, data.
    Error {
        /// JSON-RPC error code.
        code: i32,
        /// In words.
        message: String,
        /// What the code defines.
        data: Option<Value>,
    },
}

/// A client that waits for the result of a call.
#[async_trait]
pub trait Caller: Debug + Send + Sync {
    /// Asks whether a call may run. `None`: this client cannot be asked, so the wearer is.
    async fn consent(&self, request: &ConsentRequest, cancel: &CancellationToken) -> Option<ApprovalOutcome>;
    /// What the client can be asked: MCP's client capabilities.
    fn capabilities(&self) -> Value;
    /// Asks several things at once: MCP requests (`method`, `params`) by key; results by the same keys.
    async fn ask(&self, requests: BTreeMap<String, Value>) -> Result<BTreeMap<String, Value>, NotAsked>;
    /// Tells how far the call is. May be dropped when the client reads slowly.
    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>);
    /// The least severe log level that the client wants, by MCP's name; `None`: no logs.
    fn log_level(&self) -> Option<String>;
    /// Passes on a log message in MCP's form. May be dropped.
    fn log(&self, message: Value);
    /// Keeps the exact outcome beside the call's one result.
    fn keep(&self, exact: Exact);
}
