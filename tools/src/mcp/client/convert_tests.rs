//! Conversion of annotations to flags and of content blocks to results.

use serde_json::json;

use super::*;
use crate::mcp::config;

fn server(approval: Approval) -> Server {
    let raw = config::RawServer { command: Some("x".into()), approval, ..config::RawServer::default() };
    config::check("files", raw, &|_| None).unwrap().unwrap()
}

fn tool(annotations: Value) -> Tool {
    let json = json!({ "name": "wipe", "description": "Wipes.", "inputSchema": { "type": "object" },
                       "annotations": annotations });
    serde_json::from_value(json).unwrap()
}

#[test]
fn annotations_become_flags() {
    // annotations, approval, [read_only, destructive, idempotent, requires_approval]
    let table = [
        (json!({}), Approval::Destructive, [false, false, false, false]),
        (json!({ "readOnlyHint": true }), Approval::Destructive, [true, false, true, false]),
        (json!({ "destructiveHint": true }), Approval::Destructive, [false, true, false, true]),
        (json!({ "destructiveHint": true, "idempotentHint": true }), Approval::Never, [false, true, true, false]),
        (json!({ "destructiveHint": false }), Approval::Destructive, [false, false, false, false]),
        (json!({ "readOnlyHint": true, "destructiveHint": true }), Approval::Destructive, [true, false, true, false]),
        (json!({}), Approval::Changes, [false, false, false, true]),
        (json!({ "readOnlyHint": true }), Approval::Changes, [true, false, true, false]),
    ];
    for (annotations, approval, wanted) in table {
        let spec = spec(&server(approval), &tool(annotations.clone()), &mut Vec::new());
        let flags = spec.flags;
        let found = [flags.read_only, flags.destructive, flags.idempotent, flags.requires_approval];
        assert_eq!(found, wanted, "{annotations} {approval:?}");
        assert_eq!(spec.name, "files.wipe");
    }
}

#[test]
fn a_tool_without_a_description_has_its_title_or_name() {
    let bare = json!({ "name": "x", "inputSchema": { "type": "object" } });
    let described = |json: Value| {
        spec(&server(Approval::Never), &serde_json::from_value(json).unwrap(), &mut Vec::new()).description
    };
    assert_eq!(described(bare.clone()), "x");
    let mut titled = bare;
    titled["title"] = "Crosses".into();
    assert_eq!(described(titled), "Crosses");
}

fn converted(json: Value) -> ToolResult {
    result(serde_json::from_value(json).unwrap())
}

#[test]
fn texts_are_content_and_the_rest_is_attached() {
    let found = converted(json!({ "content": [
        { "type": "text", "text": "one" },
        { "type": "image", "data": "AAAA", "mimeType": "image/png" },
        { "type": "resource", "resource": { "uri": "test://r", "text": "inside" } },
        { "type": "text", "text": "two" }
    ], "structuredContent": { "n": 1 } }));
    assert_eq!(
        (found.content.as_str(), found.notes.as_slice()),
        ("one\ninside\ntwo", &["(Attached: a picture, a resource.)".to_owned()][..])
    );
    assert_eq!(found.attachments.len(), 2);
    assert_eq!(found.data, Some(json!({ "n": 1 })));
    assert!(!found.content.contains("AAAA") && !found.is_error());
}

#[test]
fn a_tools_own_error_is_a_failure() {
    let found = converted(json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true }));
    let error = found.error.unwrap();
    assert_eq!(
        (error.code, error.message.as_str(), error.retryable),
        (ErrorCode::ExecutionError, "no such file", false)
    );
}

#[test]
fn attachments_beyond_the_limit_are_left_out_and_told() {
    let large = "A".repeat(ATTACHMENTS_BYTES_MAX / 2 + 1);
    let image = json!({ "type": "image", "data": large, "mimeType": "image/png" });
    let found = converted(json!({ "content": [image.clone(), image] }));
    assert_eq!(found.attachments.len(), 1);
    assert!(found.notes[0].contains("1 attachments were too large"));
}
