//! Login on another device: the wearer types a short code on a web page. RFC 8628.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep, sleep_until};

use crate::keyring::Token;

use super::{
    Flow, OAuthError,
    exchange::{self, Failed},
};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// Polling interval in seconds if the server does not set one.
const INTERVAL_DEFAULT: f64 = 5.0;
/// Accepted polling intervals in seconds: less would overload the server, more would delay the wearer.
const INTERVAL_S: std::ops::RangeInclusive<f64> = 0.1..=60.0;
/// Added to the interval after a `slow_down`.
const SLOWER: Duration = Duration::from_secs(5);
/// Longest wait for the wearer in seconds, whatever the server allows.
const WAIT_S_MAX: f64 = 1800.0;

/// Instructions for the wearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePrompt {
    /// Address of the page.
    pub url: String,
    /// The code to type there.
    pub code: String,
}

/// A login that waits for the wearer.
pub struct Device<'a> {
    flow: &'a Flow,
    client: reqwest::Client,
    granted: Granted,
    until: Instant,
}

/// What a device authorization endpoint sends.
#[derive(Deserialize)]
pub(crate) struct Granted {
    device_code: String,
    user_code: String,
    #[serde(alias = "verification_url")]
    verification_uri: String,
    #[serde(default)]
    verification_uri_complete: Option<String>,
    #[serde(default)]
    expires_in: Option<f64>,
    #[serde(default)]
    interval: Option<f64>,
}

impl Granted {
    /// How long the wearer has.
    pub(crate) fn wait(&self) -> Duration {
        let seconds = self.expires_in.unwrap_or(WAIT_S_MAX).clamp(0.0, WAIT_S_MAX);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// How often to ask.
    pub(crate) fn interval(&self) -> Duration {
        let seconds = self.interval.filter(|seconds| seconds.is_finite()).unwrap_or(INTERVAL_DEFAULT);
        Duration::try_from_secs_f64(seconds.clamp(*INTERVAL_S.start(), *INTERVAL_S.end())).unwrap_or(SLOWER)
    }

    pub(crate) fn prompt(&self) -> DevicePrompt {
        let shown = |text: &str| text.chars().filter(|c| !c.is_control()).take(512).collect();
        let url = self.verification_uri_complete.as_deref().unwrap_or(&self.verification_uri);
        DevicePrompt { url: shown(url), code: shown(&self.user_code) }
    }
}

impl<'a> Device<'a> {
    /// Requests a code.
    ///
    /// # Errors
    /// The configuration is incomplete, or the server returns no code.
    pub async fn start(flow: &'a Flow) -> Result<Self, OAuthError> {
        let url = flow.device_url.as_deref().ok_or(OAuthError::Missing("device_url"))?;
        let client = exchange::client()?;
        let scope = flow.scopes.join(" ");
        let mut fields = vec![("client_id", flow.client_id.as_str())];
        if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let granted: Granted = exchange::post(&client, url, "device_url", &fields, flow.json).await?;
        let until = Instant::now() + granted.wait();
        Ok(Self { flow, client, granted, until })
    }

    /// What to show; the page's address includes the code if the server provides such an address.
    pub fn prompt(&self) -> DevicePrompt {
        self.granted.prompt()
    }

    /// Polls until the wearer has agreed.
    ///
    /// # Errors
    /// The wearer refused or was too late, or the server failed.
    pub async fn wait(self) -> Result<Token, OAuthError> {
        let mut interval = self.granted.interval();
        let fields = [("grant_type", GRANT), ("device_code", self.granted.device_code.as_str())];
        loop {
            tokio::select! {
                () = sleep_until(self.until) => return Err(OAuthError::TimedOut),
                () = sleep(interval) => {}
            }
            match exchange::token(&self.client, self.flow, &fields, None).await {
                Ok(token) => return Ok(token),
                Err(Failed::Code(code, _)) if code == "authorization_pending" => {}
                Err(Failed::Code(code, _)) if code == "slow_down" => interval += SLOWER,
                Err(Failed::Code(code, _)) if code == "expired_token" => return Err(OAuthError::TimedOut),
                // A temporary network failure does not end the login.
                Err(Failed::Other(error)) if error.is_transient() => {}
                Err(failed) => return Err(failed.into()),
            }
        }
    }
}
