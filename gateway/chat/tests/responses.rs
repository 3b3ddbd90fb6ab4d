//! OpenAI Responses: requests, and answers of servers that omit things. tests/providers covers what it shares with
//! every other provider.

mod common;

use chat_models::{
    names::NameMap,
    provider::Provider,
    responses::{Options, Responses},
};
use common::{request, tool};
use gateway_core::vocab::{FailureKind, Message, ModelEvent, Part, Role, StopReason, ToolCall, ToolResult, Usage};
use serde_json::{Value, json};

fn render(request: &chat_models::Request, options: &Options) -> (Value, NameMap) {
    let rendered = Responses::new(options.clone()).render(request);
    (rendered.body.to_value().expect("JSON"), rendered.names)
}

fn asked() -> chat_models::Request {
    let tools = [tool("timer.set", json!({"seconds": {"type": "integer"}}), &["seconds"], &[])];
    request("Set a timer", &tools.map(std::sync::Arc::new).into())
}

fn answered() -> chat_models::Request {
    let mut request = asked();
    let call = ToolCall { id: "c1".into(), name: "timer.set".into(), arguments: json!({"seconds": 5}) };
    request.messages.extend([
        Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] },
        Message {
            role: Role::Tool,
            parts: vec![Part::ToolResult { call_id: "c1".into(), result: ToolResult::said("Timer set.") }],
        },
    ]);
    request
}

#[test]
fn a_request_is_rendered_as_the_api_has_it() {
    let mut request = answered();
    request.max_tokens = Some(5);
    request.system = Some("Be brief.".into());
    request.messages.push(Message::text(Role::System, "The display is off."));
    let (body, _) = render(&request, &Options::new("m"));
    assert!(body["instructions"].as_str().expect("a text").starts_with("Be brief."));
    assert_eq!(
        body["input"],
        json!([
            {"role": "user", "content": "Set a timer"},
            {"type": "function_call", "call_id": "c1", "name": "timer_set", "arguments": "{\"seconds\":5}"},
            {"type": "function_call_output", "call_id": "c1", "output": "Timer set."},
            {"role": "developer", "content": "The display is off."},
        ])
    );
    assert_eq!(body["tools"][0]["type"], "function");
    assert_eq!(body["tools"][0]["name"], "timer_set");
    assert_eq!(body["tools"][0]["strict"], false);
    // The API's minimum.
    assert_eq!(body["max_output_tokens"], 16);
    assert_eq!((&body["store"], &body["stream"]), (&json!(false), &json!(true)));
    assert_eq!((body.get("include"), body.get("reasoning")), (None, None));
}

#[test]
fn follow_ups_call_one_tool_at_a_time_where_that_is_wanted() {
    let serial = Options { serial_follow_ups: true, reasoning_effort: Some("low".into()), ..Options::new("m") };
    let parallel =
        |request: &chat_models::Request, options: &Options| render(request, options).0["parallel_tool_calls"].clone();
    assert_eq!(parallel(&asked(), &serial), true);
    assert_eq!(parallel(&answered(), &serial), false);
    assert_eq!(parallel(&answered(), &Options::new("m")), true);
    let body = render(&asked(), &serial).0;
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    let none = render(&request("x", &std::sync::Arc::from([])), &serial).0;
    assert_eq!((none.get("tools"), none.get("parallel_tool_calls")), (None, None));
}

fn parse(events: &[Value]) -> Vec<ModelEvent> {
    let provider = Responses::new(Options::new("m"));
    let mut parser = provider.parser(provider.render(&asked()).names);
    let mut out = parser.push(sse(events).as_bytes());
    out.extend(parser.finish());
    out
}

fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn done(stop: StopReason) -> ModelEvent {
    ModelEvent::Done { stop, usage: Usage::default() }
}

fn completed() -> Value {
    json!({"type": "response.completed", "response": {"status": "completed"}})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

#[test]
fn what_was_not_streamed_is_taken_from_what_is_done() {
    let text = |text: &str| ModelEvent::Text(text.into());
    let item = json!({"type": "response.output_item.done", "item": message("Hi")});
    assert_eq!(parse(&[item.clone(), completed()]), [text("Hi"), done(StopReason::End)]);
    let all = json!({"type": "response.completed", "response": {"status": "completed", "output": [message("Hi")]}});
    assert_eq!(parse(std::slice::from_ref(&all)), [text("Hi"), done(StopReason::End)]);
    // Not emitted twice, with or without numbers.
    let delta = json!({"type": "response.output_text.delta", "delta": "Hi"});
    assert_eq!(parse(&[delta, item, all.clone()]), [text("Hi"), done(StopReason::End)]);
    // Ids that change within the stream.
    let delta = json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "a", "delta": "Hi"});
    let mut other = message("Hi");
    other["id"] = "b".into();
    let item = json!({"type": "response.output_item.done", "output_index": 0, "item": other});
    assert_eq!(parse(&[delta, item, all]), [text("Hi"), done(StopReason::End)]);
    // Two messages are two paragraphs.
    let two = json!({"type": "response.completed",
        "response": {"status": "completed", "output": [message("Hi."), message("There.")]}});
    let told: String = parse(&[two])
        .iter()
        .filter_map(|event| if let ModelEvent::Text(text) = event { Some(text.as_str()) } else { None })
        .collect();
    assert_eq!(told, "Hi.\n\nThere.");
}

#[test]
fn documents_of_servers_that_do_not_stream() {
    let provider = Responses::new(Options::new("m"));
    let parse = |document: Value| {
        let mut parser = provider.parser(provider.render(&asked()).names);
        parser.push_document(document.to_string().as_bytes())
    };
    let call = json!({"type": "function_call", "call_id": "c", "name": "timer_set", "arguments": "{\"seconds\":5}"});
    let events = parse(json!({"object": "response", "status": "completed", "output": [message("Well."), call],
        "usage": {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}}));
    let call = ToolCall { id: "c".into(), name: "timer.set".into(), arguments: json!({"seconds": 5}) };
    let usage = Usage { input: 9, cached: 4, output: 2 };
    let expected = [
        ModelEvent::Text("Well.".into()),
        ModelEvent::ToolCall(call),
        ModelEvent::Done { stop: StopReason::ToolCalls, usage },
    ];
    assert_eq!(events, expected);
    assert!(matches!(parse(json!({"hello": 1}))[..], [ModelEvent::Failed { kind: FailureKind::Bug, .. }]));
}

#[test]
fn ends_that_are_none_are_named() {
    let delta = json!({"type": "response.output_text.delta", "delta": "x"});
    let incomplete = |reason: &str| json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": reason}}});
    assert_eq!(parse(&[delta.clone(), incomplete("max_output_tokens")]).last(), Some(&done(StopReason::Length)));
    assert_eq!(parse(&[incomplete("content_filter")]), [done(StopReason::Filtered)]);
    let refusal = json!({"type": "response.refusal.delta", "delta": "I cannot."});
    assert_eq!(parse(&[refusal, completed()]), [ModelEvent::Text("I cannot.".into()), done(StopReason::End)]);
    let failed = json!({"type": "response.failed",
        "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow down"}}});
    let cases = [
        (vec![failed], FailureKind::Limited, "slow down"),
        (vec![json!({"type": "error", "code": "server_error", "message": "oops"})], FailureKind::Transient, "oops"),
        (
            vec![json!({"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}})],
            FailureKind::Bug,
            "bad",
        ),
        (vec![json!({"error": {"code": 401, "message": "who?"}})], FailureKind::Auth, "who?"),
        (vec![delta], FailureKind::Transient, "middle"),
        (
            vec![json!({"type": "response.completed", "response": {"status": "cancelled"}})],
            FailureKind::Transient,
            "gave up",
        ),
    ];
    for (events, kind, words) in cases {
        let events = parse(&events);
        let Some(ModelEvent::Failed { kind: got, message }) = events.last() else {
            panic!("{events:?}");
        };
        assert_eq!(*got, kind, "{message}");
        assert!(message.contains(words), "{message}");
    }
    let many: Vec<Value> = (0..300)
        .map(|at| json!({"type": "response.output_item.added", "output_index": at, "item": {"type": "message"}}))
        .collect();
    assert!(matches!(parse(&many)[..], [ModelEvent::Failed { kind: FailureKind::Bug, .. }]));
}

/// From servers that translate chat completions.
#[test]
fn an_end_without_a_status_completes_no_part_of_a_call() {
    let provider = Responses::new(Options::new("m"));
    let parse = |events: &[Value]| {
        let mut parser = provider.parser(provider.render(&asked()).names);
        parser.push((sse(events) + "data: [DONE]\n\n").as_bytes())
    };
    let item = |kind: &str| {
        json!({"type": kind, "output_index": 0,
            "item": {"type": "function_call", "call_id": "c", "name": "timer_set", "arguments": ""}})
    };
    let piece = |arguments: &str| json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": arguments});
    let begun = item("response.output_item.added");
    let cases = [
        (vec![], "without a word"),
        (vec![begun.clone()], "within a tool call"),
        (vec![begun.clone(), piece("{\"sec")], "within a tool call"),
    ];
    for (events, words) in cases {
        let events = parse(&events);
        let [ModelEvent::Failed { kind: FailureKind::Transient, message }] = &events[..] else {
            panic!("{events:?}");
        };
        assert!(message.contains(words), "{message}");
    }
    // A call is whole with its arguments, or once the server has ended it.
    let arguments_done = json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": ""});
    let cases = [
        (piece("{\"seconds\":5}"), json!({"seconds": 5})),
        (arguments_done, json!({})),
        (item("response.output_item.done"), json!({})),
    ];
    for (event, arguments) in cases {
        let call = ToolCall { id: "c".into(), name: "timer.set".into(), arguments };
        assert_eq!(parse(&[begun.clone(), event]), [ModelEvent::ToolCall(call), done(StopReason::ToolCalls)]);
    }
    let delta = json!({"type": "response.output_text.delta", "delta": "Hi"});
    assert_eq!(parse(&[delta]), [ModelEvent::Text("Hi".into()), done(StopReason::End)]);
}
