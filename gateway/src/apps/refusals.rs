//! The log of an app for its author: refusals with the request that caused them, and other events, shown by `lorgnette
//! apps logs`.

use gateway_core::vocab::ErrorCode;
use reqwest::Url;
use serde_json::Value;
use tools::apps::log::{EXCERPT_BYTES_MAX, Event, Fault, Latest};

use super::installed::Installed;
use crate::clock;

/// Parts of field names whose values are secret.
const SECRET: [&str; 6] = ["apikey", "token", "secret", "password", "authorization", "credential"];
/// Replaces a secret.
const HIDDEN: &str = "***";
/// Depth to which nested fields are searched; deeper ones are left out.
const DEPTH_MAX: usize = 8;

impl Installed {
    /// Logs a fault of an app; `user`: for whom it ran, if that is known. `request` is shown unchanged.
    pub(super) fn complain(
        &self,
        user: Option<&str>,
        package: &str,
        what: &str,
        code: ErrorCode,
        message: String,
        request: String,
    ) {
        let (wall_ms, user) = (clock::wall_ms(), user.map(str::to_owned));
        let what = what.chars().filter(|c| !c.is_control()).take(40).collect();
        let fault = Fault { wall_ms, user, what, code, message, request, answer: String::new(), times: 1 };
        self.client().log().fault(package, fault);
    }

    /// Logs an event of an app that is not a fault.
    pub(super) fn note(&self, user: &str, package: &str, what: &str, message: String) {
        let event = Event { wall_ms: clock::wall_ms(), user: user.to_owned(), what: what.to_owned(), message };
        self.client().log().event(package, event);
    }

    /// Logs what an app drew or received last.
    pub(super) fn note_latest(&self, user: &str, package: &str, kind: Latest, message: String) {
        let what = match kind {
            Latest::Drawing => "drawing",
            Latest::Transcript => "transcript",
        };
        let event = Event { wall_ms: clock::wall_ms(), user: user.to_owned(), what: what.to_owned(), message };
        self.client().log().latest(package, kind, event);
    }
}

/// A frame of an app without keys and without the sensitive parts of addresses, for display.
pub(super) fn shown(frame: &str) -> String {
    match serde_json::from_str::<Value>(frame) {
        Ok(value) => hide(value, 0).to_string(),
        Err(_) => {
            let lower = frame.to_lowercase();
            if SECRET.iter().any(|word| lower.contains(word)) {
                return format!("({} bytes that are no JSON and may hold a secret)", frame.len());
            }
            tools::reply::cut(frame, EXCERPT_BYTES_MAX)
        }
    }
}

/// The type of a frame.
pub(super) fn kind(frame: &str) -> String {
    let value = serde_json::from_str::<Value>(frame).unwrap_or_default();
    value.get("type").and_then(Value::as_str).unwrap_or("frame").to_owned()
}

fn hide(value: Value, depth: usize) -> Value {
    match value {
        _ if depth > DEPTH_MAX => Value::String("...".to_owned()),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| {
                    let plain = name.to_lowercase().replace(['_', '-'], "");
                    let secret = SECRET.iter().any(|word| plain.contains(word));
                    let value = if secret { HIDDEN.into() } else { hide(value, depth + 1) };
                    (name, value)
                })
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| hide(item, depth + 1)).collect()),
        Value::String(text) => Value::String(address(text)),
        other => other,
    }
}

/// An address without names, passwords and query values, except words to be spoken. In destinations of video the path
/// is hidden as well, since it is a key.
fn address(text: String) -> String {
    let Some((scheme, _)) = text.split_once("://") else { return text };
    let scheme = scheme.to_lowercase();
    let Ok(mut url) = Url::parse(&text) else { return HIDDEN.to_owned() };
    if matches!(scheme.as_str(), "rtmp" | "rtmps" | "srt") {
        return format!("{scheme}://{}/{HIDDEN}", url.host_str().unwrap_or_default());
    }
    if !matches!(scheme.as_str(), "http" | "https" | "ws" | "wss") {
        return text;
    }
    let had_user = !url.username().is_empty() || url.password().is_some();
    let hidden: Vec<(String, String)> = url
        .query_pairs()
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .map(|(name, value)| if name == "text" { (name, value) } else { (name, HIDDEN.to_owned()) })
        .collect();
    if !had_user && hidden.is_empty() {
        return text;
    }
    // Neither can fail for these schemes.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    if !hidden.is_empty() {
        url.query_pairs_mut().extend_pairs(hidden);
    }
    url.to_string()
}

/// What an answer refuses; `None`: it is not a refusal.
pub(super) fn refused(answer: &Value) -> Option<(ErrorCode, String)> {
    let text = |field: &str| answer.get(field).and_then(Value::as_str);
    match text("type") {
        Some("tpa_connection_error") => {
            let code = text("code").unwrap_or_default();
            let kind = match code {
                "PERMISSION_DENIED" | "INVALID_API_KEY" => ErrorCode::PermissionDenied,
                "MALFORMED_MESSAGE" => ErrorCode::InvalidArguments,
                _ => ErrorCode::ExecutionError,
            };
            Some((kind, format!("{code}: {}", text("message").unwrap_or_default())))
        }
        Some("permission_error") => {
            let details = answer.get("details").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let told: Vec<&str> = details.iter().filter_map(|detail| detail.get("message")?.as_str()).collect();
            Some((ErrorCode::PermissionDenied, told.join("; ")))
        }
        Some(_) if answer.get("success") == Some(&Value::Bool(false)) => {
            Some((ErrorCode::ExecutionError, text("error").unwrap_or("it was refused").to_owned()))
        }
        Some(_) if text("status") == Some("error") => {
            let why = text("errorDetails").or_else(|| text("message")).unwrap_or("it was refused");
            Some((ErrorCode::ExecutionError, why.to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_hidden_and_the_rest_is_shown() {
        let frame = json!({
            "type": "photo_request", "apiKey": "k-123", "authToken": "t-456", "size": "small",
            "deep": [{"api_key": "k-123", "Access-Token": ["t-456"], "clientSecret": {"a": 1}}],
            "customWebhookUrl": "https://ann:pw-789@host.example/mine?sig=s-012&text=hello",
            "rtmpUrl": "rtmp://live.example/app/stream-key-345",
            "plain": "http://host.example/a.mp3",
        });
        let shown = shown(&frame.to_string());
        for secret in ["k-123", "t-456", "pw-789", "s-012", "stream-key-345", "clientSecret\":{"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        for kept in ["photo_request", "small", "host.example/mine", "text=hello", "live.example", "a.mp3"] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
    }

    #[test]
    fn what_is_no_json_is_shown_unless_it_may_hold_a_secret() {
        assert_eq!(shown("{oops"), "{oops");
        let told = shown(r#"{"type":"tpa_connection_init","apiKey":"k-123""#);
        assert!(!told.contains("k-123") && told.contains("bytes"), "{told}");
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        assert!(shown(&deep).contains("..."));
        assert_eq!((kind("{oops"), kind(r#"{"type":"ping"}"#)), ("frame".to_owned(), "ping".to_owned()));
    }

    #[test]
    fn every_form_of_a_refusal_is_known() {
        let denied = json!({"type": "permission_error", "details": [{"message": "a"}, {"message": "b"}]});
        assert_eq!(refused(&denied), Some((ErrorCode::PermissionDenied, "a; b".into())));
        let error = json!({"type": "tpa_connection_error", "code": "STREAM_NOT_AVAILABLE", "message": "no"});
        assert_eq!(refused(&error), Some((ErrorCode::ExecutionError, "STREAM_NOT_AVAILABLE: no".into())));
        let led = json!({"type": "rgb_led_control_response", "success": false, "error": "no light"});
        assert_eq!(refused(&led).unwrap().1, "no light");
        let video = json!({"type": "rtmp_stream_status", "status": "error", "errorDetails": "no video"});
        assert_eq!(refused(&video).unwrap().1, "no video");
        for fine in [json!({"type": "pong"}), json!({"type": "audio_play_response", "success": true}), json!(7)] {
            assert_eq!(refused(&fine), None, "{fine}");
        }
    }
}
