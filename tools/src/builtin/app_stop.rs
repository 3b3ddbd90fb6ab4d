//! `app.stop`: stops a mini-app.

use async_trait::async_trait;
use gateway_core::vocab::{ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, CHANGES, Definition, Tool, apps};
use crate::{
    arguments::{Arguments, Refusal},
    registry::RunContext,
};

struct AppStop;

inventory::submit! { BuiltIn(&AppStop) }

#[async_trait]
impl Tool for AppStop {
    fn definition(&self) -> Definition {
        Definition {
            name: "app.stop",
            title: "Stop an app",
            description: "Stops a mini-app by its name.",
            properties: apps::properties(),
            required: &["app"],
            phrases: &[
                // The first one is what help shows.
                "stop the {app:name} app",
                "(stop|close|quit|exit|end|leave|shut down|turn off|switch off) [the|my] {app:name} (app|application|mini app)",
                "(stop|close|quit|exit|end|leave|shut down|turn off|switch off) [the|my] (app|application|mini app) [called|named] {app:name}",
                "(stop|close|quit|exit|end|leave|shut down|turn off|switch off|stop playing) [the|my] {app:app} [app|application|mini app]",
                "(turn|switch) [the|my] {app:app} [app] off",
            ],
            guidance: None,
            flags: ToolFlags { idempotent: true, always: false, ..CHANGES },
        }
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let app = apps::chosen(context, arguments, "Which app shall I stop?").await?;
        let name = apps::name(&app);
        let ran = context.ports.apps.stop(&context.user, &app.package).await?;
        let mut result =
            ToolResult::said(if ran { format!("{name} stopped.") } else { format!("{name} is not running.") });
        result.data = Some(json!({"app": app.name, "package": app.package, "stopped": ran}));
        Ok(result)
    }
}
