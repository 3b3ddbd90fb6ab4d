//! Requests for features that these glasses or this gateway lack, refused in the form that apps expect.

use serde_json::{Value, json};

use crate::apps::wire;

pub(super) const MESSAGES: &str = "apps of this gateway do not write to one another";
const VIDEO: &str = "this gateway carries no video";

/// The refusal where an app expects no specific answer.
pub(super) fn refused(why: &str, wall_ms: i64) -> Value {
    wire::error("NOT_AVAILABLE", why, wall_ms)
}

pub(super) fn dashboard(wall_ms: i64) -> Value {
    wire::error("PERMISSION_DENIED", "the dashboard itself is the gateway's", wall_ms)
}

pub(super) fn light(request: &str) -> Value {
    json!({
        "type": "rgb_led_control_response",
        "requestId": request,
        "success": false,
        "error": "these glasses have no light that apps can use",
    })
}

/// The reason is in both fields that SDKs read.
pub(super) fn video(kind: &str, wall_ms: i64) -> Value {
    let timestamp = wire::time(wall_ms);
    json!({"type": kind, "status": "error", "message": VIDEO, "errorDetails": VIDEO, "timestamp": timestamp})
}

pub(super) fn video_stopped(kind: &str, wall_ms: i64) -> Value {
    json!({"type": kind, "status": "stopped", "timestamp": wire::time(wall_ms)})
}

pub(super) fn no_stream(request: Option<String>) -> Value {
    json!({"type": "stream_status_check_response", "requestId": request, "hasActiveStream": false})
}

pub(super) fn direct_message(message: &str, to: &str, wall_ms: i64) -> Value {
    json!({
        "type": "app_direct_message_response",
        "messageId": message,
        "targetUserId": to,
        "success": false,
        "error": MESSAGES,
        "timestamp": wire::time(wall_ms),
    })
}
