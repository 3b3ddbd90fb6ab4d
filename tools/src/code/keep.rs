//! `code.keep`: keeps the last program of the conversation as a routine, if the wearer agrees.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ErrorCode, ToolFlags, ToolResult};
use serde_json::{Value, json};

use super::names::KEEP;
use crate::{
    arguments::{Arguments, Refusal},
    builtin::{Definition, Tool},
    programs::{Keep, KeptRoutine, NotKept, PHRASE_BYTES_MAX, PHRASES_MAX, ROUTINE_NAME_BYTES_MAX, WhichRun},
    registry::{Asking, RunContext},
    spoken,
    wording::words,
};

pub(super) struct CodeKeep;

#[async_trait]
impl Tool for CodeKeep {
    fn definition(&self) -> Definition {
        Definition {
            name: KEEP,
            title: "Keep a program",
            description: "Keeps the last program of this conversation that ran to its end as a routine, which the wearer \
                          runs by saying one of the phrases. It may call only the tools that it has called. A name that \
                          is in use gets a new version.",
            properties: json!({
                "name": {
                    "type": "string", "minLength": 1, "maxLength": ROUTINE_NAME_BYTES_MAX,
                    "description": "Small letters, digits and hyphens: morning-summary.",
                },
                "phrases": {
                    "type": "array", "minItems": 1, "maxItems": PHRASES_MAX,
                    "items": {"type": "string", "maxLength": PHRASE_BYTES_MAX},
                    "description": "What the wearer will say, in two to twelve words: run my morning summary.",
                },
            }),
            required: &["name", "phrases"],
            phrases: &[],
            guidance: None,
            flags: ToolFlags { requires_approval: true, persistent: true, ..ToolFlags::default() },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        Some(&[ClientClass::Internal])
    }

    fn approval(&self) -> Option<&'static str> {
        Some("Keep the last program as the routine {name}, run by saying {phrases}?")
    }

    async fn more_to_ask(&self, asking: &Asking<'_>) -> Option<String> {
        let Asking { context, called_wall_ms, ports, .. } = asking;
        let run = last(context.device.as_deref(), context.session.as_deref(), *called_wall_ms);
        let tools = ports.memory.programs.called(&context.user, &run).await?;
        let titles: Vec<String> = tools.iter().map(|tool| words(tool)).collect();
        Some(match titles.is_empty() {
            true => "It may call nothing.".to_owned(),
            false => format!("It may call: {}.", titles.join("; ")),
        })
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let name = arguments.0.get("name").and_then(text).unwrap_or_default();
        let phrases = arguments.0.get("phrases").and_then(Value::as_array);
        let phrases = phrases.map(|all| all.iter().filter_map(text).collect()).unwrap_or_default();
        let run = last(context.device.as_deref(), context.session.as_deref(), context.called_wall_ms);
        let keep = Keep { run, name, phrases };
        let store = &context.ports.memory.programs;
        match store.keep(&context.user, context.device.as_deref(), keep).await {
            Ok(kept) => Ok(told(&kept)),
            Err(NotKept::Port(error)) => Err(error.into()),
            Err(NotKept::Refused(why)) => Err(Refusal {
                code: ErrorCode::InvalidArguments,
                say: format!("I can't keep that: {}", spoken::sentence(&why)),
                message: format!("Nothing was kept: {why}."),
                retryable: false,
            }),
        }
    }
}

/// The program that is meant.
fn last(device: Option<&str>, session: Option<&str>, until_wall_ms: i64) -> WhichRun {
    WhichRun::Last { device: device.map(str::to_owned), session: session.map(str::to_owned), until_wall_ms }
}

fn told(kept: &KeptRoutine) -> ToolResult {
    let KeptRoutine { of, phrases, tools } = kept;
    let phrase = phrases.first().map(String::as_str).unwrap_or_default();
    let version = if of.version > 1 { format!(" in version {}", of.version) } else { String::new() };
    let mut result = ToolResult::said(format!("I have kept {}{version}. Say \"{phrase}\" to run it.", words(&of.name)));
    result.data = Some(json!({"routine": of.name, "version": of.version, "phrases": phrases, "may_call": tools}));
    result
}
