//! `conversation.new`: starts a new conversation.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, WEARER_ONLY, told};
use crate::{
    arguments::{Arguments, Refusal},
    registry::RunContext,
};

struct ConversationNew;

inventory::submit! { BuiltIn(&ConversationNew) }

#[async_trait]
impl Tool for ConversationNew {
    fn definition(&self) -> Definition {
        Definition {
            name: "conversation.new",
            title: "Begin a new conversation",
            description: "Begins a new conversation: what was said before is kept, but no longer told to the model. Only \
                          when the wearer asks for it.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "start a new conversation",
                "(start|begin|open) [a] (new|fresh|another) (conversation|chat)",
                "(let's|let us) (start|begin|have) [a] (new|fresh|another) (conversation|chat)",
                "(new|fresh|another) conversation",
            ],
            guidance: None,
            flags: ToolFlags { always: false, ..CHANGES },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WEARER_ONLY
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        context.ports.memory.conversations.begin(&context.user).await?;
        Ok(told("A new conversation. What is it about?", "Conversation", "New", json!({"began": true})))
    }
}
