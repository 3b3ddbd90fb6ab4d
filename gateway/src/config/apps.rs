//! The section `[apps]`.

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
pub const APP_SOCKET_PATH: &str = "/app-ws";
