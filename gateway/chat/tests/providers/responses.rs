//! OpenAI Responses on the wire.

use chat_models::{
    names::NameMap,
    provider::Provider,
    responses::{Options, Responses},
};
use serde_json::{Value, json};

use crate::{
    conversation::Said,
    witness::{Item, Seen, Witness, data_url, json_text, list, text, thirds},
};

pub struct Wire;

impl Witness for Wire {
    fn name(&self) -> &'static str {
        "responses"
    }

    fn provider(&self) -> Box<dyn Provider> {
        Box::new(Responses::new(Options { reasoning_effort: Some("low".into()), ..Options::new("m") }))
    }

    fn may_repeat(&self, one: &Seen, _: &Seen) -> bool {
        // Items have no turns, but the wearer's words are one.
        one.role != "user"
    }

    fn tools(&self, body: &Value) -> Vec<String> {
        let tools = body.get("tools").map_or(&[][..], |tools| list(tools));
        tools
            .iter()
            .map(|tool| {
                assert_eq!((&tool["type"], &tool["strict"]), (&json!("function"), &json!(false)));
                text(&tool["name"])
            })
            .collect()
    }

    fn seen(&self, body: &Value) -> Vec<Seen> {
        assert_eq!(body["store"], false);
        list(&body["input"]).iter().map(seen).collect()
    }

    fn thought(&self) -> Option<Value> {
        Some(json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"}))
    }

    fn stream(&self, said: &Said, names: &mut NameMap) -> String {
        let mut out = String::new();
        let mut number = 0;
        let mut push = |kind: &str, mut event: Value| {
            event["type"] = kind.into();
            event["sequence_number"] = number.into();
            number += 1;
            out.push_str(&format!("event: {kind}\ndata: {event}\n\n"));
        };
        let mut output = Vec::new();
        push("response.created", json!({"response": {"id": "resp_1", "status": "in_progress", "output": []}}));
        if said.thinks {
            let mut item = json!({"type": "reasoning", "id": "rs_1", "summary": [], "status": null});
            push("response.output_item.added", json!({"output_index": 0, "item": item}));
            item["encrypted_content"] = "c2VjcmV0".into();
            push("response.output_item.done", json!({"output_index": 0, "item": item}));
            output.push(item);
        }
        if !said.pieces.is_empty() {
            let at = output.len();
            let item = |content: Value, status: &str| json!({"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content});
            push("response.output_item.added", json!({"output_index": at, "item": item(json!([]), "in_progress")}));
            let place = json!({"output_index": at, "content_index": 0, "item_id": "msg_1"});
            let with = |key: &str, value: Value| {
                let mut event = place.clone();
                event[key] = value;
                event
            };
            push(
                "response.content_part.added",
                with("part", json!({"type": "output_text", "text": "", "annotations": []})),
            );
            for piece in &said.pieces {
                push("response.output_text.delta", with("delta", piece.as_str().into()));
            }
            push("response.output_text.done", with("text", said.text().into()));
            let content = json!([{"type": "output_text", "text": said.text(), "annotations": []}]);
            push("response.content_part.done", with("part", content[0].clone()));
            push("response.output_item.done", json!({"output_index": at, "item": item(content.clone(), "completed")}));
            output.push(item(content, "completed"));
        }
        for call in &said.calls {
            let at = output.len();
            let id = format!("fc_{at}");
            let item = |arguments: &str, status: &str| {
                json!({"type": "function_call", "id": id, "call_id": call.id, "status": status,
                "name": names.clone().insert(&call.name), "arguments": arguments})
            };
            let arguments = call.arguments.to_string();
            push("response.output_item.added", json!({"output_index": at, "item": item("", "in_progress")}));
            for piece in thirds(&arguments) {
                push(
                    "response.function_call_arguments.delta",
                    json!({"output_index": at, "item_id": id, "delta": piece}),
                );
            }
            push(
                "response.function_call_arguments.done",
                json!({"output_index": at, "item_id": id, "arguments": arguments}),
            );
            push("response.output_item.done", json!({"output_index": at, "item": item(&arguments, "completed")}));
            output.push(item(&arguments, "completed"));
        }
        let usage = json!({"input_tokens": said.usage.input, "output_tokens": said.usage.output, "total_tokens": 0,
            "input_tokens_details": {"cached_tokens": said.usage.cached}});
        push(
            "response.completed",
            json!({"response": {"id": "resp_1", "status": "completed", "output": output, "usage": usage, "error": null, "incomplete_details": null}}),
        );
        out
    }
}

fn seen(item: &Value) -> Seen {
    let (role, item) = match item.get("type").and_then(Value::as_str) {
        Some("function_call") => (
            "call",
            Item::Call {
                id: text(&item["call_id"]),
                name: text(&item["name"]),
                arguments: json_text(&item["arguments"]),
            },
        ),
        Some("function_call_output") => {
            ("result", Item::Result { id: text(&item["call_id"]), text: text(&item["output"]) })
        }
        Some("reasoning") => ("reasoning", Item::Thought(item.clone())),
        None => {
            let role = text(&item["role"]);
            assert!(["user", "assistant", "developer"].contains(&role.as_str()), "{item}");
            let items = match &item["content"] {
                Value::String(text) => vec![Item::Text(text.clone())],
                parts => list(parts).iter().map(part).collect(),
            };
            return Seen { role, items };
        }
        Some(other) => panic!("no item: {other}"),
    };
    Seen { role: role.to_owned(), items: vec![item] }
}

fn part(part: &Value) -> Item {
    match text(&part["type"]).as_str() {
        "input_text" => Item::Text(text(&part["text"])),
        "input_image" => {
            assert_eq!(part["detail"], "auto");
            data_url(&part["image_url"])
        }
        other => panic!("no part: {other}"),
    }
}
