//! Text, calls of tools in every arrangement, errors at every stage, truncation, and random faults: each provider
//! against aimock.

use std::{sync::Arc, time::Duration};

use chat_models::{
    http::{Endpoint, Http},
    provider::Provider,
};
use gateway_core::vocab::{FailureKind, Message, ModelEvent, Part, Role, StopReason, ToolCall, ToolResult};
use serde_json::{Value, json};

use super::{aimock::Mock, all, ask, model, request, user};

/// Statuses, the resulting failure kinds, and the number of requests.
const STATUSES: [(u16, FailureKind, usize); 8] = [
    (400, FailureKind::Bug, 1),
    (401, FailureKind::Auth, 1),
    (403, FailureKind::Auth, 1),
    (404, FailureKind::Bug, 1),
    (429, FailureKind::Limited, 2),
    (500, FailureKind::Transient, 2),
    (503, FailureKind::Transient, 2),
    (529, FailureKind::Transient, 2),
];

fn call(seconds: u32) -> Value {
    json!({"name": "timer_set", "arguments": {"seconds": seconds}})
}

fn answers() -> Value {
    let mut all = vec![
        json!({"match": {"userMessage": "hello"}, "response": {"content": "Good morning, wearer."}, "chunkSize": 4}),
        json!({"match": {"userMessage": "think"}, "response": {"content": "So.", "reasoning": "Hm.", "reasoningSignature": "c2ln"}}),
        json!({"match": {"userMessage": "single", "hasToolResult": false}, "response": {"toolCalls": [call(5)]}, "chunkSize": 3}),
        json!({"match": {"userMessage": "single"}, "response": {"content": "It is set."}}),
        json!({"match": {"userMessage": "parallel", "hasToolResult": false},
            "response": {"content": "Well.", "toolCalls": [call(5), call(9)]}, "chunkSize": 3}),
        json!({"match": {"userMessage": "parallel"}, "response": {"content": "Both are set."}}),
        json!({"match": {"userMessage": "chained", "toolResultContains": "result 2"}, "response": {"content": "One after the other."}}),
        json!({"match": {"userMessage": "chained", "toolResultContains": "result 1"}, "response": {"toolCalls": [call(9)]}}),
        json!({"match": {"userMessage": "chained"}, "response": {"toolCalls": [call(5)]}}),
        // A pause between chunks, so that some output arrives before the cut.
        json!({"match": {"userMessage": "cut text"}, "response": {"content": "This is cut in the middle of it."},
            "chunkSize": 4, "latency": 30, "truncateAfterChunks": 6}),
        json!({"match": {"userMessage": "cut call"}, "response": {"toolCalls": [
            {"name": "timer_set", "arguments": {"seconds": 5, "label": "tea"}}]},
            "chunkSize": 2, "latency": 30, "truncateAfterChunks": 3}),
        json!({"match": {"userMessage": "later", "hasToolResult": false}, "response": {"toolCalls": [call(5)]}}),
        json!({"match": {"userMessage": "later"}, "response": {"error": {"message": "planted"}, "status": 500}}),
    ];
    all.extend(STATUSES.iter().map(|(status, ..)| {
        json!({"match": {"userMessage": format!("status {status}")},
            "response": {"error": {"message": "planted", "type": "planted_error"}, "status": status}})
    }));
    json!({"fixtures": all})
}

/// One provider with the mock, and its id in the journal.
fn against(mock: &Mock, at: usize, id: &str, change: impl FnOnce(&mut Endpoint)) -> (String, Http) {
    let (name, path, provider): (_, _, Arc<dyn Provider>) = all()[at].clone();
    let id = format!("{name}-{}", id.replace(' ', "-"));
    let model = model(&format!("{}{path}", mock.url), provider, |endpoint| {
        endpoint.headers.push(("x-test-id".into(), id.clone()));
        change(endpoint);
    });
    (id, model)
}

/// The result of one request.
#[derive(Debug, Default)]
struct Step {
    text: String,
    calls: Vec<ToolCall>,
    thoughts: usize,
    last: Option<ModelEvent>,
}

impl Step {
    fn stop(&self) -> StopReason {
        match &self.last {
            Some(ModelEvent::Done { stop, .. }) => *stop,
            other => panic!("{other:?}"),
        }
    }

    fn failure(&self) -> (FailureKind, &str) {
        match &self.last {
            Some(ModelEvent::Failed { kind, message }) => (*kind, message),
            other => panic!("{other:?}"),
        }
    }

    fn seconds(&self) -> Vec<&Value> {
        assert!(self.calls.iter().all(|call| call.name == "timer/set"), "{self:?}");
        self.calls.iter().map(|call| &call.arguments["seconds"]).collect()
    }
}

/// Asks, runs the tools, and asks again, as the agent does.
async fn converse(model: &Http, text: &str) -> Vec<Step> {
    const STEPS_MAX: usize = 5;
    let mut messages = vec![user("before"), Message::text(Role::Assistant, "Yes?"), user(text)];
    let mut steps = Vec::new();
    let mut count = 0;
    for _ in 0..STEPS_MAX {
        let mut step = Step::default();
        let mut parts = Vec::new();
        for event in ask(model, request(messages.clone())).await {
            match event {
                ModelEvent::Text(text) => {
                    step.text.push_str(&text);
                    parts.push(Part::Text { text });
                }
                ModelEvent::Thinking { provider, data } => {
                    step.thoughts += 1;
                    parts.push(Part::Thinking { provider, data });
                }
                ModelEvent::ToolCall(call) => {
                    step.calls.push(call.clone());
                    parts.push(Part::ToolCall { call });
                }
                last => step.last = Some(last),
            }
        }
        messages.push(Message { role: Role::Assistant, parts });
        let results = step.calls.iter().map(|call| {
            count += 1;
            Part::ToolResult { call_id: call.id.clone(), result: ToolResult::said(format!("result {count}")) }
        });
        messages.push(Message { role: Role::Tool, parts: results.collect() });
        let goes_on = !step.calls.is_empty();
        steps.push(step);
        if !goes_on {
            break;
        }
    }
    steps
}

#[tokio::test]
async fn text_and_tools_in_every_arrangement() {
    let mock = Mock::start(&answers()).await;
    for at in 0..all().len() {
        let (id, model) = against(&mock, at, "tools", |_| {});
        let steps = converse(&model, "hello").await;
        assert_eq!((steps[0].text.as_str(), steps[0].stop()), ("Good morning, wearer.", StopReason::End), "{id}");

        let steps = converse(&model, "single").await;
        assert_eq!((steps[0].seconds(), steps[0].stop()), (vec![&json!(5)], StopReason::ToolCalls), "{id}");
        assert_eq!((steps[1].text.as_str(), steps.len()), ("It is set.", 2), "{id}");

        let steps = converse(&model, "parallel").await;
        assert_eq!(steps[0].text, "Well.", "{id}");
        assert_eq!(steps[0].seconds(), [&json!(5), &json!(9)], "{id}");
        assert_ne!(steps[0].calls[0].id, steps[0].calls[1].id, "{id}");
        assert_eq!((steps[1].text.as_str(), steps.len()), ("Both are set.", 2), "{id}");
        // The second request as parsed by the mock.
        let journal = mock.journal(&id).await;
        let messages = journal.last().expect("an entry")["body"]["messages"].as_array().expect("messages").clone();
        let of = |role: &str| messages.iter().filter(|message| message["role"] == role).collect::<Vec<_>>();
        let results = of("tool");
        assert_eq!(results.len(), 2, "{id}: {messages:?}");
        let calls: Vec<&Value> =
            of("assistant").iter().filter_map(|message| message.get("tool_calls")?.as_array()).flatten().collect();
        assert_eq!(calls.len(), 2, "{id}: {messages:?}");
        for (call, result) in calls.iter().zip(&results) {
            assert_eq!(call["id"], result["tool_call_id"], "{id}");
            assert_eq!(call["function"]["name"], "timer_set", "{id}");
        }

        let steps = converse(&model, "chained").await;
        assert_eq!(steps.len(), 3, "{id}");
        assert_eq!((steps[0].seconds(), steps[1].seconds()), (vec![&json!(5)], vec![&json!(9)]), "{id}");
        assert_eq!(steps[2].text, "One after the other.", "{id}");

        // Thinking is not spoken; only parts that can be sent back are kept.
        let steps = converse(&model, "think").await;
        assert_eq!(steps[0].text, "So.", "{id}");
        let gives_back = id.starts_with("anthropic") || id.starts_with("responses");
        assert_eq!(steps[0].thoughts, usize::from(gives_back), "{id}");
    }
}

#[tokio::test]
async fn errors_at_every_stage() {
    let mock = Mock::start(&answers()).await;
    for at in 0..all().len() {
        for (status, kind, asked) in STATUSES {
            let (id, model) = against(&mock, at, &format!("status {status}"), |_| {});
            let steps = converse(&model, &format!("status {status}")).await;
            let (got, message) = steps[0].failure();
            assert_eq!(got, kind, "{id}: {message}");
            assert!(message.contains(&status.to_string()) && message.contains("planted"), "{id}: {message}");
            assert_eq!(mock.journal(&id).await.len(), asked, "{id}");
        }
        let (id, model) = against(&mock, at, "later", |_| {});
        let steps = converse(&model, "later").await;
        assert_eq!(steps[0].stop(), StopReason::ToolCalls, "{id}");
        assert_eq!(steps[1].failure().0, FailureKind::Transient, "{id}");

        let (id, model) = against(&mock, at, "cut text", |_| {});
        let steps = converse(&model, "cut text").await;
        assert_eq!(steps[0].failure().0, FailureKind::Transient, "{id}");
        assert!("This is cut in the middle of it.".starts_with(&steps[0].text), "{id}: {steps:?}");
        assert!(!steps[0].text.is_empty(), "{id}: nothing arrived before the cut");
        // An answer that has begun is not requested again.
        assert_eq!(mock.journal(&id).await.len(), 1, "{id}");
        let (id, model) = against(&mock, at, "cut call", |_| {});
        let steps = converse(&model, "cut call").await;
        if !id.starts_with("gemini") {
            // Gemini's calls come in one chunk, after which the mock cuts nothing.
            assert_eq!(steps[0].failure().0, FailureKind::Transient, "{id}");
            assert!(steps[0].calls.is_empty(), "{id}: half a call");
        }
        let (id, model) = against(&mock, at, "unknown", |_| {});
        let steps = converse(&model, "nobody has an answer to this").await;
        assert!(matches!(steps[0].last, Some(ModelEvent::Failed { .. })), "{id}");
    }
}

#[tokio::test]
async fn chaos() {
    let mock = Mock::start(&answers()).await;
    for at in 0..all().len() {
        for (flag, kind, asked) in [
            ("drop", FailureKind::Transient, 2),
            ("disconnect", FailureKind::Transient, 2),
            ("ratelimit", FailureKind::Limited, 2),
            ("malformed", FailureKind::Bug, 1),
        ] {
            let (id, model) = against(&mock, at, flag, |endpoint| {
                endpoint.headers.push((format!("x-aimock-chaos-{flag}"), "1".into()));
            });
            let steps = converse(&model, "hello").await;
            let (got, message) = steps[0].failure();
            assert_eq!(got, kind, "{id}: {message}");
            assert_eq!(mock.journal(&id).await.len(), asked, "{id}");
        }
        let (id, late) = against(&mock, at, "latency", |endpoint| {
            endpoint.headers.push(("x-aimock-chaos-latency".into(), "20000".into()));
            endpoint.first_token_timeout = Duration::from_millis(100);
        });
        let steps = converse(&late, "hello").await;
        let (kind, message) = steps[0].failure();
        assert_eq!((kind, message), (FailureKind::Transient, "the model gave no answer in time"), "{id}");
    }
}
