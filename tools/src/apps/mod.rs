//! Mini-apps: their manifests, and calls of their tools.

pub mod answer;
pub mod client;
pub mod failure;
pub mod import;
pub mod log;
pub mod manifest;
pub(crate) mod post;
mod probe;
