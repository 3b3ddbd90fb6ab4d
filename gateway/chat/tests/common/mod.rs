//! A request and a tool for the tests.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod server;

use std::sync::Arc;

use chat_models::Request;
use gateway_core::vocab::{Message, Phrases, Role, Timestamp, ToolFlags, ToolSpec};
use serde_json::{Value, json};

/// Wednesday 2026-05-13 14:30 at UTC+2.
pub fn now() -> Timestamp {
    let moment: jiff::Timestamp = "2026-05-13T14:30:00+02:00".parse().expect("a moment");
    Timestamp { mono_us: 0, wall_ms: moment.as_millisecond(), offset_s: 7200 }
}

pub fn request(text: &str, tools: &Arc<[Arc<ToolSpec>]>) -> Request {
    Request { messages: vec![Message::text(Role::User, text)], tools: tools.clone(), now: now(), ..Request::default() }
}

pub fn tool(name: &str, properties: Value, required: &[&str], templates: &[&str]) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: format!("The tool {name}."),
        input_schema: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
        phrases: vec![Phrases {
            language: "en".into(),
            templates: templates.iter().map(|text| (*text).to_owned()).collect(),
        }],
        reply: None,
        guidance: None,
        flags: ToolFlags::default(),
        timeout_ms: None,
        ..ToolSpec::default()
    }
}
