//! The shell: config, transports, device tasks, effects, store, control socket. It holds no policy.

pub mod apps;
mod chooser;
pub mod cli;
pub mod clock;
pub mod config;
pub mod control;
mod device_task;
mod ear;
pub mod effects;
pub mod gate;
pub mod identity;
mod mail;
pub mod mcp;
mod models;
mod mouth;
pub mod pages;
mod photos;
mod ranks;
mod roster;
mod routed;
pub mod serve;
mod spending;
pub mod store;
pub mod telemetry;
pub mod transport;
mod users;
