//! Chat completions on the wire.

use chat_models::{
    chat_completions::{ChatCompletions, Options},
    names::NameMap,
    provider::Provider,
};
use serde_json::{Value, json};

use crate::{
    conversation::Said,
    witness::{Item, Seen, Witness, data_url, json_text, list, text, thirds},
};

pub struct Wire;

impl Witness for Wire {
    fn name(&self) -> &'static str {
        "chat_completions"
    }

    fn provider(&self) -> Box<dyn Provider> {
        Box::new(ChatCompletions::new(Options::new("m")))
    }

    fn may_repeat(&self, one: &Seen, _: &Seen) -> bool {
        // One message for each result.
        one.role == "tool"
    }

    fn tools(&self, body: &Value) -> Vec<String> {
        body.get("tools")
            .map_or(&[][..], |tools| list(tools))
            .iter()
            .map(|tool| text(&tool["function"]["name"]))
            .collect()
    }

    fn seen(&self, body: &Value) -> Vec<Seen> {
        let messages = list(&body["messages"]);
        assert_eq!(messages[0]["role"], "system");
        messages[1..].iter().map(seen).collect()
    }

    fn stream(&self, said: &Said, names: &mut NameMap) -> String {
        let mut out = String::new();
        let mut push = |delta: Value, stop: Value| {
            let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]});
            out.push_str(&format!("data: {chunk}\n\n"));
        };
        push(json!({"role": "assistant", "content": ""}), Value::Null);
        for piece in &said.pieces {
            push(json!({"content": piece}), Value::Null);
        }
        for (index, call) in said.calls.iter().enumerate() {
            let function = json!({"name": names.insert(&call.name), "arguments": ""});
            push(
                json!({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]}),
                Value::Null,
            );
            for piece in thirds(&call.arguments.to_string()) {
                push(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), Value::Null);
            }
        }
        push(json!({}), if said.calls.is_empty() { "stop".into() } else { "tool_calls".into() });
        let usage = json!({"prompt_tokens": said.usage.input, "completion_tokens": said.usage.output,
            "total_tokens": 0, "prompt_tokens_details": {"cached_tokens": said.usage.cached}});
        out.push_str(&format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [], "usage": usage})));
        out
    }
}

fn seen(message: &Value) -> Seen {
    let role = text(&message["role"]);
    let content = &message["content"];
    let mut items = match (role.as_str(), content) {
        ("tool", content) => vec![Item::Result { id: text(&message["tool_call_id"]), text: text(content) }],
        ("assistant", Value::Null) => Vec::new(),
        ("user", Value::Array(parts)) => parts.iter().map(part).collect(),
        ("user" | "assistant" | "system", Value::String(text)) => vec![Item::Text(text.clone())],
        _ => panic!("no message: {message}"),
    };
    if let Some(calls) = message.get("tool_calls") {
        assert_eq!(role, "assistant");
        assert!(!list(calls).is_empty());
        items.extend(list(calls).iter().map(|call| {
            assert_eq!(call["type"], "function");
            let function = &call["function"];
            Item::Call {
                id: text(&call["id"]),
                name: text(&function["name"]),
                arguments: json_text(&function["arguments"]),
            }
        }));
    }
    Seen { role, items }
}

fn part(part: &Value) -> Item {
    match text(&part["type"]).as_str() {
        "text" => Item::Text(text(&part["text"])),
        "image_url" => data_url(&part["image_url"]["url"]),
        other => panic!("no part: {other}"),
    }
}
