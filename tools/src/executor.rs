//! How a call comes to its one result: find, check, ask, run, cap.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt;
use gateway_core::vocab::{ApprovalOutcome, ClientClass, ErrorCode, ToolCall, ToolResult, Turn};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::{
    caller::Caller,
    limits::{ARGUMENTS_BYTES_MAX, CALL_MS_MAX, CONSENT_MS_MAX, NAME_BYTES_MAX},
    ports::{ConsentRequest, Ports},
    registry::{Registered, Registry, Snapshot},
    reply,
    runner::RunContext,
};

/// Where a call comes from.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// Whose call.
    pub user: String,
    /// The device on which it was wished for.
    pub device: String,
    /// The turn that it belongs to.
    pub turn: Turn,
    /// Fires when the turn is interrupted.
    pub cancel: CancellationToken,
    /// For tools that set no time of their own.
    pub default_timeout: Duration,
    /// Who asks.
    pub client: ClientClass,
    /// The client itself, where it can be spoken to while the call runs.
    pub caller: Option<Arc<dyn Caller>>,
}

/// Runs calls.
#[derive(Clone)]
pub struct Executor {
    registry: Arc<Registry>,
    ports: Ports,
}

impl Executor {
    /// An executor of the registry's tools.
    pub fn new(registry: Arc<Registry>, ports: Ports) -> Self {
        Self { registry, ports }
    }

    /// The catalogue.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Brings a call to exactly one result.
    ///
    /// The future must be driven to its end: an interruption is told through `context.cancel`,
    /// which stops a read-only tool at once and lets any other one finish, so that nothing is left
    /// half done.
    pub async fn call(&self, context: CallContext, call: ToolCall) -> ToolResult {
        let offered = self.registry.snapshot(&context.user, &context.device);
        let Some(tool) = offered.find(&call.name).cloned() else {
            let name = reply::cut(&call.name, NAME_BYTES_MAX);
            let message = format!("No tool named '{name}' is offered.");
            return reply::finish(ToolResult::failed(ErrorCode::ToolNotFound, message, false), None);
        };
        let result = match self.prepare(&context, &tool, &call).await {
            Ok(()) => self.run(context, offered, &tool, call).await,
            Err(refusal) => *refusal,
        };
        reply::finish(result, tool.spec.reply.as_deref())
    }

    /// Everything before the side effect.
    async fn prepare(&self, context: &CallContext, tool: &Registered, call: &ToolCall) -> Result<(), Box<ToolResult>> {
        check_arguments(tool, &call.arguments)?;
        if tool.spec.flags.requires_approval {
            self.ask(context, tool, call).await?;
        }
        if context.cancel.is_cancelled() {
            return Err(Box::new(cancelled()));
        }
        Ok(())
    }

    async fn ask(&self, context: &CallContext, tool: &Registered, call: &ToolCall) -> Result<(), Box<ToolResult>> {
        let request = ConsentRequest {
            user: context.user.clone(),
            device: context.device.clone(),
            turn: context.turn,
            call_id: call.id.clone(),
            tool: tool.spec.name.clone(),
            question: question(tool),
            arguments: call.arguments.clone(),
            arguments_hash: arguments_hash(&call.name, &call.arguments),
        };
        let asking = async {
            // Whoever wished for the call is asked; the wearer where that client cannot be.
            if let Some(caller) = &context.caller
                && let Some(outcome) = caller.consent(&request, &context.cancel).await
            {
                return outcome;
            }
            self.ports.consent.ask(request, context.cancel.clone()).await
        };
        let limit = Duration::from_millis(CONSENT_MS_MAX);
        let outcome = tokio::select! {
            biased;
            () = context.cancel.cancelled() => ApprovalOutcome::Cancelled,
            outcome = tokio::time::timeout(limit, AssertUnwindSafe(asking).catch_unwind()) => {
                // A question that broke counts as a refusal: nothing runs without a yes.
                outcome.map_or(ApprovalOutcome::Expired, |settled| {
                    settled.unwrap_or(ApprovalOutcome::Denied)
                })
            }
        };
        let (code, message) = match outcome {
            ApprovalOutcome::Approved => return Ok(()),
            ApprovalOutcome::Denied => (ErrorCode::ApprovalDenied, "The wearer said no."),
            ApprovalOutcome::Expired => {
                (ErrorCode::ApprovalExpired, "The wearer did not answer in time; nothing was done.")
            }
            ApprovalOutcome::Cancelled => return Err(Box::new(cancelled())),
        };
        Err(Box::new(ToolResult::failed(code, message, false)))
    }

    async fn run(&self, context: CallContext, offered: Arc<Snapshot>, tool: &Registered, call: ToolCall) -> ToolResult {
        let flags = tool.spec.flags;
        let deadline = tool
            .spec
            .timeout_ms
            .map_or(context.default_timeout, |ms| Duration::from_millis(u64::from(ms)))
            .min(Duration::from_millis(CALL_MS_MAX));
        let cancel = if flags.read_only { context.cancel.clone() } else { CancellationToken::new() };
        let run = RunContext {
            user: context.user,
            device: context.device,
            turn: context.turn,
            deadline,
            cancel: cancel.clone(),
            ports: self.ports.clone(),
            offered,
            caller: context.caller,
        };
        let running = AssertUnwindSafe(async { tool.runner.run(run, call).await }).catch_unwind();
        tokio::select! {
            biased;
            () = cancel.cancelled() => cancelled(),
            ended = tokio::time::timeout(deadline, running) => match ended {
                Ok(Ok(result)) => result,
                Ok(Err(_panic)) => {
                    tracing::error!(tool = tool.spec.name, "a tool panicked");
                    let message = "The tool crashed; whether anything was done is unknown.";
                    ToolResult::failed(ErrorCode::ExecutionError, message, false)
                }
                Err(_elapsed) if flags.read_only => {
                    ToolResult::failed(ErrorCode::Timeout, "No answer in time.", true)
                }
                Err(_elapsed) => {
                    let message = "No answer in time; whether it was done is unknown. Do not repeat it.";
                    let mut result = ToolResult::failed(ErrorCode::Timeout, message, false);
                    result.say = Some("That took too long. I don't know whether it was done.".into());
                    result
                }
            },
        }
    }
}

fn check_arguments(tool: &Registered, arguments: &Value) -> Result<(), Box<ToolResult>> {
    let refuse = |message: String| {
        let code = ErrorCode::InvalidArguments;
        Err(Box::new(ToolResult::failed(code, message, false)))
    };
    if let Err(misfit) = tool.schema.check(arguments) {
        return refuse(format!("The arguments do not fit {misfit}."));
    }
    let bytes = arguments.to_string().len();
    if bytes > ARGUMENTS_BYTES_MAX {
        return refuse(format!("The arguments have {bytes} bytes; at most {ARGUMENTS_BYTES_MAX} are accepted."));
    }
    Ok(())
}

fn question(tool: &Registered) -> String {
    let description = tool.spec.description.trim();
    let first = description.split_once(". ").map_or(description, |(first, _)| first);
    let first = reply::cut(first.trim_end_matches('.'), crate::limits::MESSAGE_BYTES_MAX);
    format!("May I use {}? {first}.", tool.spec.name)
}

fn cancelled() -> ToolResult {
    let message = "The wearer interrupted; nothing was done.";
    ToolResult::failed(ErrorCode::Cancelled, message, false)
}

/// Binds a consent to a tool and exactly these arguments: the first eight bytes of SHA-256 over
/// the name, a zero byte, and the arguments with sorted keys.
pub fn arguments_hash(tool: &str, arguments: &Value) -> u64 {
    let mut canonical = String::new();
    write_canonical(arguments, &mut canonical);
    let digest = Sha256::new().chain_update(tool).chain_update([0]).chain_update(canonical).finalize();
    digest.iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// Sorted keys whatever the map behind `Value` is. Depth was limited before.
fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (key, item) in sorted {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(item, out);
                out.push(',');
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
#[path = "executor_tests.rs"]
mod tests;
