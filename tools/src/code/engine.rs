//! Runs the programs of tools: those that models write, and routines. Each run is recorded.

use ::std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ErrorCode, ToolError, ToolResult};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    Ended, Host, HostError, Limits, Outcome, Program, Sandbox, WALL_MAX,
    content::failure,
    modules::Modules,
    std::{self, StdCaller, StdHost},
};
use crate::{
    capabilities::Bundle,
    ledger::OfProgram,
    nested::NestedCalls,
    ports::Clock,
    programs::{OfRoutine, ProgramStore, Run, RunError},
    registry::RunContext,
    reply::cut,
    secret::Secrets,
    spoken::count,
};

/// Time of a program without the wearer's time to answer questions, if its call names none, in milliseconds.
pub(super) const RUN_MS: u64 = 30_000;
/// The same, at most: the assistant waits no longer for any tool.
pub(super) const RUN_MS_MAX: u32 = 110_000;
/// From the end of a program's time to its stop from outside: the engine stops it by itself, and knows the line.
const GRACE: Duration = Duration::from_millis(500);
/// Bytes of JavaScript up to which a program gets all modules. Of more it gets those whose names it contains.
const ALL_MODULES_BYTES_MAX: usize = 64 * 1024;
/// Bytes of printed lines in the record of a run.
const OUTPUT_BYTES_MAX: usize = 32 * 1024;
/// Bytes of the result's JSON there.
const RESULT_BYTES_MAX: usize = 16 * 1024;

/// What the programs of all tools share.
pub struct Engine {
    modules: Arc<Modules>,
    sandbox: Sandbox,
    library: StdHost,
}

impl Engine {
    /// Programs import these modules, and run in this sandbox with this standard library.
    pub fn new(sandbox: Sandbox, library: StdHost, modules: Arc<Modules>) -> Arc<Self> {
        Arc::new(Self { modules, sandbox, library })
    }

    /// The modules of all that the caller of this tool may call.
    pub(super) fn modules_of(&self, context: &RunContext) -> Arc<Bundle> {
        self.modules.of(context)
    }

    /// Runs a program of a tool that has a handle for calls, for at most so long without the wearer's time to answer
    /// questions, and records the run. `routine`: whose program it is.
    pub(super) async fn run(
        &self,
        context: &RunContext,
        calls: &NestedCalls,
        source: &str,
        timeout_ms: u64,
        routine: Option<OfRoutine>,
    ) -> Outcome {
        let time = Duration::from_millis(timeout_ms);
        let recording = Recording::begin(self.library.secrets(), context, calls, source, routine);
        let bundle = self.modules_of(context);
        let program = Program { source: source.to_owned(), modules: modules(&bundle, source), task: None };
        let caller = StdCaller {
            user: context.user.clone(),
            device: context.device.clone(),
            client: ClientClass::Internal,
            turn: context.turn.map(|turn| turn.id),
            program: Some(OfProgram { id: calls.parent().to_owned(), call: None }),
        };
        let host = Functions { bundle, calls: calls.clone(), library: &self.library, caller };
        // The time that counts stands still while the wearer is asked; the sandbox's own is for the whole.
        let limits = Limits { compute: Limits::default().compute.min(time), wall: WALL_MAX };
        let deadline = calls.deadline().within(time + GRACE);
        let stop: CancellationToken = context.cancel.child_token();
        let running = self.sandbox.run(program, &host, limits, &stop);
        tokio::pin!(running);
        let outcome = tokio::select! {
            biased;
            outcome = &mut running => outcome,
            () = deadline.passed() => {
                stop.cancel();
                let mut outcome = running.await;
                outcome.ended = Ended::TimedOut;
                if let Some(error) = &mut outcome.error {
                    error.message = format!("the program took longer than {timeout_ms} ms and was stopped");
                }
                outcome
            }
        };
        recording.end(&outcome);
        outcome
    }
}

/// The record of a run that goes on. It is stored when the run has ended and its calls have settled, also if nobody
/// waits for it any more.
struct Recording {
    secrets: Secrets,
    store: Arc<dyn ProgramStore>,
    clock: Arc<dyn Clock>,
    calls: NestedCalls,
    user: String,
    began_us: u64,
    run: Option<Run>,
}

impl Recording {
    fn begin(
        secrets: &Secrets,
        context: &RunContext,
        calls: &NestedCalls,
        source: &str,
        routine: Option<OfRoutine>,
    ) -> Self {
        let clock = Arc::clone(&context.ports.clock);
        let now = clock.now();
        let run = Run {
            wall_ms: now.wall_ms,
            call: calls.parent().to_owned(),
            device: context.device.clone(),
            session: context.session.clone(),
            turn: context.turn.map(|turn| turn.id),
            source: source.to_owned(),
            routine,
            ..Run::default()
        };
        let store = Arc::clone(&context.ports.memory.programs);
        let (user, calls) = (context.user.clone(), calls.clone());
        Self { secrets: secrets.clone(), store, clock, calls, user, began_us: now.mono_us, run: Some(run) }
    }

    fn end(mut self, outcome: &Outcome) {
        let Some(run) = &mut self.run else { return };
        let mut notes = Vec::new();
        let mut room = OUTPUT_BYTES_MAX;
        for line in &outcome.logs {
            let Some(left) = room.checked_sub(line.len() + 1) else {
                notes.push(count(outcome.logs.len() - run.output.len(), "printed line"));
                break;
            };
            room = left;
            run.output.push(line.clone());
        }
        let bytes = outcome.result.as_ref().map(|result| result.to_string().len());
        match (bytes, &outcome.cut) {
            (Some(bytes), _) if bytes <= RESULT_BYTES_MAX => run.result.clone_from(&outcome.result),
            (Some(bytes), _) => notes.push(format!("the result of {bytes} bytes")),
            (None, Some((_, bytes))) => notes.push(format!("the result of {bytes} bytes")),
            (None, None) => {}
        }
        run.left_out = (!notes.is_empty()).then(|| notes.join(", "));
        let code = failure(outcome.ended);
        run.error = code.map(|code| match &outcome.error {
            Some(error) => RunError { code, message: error.message.clone(), line: error.line, column: error.column },
            None => RunError { code, message: "the program failed".to_owned(), line: None, column: None },
        });
        self.store();
    }

    fn store(&mut self) {
        let Some(run) = self.run.take() else { return };
        let took_ms = self.clock.now().mono_us.saturating_sub(self.began_us) / 1_000;
        let (secrets, store, user) = (self.secrets.clone(), Arc::clone(&self.store), self.user.clone());
        self.calls.when_settled(move |calls| {
            if let Some(run) = secrets.redacted(Run { took_ms, calls, ..run }) {
                store.record(&user, run);
            }
        });
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(run) = &mut self.run {
            let message = "the program was given up in the middle".to_owned();
            run.error = Some(RunError { code: ErrorCode::Cancelled, message, line: None, column: None });
        }
        self.store();
    }
}

/// The modules that a program gets.
pub(super) fn modules(bundle: &Bundle, source: &str) -> Vec<(String, String)> {
    let all = bundle.modules();
    let bytes: usize = all.iter().map(|module| module.js.len()).sum();
    let is_wanted = |specifier: &str| bytes <= ALL_MODULES_BYTES_MAX || source.contains(specifier);
    let wanted = all.iter().filter(|module| is_wanted(&module.specifier));
    wanted.map(|module| (module.specifier.clone(), module.js.clone())).chain(std::modules()).collect()
}

/// The functions of a program: the tools behind its modules, and the standard library.
struct Functions<'a> {
    bundle: Arc<Bundle>,
    calls: NestedCalls,
    library: &'a StdHost,
    caller: StdCaller,
}

impl Functions<'_> {
    /// A function of the standard library. Its effects are in the account of the program.
    async fn library(&self, function: &str, arguments: Value) -> Result<Value, HostError> {
        if !std::has_effect(function) {
            return self.library.call(&self.caller, function, arguments).await;
        }
        let (name, changes) = (format!("std.{function}"), std::changes(function, &arguments));
        let effect = self.calls.effect(&name, &arguments, changes).await.map_err(|error| {
            let ToolError { code, message, retryable } = error;
            HostError { code: word(code), message, retryable }
        })?;
        let result = self.library.call(&self.caller, function, arguments).await;
        effect.end(result.as_ref().err().map(std::as_tool_error));
        result
    }
}

#[async_trait]
impl Host for Functions<'_> {
    async fn call(&self, module: &str, function: &str, arguments: Value) -> Result<Value, HostError> {
        if std::is_std(module) {
            return self.library(function, arguments).await;
        }
        let Some(tool) = self.bundle.tool(module, function) else {
            let (module, function) = (cut(module, 128), cut(function, 128));
            let message = format!("there is no function '{function}' in '{module}'");
            return Err(HostError { code: word(ErrorCode::ToolNotFound), message, retryable: false });
        };
        let result = self.calls.call(tool, arguments).await;
        match result.error {
            Some(error) => {
                Err(HostError { code: word(error.code), message: error.message, retryable: error.retryable })
            }
            None => Ok(value(result)),
        }
    }

    fn log(&self, _line: &str) {}
}

/// What a function returns: the data of the tool's result, or its text. A text that is JSON counts as data: many
/// servers return it so.
pub(super) fn value(result: ToolResult) -> Value {
    if let Some(data) = result.data {
        return data;
    }
    let text = result.for_model();
    let is_json = text.trim_start().starts_with(['{', '[']);
    match serde_json::from_str(&text) {
        Ok(value) if is_json => value,
        _ => Value::String(text),
    }
}

/// The code as programs see it.
fn word(code: ErrorCode) -> String {
    serde_json::to_value(code).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
