//! The shell: configuration, transports, device tasks, ports, store, control socket. It holds no policy.

pub mod approvals;
pub mod apps;
pub mod cli;
pub mod clock;
pub mod config;
pub mod control;
mod device_task;
pub mod erasing;
pub mod health;
pub mod http;
pub mod identity;
mod mailbox;
pub mod mcp;
pub mod models;
mod photos;
pub mod ports;
mod roster;
pub mod runtime;
pub mod serve;
pub mod skills;
mod speech;
pub mod store;
pub mod telemetry;
pub mod text;
pub mod transport;
pub mod users;
