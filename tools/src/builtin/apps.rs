//! Shared code of the tools for mini-apps.

use gateway_core::vocab::sound::Name;

use crate::{
    arguments::{Arguments, Refusal},
    limits::{ITEM_CHARS_MAX, QUERY_CHARS_MAX, SPOKEN_ITEMS_MAX},
    matching::{self, Choice},
    ports::AppEntry,
    registry::RunContext,
    reply::cut,
    spoken,
};

/// Properties of a tool that takes an app.
pub(super) fn properties() -> serde_json::Value {
    serde_json::json!({
        "app": {"type": "string", "question": "Which app?", "description": "The mini-app's name, as the wearer says it.", "examples": ["Todo"]},
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
    let alike = alike(&installed, &wanted);
    let chosen = match matching::choose(installed, &wanted, |app| &app.name) {
        Choice::None => alike,
        written => written,
    };
    match chosen {
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

/// The app whose name sounds most like what was said: a recogniser writes "to do" for "Todo".
fn alike(installed: &[AppEntry], said: &str) -> Choice<AppEntry> {
    let near = installed.iter().filter_map(|app| Some((Name::new(&app.name).distance(said)?, app)));
    let near: Vec<(u16, &AppEntry)> = near.collect();
    let least = near.iter().map(|(off, _)| *off).min();
    let nearest = near.into_iter().filter(|(off, _)| Some(*off) == least).map(|(_, app)| app.clone());
    Choice::among(nearest.collect())
}

/// An app's name, shortened for speech.
pub(super) fn name(app: &AppEntry) -> String {
    cut(&app.name, ITEM_CHARS_MAX)
}
