//! What stands behind a tool's name.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_core::vocab::{ToolCall, ToolFlags, ToolResult, Turn};
use tokio_util::sync::CancellationToken;

use super::Snapshot;
use crate::{caller::Caller, ports::Ports};

/// Where a call comes from and what it may use.
#[derive(Clone)]
pub struct RunContext {
    /// Whose call.
    pub user: String,
    /// The device on which it was wished for.
    pub device: String,
    /// The turn that makes the call; `None`: it comes from outside of any turn.
    pub turn: Option<Turn>,
    /// What the source itself calls the tool; the call carries the full name.
    pub local_name: String,
    /// What the tool may do and needs.
    pub flags: ToolFlags,
    /// Whether the tool's app was started for this call.
    pub activated: bool,
    /// How long the call may take; the executor stops waiting after it.
    pub deadline: Duration,
    /// Fires when the call is not wanted any more. A runner that has a server tells it. What the
    /// runner then answers is believed: of a tool that changes something it must only say
    /// `CANCELLED` when it stopped it, and otherwise go on to the tool's own result.
    pub cancel: CancellationToken,
    /// Everything from outside.
    pub ports: Ports,
    /// The tools that are offered at this moment.
    pub offered: Arc<Snapshot>,
    /// The client that called, where it can be spoken to meanwhile.
    pub caller: Option<Arc<dyn Caller>>,
}

/// Runs the calls of one source. Arguments have been checked against the tool's schema.
#[async_trait]
pub trait Runner: Send + Sync {
    /// Runs a call. The future may be dropped at any await point once its deadline has passed, or
    /// everything of the user is being erased.
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult;

    /// Whether it only stands in for a source that has not answered yet.
    fn is_waiting(&self) -> bool {
        false
    }
}
