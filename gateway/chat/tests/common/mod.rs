//! The tools and the moment that the sentence tests speak to.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::Arc;

use chat_models::Request;
use gateway_core::vocab::{Message, Phrases, Role, Timestamp, ToolFlags, ToolSpec};
use serde_json::{Value, json};

/// Wednesday 2026-05-13 14:30 at UTC+2.
pub fn now() -> Timestamp {
    let moment: jiff::Timestamp = "2026-05-13T14:30:00+02:00".parse().expect("a moment");
    Timestamp {
        mono_us: 0,
        wall_ms: moment.as_millisecond(),
        offset_s: 7200,
    }
}

pub fn request(text: &str, tools: &Arc<[ToolSpec]>) -> Request {
    Request {
        system: String::new(),
        messages: vec![Message::text(Role::User, text)],
        tools: tools.clone(),
        now: now(),
        language: "en".into(),
        max_tokens: None,
    }
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
    }
}

/// The built-in tools and the ones that glasses offer, with the templates of `templates.toml`.
pub fn tools() -> Arc<[ToolSpec]> {
    let file: toml::Table = toml::from_str(include_str!("../data/templates.toml")).expect("TOML");
    let string = || json!({"type": "string"});
    let level = || json!({"type": "integer", "minimum": 0, "maximum": 100});
    let change = || json!({"type": "string", "enum": ["up", "down"]});
    let schemas: Vec<(&str, Value, &[&str])> = vec![
        ("clock.time", json!({}), &[]),
        ("clock.date", json!({}), &[]),
        (
            "timer.set",
            json!({"seconds": {"type": "integer", "minimum": 1}, "name": string()}),
            &["seconds"],
        ),
        ("timer.list", json!({}), &[]),
        (
            "timer.cancel",
            json!({"name": string(), "all": {"type": "boolean"}}),
            &[],
        ),
        (
            "reminder.set",
            json!({"text": string(), "in_seconds": {"type": "integer", "minimum": 1}, "at": string()}),
            &["text"],
        ),
        ("reminder.list", json!({}), &[]),
        ("reminder.cancel", json!({"text": string()}), &[]),
        ("note.add", json!({"text": string()}), &["text"]),
        ("note.list", json!({}), &[]),
        ("note.search", json!({"query": string()}), &["query"]),
        ("note.delete", json!({"query": string()}), &["query"]),
        (
            "calculator.evaluate",
            json!({"expression": string()}),
            &["expression"],
        ),
        ("device.status", json!({}), &[]),
        (
            "display.brightness",
            json!({"level": level(), "change": change()}),
            &[],
        ),
        (
            "audio.volume",
            json!({"level": level(), "change": change()}),
            &[],
        ),
        ("camera.photo", json!({}), &[]),
        ("help.show", json!({}), &[]),
    ];
    schemas
        .into_iter()
        .map(|(name, properties, required)| {
            let (group, own) = name.split_once('.').expect("a group");
            let templates: Vec<&str> = file[group][own]
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(toml::Value::as_str)
                .collect();
            tool(name, properties, required, &templates)
        })
        .collect()
}

/// Which half of a table a sentence belongs to: FNV-1a of its bytes.
pub fn is_held_out(sentence: &str) -> bool {
    let hash = sentence
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    // The high bits are the well mixed ones.
    (hash >> 40) & 1 == 1
}
