//! What a model may call: definitions, registry, executor, built-ins.
//!
//! Start with [`registry`] (which tools there are), [`executor`] (how a call comes to its one
//! result) and [`ports`] (what is needed from outside). A built-in tool is one file in [`builtin`]
//! that declares everything about itself and registers itself.

pub mod apps;
pub mod arguments;
pub mod builtin;
pub mod caller;
pub mod device;
pub mod executor;
#[cfg(test)]
mod fakes_tests;
pub mod limits;
pub mod matching;
pub mod mcp;
pub mod phrases;
pub mod ports;
pub mod registry;
pub mod reply;
pub mod runner;
pub mod schema;
pub mod spoken;
