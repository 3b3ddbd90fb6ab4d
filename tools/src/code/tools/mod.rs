//! The tools that let a model write programs: `code.api` tells what a program can import, `code.run` runs one, `code.keep`
//! keeps one as a routine.

use ::std::sync::Arc;

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult, ToolSpec};
use serde_json::{Value, json};

use super::{
    content::result,
    engine::{Engine, RUN_MS, RUN_MS_MAX},
    keep::CodeKeep,
    names::{API, KEEP, RUN, is_code},
    routine,
    std::{self, STD_LINE},
};
use crate::{
    arguments::{Arguments, Refusal},
    builtin::{Definition, Tool},
    capabilities::index,
    registry::{RunContext, Specs},
    reply::cut,
    sides::is_for_operators,
};

const GUIDANCE: &str = "To combine tools, filter results or loop, write a program for code.run. First read with code.api how \
    its imports are declared. Await calls, print little, export the result:\n\
    import { noteList } from '@capabilities/note-list';\n\
    export default (await noteList()).notes.filter((n) => n.text.includes('milk')).length;\n\
    ---\n\
    import { timerSet } from '@capabilities/timer-set';\n\
    for (const seconds of [300, 600]) await timerSet({ seconds });\n\
    ---\n\
    import { slack } from '@capabilities/mcp-slack';\n\
    try { await slack.postMessage({ channel: 'home', text: 'Late' }); } catch (e) { console.log(e.code, e.message); }";

/// The tools. Their programs run in this engine.
pub fn tools(engine: &Arc<Engine>) -> [Arc<dyn Tool>; 3] {
    [Arc::new(CodeApi(Arc::clone(engine))), Arc::new(CodeRun(Arc::clone(engine))), Arc::new(CodeKeep)]
}

struct CodeApi(Arc<Engine>);

#[async_trait]
impl Tool for CodeApi {
    fn definition(&self) -> Definition {
        Definition {
            name: API,
            title: "List the modules for programs",
            description: "The TypeScript declarations of a module; without one, the list of all modules.",
            properties: json!({"module": {"type": "string"}}),
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
        let bundle = self.0.modules_of(context);
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

struct CodeRun(Arc<Engine>);

#[async_trait]
impl Tool for CodeRun {
    fn definition(&self) -> Definition {
        Definition {
            name: RUN,
            title: "Run a program",
            // Each word of both tools, and of the guidance, is a part of every request.
            description: "Runs a TypeScript module that imports tools. Returns what it prints and its default export.",
            properties: json!({
                "code": {"type": "string"},
                "timeout_ms": {"type": "integer", "minimum": 1, "maximum": RUN_MS_MAX, "default": RUN_MS},
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

    fn program(&self, arguments: &Value) -> Option<String> {
        arguments.get("code").and_then(Value::as_str).map(str::to_owned)
    }

    fn timeout_ms(&self) -> u32 {
        RUN_MS_MAX
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let Some(calls) = context.calls.clone() else {
            return Err(Refusal::arguments("A program cannot run a program.", "I can't do that from a program."));
        };
        let source = self.program(arguments.0).unwrap_or_default();
        let timeout_ms = arguments.0.get("timeout_ms").and_then(Value::as_u64).unwrap_or(RUN_MS);
        let outcome = self.0.run(context, &calls, &source, timeout_ms.min(RUN_MS_MAX.into()), None).await;
        Ok(result(&outcome, &calls))
    }
}

/// Those of these tools that a model is offered which must not, or must only, write programs.
pub fn offered_to(model: Programs, tools: &Specs) -> Specs {
    let keep = |tool: &ToolSpec| match model {
        Programs::None => !is_code(&tool.name) && tool.name != KEEP,
        Programs::Beside => true,
        // Programs cannot call routines.
        Programs::Instead => is_code(&tool.name) || tool.side == routine::side(),
    };
    let are_there = tools.iter().any(|tool| is_code(&tool.name));
    let keep = |tool: &ToolSpec| !is_for_operators(tool) && (!are_there || keep(tool));
    if tools.iter().all(|tool| keep(tool)) {
        return Arc::clone(tools);
    }
    tools.iter().filter(|tool| keep(tool)).cloned().collect()
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
