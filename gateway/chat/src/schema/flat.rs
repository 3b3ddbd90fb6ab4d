//! One level of a schema, with references resolved and `allOf` merged.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{DEPTH_MAX, Place, Walk};

/// The types of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
    Null,
}

impl Type {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "array" => Self::Array,
            "object" => Self::Object,
            "null" => Self::Null,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
            Self::Null => "null",
        }
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_f64() => Self::Number,
            Value::Number(_) => Self::Integer,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }
}

/// One level of a schema.
#[derive(Debug, Default)]
pub(super) struct Flat<'a> {
    /// Plain keywords; the first of several.
    keywords: BTreeMap<&'a str, &'a Value>,
    nullable: bool,
    pub(super) properties: Vec<(&'a str, &'a Value)>,
    /// Names of `properties`: foreign schemas may have many.
    known: BTreeSet<&'a str>,
    pub(super) required: BTreeSet<&'a str>,
    pub(super) items: Option<&'a Value>,
    /// `items` as a list, or `prefixItems`.
    pub(super) tuple: Vec<&'a Value>,
    pub(super) additional: Option<&'a Value>,
    /// `anyOf` or `oneOf`; the first of several.
    pub(super) choices: Vec<&'a Value>,
    pub(super) types: Vec<Type>,
    /// It has a type unknown to JSON Schema, or an unresolved reference.
    pub(super) unknown: bool,
    /// A cycle was cut here.
    pub(super) cut: bool,
}

impl<'a> Flat<'a> {
    pub(super) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.keywords.get(keyword).copied()
    }

    pub(super) fn text(&self, keyword: &str) -> Option<&'a str> {
        self.get(keyword)?.as_str()
    }

    /// The types that it allows: as stated, or inferred from its other keywords. Empty: any.
    pub(super) fn guessed_types(&self) -> Vec<Type> {
        if !self.types.is_empty() {
            return self.types.clone();
        }
        let has = |keywords: &[&str]| keywords.iter().any(|keyword| self.keywords.contains_key(*keyword));
        let mut types = Vec::new();
        if !self.properties.is_empty() || self.additional.is_some() {
            types.push(Type::Object);
        } else if self.items.is_some() || !self.tuple.is_empty() {
            types.push(Type::Array);
        } else if let Some(values) = self.values() {
            for value in values {
                let kind = Type::of(value);
                if !types.contains(&kind) {
                    types.push(kind);
                }
            }
            // An integer is a number too.
            if types.contains(&Type::Number) {
                types.retain(|kind| *kind != Type::Integer);
            }
        } else if has(&["pattern", "minLength", "maxLength", "format"]) {
            types.push(Type::String);
        } else if has(&["minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"]) {
            types.push(Type::Number);
        }
        types
    }

    /// The values of `enum` or `const`.
    pub(super) fn values(&self) -> Option<&'a [Value]> {
        match (self.get("enum"), self.get("const")) {
            (Some(Value::Array(values)), _) if !values.is_empty() => Some(values),
            (_, Some(value)) => Some(std::slice::from_ref(value)),
            _ => None,
        }
    }

    fn add(&mut self, map: &'a Map<String, Value>) {
        for (key, value) in map {
            match (key.as_str(), value) {
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        if self.known.insert(name) {
                            self.properties.push((name, schema));
                        }
                    }
                }
                ("required", Value::Array(names)) => {
                    self.required.extend(names.iter().filter_map(Value::as_str));
                }
                ("items" | "prefixItems", Value::Array(tuple)) => self.tuple = tuple.iter().collect(),
                ("items", _) => self.items = self.items.or(Some(value)),
                ("additionalProperties", _) => self.additional = self.additional.or(Some(value)),
                ("anyOf" | "oneOf", Value::Array(choices)) if self.choices.is_empty() => {
                    self.choices = choices.iter().collect();
                }
                ("type", _) if self.types.is_empty() => self.add_types(value),
                (
                    "enum" | "const" | "default" | "title" | "description" | "format" | "pattern" | "minLength"
                    | "maxLength" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
                    | "minItems" | "maxItems" | "uniqueItems" | "minProperties" | "maxProperties",
                    _,
                ) => {
                    self.keywords.entry(key.as_str()).or_insert(value);
                }
                ("nullable", Value::Bool(true)) => self.nullable = true,
                _ => {}
            }
        }
    }

    fn add_types(&mut self, value: &Value) {
        let names: Vec<&Value> = match value {
            Value::Array(names) => names.iter().collect(),
            name => vec![name],
        };
        for name in names {
            match name.as_str().and_then(Type::parse) {
                Some(kind) if !self.types.contains(&kind) => self.types.push(kind),
                Some(_) => {}
                None => self.unknown = true,
            }
        }
    }
}

impl<'a> Walk<'a> {
    /// One level, and the position of its children.
    pub(super) fn flatten(&self, schema: &'a Value, place: &Place<'a>) -> (Flat<'a>, Place<'a>) {
        let mut flat = Flat::default();
        let mut inside = place.clone();
        self.gather(schema, &mut flat, &mut inside, 0);
        inside.depth += 1;
        if flat.nullable && !flat.types.is_empty() && !flat.types.contains(&Type::Null) {
            flat.types.push(Type::Null);
        }
        (flat, inside)
    }

    fn gather(&self, schema: &'a Value, flat: &mut Flat<'a>, place: &mut Place<'a>, level: usize) {
        // `allOf` within `allOf`, references to references.
        if level > DEPTH_MAX {
            flat.cut = true;
            return;
        }
        let Value::Object(map) = schema else {
            return;
        };
        // Keywords next to a reference have precedence.
        flat.add(map);
        if let Some(Value::String(reference)) = map.get("$ref") {
            match self.resolve(reference) {
                None => flat.unknown = true,
                // A cycle is expanded once; the second time only its type is kept.
                Some(target) if place.trail.contains(&reference.as_str()) => {
                    flat.cut = true;
                    if let Some(kind) = target.get("type").filter(|_| flat.types.is_empty()) {
                        flat.add_types(kind);
                    }
                }
                Some(target) => {
                    place.trail.push(reference);
                    self.gather(target, flat, place, level + 1);
                }
            }
        }
        if let Some(Value::Array(all)) = map.get("allOf") {
            // No real parameters have more.
            for part in all.iter().take(DEPTH_MAX) {
                self.gather(part, flat, place, level + 1);
            }
        }
    }

    /// Resolves a reference within the same schema: `#`, `#/$defs/NAME`.
    fn resolve(&self, reference: &str) -> Option<&'a Value> {
        let pointer = reference.strip_prefix('#')?;
        self.root.pointer(pointer)
    }
}
