//! Programs of models, in a process of their own: the JavaScript engine, the kernel's fences around it, and the
//! protocol between it and the gateway.
//!
//! The gateway starts its own executable again with [`ARGUMENT`]; [`child_main`] is all that this process runs.
//! Nothing else of this crate runs in the gateway but [`protocol`]. docs/code.md has limits and threat model.

mod child;
mod clock;
mod engine;
mod failure;
pub mod fences;
mod jsdoc;
pub mod protocol;
mod returns;
mod strip;

pub use child::{ARGUMENT, child_main};
