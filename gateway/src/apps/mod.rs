//! Mini-apps: which are installed, their life, their sockets, what they hear and draw.
//!
//! Their life is decided in the core (`gateway_core::app_life`), what travels in `streams`, `drawing` and `settings`
//! (plain functions); `tasks` has one task for each user, which drives their life cycles and carries out what they want, `host`
//! is how the rest of the gateway reaches them, `admission` lets sockets in, `socket` has one task for each app that runs,
//! `storage` is what apps keep.

mod admission;
pub mod bitmap;
pub mod drawing;
pub mod feed;
pub mod glasses;
pub mod host;
pub mod installed;
mod photo;
mod port;
mod refusals;
mod relay;
mod requests;
pub mod scene;
mod sessions;
pub mod settings;
pub mod socket;
pub mod sound;
mod speech;
pub mod storage;
pub mod streams;
mod tasks;
mod webhook;
pub mod wire;

/// Where apps of the SDK's version 1 connect.
pub const PATH_OLD: &str = "/tpa-ws";
