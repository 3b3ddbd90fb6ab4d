//! Responses of apps in both formats, and invalid ones.

use serde_json::json;

use super::*;

fn of(answer: Value) -> ToolResult {
    read(answer.to_string().as_bytes()).unwrap()
}

#[test]
fn replies_of_published_apps() {
    for (reply, said) in [
        (json!("Added milk"), "Added milk"),
        (json!(null), "Done."),
        (json!(""), "Done."),
        (json!(42), "42"),
        (json!(true), "Yes."),
    ] {
        let result = of(json!({"status": "success", "reply": reply}));
        assert_eq!(result.say.as_deref(), Some(said));
        assert!(!result.is_error() && !result.handled_display);
    }
    assert_eq!(of(json!({"status": "success"})).say.as_deref(), Some("Done."));

    let items = json!({"items": ["milk"]});
    let result = of(json!({"status": "success", "reply": items}));
    assert_eq!((result.content, result.data, result.say), (items.to_string(), Some(items), None));
}

#[test]
fn an_app_that_took_over_keeps_the_assistant_silent() {
    let published = of(json!({"status": "success", "reply": "GIVE_APP_CONTROL_OF_TOOL_RESPONSE"}));
    assert!(published.handled_display);
    assert_eq!(published.say, None);
    assert!(!published.content.contains(HANDLED));
    for extensions in ["mentraExtensions", "menpitraExtensions"] {
        let mcp = of(json!({"success": true, "content": "drawn", extensions: {"handledDisplay": true}}));
        assert!(mcp.handled_display);
        assert_eq!((mcp.say, mcp.content.as_str()), (None, "drawn"));
    }
    // Only as the complete reply, not as a part of dictated text.
    assert!(!of(json!({"status": "success", "reply": format!("Noted: {HANDLED}")})).handled_display);
}

#[test]
fn results_of_the_mcp_shape() {
    let result = of(json!({
        "success": true,
        "content": [
            {"type": "text", "text": "Two items."},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource_link", "uri": "file:///a"}
        ],
        "structuredContent": {"count": 2},
        "mentraExtensions": {"suggestedFollowUps": ["Read them", 7, "Clear them"]}
    }));
    assert_eq!(result.say.as_deref(), Some("Two items."));
    assert_eq!(result.data, Some(json!({"count": 2})));
    assert_eq!(result.attachments.len(), 2);
    assert_eq!(result.follow_ups, ["Read them", "Clear them"]);

    let error = |answer: Value| of(answer).error.unwrap();
    let known =
        json!({"success": false, "error": {"code": "RATE_LIMITED", "message": "Slow down.", "retryable": true}});
    assert_eq!((error(known.clone()).code, error(known).retryable), (ErrorCode::RateLimited, true));
    for claimed in ["APP_NOT_AVAILABLE", "CANCELLED", "APPROVAL_DENIED", "APPROVAL_EXPIRED", "TOOL_NOT_FOUND"] {
        let claim = json!({"success": false, "error": {"code": claimed, "message": "Booked.", "retryable": true}});
        assert_eq!(error(claim).code, ErrorCode::ExecutionError, "{claimed}");
    }
    let unknown = json!({"success": false, "error": {"code": "HANDLER_ERROR", "message": "No list."}});
    assert_eq!((error(unknown.clone()).code, error(unknown).retryable), (ErrorCode::ExecutionError, false));
    assert_eq!(error(json!({"success": false})).message, "the app gave no reason");
}

#[test]
fn errors_of_published_apps_are_spoken() {
    let result = of(json!({"status": "error", "message": "The list is full."}));
    assert_eq!(result.error.as_ref().map(|error| error.code), Some(ErrorCode::ExecutionError));
    assert_eq!(result.say.as_deref(), Some("The list is full."));
}

#[test]
fn everything_else_is_an_invalid_response() {
    for body in ["", "null", "[]", "\"ok\"", "{}", "<html>", "{\"status\":1}", "{\"success\":\"yes\"}", "\u{0}\u{1}"] {
        assert!(read(body.as_bytes()).is_err(), "{body}");
    }
    assert!(read(&[0xff; 64]).is_err());
    let deep = "[".repeat(100_000);
    assert!(read(format!("{{\"status\":\"success\",\"reply\":{deep}").as_bytes()).is_err());
}

#[test]
fn messages_of_error_bodies() {
    assert_eq!(message(br#"{"status":"error","message":" boom "}"#).as_deref(), Some("boom"));
    assert_eq!(message(br#"{"success":false,"error":{"message":"bang"}}"#).as_deref(), Some("bang"));
    assert_eq!(message(b"<html>Bad gateway</html>"), None);
    assert_eq!(message(br#"{"message":7}"#), None);
}
