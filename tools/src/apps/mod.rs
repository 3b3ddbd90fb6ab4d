//! Mini-apps: what the gateway knows of one, and how its tools are called.

pub mod answer;
pub mod client;
pub mod failure;
pub mod import;
pub mod log;
pub mod manifest;
mod probe;
