//! Answers as the providers document them, through the HTTP shell and from a local server: cases that differ from the
//! foreign mock of tests/it/providers. Written from the API references and the SDKs' types; those of compatible servers
//! from their documentation and from reports about them (Google's compatible address, which numbers every call 0 and
//! gives no id; OpenRouter's comments and errors in mid-stream; DeepSeek's and Mistral's own ways to stop; vLLM's
//! Messages, which count at the end and send `[DONE]`; the bare errors of LiteLLM; the events without number, id and
//! status that openai/codex accepts). None was recorded from a service.

mod common;

use std::{sync::Arc, time::Duration};

use chat_models::{
    ChatModel, Request, anthropic, chat_completions, gemini,
    http::{Endpoint, Http},
    provider::Provider,
    responses,
};
use common::{
    request,
    server::{Act, serve, status, streamed},
    tool,
};
use gateway_core::vocab::{FailureKind, ModelEvent, StopReason, ToolCall, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

fn chat() -> Arc<dyn Provider> {
    Arc::new(chat_completions::ChatCompletions::new(chat_completions::Options::new("m")))
}

fn openai() -> Arc<dyn Provider> {
    Arc::new(responses::Responses::new(responses::Options::new("m")))
}

fn claude() -> Arc<dyn Provider> {
    Arc::new(anthropic::Anthropic::new(anthropic::Options::new("m")))
}

fn google() -> Arc<dyn Provider> {
    Arc::new(gemini::Gemini::new(gemini::Options::new("gemini-3")))
}

/// The answer, and its meaning.
type Case = (&'static str, fn() -> Arc<dyn Provider>, Vec<ModelEvent>);

#[expect(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Case> {
    let text = |text: &str| ModelEvent::Text(text.to_owned());
    let thinking = |provider: &str, data: Value| ModelEvent::Thinking { provider: provider.to_owned(), data };
    let numbered = |id: &str, seconds: u32| {
        let arguments = json!({"seconds": seconds});
        ModelEvent::ToolCall(ToolCall { id: id.into(), name: "timer/set".into(), arguments })
    };
    let call = |id: &str| numbered(id, 5);
    let done = |stop, cached, output| ModelEvent::Done { stop, usage: Usage { input: 40, cached, output } };
    let failed = |kind, message: &str| ModelEvent::Failed { kind, message: message.to_owned() };
    let broke_off = |words: &str| failed(FailureKind::Transient, &format!("the provider broke off: {words}"));
    let redacted = json!({"type": "redacted_thinking", "data": "d2hvbGU="});
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "d2hvbGU="});
    let thought = json!({"type": "thinking", "thinking": "Five seconds.", "signature": "d2hvbGU="});
    let signature = json!({"call": "a1b2", "thoughtSignature": "d2hvbGU="});
    vec![
        (
            include_str!("streams/responses_reasoning.sse"),
            openai,
            vec![thinking(responses::PROVIDER, reasoning), call("call_a"), done(StopReason::ToolCalls, 32, 9)],
        ),
        (
            include_str!("streams/responses_failed.sse"),
            openai,
            vec![text("Well"), failed(FailureKind::Transient, "the provider broke off: The server had an error.")],
        ),
        (
            include_str!("streams/anthropic_thinking.sse"),
            claude,
            vec![thinking(anthropic::PROVIDER, thought), call("toolu_a"), done(StopReason::ToolCalls, 32, 9)],
        ),
        (
            include_str!("streams/anthropic_overloaded.sse"),
            claude,
            vec![text("Well"), failed(FailureKind::Transient, "the provider broke off: Overloaded")],
        ),
        (
            include_str!("streams/gemini_signed.sse"),
            google,
            vec![thinking(gemini::PROVIDER, signature), call("a1b2"), done(StopReason::ToolCalls, 32, 9)],
        ),
        (
            include_str!("streams/gemini_blocked.sse"),
            google,
            vec![failed(FailureKind::Refused, "the provider refuses the question: PROHIBITED_CONTENT")],
        ),
        // Compatible servers with differences.
        (
            include_str!("streams/chat_google.sse"),
            chat,
            vec![numbered("call_0", 5), numbered("call_1", 6), done(StopReason::ToolCalls, 0, 9)],
        ),
        (
            include_str!("streams/chat_unnumbered.sse"),
            chat,
            vec![numbered("call_0", 5), numbered("call_1", 6), done(StopReason::ToolCalls, 0, 9)],
        ),
        (
            include_str!("streams/chat_openrouter.sse"),
            chat,
            vec![text("Well"), broke_off("Provider disconnected unexpectedly")],
        ),
        (include_str!("streams/chat_mistral.sse"), chat, vec![text("Well"), done(StopReason::Length, 0, 9)]),
        (
            include_str!("streams/chat_deepseek.sse"),
            chat,
            vec![text("Well"), broke_off("insufficient_system_resource")],
        ),
        (include_str!("streams/chat_thinks_aloud.sse"), chat, vec![text("Well"), done(StopReason::End, 0, 9)]),
        (include_str!("streams/chat_llamacpp.sse"), chat, vec![text("Well"), broke_off("context shift is disabled")]),
        (include_str!("streams/anthropic_vllm.sse"), claude, vec![text("Well"), done(StopReason::End, 0, 9)]),
        (
            include_str!("streams/anthropic_proxy.sse"),
            claude,
            vec![
                text("Well"),
                failed(FailureKind::Limited, "the provider broke off: litellm.RateLimitError: slow down"),
            ],
        ),
        (
            include_str!("streams/anthropic_redacted.sse"),
            claude,
            vec![thinking(anthropic::PROVIDER, redacted), text("Well"), done(StopReason::Filtered, 0, 9)],
        ),
        (
            include_str!("streams/gemini_malformed.sse"),
            google,
            vec![failed(
                FailureKind::BadCall,
                "the model wrote a tool call that makes no sense: Malformed function call: \
                 print(default_api.timer_set(seconds=5))",
            )],
        ),
        (include_str!("streams/gemini_filtered.sse"), google, vec![text("Well"), done(StopReason::Filtered, 0, 9)]),
        (
            include_str!("streams/responses_bare.sse"),
            openai,
            vec![text("Well"), text("\n\n"), text("Now"), done(StopReason::End, 0, 9)],
        ),
        (
            include_str!("streams/responses_refusal.sse"),
            openai,
            vec![text("I "), text("cannot."), done(StopReason::End, 0, 9)],
        ),
        (
            include_str!("streams/responses_incomplete.sse"),
            openai,
            vec![text("Well"), done(StopReason::Filtered, 0, 9)],
        ),
        (include_str!("streams/chat_azure.sse"), chat, vec![text("Well"), done(StopReason::Filtered, 32, 1)]),
        (include_str!("streams/chat_ollama.sse"), chat, vec![call("call_a"), done(StopReason::ToolCalls, 0, 9)]),
    ]
}

fn asked() -> Request {
    request("Five seconds", &[Arc::new(tool("timer/set", json!({"seconds": {"type": "integer"}}), &[], &[]))].into())
}

async fn ask(provider: Arc<dyn Provider>, answer: Vec<Act>) -> (Vec<ModelEvent>, usize) {
    drop(rustls::crypto::ring::default_provider().install_default());
    let server = serve(vec![answer]).await;
    let mut endpoint = Endpoint::new(&server.url);
    endpoint.backoff = Duration::from_millis(1);
    let model = Http::new(endpoint, provider).expect("a model");
    let (sender, mut receiver) = mpsc::channel(64);
    model.stream(asked(), sender, CancellationToken::new()).await;
    let mut events = Vec::new();
    while let Some(event) = receiver.recv().await {
        events.push(event);
    }
    let asked = server.requests.lock().expect("unpoisoned").len();
    (events, asked)
}

#[tokio::test]
async fn documented_answers_are_understood() {
    for (stream, provider, expected) in cases() {
        for size in [3, 10_000] {
            let (events, asked) = ask(provider(), streamed(stream, size)).await;
            assert_eq!((events, asked), (expected.clone(), 1), "{stream}");
        }
    }
}

#[tokio::test]
async fn documented_errors_are_understood() {
    let cases = [
        ("429 Too Many Requests", include_str!("streams/gemini_limited.json"), google(), FailureKind::Limited),
        ("400 Bad Request", include_str!("streams/gemini_key.json"), google(), FailureKind::Auth),
        ("401 Unauthorized", include_str!("streams/anthropic_auth.json"), claude(), FailureKind::Auth),
    ];
    for (line, body, provider, kind) in cases {
        let (events, asked) = ask(provider, status(line, "content-type: application/json\r\n", body)).await;
        let [ModelEvent::Failed { kind: got, message }] = &events[..] else {
            panic!("{events:?}");
        };
        assert_eq!((*got, asked), (kind, 1), "{message}");
    }
}

fn parse(provider: &dyn Provider, bytes: &[u8]) -> Vec<ModelEvent> {
    let mut parser = provider.parser(provider.render(&asked()).names);
    let mut events = parser.push(bytes);
    events.extend(parser.finish());
    events
}

fn ends_once(events: &[ModelEvent]) -> bool {
    let is_last = |event: &ModelEvent| matches!(event, ModelEvent::Done { .. } | ModelEvent::Failed { .. });
    events.last().is_some_and(is_last) && events.iter().filter(|event| is_last(event)).count() == 1
}

#[test]
fn every_prefix_ends_exactly_once() {
    for (stream, provider, whole) in cases() {
        let provider = provider();
        for end in 0..stream.len() {
            let events = parse(&*provider, &stream.as_bytes()[..end]);
            assert!(ends_once(&events), "{end} of {stream}");
            let said = |event: &&ModelEvent| !matches!(event, ModelEvent::Done { .. } | ModelEvent::Failed { .. });
            assert!(events.iter().filter(said).all(|event| whole.contains(event)), "{end} of {stream}: {events:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_mutation_ends_exactly_once(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..6),
        swap in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
    ) {
        for (stream, provider, _) in cases() {
            // Events in another order, then bytes changed, inserted and removed.
            let mut events: Vec<&str> = stream.split_inclusive("\n\n").collect();
            let (one, two) = (swap.0.index(events.len()), swap.1.index(events.len()));
            events.swap(one, two);
            let mut bytes = events.concat().into_bytes();
            for (at, byte, kind) in &changes {
                let at = at.index(bytes.len());
                match kind {
                    0 => bytes[at] = *byte,
                    1 => bytes.insert(at, *byte),
                    _ => drop(bytes.remove(at)),
                }
            }
            prop_assert!(ends_once(&parse(&*provider(), &bytes)));
        }
    }
}

/// OpenAI repeats the whole request in three events of an answer.
#[test]
fn an_echo_of_many_tools_is_no_endless_line() {
    let tools: Vec<Value> =
        (0..1_000).map(|n| json!({"type": "function", "name": n, "x": "x".repeat(1_000)})).collect();
    let created = json!({"type": "response.created", "response": {"status": "in_progress", "tools": tools}});
    let completed = json!({"type": "response.completed", "response": {"status": "completed", "tools": tools}});
    let stream = format!("data: {created}\n\ndata: {completed}\n\n");
    let events = parse(&*openai(), stream.as_bytes());
    assert!(matches!(events[..], [ModelEvent::Done { .. }]), "{events:?}");
}
