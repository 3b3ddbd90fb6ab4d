//! Mini-apps for smart glasses in Rust.
//!
//! An app is a small web server: the gateway calls its tools by `POST /tool` and asks it by `POST /webhook` to open a
//! socket, over which the app draws, listens and speaks. This crate provides the server and the socket; an app provides
//! its tools:
//!
//! ```no_run
//! use mini_app_kit::{App, Call, Layout, Tool, ToolError};
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Greet {
//!     /// Whom to greet.
//!     name: String,
//! }
//!
//! async fn greet(call: Call, greet: Greet) -> Result<String, ToolError> {
//!     call.session()?.show(Layout::text(format!("Hello, {}!", greet.name)))?;
//!     Ok(format!("I greeted {}.", greet.name))
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), mini_app_kit::Error> {
//!     App::new("com.example.greeter", "Greeter")
//!         .tool(Tool::new("greet", "Greets somebody.", greet).phrase("say hello to {name}").draws())
//!         .serve("127.0.0.1:7010")
//!         .await
//! }
//! ```
//!
//! The protocol is that of MentraOS, so an app works with any gateway or cloud that implements it.

mod app;
mod errors;
mod layout;
mod limits;
mod server;
mod session;
mod socket;
mod storage;
mod target;
mod tool;

pub use app::App;
pub use errors::Error;
pub use layout::Layout;
pub use server::Bound;
pub use session::{Session, Transcript, Transcripts};
pub use storage::Storage;
pub use tool::{Call, Reply, Said, Tool, ToolError};
