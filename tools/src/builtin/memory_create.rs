//! `memory.create`: stores a fact about the wearer.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, WITH_KEY, facts, told};
use crate::{
    arguments::{Arguments, Refusal},
    matching,
    memory::{FACT_CHARS_MAX, FACTS_MAX},
    registry::RunContext,
    spoken,
};

const ASK: &str = "What should I remember?";

struct MemoryCreate;

inventory::submit! { BuiltIn(&MemoryCreate) }

#[async_trait]
impl Tool for MemoryCreate {
    fn definition(&self) -> Definition {
        Definition {
            name: "memory.create",
            title: "Remember something",
            description: "Remembers a lasting fact about the wearer: a preference, a person, a place. One fact, in one \
                          sentence that is understood without the conversation.",
            properties: json!({
                "text": {"type": "string", "question": ASK, "description": "The fact.", "examples": ["my car is on level three"]},
            }),
            required: &["text"],
            phrases: &[
                // The first one is what help shows.
                "remember that {text}",
                "remember this {text}",
                "keep in mind that {text}",
                "(don't|do not) forget that {text}",
                "you should know that {text}",
                "add {text} to your memory",
            ],
            guidance: Some(
                "Keep with memory.create what will matter in later conversations and was said by the wearer; correct it \
                 with memory.update instead of keeping it twice. Never keep passwords, codes of cards or what others say.",
            ),
            flags: CHANGES,
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WITH_KEY
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let text = arguments.text_required("text", FACT_CHARS_MAX, ASK)?;
        let memory = &context.ports.memory;
        let all = memory.facts.list(&context.user).await?;
        let known = all.iter().find(|fact| matching::same_sentence(&fact.text, &text)).cloned();
        let is_new = known.is_none();
        let fact = match known {
            Some(known) => known,
            None if all.len() >= FACTS_MAX => {
                return Err(Refusal {
                    code: gateway_core::vocab::ErrorCode::ExecutionError,
                    message: format!("{FACTS_MAX} facts are kept, which is the most; delete some first."),
                    say: "I can't remember any more. Tell me what to forget first.".to_owned(),
                    retryable: false,
                });
            }
            None => memory.facts.add(&context.user, &text).await?,
        };
        memory.last_mentioned.mention(&context.user, fact.id, facts::now_us(context));
        let words = if is_new { "I'll remember" } else { "I know already" };
        let say = spoken::sentence(&format!("{words}: {}", facts::short(&fact)));
        Ok(told(say, "Remembered", facts::short(&fact), facts::describe(context, &fact)))
    }
}
