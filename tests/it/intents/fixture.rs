//! The tools and the time that the sentence tests use.

use std::sync::Arc;

use chat_models::Request;
use gateway_core::vocab::{Message, Phrases, Role, Timestamp, ToolFlags, ToolSpec};
use serde_json::{Value, json};
use tools::{inspection::Inspection, permissions::ConfiguredClients, registry::Registry, secret::Secrets};

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

/// The built-in tools and those of the simulated glasses, as registered in the gateway.
pub fn tools() -> Arc<[Arc<ToolSpec>]> {
    let given = tools::inspection::tools(&Inspection::default());
    let registry = Registry::with_built_ins_and(given, ConfiguredClients::new(), Secrets::default());
    let built_in = registry.expect("the built-in tools").snapshot("wearer", None).specs.clone();
    let offered = firmware_sim::tools::offers().into_iter().map(|offer| {
        let offer = tools::device::Offer {
            name: offer.name.to_owned(),
            description: offer.description.to_owned(),
            schema_json: offer.schema.to_owned(),
            phrases_json: offer.phrases.to_owned(),
            reply: offer.reply_template.to_owned(),
            ..tools::device::Offer::default()
        };
        tools::device::spec(offer).expect("the simulated glasses offer sound tools").0
    });
    built_in.iter().cloned().chain(offered.map(Arc::new)).collect()
}

/// Which half of a table a sentence belongs to: FNV-1a of its bytes.
pub fn is_held_out(sentence: &str) -> bool {
    let hash = sentence
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // The high bits are better mixed.
    (hash >> 40) & 1 == 1
}
