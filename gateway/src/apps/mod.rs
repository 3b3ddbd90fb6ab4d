//! Mini-apps: installation, life cycle, sockets, input and drawings.
//!
//! The core decides about their life cycle (`gateway_core::app_lifecycle`); the formats are in `streams`, `drawing` and
//! `app_settings` (plain functions); `offer` judges which streams they get. `tasks` has one task per user, which drives the
//! life cycles and carries out their outputs; `message` is what it and the sockets are sent. `host` is the interface for
//! the rest of the gateway, `admission` admits sockets, `socket` is one app's task, `storage` is what apps store,
//! `user_settings` the values of their settings. `settings` is the section of the configuration.

pub(crate) mod admission;
mod app_settings;
pub(crate) mod bitmap;
pub(crate) mod drawing;
pub mod feed;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub(crate) mod glasses;
pub mod host;
pub(crate) mod installed;
mod message;
mod offer;
mod order;
mod pending_outcomes;
mod photo;
mod port;
mod refusals;
mod relay;
mod requests;
pub(crate) mod scene;
mod sessions;
pub(crate) mod settings;
mod socket;
pub(crate) mod sound;
mod speech;
mod speeches;
pub(crate) mod storage;
pub(crate) mod streams;
mod tasks;
mod user_settings;
mod webhook;
pub(crate) mod wire;

/// Path of the apps' socket. 2.x and 3.x of the SDK derive the REST paths by removing it.
pub(crate) const APP_SOCKET_PATH: &str = "/app-ws";
/// Path for version 1 of the SDK.
pub(crate) const PATH_OLD: &str = "/tpa-ws";
