//! `prompt.add`: stores a standing instruction of the wearer.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ErrorCode, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, WEARER_ONLY, facts, told};
use crate::{
    arguments::{Arguments, Refusal},
    matching,
    memory::{INSTRUCTION_CHARS_MAX, INSTRUCTIONS_MAX},
    registry::RunContext,
    spoken,
};

const ASK: &str = "What should I do from now on?";

struct PromptAdd;

inventory::submit! { BuiltIn(&PromptAdd) }

#[async_trait]
impl Tool for PromptAdd {
    fn definition(&self) -> Definition {
        Definition {
            name: "prompt.add",
            title: "Add a standing instruction",
            description: "Keeps a standing instruction about how to answer, which holds from now on. Only when the \
                          wearer asks for it.",
            properties: json!({
                "text": {"type": "string", "question": ASK, "description": "The instruction.", "examples": ["keep it short"]},
                "how": {"type": "string", "description": "Words that stand in front of it.",
                        "examples": ["Always answer"]},
            }),
            required: &["text"],
            phrases: &[
                // The first one is what help shows.
                "from now on {text}",
                "(add|keep|save|new) [a|an|the|another] [new] [standing] instruction [that|to|saying] {text}",
                "always answer {text} {how=Always answer}",
                "always reply {text} {how=Always reply}",
                "always speak {text} {how=Always speak}",
                "always call me {text} {how=Always call me}",
                "never call me {text} {how=Never call me}",
                "never mention {text} {how=Never mention}",
                "never answer {text} {how=Never answer}",
            ],
            guidance: None,
            flags: CHANGES,
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WEARER_ONLY
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let text = arguments.text_required("text", INSTRUCTION_CHARS_MAX, ASK)?;
        let text = match arguments.text_optional("how", INSTRUCTION_CHARS_MAX)? {
            Some(how) => format!("{how} {text}"),
            None => spoken::capitalised(&text),
        };
        let instructions = &context.ports.memory.instructions;
        let all = instructions.list(&context.user).await?;
        let kept = match all.iter().find(|kept| matching::same_sentence(&kept.text, &text)) {
            Some(known) => known.clone(),
            None if all.len() >= INSTRUCTIONS_MAX => {
                return Err(Refusal {
                    code: ErrorCode::ExecutionError,
                    message: format!("{INSTRUCTIONS_MAX} instructions are kept, which is the most; delete one first."),
                    say: "I have as many instructions as I can follow. Delete one first.".to_owned(),
                    retryable: false,
                });
            }
            None => instructions.add(&context.user, &text).await?,
        };
        let say = spoken::sentence(&format!("From now on: {}", facts::short(&kept)));
        Ok(told(say, "Instruction", facts::short(&kept), facts::describe(context, &kept)))
    }
}
