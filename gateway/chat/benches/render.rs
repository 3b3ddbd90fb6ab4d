//! Cost of a request before it is sent: from a conversation and many tools to the bytes of the body, for each provider.
//! `first`: an adapter that has seen none of the tools; `other`: a selection of tools not requested before, all of them
//! known; `same`: the list of the last request.
//!
//! `cargo xtask bench render`

use std::{hint::black_box, sync::Arc, time::Instant};

use chat_models::{Request, TOOLS_MAX, Watch, anthropic, chat_completions, gemini, provider::Provider, responses};
use gateway_core::vocab::{Message, Part, Role, Timestamp, ToolCall, ToolResult, ToolSpec};
use serde_json::json;

const ROUNDS: usize = 31;

fn tool(number: usize) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: format!("com.example.app{}.tool.{number}", number / 10),
        description: "Adds a reminder for the user, and says when it will ring.".to_owned(),
        input_schema: json!({"type": "object", "required": ["text"], "additionalProperties": false, "properties": {
            "text": {"type": "string", "description": "What to be reminded of"},
            "time": {"type": "string", "description": "When, as ISO 8601"},
            "kind": {"type": "string", "enum": ["once", "daily", "weekly"]},
            "urgent": {"type": "boolean"}}}),
        ..ToolSpec::default()
    })
}

/// Twenty messages with five tool calls.
fn conversation() -> Vec<Message> {
    let mut messages = Vec::new();
    for round in 0..5 {
        let id = format!("call_{round}");
        let call = ToolCall {
            id: id.clone(),
            name: format!("com.example.app{round}.tool.{}", round * 10),
            arguments: json!({"text": "tea"}),
        };
        messages.extend([
            Message::text(Role::User, "Remind me to make tea, please."),
            Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] },
            Message {
                role: Role::Tool,
                parts: vec![Part::ToolResult { call_id: id, result: ToolResult::said("It rings at five.") }],
            },
            Message::text(Role::Assistant, "I will remind you at five."),
        ]);
    }
    messages.push(Message::text(Role::User, "And what else is there today?"));
    messages
}

fn providers() -> [Box<dyn Provider>; 4] {
    [
        Box::new(chat_completions::ChatCompletions::new(chat_completions::Options::new("chat completions"))),
        Box::new(responses::Responses::new(responses::Options::new("responses"))),
        Box::new(anthropic::Anthropic::new(anthropic::Options::new("anthropic"))),
        Box::new(gemini::Gemini::new(gemini::Options::new("gemini"))),
    ]
}

fn main() {
    let profile = if cfg!(debug_assertions) { "dev" } else { "optimised" };
    println!("{profile} profile; a conversation of 21 messages; medians of {ROUNDS} in microseconds");
    for tools in [0, 20, 200, 1_000] {
        let request = Request {
            system: Some("Answer briefly, for the ear.".into()),
            messages: conversation(),
            tools: (0..tools).map(tool).collect(),
            now: Timestamp::default(),
            zone: None,
            language: "en".into(),
            max_tokens: None,
            scene: Arc::default(),
            watch: Watch::default(),
            pending: None,
        };
        // The same tools in another order; a list repeats only after it has left the cache.
        let others: Vec<Request> = (0..ROUNDS)
            .map(|round| {
                let mut list: Vec<_> = request.tools.iter().cloned().collect();
                let front = list.len().min(TOOLS_MAX);
                list[..front].rotate_left(round % front.max(1));
                Request { tools: list.into(), ..request.clone() }
            })
            .collect();
        let fresh: Vec<_> = (0..ROUNDS).map(|_| providers()).collect();
        for (at, provider) in providers().iter().enumerate() {
            let first = median(fresh.iter().map(|all| time(&*all[at], &request)));
            let other = median(others.iter().map(|request| time(&**provider, request)));
            let same = median((0..=ROUNDS).map(|_| time(&**provider, &request)).skip(1));
            let bytes = provider.render(&request).body.bytes().len();
            println!(
                "  {tools:5} tools  {:18} first {first:7}  other {other:7}  same {same:7}  {bytes:8} bytes",
                provider.model(),
            );
        }
    }
}

fn time(provider: &dyn Provider, request: &Request) -> u128 {
    let start = Instant::now();
    let rendered = black_box(provider.render(black_box(request)));
    let time = start.elapsed().as_micros();
    drop(rendered);
    time
}

fn median(times: impl Iterator<Item = u128>) -> u128 {
    let mut times: Vec<u128> = times.collect();
    times.sort_unstable();
    times[times.len() / 2]
}
