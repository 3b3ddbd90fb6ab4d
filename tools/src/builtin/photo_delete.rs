//! `photo.delete`: deletes the photo that was taken last, and withdraws the pictures of the turn.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, WEARER_ONLY, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::PHOTO_LAST_MS_MAX,
    registry::RunContext,
};

struct PhotoDelete;

inventory::submit! { BuiltIn(&PhotoDelete) }

#[async_trait]
impl Tool for PhotoDelete {
    fn definition(&self) -> Definition {
        Definition {
            name: "photo.delete",
            title: "Delete the last photo",
            description: "Deletes the photo that the wearer took last, if that was within ten minutes. You are no longer \
                          shown the pictures of this turn either. Only when the wearer asks for it.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "delete the last photo",
                "(delete|remove|erase|throw away|discard) (the last|my last|the latest|that last) (photo|picture|photograph|snapshot)",
                "(delete|remove|erase|throw away|discard) (that|this|the) (photo|picture|photograph|snapshot)",
                "(delete|remove|erase|throw away|discard) the (photo|picture) [that] (i|you) [have] just (took|taken)",
            ],
            guidance: None,
            flags: ToolFlags { destructive: true, always: false, ..CHANGES },
        }
    }

    fn clients(&self) -> Option<&'static [ClientClass]> {
        WEARER_ONLY
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let since_wall_ms = context.ports.clock.now().wall_ms.saturating_sub(PHOTO_LAST_MS_MAX);
        let deleted = context.ports.memory.photos.delete_last(&context.user, since_wall_ms).await?;
        let (say, shown) = match deleted {
            true => ("I deleted the last photo.", "Deleted"),
            false => ("There is no photo of the last ten minutes.", "None found"),
        };
        Ok(told(say, "Photos", shown, json!({"deleted": deleted, "withdrawsPictures": true})))
    }
}
