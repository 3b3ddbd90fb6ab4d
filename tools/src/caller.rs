//! The client that called a tool, if it can be contacted while its call runs.
//!
//! The core talks to the wearer; this interface is for MCP clients: they show progress, answer questions, and accept
//! results that cannot be spoken. Values have MCP's own JSON form, so that nothing outside of `tools::mcp` needs its
//! types.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use async_trait::async_trait;
use gateway_core::vocab::ApprovalOutcome;
use serde_json::Value;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::ports::ConsentRequest;

/// Why a question was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotAsked {
    /// The client does not support this kind of question.
    #[error("the client cannot be asked this")]
    Unable,
    /// It disconnected, or did not answer in time.
    #[error("the client did not answer")]
    Silent,
}

/// The outcome of a call exactly as an MCP server returned it, but for the secrets that are redacted.
#[derive(Clone, Debug, PartialEq)]
pub enum Exact {
    /// A `CallToolResult`.
    Result(Value),
    /// A protocol error: code, message, data.
    Error {
        /// JSON-RPC error code.
        code: i32,
        /// What the server says of it.
        message: String,
        /// Additional data defined by the code.
        data: Option<Value>,
    },
}

/// A client that waits for the result of a call.
#[async_trait]
pub trait Caller: Debug + Send + Sync {
    /// Asks whether a call may run. `None`: this client cannot be asked, so the wearer is asked instead.
    async fn consent(&self, request: &ConsentRequest, cancel: &CancellationToken) -> Option<ApprovalOutcome>;
    /// The kinds of questions that the client supports: MCP's client capabilities.
    fn capabilities(&self) -> Value;
    /// Asks several things at once: MCP requests (`method`, `params`) by key; results by the same keys.
    async fn ask(&self, requests: BTreeMap<String, Value>) -> Result<BTreeMap<String, Value>, NotAsked>;
    /// Reports progress. May be dropped if the client reads slowly.
    fn progress(&self, done: f64, total: Option<f64>, message: Option<String>);
    /// The least severe log level that the client requested, by MCP's name; `None`: no logs.
    fn log_level(&self) -> Option<String>;
    /// Forwards a log message in MCP's form. May be dropped.
    fn log(&self, message: Value);
    /// Stores the exact outcome in addition to the call's result.
    fn keep(&self, exact: Exact);
    /// Whether it is the operator's own program, and not that of a user whose key it has.
    fn is_operator(&self) -> bool;
}

/// Shows what calls do while they run.
pub trait Watcher: Debug + Send + Sync {
    /// A call begins that has words for what it does, or a call of a program. `call`: its id, or that of the call that
    /// runs the program; `line`: what it does, for the display. Must not block, and may be dropped.
    fn doing(&self, call: &str, line: String);
}

/// The client of a program, for the calls that the program makes. The result and the progress are those of the
/// program, which tells as progress which calls it makes: its calls have none for the client.
#[derive(Debug)]
pub(crate) struct OfProgram(pub(crate) Arc<dyn Caller>);

#[async_trait]
impl Caller for OfProgram {
    async fn consent(&self, request: &ConsentRequest, cancel: &CancellationToken) -> Option<ApprovalOutcome> {
        self.0.consent(request, cancel).await
    }

    fn capabilities(&self) -> Value {
        self.0.capabilities()
    }

    async fn ask(&self, requests: BTreeMap<String, Value>) -> Result<BTreeMap<String, Value>, NotAsked> {
        self.0.ask(requests).await
    }

    fn progress(&self, _done: f64, _total: Option<f64>, _message: Option<String>) {}

    fn log_level(&self) -> Option<String> {
        self.0.log_level()
    }

    fn log(&self, message: Value) {
        self.0.log(message);
    }

    fn keep(&self, _exact: Exact) {}

    fn is_operator(&self) -> bool {
        self.0.is_operator()
    }
}
