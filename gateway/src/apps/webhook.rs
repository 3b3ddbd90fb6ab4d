//! `POST {publicUrl}/webhook`: how an app's server is told to start and to stop.

use std::time::Duration;

use backon::{ConstantBuilder, Retryable as _};
use gateway_core::vocab::ErrorCode;
use reqwest::Client;
use serde_json::Value;
use tools::apps::{faults::Fault, manifest::App};

use crate::clock;

/// How long an answer may take: it comes only when the app's own `onSession` is through.
const ANSWER_MS_MAX: u64 = 10_000;
/// How long the answer to a stop may take: nothing depends on it.
const STOP_ANSWER_MS_MAX: u64 = 2_500;
/// Before the second try of a request that nobody took.
const RETRY_MS: u64 = 1_000;

/// Tells the app to start. Answered tries are not repeated: a second session request makes the SDK begin twice.
///
/// # Errors
/// Why the start came to nothing, in words. That no answer came in time says nothing: the socket tells.
pub async fn start(http: &Client, app: &App, body: &Value) -> Result<(), String> {
    let send = || post(http, app, body, ANSWER_MS_MAX);
    let again = ConstantBuilder::new().with_delay(Duration::from_millis(RETRY_MS)).with_max_times(1);
    let answer = send.retry(again).when(|error| error.is_connect() && !error.is_timeout()).await;
    match answer {
        Ok(answer) if answer.status().is_success() => Ok(()),
        // Wherever it leads to, the user's name goes to nobody but the app's own server.
        Ok(answer) if answer.status().is_redirection() => {
            Err("its server leads elsewhere, which is refused".to_owned())
        }
        Ok(answer) => Err(format!("its server answered the start with status {}", answer.status().as_u16())),
        Err(error) if error.is_timeout() && !error.is_connect() => Ok(()),
        Err(error) if error.is_connect() => Err("its server does not answer".to_owned()),
        Err(error) => Err(format!("calling its server failed: {}", error.without_url())),
    }
}

/// A start that came to nothing, for who writes the app.
pub fn fault(app: &App, body: &Value, why: &str) -> Fault {
    Fault {
        wall_ms: clock::wall_ms(),
        what: "webhook".to_owned(),
        code: ErrorCode::AppNotAvailable,
        message: why.to_owned(),
        request: format!("POST {}/webhook {body}", app.public_url),
        answer: String::new(),
    }
}

/// Tells the app to stop; whatever comes of it.
pub async fn stop(http: &Client, app: &App, body: &Value) {
    if let Err(error) = post(http, app, body, STOP_ANSWER_MS_MAX).await {
        tracing::debug!(package = app.package, error = %error.without_url(), "an app did not take its stop");
    }
}

/// The body of the answer is never read: it may be without end.
async fn post(http: &Client, app: &App, body: &Value, ms_max: u64) -> reqwest::Result<reqwest::Response> {
    let url = format!("{}/webhook", app.public_url.trim_end_matches('/'));
    http.post(url).json(body).timeout(Duration::from_millis(ms_max)).send().await
}
