//! Tool declarations for a provider: its names, and its subset of JSON Schema.
//!
//! A schema may come from anywhere: a built-in tool, a mini-app, an unknown MCP server. The result is always legal for
//! the provider. What a subset cannot express is left out; that only loses advice, since the executor checks every call
//! against the tool's own schema.

mod flat;
mod gemini;
mod general;

use std::collections::{BTreeMap, BTreeSet};

use gateway_core::vocab::ToolSpec;
use serde_json::{Map, Value};

use crate::names::{Changes, ellipsised, hash};

/// Deepest nesting of a rendered schema: some providers reject deeper ones, and no spoken sentence fills them.
pub const DEPTH_MAX: usize = 12;
/// Most schemas within one tool's schema.
pub const NODES_MAX: usize = 1024;
/// Longest description in characters: OpenAI's limit, and long for a model that is sent sentences.
pub const DESCRIPTION_CHARS_MAX: usize = 1024;
/// Most values of an enumeration.
pub const ENUM_VALUES_MAX: usize = 256;
/// Longest property name that every provider accepts.
pub const PROPERTY_CHARS_MAX: usize = 64;
/// Longest pattern, constant or default, in bytes of JSON.
const VALUE_BYTES_MAX: usize = 1024;

/// The schema subset of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subset {
    /// JSON Schema of type object, without references and without alternatives at the top: OpenAI, Anthropic and
    /// compatible servers.
    JsonSchema,
    /// Google's `Schema`: a subset of OpenAPI 3.0.
    Gemini,
}

/// The declaration of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The provider's name.
    pub name: String,
    /// Never blank.
    pub description: String,
    /// A schema of type object; `None` for a tool without parameters.
    pub parameters: Option<Value>,
}

/// Declares a tool under a provider's name, and returns how its arguments differ from the tool's own.
pub fn declaration(tool: &ToolSpec, name: String, subset: Subset) -> (Declaration, Changes) {
    let (parameters, changes) = normalise(&tool.input_schema, subset);
    let description = bounded(&tool.description).unwrap_or_else(|| tool.name.clone());
    (Declaration { name, description, parameters }, changes)
}

/// A tool's schema in a provider's subset, and how arguments differ from it. `None` for a tool without parameters.
pub fn normalise(schema: &Value, subset: Subset) -> (Option<Value>, Changes) {
    let mut walk = Walk {
        root: schema,
        subset,
        nodes: 0,
        renamed: BTreeMap::new(),
        taken: BTreeSet::new(),
        as_text: BTreeSet::new(),
    };
    let object = walk.object(schema);
    let changes = Changes {
        renamed: walk.renamed.into_iter().filter(|(own, theirs)| own != theirs).collect(),
        as_text: walk.as_text,
    };
    (object, changes)
}

/// Traverses one schema. Descends at most [`DEPTH_MAX`] levels and [`NODES_MAX`] nodes.
struct Walk<'a> {
    root: &'a Value,
    subset: Subset,
    nodes: usize,
    /// Every property found, with the provider's name for it.
    renamed: BTreeMap<String, String>,
    taken: BTreeSet<String>,
    as_text: BTreeSet<String>,
}

/// A position in the schema.
#[derive(Clone, Debug, Default)]
struct Place<'a> {
    depth: usize,
    /// References followed to get here: a repetition is a cycle.
    trail: Vec<&'a str>,
    /// The nearest property, by its provider's name.
    property: Option<String>,
}

impl<'a> Walk<'a> {
    fn object(&mut self, schema: &'a Value) -> Option<Value> {
        // All names first, so that no new name equals another property's own.
        self.learn_names(schema, 0);
        match self.subset {
            Subset::JsonSchema => Some(self.general_object(schema)),
            Subset::Gemini => self.gemini_object(schema),
        }
    }

    /// Counts a node; returns false at the limit.
    fn enter(&mut self, place: &Place<'_>) -> bool {
        self.nodes += 1;
        self.nodes <= NODES_MAX && place.depth < DEPTH_MAX
    }

    /// Collects the names of properties at any position: legal ones are kept.
    fn learn_names(&mut self, value: &Value, depth: usize) {
        // Deeper ones are not rendered, unless a reference leads there.
        const LEARN_DEPTH_MAX: usize = 64;
        if depth > LEARN_DEPTH_MAX {
            return;
        }
        match value {
            Value::Object(map) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    for name in properties.keys().filter(|name| is_legal(name, self.subset)) {
                        self.renamed.insert(name.clone(), name.clone());
                        self.taken.insert(name.clone());
                    }
                }
                map.values().for_each(|value| self.learn_names(value, depth + 1));
            }
            Value::Array(list) => list.iter().for_each(|value| self.learn_names(value, depth + 1)),
            _ => {}
        }
    }

    /// The provider's name of a property.
    fn property(&mut self, own: &str) -> String {
        if let Some(known) = self.renamed.get(own) {
            return known.clone();
        }
        let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut plain: String = own.chars().map(legal).collect();
        if !plain.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            plain.insert(0, '_');
        }
        let mut name = ellipsised(&plain, PROPERTY_CHARS_MAX);
        let mut salt = 0;
        while self.taken.contains(&name) {
            let suffix = format!("_{}", hash(own, salt));
            name = ellipsised(&plain, PROPERTY_CHARS_MAX - suffix.len()) + &suffix;
            salt += 1;
        }
        self.taken.insert(name.clone());
        self.renamed.insert(own.to_owned(), name.clone());
        name
    }
}

fn is_legal(property: &str, subset: Subset) -> bool {
    let allowed =
        |c: char| c.is_ascii_alphanumeric() || c == '_' || (subset == Subset::JsonSchema && matches!(c, '-' | '.'));
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    (1..=PROPERTY_CHARS_MAX).contains(&property.len())
        && property.chars().all(allowed)
        && (subset == Subset::JsonSchema || property.starts_with(first))
}

/// A description within the limit; `None` if it is blank.
fn bounded(text: &str) -> Option<String> {
    let text = text.trim();
    // Usually it is short, and the characters need not be counted.
    if text.len() <= DESCRIPTION_CHARS_MAX {
        return (!text.is_empty()).then(|| text.to_owned());
    }
    Some(text.chars().take(DESCRIPTION_CHARS_MAX).collect())
}

/// Whether a value is small enough to be repeated in every request.
fn is_small(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= VALUE_BYTES_MAX,
        Value::Array(_) | Value::Object(_) => value.to_string().len() <= VALUE_BYTES_MAX,
        _ => true,
    }
}

/// Adds to a schema's description.
fn describe(out: &mut Map<String, Value>, more: &str) {
    let before = out.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = if before.is_empty() { more.to_owned() } else { format!("{before} ({more})") };
    if let Some(text) = bounded(&text) {
        out.insert("description".into(), text.into());
    }
}
