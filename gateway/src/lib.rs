//! The shell: configuration, transports, device tasks, ports, store, control socket. What happens between wearer and
//! assistant is decided in `gateway-core`; policy that has no part in that is here: `firmware::rollouts` decides which
//! device is offered which image.
//!
//! `pub` is what the tests and the binary use, and the types in its signatures and fields; everything else is
//! `pub(crate)` or less.
#![warn(unreachable_pub)]

mod approvals;
pub mod apps;
mod backup;
mod capabilities;
pub mod cli;
pub mod clock;
pub mod config;
pub mod conformance;
pub mod control;
mod device_task;
mod discovery;
mod doctor;
mod environment;
pub mod erasing;
mod findings;
pub mod firmware;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod http;
pub mod identity;
pub(crate) mod limits;
mod mailbox;
mod mcp;
pub mod models;
mod photos;
pub mod ports;
pub(crate) mod private;
mod problems;
mod recordings;
mod roster;
pub mod runtime;
pub mod serve;
pub mod skills;
pub mod speech;
pub mod store;
pub mod telemetry;
mod text;
pub mod transport;
mod units;
pub mod upgrade;
pub mod users;
mod workspace;
