//! `POST {publicUrl}/webhook`: start and stop requests to an app's server.

use std::time::Duration;

use backon::{ConstantBuilder, Retryable as _};
use gateway_core::vocab::ErrorCode;
use reqwest::Client;
use serde_json::Value;
use tools::apps::manifest::App;

/// How long an answer may take, in milliseconds: it arrives after the app's own `onSession` has finished.
const ANSWER_MS_MAX: u64 = 10_000;
/// How long the answer to a stop may take, in milliseconds: it arrives after the app's own `onStop` has finished.
const STOP_ANSWER_MS_MAX: u64 = 2_500;
/// Delay before the second attempt of a request that could not be delivered, in milliseconds.
const RETRY_MS: u64 = 1_000;

/// Why an app does not run whose server is unreachable.
const NOT_REACHED: &str = "its server does not answer";
/// Redirects are not followed: the user's name is sent to the app's own server only.
const ELSEWHERE: &str = "its server leads elsewhere, which is refused";

/// Requests the start of the app. Answered attempts are not repeated: a second session request makes the SDK start
/// twice.
///
/// # Errors
/// Why the start failed, as text. A timeout is no failure: the socket shows whether the app runs.
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

/// The result of a stop request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Told {
    /// Its stop handler has run or is running.
    pub heard: bool,
    /// What went wrong, for the app's author.
    pub wrong: Option<(ErrorCode, String)>,
}

/// Requests the stop of the app.
pub(super) async fn stop(http: &Client, app: &App, body: &Value) -> Told {
    let told = |heard, code, why: String| Told { heard, wrong: Some((code, why)) };
    match post(http, app, body, STOP_ANSWER_MS_MAX).await {
        Ok(answer) if answer.status().is_success() => Told { heard: true, wrong: None },
        Ok(answer) if answer.status().is_redirection() => told(false, ErrorCode::HttpError, ELSEWHERE.to_owned()),
        // A status of 500 is a failed `onStop`; any other error is from a server without a webhook.
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

/// The body of the answer is never read: it may be endless.
async fn post(http: &Client, app: &App, body: &Value, ms_max: u64) -> reqwest::Result<reqwest::Response> {
    let url = format!("{}/webhook", app.public_url.trim_end_matches('/'));
    http.post(url).json(body).timeout(Duration::from_millis(ms_max)).send().await
}
