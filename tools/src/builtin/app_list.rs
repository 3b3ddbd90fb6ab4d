//! `app.list`: the installed mini-apps, and which ones run.

use async_trait::async_trait;
use gateway_core::vocab::{ToolFlags, ToolResult};
use serde_json::json;

use super::{BuiltIn, Definition, READ_ONLY, Tool, apps, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::SPOKEN_ITEMS_MAX,
    registry::RunContext,
    spoken,
};

struct AppList;

inventory::submit! { BuiltIn(&AppList) }

#[async_trait]
impl Tool for AppList {
    fn definition(&self) -> Definition {
        Definition {
            name: "app.list",
            title: "List the apps",
            description: "Lists the mini-apps that are installed and says which of them run.",
            properties: json!({}),
            required: &[],
            phrases: &[
                // The first one is what help shows.
                "what apps do I have",
                "(what|which) (apps|mini apps|applications) (do i have|are there|are installed|can i use|have i got|are running)",
                "(list|show|read|tell) [me] [all] [my|the] (apps|mini apps|applications)",
                "are any (apps|mini apps|applications) running",
            ],
            guidance: None,
            flags: ToolFlags { always: false, ..READ_ONLY },
        }
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let all = context.ports.apps.list(&context.user).await?;
        let listed: Vec<_> = all
            .iter()
            .map(|app| json!({"package": app.package, "name": app.name, "description": app.description, "running": app.running}))
            .collect();
        let data = json!({"apps": listed});
        if all.is_empty() {
            return Ok(told("No apps are installed.", "Apps", "None installed", data));
        }
        let names = |running: bool| -> Vec<String> {
            all.iter().filter(|app| app.running == running).take(SPOKEN_ITEMS_MAX).map(apps::name).collect()
        };
        let (running, others) = (names(true), names(false));
        let mut say = format!("You have {}.", spoken::count(all.len(), "app"));
        match running.as_slice() {
            [] => {}
            [one] => say.push_str(&format!(" {one} is running.")),
            several => say.push_str(&format!(" {} are running.", spoken::list(several))),
        }
        if !others.is_empty() {
            let begin = if running.is_empty() { " Among them:" } else { " Besides:" };
            say.push_str(&format!("{begin} {}.", spoken::list(&others)));
        }
        let lines: Vec<String> = running.iter().map(|name| format!("> {name}")).chain(others).collect();
        Ok(told(say, "Apps", lines.join("\n"), data))
    }
}
