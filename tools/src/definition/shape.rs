//! The forms of a definition, and the location of its parts in each.

use gateway_core::vocab::ToolFlags;
use serde_json::{Map, Value, json};

use super::{
    DefinitionError, Hints, Report,
    fields::{At, Fields},
};
use crate::limits::PROPERTIES_MAX;

/// Why a group of functions is refused: as one tool it would have no parameters.
const SEVERAL: &str = "this defines several functions, not one tool; give each function as a tool of its own, with its name and parameters";

/// The parts of a definition.
pub(super) struct Parts<'a> {
    pub(super) name: String,
    pub(super) name_at: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) input_schema: Value,
    pub(super) input_at: String,
    pub(super) output_schema: Option<(Value, String)>,
    pub(super) flags: ToolFlags,
    /// Whether it has the form of published mini-apps, which expect to run when a tool is called.
    pub(super) published: bool,
    /// Places where extensions may be, in order of precedence.
    pub(super) places: Vec<Fields<'a>>,
}

/// The tool's name in the definition, for error messages.
pub(super) fn name_of(value: &Value) -> Option<&str> {
    let function = value.get("function").filter(|inner| inner.is_object()).unwrap_or(value);
    ["name", "id"].into_iter().find_map(|key| function.get(key)?.as_str())
}

/// Finds the parts of a definition of any form.
pub(super) fn take_apart<'a>(tool: &str, value: &'a Value, report: &mut Report) -> Result<Parts<'a>, DefinitionError> {
    let mut outer = Fields::new(tool, "", value)?;
    let kind = outer.take("type");
    if let Some(kind) = &kind
        && kind.value.as_str() != Some("function")
    {
        return Err(kind.error("only tools of type \"function\" are known"));
    }
    let function = outer.object("function")?;
    let mut whole = Vec::new();
    let mut fields = match function {
        Some(inner) => {
            whole.push(outer);
            inner
        }
        None => outer,
    };
    for place in whole.iter_mut().chain([&mut fields]) {
        if let Some(several) = place.take("functions") {
            return Err(several.error(SEVERAL));
        }
    }
    let (name, published) = match (fields.take("name"), fields.take("id")) {
        // Published apps name their tools by id, and some have a display name in addition.
        (Some(name), Some(id)) if value.get("inputSchema").is_none() => {
            report.note(name.pointer, "names for people are not kept");
            (id, true)
        }
        (None, Some(id)) => (id, true),
        (Some(name), _) => (name, false),
        (None, None) => {
            let reason = "a tool needs a name".to_owned();
            return Err(DefinitionError { tool: tool.to_owned(), pointer: "/name".to_owned(), reason });
        }
    };
    let annotations = annotations(&mut fields)?;
    let (input_schema, input_at) = input(&mut fields, report)?;
    let output = match fields.take("outputSchema") {
        Some(output) => Some(output),
        None => fields.take("returns"),
    };
    if fields.flag("strict")?.is_some() {
        report.note("/strict", "arguments are always checked strictly");
    }
    let title = match fields.text("title")? {
        Some(title) => Some(title),
        None => annotations.title,
    };
    if annotations.open_world {
        report.note("/annotations/openWorldHint", "is not kept");
    }
    let mut parts = Parts {
        name: name.text()?.trim().to_owned(),
        name_at: name.pointer,
        title,
        description: fields.text("description")?,
        input_schema,
        input_at,
        output_schema: output.map(|at| (at.value.clone(), at.pointer)),
        flags: annotations.flags,
        published,
        places: Vec::new(),
    };
    for place in ["mentraExtensions", "menpitraExtensions", "config"] {
        parts.places.extend(fields.object(place)?);
    }
    if let Some(mut meta) = fields.object("_meta")? {
        // Other fields there are between a server and its clients.
        parts.places.extend(meta.object("mentraExtensions")?);
    }
    // Icons, and how a server runs its tools, are irrelevant to its callers.
    for silent in ["icons", "execution"] {
        drop(fields.take(silent));
    }
    parts.places.push(fields);
    parts.places.extend(whole);
    Ok(parts)
}

struct Annotations {
    title: Option<String>,
    flags: ToolFlags,
    open_world: bool,
}

/// MCP's hints. An absent hint stays absent: the protocol's own defaults would make every tool destructive.
fn annotations(fields: &mut Fields<'_>) -> Result<Annotations, DefinitionError> {
    let mut found = Annotations { title: None, flags: Hints::default().flags(), open_world: false };
    if let Some(mut hints) = fields.object("annotations")? {
        let read_only = hints.flag("readOnlyHint")?.unwrap_or(false);
        let idempotent = hints.flag("idempotentHint")?.unwrap_or(false);
        // The hint is only meaningful for tools that change something.
        let destructive = hints.flag("destructiveHint")?.unwrap_or(false) && !read_only;
        found.flags = Hints { read_only, destructive, idempotent, slow: false }.flags();
        found.title = hints.text("title")?;
        found.open_world = hints.flag("openWorldHint")?.is_some();
    }
    Ok(found)
}

/// The input schema and its pointer.
fn input(fields: &mut Fields<'_>, report: &mut Report) -> Result<(Value, String), DefinitionError> {
    if let Some(given) = fields.take("inputSchema") {
        return Ok((as_object(&given, report)?, given.pointer));
    }
    let Some(given) = fields.take("parameters") else {
        let nothing = json!({"type": "object", "properties": {}, "additionalProperties": false});
        return Ok((nothing, "/inputSchema".to_owned()));
    };
    // In a schema, `type` is a text; in a map of parameters it is a parameter.
    let is_schema = given.value.get("type").is_some_and(Value::is_string)
        || given.value.get("properties").is_some_and(|all| {
            all.as_object().is_some_and(|all| !all.contains_key("type") || all.values().all(Value::is_object))
        });
    let schema = if is_schema { as_object(&given, report)? } else { from_map(&given, report)? };
    Ok((schema, given.pointer))
}

/// Adds the type to a schema if it is implied.
fn as_object(given: &At<'_>, report: &mut Report) -> Result<Value, DefinitionError> {
    let mut schema = given.value.clone();
    let Some(map) = schema.as_object_mut() else {
        return Err(given.error("must be an object"));
    };
    if !map.contains_key("type") {
        report.note(&given.pointer, "has no type; \"object\" was added");
        map.insert("type".to_owned(), "object".into());
    }
    map.retain(|key, value| !(value.is_null() && (key == "required" || key == "properties")));
    Ok(schema)
}

/// A map of parameters, each `{type, description, required, enum, default}`, as a schema.
fn from_map(given: &At<'_>, report: &mut Report) -> Result<Value, DefinitionError> {
    let entries = given.entries()?;
    if entries.len() > PROPERTIES_MAX {
        return Err(given.error(format!("{} parameters; at most {PROPERTIES_MAX} are accepted", entries.len())));
    }
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, at) in entries {
        let mut parameter = at.object()?;
        let mut property = Map::new();
        if let Some(kind) = parameter.take("type") {
            match kind.value.as_str() {
                Some("string" | "number" | "integer" | "boolean" | "array" | "object") => {
                    property.insert("type".to_owned(), kind.value.clone());
                }
                _ => report.note(&kind.pointer, "is no type of JSON Schema; any value is accepted"),
            }
        }
        for key in ["description", "default", "items", "properties", "format", "minimum", "maximum", "examples"] {
            if let Some(kept) = parameter.take(key) {
                property.insert(key.to_owned(), kept.value.clone());
            }
        }
        if let Some(choices) = parameter.take("enum") {
            if choices.value.as_array().is_some_and(|list| !list.is_empty()) {
                property.insert("enum".to_owned(), choices.value.clone());
            } else {
                report.note(&choices.pointer, "is no list of choices");
            }
        }
        let optional = parameter.flag("optional")?;
        if parameter.flag("required")?.unwrap_or(optional == Some(false)) {
            required.push(Value::from(name));
        }
        for pointer in parameter.left_over() {
            report.note(pointer, "is not known here");
        }
        properties.insert(name.to_owned(), Value::Object(property));
    }
    Ok(json!({"type": "object", "properties": properties, "required": required}))
}
