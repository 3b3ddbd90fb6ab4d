//! The specification's examples: a capability in JSON, a single tool, an MCP server.

use std::sync::Arc;

use gateway_core::vocab::ToolSpec;
use serde_json::{Value, json};
use tools::capabilities::{Bundle, Function, Origin, compile, definition};

/// Names that mean something in JavaScript or TypeScript.
const AWKWARD: [&str; 26] = [
    "delete",
    "new",
    "constructor",
    "then",
    "__proto__",
    "default",
    "await",
    "get",
    "set",
    "static",
    "readonly",
    "async",
    "type",
    "declare",
    "abstract",
    "of",
    "undefined",
    "arguments",
    "call",
    "params",
    "toString",
    "3d",
    "a b",
    "*/",
    "größe",
    "",
];

fn definition(value: &Value) -> Vec<Function> {
    definition::read(value).expect("a definition").functions()
}

/// The specification's capability in JSON.
pub(super) fn trains() -> Value {
    json!({
        "name": "trainSchedule", "description": "Get train schedule information", "version": "1.0.0",
        "functions": [
            {"name": "getSchedule", "description": "Get all scheduled trains",
                "parameters": {"type": "object", "properties": {
                    "station": {"type": "string", "description": "Filter by station name"},
                    "date": {"type": "string", "format": "date", "description": "Date to check (YYYY-MM-DD)"}}},
                "returns": {"type": "array", "items": {"type": "object", "title": "Trip", "properties": {
                    "id": {"type": "string"}, "hour": {"type": "integer"}, "minute": {"type": "integer"},
                    "destination": {"type": "string"}, "platform": {"type": "string"}}}}},
            {"name": "getTrainDetails", "description": "Get details for a specific train",
                "parameters": {"type": "object", "properties": {"trainId": {"type": "string", "required": true}},
                    "required": ["trainId"]},
                "returns": {"type": "object", "properties": {"id": {"type": "string"}, "operator": {"type": "string"},
                    "stops": {"type": "array"}}}}
        ],
        "config": {"requiresApproval": false, "rateLimit": {"requests": 100, "period": "minute"}}
    })
}

/// The specification's single tool in the form of OpenAI, with the type of its result.
pub(super) fn weather() -> Value {
    json!({"name": "get_weather", "description": "Get current weather for a location",
        "parameters": {"type": "object", "required": ["location"], "properties": {
            "location": {"type": "string", "description": "City name"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}},
        "returns": {"type": "object", "title": "WeatherResult", "properties": {
            "temperature": {"type": "number"}, "unit": {"type": "string"}, "description": {"type": "string"}}}})
}

fn slack() -> Vec<Function> {
    let text = |names: &[&str]| -> Value {
        names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect()
    };
    let object = |title: &str, names: &[&str]| json!({"type": "object", "title": title, "required": names, "properties": text(names)});
    let (channel, message) = (object("Channel", &["id", "name"]), object("Message", &["channel", "text", "ts"]));
    let list = |items: &Value| json!({"type": "array", "items": items});
    let history = json!({"type": "object", "required": ["channel"],
        "properties": {"channel": {"type": "string"}, "limit": {"type": "number"}}});
    let post = json!({"type": "object", "required": ["channel", "text"], "properties": {
        "channel": {"type": "string"}, "text": {"type": "string"},
        "blocks": {"type": "array", "items": {"$ref": "#/$defs/Block"}}},
        "$defs": {"Block": {"type": "object", "required": ["kind"], "properties": {
            "kind": {"enum": ["section", "divider"]}, "inner": {"type": "array", "items": {"$ref": "#/$defs/Block"}}}}}});
    let tool = |name: &str, parameters: Value, returns: Option<Value>| {
        let spec = ToolSpec {
            name: format!("slack.{name}"),
            description: format!("The server's {name} */ with an odd word."),
            input_schema: parameters,
            output_schema: returns,
            ..ToolSpec::default()
        };
        Function { spec: Arc::new(spec), local_name: name.to_owned(), origin: Origin::Mcp("slack".to_owned()) }
    };
    vec![
        tool("slack_list_channels", json!({"type": "object", "properties": {}}), Some(list(&channel))),
        tool("slack_post_message", post, Some(message.clone())),
        tool("slack_get_channel_history", history, Some(list(&message))),
        tool("slack_whoami", json!({"type": "object"}), None),
    ]
}

/// Functions with awkward names and awkward properties: in one module, and each in its own.
fn awkward() -> Vec<Function> {
    let properties: Value = AWKWARD
        .iter()
        .map(|name| ((*name).to_owned(), json!({"type": "string", "description": format!("{name} */ @ts-ignore")})))
        .collect();
    let schema = json!({"type": "object", "properties": properties, "required": ["delete", "*/"]});
    let both = |name: &str| {
        let origins =
            [(Origin::Mcp("odd */ server".to_owned()), format!("odd.{name}")), (Origin::Tool, name.to_owned())];
        origins.map(|(origin, tool)| {
            let spec = ToolSpec {
                name: tool,
                description: name.to_owned(),
                input_schema: schema.clone(),
                output_schema: Some(schema.clone()),
                ..ToolSpec::default()
            };
            Function { spec: Arc::new(spec), local_name: name.to_owned(), origin }
        })
    };
    AWKWARD.iter().flat_map(|name| both(name)).collect()
}

/// A function whose result has descriptions at every level.
fn described() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let book = json!({"type": "object", "title": "Book", "description": "One of them.", "required": ["title"],
        "properties": {"title": text("On its cover.\n*/ @ts-nocheck"), "lent": text("To whom.")}});
    json!({"name": "library", "functions": [{"name": "look", "returns": {"type": "object", "required": ["shelves", "best"],
        "properties": {
            "shelves": {"type": "array", "description": "From top to bottom.", "items": {"type": "object",
                "required": ["books"], "properties": {
                    "books": {"type": "array", "description": "From left to right.", "items": book},
                    "room": {"type": "object", "description": "What is left.", "required": ["cm"],
                        "properties": {"cm": {"type": "number", "description": "In centimetres."}}}}}},
            "best": {"$ref": "#/$defs/Book", "description": "Read most."}},
        "$defs": {"Book": book}}}]})
}

/// All of them.
pub(super) fn bundle() -> Bundle {
    let written = [trains(), weather(), described()].map(|one| definition(&one)).concat();
    compile(&[written, slack(), awkward()].concat())
}
