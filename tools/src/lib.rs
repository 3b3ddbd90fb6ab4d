//! The tools that a model can call: definitions, registry, executor, built-in tools.
//!
//! Start with [`registry`] (the available tools), [`executor`] (how a call gets its single result) and [`ports`]
//! (the interfaces that the gateway implements). A built-in tool is one file in [`builtin`] that declares everything
//! about itself and registers itself.

pub mod alike;
pub mod apps;
pub mod arguments;
mod attempt;
pub mod builtin;
pub mod call;
pub mod caller;
mod canonical;
pub mod capabilities;
pub mod catalogue;
pub mod code;
mod consent;
pub mod conversation;
pub mod credentials;
pub mod deadline;
pub mod definition;
pub mod device;
pub mod executor;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod in_flight;
pub mod inspection;
pub mod journal;
pub mod ledger;
pub mod limits;
pub mod matching;
pub mod mcp;
pub mod memory;
mod mutex;
pub mod nested;
mod order;
pub mod permissions;
pub mod personality;
pub mod phrases;
mod port_error;
pub mod ports;
pub mod programs;
mod rates;
pub mod registry;
pub mod reply;
pub mod request_context;
pub mod router;
pub mod schema;
pub mod secret;
pub mod sides;
pub mod source;
pub mod spoken;
#[cfg(test)]
mod test_support;
mod titles;
pub mod wording;
pub mod workspace;

pub use rates::Limits as RateLimits;
