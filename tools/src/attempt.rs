//! Runs one tool: with a timeout, with cancellation, and with a retry only if nothing was done.

use std::{panic::AssertUnwindSafe, pin::pin, time::Duration};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use futures_util::FutureExt;
use gateway_core::vocab::{ErrorCode, ToolCall, ToolResult};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    consent::cancelled,
    deadline::Deadline,
    limits::{CANCEL_MS_MAX, RETRIES_MAX, RETRY_MS_MIN},
    registry::{Registered, RunContext},
    reply::seconds,
    source::Source,
};

/// The failure of a program that was interrupted. What its calls have done is added by the executor.
const PROGRAM_STOPPED: &str = "The program was interrupted.";

/// Runs a tool and returns its result.
pub(crate) async fn run(tool: &Registered, context: RunContext, call: ToolCall, until: &Deadline) -> ToolResult {
    let mut pauses = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(RETRY_MS_MIN))
        .with_max_times(RETRIES_MAX)
        .build();
    loop {
        let left = until.left();
        let attempt = RunContext { deadline: left.min(context.deadline), ..context.clone() };
        let result = once(tool, attempt, call.clone(), until, context.deadline).await;
        if !proves_nothing_done(tool, &result) || context.cancel.is_cancelled() {
            return truthful(tool, result);
        }
        let Some(pause) = pauses.next().filter(|pause| *pause < until.left()) else {
            return result;
        };
        tracing::debug!(tool = tool.spec.name, pause_ms = pause.as_millis(), "trying a tool again");
        tokio::select! {
            () = context.cancel.cancelled() => return result,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Whether the same call may be retried. If an app or server could not be reached at all, nothing was done. After
/// any other failure only read-only tools are retried. Glasses that disconnected do not come back within moments, and
/// failures of built-in tools are not transient.
fn proves_nothing_done(tool: &Registered, result: &ToolResult) -> bool {
    let Some(error) = result.error.as_ref().filter(|error| error.retryable) else {
        return false;
    };
    match tool.source {
        Source::App(_) | Source::Mcp(_) | Source::Capability(_) => match error.code {
            ErrorCode::AppNotAvailable => true,
            ErrorCode::HttpError => tool.spec.flags.read_only,
            _ => false,
        },
        Source::BuiltIn | Source::Device(_) => false,
    }
}

async fn once(
    tool: &Registered,
    mut context: RunContext,
    call: ToolCall,
    until: &Deadline,
    given: Duration,
) -> ToolResult {
    // A program changes nothing by itself: its calls do, and they are not stopped with it.
    let may_stop = tool.spec.flags.read_only || tool.is_program();
    let interrupted = context.cancel.clone();
    let cancel: CancellationToken = interrupted.child_token();
    context.cancel = cancel.clone();
    let mut running = pin!(AssertUnwindSafe(async { tool.runner.run(context, call).await }).catch_unwind());
    let late = tokio::select! {
        biased;
        ended = &mut running => return ended.unwrap_or_else(|_panic| crashed(tool)),
        () = interrupted.cancelled(), if may_stop => false,
        () = until.passed() => true,
    };
    // The tool's source is notified and has a moment to notify its server.
    cancel.cancel();
    let last = timeout(Duration::from_millis(CANCEL_MS_MAX), running).await;
    match last {
        // If the work was completed after all, this is reported, even if late.
        Ok(Ok(result)) if late && !result.is_error() => result,
        _ if late => too_late(tool, given),
        // A program that has stopped tells how far it has come.
        Ok(Ok(result)) if tool.is_program() => result,
        _ if tool.is_program() => ToolResult::failed(ErrorCode::Cancelled, PROGRAM_STOPPED, false),
        _ => cancelled(),
    }
}

fn crashed(tool: &Registered) -> ToolResult {
    tracing::error!(tool = tool.spec.name, "a tool panicked");
    if tool.is_program() || tool.spec.flags.read_only {
        let message = if tool.is_program() { "The program crashed." } else { "The tool crashed." };
        return ToolResult::failed(ErrorCode::ExecutionError, message, false);
    }
    let message = "The tool crashed; whether anything was done is unknown.";
    let mut result = ToolResult::failed(ErrorCode::AppNotAvailable, message, false);
    result.say = Some("That broke off. I don't know whether it was done.".into());
    result
}

fn too_late(tool: &Registered, given: Duration) -> ToolResult {
    let given = seconds(given);
    if tool.spec.flags.read_only {
        return ToolResult::failed(ErrorCode::Timeout, format!("No answer within {given}."), true);
    }
    if tool.is_program() {
        let message = format!("The program did not end within {given} and was stopped.");
        return ToolResult::failed(ErrorCode::Timeout, message, false);
    }
    let message = format!("No answer within {given}; whether it was done is unknown. Do not repeat it.");
    let mut result = ToolResult::failed(ErrorCode::Timeout, message, false);
    result.say = Some("That took too long. I don't know whether it was done.".into());
    result
}

/// A failure in the middle of a change leaves it unknown what was done, whatever the tool's source claims. Such a
/// call is not marked as retryable, unless a second one changes nothing more.
fn truthful(tool: &Registered, mut result: ToolResult) -> ToolResult {
    let flags = tool.spec.flags;
    // The gateway's own runners return this if nothing was sent yet. An answer of glasses does not count as that.
    let is_unsent = !matches!(tool.source, Source::Device(_)) && result == cancelled();
    if flags.read_only || tool.is_program() || is_unsent {
        return result;
    }
    let Some(error) = &mut result.error else {
        return result;
    };
    match error.code {
        ErrorCode::Cancelled => {
            error.retryable = false;
            error.message = "Interrupted while it ran; whether it was done is unknown. Do not repeat it.".into();
            result.content.clone_from(&error.message);
            result.say = Some("I stopped that. I don't know whether it was done.".into());
        }
        ErrorCode::Timeout | ErrorCode::HttpError if !flags.idempotent => error.retryable = false,
        _ => {}
    }
    result
}
