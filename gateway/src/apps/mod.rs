//! Mini-apps: which are installed, their life, their sockets, what they hear and draw.
//!
//! Their life is decided in the core (`gateway_core::app_life`), what travels in `streams`, `drawing` and `settings`
//! (plain functions); `host` carries everything out, `socket` has one task for each app that runs, `rest` answers what apps ask by HTTP.

pub mod bitmap;
pub mod drawing;
pub mod feed;
pub mod glasses;
pub mod host;
pub mod installed;
mod photo;
mod port;
mod requests;
pub mod rest;
pub mod settings;
pub mod socket;
mod speech;
mod storage;
pub mod streams;
mod webhook;
pub mod wire;

use gateway_core::app_life as life;

/// Where apps connect. 2.x and 3.x of the SDK find our REST paths by taking this off the end.
pub const PATH: &str = "/app-ws";
/// The same for 1.x.
pub const PATH_OLD: &str = "/tpa-ws";
