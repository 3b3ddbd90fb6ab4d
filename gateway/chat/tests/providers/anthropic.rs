//! Anthropic's Messages on the wire.

use chat_models::{
    anthropic::{Anthropic, Options},
    names::NameMap,
    provider::Provider,
};
use serde_json::{Value, json};

use crate::{
    conversation::Said,
    witness::{Item, Seen, Witness, list, text, thirds},
};

pub struct Wire;

impl Witness for Wire {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn provider(&self) -> Box<dyn Provider> {
        Box::new(Anthropic::new(Options { thinking_tokens: Some(2000), ..Options::new("m") }))
    }

    fn tools(&self, body: &Value) -> Vec<String> {
        let tools = body.get("tools").map_or(&[][..], |tools| list(tools));
        tools
            .iter()
            .map(|tool| {
                assert_eq!(tool["input_schema"]["type"], "object");
                text(&tool["name"])
            })
            .collect()
    }

    fn seen(&self, body: &Value) -> Vec<Seen> {
        assert!(body["max_tokens"].as_u64().expect("a number") > 0);
        let messages = list(&body["messages"]);
        assert_eq!(messages[0]["role"], "user");
        messages
            .iter()
            .map(|message| {
                let role = text(&message["role"]);
                let items = list(&message["content"]).iter().map(|block| self::block(&role, block)).collect();
                Seen { role, items }
            })
            .collect()
    }

    fn thought(&self) -> Option<Value> {
        Some(json!({"type": "thinking", "thinking": "well", "signature": "c2lnbmVk"}))
    }

    fn stream(&self, said: &Said, names: &mut NameMap) -> String {
        let mut out = String::new();
        let mut push = |event: Value| {
            out.push_str(&format!("event: {}\ndata: {event}\n\n", text(&event["type"])));
        };
        let input = json!({"input_tokens": said.usage.input - said.usage.cached,
            "cache_read_input_tokens": said.usage.cached, "cache_creation_input_tokens": 0, "output_tokens": 1});
        push(json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
            "model": "m", "content": [], "stop_reason": null, "usage": input}}));
        push(json!({"type": "ping"}));
        let mut blocks = Vec::new();
        if said.thinks {
            blocks.push((
                json!({"type": "thinking", "thinking": "", "signature": ""}),
                vec![
                    json!({"type": "thinking_delta", "thinking": "we"}),
                    json!({"type": "thinking_delta", "thinking": "ll"}),
                    json!({"type": "signature_delta", "signature": "c2lnbmVk"}),
                ],
            ));
        }
        if !said.pieces.is_empty() {
            let deltas = said.pieces.iter().map(|piece| json!({"type": "text_delta", "text": piece}));
            blocks.push((json!({"type": "text", "text": ""}), deltas.collect()));
        }
        for call in &said.calls {
            let block = json!({"type": "tool_use", "id": call.id, "name": names.insert(&call.name), "input": {}});
            let arguments = call.arguments.to_string();
            let deltas =
                thirds(&arguments).into_iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
            blocks.push((block, deltas.collect()));
        }
        for (index, (block, deltas)) in blocks.into_iter().enumerate() {
            push(json!({"type": "content_block_start", "index": index, "content_block": block}));
            for delta in deltas {
                push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            push(json!({"type": "content_block_stop", "index": index}));
        }
        let stop = if said.calls.is_empty() { "end_turn" } else { "tool_use" };
        push(json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null},
            "usage": {"output_tokens": said.usage.output}}));
        push(json!({"type": "message_stop"}));
        out
    }
}

fn block(role: &str, block: &Value) -> Item {
    match (role, text(&block["type"]).as_str()) {
        (_, "text") => Item::Text(text(&block["text"])),
        ("user", "image") => {
            let source = &block["source"];
            assert_eq!(source["type"], "base64");
            Item::Image(text(&source["media_type"]), text(&source["data"]))
        }
        ("user", "tool_result") => Item::Result { id: text(&block["tool_use_id"]), text: text(&block["content"]) },
        ("assistant", "tool_use") => {
            assert!(block["input"].is_object(), "{block}");
            Item::Call { id: text(&block["id"]), name: text(&block["name"]), arguments: block["input"].clone() }
        }
        ("assistant", "thinking") => Item::Thought(block.clone()),
        _ => panic!("no block of {role}: {block}"),
    }
}
