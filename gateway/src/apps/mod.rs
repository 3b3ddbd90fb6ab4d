//! Mini-apps: which are installed, their life, their sockets, what they hear and draw.
//!
//! Their life is decided in the core (`gateway_core::app_life`), what travels in `streams`, `drawing` and `app_settings`
//! (plain functions); `tasks` has one task for each user, which drives their life cycles and carries out what they want,
//! `host` is how the rest of the gateway reaches them, `admission` lets sockets in, `socket` is one app's task,
//! `storage` is what apps keep. `settings` is the section of the configuration.

mod admission;
mod app_settings;
pub(crate) mod bitmap;
pub(crate) mod drawing;
pub mod feed;
pub(crate) mod glasses;
pub mod host;
pub(crate) mod installed;
mod photo;
mod port;
mod refusals;
mod relay;
mod requests;
pub(crate) mod scene;
mod sessions;
pub(crate) mod settings;
pub(crate) mod socket;
pub(crate) mod sound;
mod speech;
pub(crate) mod storage;
pub(crate) mod streams;
mod tasks;
mod webhook;
pub(crate) mod wire;

/// Where apps connect. 2.x and 3.x of the SDK find our REST paths by taking this off the end.
pub const APP_SOCKET_PATH: &str = "/app-ws";
/// Where apps of the SDK's version 1 connect.
pub const PATH_OLD: &str = "/tpa-ws";
