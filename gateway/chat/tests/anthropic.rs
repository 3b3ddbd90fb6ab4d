//! Anthropic's Messages: requests and answers. The events follow the API reference's "Streaming messages" and the types
//! of `@anthropic-ai/sdk`.

mod common;

use std::sync::Arc;

use chat_models::{
    Request,
    anthropic::{Anthropic, Flavour, Options},
    provider::{Provider, Rendered},
};
use common::{request, tool};
use gateway_core::vocab::{
    ErrorCode, FailureKind, Message, ModelEvent, Part, Role, StopReason, ToolCall, ToolResult, Usage,
};
use serde_json::{Value, json};

fn render(request: &Request, options: &Options) -> Rendered {
    Anthropic::new(options.clone()).render(request)
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

fn thought(provider: &str) -> Part {
    let data = json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"});
    Part::Thinking { provider: provider.into(), data }
}

fn conversation() -> Request {
    let tools = [tool("timer.set", json!({"seconds": {"type": "integer"}}), &["seconds"], &[])];
    let mut request = request("Two timers", &tools.map(Arc::new).into());
    request.system = Some("Be brief.".into());
    request.messages.extend([
        Message {
            role: Role::Assistant,
            parts: vec![thought("anthropic"), Part::Text { text: "Well.".into() }, call("a"), call("b")],
        },
        result("b", ToolResult::failed(ErrorCode::Timeout, "late", true)),
        result("a", ToolResult::said("Timer set.")),
        Message { role: Role::User, parts: vec![Part::Image { mime: "image/jpeg".into(), data: "/9j/".into() }] },
    ]);
    request
}

#[test]
fn a_request_is_rendered_as_the_api_has_it() {
    let rendered = render(&conversation(), &Options { cache: false, ..Options::new("m") });
    assert_eq!(rendered.path, "/messages");
    assert_eq!(rendered.headers, [("anthropic-version", "2023-06-01".to_owned())]);
    let body = json(&rendered);
    assert_eq!((&body["model"], &body["max_tokens"], &body["stream"]), (&json!("m"), &json!(1024), &json!(true)));
    assert_eq!(body["system"][0], json!({"type": "text", "text": "Be brief."}));
    assert_eq!(body["tools"][0]["name"], "timer_set");
    assert_eq!(body["tools"][0]["input_schema"]["required"], json!(["seconds"]));
    let tool_use = |id: &str| json!({"type": "tool_use", "id": id, "name": "timer_set", "input": {"seconds": 5}});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "Two timers"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "text", "text": "Well."},
                tool_use("a"), tool_use("b"),
            ]},
            // Both results in one message, in the order of the calls, before anything else.
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "Timer set."},
                {"type": "tool_result", "tool_use_id": "b", "is_error": true, "content":
                    "{\"error\":{\"code\":\"TIMEOUT\",\"message\":\"late\",\"retryable\":true}}"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "/9j/"}},
            ]},
        ])
    );
}

#[test]
fn what_stands_still_is_marked_for_the_cache() {
    let body = json(&render(&conversation(), &Options::new("m")));
    let mark = json!({"type": "ephemeral"});
    assert_eq!(body["system"][0]["cache_control"], mark);
    assert_eq!(body["system"][1].get("cache_control"), None);
    assert_eq!(body["messages"][2]["content"][2]["cache_control"], mark);
    assert_eq!(body.to_string().matches("cache_control").count(), 2);
}

#[test]
fn thinking_is_asked_for_only_where_the_api_can_go_on() {
    let options = Options { thinking_tokens: Some(2000), temperature: Some(0.5), ..Options::new("m") };
    let mut request = conversation();
    request.messages.pop();
    let body = json(&render(&request, &options));
    assert_eq!(body["thinking"], json!({"type": "enabled", "budget_tokens": 2000}));
    assert_eq!((&body["max_tokens"], body.get("temperature")), (&json!(3024), None));
    // The thoughts before the calls were another provider's.
    request.messages[1].parts[0] = thought("gemini");
    let body = json(&render(&request, &options));
    assert_eq!((body.get("thinking"), &body["temperature"]), (None, &json!(0.5)));
    assert!(!body["messages"].to_string().contains("thinking"));
}

/// Seed material of this project, "Anthropic OAuth (Claude Code)": the query, system blocks first, a user id.
#[test]
fn the_envelope_for_oauth_bearers() {
    let flavour = Flavour::ClaudeCode {
        beta: "oauth-2025-04-20".into(),
        system: vec!["Required first.".into()],
        user_id: Some("user-1".into()),
    };
    let rendered = render(&conversation(), &Options { flavour, ..Options::new("m") });
    assert_eq!(rendered.path, "/messages?beta=true");
    assert!(rendered.headers.contains(&("anthropic-beta", "oauth-2025-04-20".to_owned())));
    assert_eq!(json(&rendered)["system"][0], json!({"type": "text", "text": "Required first."}));
    assert_eq!(json(&rendered)["system"][1]["text"], "Be brief.");
    assert_eq!(json(&rendered)["metadata"], json!({"user_id": "user-1"}));
}

fn parse(events: &[Value]) -> Vec<ModelEvent> {
    let model = Anthropic::new(Options::new("m"));
    let mut parser = model.parser(model.render(&conversation()).names);
    let stream: String = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("")))
        .collect();
    let mut out = parser.push(stream.as_bytes());
    out.extend(parser.finish());
    out
}

fn start() -> Value {
    json!({"type": "message_start", "message": {"type": "message", "role": "assistant", "content": [], "usage":
        {"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 1}}})
}

fn opened(index: u32, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u32, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn closed(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 17}}),
        json!({"type": "message_stop"}),
    ]
}

#[test]
fn thoughts_text_and_calls_come_out_whole() {
    let mut events = vec![
        start(),
        json!({"type": "ping"}),
        opened(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "two "})),
        delta(0, json!({"type": "thinking_delta", "thinking": "timers"})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        closed(0),
        opened(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "Both."})),
        closed(1),
        opened(2, json!({"type": "tool_use", "id": "toolu_1", "name": "timer_set", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"seconds\""})),
        delta(2, json!({"type": "input_json_delta", "partial_json": ": 5}"})),
        closed(2),
        opened(3, json!({"type": "tool_use", "id": "toolu_2", "name": "timer_set", "input": {}})),
        closed(3),
        opened(4, json!({"type": "to_be_invented"})),
        json!({"type": "to_be_invented"}),
    ];
    events.extend(end("tool_use"));
    let call = |id: &str, arguments: Value| {
        ModelEvent::ToolCall(ToolCall { id: id.into(), name: "timer.set".into(), arguments })
    };
    assert_eq!(
        parse(&events),
        [
            ModelEvent::Thinking {
                provider: "anthropic".into(),
                data: json!({"type": "thinking", "thinking": "two timers", "signature": "c2ln"}),
            },
            ModelEvent::Text("Both.".into()),
            call("toolu_1", json!({"seconds": 5})),
            call("toolu_2", json!({})),
            ModelEvent::Done { stop: StopReason::ToolCalls, usage: Usage { input: 100, cached: 90, output: 17 } },
        ]
    );
}

#[test]
fn every_way_to_stop_has_its_reason() {
    let cases = [
        ("end_turn", StopReason::End),
        ("stop_sequence", StopReason::End),
        ("pause_turn", StopReason::End),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
        ("refusal", StopReason::Filtered),
    ];
    for (reason, expected) in cases {
        let events = parse(&[&[start()][..], &end(reason)].concat());
        assert!(matches!(events[..], [ModelEvent::Done { stop, .. }] if stop == expected), "{reason}: {events:?}");
    }
}

#[test]
fn errors_in_mid_stream_have_their_kind() {
    let cases = [
        ("overloaded_error", FailureKind::Transient),
        ("api_error", FailureKind::Transient),
        ("rate_limit_error", FailureKind::Limited),
        ("authentication_error", FailureKind::Auth),
        ("invalid_request_error", FailureKind::Bug),
    ];
    for (code, expected) in cases {
        let error = json!({"type": "error", "error": {"type": code, "message": "Overloaded"}});
        let events = parse(&[start(), error, json!({"type": "message_stop"})]);
        assert!(matches!(events[..], [ModelEvent::Failed { kind, .. }] if kind == expected), "{code}: {events:?}");
    }
    let cut = parse(&[start(), opened(0, json!({"type": "text", "text": "Half"}))]);
    assert!(matches!(cut[1], ModelEvent::Failed { kind: FailureKind::Transient, .. }), "{cut:?}");
}

#[test]
fn a_whole_document_is_understood() {
    let model = Anthropic::new(Options::new("m"));
    let document = json!({"type": "message", "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 4},
        "content": [
            {"type": "redacted_thinking", "data": "AAAA"},
            {"type": "tool_use", "id": "t", "name": "timer_set", "input": {"seconds": 1}}]});
    let events = model.parser(model.render(&conversation()).names).push_document(document.to_string().as_bytes());
    assert!(matches!(&events[0], ModelEvent::Thinking { data, .. } if data["type"] == "redacted_thinking"));
    assert!(matches!(&events[1], ModelEvent::ToolCall(call) if call.arguments == json!({"seconds": 1})));
    assert!(matches!(events[2], ModelEvent::Done { stop: StopReason::ToolCalls, .. }), "{events:?}");
}
