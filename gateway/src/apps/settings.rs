//! The section `[apps]`.

use serde::Deserialize;
use toml::Spanned;

use super::APP_SOCKET_PATH;
use crate::problems::{Problems, unwritten};

/// `[apps]` as configured.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RawApps {
    url: Spanned<String>,
    location: Option<Spanned<Location>>,
}

impl Default for RawApps {
    fn default() -> Self {
        Self { url: unwritten(String::new()), location: None }
    }
}

/// What apps are told about the gateway.
#[derive(Clone, Debug)]
pub struct AppsSettings {
    /// Address of the gateway for apps on other machines; `None`: they run on this one.
    pub url: Option<String>,
    /// The location of the wearer reported to apps.
    pub location: Option<Location>,
}

/// The gateway's location as configured: near the wearer.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Location {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
    /// Maximum distance of the wearer from there, in metres.
    pub accuracy_m: Option<f64>,
}

impl Location {
    /// Whether the coordinates are valid.
    fn is_on_earth(&self) -> bool {
        (-90.0..=90.0).contains(&self.latitude)
            && (-180.0..=180.0).contains(&self.longitude)
            && self.accuracy_m.is_none_or(|metres| metres.is_finite() && metres >= 0.0)
    }
}

impl RawApps {
    /// Checks the section.
    pub(crate) fn check(&self, problems: &mut Problems<'_>) -> AppsSettings {
        AppsSettings { url: self.check_url(problems), location: self.check_location(problems) }
    }

    fn check_url(&self, problems: &mut Problems<'_>) -> Option<String> {
        let given = self.url.get_ref().trim_end_matches('/');
        if given.is_empty() {
            return None;
        }
        let socket = given.starts_with("ws://") || given.starts_with("wss://");
        if !socket || !given.ends_with(APP_SOCKET_PATH) {
            let what = format!(
                "`apps.url` is `{given}`; it must be a WebSocket address that ends in {APP_SOCKET_PATH} such as \
                 ws://192.168.1.5:8460{APP_SOCKET_PATH}"
            );
            problems.at(self.url.span(), what);
        }
        Some(given.to_owned())
    }

    fn check_location(&self, problems: &mut Problems<'_>) -> Option<Location> {
        let given = self.location.as_ref()?;
        if !given.get_ref().is_on_earth() {
            let what = "`apps.location` needs a latitude of -90 to 90, a longitude of -180 to 180, and an accuracy_m from 0 on";
            problems.at(given.span(), what);
        }
        Some(*given.get_ref())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::check;

    fn lines(text: &str) -> Vec<usize> {
        check(text, "x.toml").unwrap_err().iter().filter_map(|problem| problem.line).collect()
    }

    #[test]
    fn the_address_for_apps_has_a_form() {
        for bad in ["http://a/app-ws", "ws://a/", "ws://a/tpa-ws", "nonsense"] {
            assert_eq!(lines(&format!("[apps]\nurl = \"{bad}\"\n")), [2], "{bad}");
        }
        let good = check("[apps]\nurl = \"wss://box.lan:8460/app-ws\"\n", "x.toml").unwrap();
        assert_eq!(good.apps.url.as_deref(), Some("wss://box.lan:8460/app-ws"));
    }

    #[test]
    fn the_location_for_apps_is_on_earth() {
        let of = |values: &str| format!("[apps]\nlocation = {{ {values} }}\n");
        let good = check(&of("latitude = 52.5, longitude = 13.4"), "x.toml").unwrap().apps.location.unwrap();
        assert_eq!((good.latitude, good.longitude, good.accuracy_m), (52.5, 13.4, None));
        for bad in ["latitude = 91, longitude = 0", "latitude = 0, longitude = nan", "latitude = 0"]
            .into_iter()
            .chain(["latitude = 0, longitude = 0, accuracy_m = -1", "latitude = 0, longitude = 0, height = 3"])
        {
            assert_eq!(lines(&of(bad)), [2], "{bad}");
        }
        assert_eq!(check("", "x.toml").unwrap().apps.location, None);
    }
}
