//! `app.start`: starts a mini-app.

use std::time::Duration;

use async_trait::async_trait;
use gateway_core::vocab::{ErrorCode, ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, apps};
use crate::{
    arguments::{Arguments, Refusal},
    ports::PortError,
    registry::RunContext,
    reply::cut,
    spoken,
};

struct AppStart;

inventory::submit! { BuiltIn(&AppStart) }

/// Milliseconds reserved of the call's deadline to report that the app did not start.
const MARGIN_MS: u64 = 500;

#[async_trait]
impl Tool for AppStart {
    fn definition(&self) -> Definition {
        Definition {
            name: "app.start",
            title: "Start an app",
            description: "Starts a mini-app by its name. Another one in front is stopped for it.",
            properties: apps::properties(),
            required: &["app"],
            phrases: &[
                // The first one is what help shows.
                "start the {app:name} app",
                "(start|open|launch|run|play|load|start up|open up) [the|my] {app:name} (app|application|mini app)",
                "(start|open|launch|run|play|load|start up|open up) [the|my] (app|application|mini app) [called|named] {app:name}",
                "(start|open|launch|run|load|begin|start up|open up|bring up|fire up|switch to) [the|my] {app:app} [app|application|mini app]",
                "(play|start playing) [a|the|my] [game of] {app:app} [app]",
            ],
            guidance: Some("An app's own tools start it by themselves: do not start it first."),
            // Most users have few apps, so the tool is not always offered.
            flags: ToolFlags { idempotent: true, always: false, ..CHANGES },
        }
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let app = apps::chosen(context, arguments, "Which app shall I start?").await?;
        let name = apps::name(&app);
        let limit = context.deadline.saturating_sub(Duration::from_millis(MARGIN_MS));
        let begun = context.ports.apps.activate(&context.user, &app.package, limit).await;
        let begun = begun.map_err(|error| refusal(&name, &error))?;
        let mut result =
            ToolResult::said(if begun { format!("{name} started.") } else { format!("{name} is running.") });
        result.data = Some(json!({"app": app.name, "package": app.package, "started": begun}));
        Ok(result)
    }
}

fn refusal(name: &str, error: &PortError) -> Refusal {
    let why = spoken::clause(error.why());
    Refusal {
        code: ErrorCode::AppNotAvailable,
        message: cut(&format!("{name} did not start: {why}."), crate::limits::MESSAGE_BYTES_MAX),
        say: format!("{name} did not start: {}.", cut(why, crate::limits::ITEM_CHARS_MAX)),
        retryable: true,
    }
}
