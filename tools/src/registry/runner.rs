//! The interface that runs a source's tools.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_core::vocab::{ToolCall, ToolFlags, ToolResult, Turn};
use tokio_util::sync::CancellationToken;

use super::Snapshot;
use crate::{
    call::CallContext, caller::Caller, conversation::Said, nested::NestedCalls, ports::Ports, programs::Run,
    source::About,
};

/// The origin of a call, and the resources available to it.
#[derive(Clone)]
pub struct RunContext {
    /// For whom it is made.
    pub user: String,
    /// The device of the [call](crate::call::CallContext::device).
    pub device: Option<String>,
    /// The session of the [call](crate::call::CallContext::session).
    pub session: Option<String>,
    /// When the call came, before any question about it, in milliseconds since the Unix epoch.
    pub called_wall_ms: i64,
    /// The turn that makes the call; `None` if it belongs to no turn.
    pub turn: Option<Turn>,
    /// The source's own name for the tool; the call carries the full name.
    pub local_name: String,
    /// The tool's effects and requirements.
    pub flags: ToolFlags,
    /// Whether the tool's app was started for this call.
    pub activated: bool,
    /// The timeout of the call; the executor stops waiting after it.
    pub deadline: Duration,
    /// Fires when the call is cancelled. A runner with a server notifies it. The runner's result is trusted: for a tool
    /// that changes something, it must return `CANCELLED` only if it stopped the tool, and otherwise wait for the
    /// tool's own result.
    pub cancel: CancellationToken,
    /// All ports.
    pub ports: Ports,
    /// The tools that are currently offered.
    pub offered: Arc<Snapshot>,
    /// The recent conversation, for an app that declares that it needs it; empty if the call belongs to no turn.
    pub conversation: Arc<[Said]>,
    /// The client that made the call, if it can be contacted while the call runs.
    pub caller: Option<Arc<dyn Caller>>,
    /// Id of the call whose program makes this call; `None`: no program makes it.
    pub program: Option<String>,
    /// Makes calls for the program that the tool runs; only for tools that [run programs](Runner::runs_programs).
    pub calls: Option<NestedCalls>,
}

/// A call about which the wearer is to be asked.
pub struct Asking<'a> {
    /// Who makes it.
    pub context: &'a CallContext,
    /// What is to be called, and with what.
    pub call: &'a ToolCall,
    /// The source's own name for the tool.
    pub local_name: &'a str,
    /// As [`RunContext::called_wall_ms`].
    pub called_wall_ms: i64,
    /// All ports.
    pub ports: &'a Ports,
}

/// Words of a source for a question.
pub enum Words {
    /// The question itself.
    Whole(String),
    /// A sentence beside the gateway's question, of what the arguments do not tell; for built-in tools.
    Added(String),
}

/// Runs the calls of one source. Arguments have been checked against the tool's schema.
#[async_trait]
pub trait Runner: Send + Sync {
    /// Runs a call. The future may be dropped at any await point once its deadline has passed, or when all data of the
    /// user are being erased.
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult;

    /// Whether this tool, by the source's own name for it, runs programs that call other tools. It counts for built-in
    /// tools that are not read-only; no other tool gets [`RunContext::calls`]. Such a tool has no effects of its own: if
    /// it is stopped, what was done is what the calls of its program have done.
    fn runs_programs(&self, local_name: &str) -> bool {
        let _ = local_name;
        false
    }

    /// Of a tool that runs programs: the program of this call, and the routine that it is of, as the beginning of the record
    /// of its run.
    fn run_of(&self, call: &ToolCall) -> Option<Run> {
        let _ = call;
        None
    }

    /// Words for the question to the wearer before a call that only the source can find. They are data: limited and
    /// cleaned where they are asked. `None`: the definition's words, or the gateway's, are all.
    async fn words(&self, asking: &Asking<'_>) -> Option<Words> {
        let _ = asking;
        None
    }

    /// What the capability says about itself whose functions it runs; other sources have nothing of the kind.
    fn about(&self) -> Option<Arc<About>> {
        None
    }

    /// Whether it is a placeholder for a source that has not responded yet.
    fn is_waiting(&self) -> bool {
        false
    }
}
