//! Capabilities: named groups of functions that programs import as modules.
//!
//! [`definition`] reads their definitions, and [`compile()`] makes modules for programs of the tools that a user may
//! call, whatever their source: TypeScript declarations for the author of a program, JavaScript that forwards each
//! call over the [bridge](stub::BRIDGE), the schemas, and what is known about each function. Neither has an effect, and
//! nothing is trusted: names, descriptions and schemas may come from a hostile server.
//!
//! [`offer`] makes tools of definitions, which are called at an HTTP server or as tools of an MCP server.

mod cache;
mod compile;
mod declarations;
pub mod definition;
mod index;
mod input;
mod layout;
mod lift;
mod names;
pub mod offer;
pub mod stub;
mod text;
mod types;

pub use crate::source::About;
pub use cache::Cache;
pub use compile::{Bundle, FunctionMeta, Meta, Module, Policy, compile};
pub use index::index;
pub use input::{Function, Origin, SourceKind, offered};

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
