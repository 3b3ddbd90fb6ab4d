//! Manifests: accepted ones, and the problems reported for invalid ones.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn given() -> Given {
    Given { api_key_sha256: "ab".repeat(32), ..Given::default() }
}

fn problems(value: Value) -> Vec<String> {
    read(&value.to_string(), &given()).unwrap_err().iter().map(ToString::to_string).collect()
}

fn minimal() -> Value {
    json!({"packageName": "com.example.todo", "name": "Todo", "publicUrl": "http://127.0.0.1:7010"})
}

fn with(key: &str, value: Value) -> Value {
    let mut manifest = minimal();
    manifest[key] = value;
    manifest
}

#[test]
fn a_published_app_config() {
    let config = json!({
        "name": "Todo", "description": "Keeps lists.", "version": "1.2.0", "publicUrl": "https://todo.example.com/",
        "logoURL": "https://todo.example.com/logo.png", "appType": "background", "onboardingInstructions": "Say hi.",
        "permissions": [{"type": "MICROPHONE", "description": "to listen"}, {"type": "TELEPATHY"}],
        "hardwareRequirements": [
            {"type": "DISPLAY", "level": "REQUIRED", "description": ""}, {"type": "CAMERA", "level": "OPTIONAL"}
        ],
        "settings": [{"type": "group", "title": "All"}, {"key": "lang", "type": "text", "label": "Language"}],
        "tools": [{
            "id": "add_todo", "description": "Adds to the list.", "activationPhrases": ["add to do"],
            "parameters": {"item": {"type": "string", "description": "What.", "required": true}}
        }],
        "color": "green"
    });
    let given = Given { package: Some("com.example.todo".into()), ..given() };
    let (app, notes) = read(&config.to_string(), &given).unwrap();
    assert_eq!(
        (app.package.as_str(), app.name.as_str(), app.version.as_str(), app.kind, app.shape),
        ("com.example.todo", "Todo", "1.2.0", AppKind::Background, CallShape::Published)
    );
    assert_eq!(app.public_url, "https://todo.example.com");
    assert_eq!((app.permissions, app.hardware_required), (vec!["MICROPHONE".to_owned()], vec!["DISPLAY".to_owned()]));
    assert_eq!(app.settings.len(), 2);
    let tool = &app.tools[0];
    assert_eq!((tool.local_name.as_str(), tool.spec.name.as_str()), ("add_todo", "com.example.todo.add_todo"));
    assert_eq!(tool.spec.input_schema["required"], json!(["item"]));
    // Published apps expect to run when a tool is called.
    assert_eq!(tool.spec.app.as_deref(), Some("com.example.todo"));
    let keys: Vec<_> = notes.iter().map(|note| note.key.as_str()).collect();
    assert_eq!(keys, ["permissions/1", "color"]);
}

#[test]
fn a_manifest_in_toml() {
    let manifest = r#"
        package = "com.example.reminders"
        name = "Reminders"
        public_url = "http://127.0.0.1:7010"
        tool_call = "mcp"
        hardware = ["DISPLAY"]

        [[tools]]
        name = "keep"
        description = "Keeps a reminder."
        input_schema = { type = "object", properties = { text = { type = "string" } }, required = ["text"] }
        [tools.mentra_extensions]
        requires_display = true
        sentence_templates = { en = ["keep in mind {text}"] }
    "#;
    let (app, notes) = read(manifest, &given()).unwrap();
    assert_eq!((app.shape, app.kind, notes), (CallShape::Mcp, AppKind::Foreground, vec![]));
    assert!(app.tools[0].spec.flags.requires_display);
    assert_eq!(app.tools[0].spec.phrases[0].templates, ["keep in mind {text}"]);
    // The stored form equals what was parsed.
    let kept: App = serde_json::from_str(&serde_json::to_string(&app).unwrap()).unwrap();
    assert_eq!(kept, app);
}

#[test]
fn the_manifest_of_the_documentation_is_taken_whole() {
    let page = include_str!("../../../docs/mini-apps.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (manifest, _) = rest.split_once("```").unwrap();
    let (app, notes) = read(manifest, &given()).unwrap();
    assert_eq!((app.shape, app.kind, notes), (CallShape::Mcp, AppKind::Background, vec![]));
    let spec = &app.tools[0].spec;
    assert!(spec.flags.requires_display && spec.flags.requires_approval && spec.timeout_ms == Some(5_000));
    assert_eq!((spec.approval.as_deref(), spec.app.as_deref()), (Some("Add {item}?"), Some("com.example.todo")));
    assert_eq!(spec.phrases[0].templates, ["add {item} to my list"]);
}

#[test]
fn the_operator_wins() {
    let given = Given { package: Some("other.app".into()), public_url: Some("http://box:1/base/".into()), ..given() };
    let (app, _) = read(&minimal().to_string(), &given).unwrap();
    assert_eq!((app.package.as_str(), app.public_url.as_str()), ("other.app", "http://box:1/base"));
}

#[test]
fn every_problem_names_its_key_and_a_remedy() {
    let table = [
        (with("packageName", json!(null)), "packageName: is missing; add it, or give --package"),
        (with("packageName", json!("a b")), "packageName: must be 1 to 64"),
        (with("packageName", json!("x".repeat(65))), "packageName: must be 1 to 64"),
        (with("name", json!("")), "name: is missing"),
        (with("name", json!(7)), "name: must be a text"),
        (with("name", json!("n".repeat(65))), "name: has 65 bytes"),
        (with("publicUrl", json!("")), "publicUrl: is missing; give --url"),
        (with("publicUrl", json!("localhost")), "publicUrl: 'localhost' is no address"),
        (with("publicUrl", json!("ftp://box")), "is no web address"),
        (with("publicUrl", json!("http://me:pw@box")), "must not hold a name or password"),
        (with("publicUrl", json!("http://box/?a=1")), "leave out '?'"),
        (with("appType", json!("floating")), "appType: 'floating' is no kind; there are"),
        (with("toolCall", json!("soap")), "toolCall: 'soap' is no shape"),
        (with("permissions", json!("ALL")), "permissions: must be a list"),
        (with("hardwareRequirements", json!([{"type": "WINGS"}])), "hardwareRequirements/0: is no hardware"),
        (with("settings", json!([{"key": "a"}])), "settings/0: needs a `type`"),
        (with("settings", json!([{"type": "text"}])), "settings/0: needs a `key`"),
        (with("tools", json!(vec![json!({}); 129])), "tools: has 129 entries"),
        (with("tools", json!([7])), "tools/0: tool '?': must be an object"),
        (with("tools", json!([{"description": "x"}])), "tools/0/name: tool '?': a tool needs a name"),
        (
            with("tools", json!([{"name": "trains", "functions": [{"name": "next"}, {"name": "all"}]}])),
            "tools/0/functions: tool 'trains': this defines several functions, not one tool; give each function as a tool",
        ),
        (with("tools", json!([{"id": "a", "parameters": []}])), "tools/0/parameters: tool 'a': must be an object"),
        (
            with("tools", json!([{"id": "a", "description": "A."}, {"id": "a", "description": "B."}])),
            "tools/1: a second tool 'a'",
        ),
        (json!("x"), "manifest: neither JSON nor TOML"),
    ];
    for (manifest, wanted) in table {
        let told = problems(manifest.clone());
        assert!(told.iter().any(|problem| problem.contains(wanted)), "{wanted:?} in {told:?} of {manifest}");
    }
    assert_eq!(problems(json!({})).len(), 3, "all at once");
    assert!(read(&" ".repeat(MANIFEST_BYTES_MAX + 1), &given()).is_err());
    assert!(read("{", &given()).unwrap_err()[0].reason.contains("no JSON"));
}

#[test]
fn a_flood_of_problems_is_cut() {
    let many: Vec<Value> = (0..SETTINGS_MAX).map(|_| json!({})).collect();
    assert_eq!(problems(with("settings", json!(many))).len(), PROBLEMS_MAX);
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z:/.{} ]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop_oneof!["[a-z]{1,6}", Just("type".to_owned()), Just("key".to_owned()), Just("id".to_owned())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_comes_is_told_or_taken(
        key in prop::sample::select(vec![
            "packageName", "name", "publicUrl", "appType", "permissions", "settings", "tools", "hardwareRequirements",
            "toolCall", "description",
        ]),
        value in anything(),
    ) {
        match read(&with(key, value).to_string(), &given()) {
            Ok((app, _)) => prop_assert!(!app.package.is_empty() && app.public_url.starts_with("http")),
            Err(problems) => prop_assert!(!problems.is_empty()),
        }
    }

    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,200}") {
        drop(read(&text, &given()));
    }
}

#[test]
fn what_the_operator_says_stands_in_for_a_manifest() {
    let words = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let all = Given {
        package: Some("com.example.todo".into()),
        name: Some("To  Do".into()),
        kind: Some("background".into()),
        permissions: words(&["microphone", "CAMERA", "conversation_history"]),
        public_url: Some("http://127.0.0.1:7010".into()),
        ..given()
    };
    let (app, notes) = read("{}", &all).unwrap();
    assert_eq!((app.package.as_str(), app.name.as_str(), app.kind), ("com.example.todo", "To Do", AppKind::Background));
    assert_eq!(
        (app.permissions, app.tools.len(), notes),
        (words(&["CAMERA", "CONVERSATION_HISTORY", "MICROPHONE"]), 0, vec![])
    );
    // The operator's value overrides the file, whose permissions are kept.
    let manifest = json!({"name": "File", "permissions": ["LOCATION"]}).to_string();
    let (app, _) = read(&manifest, &all).unwrap();
    assert_eq!(
        (app.name.as_str(), app.permissions),
        ("To Do", words(&["CAMERA", "CONVERSATION_HISTORY", "LOCATION", "MICROPHONE"]))
    );
    // Problems are reported with a hint on how to fix them.
    let told = read("{}", &Given { permissions: words(&["TELEPATHY"]), ..given() }).unwrap_err();
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    for wanted in ["give --package", "give --name", "give --url", "'TELEPATHY' is no permission; there are MICROPHONE"]
    {
        assert!(told.iter().any(|problem| problem.contains(wanted)), "{wanted}: {told:?}");
    }
}

#[test]
fn the_address_of_one_of_the_apps_paths_is_refused_with_the_right_one() {
    for (url, wanted) in [
        ("http://127.0.0.1:7010/webhook", "address: http://127.0.0.1:7010"),
        ("http://127.0.0.1:7010/app/webhook/", "address: http://127.0.0.1:7010/app"),
        ("http://127.0.0.1:7010/tool", "address: http://127.0.0.1:7010"),
    ] {
        let told = problems(with("publicUrl", json!(url)));
        assert!(told.len() == 1 && told[0].ends_with(wanted), "{url}: {told:?}");
    }
    assert!(read(&with("publicUrl", json!("http://webhook.example/webhooks")).to_string(), &given()).is_ok());
}
