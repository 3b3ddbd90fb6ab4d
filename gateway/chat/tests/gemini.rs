//! Gemini: requests and answers. The chunks follow the API reference ("GenerateContentResponse", "Thought signatures")
//! and the types of `@google/genai`.

mod common;

use std::sync::Arc;

use chat_models::{
    Request,
    gemini::{Flavour, Gemini, Options},
    provider::{Provider, Rendered},
};
use common::{request, tool};
use gateway_core::vocab::{
    ErrorCode, FailureKind, Message, ModelEvent, Part, Role, StopReason, ToolCall, ToolResult, Usage,
};
use serde_json::{Value, json};

fn render(request: &Request, options: &Options) -> Rendered {
    Gemini::new(options.clone()).render(request)
}

fn json(rendered: &Rendered) -> Value {
    rendered.body.to_value().expect("JSON")
}

fn call(id: &str) -> Part {
    Part::ToolCall { call: ToolCall { id: id.into(), name: "timer.set".into(), arguments: json!({"seconds": 5}) } }
}

fn result(id: &str, result: ToolResult) -> Message {
    Message { role: Role::Tool, parts: vec![Part::ToolResult { call_id: id.into(), result }] }
}

fn conversation() -> Request {
    let tools = [
        tool("timer.set", json!({"seconds": {"type": "integer"}, "labels": {"type": "object"}}), &["seconds"], &[]),
        tool("stop", json!({}), &[], &[]),
    ];
    let mut request = request("Two timers", &tools.map(Arc::new).into());
    request.system = Some("Be brief.".into());
    let signed = |data: Value| Part::Thinking { provider: "gemini".into(), data };
    request.messages.extend([
        Message {
            role: Role::Assistant,
            parts: vec![
                signed(json!({"call": "a", "thoughtSignature": "c2ln"})),
                Part::Thinking { provider: "anthropic".into(), data: json!({"type": "thinking"}) },
                call("a"),
                call("b"),
            ],
        },
        Message { role: Role::System, parts: vec![Part::Text { text: "It is dark.".into() }] },
        result("b", ToolResult::failed(ErrorCode::Timeout, "late", true)),
        result("a", ToolResult::said("Timer set.")),
    ]);
    request
}

#[test]
fn a_request_is_rendered_as_the_api_has_it() {
    let options = Options { temperature: Some(0.0), max_tokens: Some(50), ..Options::new("gemini-2.5-flash") };
    let rendered = render(&conversation(), &options);
    assert_eq!(rendered.path, "/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    let body = json(&rendered);
    let function_call = json!({"id": "a", "name": "timer.set", "args": {"seconds": 5}});
    let second = json!({"id": "b", "name": "timer.set", "args": {"seconds": 5}});
    assert_eq!(
        body["contents"],
        json!([
            {"role": "user", "parts": [{"text": "Two timers"}]},
            {"role": "model", "parts": [
                {"functionCall": function_call, "thoughtSignature": "c2ln"},
                {"functionCall": second},
            ]},
            // Immediately after the calls, in their order, whatever was said between.
            {"role": "user", "parts": [
                {"functionResponse": {"id": "a", "name": "timer.set", "response": {"output": "Timer set."}}},
                {"functionResponse": {"id": "b", "name": "timer.set", "response": {"error":
                    {"code": "TIMEOUT", "message": "late", "retryable": true}}}},
                {"text": "[Note] It is dark."},
            ]},
        ])
    );
    assert!(body["systemInstruction"]["parts"][0]["text"].as_str().is_some_and(|text| text.starts_with("Be brief.")));
    assert_eq!(body["generationConfig"], json!({"temperature": 0.0, "maxOutputTokens": 50}));
    assert_eq!(
        body["tools"],
        json!([{"functionDeclarations": [
            {"name": "timer.set", "description": "The tool timer.set.", "parameters": {
                "type": "OBJECT",
                "properties": {
                    "labels": {"type": "STRING", "description": "a JSON object, as text"},
                    "seconds": {"type": "INTEGER"},
                },
                "required": ["seconds"]}},
            {"name": "stop", "description": "The tool stop."},
        ]}])
    );
}

/// Google's guide to thought signatures: calls from elsewhere have a documented value instead.
#[test]
fn calls_that_others_made_are_signed_where_the_model_insists() {
    let mut request = conversation();
    request.messages[1].parts.remove(0);
    let newer = json(&render(&request, &Options::new("gemini-3-pro")));
    let parts = &newer["contents"][1]["parts"];
    assert_eq!(parts[0]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(parts[1].get("thoughtSignature"), None);
    let older = json(&render(&request, &Options::new("gemini-2.5-pro")));
    assert!(!older.to_string().contains("thoughtSignature"));
}

/// Seed material of this project, "Gemini OAuth (Cloud Code)", and gemini-cli's converter.ts: the request inside
/// another object, declarations under both keys.
#[test]
fn the_envelope_for_oauth_bearers() {
    let flavour = Flavour::CloudCode { project: Some("p-1".into()) };
    let rendered = render(&conversation(), &Options { flavour, ..Options::new("gemini-2.5-pro") });
    assert_eq!(rendered.path, "/v1internal:streamGenerateContent?alt=sse");
    let body = json(&rendered);
    assert_eq!((&body["model"], &body["project"]), (&json!("gemini-2.5-pro"), &json!("p-1")));
    assert_eq!(body["user_prompt_id"].as_str().map(str::len), Some(36));
    let tools = &body["request"]["tools"][0];
    assert_eq!(tools["functionDeclarations"], tools["function_declarations"]);
    assert_eq!(tools["functionDeclarations"][0]["name"], "timer.set");
    assert_eq!(body["request"]["contents"].as_array().map(Vec::len), Some(3));
}

fn parse(chunks: &[Value]) -> Vec<ModelEvent> {
    let model = Gemini::new(Options::new("gemini-2.5-pro"));
    let mut parser = model.parser(model.render(&conversation()).names);
    let stream: String = chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect();
    let mut out = parser.push(stream.as_bytes());
    out.extend(parser.finish());
    out
}

fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

fn end(reason: &str) -> Value {
    json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": reason,
            "finishMessage": "Unexpected tool call: print(x())"}],
        "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 90, "candidatesTokenCount": 7,
            "thoughtsTokenCount": 10, "totalTokenCount": 117},
    })
}

fn text_and_calls() -> Vec<Value> {
    vec![
        parts(json!([{"text": "They want two.", "thought": true}])),
        parts(json!([{"text": "Bo"}])),
        parts(json!([{"text": "th."}])),
        parts(json!([
            {"functionCall": {"name": "timer.set", "args": {"seconds": 5, "labels": "{\"a\": 1}"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"id": "f2", "name": "stop"}},
        ])),
        end("STOP"),
    ]
}

fn expected() -> Vec<ModelEvent> {
    let call = |id: &str, name: &str, arguments: Value| {
        ModelEvent::ToolCall(ToolCall { id: id.into(), name: name.into(), arguments })
    };
    vec![
        ModelEvent::Text("Bo".into()),
        ModelEvent::Text("th.".into()),
        ModelEvent::Thinking { provider: "gemini".into(), data: json!({"call": "call_2", "thoughtSignature": "c2ln"}) },
        // What was sent as text is an object again.
        call("call_2", "timer.set", json!({"seconds": 5, "labels": {"a": 1}})),
        call("f2", "stop", json!({})),
        ModelEvent::Done { stop: StopReason::ToolCalls, usage: Usage { input: 100, cached: 90, output: 17 } },
    ]
}

#[test]
fn text_and_signed_calls_come_out_whole() {
    assert_eq!(parse(&text_and_calls()), expected());
    let wrapped: Vec<Value> =
        text_and_calls().into_iter().map(|chunk| json!({"response": chunk, "traceId": "t"})).collect();
    assert_eq!(parse(&wrapped), expected());
}

#[test]
fn a_list_instead_of_a_stream_is_understood() {
    let model = Gemini::new(Options::new("gemini-2.5-pro"));
    let document = Value::from(text_and_calls()).to_string();
    let mut parser = model.parser(model.render(&conversation()).names);
    assert_eq!(parser.push_document(document.as_bytes()), expected());
}

#[test]
fn a_signature_goes_back_on_the_call_that_it_came_with() {
    let events = parse(&text_and_calls());
    let mut request = conversation();
    let parts: Vec<Part> = events
        .into_iter()
        .filter_map(|event| match event {
            ModelEvent::Thinking { provider, data } => Some(Part::Thinking { provider, data }),
            ModelEvent::ToolCall(call) => Some(Part::ToolCall { call }),
            _ => None,
        })
        .collect();
    request.messages = vec![
        Message::text(Role::User, "x"),
        Message { role: Role::Assistant, parts },
        result("call_2", ToolResult::said("1")),
        result("f2", ToolResult::said("2")),
    ];
    let body = json(&render(&request, &Options::new("gemini-3-pro")));
    assert_eq!(body["contents"][1]["parts"][0]["thoughtSignature"], "c2ln");
    assert_eq!(body["contents"][1]["parts"][0]["functionCall"]["args"]["labels"], "{\"a\":1}");
    assert_eq!(body["contents"][1]["parts"][1].get("thoughtSignature"), None);
}

#[test]
fn every_way_to_stop_has_its_reason() {
    let stops = [
        ("STOP", StopReason::End),
        ("MAX_TOKENS", StopReason::Length),
        ("SAFETY", StopReason::Filtered),
        ("RECITATION", StopReason::Filtered),
        ("PROHIBITED_CONTENT", StopReason::Filtered),
        ("MODEL_ARMOR", StopReason::Filtered),
    ];
    for (reason, expected) in stops {
        let events = parse(&[end(reason)]);
        assert!(matches!(events[..], [ModelEvent::Done { stop, .. }] if stop == expected), "{reason}: {events:?}");
    }
    let failures = [
        ("UNEXPECTED_TOOL_CALL", FailureKind::BadCall),
        ("MALFORMED_FUNCTION_CALL", FailureKind::BadCall),
        ("OTHER", FailureKind::Transient),
    ];
    for (reason, expected) in failures {
        let events = parse(&[end(reason)]);
        assert!(matches!(events[..], [ModelEvent::Failed { kind, .. }] if kind == expected), "{reason}: {events:?}");
    }
    // A complete call is run, so that the executor can report that there is no such tool.
    let unknown = parts(json!([{"functionCall": {"name": "gone", "args": {}}}]));
    let events = parse(&[unknown, end("UNEXPECTED_TOOL_CALL")]);
    assert!(matches!(&events[0], ModelEvent::ToolCall(call) if call.name == "gone"), "{events:?}");
}

#[test]
fn questions_and_streams_that_fail_have_their_kind() {
    let cases = [
        (json!({"promptFeedback": {"blockReason": "SAFETY"}}), FailureKind::Refused),
        (json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow"}}), FailureKind::Limited),
        (json!({"error": {"code": 503, "status": "UNAVAILABLE"}}), FailureKind::Transient),
        (parts(json!([{"text": ""}])), FailureKind::Transient),
        (json!("text"), FailureKind::Bug),
    ];
    for (chunk, expected) in cases {
        let events = parse(std::slice::from_ref(&chunk));
        assert!(matches!(events[..], [ModelEvent::Failed { kind, .. }] if kind == expected), "{chunk}: {events:?}");
    }
}
