//! Schemas of any origin, in each provider's subset.

use chat_models::schema::{DEPTH_MAX, DESCRIPTION_CHARS_MAX, ENUM_VALUES_MAX, NODES_MAX, Subset, normalise};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn gemini(schema: Value) -> Value {
    normalise(&schema, Subset::Gemini).0.expect("parameters")
}

fn general(schema: Value) -> Value {
    normalise(&schema, Subset::JsonSchema).0.expect("parameters")
}

/// A property `x` alone.
fn of_x(schema: Value) -> Value {
    json!({"type": "object", "properties": {"x": schema}})
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[test]
fn gemini_is_told_each_construct_in_its_own_words() {
    let cases = [
        (json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true})),
        (json!({"type": "string", "nullable": true}), json!({"type": "string", "nullable": true})),
        (json!({"const": "on"}), json!({"type": "string", "enum": ["on"]})),
        (json!({"enum": ["a", "b", null]}), json!({"type": "string", "enum": ["a", "b"], "nullable": true})),
        (json!({"enum": [1, 2]}), json!({"type": "integer", "description": "one of 1, 2"})),
        (json!({"type": "string", "enum": [1, "b"]}), json!({"type": "string", "enum": ["1", "b"]})),
        (
            json!({"oneOf": [{"const": "a"}, {"const": "b"}], "title": "Which"}),
            json!({"type": "string", "enum": ["a", "b"], "description": "Which"}),
        ),
        (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), json!({"type": "integer", "nullable": true})),
        (
            json!({"type": ["string", "boolean"], "description": "Either"}),
            json!({"anyOf": [
                {"type": "string", "description": "Either"},
                {"type": "boolean", "description": "Either"}]}),
        ),
        (json!({"type": ["integer", "number"]}), json!({"type": "number"})),
        (json!({"type": "string", "format": "date-time"}), json!({"type": "string", "format": "date-time"})),
        (
            json!({"type": "string", "format": "uri", "description": "Where"}),
            json!({"type": "string", "description": "Where (format: uri)"}),
        ),
        (json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}})),
        (json!({"items": [{"type": "number"}]}), json!({"type": "array", "items": {"type": "number"}})),
        (json!({"allOf": [{"type": "integer"}, {"minimum": 1}]}), json!({"type": "integer", "minimum": 1})),
        (json!({"type": "object"}), json!({"type": "string", "description": "a JSON object, as text"})),
        (
            json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false, "required": ["a", "b"]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        ),
        (json!(true), json!({"type": "string"})),
    ];
    for (given, expected) in cases {
        assert_eq!(gemini(of_x(given.clone())), of_x(expected), "{given}");
    }
}

#[test]
fn others_keep_what_they_understand() {
    let whole = json!({
        "type": "object",
        "properties": {
            "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
            "days": {"type": ["integer", "null"], "minimum": 1, "exclusiveMaximum": 8, "description": "How many"},
            "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]+$"}, "uniqueItems": true},
            "place": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"lat": {"type": "number"}}}]},
        },
        "required": ["unit"],
        "additionalProperties": false,
    });
    assert_eq!(general(whole.clone()), whole);
    assert_eq!(general(json!(null)), object(json!({})));
    assert_eq!(general(json!({"type": "string"})), object(json!({})));
}

#[test]
fn what_is_unknown_is_dropped_or_becomes_text() {
    let schema = json!({
        "type": "object",
        "properties": {
            "needed": {"type": "file", "description": "A file"},
            "spare": {"type": "file"},
            "lost": {"$ref": "https://elsewhere/x"},
            "never": false,
        },
        "required": ["needed"],
    });
    let expected = json!({
        "type": "object",
        "properties": {"needed": {"type": "string", "description": "A file"}},
        "required": ["needed"],
    });
    assert_eq!(gemini(schema.clone()), expected);
    assert_eq!(general(schema), expected);
}

#[test]
fn references_are_followed_and_circles_cut() {
    let schema = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}, "self": {"$ref": "#"}},
        "$defs": {"node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/node"}},
        }},
    });
    let node = &general(schema.clone())["properties"]["tree"];
    assert_eq!(node["properties"]["name"], json!({"type": "string"}));
    assert_eq!(node["properties"]["next"], json!({"type": "object"}));
    let node = &gemini(schema)["properties"]["tree"];
    assert_eq!(node["properties"]["next"], json!({"type": "string", "description": "a JSON object, as text"}));
}

#[test]
fn choices_at_the_top_are_taken_together() {
    let schema = json!({
        "anyOf": [
            {"properties": {"id": {"type": "integer"}}, "required": ["id"]},
            {"properties": {"name": {"type": "string"}}, "required": ["name"]},
        ],
    });
    let expected = object(json!({"id": {"type": "integer"}, "name": {"type": "string"}}));
    assert_eq!(general(schema.clone()), expected);
    assert_eq!(gemini(schema), expected);
}

#[test]
fn odd_property_names_are_renamed_for_who_refuses_them() {
    let schema = object(json!({"user-id": {"type": "string"}, "user_id": {"type": "string"}, "größe": {}}));
    let (rendered, changes) = normalise(&schema, Subset::Gemini);
    let rendered = rendered.expect("parameters");
    assert_eq!(rendered["properties"].as_object().map(Map::len), Some(3));
    assert!(changes.renamed["user-id"].starts_with("user_id_"));
    assert!(!changes.renamed.contains_key("user_id"));
    let (_, changes) = normalise(&schema, Subset::JsonSchema);
    assert_eq!(changes.renamed.keys().collect::<Vec<_>>(), ["größe"]);
}

#[test]
fn a_tool_without_parameters_has_none() {
    assert_eq!(normalise(&object(json!({})), Subset::Gemini).0, None);
}

#[test]
fn bombs_do_not_go_off() {
    let mut defs = Map::new();
    for level in 0..30 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), object(json!({"a": next, "b": next, "c": next})));
    }
    let wide: Map<String, Value> = (0..5000).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect();
    let mut deep = json!({"type": "string"});
    for _ in 0..200 {
        deep = of_x(deep);
    }
    let bombs = [
        json!({"$ref": "#/$defs/d0", "$defs": defs}),
        object(wide.into()),
        deep,
        of_x(json!({"enum": (0..10_000).map(|at| format!("value {at}")).collect::<Vec<_>>()})),
        of_x(json!({"type": "string", "description": "x".repeat(100_000)})),
    ];
    for bomb in bombs {
        for subset in [Subset::JsonSchema, Subset::Gemini] {
            let (rendered, _) = normalise(&bomb, subset);
            let bytes = rendered.map_or(0, |rendered| rendered.to_string().len());
            assert!(bytes < 200_000, "{bytes}");
        }
    }
}

/// What Google's service accepts.
fn check_gemini(schema: &Value, depth: usize) -> Result<usize, String> {
    const KNOWN: [&str; 14] = [
        "type",
        "format",
        "description",
        "nullable",
        "enum",
        "items",
        "properties",
        "required",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
    ];
    let map = schema.as_object().ok_or("no object")?;
    if depth > DEPTH_MAX + 1 {
        return Err("too deep".into());
    }
    if let Some(choices) = map.get("anyOf") {
        let choices = choices.as_array().filter(|choices| choices.len() > 1).ok_or("anyOf of fewer than two")?;
        if map.len() > 1 {
            return Err(format!("anyOf is not alone: {schema}"));
        }
        return choices.iter().map(|choice| check_gemini(choice, depth + 1)).sum::<Result<usize, _>>();
    }
    let kind = map.get("type").and_then(Value::as_str).ok_or_else(|| format!("no type: {schema}"))?;
    if let Some(unknown) = map.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("unknown keyword {unknown}"));
    }
    if map.get("description").is_some_and(|text| text.as_str().is_none_or(str::is_empty)) {
        return Err("empty description".into());
    }
    if let Some(values) = map.get("enum") {
        let words = values.as_array().ok_or("enum is no list")?;
        let fine = words.iter().all(|word| word.as_str().is_some_and(|word| !word.is_empty()));
        if kind != "string" || words.is_empty() || words.len() > ENUM_VALUES_MAX || !fine {
            return Err(format!("bad enum: {schema}"));
        }
    }
    let mut nodes = 1;
    match kind {
        "object" => {
            let properties = map.get("properties").and_then(Value::as_object).ok_or("no properties")?;
            if properties.is_empty() {
                return Err("an object without properties".into());
            }
            for (name, schema) in properties {
                let legal = (1..=64).contains(&name.len())
                    && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                if !legal {
                    return Err(format!("bad property name {name}"));
                }
                nodes += check_gemini(schema, depth + 1)?;
            }
            let required = map.get("required").and_then(Value::as_array).into_iter().flatten();
            for name in required {
                if !properties.contains_key(name.as_str().unwrap_or_default()) {
                    return Err("a required property that is none".into());
                }
            }
        }
        "array" => nodes += check_gemini(map.get("items").ok_or("no items")?, depth + 1)?,
        "string" | "integer" | "number" | "boolean" => {}
        _ => return Err(format!("bad type {kind}")),
    }
    Ok(nodes)
}

fn check_general(schema: &Value) -> Result<(), String> {
    if schema["type"] != "object" || !schema["properties"].is_object() {
        return Err("no object with properties".into());
    }
    let text = schema.to_string();
    if ["anyOf", "oneOf", "allOf", "$ref", "enum", "not"].iter().any(|key| schema.get(*key).is_some()) {
        return Err("a choice at the top".into());
    }
    if text.contains("\"$ref\"") {
        return Err("a reference".into());
    }
    jsonschema::meta::validate(schema).map_err(|error| error.to_string())
}

fn any_value() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec!["", "a", "b", "string", "object", "null", "date-time", "#/$defs/a", "#"]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..300).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.prop_map(Value::from),
        "\\PC{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c$ ]{0,2}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Something like a schema, with invalid parts.
fn any_schema() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        4 => prop::sample::select(vec!["string", "integer", "number", "boolean", "array", "object", "null", "file"])
            .prop_map(Value::from),
        1 => prop::collection::vec(
            prop::sample::select(vec!["string", "integer", "number", "array", "object", "null", "file"]), 0..4
        ).prop_map(Value::from),
    ];
    let name = prop::sample::select(vec!["a", "b", "c-d", "c_d", "e.f", "$g", "", "ä", "9"]);
    let leaf = prop_oneof![
        3 => kind.clone().prop_map(|kind| json!({"type": kind})),
        1 => any_value(),
        1 => prop::sample::select(vec!["#", "#/$defs/a", "#/properties/a", "#/$defs/nowhere", "http://x", "#/%zz"])
            .prop_map(|to| json!({"$ref": to})),
    ];
    leaf.prop_recursive(5, 60, 5, move |inner| {
        let keyword = prop::sample::select(vec![
            "description", "title", "enum", "const", "default", "format", "pattern", "minLength", "maxLength",
            "minimum", "maximum", "exclusiveMinimum", "multipleOf", "minItems", "maxItems", "uniqueItems",
            "required", "additionalProperties", "nullable", "type", "items", "properties", "anyOf", "allOf", "$ref",
            "if", "not", "patternProperties", "x-unknown",
        ]);
        let list = |inner| prop::collection::vec(inner, 0..4).prop_map(Value::from);
        let members = prop::collection::btree_map(name.clone(), inner.clone(), 0..4)
            .prop_map(|map| Value::Object(map.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()));
        let structure = prop_oneof![
            4 => members.clone().prop_map(|members| ("properties", members)),
            2 => prop::sample::subsequence(vec!["a", "b", "c-d", "zz"], 0..4).prop_map(|names| ("required", json!(names))),
            1 => inner.clone().prop_map(|items| ("items", items)),
            1 => list(inner.clone()).prop_map(|items| ("items", items)),
            1 => list(inner.clone()).prop_map(|all| ("anyOf", all)),
            1 => list(inner.clone()).prop_map(|all| ("oneOf", all)),
            1 => list(inner.clone()).prop_map(|all| ("allOf", all)),
            1 => inner.prop_map(|schema| ("additionalProperties", schema)),
            1 => members.prop_map(|members| ("$defs", members)),
            2 => kind.clone().prop_map(|kind| ("type", kind)),
            2 => (keyword, any_value()),
        ];
        prop::collection::vec(structure, 0..6)
            .prop_map(|all| Value::Object(all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_schema_becomes_legal_everywhere(schema in any_schema()) {
        let (rendered, changes) = normalise(&schema, Subset::JsonSchema);
        let rendered = rendered.expect("always an object");
        prop_assert_eq!(check_general(&rendered), Ok(()), "{} from {}", rendered, schema);
        prop_assert!(changes.as_text.is_empty());
        if let (Some(rendered), _) = normalise(&schema, Subset::Gemini) {
            let checked = check_gemini(&rendered, 0);
            prop_assert!(checked.is_ok(), "{:?}: {} from {}", checked, rendered, schema);
            // Each node may occur once more as an alternative of its own types.
            prop_assert!(checked.unwrap_or_default() <= NODES_MAX * 8);
        }
    }

    #[test]
    fn descriptions_are_bounded(text in "\\PC{0,2000}") {
        let rendered = gemini(of_x(json!({"type": "string", "description": text})));
        let told = rendered["properties"]["x"]["description"].as_str().unwrap_or_default();
        prop_assert!(told.chars().count() <= DESCRIPTION_CHARS_MAX);
    }
}
