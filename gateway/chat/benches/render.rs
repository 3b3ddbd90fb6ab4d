//! What a request costs before it leaves: rendering it for each provider, with many tools and a conversation, and
//! writing it as JSON.
//!
//! `cargo xtask bench render`

use std::{hint::black_box, sync::Arc, time::Instant};

use chat_models::{Request, anthropic, chat_completions, gemini, provider::Provider, responses};
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

/// Twenty messages with five calls of tools.
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

fn main() {
    let profile = if cfg!(debug_assertions) { "dev" } else { "optimised" };
    println!("{profile} profile; a conversation of 21 messages; medians of {ROUNDS} in microseconds");
    let providers: [Box<dyn Provider>; 4] = [
        Box::new(chat_completions::ChatCompletions::new(chat_completions::Options::new("chat completions"))),
        Box::new(responses::Responses::new(responses::Options::new("responses"))),
        Box::new(anthropic::Anthropic::new(anthropic::Options::new("anthropic"))),
        Box::new(gemini::Gemini::new(gemini::Options::new("gemini"))),
    ];
    for tools in [0, 20, 200, 1_000] {
        let request = Request {
            system: "Answer briefly, for the ear.".into(),
            messages: conversation(),
            tools: (0..tools).map(tool).collect(),
            now: Timestamp::default(),
            language: "en".into(),
            max_tokens: None,
        };
        for provider in &providers {
            let (mut rendering, mut writing, mut bytes) = (Vec::new(), Vec::new(), 0);
            for _ in 0..ROUNDS {
                let start = Instant::now();
                let rendered = black_box(provider.render(black_box(&request)));
                rendering.push(start.elapsed().as_micros());
                let start = Instant::now();
                bytes = black_box(rendered.body.to_string()).len();
                writing.push(start.elapsed().as_micros());
            }
            rendering.sort_unstable();
            writing.sort_unstable();
            println!(
                "  {tools:5} tools  {:18} render {:7}  write {:7}  {bytes:8} bytes",
                provider.model(),
                rendering[ROUNDS / 2],
                writing[ROUNDS / 2],
            );
        }
    }
}
