//! A mini-app that stores reminders, draws them and reads them out.
//!
//! `API_KEY=... cargo run -p mini-app-kit --example reminders [ADDRESS]`

use mini_app_kit::{App, Call, Error, Layout, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Keep {
    /// What to keep in mind.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

async fn keep(call: Call, keep: Keep) -> Result<String, ToolError> {
    let session = call.session()?;
    let mut list = session.storage().get("list").await?.unwrap_or_default();
    list.push_str(&format!("{}\n", keep.text));
    session.storage().set("list", &list).await?;
    session.show(Layout::card("Keep in mind", list))?;
    Ok(format!("I'll keep in mind {}.", keep.text))
}

async fn show(call: Call, _: Nothing) -> Result<String, ToolError> {
    let session = call.session()?;
    let list = session.storage().get("list").await?.unwrap_or_default();
    session.show(Layout::card("Keep in mind", &list))?;
    Ok(if list.is_empty() { "Nothing.".to_owned() } else { list.trim_end().replace('\n', ", ") })
}

/// The app, before it is bound to an address.
pub fn app() -> App {
    let keep = Tool::new("keep", "Keeps something in mind for the wearer.", keep);
    let show = Tool::new("show", "Shows and tells what is kept in mind.", show);
    App::new("com.example.reminders", "Reminders")
        .description("Keeps things in mind and draws them.")
        .tool(keep.phrase("keep in mind [that|to] {text}").draws())
        .tool(show.phrase("what (should|do|did) I keep in mind").draws())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7010".to_owned());
    let key = std::env::var("API_KEY").unwrap_or_default();
    let bound = app().key(&key).bind(&address).await?;
    println!("ready at http://{}", bound.address());
    bound.serve().await;
    Ok(())
}
