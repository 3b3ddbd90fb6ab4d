//! Mini-apps: which are installed, their life, their sockets, what they hear and draw.
//!
//! Their life is decided in the core (`gateway_core::app_life`), what travels in `streams`, `drawing` and `settings`
//! (plain functions); `host` holds everything, `outputs` carries out what the life cycles want, `admission` lets sockets in,
//! `socket` has one task for each app that runs, `rest` answers what apps ask by HTTP.

mod admission;
pub mod bitmap;
pub mod drawing;
pub mod feed;
pub mod glasses;
pub mod host;
pub mod installed;
mod outputs;
mod photo;
mod port;
mod refusals;
mod relay;
mod requests;
pub mod rest;
mod sessions;
pub mod settings;
pub mod socket;
pub mod sound;
mod speech;
mod storage;
pub mod streams;
mod webhook;
pub mod wire;

use gateway_core::app_life as life;
use serde::Deserialize;

/// Where the box stands, as its operator says: near the wearer.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Location {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// How far from there the wearer may be, in metres.
    pub accuracy_m: Option<f64>,
}

impl Location {
    /// Whether there is such a place.
    pub fn is_on_earth(&self) -> bool {
        (-90.0..=90.0).contains(&self.latitude)
            && (-180.0..=180.0).contains(&self.longitude)
            && self.accuracy_m.is_none_or(|metres| metres.is_finite() && metres >= 0.0)
    }
}

/// Where apps connect. 2.x and 3.x of the SDK find our REST paths by taking this off the end.
pub const PATH: &str = "/app-ws";
/// The same for 1.x.
pub const PATH_OLD: &str = "/tpa-ws";
