//! JSON Schema as OpenAI, Anthropic and compatible servers accept it: complete, without references, legal in every
//! draft.

use serde_json::{Map, Value};

use super::{
    ENUM_VALUES_MAX, Place, Walk, bounded, describe,
    flat::{Flat, Type},
    is_small,
};

impl<'a> Walk<'a> {
    /// Type object, with properties. Alternatives at the top, which these providers reject, are merged: all their
    /// properties, none of them required.
    pub(super) fn general_object(&mut self, schema: &'a Value) -> Value {
        let (flat, inside) = self.flatten(schema, &Place::default());
        self.nodes += 1;
        let mut out = Map::new();
        self.put_object(&flat, &inside, &mut out);
        let choices: Vec<_> = flat.choices.iter().map(|choice| self.flatten(choice, &inside)).collect();
        for (choice, inside) in &choices {
            let mut theirs = Map::new();
            self.put_object(choice, inside, &mut theirs);
            if let (Some(Value::Object(mine)), Some(Value::Object(theirs))) =
                (out.get_mut("properties"), theirs.remove("properties"))
            {
                for (name, schema) in theirs {
                    mine.entry(name).or_insert(schema);
                }
            }
        }
        if let Some(text) = flat.text("description").and_then(bounded) {
            out.insert("description".into(), text.into());
        }
        Value::Object(out)
    }

    /// `None` for a schema without information that can be left out.
    fn general(&mut self, schema: &'a Value, place: &Place<'a>, needed: bool) -> Option<Value> {
        let (flat, inside) = self.flatten(schema, place);
        let mut out = Map::new();
        if let Some(text) = flat.text("description").and_then(bounded) {
            out.insert("description".into(), text.into());
        }
        if flat.unknown && flat.types.is_empty() {
            if !needed {
                return None;
            }
            out.insert("type".into(), "string".into());
            return Some(Value::Object(out));
        }
        let types = flat.guessed_types();
        match types[..] {
            [] => {}
            [one] => {
                out.insert("type".into(), one.name().into());
            }
            _ => {
                let names: Vec<&str> = types.iter().map(|kind| kind.name()).collect();
                out.insert("type".into(), names.into());
            }
        }
        if !self.enter(place) || flat.cut {
            return Some(Value::Object(out));
        }
        if let Some(values) = flat.get("enum").and_then(Value::as_array) {
            put_values(values, &mut out);
        }
        for keyword in ["const", "default"] {
            if let Some(value) = flat.get(keyword).filter(|value| is_small(value)) {
                out.insert(keyword.into(), value.clone());
            }
        }
        put_bounds(&flat, &mut out);
        if types.contains(&Type::Object) {
            self.put_object(&flat, &inside, &mut out);
            if types.len() > 1 {
                let names: Vec<&str> = types.iter().map(|kind| kind.name()).collect();
                out.insert("type".into(), names.into());
            }
        }
        if types.contains(&Type::Array) {
            let first = flat.items.or(flat.tuple.first().copied());
            if let Some(items) = first.and_then(|items| self.general(items, &inside, true)) {
                // A tuple with members of several types is declared as a list of anything.
                let alike = flat.tuple.len() < 2 || flat.items.is_some();
                out.insert("items".into(), if alike { items } else { Value::Object(Map::new()) });
            }
        }
        let choices: Vec<Value> =
            flat.choices.iter().filter_map(|choice| self.general(choice, &inside, false)).collect();
        if !choices.is_empty() {
            out.insert("anyOf".into(), choices.into());
        }
        Some(Value::Object(out))
    }

    fn put_object(&mut self, flat: &Flat<'a>, inside: &Place<'a>, out: &mut Map<String, Value>) {
        out.insert("type".into(), "object".into());
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (own, schema) in &flat.properties {
            let needed = flat.required.contains(own);
            // `false`: the property does not exist.
            if **schema == Value::Bool(false) {
                continue;
            }
            if let Some(rendered) = self.general(schema, inside, needed) {
                let name = self.property(own);
                if needed {
                    required.push(Value::from(name.clone()));
                }
                properties.insert(name, rendered);
            }
        }
        out.insert("properties".into(), properties.into());
        if !required.is_empty() {
            out.insert("required".into(), required.into());
        }
        match flat.additional {
            Some(Value::Bool(allowed)) => {
                out.insert("additionalProperties".into(), (*allowed).into());
            }
            Some(schema @ Value::Object(_)) => {
                if let Some(rendered) = self.general(schema, inside, true) {
                    out.insert("additionalProperties".into(), rendered);
                }
            }
            _ => {}
        }
    }
}

/// Each value once; with too many, a free value with some of them in the description.
fn put_values(values: &[Value], out: &mut Map<String, Value>) {
    let mut unique: Vec<&Value> = Vec::new();
    for value in values.iter().filter(|value| is_small(value)).take(ENUM_VALUES_MAX + 1) {
        if !unique.contains(&value) {
            unique.push(value);
        }
    }
    if unique.len() == ENUM_VALUES_MAX + 1 {
        let some: Vec<String> = unique.iter().take(8).map(|value| value.to_string()).collect();
        describe(out, &format!("one of many values such as {}", some.join(", ")));
    } else if !unique.is_empty() {
        out.insert("enum".into(), unique.into_iter().cloned().collect());
    }
}

/// Keywords with a value of the right type.
fn put_bounds(flat: &Flat<'_>, out: &mut Map<String, Value>) {
    for keyword in ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] {
        if let Some(count) = flat.get(keyword).and_then(Value::as_u64) {
            out.insert(keyword.into(), count.into());
        }
    }
    for keyword in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
        let number = flat.get(keyword).filter(|value| value.is_number());
        let positive =
            number.filter(|value| keyword != "multipleOf" || value.as_f64().is_some_and(|value| value > 0.0));
        if let Some(number) = positive {
            out.insert(keyword.into(), number.clone());
        }
    }
    for keyword in ["format", "pattern", "title"] {
        if let Some(text) = flat.get(keyword).filter(|value| value.is_string() && is_small(value)) {
            out.insert(keyword.into(), text.clone());
        }
    }
    if let Some(Value::Bool(unique)) = flat.get("uniqueItems") {
        out.insert("uniqueItems".into(), (*unique).into());
    }
}
