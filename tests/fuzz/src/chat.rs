//! What model providers and login servers send.

use std::sync::{Arc, LazyLock};

use chat_models::{
    Request, Tools, anthropic, chat_completions, fuzzing, gemini,
    names::{NAME_CHARS_MAX, NameMap},
    provider::{Parse, Provider},
    responses,
    schema::{DEPTH_MAX, DESCRIPTION_CHARS_MAX, Subset, normalise},
};
use gateway_core::vocab::{Message, ModelEvent, Part, Role, ToolResult, ToolSpec};
use serde_json::{Value, json};

/// Limits of an answer, as `chat_models::dialect` has them.
const TEXT_BYTES_MAX: usize = 256 * 1024;
const CALLS_MAX: usize = 32;
/// A failure's message, with room for the words around a provider's 200 characters.
const MESSAGE_CHARS_MAX: usize = 400;

static TOOLS: LazyLock<Tools> = LazyLock::new(|| {
    let tool = |name: &str| {
        Arc::new(ToolSpec {
            name: name.into(),
            description: format!("The tool {name}."),
            input_schema: json!({
                "type": "object",
                "properties": {"seconds": {"type": "integer"}, "a b": {"type": "string"}},
                "required": ["seconds"],
            }),
            ..ToolSpec::default()
        })
    };
    [tool("timer/set"), tool("note.add")].into()
});

/// OpenAI's Responses.
pub fn responses(bytes: &[u8]) {
    answer(&responses::Responses::new(responses::Options::new("m")), bytes);
}

/// OpenAI's Chat Completions, as many servers speak it.
pub fn chat_completions(bytes: &[u8]) {
    answer(&chat_completions::ChatCompletions::new(chat_completions::Options::new("m")), bytes);
}

/// Anthropic's Messages.
pub fn anthropic(bytes: &[u8]) {
    answer(&anthropic::Anthropic::new(anthropic::Options::new("m")), bytes);
}

/// Google's Gemini.
pub fn gemini(bytes: &[u8]) {
    answer(&gemini::Gemini::new(gemini::Options::new("gemini-3")), bytes);
}

/// The first byte: how many bytes arrive at once; 0: a whole document. The rest is the answer.
fn answer(provider: &dyn Provider, bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let request = Request {
        messages: vec![Message::text(Role::User, "set a timer")],
        tools: TOOLS.clone(),
        ..Request::default()
    };
    let names = provider.render(&request).names;
    if *piece == 0 {
        let mut parser = provider.parser(names);
        let events = parser.push_document(bytes);
        assert!(parser.is_finished());
        return check_events(provider, &request, &events);
    }
    let whole = streamed(provider.parser(names.clone()), [bytes].into_iter());
    let pieces = streamed(provider.parser(names), bytes.chunks(usize::from(*piece)));
    assert_eq!(whole, pieces, "the pieces in which an answer arrives do not matter");
    check_events(provider, &request, &whole);
}

fn streamed<'a>(mut parser: Box<dyn Parse>, pieces: impl Iterator<Item = &'a [u8]>) -> Vec<ModelEvent> {
    let mut events: Vec<ModelEvent> = pieces.flat_map(|piece| parser.push(piece)).collect();
    events.extend(parser.finish());
    assert!(parser.is_finished());
    assert!(parser.push(b"data: {}\n\n").is_empty() && parser.finish().is_empty(), "events after the last one");
    events
}

fn check_events(provider: &dyn Provider, request: &Request, events: &[ModelEvent]) {
    let is_last = |event: &ModelEvent| matches!(event, ModelEvent::Done { .. } | ModelEvent::Failed { .. });
    assert_eq!(events.iter().filter(|event| is_last(event)).count(), 1, "{events:?}");
    assert!(events.last().is_some_and(is_last));
    let (mut said, mut results, mut text_bytes) = (Vec::new(), Vec::new(), 0);
    for event in events {
        match event {
            ModelEvent::Text(text) => {
                text_bytes += text.len();
                said.push(Part::Text { text: text.clone() });
            }
            ModelEvent::Thinking { provider, data } => {
                said.push(Part::Thinking { provider: provider.clone(), data: data.clone() });
            }
            ModelEvent::ToolCall(call) => {
                assert!(call.arguments.is_object());
                let legal = call.id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
                assert!(legal && (1..=40).contains(&call.id.len()), "the id {:?}", call.id);
                let result = Part::ToolResult { call_id: call.id.clone(), result: ToolResult::said("Done.") };
                assert!(!results.contains(&result), "the id {} twice", call.id);
                results.push(result);
                said.push(Part::ToolCall { call: call.clone() });
            }
            ModelEvent::Failed { message, .. } => {
                assert!(message.chars().count() <= MESSAGE_CHARS_MAX, "{message}");
                assert!(!message.contains(char::is_control), "{message:?}");
            }
            ModelEvent::Done { .. } => {}
            other => panic!("no provider sends {other:?}"),
        }
    }
    assert!(text_bytes <= TEXT_BYTES_MAX && results.len() <= CALLS_MAX);
    // What came is sent back with the next request.
    let mut next = request.clone();
    next.messages.push(Message { role: Role::Assistant, parts: said });
    next.messages.push(match results.is_empty() {
        true => Message::text(Role::User, "and now"),
        false => Message { role: Role::Tool, parts: results },
    });
    let rendered = provider.render(&next);
    if let Err(error) = rendered.body.to_value() {
        assert!(error.to_string().contains("recursion limit"), "{error}");
    }
}

/// A tool's schema in each provider's form.
pub fn schema(bytes: &[u8]) {
    let Ok(schema) = serde_json::from_slice::<Value>(bytes) else { return };
    for subset in [Subset::JsonSchema, Subset::Gemini] {
        let (normal, changes) = normalise(&schema, subset);
        assert!(changes.renamed.values().all(|name| name.len() <= NAME_CHARS_MAX + 1), "{:?}", changes.renamed);
        let Some(normal) = normal else { continue };
        check_normal(&normal, 0);
        if let (Some(again), _) = normalise(&normal, subset) {
            check_normal(&again, 0);
        }
    }
    let mut names = NameMap::default();
    let tool = names.insert(schema.as_str().unwrap_or("a"));
    assert!(names.tool(&tool).is_some() && tool.len() <= NAME_CHARS_MAX, "{tool}");
}

fn check_normal(schema: &Value, depth: usize) {
    // Each level of a schema is at most three levels of JSON: `properties`, a name, a schema; `anyOf`, its list.
    assert!(depth <= 3 * (DEPTH_MAX + 2), "{schema}");
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get("description") {
                assert!(text.chars().count() <= 2 * DESCRIPTION_CHARS_MAX, "{text}");
            }
            fields.values().for_each(|field| check_normal(field, depth + 1));
        }
        Value::Array(items) => items.iter().for_each(|item| check_normal(item, depth + 1)),
        _ => {}
    }
}

/// Answers of a login server, and the browser's request to the page that waits for a login.
pub fn oauth(bytes: &[u8]) {
    const SECRET: &str = "hunter2-hunter2";
    let Some((status, body)) = bytes.split_first() else { return };
    for told in fuzzing::oauth(*status, body, SECRET) {
        assert!(!told.contains(char::is_control), "{told:?}");
        assert!(!told.contains(SECRET), "{told}");
        assert!(told.chars().count() <= 600, "{told}");
    }
}
