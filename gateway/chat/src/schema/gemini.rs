//! Google's `Schema`: a subset of OpenAPI 3.0.
//!
//! Sources: the Gemini API reference ("Schema", "FunctionDeclaration") and the types of `@google/genai`. In addition,
//! what the service is known to reject: objects without properties, anything next to `anyOf`, enumerations of anything
//! but strings.

use serde_json::{Map, Value, json};

use super::{
    ENUM_VALUES_MAX, Place, Walk, bounded, describe,
    flat::{Flat, Type},
    is_small,
};

impl<'a> Walk<'a> {
    /// `None` for a tool without parameters: the service rejects an object without properties.
    pub(super) fn gemini_object(&mut self, schema: &'a Value) -> Option<Value> {
        let (flat, inside) = self.flatten(schema, &Place::default());
        self.nodes += 1;
        let mut properties = Map::new();
        let mut required = Vec::new();
        self.put_properties(&flat, &inside, &mut properties, &mut required);
        let choices: Vec<_> = flat.choices.iter().map(|choice| self.flatten(choice, &inside)).collect();
        for (choice, inside) in &choices {
            self.put_properties(choice, inside, &mut properties, &mut Vec::new());
        }
        if properties.is_empty() {
            return None;
        }
        let mut out = Map::new();
        out.insert("type".into(), "object".into());
        out.insert("properties".into(), properties.into());
        if !required.is_empty() {
            out.insert("required".into(), required.into());
        }
        Some(Value::Object(out))
    }

    fn put_properties(
        &mut self,
        flat: &Flat<'a>,
        inside: &Place<'a>,
        properties: &mut Map<String, Value>,
        required: &mut Vec<Value>,
    ) {
        for (own, schema) in &flat.properties {
            if **schema == Value::Bool(false) {
                continue;
            }
            let needed = flat.required.contains(own);
            let name = self.property(own);
            if properties.contains_key(&name) {
                continue;
            }
            let place = Place { property: Some(name.clone()), ..inside.clone() };
            if let Some(rendered) = self.gemini(schema, &place, needed) {
                if needed {
                    required.push(name.clone().into());
                }
                properties.insert(name, Value::Object(rendered));
            }
        }
    }

    /// `None` for a schema without information that can be left out.
    fn gemini(&mut self, schema: &'a Value, place: &Place<'a>, needed: bool) -> Option<Map<String, Value>> {
        let (flat, inside) = self.flatten(schema, place);
        let enough = !self.enter(place) || flat.cut;
        let mut out = Map::new();
        if let Some(text) = flat.text("description").or(flat.text("title")).and_then(bounded) {
            out.insert("description".into(), text.into());
        }
        let mut types = flat.guessed_types();
        if flat.unknown && types.is_empty() && !needed {
            return None;
        }
        let nullable = types.contains(&Type::Null) || flat.choices.iter().any(|choice| is_null(choice));
        types.retain(|kind| *kind != Type::Null);
        if types.is_empty() && !flat.choices.is_empty() && !enough {
            self.put_choices(&flat, &inside, &mut out);
        } else if let [first, second, ..] = types[..]
            && !enough
        {
            // Integers and numbers merge into numbers; other types become alternatives.
            if matches!((first, second), (Type::Integer, Type::Number) | (Type::Number, Type::Integer))
                && types.len() == 2
            {
                self.put_type(Type::Number, &flat, &inside, &mut out, enough);
            } else {
                let choices = types.iter().map(|kind| {
                    let mut choice = Map::new();
                    self.put_type(*kind, &flat, &inside, &mut choice, enough);
                    choice
                });
                let choices: Vec<_> = choices.collect();
                put_any_of(choices, &mut out);
            }
        } else {
            let kind = types.first().copied().unwrap_or(Type::String);
            self.put_type(kind, &flat, &inside, &mut out, enough);
        }
        if nullable {
            make_nullable(&mut out);
        }
        Some(out)
    }

    fn put_choices(&mut self, flat: &Flat<'a>, inside: &Place<'a>, out: &mut Map<String, Value>) {
        let mut choices: Vec<Map<String, Value>> = Vec::new();
        for choice in flat.choices.iter().filter(|choice| !is_null(choice)) {
            if let Some(rendered) = self.gemini(choice, inside, true)
                && !choices.contains(&rendered)
            {
                choices.push(rendered);
            }
        }
        // Alternatives that are all constants are an enumeration.
        let words: Option<Vec<&Value>> = choices
            .iter()
            .map(|choice| match choice.get("enum").and_then(Value::as_array).map(Vec::as_slice) {
                Some([word]) if choice.get("type") == Some(&json!("string")) => Some(word),
                _ => None,
            })
            .collect();
        match words {
            Some(words) if words.len() > 1 => {
                let words: Value = words.into_iter().cloned().collect();
                out.insert("type".into(), "string".into());
                out.insert("enum".into(), words);
            }
            _ => put_any_of(choices, out),
        }
    }

    fn put_type(
        &mut self,
        kind: Type,
        flat: &Flat<'a>,
        inside: &Place<'a>,
        out: &mut Map<String, Value>,
        enough: bool,
    ) {
        out.insert("type".into(), kind.name().into());
        match kind {
            Type::String => put_words(flat, out),
            Type::Integer | Type::Number => {
                put_other_values(flat, out);
                for keyword in ["minimum", "maximum"] {
                    if let Some(number) = flat.get(keyword).filter(|value| value.is_number()) {
                        out.insert(keyword.into(), number.clone());
                    }
                }
            }
            Type::Boolean | Type::Null => put_other_values(flat, out),
            Type::Array => {
                let first = flat.items.or(flat.tuple.first().copied()).filter(|_| !enough);
                // A tuple with members of several types is declared as a list of the first type.
                let items = first.and_then(|items| self.gemini(items, inside, true));
                let items = items.unwrap_or_else(|| Map::from_iter([("type".to_owned(), "string".into())]));
                out.insert("items".into(), Value::Object(items));
                put_counts(flat, ["minItems", "maxItems"], out);
            }
            Type::Object => {
                let mut properties = Map::new();
                let mut required = Vec::new();
                if !enough {
                    self.put_properties(flat, inside, &mut properties, &mut required);
                }
                if properties.is_empty() {
                    // The service has no free objects.
                    out.insert("type".into(), "string".into());
                    describe(out, "a JSON object, as text");
                    self.as_text.extend(inside.property.clone());
                    return;
                }
                out.insert("properties".into(), properties.into());
                if !required.is_empty() {
                    out.insert("required".into(), required.into());
                }
            }
        }
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type") == Some(&json!("null")) || schema.get("const") == Some(&Value::Null)
}

/// `anyOf` must be alone: common keywords are copied to each alternative.
fn put_any_of(mut choices: Vec<Map<String, Value>>, out: &mut Map<String, Value>) {
    let description = out.remove("description");
    if let Some(text) = &description {
        for choice in &mut choices {
            choice.entry("description").or_insert_with(|| text.clone());
        }
    }
    match choices.len() {
        0 => {
            out.insert("type".into(), "string".into());
            out.extend(description.map(|text| ("description".to_owned(), text)));
        }
        1 => out.extend(choices.into_iter().flatten()),
        _ => {
            out.insert("anyOf".into(), choices.into_iter().map(Value::Object).collect());
        }
    }
}

fn make_nullable(out: &mut Map<String, Value>) {
    match out.get_mut("anyOf") {
        Some(Value::Array(choices)) => choices.iter_mut().filter_map(Value::as_object_mut).for_each(make_nullable),
        _ => {
            out.insert("nullable".into(), true.into());
        }
    }
}

/// Enumerations of strings; other values go to the description.
fn put_words(flat: &Flat<'_>, out: &mut Map<String, Value>) {
    if let Some(values) = flat.values() {
        let mut words: Vec<String> = Vec::new();
        for value in values.iter().filter(|value| !value.is_null() && is_small(value)) {
            let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // The service rejects an empty string.
            if !word.is_empty() && !words.contains(&word) {
                words.push(word);
            }
        }
        if (1..=ENUM_VALUES_MAX).contains(&words.len()) {
            out.insert("enum".into(), words.into());
        } else if let Some(some) = words.get(..8.min(words.len())).filter(|some| !some.is_empty()) {
            describe(out, &format!("one of many values such as {}", some.join(", ")));
        }
        return;
    }
    match flat.text("format") {
        Some("date-time") => {
            out.insert("format".into(), "date-time".into());
        }
        Some(format) if !format.is_empty() && format.len() <= 64 => describe(out, &format!("format: {format}")),
        _ => {}
    }
    put_counts(flat, ["minLength", "maxLength"], out);
}

/// Values other than strings cannot be enumerated, only described.
fn put_other_values(flat: &Flat<'_>, out: &mut Map<String, Value>) {
    if let Some(values) = flat.values() {
        let some = values.iter().filter(|value| !value.is_null() && is_small(value)).take(16);
        let some: Vec<String> = some.map(Value::to_string).collect();
        if !some.is_empty() {
            describe(out, &format!("one of {}", some.join(", ")));
        }
    }
}

fn put_counts(flat: &Flat<'_>, keywords: [&str; 2], out: &mut Map<String, Value>) {
    for keyword in keywords {
        if let Some(count) = flat.get(keyword).and_then(Value::as_u64) {
            out.insert(keyword.into(), count.into());
        }
    }
}
