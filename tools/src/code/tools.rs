//! The tools that let a model write programs: `code.api` tells what a program can import, `code.run` runs one.

use ::std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ErrorCode, ToolFlags, ToolResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{
    Ended, Host, HostError, Limits, Outcome, Program, Sandbox, WALL_MAX,
    modules::Modules,
    std::{self, STD_LINE, StdCaller, StdHost},
};
use crate::{
    arguments::{Arguments, Refusal},
    builtin::{Definition, Tool},
    capabilities::{Bundle, index},
    ledger::OfProgram,
    limits::DATA_BYTES_MAX,
    nested::NestedCalls,
    registry::{RunContext, Specs},
    reply::cut,
};

/// Name of the tool that lists modules.
pub const API: &str = "code.api";
/// Name of the tool that runs programs.
pub const RUN: &str = "code.run";

/// Time of a program without the wearer's time to answer questions, if its call names none, in milliseconds.
const RUN_MS: u64 = 30_000;
/// The same, at most: the assistant waits no longer for any tool.
const RUN_MS_MAX: u32 = 110_000;
/// From the end of a program's time to its stop from outside: the engine stops it by itself, and knows the line.
const GRACE: Duration = Duration::from_millis(500);
/// Bytes of JavaScript up to which a program gets all modules. Of more it gets those whose names it contains.
const ALL_MODULES_BYTES_MAX: usize = 64 * 1024;
/// Bytes of the data of a result that are left for the program's own: the rest is for the list of its calls.
const OUTCOME_BYTES_MAX: usize = DATA_BYTES_MAX - 16 * 1024;

const ANSWER_SAID: &str = "The program has ended.";

const GUIDANCE: &str = "To combine tools, to filter what they return, or to act on each item of a list, write one TypeScript program \
    for code.run. Look functions up first: code.api lists modules, code.api with a module shows its functions. Await every \
    call, print little, and export the result by default. Example:\n\
    import { noteList } from '@capabilities/note-list';\n\
    import { slack } from '@capabilities/mcp-slack';\n\
    const { notes } = await noteList({});\n\
    const urgent = notes.filter((note) => note.text.includes('today'));\n\
    for (const { text } of urgent) {\n\
    try { await slack.postMessage({ channel: 'home', text }); }\n\
    catch (error) { console.log(error.code, error.retryable, error.message); }\n\
    }\n\
    export default urgent.length;";

/// Both tools. Programs import these modules, and run in this sandbox with this standard library.
pub fn tools(sandbox: Sandbox, library: StdHost, modules: Arc<Modules>) -> [Arc<dyn Tool>; 2] {
    [Arc::new(CodeApi(Arc::clone(&modules))), Arc::new(CodeRun { modules, sandbox, library })]
}

/// Whether a tool of this name is one of them.
pub fn is_code(tool: &str) -> bool {
    matches!(tool, API | RUN)
}

struct CodeApi(Arc<Modules>);

#[async_trait]
impl Tool for CodeApi {
    fn definition(&self) -> Definition {
        Definition {
            name: API,
            title: "List the modules for programs",
            description: "Lists the modules that a program for code.run can import, a line each; with a module, shows \
                          the TypeScript declarations of its functions.",
            properties: json!({
                "module": {"type": "string", "description": "As in an import, such as @capabilities/note-list."},
            }),
            required: &[],
            phrases: &[],
            guidance: None,
            flags: ToolFlags { read_only: true, idempotent: true, always: true, ..ToolFlags::default() },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        Some(&[ClientClass::Internal])
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let bundle = self.0.of(context);
        let content = match arguments.text("module") {
            None => format!("{STD_LINE}{}", index(&bundle)),
            Some(module) if std::is_std(&module) => std::DECLARATIONS.to_owned(),
            Some(module) => match bundle.module(&module) {
                Some(module) => module.d_ts.clone(),
                None => {
                    let module = cut(&module, 128);
                    let message = format!("There is no module '{module}'; {API} without arguments lists all modules.");
                    return Err(Refusal::arguments(message, "I don't have that."));
                }
            },
        };
        Ok(ToolResult { content, say: Some("I have looked it up.".to_owned()), ..ToolResult::default() })
    }
}

struct CodeRun {
    modules: Arc<Modules>,
    sandbox: Sandbox,
    library: StdHost,
}

#[async_trait]
impl Tool for CodeRun {
    fn definition(&self) -> Definition {
        Definition {
            name: RUN,
            title: "Run a program",
            description: "Runs a TypeScript program (an ES module) that calls tools as functions of imported modules. \
                          Returns what it printed and its default export. Files, HTTP where it is allowed, CSV and \
                          dates are in @lorgnette/std. A failed call throws an error with `code` and `retryable`.",
            properties: json!({
                "code": {"type": "string", "description": "The program."},
                "timeout_ms": {
                    "type": "integer", "minimum": 1, "maximum": RUN_MS_MAX,
                    "description": "Longest time in milliseconds, without questions to the wearer; 30000 if absent.",
                },
            }),
            required: &["code"],
            phrases: &[],
            guidance: Some(GUIDANCE),
            flags: ToolFlags { always: true, persistent: true, slow: true, ..ToolFlags::default() },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        Some(&[ClientClass::Internal])
    }

    fn runs_programs(&self) -> bool {
        true
    }

    fn timeout_ms(&self) -> u32 {
        RUN_MS_MAX
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let Some(calls) = context.calls.clone() else {
            return Err(Refusal::arguments("A program cannot run a program.", "I can't do that from a program."));
        };
        let source = arguments.0.get("code").and_then(Value::as_str).unwrap_or_default();
        let timeout_ms = arguments.0.get("timeout_ms").and_then(Value::as_u64).unwrap_or(RUN_MS);
        let time = Duration::from_millis(timeout_ms.min(RUN_MS_MAX.into()));
        let bundle = self.modules.of(context);
        let program = Program { source: source.to_owned(), modules: modules(&bundle, source) };
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
        let outcome = {
            let running = self.sandbox.run(program, &host, limits, &stop);
            tokio::pin!(running);
            tokio::select! {
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
            }
        };
        Ok(result(&outcome, &calls))
    }
}

/// The modules that a program gets.
fn modules(bundle: &Bundle, source: &str) -> Vec<(String, String)> {
    let all = bundle.modules();
    let bytes: usize = all.iter().map(|module| module.js.len()).sum();
    let is_wanted = |specifier: &str| bytes <= ALL_MODULES_BYTES_MAX || source.contains(specifier);
    let wanted = all.iter().filter(|module| is_wanted(&module.specifier));
    wanted.map(|module| (module.specifier.clone(), module.js.clone())).chain(std::modules()).collect()
}

fn result(outcome: &Outcome, calls: &NestedCalls) -> ToolResult {
    let content = outcome.content();
    let mut data = outcome.data(OUTCOME_BYTES_MAX);
    let done = calls.done();
    if let Some(data) = data.as_object_mut() {
        let calls = done.iter().map(|call| json!({"tool": call.tool, "ok": call.ok, "ms": call.ms}));
        data.insert("calls".to_owned(), calls.collect());
    }
    let code = match outcome.ended {
        Ended::Finished => None,
        Ended::Failed | Ended::OutOfMemory | Ended::Crashed => Some(ErrorCode::ExecutionError),
        Ended::TimedOut => Some(ErrorCode::Timeout),
        Ended::Cancelled => Some(ErrorCode::Cancelled),
        Ended::Unavailable => Some(ErrorCode::AppNotAvailable),
    };
    let mut result = match code {
        None => ToolResult { content, say: Some(ANSWER_SAID.to_owned()), ..ToolResult::default() },
        Some(code) => {
            let message =
                outcome.error.as_ref().map_or_else(|| "the program failed".to_owned(), |it| it.message.clone());
            // Whoever repeats it repeats all of its calls.
            ToolResult { content, ..ToolResult::failed(code, message, false) }
        }
    };
    result.data = Some(data);
    result
}

/// The functions of a program: the tools behind its modules, and the standard library.
struct Functions<'a> {
    bundle: Arc<Bundle>,
    calls: NestedCalls,
    library: &'a StdHost,
    caller: StdCaller,
}

#[async_trait]
impl Host for Functions<'_> {
    async fn call(&self, module: &str, function: &str, arguments: Value) -> Result<Value, HostError> {
        if std::is_std(module) {
            return self.library.call(&self.caller, function, arguments).await;
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
fn value(result: ToolResult) -> Value {
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

/// Those of these tools that a model is offered which must not, or must only, write programs.
pub fn offered_to(model: Programs, tools: &Specs) -> Specs {
    let keep = |name: &str| match model {
        Programs::None => !is_code(name),
        Programs::Beside => true,
        Programs::Instead => is_code(name),
    };
    let are_there = tools.iter().any(|tool| is_code(&tool.name));
    if !are_there || model == Programs::Beside {
        return Arc::clone(tools);
    }
    tools.iter().filter(|tool| keep(&tool.name)).cloned().collect()
}

/// Whether a model may write programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Programs {
    /// It is offered tools only.
    #[default]
    None,
    /// It is offered both.
    Beside,
    /// It is offered nothing else: tools are called by programs only.
    Instead,
}

#[cfg(test)]
mod tests;
