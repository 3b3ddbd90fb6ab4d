//! Definitions of capabilities: the source's examples, defaults, slips, and what is refused.

use serde_json::json;

use super::*;

/// The example of the specification, with its slip: `"required": true` inside a property.
pub(crate) fn train_schedule() -> Value {
    json!({
        "name": "trainSchedule",
        "description": "Get train schedule information",
        "version": "1.0.0",
        "functions": [
            {
                "name": "getSchedule",
                "description": "Get all scheduled trains",
                "parameters": {"type": "object", "properties": {
                    "station": {"type": "string", "description": "Filter by station name"},
                    "date": {"type": "string", "format": "date", "description": "Date to check (YYYY-MM-DD)"}
                }},
                "returns": {"type": "array", "items": {"type": "object", "properties": {
                    "id": {"type": "string"}, "hour": {"type": "integer"}, "minute": {"type": "integer"},
                    "destination": {"type": "string"}, "platform": {"type": "string"}
                }}}
            },
            {
                "name": "getTrainDetails",
                "description": "Get details for a specific train",
                "parameters": {"type": "object", "properties": {"trainId": {"type": "string", "required": true}},
                    "required": ["trainId"]},
                "returns": {"type": "object", "properties": {
                    "id": {"type": "string"}, "operator": {"type": "string"}, "stops": {"type": "array"}
                }}
            }
        ],
        "config": {"requiresApproval": false, "rateLimit": {"requests": 100, "period": "minute"}}
    })
}

fn capability(value: &Value) -> Capability {
    match read(value) {
        Ok(Definition::Capability(capability)) => capability,
        other => panic!("{other:?}"),
    }
}

fn with_functions(functions: Value, config: Value) -> Value {
    json!({"name": "files", "functions": functions, "config": config})
}

#[test]
fn the_example_is_read() {
    let read = capability(&train_schedule());
    assert_eq!((read.about.name.as_str(), read.about.version.as_str()), ("trainSchedule", "1.0.0"));
    assert_eq!(read.about.description, "Get train schedule information");
    assert_eq!(read.about.rate_limit, Some(RateLimit { calls: 100, per_ms: 60_000 }));
    assert_eq!((read.execution, read.notes.len()), (None, 0));
    let names: Vec<_> = read.functions.iter().map(|tool| (tool.spec.name.as_str(), tool.local_name.as_str())).collect();
    assert_eq!(
        names,
        [("trainSchedule.getSchedule", "getSchedule"), ("trainSchedule.getTrainDetails", "getTrainDetails")]
    );
    let details = &read.functions[1];
    assert_eq!(
        details.spec.input_schema,
        json!({"type": "object", "properties": {"trainId": {"type": "string"}}, "required": ["trainId"]})
    );
    assert!(details.shares_rate_limit && details.spec.rate_limit.is_none() && !details.spec.flags.requires_approval);
    // What is registered is checked the same way.
    read.functions.iter().for_each(|tool| drop(crate::registry::check(&tool.spec).expect("a valid tool")));
}

#[test]
fn a_function_overrides_the_defaults() {
    let properties = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let asks = |own: Value, config: Value| {
        let mut function = json!({"name": "a", "parameters": properties});
        function.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
        let spec = capability(&with_functions(json!([function]), config)).functions.remove(0).spec;
        (spec.flags.requires_approval, spec.approval)
    };
    let (yes, no) = (json!({"requiresApproval": true}), json!({"requiresApproval": false}));
    let question = json!({"approvalMessage": "Delete {path}?"});
    let asked = Some("Delete {path}?".to_owned());
    assert_eq!(asks(json!({}), json!({})), (false, None));
    assert_eq!(asks(json!({}), yes.clone()), (true, None));
    assert_eq!(asks(no.clone(), yes), (false, None));
    assert_eq!(asks(json!({"requires_approval": true}), no.clone()), (true, None));
    assert_eq!(asks(question.clone(), no), (true, asked.clone()), "its own question is asked");
    assert_eq!(asks(json!({"requiresApproval": true}), question.clone()), (true, asked.clone()));
    assert_eq!(asks(json!({}), question), (true, asked));

    let day = json!({"requests": 5, "period": "day"});
    let limited = capability(&with_functions(
        json!([{"name": "a", "rateLimit": day}, {"name": "b"}]),
        json!({"rateLimit": {"requests": 1, "period": "second"}, "timeoutMs": 500}),
    ));
    assert_eq!(limited.about.rate_limit, Some(RateLimit { calls: 1, per_ms: 1_000 }));
    let [a, b] = limited.functions.as_slice() else { panic!("two functions") };
    assert_eq!((a.spec.rate_limit, a.shares_rate_limit), (Some(RateLimit { calls: 5, per_ms: 86_400_000 }), false));
    assert_eq!((b.spec.rate_limit, b.shares_rate_limit), (None, true));
    assert_eq!((a.spec.timeout_ms, b.spec.timeout_ms), (Some(500), Some(500)));
    assert_eq!((limited.about.version.as_str(), b.spec.description.as_str()), ("0.0.0", "b"), "neither is required");
}

#[test]
fn who_executes_is_read() {
    let mut value = with_functions(json!([{"name": "a"}]), json!({}));
    value["endpoint"] = json!({"url": "https://trains.example/api", "headers": {"Authorization": "Bearer secret"}});
    let Some(Execution::Endpoint { url, headers }) = capability(&value).execution else { panic!("no endpoint") };
    assert_eq!((url.as_str(), headers["Authorization"].expose()), ("https://trains.example/api", "Bearer secret"));
    assert!(!format!("{:?}", read(&value)).contains("Bearer"), "headers may hold keys");
    value["endpoint"] = Value::Null;
    value["mcp"] = "slack".into();
    assert_eq!(capability(&value).execution, Some(Execution::Mcp("slack".to_owned())));
}

#[test]
fn single_tools_in_the_form_of_openai_are_read() {
    let flat = json!({"name": "get_weather", "description": "Get current weather for a location", "parameters": {
        "type": "object", "properties": {"location": {"type": "string", "required": true}}}});
    let nested = json!({"type": "function", "function": flat});
    let text = json!([flat, nested, train_schedule()]).to_string();
    let read = read_text(&text).unwrap();
    let names: Vec<Vec<String>> =
        read.iter().map(|one| one.functions().iter().map(|function| function.spec.name.clone()).collect()).collect();
    assert_eq!(
        names,
        [vec!["get_weather"], vec!["get_weather"], vec!["trainSchedule.getSchedule", "trainSchedule.getTrainDetails"]]
    );
    for one in &read[..2] {
        assert_eq!(one.functions()[0].spec.input_schema["required"], json!(["location"]));
        assert_eq!(one.functions()[0].origin, Origin::Tool);
    }
}

/// A definition, the pointer, and words of the reason.
type Bad = (Value, &'static str, &'static str);

#[test]
fn what_is_wrong_is_refused_with_the_place_and_the_remedy() {
    let one = |function: Value| with_functions(json!([function]), json!({}));
    let with = |key: &str, value: Value| {
        let mut whole = one(json!({"name": "a"}));
        whole[key] = value;
        whole
    };
    let bad: [Bad; 27] = [
        (json!({"functions": [{"name": "a"}]}), "/name", "such as \"trains\""),
        (with("name", json!(5)), "/name", "must be a text"),
        (with("name", json!("../x")), "/name", "must begin with a letter"),
        (with("name", json!("a".repeat(65))), "/name", "at most 64"),
        (with("version", json!("../../x")), "/version", "such as \"1.0.0\""),
        (with("version", json!("1.0/0")), "/version", "such as \"1.0.0\""),
        (with("functions", json!({})), "/functions", "must be a list"),
        (with("functions", json!([])), "/functions", "at least one"),
        (with("functions", Value::Null), "/functions", "must be a list"),
        (with("functions", json!([{"name": "a"}, {"name": "b"}, {"name": "a"}])), "/functions/2/name", "/functions/0"),
        (
            with("functions", vec![json!({"name": "a"}); CAPABILITY_FUNCTIONS_MAX + 1].into()),
            "/functions",
            "at most 256",
        ),
        (with("function", json!({})), "/function", "known are config, description"),
        (
            with("config", json!({"rateLimit": {"requests": 1, "period": "week"}})),
            "/config/rateLimit/period",
            "\"hour\"",
        ),
        (
            with("config", json!({"rateLimit": {"requests": 0, "period": "day"}})),
            "/config/rateLimit/requests",
            "at least 1",
        ),
        (with("config", json!({"requiresAproval": true})), "/config/requiresAproval", "requiresApproval"),
        (with("config", json!({"approvalMessage": "{x}?"})), "/config/approvalMessage", "no property 'x'"),
        (with("config", json!([])), "/config", "must be an object"),
        (with("endpoint", json!({"url": "file:///etc/passwd"})), "/endpoint/url", "https://"),
        (with("endpoint", json!({"headers": {}})), "/endpoint", "needs a `url`"),
        (with("endpoint", json!({"url": "https://a", "headers": {"A": "x\ny"}})), "/endpoint/headers/A", "one line"),
        (
            json!({"name": "a", "functions": [{"name": "a"}], "mcp": "s", "endpoint": {"url": "https://a"}}),
            "/mcp",
            "only one of them",
        ),
        (one(json!({})), "/functions/0", "needs a `name`"),
        (one(json!({"name": "a b"})), "/functions/0/name", "only letters"),
        (one(json!({"name": "a", "requireApproval": true})), "/functions/0/requireApproval", "requiresApproval"),
        (
            one(json!({"name": "a", "parameters": {"type": "array"}})),
            "/functions/0/parameters/type",
            "must be \"object\"",
        ),
        (one(json!({"name": "a", "approvalMessage": "{x}?"})), "/functions/0/approvalMessage", "no property 'x'"),
        (json!({"name": "x", "parameters": []}), "/parameters", "must be an object"),
    ];
    for (value, pointer, words) in bad {
        let error = read(&value).expect_err(pointer);
        assert_eq!(error.pointer, pointer, "{error}");
        assert!(error.reason.contains(words), "{error}");
    }
    let error = read(&one(json!({"name": "get", "approvalMessage": "{x}?"}))).unwrap_err().to_string();
    assert_eq!(error, "capability 'files.get' at '/functions/0/approvalMessage': the schema has no property 'x'");
}

#[test]
fn texts_that_are_too_much_are_refused() {
    let words = |text: &str| read_text(text).expect_err("a bad text").to_string();
    assert!(words("{\"name\":").contains("line 1 column"));
    assert!(words("[]").contains("1 to 256"));
    assert!(words(&" ".repeat(CAPABILITY_BYTES_MAX + 1)).contains("several files"));
    assert!(words("[{\"name\": \"a\", \"functions\": [5]}]").contains("'/0/functions/0': must be an object"));
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({"items": deep});
    }
    let deep = with_functions(json!([{"name": "a", "returns": deep}]), json!({}));
    assert!(read(&deep).unwrap_err().reason.contains("levels deep"));
    let huge = json!({"type": "object", "description": "x".repeat(200_000)});
    let error = read(&with_functions(json!([{"name": "a", "returns": huge}]), json!({}))).unwrap_err();
    assert!(error.pointer == "/functions/0" && error.reason.contains("bytes"), "{error}");
}
