//! Checks whether an app's server is reachable, for the operator who installs it.

use std::time::Duration;

use serde_json::Value;

use super::{
    client::Client,
    manifest::App,
    post::{bounded, cause},
};
use crate::reply::cut;

/// Timeout of one request: the server is on this machine or near it.
const ANSWER_MS_MAX: u64 = 2_000;
/// Maximum bytes that are read of a response.
const ANSWER_BYTES_MAX: usize = 8 * 1024;
/// Maximum bytes reported of a name that a server gives itself.
const NAME_BYTES_MAX: usize = 64;

impl Client {
    /// Checks whether a server at the app's URL behaves like a mini-app.
    ///
    /// # Errors
    /// What is wrong with it, and how to fix it. None of these problems prevents the installation of the app.
    pub async fn probe(&self, app: &App) -> Result<(), String> {
        let get = |path: &str| {
            let url = format!("{}{path}", app.public_url);
            self.http().get(url).timeout(Duration::from_millis(ANSWER_MS_MAX)).send()
        };
        let answer = get("/health").await.map_err(|error| {
            format!(
                "nothing answers at {} ({}); the app's server has to run before the app is started",
                app.public_url,
                cause(&error)
            )
        })?;
        if answer.status().is_success() {
            let body = bounded(answer, ANSWER_BYTES_MAX).await.unwrap_or_default();
            let said = serde_json::from_slice::<Value>(&body).unwrap_or_default();
            return match said.get("app").and_then(Value::as_str) {
                Some(other) if other != app.package => Err(format!(
                    "the server at {} says that it is `{}`; it will be turned away until both have one name: install it \
                     with --package, or change the app's PACKAGE_NAME",
                    app.public_url,
                    cut(other, NAME_BYTES_MAX)
                )),
                _ => Ok(()),
            };
        }
        // The first endpoint is optional for an app; the other is provided by the SDK.
        match get("/tool").await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            _ => Err(format!(
                "what answers at {} does not look like an app: neither GET /health nor GET /tool succeeds",
                app.public_url
            )),
        }
    }
}
