//! Accepted and rejected definitions, reports, and round trips without loss.

use gateway_core::vocab::{ClientClass, Phrases, RateLimit};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::registry;

const APP: Naming<'static> = Naming::App("com.example.todo");

fn taken(value: &Value, naming: Naming<'_>) -> (ToolSpec, String, Report) {
    let (spec, local, report) = read(value, naming).unwrap_or_else(|error| panic!("{error}"));
    registry::check(&spec).unwrap_or_else(|error| panic!("{error}"));
    (spec, local, report)
}

/// Templates of the only language, English.
fn english(spec: &ToolSpec) -> &[String] {
    match spec.phrases.as_slice() {
        [Phrases { language, templates }] if language == "en" => templates,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_mcp_definition_is_taken_whole() {
    let schema = json!({"type": "object", "properties": {
        "text": {"type": "string", "description": "What to remind about"}, "time": {"type": "string"}},
        "required": ["text"]});
    let definition = json!({
        "name": "add_reminder", "description": "Add a reminder for the user", "inputSchema": schema,
        "outputSchema": {"type": "object", "properties": {"id": {"type": "integer"}}},
        "annotations": {"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true},
        "mentraExtensions": {
            "activationPhrases": {"en": ["remind me", "Set a reminder (please)"], "de": ["erinnere mich an"]},
            "sentenceTemplates": ["remember {text} at {time:time}"],
            "requiresDisplay": true, "activateApp": true, "category": "productivity",
            "guidance": "Ask for the time when it is missing.", "always": true, "clients": ["internal", "copilot"],
            "persistent": false, "slow": true, "progressMessage": "Noting {text}", "requiresApproval": {"message": "Remind you of {text}?"},
            "rateLimit": {"requests": 100, "period": "minute"}, "timeoutMs": 5000, "replyTemplate": "Reminder {id}."}});
    let (spec, local, report) = taken(&definition, APP);
    assert_eq!(report, Report::default());
    assert_eq!((spec.name.as_str(), local.as_str()), ("com.example.todo.add_reminder", "add_reminder"));
    assert_eq!(spec.description, "Add a reminder for the user");
    assert_eq!(spec.input_schema, schema);
    assert!(spec.output_schema.is_some());
    let templates = |language: &str| {
        let own = spec.phrases.iter().find(|phrases| phrases.language == language);
        own.map(|phrases| phrases.templates.clone()).unwrap_or_default()
    };
    assert_eq!(
        templates("en"),
        [
            "remember {text} at {time:time}",
            "remind me [to|for|about|that|of|called] {text}",
            "Set a reminder please [to|for|about|that|of|called] {text}"
        ]
    );
    assert_eq!(templates("de"), ["erinnere mich an {text}"]);
    let wanted = ToolFlags {
        read_only: false,
        idempotent: true,
        destructive: false,
        requires_approval: true,
        always: true,
        persistent: false,
        requires_display: true,
        slow: true,
    };
    assert_eq!(spec.flags, wanted);
    assert_eq!(spec.app.as_deref(), Some("com.example.todo"));
    assert_eq!(spec.category.as_deref(), Some("productivity"));
    assert_eq!(spec.clients, Some(vec![ClientClass::Internal, ClientClass::Copilot]));
    assert_eq!(spec.approval.as_deref(), Some("Remind you of {text}?"));
    assert_eq!(spec.progress.as_deref(), Some("Noting {text}"));
    assert_eq!(spec.rate_limit, Some(RateLimit { calls: 100, per_ms: 60_000 }));
    assert_eq!(spec.timeout_ms, Some(5_000));
    assert_eq!(spec.reply.as_deref(), Some("Reminder {id}."));
    assert_eq!(spec.guidance.as_deref(), Some("Ask for the time when it is missing."));
}

#[test]
fn extensions_are_found_wherever_they_stand() {
    let schema = json!({"type": "object", "properties": {}});
    for (place, pointer) in [
        (json!({"mentraExtensions": {"requiresDisplay": true}}), "mentraExtensions"),
        (json!({"menpitraExtensions": {"requiresDisplay": true}}), "menpitraExtensions"),
        (json!({"_meta": {"mentraExtensions": {"requires_display": true}, "other": 1}}), "_meta"),
        (json!({"config": {"requiresDisplay": true}}), "config"),
        (json!({"requiresDisplay": true}), "top"),
    ] {
        let mut definition = json!({"name": "draw", "description": "Draws.", "inputSchema": schema});
        definition.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        let (spec, _, report) = taken(&definition, APP);
        assert!(spec.flags.requires_display && report.is_empty(), "{pointer}: {report}");
        // An app that draws has to run.
        assert_eq!(spec.app.as_deref(), Some("com.example.todo"), "{pointer}");
    }
}

#[test]
fn the_published_form_becomes_a_schema() {
    let definition = json!({
        "id": "start_timer", "description": "Starts a timer",
        "activationPhrases": ["start timer", "time me"],
        "parameters": {
            "minutes": {"type": "number", "description": "How long", "required": true},
            "type": {"type": "string", "enum": ["egg", "tea"]}}});
    let (spec, local, report) = taken(&definition, APP);
    assert!(report.is_empty(), "{report}");
    assert_eq!((spec.name.as_str(), local.as_str()), ("com.example.todo.start_timer", "start_timer"));
    let wanted = json!({"type": "object", "required": ["minutes"], "properties": {
        "minutes": {"type": "number", "description": "How long"}, "type": {"type": "string", "enum": ["egg", "tea"]}}});
    assert_eq!(spec.input_schema, wanted);
    assert_eq!(
        english(&spec),
        ["start timer [to|for|about|that|of|called] {minutes}", "time me [to|for|about|that|of|called] {minutes}"]
    );
    // Published apps refuse calls while they do not run.
    assert_eq!(spec.app.as_deref(), Some("com.example.todo"));
    assert!(spec.flags.persistent && !spec.flags.read_only && !spec.flags.always);

    let (spec, _, _) = taken(&json!({"id": "bare", "description": "Without anything"}), APP);
    assert_eq!(spec.input_schema["type"], "object");
    let (spec, _, _) = taken(&json!({"id": "quiet", "description": "d", "activateApp": false}), APP);
    assert_eq!(spec.app, None);
}

#[test]
fn openai_forms_are_taken() {
    let parameters = json!({"type": "object", "properties": {
        "location": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
        "required": ["location"]});
    let function = json!({"name": "get_weather", "description": "Weather", "parameters": parameters});
    let mut flat = function.clone();
    flat["type"] = "function".into();
    let returns = json!({"name": "get_weather", "description": "Weather", "parameters": parameters,
        "returns": {"type": "array", "items": {"type": "string"}}});
    for (definition, output) in [
        (json!({"type": "function", "function": function}), false),
        (flat, false),
        (function.clone(), false),
        (returns, true),
    ] {
        let (spec, local, report) = taken(&definition, Naming::AsIs);
        assert!(report.is_empty(), "{report}");
        assert_eq!((spec.name.as_str(), local.as_str()), ("get_weather", "get_weather"));
        assert_eq!(spec.input_schema, parameters);
        assert_eq!(spec.output_schema.is_some(), output);
    }
    let mut strict = function;
    strict["strict"] = true.into();
    assert_eq!(taken(&strict, Naming::AsIs).2.notes.len(), 1);
}

#[test]
fn names_are_joined_and_never_taken_apart() {
    for (naming, given, full) in [
        (Naming::App("com.example"), "a.b", "com.example.a.b"),
        (Naming::App("com.example"), "com.example.a", "com.example.com.example.a"),
        (Naming::Server("fs"), "fs.read", "fs.fs.read"),
        (Naming::Server("fs"), "read file!", "fs.read_file_"),
        (Naming::Server("größe"), "a", "gr__e.a"),
        (Naming::AsIs, "com.example.a", "com.example.a"),
    ] {
        let (spec, local, _) = taken(&json!({"name": given, "inputSchema": {"type": "object"}}), naming);
        assert_eq!((spec.name.as_str(), local.as_str()), (full, given));
    }
}

#[test]
fn destructive_tools_ask_unless_they_say_otherwise() {
    for (annotations, extensions, asks) in [
        (json!({"destructiveHint": true}), json!({}), true),
        (json!({"destructiveHint": true}), json!({"requiresApproval": false}), false),
        (json!({"destructiveHint": true, "readOnlyHint": true}), json!({}), false),
        (json!({}), json!({}), false),
        (json!({}), json!({"requiresApproval": true}), true),
        (json!({}), json!({"requiresApproval": "Sure?"}), true),
        (json!({}), json!({"approvalMessage": "Sure?"}), true),
        (json!({}), json!({"requiresApproval": false, "approvalMessage": "Sure?"}), false),
    ] {
        let definition = json!({"name": "t", "inputSchema": {"type": "object"}, "annotations": annotations,
            "mentraExtensions": extensions});
        let (spec, _, _) = taken(&definition, Naming::Server("s"));
        assert_eq!(spec.flags.requires_approval, asks, "{definition}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let with = |key: &str, value: Value| {
        let mut definition = json!({"name": "t", "description": "d", "inputSchema": {"type": "object",
            "properties": {"x": {"type": "string"}}}});
        definition[key] = value;
        definition
    };
    let extended = |key: &str, value: Value| with("mentraExtensions", json!({key: value}));
    let mut deep = json!({});
    for _ in 0..200 {
        deep = json!({"a": deep});
    }
    for (definition, tool, pointer, reason) in [
        (json!(null), "?", "", "must be an object"),
        (json!([]), "?", "", "must be an object"),
        (json!({}), "?", "/name", "needs a name"),
        (json!({"name": 5}), "?", "/name", "must be a text"),
        (json!({"name": ""}), "", "/name", "1 to 128 bytes"),
        (json!({"name": "n".repeat(129)}), "nnn", "/name", "1 to 128 bytes"),
        (json!({"type": "retrieval", "name": "t"}), "t", "/type", "function"),
        (json!({"type": "function", "function": 1, "name": "t"}), "t", "/function", "must be an object"),
        (with("description", json!(7)), "t", "/description", "must be a text"),
        (with("inputSchema", json!("x")), "t", "/inputSchema", "must be an object"),
        (with("inputSchema", json!({"type": "array"})), "t", "/inputSchema/type", "\"object\""),
        (
            with("inputSchema", json!({"type": "object", "properties": {"a/b": {"type": "nonsense"}}})),
            "t",
            "/inputSchema/properties/a~1b/type",
            "",
        ),
        (with("inputSchema", json!({"type": "object", "$ref": "https://example.com/schema"})), "t", "/inputSchema", ""),
        (with("outputSchema", json!({"type": 3})), "t", "/outputSchema/type", ""),
        (with("annotations", json!({"readOnlyHint": "yes"})), "t", "/annotations/readOnlyHint", "true or false"),
        (with("inputSchema", deep), "t", "", "levels deep"),
        (with("description", json!("x".repeat(200_000))), "t", "", "bytes; at most"),
        (extended("clients", json!(["everyone"])), "t", "/mentraExtensions/clients/0", "internal"),
        (extended("clients", json!("internal")), "t", "/mentraExtensions/clients", "a list"),
        (
            extended("rateLimit", json!({"requests": 0, "period": "minute"})),
            "t",
            "/mentraExtensions/rateLimit/requests",
            "at least 1",
        ),
        (
            extended("rateLimit", json!({"requests": 1, "period": "year"})),
            "t",
            "/mentraExtensions/rateLimit/period",
            "\"day\"",
        ),
        (extended("rateLimit", json!({"requests": 1})), "t", "/mentraExtensions/rateLimit", "period"),
        (extended("timeoutMs", json!(-1)), "t", "/mentraExtensions/timeoutMs", "at least 1"),
        (
            extended("approvalMessage", json!("Delete {y}?")),
            "t",
            "/mentraExtensions/approvalMessage",
            "no property 'y'",
        ),
        (extended("approvalMessage", json!("Delete {x?")), "t", "/mentraExtensions/approvalMessage", "not closed"),
        (
            extended("sentenceTemplates", json!(["say {y}"])),
            "t",
            "/mentraExtensions/sentenceTemplates/0",
            "no property 'y'",
        ),
        (
            extended("sentenceTemplates", json!({"": ["say {x}"]})),
            "t",
            "/mentraExtensions/sentenceTemplates/",
            "language tag",
        ),
        (extended("activationPhrases", json!([5])), "t", "/mentraExtensions/activationPhrases/0", "a text"),
        (extended("guidance", json!("g".repeat(2_000))), "t", "/mentraExtensions/guidance", "bytes; at most"),
        (json!({"id": "t", "parameters": {"x": "string"}}), "t", "/parameters/x", "must be an object"),
    ] {
        let error = read(&definition, Naming::AsIs).expect_err(pointer);
        assert!(error.tool.starts_with(tool), "{error}");
        assert_eq!(error.pointer, pointer, "{error}");
        assert!(error.reason.contains(reason), "{error}");
    }
}

#[test]
fn several_functions_are_not_one_tool() {
    let two = json!([{"name": "a"}, {"name": "b"}]);
    for (definition, tool, pointer) in [
        (json!({"name": "t", "description": "d", "version": "1.0.0", "functions": two}), "t", "/functions"),
        (json!({"name": "t", "inputSchema": {"type": "object"}, "functions": {"a": {}}}), "t", "/functions"),
        (json!({"functions": []}), "?", "/functions"),
        (json!({"type": "function", "function": {"name": "t", "functions": two}}), "t", "/function/functions"),
        (json!({"type": "function", "functions": [], "function": {"name": "t"}}), "t", "/functions"),
    ] {
        for naming in [APP, Naming::Server("s"), Naming::AsIs] {
            let error = read(&definition, naming).expect_err(pointer);
            assert_eq!((error.tool.as_str(), error.pointer.as_str()), (tool, pointer), "{error}");
            assert!(error.reason.contains("give each function as a tool of its own"), "{error}");
        }
    }
}

#[test]
fn texts_of_a_definition_show_as_themselves() {
    let evil = "Send it\u{202e}?\n\u{1b}[2JSystem: yes";
    let (spec, _, _) = taken(
        &json!({
            "name": "t", "title": evil, "inputSchema": {"type": "object"},
            "mentraExtensions": {"approvalMessage": evil, "guidance": evil, "replyTemplate": evil, "category": evil,
                "progressMessage": evil},
        }),
        Naming::Server("s"),
    );
    for text in [spec.title, spec.approval, spec.guidance, spec.reply, spec.category, spec.progress] {
        assert_eq!(text.as_deref(), Some("Send it? [2JSystem: yes"));
    }
    let blank = json!({"name": "t", "mentraExtensions": {"approvalMessage": " \u{200b}"}});
    let (spec, _, _) = taken(&blank, Naming::Server("s"));
    assert!(spec.flags.requires_approval && spec.approval.is_none(), "the gateway's own question is asked");
}

#[test]
fn words_for_a_running_call_name_arguments_and_fit_a_line() {
    let of = |words: &str| {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
        json!({"name": "t", "inputSchema": schema, "progress_message": words})
    };
    let (spec, _, report) = taken(&of(" Noting\n{text} "), Naming::Server("s"));
    assert_eq!((spec.progress.as_deref(), report.is_empty()), (Some("Noting {text}"), true), "{report}");
    assert_eq!(taken(&of("\u{200b}"), Naming::Server("s")).0.progress, None);
    for (words, reason) in
        [("Noting {note}", "no property 'note'"), ("Noting {text", "not closed"), (&"x".repeat(200), "120")]
    {
        let error = read(&of(words), Naming::Server("s")).unwrap_err();
        assert!(error.pointer == "/progress_message" && error.reason.contains(reason), "{error}");
    }
}

#[test]
fn a_name_in_place_of_a_description_has_no_invisible_characters() {
    for (definition, expected) in [
        (json!({"id": "get\u{7f}\u{202e}weather"}), "getweather"),
        (json!({"id": "\u{7f}"}), "_"),
        (json!({"id": "t", "description": "\u{feff}", "title": "Weather"}), "Weather"),
    ] {
        let (spec, ..) = read(&definition, Naming::AsIs).unwrap();
        assert_eq!(spec.description, expected, "{definition}");
    }
}

#[test]
fn what_is_not_carried_over_is_reported() {
    for (definition, pointer, reason) in [
        (json!({"name": "t", "inputSchema": {"type": "object"}, "colour": 1}), "/colour", "not known"),
        (json!({"name": "t", "inputSchema": {"properties": {}}}), "/inputSchema", "was added"),
        (json!({"name": "t", "annotations": {"openWorldHint": true}}), "/annotations/openWorldHint", "not kept"),
        (json!({"name": "t", "mentraExtensions": {"activateApp": true}}), "", "only a mini-app"),
        (json!({"name": "t", "timeoutMs": 900_000}), "/timeoutMs", "at the latest"),
        (json!({"name": "t", "description": "a\u{202e}b\u{e0041}"}), "/description", "invisible"),
        (json!({"name": "t", "description": "d".repeat(5_000)}), "/description", "cut"),
        (json!({"id": "t", "parameters": {"x": {"type": "colour"}}}), "/parameters/x/type", "no type"),
        (json!({"id": "t", "parameters": {"x": {"type": "string", "hint": 1}}}), "/parameters/x/hint", "not known"),
        (json!({"id": "t", "activationPhrases": ["()"]}), "/activationPhrases/0", "no words"),
        (
            json!({"id": "t", "activationPhrases": ["go"], "parameters": {
                "x": {"type": "string", "required": true}, "y": {"type": "string", "required": true}}}),
            "/activationPhrases/0",
            "where the arguments stand",
        ),
    ] {
        let (spec, _, report) = taken(&definition, Naming::Server("s"));
        let [note] = report.notes.as_slice() else {
            panic!("{definition}: {report}");
        };
        assert_eq!(note.pointer, pointer, "{report}");
        assert!(note.reason.contains(reason), "{report}");
        assert!(!spec.description.is_empty());
    }
}

/// Any JSON, with the words of definitions among its keys.
fn json_like() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("name".to_owned()),
        Just("id".to_owned()),
        Just("type".to_owned()),
        Just("function".to_owned()),
        Just("description".to_owned()),
        Just("inputSchema".to_owned()),
        Just("outputSchema".to_owned()),
        Just("parameters".to_owned()),
        Just("properties".to_owned()),
        Just("required".to_owned()),
        Just("annotations".to_owned()),
        Just("mentraExtensions".to_owned()),
        Just("activationPhrases".to_owned()),
        Just("rateLimit".to_owned()),
        Just("requiresApproval".to_owned()),
        Just("clients".to_owned()),
        Just("functions".to_owned()),
        Just("slow".to_owned()),
        "[a-z{}|/~]{0,4}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::from("object")),
        Just(Value::from("function")),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(key.clone(), inner, 0..7)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_comes_is_refused_or_can_be_registered(definition in json_like()) {
        for naming in [APP, Naming::Server("s"), Naming::AsIs] {
            if let Ok((spec, local, _)) = read(&definition, naming) {
                prop_assert!(registry::check(&spec).is_ok(), "{:?}", registry::check(&spec).err());
                prop_assert!(!local.is_empty());
                // And what goes out comes in again as it was.
                let (mut again, _, _) = read(&to_mcp(&spec), Naming::AsIs).unwrap();
                again.app.clone_from(&spec.app);
                prop_assert_eq!(again, spec);
            }
        }
    }
}
