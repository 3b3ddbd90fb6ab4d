//! Random conversations and random answers.

use std::sync::Arc;

use chat_models::Request;
use gateway_core::vocab::{ErrorCode, Message, ModelEvent, Part, Role, ToolCall, ToolResult, ToolSpec, Usage};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::witness::{Item, joined};

/// Names as mini-apps and MCP servers have them: dots, slashes, umlauts, too long, and ones that collide.
const NAMES: [&str; 9] = [
    "timer.set",
    "timer_set",
    "timer/set",
    "com.example.notes.add",
    "9lives",
    "gr\u{fc}\u{df}e",
    "mcp.a-server-with-a-name.a-tool-with-a-name-that-is-far-too-long-for-any-provider.one",
    "mcp.a-server-with-a-name.a-tool-with-a-name-that-is-far-too-long-for-any-provider.two",
    "x",
];

/// What a witness is to answer, and the parsed answer must come to.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// A thought of the provider comes first.
    pub thinks: bool,
    /// Text, in streamed pieces.
    pub pieces: Vec<String>,
    /// Calls; the provider makes up their ids.
    pub calls: Vec<ToolCall>,
    pub usage: Usage,
}

impl Said {
    pub fn text(&self) -> String {
        self.pieces.concat()
    }
}

/// Content of events: text, thoughts, calls.
pub fn spoken(events: &[ModelEvent]) -> (String, Vec<&Value>, Vec<&ToolCall>) {
    let mut told = String::new();
    let (mut thoughts, mut calls) = (Vec::new(), Vec::new());
    for event in events {
        match event {
            ModelEvent::Text(text) | ModelEvent::Question { text, .. } => told.push_str(text),
            ModelEvent::Thinking { data, .. } => thoughts.push(data),
            ModelEvent::ToolCall(call) => calls.push(call),
            ModelEvent::Done { .. }
            | ModelEvent::Failed { .. }
            | ModelEvent::Chosen(_)
            | ModelEvent::NotUnderstood { .. } => {}
        }
    }
    (told, thoughts, calls)
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned)
}

fn tool(name: &str) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.to_owned(),
        description: format!("The tool {name}."),
        input_schema: json!({
            "type": "object",
            "properties": {"text": {"type": "string"}, "count": {"type": "integer"}, "sure": {"type": "boolean"}},
        }),
        ..ToolSpec::default()
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    (prop::option::of("\\PC{0,8}"), prop::option::of(any::<i32>()), prop::option::of(any::<bool>())).prop_map(
        |(text, count, sure)| {
            let mut map = serde_json::Map::new();
            map.extend(text.map(|text| ("text".to_owned(), json!(text))));
            map.extend(count.map(|count| ("count".to_owned(), json!(count))));
            map.extend(sure.map(|sure| ("sure".to_owned(), json!(sure))));
            Value::Object(map)
        },
    )
}

/// Never blank.
fn words() -> impl Strategy<Value = String> {
    "\\PC{0,8}[a-z\u{e4}\u{1f600}]\\PC{0,8}"
}

fn image() -> impl Strategy<Value = Part> {
    "[A-Za-z0-9]{4,8}".prop_map(|data| Part::Image { mime: "image/jpeg".into(), data })
}

fn result() -> impl Strategy<Value = ToolResult> {
    prop_oneof![
        words().prop_map(ToolResult::said),
        words().prop_map(|text| ToolResult::failed(ErrorCode::ExecutionError, text, false)),
        Just(ToolResult::default()),
        any::<i32>().prop_map(|number| ToolResult { data: Some(json!({"n": number})), ..ToolResult::default() }),
    ]
}

/// A conversation as the agent stores it: the wearer, the assistant, results, the wearer.
pub fn orderly() -> impl Strategy<Value = Vec<Message>> {
    let user =
        prop::collection::vec(prop_oneof![3 => words().prop_map(|text| Part::Text { text }), 1 => image()], 1..3);
    let step = (prop::option::of(words()), prop::collection::vec((name(), arguments(), result()), 1..4));
    let turn = (user, prop::collection::vec(step, 0..3), words());
    prop::collection::vec(turn, 0..4).prop_map(|turns| {
        let mut messages = Vec::new();
        let mut ids = 0;
        for (user, steps, last) in turns {
            messages.push(Message { role: Role::User, parts: user });
            for (text, calls) in steps {
                let mut parts: Vec<Part> = text.map(|text| Part::Text { text }).into_iter().collect();
                let mut results = Vec::new();
                for (name, arguments, result) in calls {
                    // Ids of several providers.
                    let id = match ids % 3 {
                        0 => format!("toolu_{ids}"),
                        1 => format!("function-call:{ids}"),
                        _ => format!("call_{}{ids}", "x".repeat(50)),
                    };
                    ids += 1;
                    parts.push(Part::ToolCall { call: ToolCall { id: id.clone(), name, arguments } });
                    results.push(Part::ToolResult { call_id: id, result });
                }
                messages.push(Message { role: Role::Assistant, parts });
                messages.push(Message { role: Role::Tool, parts: results });
            }
            messages.push(Message::text(Role::Assistant, last));
        }
        messages.push(Message::text(Role::User, "and now?"));
        messages
    })
}

/// What an orderly conversation must become in a request.
pub fn expected(messages: &[Message]) -> Vec<Item> {
    let all = messages.iter().flat_map(|message| joined(message.parts.iter().map(told).collect()));
    all.collect()
}

fn told(part: &Part) -> Item {
    match part {
        Part::Text { text } => Item::Text(text.clone()),
        Part::Image { mime, data } => Item::Image(mime.clone(), data.clone()),
        Part::Thinking { data, .. } => Item::Thought(data.clone()),
        Part::ToolCall { call } => {
            Item::Call { id: String::new(), name: call.name.clone(), arguments: call.arguments.clone() }
        }
        Part::ToolResult { result, .. } => {
            let text = match (&result.error, &result.data) {
                (Some(error), _) => json!({"error": error}).to_string(),
                (None, Some(data)) if result.content.is_empty() => data.to_string(),
                (None, None) if result.content.is_empty() => "done".to_owned(),
                _ => result.content.clone(),
            };
            Item::Result { id: String::new(), text }
        }
    }
}

/// Anything that could be stored.
pub fn any_messages() -> impl Strategy<Value = Vec<Message>> {
    let id = prop::sample::select(vec!["a", "b", "call_1", "call_2", "", "\u{e4}:1"]);
    let blank = prop::sample::select(vec!["", " ", "\n"]).prop_map(str::to_owned);
    let part = prop_oneof![
        prop_oneof![words(), blank].prop_map(|text| Part::Text { text }),
        image(),
        (prop::sample::select(vec!["anthropic", "gemini", "openai.responses", "?"]), arguments())
            .prop_map(|(provider, data)| Part::Thinking { provider: provider.into(), data }),
        (id.clone(), name(), prop_oneof![arguments(), Just(Value::Null)]).prop_map(|(id, name, arguments)| {
            Part::ToolCall { call: ToolCall { id: id.to_owned(), name, arguments } }
        }),
        (id, result()).prop_map(|(id, result)| Part::ToolResult { call_id: id.to_owned(), result }),
    ];
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Assistant, Role::Tool]);
    let message = (role, prop::collection::vec(part, 0..4)).prop_map(|(role, parts)| Message { role, parts });
    prop::collection::vec(message, 0..12)
}

/// A request with these messages and some tools, some of them duplicated.
pub fn any_request(messages: impl Strategy<Value = Vec<Message>>) -> impl Strategy<Value = Request> {
    (messages, prop::collection::vec(name(), 0..9), prop_oneof![Just(None), Just(Some("")), Just(Some("Be brief."))])
        .prop_map(|(messages, tools, system)| Request {
            system: system.map(str::to_owned),
            messages,
            tools: tools.iter().map(|name| tool(name)).collect(),
            max_tokens: Some(100),
            ..Request::default()
        })
}

pub fn any_answer() -> impl Strategy<Value = Said> {
    let call = (name(), arguments());
    (any::<bool>(), prop::collection::vec(words(), 0..4), prop::collection::vec(call, 0..4), (1_u32..1000, 0_u32..1000))
        .prop_map(|(thinks, pieces, calls, (output, cached))| Said {
            thinks,
            pieces,
            calls: (0..)
                .zip(calls)
                .map(|(at, (name, arguments))| ToolCall { id: format!("fresh_{at}"), name, arguments })
                .collect(),
            usage: Usage { input: 1000 + cached, cached, output },
        })
}

/// The request, with every tool that the answer calls.
pub fn offering(mut request: Request, said: &Said) -> Request {
    let called = said.calls.iter().map(|call| tool(&call.name));
    request.tools = request.tools.iter().cloned().chain(called).collect();
    request
}
