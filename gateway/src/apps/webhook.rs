//! `POST {publicUrl}/webhook`: how an app's server is told to start and to stop.

use std::time::Duration;

use backon::{ConstantBuilder, Retryable as _};
use gateway_core::vocab::ErrorCode;
use reqwest::Client;
use serde_json::Value;
use tools::apps::manifest::App;

/// How long an answer may take: it comes only when the app's own `onSession` is through.
const ANSWER_MS_MAX: u64 = 10_000;
/// How long the answer to a stop may take: it comes when the app's own `onStop` is through.
const STOP_ANSWER_MS_MAX: u64 = 2_500;
/// Before the second try of a request that nobody took.
const RETRY_MS: u64 = 1_000;

/// Why an app that nobody reaches does not run.
const NOT_REACHED: &str = "its server does not answer";
/// Wherever it leads to, the user's name goes to nobody but the app's own server.
const ELSEWHERE: &str = "its server leads elsewhere, which is refused";

/// Tells the app to start. Answered tries are not repeated: a second session request makes the SDK begin twice.
///
/// # Errors
/// Why the start came to nothing, in words. That no answer came in time says nothing: the socket tells.
pub(super) async fn start(http: &Client, app: &App, body: &Value) -> Result<(), String> {
    let send = || post(http, app, body, ANSWER_MS_MAX);
    let again = ConstantBuilder::new().with_delay(Duration::from_millis(RETRY_MS)).with_max_times(1);
    let answer = send.retry(again).when(|error| error.is_connect() && !error.is_timeout()).await;
    match answer {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) if answer.status().is_redirection() => Err(ELSEWHERE.to_owned()),
        Ok(answer) => Err(format!("its server answered the start with status {}", answer.status().as_u16())),
        Err(error) if error.is_timeout() && !error.is_connect() => Ok(()),
        Err(error) if error.is_connect() => Err(NOT_REACHED.to_owned()),
        Err(error) => Err(format!("calling its server failed: {}", error.without_url())),
    }
}

/// What came of telling an app to stop.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Its own stop has run, or runs.
    pub heard: bool,
    /// What went wrong, for who writes it.
    pub wrong: Option<(ErrorCode, String)>,
}

/// Tells the app to stop.
pub(super) async fn stop(http: &Client, app: &App, body: &Value) -> Told {
    let told = |heard, code, why: String| Told { heard, wrong: Some((code, why)) };
    match post(http, app, body, STOP_ANSWER_MS_MAX).await {
        Ok(answer) if answer.status().is_success() => Told { heard: true, wrong: None },
        Ok(answer) if answer.status().is_redirection() => told(false, ErrorCode::HttpError, ELSEWHERE.to_owned()),
        // A status of 500 is an `onStop` that failed half-way; any other one is a server that has no webhook.
        Ok(answer) => {
            let why = format!("its server answered the stop with status {}", answer.status().as_u16());
            told(answer.status().is_server_error(), ErrorCode::HttpError, why)
        }
        Err(error) if error.is_connect() => told(false, ErrorCode::AppNotAvailable, NOT_REACHED.to_owned()),
        Err(error) if error.is_timeout() => {
            let why = format!("its server did not answer the stop within {STOP_ANSWER_MS_MAX} ms");
            told(true, ErrorCode::Timeout, why)
        }
        Err(error) => {
            let why = format!("calling its server failed: {}", error.without_url());
            told(true, ErrorCode::AppNotAvailable, why)
        }
    }
}

/// The body of the answer is never read: it may be without end.
async fn post(http: &Client, app: &App, body: &Value, ms_max: u64) -> reqwest::Result<reqwest::Response> {
    let url = format!("{}/webhook", app.public_url.trim_end_matches('/'));
    http.post(url).json(body).timeout(Duration::from_millis(ms_max)).send().await
}
