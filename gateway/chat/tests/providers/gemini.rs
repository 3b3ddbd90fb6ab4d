//! Gemini's `generateContent` on the wire.

use chat_models::{
    gemini::{Gemini, Options},
    names::NameMap,
    provider::Provider,
};
use serde_json::{Value, json};

use crate::{
    conversation::Said,
    witness::{Item, Seen, Witness, list, text},
};

pub struct Wire;

impl Witness for Wire {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn provider(&self) -> Box<dyn Provider> {
        Box::new(Gemini::new(Options::new("gemini-3-flash")))
    }

    fn takes_dots(&self) -> bool {
        true
    }

    fn tools(&self, body: &Value) -> Vec<String> {
        let Some(tools) = body.get("tools") else {
            return Vec::new();
        };
        list(&tools[0]["functionDeclarations"]).iter().map(|tool| text(&tool["name"])).collect()
    }

    fn seen(&self, body: &Value) -> Vec<Seen> {
        let contents = list(&body["contents"]);
        assert_eq!(contents[0]["role"], "user");
        contents.iter().map(seen).collect()
    }

    fn thought(&self) -> Option<Value> {
        Some("c2lnbmVk".into())
    }

    fn stream(&self, said: &Said, names: &mut NameMap) -> String {
        let mut parts: Vec<Value> = said.pieces.iter().map(|piece| json!({"text": piece})).collect();
        parts.extend(said.calls.iter().map(|call| {
            // Not all of its ids are valid elsewhere.
            let id = format!("{}:{}", call.id, call.name.len());
            json!({"functionCall": {"id": id, "name": names.insert(&call.name), "args": call.arguments}})
        }));
        if said.thinks {
            if parts.is_empty() {
                parts.push(json!({"text": ""}));
            }
            parts[0]["thoughtSignature"] = "c2lnbmVk".into();
        }
        let mut out = String::new();
        let mut push = |chunk: Value| out.push_str(&format!("data: {chunk}\r\n\r\n"));
        for part in parts {
            push(json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}],
                "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1}}));
        }
        push(json!({
            "candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": said.usage.input, "cachedContentTokenCount": said.usage.cached,
                "candidatesTokenCount": said.usage.output, "totalTokenCount": 0},
        }));
        out
    }
}

fn seen(content: &Value) -> Seen {
    let role = text(&content["role"]);
    let mut items = Vec::new();
    let mut calls = Vec::new();
    for part in list(&content["parts"]) {
        let kinds = ["text", "inlineData", "functionCall", "functionResponse"];
        let kind = kinds.into_iter().find(|kind| part.get(*kind).is_some());
        let signature =
            part.get("thoughtSignature").filter(|signature| *signature != "skip_thought_signature_validator");
        items.extend(signature.cloned().map(Item::Thought));
        match (role.as_str(), kind) {
            (_, Some("text")) => items.push(Item::Text(text(&part["text"]))),
            ("user", Some("inlineData")) => {
                items.push(Item::Image(text(&part["inlineData"]["mimeType"]), text(&part["inlineData"]["data"])));
            }
            ("user", Some("functionResponse")) => {
                let response = &part["functionResponse"];
                let told = match (&response["response"]["output"], response["response"].get("error")) {
                    (_, Some(error)) => json!({"error": error}).to_string(),
                    (Value::String(text), _) => text.clone(),
                    (output, _) => output.to_string(),
                };
                text(&response["name"]);
                items.push(Item::Result { id: text(&response["id"]), text: told });
            }
            ("model", Some("functionCall")) => {
                let call = &part["functionCall"];
                assert!(call["args"].is_object(), "{call}");
                calls.push(Item::Call {
                    id: text(&call["id"]),
                    name: text(&call["name"]),
                    arguments: call["args"].clone(),
                });
            }
            _ => panic!("no part of {role}: {part}"),
        }
    }
    items.extend(calls);
    Seen { role, items }
}
