//! Carries out calls with the handlers of a file, each in a process of its own.

use ::std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ErrorCode, ToolCall, ToolResult};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{HandlerFile, Nothing, open};
use crate::{
    apps::answer,
    code::{
        Action, Ended, Host, HostError, Limits, Outcome, Sandbox,
        std::{self, StdCaller, StdHost},
    },
    consent::cancelled,
    ledger::OfProgram,
    registry::{Asking, RunContext, Runner, Words},
    source::About,
};

/// Computing time of a question.
const QUESTION_MS: u64 = 50;
/// The same with the evaluation of its file, and with the wait for a process.
const QUESTION_LIMITS: Limits = Limits { compute: Duration::from_secs(2), wall: Duration::from_secs(2) };

/// Runs the handlers of one file.
pub(super) struct HandlerRunner {
    pub(super) file: HandlerFile,
    pub(super) sandbox: Arc<Sandbox>,
    pub(super) library: StdHost,
}

impl HandlerRunner {
    fn file(&self) -> (&str, super::Language) {
        (&self.file.source, self.file.language)
    }
}

#[async_trait]
impl Runner for HandlerRunner {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        let function = context.local_name.clone();
        let schema = context.offered.find(&call.name).map(|tool| tool.spec.clone());
        let arguments = with_defaults(call.arguments, schema.as_ref().map(|spec| &spec.input_schema));
        let library = Library {
            host: &self.library,
            caller: StdCaller {
                user: context.user.clone(),
                device: context.device.clone(),
                client: ClientClass::Internal,
                turn: context.turn.map(|turn| turn.id),
                program: context.program.clone().map(|id| OfProgram { id, call: None }),
            },
            tool: &call.name,
            has_acted: AtomicBool::default(),
        };
        let limits = Limits { compute: Limits::default().compute.min(context.deadline), wall: context.deadline };
        let stop = CancellationToken::new();
        let action = Action::Handle { function, arguments };
        let running = open(&self.sandbox, self.file(), action, &library, limits, &stop);
        tokio::pin!(running);
        let may_stop = context.flags.read_only;
        let outcome = tokio::select! {
            biased;
            outcome = &mut running => outcome,
            () = context.cancel.cancelled() => {
                // What has begun to change something is waited for: then its outcome is known.
                if may_stop || !library.has_acted.load(Ordering::Relaxed) {
                    stop.cancel();
                }
                running.await
            }
        };
        result(outcome, &call.name, library.has_acted.load(Ordering::Relaxed) && !may_stop)
    }

    fn about(&self) -> Option<Arc<About>> {
        Some(self.file.about.clone())
    }

    async fn words(&self, asking: &Asking<'_>) -> Option<Words> {
        let local_name = asking.local_name;
        if !self.file.asking.contains(local_name) {
            return None;
        }
        let (function, arguments) = (local_name.to_owned(), asking.call.arguments.clone());
        let action = Action::Ask { function, arguments, compute_ms: QUESTION_MS };
        let never = CancellationToken::new();
        let outcome = open(&self.sandbox, self.file(), action, &Nothing, QUESTION_LIMITS, &never).await;
        if let Some(error) = &outcome.error {
            let (capability, line) = (self.file.name(), error.line);
            tracing::warn!(capability, function = local_name, ended = ?outcome.ended, line, "a question has no words");
            tracing::debug!(error = error.message, "why");
        }
        outcome.result.as_ref().and_then(Value::as_str).map(|words| Words::Whole(words.to_owned()))
    }
}

/// The arguments, with the default values of those that are missing.
fn with_defaults(arguments: Value, schema: Option<&Value>) -> Value {
    let mut arguments = match arguments {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let properties = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(value) = property.get("default").filter(|_| !arguments.contains_key(name)) {
            arguments.insert(name.clone(), value.clone());
        }
    }
    arguments.into()
}

/// What the tool returns. `is_unknown`: if the handler was stopped, something may have been done.
fn result(outcome: Outcome, tool: &str, is_unknown: bool) -> ToolResult {
    let error = outcome.error.as_ref();
    let why = || error.map_or_else(|| "it failed".to_owned(), |error| error.message.clone());
    let stopped = |code: ErrorCode, why: String| {
        let rest = if is_unknown { "; whether it was done is unknown. Do not repeat it." } else { "." };
        ToolResult::failed(code, format!("{}{rest}", why.trim_end_matches('.')), false)
    };
    if let Some(error) = error {
        let (line, column) = (error.line, error.column);
        tracing::warn!(tool, ended = ?outcome.ended, line, column, "a handler failed");
        tracing::debug!(tool, error = error.message, "why");
    }
    match outcome.ended {
        Ended::Finished => {}
        // What it throws is for its caller.
        Ended::Failed => {
            let message = why();
            let message = message.strip_prefix("Error: ").unwrap_or(&message);
            return ToolResult::failed(ErrorCode::ExecutionError, message, false);
        }
        Ended::TimedOut => return stopped(ErrorCode::Timeout, "The handler took too long and was stopped".to_owned()),
        Ended::Cancelled if !is_unknown => return cancelled(),
        Ended::Cancelled => return stopped(ErrorCode::Cancelled, "The handler was stopped".to_owned()),
        Ended::OutOfMemory | Ended::Crashed if is_unknown => return stopped(ErrorCode::AppNotAvailable, why()),
        Ended::OutOfMemory | Ended::Crashed => return stopped(ErrorCode::ExecutionError, why()),
        Ended::Unavailable => return ToolResult::failed(ErrorCode::AppNotAvailable, why(), true),
    }
    if let Some((_, bytes)) = outcome.cut {
        let max = crate::code::RESULT_BYTES_MAX;
        let message = format!("The result has {bytes} bytes; a handler may return {max}: ask for less.");
        return ToolResult::failed(ErrorCode::ExecutionError, message, false);
    }
    let value = outcome.result.unwrap_or_default();
    let data = (!value.is_null()).then(|| value.clone());
    // Programs get the value itself, also if it is a text or a number.
    ToolResult { data, ..answer::replied(value) }
}

/// What a handler may call: the standard library.
struct Library<'a> {
    host: &'a StdHost,
    caller: StdCaller,
    tool: &'a str,
    /// Whether it has called something that may have an effect.
    has_acted: AtomicBool,
}

#[async_trait]
impl Host for Library<'_> {
    async fn call(&self, module: &str, function: &str, arguments: Value) -> Result<Value, HostError> {
        if !std::is_std(module) {
            let message = "a handler calls no other capabilities: it has the standard library and fetch".to_owned();
            return Err(HostError { code: "not_allowed".to_owned(), message, retryable: false });
        }
        if std::changes(function, &arguments) {
            self.has_acted.store(true, Ordering::Relaxed);
        }
        self.host.call(&self.caller, function, arguments).await
    }

    fn log(&self, line: &str) {
        tracing::debug!(tool = self.tool, line, "printed by a handler");
    }
}
