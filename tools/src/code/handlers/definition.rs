//! What the sandbox says of a file becomes a definition as in JSON: the map of functions a list, short forms of
//! parameters a schema, and types of results schemas as well.

use ::std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{
    capabilities::definition::{self, Capability, CapabilityError, Definition},
    limits::{CAPABILITY_FUNCTIONS_MAX, CAPABILITY_NAME_BYTES_MAX, DEFINITION_DEPTH_MAX},
    reply::cut,
    schema::check_depth_within,
};

/// Why a part was rejected: a JSON Pointer below the present place, and the reason.
type Misfit = (String, String);

/// Fields that say who carries out calls, in JSON.
const CARRIERS: [&str; 2] = ["endpoint", "mcp"];

/// The capability, and the functions that put their questions into words themselves.
///
/// # Errors
/// What is wrong: the function's line, the place in the definition, and the remedy.
pub(super) fn read(told: &Value) -> Result<(Capability, BTreeSet<String>), String> {
    read_parts(told).map_err(|error| {
        let function = error.pointer.strip_prefix("/functions/").and_then(|rest| rest.split('/').next());
        match function.and_then(|name| told.get("lines")?.get(name)?.as_u64()) {
            Some(line) => format!("line {line}: {error}"),
            None => error.to_string(),
        }
    })
}

fn read_parts(told: &Value) -> Result<(Capability, BTreeSet<String>), CapabilityError> {
    let name = told.pointer("/fields/name").and_then(Value::as_str).unwrap_or("?");
    let capability = cut(name, CAPABILITY_NAME_BYTES_MAX);
    let refuse = |pointer: String, reason: String| CapabilityError { capability: capability.clone(), pointer, reason };
    // Depth is checked first: everything after it may recurse.
    check_depth_within(told, DEFINITION_DEPTH_MAX + 4)
        .map_err(|violation| refuse(violation.pointer, violation.reason))?;
    let part = |key: &str| told.get(key).cloned().unwrap_or_default();
    let (Value::Object(mut fields), Value::Array(functions)) = (part("fields"), part("functions")) else {
        return Err(refuse(String::new(), "is no definition".to_owned()));
    };
    if let Some(carrier) = CARRIERS.into_iter().find(|key| fields.contains_key(*key)) {
        let reason = "the handlers of the file carry out its calls; remove it, or write the definition in JSON";
        return Err(refuse(format!("/{carrier}"), reason.to_owned()));
    }
    if functions.len() > CAPABILITY_FUNCTIONS_MAX {
        let count = functions.len();
        return Err(refuse("/functions".into(), format!("{count} functions; at most {CAPABILITY_FUNCTIONS_MAX}")));
    }
    let (mut list, mut names, mut asking) = (Vec::new(), Vec::new(), BTreeSet::new());
    for given in functions {
        let name = given.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(Value::Object(mut function)) = given.get("fields").cloned() else {
            return Err(refuse(format!("/functions/{name}"), "is no function".to_owned()));
        };
        if given.get("asks").and_then(Value::as_bool) == Some(true) {
            function.entry("requiresApproval").or_insert(Value::Bool(true));
            asking.insert(name.clone());
        }
        if let Some(parameters) = function.remove("parameters") {
            let schema = parameters_schema(parameters)
                .map_err(|(pointer, reason)| refuse(format!("/functions/{name}/parameters{pointer}"), reason))?;
            function.insert("parameters".to_owned(), schema);
        }
        if let Some(schema) = told.get("types").and_then(|types| types.get(&name)) {
            function.insert("returns".to_owned(), schema.clone());
        }
        function.insert("name".to_owned(), name.clone().into());
        names.push(name);
        list.push(function.into());
    }
    fields.insert("functions".to_owned(), Value::Array(list));
    let read = definition::read(&fields.into())
        .map_err(|error| CapabilityError { pointer: by_name(&error.pointer, &names), ..error })?;
    match read {
        Definition::Capability(capability) => Ok((capability, asking)),
        Definition::Tool(_) => Err(refuse(String::new(), "is no capability".to_owned())),
    }
}

/// A pointer into the list of functions as one into the map that the file has.
fn by_name(pointer: &str, names: &[String]) -> String {
    let parts = pointer.strip_prefix("/functions/").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
    let name = parts.and_then(|(at, _)| names.get(at.parse::<usize>().ok()?));
    match (parts, name) {
        (Some((_, "")), Some(name)) => format!("/functions/{name}"),
        (Some((_, rest)), Some(name)) => format!("/functions/{name}/{rest}"),
        _ => pointer.to_owned(),
    }
}

/// The schema of parameters in either form: a schema, or a map of the parameters, which are required unless they say
/// otherwise.
fn parameters_schema(written: Value) -> Result<Value, Misfit> {
    let Value::Object(fields) = written else {
        return Err((String::new(), "must be an object with a field for each parameter".to_owned()));
    };
    if fields.get("type").is_some_and(Value::is_string) {
        return nested(fields.into(), false);
    }
    nested(json!({"type": "object", "properties": fields}), true).map_err(|(pointer, reason)| {
        let below = pointer.strip_prefix("/properties").map(str::to_owned);
        (below.unwrap_or(pointer), reason)
    })
}

/// A schema in which the flags `optional` and `required` of properties have become the list `required`.
fn nested(schema: Value, by_default: bool) -> Result<Value, Misfit> {
    let Value::Object(mut fields) = schema else { return Ok(schema) };
    let below = |key: &str| {
        let start = format!("/{key}");
        move |(pointer, reason): Misfit| (format!("{start}{pointer}"), reason)
    };
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = fields.remove(key) {
            fields.insert(key.to_owned(), nested(inner, by_default).map_err(below(key))?);
        }
    }
    for key in ["allOf", "anyOf", "oneOf", "prefixItems"] {
        if let Some(Value::Array(parts)) = fields.remove(key) {
            let parts: Result<Vec<Value>, Misfit> = parts.into_iter().map(|part| nested(part, by_default)).collect();
            fields.insert(key.to_owned(), parts.map_err(below(key))?.into());
        }
    }
    if let Some(Value::Object(properties)) = fields.remove("properties") {
        let list = fields.get("required").and_then(Value::as_array).cloned();
        let by_default = by_default && list.is_none();
        let mut required = list.unwrap_or_default();
        let mut clean = Map::new();
        for (name, property) in properties {
            let at = format!("properties/{}", name.replace('~', "~0").replace('/', "~1"));
            let (property, is_required) = flags(property, by_default).map_err(below(&at))?;
            let name_value = Value::from(name.as_str());
            match is_required {
                Some(true) if !required.contains(&name_value) => required.push(name_value),
                Some(false) => required.retain(|known| *known != name_value),
                _ => {}
            }
            clean.insert(name, nested(property, by_default).map_err(below(&at))?);
        }
        fields.insert("properties".to_owned(), clean.into());
        if required.is_empty() {
            fields.remove("required");
        } else {
            fields.insert("required".to_owned(), required.into());
        }
    }
    Ok(fields.into())
}

/// Takes the flags from a property; whether it is required, if that is said.
fn flags(property: Value, by_default: bool) -> Result<(Value, Option<bool>), Misfit> {
    let Value::Object(mut fields) = property else {
        return Err((String::new(), "must be a schema, such as { type: 'string', optional: true }".to_owned()));
    };
    let optional = match fields.remove("optional") {
        None => None,
        Some(Value::Bool(flag)) => Some(flag),
        Some(_) => return Err(("/optional".to_owned(), "must be true or false".to_owned())),
    };
    let required = fields.get("required").and_then(Value::as_bool);
    if required.is_some() {
        fields.remove("required");
    }
    let is_required = match (optional, required) {
        (Some(optional), Some(required)) if optional == required => {
            return Err((String::new(), "is both optional and required, or neither; keep one of both".to_owned()));
        }
        (Some(optional), _) => Some(!optional),
        (None, Some(required)) => Some(required),
        (None, None) => (by_default && !fields.contains_key("default")).then_some(true),
    };
    Ok((fields.into(), is_required))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(fields: Value, function: Value) -> Value {
        json!({"fields": fields, "functions": [{"name": "f", "asks": false, "fields": function}]})
    }

    fn parameters(written: Value) -> Value {
        let (capability, _) = read(&told(json!({"name": "a"}), json!({"parameters": written}))).unwrap();
        capability.functions[0].spec.input_schema.clone()
    }

    #[test]
    fn short_forms_become_schemas() {
        let text = json!({"type": "string"});
        for (written, wanted) in [
            (
                json!({"station": {"type": "string", "optional": true}, "date": {"type": "string", "required": true}}),
                json!({"type": "object", "properties": {"station": text, "date": text}, "required": ["date"]}),
            ),
            (
                json!({"limit": {"type": "number", "default": 10}, "type": {"enum": ["a"]}}),
                json!({"type": "object", "properties": {"limit": {"type": "number", "default": 10},
                    "type": {"enum": ["a"]}}, "required": ["type"]}),
            ),
            // Objects within.
            (
                json!({"to": {"type": "object", "properties": {"zip": text, "no": {"type": "string", "optional": true}}},
                    "all": {"type": "array", "optional": true, "items": {"type": "object", "properties": {"a": text},
                        "required": []}}}),
                json!({"type": "object", "required": ["to"], "properties": {
                    "to": {"type": "object", "properties": {"zip": text, "no": text}, "required": ["zip"]},
                    "all": {"type": "array", "items": {"type": "object", "properties": {"a": text}}}}}),
            ),
            // A schema stays one.
            (
                json!({"type": "object", "properties": {"a": text, "b": {"type": "string", "required": true}}}),
                json!({"type": "object", "properties": {"a": text, "b": text}, "required": ["b"]}),
            ),
        ] {
            assert_eq!(parameters(written.clone()), wanted, "{written}");
        }
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        for (fields, function, wanted) in [
            (json!({"name": "a", "mcp": "x"}), json!({}), "at '/mcp': the handlers"),
            (json!({"name": "a", "endpoint": {}}), json!({}), "at '/endpoint': the handlers"),
            (json!({"name": "a b"}), json!({}), "at '/name': must begin"),
            (json!({}), json!({}), "capability '?' at '/name'"),
            (json!({"name": "a", "functons": 1}), json!({}), "at '/functons': a capability has no such field"),
            (
                json!({"name": "a"}),
                json!({"requireApproval": true}),
                "at '/functions/f/requireApproval': a function has",
            ),
            (json!({"name": "a"}), json!({"parameters": []}), "at '/functions/f/parameters': must be an object"),
            (json!({"name": "a"}), json!({"parameters": {"x": "string"}}), "at '/functions/f/parameters/x': must be a"),
            (
                json!({"name": "a"}),
                json!({"parameters": {"x": {"optional": true, "required": true}}}),
                "at '/functions/f/parameters/x': is both",
            ),
            (
                json!({"name": "a"}),
                json!({"parameters": {"x": {"optional": 1}}}),
                "/parameters/x/optional': must be true",
            ),
            (json!({"name": "a"}), json!({"parameters": {"x": {"type": "text"}}}), "at '/functions/f/parameters"),
            (json!({"name": "a"}), json!({"returns": {"type": 5}}), "at '/functions/f/returns"),
        ] {
            let error = read(&told(fields, function)).unwrap_err();
            assert!(error.contains(wanted), "{wanted}: {error}");
        }
        let mut lines = told(json!({"name": "a"}), json!({"slw": true}));
        lines["lines"] = json!({"f": 12});
        let error = read(&lines).unwrap_err();
        assert!(error.starts_with("line 12: capability 'a") && error.contains("'/functions/f/slw'"), "{error}");
        assert!(read(&json!({"fields": {"name": "a"}, "functions": []})).is_err());
        assert!(read(&json!(5)).is_err());
    }

    #[test]
    fn a_function_that_asks_in_its_own_words_asks() {
        let asks = |function: Value, config: Value| {
            let functions = json!([{"name": "f", "asks": true, "fields": function}]);
            let fields = json!({"name": "a", "config": config});
            let (capability, asking) = read(&json!({"fields": fields, "functions": functions})).unwrap();
            assert!(asking.contains("f"));
            capability.functions[0].spec.flags.requires_approval
        };
        assert!(asks(json!({}), json!({})) && asks(json!({}), json!({"requiresApproval": false})));
        assert!(!asks(json!({"requiresApproval": false}), json!({})));
    }
}
