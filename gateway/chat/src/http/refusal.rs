//! Interprets the status and body of an error response.

use std::time::Duration;

use gateway_core::vocab::FailureKind;
use reqwest::{
    StatusCode,
    header::{HeaderMap, RETRY_AFTER},
};
use serde_json::Value;

use crate::failure::{self, Failure};

/// What an error response means for the turn, and for another try.
pub(crate) struct Refusal {
    pub failure: Failure,
    /// Whether a retry may succeed.
    pub retryable: bool,
    /// How long the server asks to wait.
    pub wait: Option<Duration>,
}

/// Reads an error status with its headers and its body.
pub(crate) fn read(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Refusal {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    // Gemini wraps what it would have streamed in a list.
    let document = document.get(0).unwrap_or(&document);
    let error = document.get("error").unwrap_or(document);
    let kind = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => FailureKind::Auth,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::PAYMENT_REQUIRED => FailureKind::Limited,
        StatusCode::REQUEST_TIMEOUT => FailureKind::Transient,
        _ if status.is_server_error() => FailureKind::Transient,
        _ => failure::kind_of(error).unwrap_or(FailureKind::Bug),
    };
    let words = if error.is_null() { String::new() } else { format!(": {}", failure::words(error)) };
    // An exhausted quota is a 429 too, but waiting does not help.
    let limited = status == StatusCode::TOO_MANY_REQUESTS && !failure::is_used_up(error);
    let timed_out = status == StatusCode::REQUEST_TIMEOUT;
    Refusal {
        failure: (kind, format!("the model's server answered {status}{words}")),
        retryable: limited || timed_out || status.is_server_error(),
        wait: wait_of(headers).or_else(|| retry_info(error)),
    }
}

/// `retry-after-ms` is OpenAI's and Azure's; `retry-after` may be a date, which no provider sends.
fn wait_of(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number(RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// google.rpc.RetryInfo in the details: `{"retryDelay": "3.5s"}`.
fn retry_info(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_wherever_they_stand() {
        let read = |name: &'static str, value: &str, body: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().expect("a value"));
            super::read(StatusCode::TOO_MANY_REQUESTS, &headers, body.as_bytes()).wait
        };
        assert_eq!(read("retry-after", "2", ""), Some(Duration::from_secs(2)));
        assert_eq!(read("retry-after-ms", "250", ""), Some(Duration::from_millis(250)));
        assert_eq!(read("retry-after", "-1", ""), None);
        assert_eq!(read("retry-after", "nan", ""), None);
        let google = r#"[{"error": {"code": 429, "details": [{"retryDelay": "3.5s"}]}}]"#;
        assert_eq!(read("x", "y", google), Some(Duration::from_millis(3500)));
    }
}
