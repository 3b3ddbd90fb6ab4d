//! `personality.get`: how the assistant is to speak, also for clients with their own model.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult};
use serde_json::json;

use super::{ASSISTANTS, BuiltIn, Definition, READ_ONLY, Tool, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{ITEM_CHARS_MAX, QUERY_CHARS_MAX},
    registry::RunContext,
    reply::cut,
};

struct PersonalityGet;

inventory::submit! { BuiltIn(&PersonalityGet) }

#[async_trait]
impl Tool for PersonalityGet {
    fn definition(&self) -> Definition {
        Definition {
            name: "personality.get",
            title: "Tell how the assistant speaks",
            description: "Tells how the assistant of these glasses is to speak: tone, length, how to fail. For the named \
                          model where the operator has written something for its family.",
            properties: json!({
                "model": {"type": "string", "description": "Name of the model that speaks.", "examples": ["gpt-5"]},
            }),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "what is your personality",
                "describe your personality",
                "how are you supposed to (speak|talk|answer)",
            ],
            guidance: None,
            flags: ToolFlags { always: false, ..READ_ONLY },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        ASSISTANTS
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let model = arguments.text_optional("model", QUERY_CHARS_MAX)?;
        let text = context.ports.memory.personality.of(model.as_deref());
        let shown = cut(&text, ITEM_CHARS_MAX);
        Ok(told(text.clone(), "Personality", shown, json!({"text": text})))
    }
}
