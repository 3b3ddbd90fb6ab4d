//! What the tools for mini-apps share.

use crate::{
    arguments::{Arguments, Refusal},
    limits::{ITEM_CHARS_MAX, QUERY_CHARS_MAX, SPOKEN_ITEMS_MAX},
    matching::{self, Choice},
    ports::AppEntry,
    reply::cut,
    runner::RunContext,
    spoken,
};

/// Properties of a tool that takes an app.
pub(super) fn properties() -> serde_json::Value {
    serde_json::json!({
        "app": {"type": "string", "description": "The mini-app's name, as the wearer says it.", "examples": ["Todo"]},
    })
}

/// The app that the wearer means, by its name or package.
pub(super) async fn chosen(context: &RunContext, arguments: Arguments<'_>, ask: &str) -> Result<AppEntry, Refusal> {
    let wanted = arguments.text_required("app", QUERY_CHARS_MAX, ask)?;
    let mut installed = context.ports.apps.list(&context.user).await?;
    if let Some(at) = installed.iter().position(|app| app.package == wanted) {
        return Ok(installed.swap_remove(at));
    }
    let names: Vec<String> = installed.iter().map(|app| app.name.clone()).collect();
    match matching::choose(installed, &wanted, |app| &app.name) {
        Choice::One(app) => Ok(app),
        Choice::Several(apps) => {
            let names: Vec<String> = apps.iter().take(SPOKEN_ITEMS_MAX).map(name).collect();
            let message = format!("Several apps are called like '{wanted}': {}.", names.join(", "));
            Err(Refusal::arguments(message, format!("Which one: {}?", spoken::list(&names))))
        }
        Choice::None => {
            let message = format!("No app is called '{wanted}'; installed are: {}.", names.join(", "));
            Err(Refusal::arguments(message, format!("I have no app called {}.", cut(&wanted, ITEM_CHARS_MAX))))
        }
    }
}

/// An app's name at a length that can be said.
pub(super) fn name(app: &AppEntry) -> String {
    cut(&app.name, ITEM_CHARS_MAX)
}
