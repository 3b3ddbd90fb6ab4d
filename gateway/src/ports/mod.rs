//! The gateway's implementations of what tools and models need from outside (`tools::ports` and others).

pub mod context;
pub mod graph;
pub mod journal;
pub mod logs;
pub mod memory;
pub mod models;
pub mod photos;
pub(crate) mod preferences;
pub mod records;
pub mod routines;
pub mod runs;
pub(crate) mod settings;
pub mod stores;
pub mod system;
