//! JSON Schema as TypeScript.
//!
//! An object with properties that is referred to becomes an interface, so that cycles end in a name; anything else that
//! is referred to is written in place. Whatever TypeScript cannot express, and whatever is too deep or too much, is
//! `unknown`: a declaration may allow more than the schema, which every call is checked against.

mod keywords;
mod shape;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use self::{
    keywords::{is_bare, is_combined, is_plain, open_keys, required},
    shape::{Tightness, Type, any_object, intersection, literal, union},
};
use super::{
    names::{hex, suffixed, type_name},
    text::{doc, property},
};
use crate::limits::{
    DEPTH_MAX, ENUM_LITERALS_MAX, LITERAL_BYTES_MAX, PROPERTY_DOC_BYTES_MAX, REFERENCE_HOPS_MAX, TYPES_COMPARED_MAX,
    TYPES_COST_MAX,
};
use crate::wording::plain;

/// Characters of an object that is written in one line.
const LINE_CHARS_MAX: usize = 80;
/// Cost of a node besides its text.
const NODE_COST: usize = 16;
/// Spaces before the declarations of a module, and before their members.
pub(super) const INDENT: usize = 2;

/// Names of types that generated code uses itself, or that a reader takes for the language's own.
const TAKEN: [&str; 10] =
    ["Array", "Boolean", "Date", "Error", "Function", "Number", "Object", "Promise", "Record", "String"];

/// A schema with its own references.
struct Root<'a> {
    schema: &'a Value,
    /// What the schema belongs to, for the names of its types.
    owner: &'a str,
    /// Whether it is a result's.
    is_result: bool,
    /// Interfaces by JSON Pointer.
    named: BTreeMap<String, String>,
    /// Interfaces that are not written yet.
    open: VecDeque<(String, &'a Value)>,
}

/// What a function takes.
pub(super) enum Parameters {
    /// It has no argument.
    None,
    /// It may be left out.
    Optional(String),
    /// It must be given.
    Required(String),
}

/// The types of one module.
#[derive(Default)]
pub(super) struct Types {
    /// Declarations, in the order in which they are needed.
    pub(super) declarations: Vec<String>,
    names: BTreeSet<String>,
    /// Interfaces of several functions, by wanted name and content.
    shared: BTreeMap<(String, String), String>,
    /// What the present schema may still cost.
    left: usize,
    /// Bytes of schemas that may still be compared to find equal interfaces.
    comparable: usize,
}

impl Types {
    /// Starts the types of a schema: each has its own share, so that a huge one costs no other one its types.
    fn begin(&mut self) {
        self.left = TYPES_COST_MAX;
        self.comparable = TYPES_COMPARED_MAX;
    }

    /// The parameters of a function, whose type gets the function's name. Without a schema anything may be passed.
    pub(super) fn parameters(&mut self, owner: &str, schema: Option<&Value>) -> Parameters {
        let wanted = format!("{}Params", type_name(owner).unwrap_or_default());
        let Some(schema) = schema else {
            return Parameters::Optional(any_object());
        };
        self.begin();
        let mut root = Root::new(schema, owner, false);
        let Some(object) = schema.as_object().filter(|object| !is_combined(object)) else {
            let made = self.convert(&mut root, schema, INDENT, 0, &mut Vec::new());
            self.finish(&mut root);
            let name = self.free_name(&wanted, owner);
            self.declarations.push(format!("  export type {name} = {};\n", made.text));
            return Parameters::Required(name);
        };
        let must = object.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
        let text = if is_plain(object) {
            let name = self.interface(&mut root, "", schema, &wanted);
            self.finish(&mut root);
            name
        } else if must || open_keys(object).is_some() {
            let made = self.object(&mut root, object, INDENT, 0, &mut Vec::new());
            self.finish(&mut root);
            made.text
        } else {
            return Parameters::None;
        };
        if must { Parameters::Required(text) } else { Parameters::Optional(text) }
    }

    /// The type of a function's result.
    pub(super) fn result(&mut self, owner: &str, schema: Option<&Value>) -> String {
        let Some(schema) = schema else {
            return "unknown".to_owned();
        };
        self.begin();
        let name = type_name(owner).unwrap_or_default();
        let mut root = Root::new(schema, owner, true);
        // The result itself, or what it is a list of.
        let is_list = |object: &Map<String, Value>| {
            object.get("type").is_some_and(|kind| kind == "array")
                && !is_combined(object)
                && !object.contains_key("prefixItems")
        };
        let items = schema.get("items").filter(|_| schema.as_object().is_some_and(is_list));
        for (pointer, object, ending) in [("", Some(schema), "Result"), ("/items", items, "Item")] {
            if let Some(object) = object.filter(|object| object.as_object().is_some_and(is_plain)) {
                let title = object.get("title").and_then(Value::as_str).and_then(type_name);
                self.interface(&mut root, pointer, object, &title.unwrap_or_else(|| format!("{name}{ending}")));
            }
        }
        let made = match (root.named.get(""), root.named.get("/items")) {
            (Some(name), _) => name.clone(),
            (None, Some(item)) => format!("{item}[]"),
            (None, None) => self.convert(&mut root, schema, INDENT, 0, &mut Vec::new()).text,
        };
        self.finish(&mut root);
        made
    }

    /// Writes the interfaces that were named.
    fn finish(&mut self, root: &mut Root<'_>) {
        while let Some((name, schema)) = root.open.pop_front() {
            let about = schema.get("description").and_then(Value::as_str).unwrap_or_default();
            // The parameters' own description says what the function's does.
            let about = if root.named.get("") == Some(&name) { "" } else { about };
            let about = doc(&[about], INDENT, PROPERTY_DOC_BYTES_MAX);
            let members = match schema.as_object() {
                Some(object) => self.members(root, object, 2 * INDENT, 0, &mut Vec::new()),
                None => Vec::new(),
            };
            let members: String = members.iter().map(|member| member.line(2 * INDENT)).collect();
            self.declarations.push(format!("{about}  export interface {name} {{\n{members}  }}\n"));
        }
    }

    /// Pays for a node; `false` if there is nothing left to pay with.
    fn pay(&mut self, cost: usize) -> bool {
        let affordable = self.left >= cost;
        self.left = if affordable { self.left - cost } else { 0 };
        affordable
    }

    /// The name of the interface for the object at this place.
    fn interface<'a>(&mut self, root: &mut Root<'a>, pointer: &str, schema: &'a Value, wanted: &str) -> String {
        if let Some(name) = root.named.get(pointer) {
            return name.clone();
        }
        let full = format!("{} {pointer}", root.owner);
        // The parameters' own interface has the function's name: no other one is equal.
        let own = pointer.is_empty() && !root.is_result;
        let key = if own { None } else { self.content(root, schema).map(|content| (wanted.to_owned(), content)) };
        if let Some(name) = key.as_ref().and_then(|key| self.shared.get(key)) {
            let name = name.clone();
            root.named.insert(pointer.to_owned(), name.clone());
            return name;
        }
        let name = self.free_name(wanted, &full);
        if let Some(key) = key {
            self.shared.insert(key, name.clone());
        }
        root.named.insert(pointer.to_owned(), name.clone());
        root.open.push_back((name.clone(), schema));
        name
    }

    /// Identifies an object by its schema and by all that it refers to, directly or not; `None` if that costs too much.
    fn content<'a>(&mut self, root: &Root<'a>, schema: &'a Value) -> Option<String> {
        let (mut seen, mut next, mut texts) = (BTreeSet::new(), vec![schema], Vec::new());
        let mut add = |text: String| {
            self.comparable = self.comparable.checked_sub(text.len())?;
            texts.push(text);
            Some(())
        };
        add(schema.to_string())?;
        while let Some(value) = next.pop() {
            match value {
                Value::Array(items) => next.extend(items),
                Value::Object(fields) => {
                    if let Some(reference) = fields.get("$ref").and_then(Value::as_str)
                        && seen.insert(reference)
                        && let Some((_, target)) = root.find(reference)
                    {
                        add(format!("{reference} {target}"))?;
                        next.push(target);
                    }
                    next.extend(fields.values());
                }
                _ => {}
            }
        }
        texts.get_mut(1..)?.sort();
        texts.push(root.is_result.to_string());
        Some(hex(texts.join("\n").as_bytes()))
    }

    fn free_name(&mut self, wanted: &str, full: &str) -> String {
        let wanted = if wanted.is_empty() { "Value" } else { wanted };
        let is_free = |name: &str| !TAKEN.contains(&name) && !self.names.contains(name);
        let mut name = wanted.to_owned();
        let mut attempt = 0;
        while !is_free(&name) {
            name = suffixed(wanted, '_', &format!("{full} {attempt}"), 8);
            attempt += 1;
        }
        self.names.insert(name.clone());
        name
    }

    fn convert<'a>(
        &mut self,
        root: &mut Root<'a>,
        schema: &'a Value,
        indent: usize,
        depth: usize,
        path: &mut Vec<String>,
    ) -> Type {
        let object = match schema {
            Value::Bool(false) => return Type::one("never"),
            Value::Object(object) => object,
            _ => return Type::unknown(),
        };
        if depth > DEPTH_MAX || !self.pay(NODE_COST) {
            return Type::unknown();
        }
        let mut parts = Vec::new();
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            parts.push(self.reference(root, reference, indent, depth, path));
        }
        if let Some(value) = object.get("const") {
            parts.push(self.literals(std::slice::from_ref(value)));
        } else if let Some(values) = object.get("enum").and_then(Value::as_array) {
            parts.push(self.literals(values));
        } else {
            parts.push(self.base(root, object, indent, depth, path));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = object.get(key).and_then(Value::as_array) {
                let choices = choices.iter().map(|choice| self.convert(root, choice, indent, depth + 1, path));
                let choices = choices.collect();
                parts.push(union(choices));
            }
        }
        for part in object.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            parts.push(self.convert(root, part, indent, depth + 1, path));
        }
        let whole = intersection(parts);
        match object.get("nullable") {
            Some(Value::Bool(true)) => union(vec![whole, Type::one("null")]),
            _ => whole,
        }
    }

    /// An interface's name, or the type that is referred to.
    fn reference<'a>(
        &mut self,
        root: &mut Root<'a>,
        reference: &str,
        indent: usize,
        depth: usize,
        path: &mut Vec<String>,
    ) -> Type {
        let Some((pointer, target)) = root.find(reference) else {
            return Type::unknown();
        };
        if target.as_object().is_some_and(is_plain) {
            let last = pointer.rsplit('/').next().unwrap_or_default();
            let wanted = type_name(last).or_else(|| type_name(root.owner)).unwrap_or_default();
            return Type::one(self.interface(root, &pointer, target, &wanted));
        }
        if path.contains(&pointer) || path.len() >= REFERENCE_HOPS_MAX {
            return Type::unknown();
        }
        path.push(pointer);
        let made = self.convert(root, target, indent, depth + 1, path);
        path.pop();
        made
    }

    /// The type by the keyword `type`, or by the keywords that imply it.
    fn base<'a>(
        &mut self,
        root: &mut Root<'a>,
        object: &'a Map<String, Value>,
        indent: usize,
        depth: usize,
        path: &mut Vec<String>,
    ) -> Type {
        let kinds: Vec<&str> = match object.get("type") {
            Some(Value::String(kind)) => vec![kind.as_str()],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).take(8).collect(),
            _ if object.contains_key("properties") => vec!["object"],
            _ if object.contains_key("items") || object.contains_key("prefixItems") => vec!["array"],
            _ => return Type::unknown(),
        };
        let made = kinds.into_iter().map(|kind| match kind {
            "string" => Type::one("string"),
            "number" | "integer" => Type::one("number"),
            "boolean" => Type::one("boolean"),
            "null" => Type::one("null"),
            "array" => self.array(root, object, indent, depth, path),
            // With a combinator the other part says what the object has.
            "object" if is_bare(object) && is_combined(object) => Type::unknown(),
            "object" => self.object(root, object, indent, depth, path),
            _ => Type::unknown(),
        });
        union(made.collect())
    }

    fn array<'a>(
        &mut self,
        root: &mut Root<'a>,
        object: &'a Map<String, Value>,
        indent: usize,
        depth: usize,
        path: &mut Vec<String>,
    ) -> Type {
        let items = object.get("items");
        // Before 2020-12 a list of schemas was in `items`, and the rest in `additionalItems`.
        let (first, rest) = match (object.get("prefixItems"), items) {
            (Some(Value::Array(first)), rest) => (first.as_slice(), rest),
            (_, Some(Value::Array(first))) => (first.as_slice(), object.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        let rest = match rest {
            Some(Value::Bool(false)) => None,
            Some(rest) => Some(self.convert(root, rest, indent, depth + 1, path).within(Tightness::One)),
            None => Some("unknown".to_owned()),
        };
        if first.is_empty() {
            return Type::one(rest.map_or_else(|| "[]".to_owned(), |rest| format!("{rest}[]")));
        }
        let given = object.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let mut parts = Vec::new();
        for (at, item) in (0_u64..).zip(first) {
            let item = self.convert(root, item, indent, depth + 1, path);
            parts.push(if at < given { item.text } else { format!("{}?", item.within(Tightness::One)) });
        }
        parts.extend(rest.map(|rest| format!("...{rest}[]")));
        Type::one(format!("[{}]", parts.join(", ")))
    }

    /// An object in place: in one line if it is short and has no comments.
    fn object<'a>(
        &mut self,
        root: &mut Root<'a>,
        object: &'a Map<String, Value>,
        indent: usize,
        depth: usize,
        path: &mut Vec<String>,
    ) -> Type {
        let members = self.members(root, object, indent + INDENT, depth, path);
        if members.is_empty() {
            return Type::one(if object.get("additionalProperties") == Some(&Value::Bool(false)) {
                "{ [key: string]: never }".to_owned()
            } else {
                any_object()
            });
        }
        let line = members.iter().map(|member| member.text.as_str()).collect::<Vec<_>>().join("; ");
        let is_short = line.len() <= LINE_CHARS_MAX && members.iter().all(|member| member.doc.is_empty());
        if is_short && !line.contains('\n') {
            return Type::one(format!("{{ {line} }}"));
        }
        let lines: String = members.iter().map(|member| member.line(indent + INDENT)).collect();
        Type::one(format!("{{\n{lines}{}}}", " ".repeat(indent)))
    }

    fn members<'a>(
        &mut self,
        root: &mut Root<'a>,
        object: &'a Map<String, Value>,
        indent: usize,
        depth: usize,
        path: &mut Vec<String>,
    ) -> Vec<Member> {
        let none = Map::new();
        let properties = object.get("properties").and_then(Value::as_object);
        let required = required(object);
        // An author who lists nothing for a result usually returns all of it.
        let all = root.is_result && !object.contains_key("required");
        let mut members = Vec::new();
        // The required ones in the order in which the author named them, then the others.
        let others = properties.unwrap_or(&none).keys().map(String::as_str).filter(|name| !required.contains(name));
        let names: Vec<(&str, bool)> =
            required.iter().map(|name| (*name, true)).chain(others.map(|name| (name, all))).collect();
        for (name, must) in names {
            if !self.pay(NODE_COST + name.len()) {
                // All that is left out may still be passed.
                members.push(Member::index("unknown"));
                return members;
            }
            let schema = properties.and_then(|all| all.get(name));
            let made = schema.map_or_else(Type::unknown, |schema| self.convert(root, schema, indent, depth + 1, path));
            let mark = if must { "" } else { "?" };
            let doc = schema.map_or_else(String::new, |schema| about(schema, indent));
            let doc = if self.pay(doc.len()) { doc } else { String::new() };
            members.push(Member { doc, text: format!("{}{mark}: {}", property(name), made.text) });
        }
        if let Some(values) = open_keys(object) {
            // Named properties must fit the type of all the others.
            let made = match values {
                Some(values) if members.is_empty() => self.convert(root, values, indent, depth + 1, path),
                _ => Type::unknown(),
            };
            members.push(Member::index(&made.text));
        }
        members
    }

    fn literals(&mut self, values: &[Value]) -> Type {
        let short = |value: &Value| value.as_str().is_none_or(|text| text.len() <= LITERAL_BYTES_MAX);
        let exact = values.len() <= ENUM_LITERALS_MAX && values.iter().all(short);
        let cost: usize = values.iter().filter_map(Value::as_str).map(str::len).sum();
        let exact = exact && self.pay(cost);
        union(values.iter().map(|value| Type::one(literal(value, exact))).collect())
    }
}

impl<'a> Root<'a> {
    fn new(schema: &'a Value, owner: &'a str, is_result: bool) -> Self {
        Self { schema, owner, is_result, named: BTreeMap::new(), open: VecDeque::new() }
    }

    /// The target of a reference within the schema, with its JSON Pointer.
    fn find(&self, reference: &str) -> Option<(String, &'a Value)> {
        let fragment = reference.strip_prefix('#')?;
        let pointer = percent_decode_str(fragment).decode_utf8().ok()?;
        self.schema.pointer(&pointer).map(|target| (pointer.into_owned(), target))
    }
}

/// A property or an index signature.
struct Member {
    doc: String,
    text: String,
}

impl Member {
    fn index(values: &str) -> Self {
        Self { doc: String::new(), text: format!("[key: string]: {values}") }
    }

    fn line(&self, indent: usize) -> String {
        format!("{}{}{};\n", self.doc, " ".repeat(indent), self.text)
    }
}

/// The comment of a property: its description, and what the type does not say.
fn about(schema: &Value, indent: usize) -> String {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).map(plain).filter(|text| !text.is_empty());
    let default = schema.get("default").filter(|value| !value.is_null());
    let parts = [
        text("description").or_else(|| text("title")),
        text("format").map(|format| format!("format: {format}")),
        default.map(|value| format!("default: {value}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    doc(&[&parts.join("; ")], indent, PROPERTY_DOC_BYTES_MAX)
}

#[cfg(test)]
mod tests;
