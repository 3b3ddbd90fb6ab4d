//! What the tools and models need from outside (`tools::ports` and its like), as the gateway has it.

pub mod context;
pub mod intents;
pub mod memory;
pub(crate) mod preferences;
pub mod records;
pub mod stores;
