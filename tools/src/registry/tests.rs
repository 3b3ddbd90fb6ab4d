//! Tests of the catalogue's rules.

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, Phrases, ToolCall, ToolFlags, ToolResult};
use serde_json::{Value, json};

use super::*;
use crate::registry::RunContext;

struct Nothing;

#[async_trait]
impl Runner for Nothing {
    async fn run(&self, _context: RunContext, _call: ToolCall) -> ToolResult {
        ToolResult::said("nothing")
    }
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: "Does nothing.".into(),
        input_schema: json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        phrases: vec![],
        reply: None,
        guidance: None,
        flags: ToolFlags::default(),
        timeout_ms: None,
        ..ToolSpec::default()
    }
}

fn offer(registry: &Registry, source: Source, scope: Scope, names: &[&str]) -> Result<u64, RegisterError> {
    let specs = names.iter().map(|name| spec(name)).collect();
    registry.register(source, scope, specs, Arc::new(Nothing))
}

fn names<'a>(registry: &Registry, user: &str, device: impl Into<Option<&'a str>>) -> Vec<String> {
    let snapshot = registry.snapshot(user, device.into());
    let names: Vec<_> = snapshot.specs.iter().map(|spec| spec.name.clone()).collect();
    for (spec, tool) in snapshot.specs.iter().zip(snapshot.tools()) {
        assert_eq!(*spec, tool.spec);
        assert!(snapshot.find(&spec.name).is_some_and(|found| found.spec == *spec));
    }
    names
}

fn app(name: &str) -> Source {
    Source::App(name.into())
}

#[test]
fn everybody_sees_their_own_in_a_fixed_order() {
    let registry = Registry::new();
    let user = Scope::User("ada".into());
    let device = Scope::Device("d1".into());
    offer(&registry, app("z"), device.clone(), &["m.z", "a.z"]).unwrap();
    offer(&registry, app("a"), user, &["k", "B"]).unwrap();
    offer(&registry, app("g"), Scope::Global, &["c", "a"]).unwrap();
    assert_eq!(names(&registry, "ada", "d1"), ["B", "a", "a.z", "c", "k", "m.z"]);
    assert_eq!(names(&registry, "ada", "d2"), ["B", "a", "c", "k"]);
    assert_eq!(names(&registry, "bob", "d3"), ["a", "c"]);
    assert!(registry.snapshot("bob", Some("d3")).find("k").is_none());
    // No device is not a device without a name, neither where tools are chosen nor where lists are kept.
    offer(&registry, app("e"), Scope::Device(String::new()), &["e"]).unwrap();
    assert_eq!(names(&registry, "bob", ""), ["a", "c", "e"]);
    assert_eq!(names(&registry, "bob", None), ["a", "c"]);
}

#[test]
fn the_revision_grows_with_every_change_and_only_then() {
    let registry = Registry::new();
    let mut changes = registry.changes();
    assert_eq!(registry.revision(), 0);
    assert_eq!(offer(&registry, app("x"), Scope::Global, &["a"]), Ok(1));
    let kept = registry.snapshot("u", Some("d"));
    assert!(Arc::ptr_eq(&kept, &registry.snapshot("u", Some("d"))));
    assert!(offer(&registry, app("y"), Scope::Global, &["a"]).is_err());
    assert_eq!(registry.revision(), 1);
    assert_eq!(offer(&registry, app("x"), Scope::Global, &["b"]), Ok(2));
    assert_eq!(registry.unregister(&app("y"), &Scope::Global), None);
    assert_eq!(registry.unregister(&app("x"), &Scope::Global), Some(3));
    assert_eq!(*changes.borrow_and_update(), 3);
    // A snapshot does not change.
    assert!(kept.find("a").is_some());
    assert!(registry.snapshot("u", Some("d")).specs.is_empty());
}

#[test]
fn a_name_belongs_to_the_widest_audience() {
    let registry = Registry::new();
    let device = || Scope::Device("d".into());
    offer(&registry, Source::BuiltIn, Scope::Global, &["timer.set"]).unwrap();
    assert_eq!(
        offer(&registry, app("x"), device(), &["ok", "timer.set"]),
        Err(RegisterError::NameTaken { tool: "timer.set".into(), by: Source::BuiltIn })
    );
    assert_eq!(names(&registry, "u", "d"), ["timer.set"]);
    // A later global tool replaces the one that a device offered.
    offer(&registry, Source::Device("d".into()), device(), &["note.add"]).unwrap();
    offer(&registry, app("notes"), Scope::Global, &["note.add"]).unwrap();
    let snapshot = registry.snapshot("u", Some("d"));
    assert_eq!(snapshot.find("note.add").unwrap().source, app("notes"));
    assert_eq!(
        offer(&registry, app("twice"), Scope::Global, &["a", "a"]),
        Err(RegisterError::NameTaken { tool: "a".into(), by: app("twice") })
    );
}

#[test]
fn definitions_are_checked_and_the_error_says_where() {
    let change = |change: &dyn Fn(&mut ToolSpec)| {
        let mut spec = spec("t");
        change(&mut spec);
        check(&spec).map(drop)
    };
    let english = |templates: Vec<String>| vec![Phrases { language: "en".into(), templates }];
    let with_schema = |schema: Value| change(&move |spec| spec.input_schema = schema.clone());
    let mut deep = json!({"type": "string"});
    for _ in 0..40 {
        deep = json!({"type": "array", "items": deep});
    }
    let many: serde_json::Map<String, Value> = (0..100).map(|n| (format!("p{n}"), json!({}))).collect();
    let table: Vec<(Result<(), RegisterError>, &str)> = vec![
        (change(&|spec| spec.name.clear()), "/name"),
        (change(&|spec| spec.name = "x".repeat(200)), "/name"),
        (change(&|spec| spec.name = "a b".into()), "/name"),
        (change(&|spec| spec.name = "a\nb".into()), "/name"),
        (change(&|spec| spec.name = "naïve".into()), "/name"),
        (change(&|spec| spec.description = " ".into()), "/description"),
        (change(&|spec| spec.description = "x".repeat(5_000)), "/description"),
        (change(&|spec| spec.reply = Some("x".repeat(600))), "/reply"),
        (change(&|spec| spec.guidance = Some("x".repeat(2_000))), "/guidance"),
        (change(&|spec| spec.phrases = vec![Phrases { language: "en".into(), templates: vec![] }; 20]), "/phrases"),
        (
            change(&|spec| spec.phrases = vec![Phrases { language: "".into(), templates: vec![] }]),
            "/phrases/0/language",
        ),
        (change(&|spec| spec.phrases = english(vec!["x".into(); 100])), "/phrases/0/templates"),
        (change(&|spec| spec.phrases = english(vec!["ok".into(), "x".repeat(300)])), "/phrases/0/templates/1"),
        (change(&|spec| spec.phrases = english(vec!["ok".into(), "say {b}".into()])), "/phrases/0/templates/1"),
        (with_schema(json!(null)), "/input_schema"),
        (with_schema(json!(true)), "/input_schema"),
        (with_schema(json!({})), "/input_schema/type"),
        (with_schema(json!({"type": "string"})), "/input_schema/type"),
        (with_schema(json!({"type": ["object"]})), "/input_schema/type"),
        (with_schema(json!({"type": "object", "properties": []})), "/input_schema/properties"),
        (with_schema(json!({"type": "object", "properties": many})), "/input_schema/properties"),
        (
            with_schema(json!({"type": "object", "properties": {"a": {"type": "strin"}}})),
            "/input_schema/properties/a/type",
        ),
        (with_schema(json!({"type": "object", "properties": {"a": deep}})), "/input_schema"),
        (with_schema(json!({"type": "object", "x": "x".repeat(40_000)})), "/input_schema"),
        (with_schema(json!({"type": "object", "$ref": "http://example.com/x"})), "/input_schema"),
        (with_schema(json!({"type": "object", "$ref": "file:///etc/passwd"})), "/input_schema"),
        (with_schema(json!({"type": "object", "$ref": "#/$defs/none"})), "/input_schema"),
        (with_schema(json!({"type": "object", "properties": {"a": {"pattern": "("}}})), "/input_schema"),
        (
            with_schema(json!({"type": "object", "properties": {"a": {"pattern": "(((a{1000}){1000}){1000})"}}})),
            "/input_schema",
        ),
    ];
    for (at, (result, wanted)) in table.into_iter().enumerate() {
        match result {
            Err(RegisterError::Invalid { pointer, reason, tool }) => {
                assert!(pointer.starts_with(wanted), "{at}: {pointer}: {reason}");
                assert!(!reason.is_empty() && reason.len() < 1_000 && tool.len() <= NAME_BYTES_MAX);
            }
            other => panic!("{at} {wanted}: {other:?}"),
        }
    }
}

#[test]
fn schemas_that_refer_to_themselves_come_to_an_end() {
    for schema in [
        json!({"type": "object", "$ref": "#"}),
        json!({"type": "object", "allOf": [{"$ref": "#"}]}),
        json!({"type": "object", "not": {"$ref": "#"}}),
        json!({"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"type": "object", "$dynamicAnchor": "x", "anyOf": [{"$dynamicRef": "#x"}]}),
        json!({"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": false}),
    ] {
        // Accepted or rejected: neither may crash the process, and every check ends.
        if let Ok(schema) = Schema::compile(&schema) {
            let _ = schema.check(&json!({}));
            let _ = schema.check(&json!({"next": {"next": {"next": {}}}}));
            let _ = schema.check(&json!({"next": {"next": 1}}));
        }
    }
}

#[test]
fn patterns_run_in_linear_time() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}});
    let schema = Schema::compile(&schema).unwrap();
    let hostile = format!("{}!", "a".repeat(50_000));
    assert!(schema.check(&json!({"a": hostile})).is_err());
    assert!(schema.check(&json!({"a": "aaa"})).is_ok());
}

#[test]
fn there_is_an_end_to_it() {
    let registry = Registry::new();
    let many: Vec<_> = (0..10_000).map(|n| spec(&format!("t{n}"))).collect();
    let register = |source: &str, scope, specs| registry.register(app(source), scope, specs, Arc::new(Nothing));
    let user = |name: &str| Scope::User(name.into());
    assert!(register("a", user("a"), many.clone()).is_ok());
    assert!(register("a", user("b"), many.clone()).is_ok());
    assert!(matches!(register("c", user("c"), many[..1].to_vec()), Err(RegisterError::TooMany { count: 20_001, .. })));
    let mut more = many.clone();
    more.push(spec("one.more"));
    assert!(matches!(register("a", user("a"), more), Err(RegisterError::TooMany { .. })));
    // Replacing the old tools leaves room for the new ones.
    assert!(register("a", user("a"), many).is_ok());
    assert_eq!(registry.snapshot("a", Some("d")).specs.len(), 10_000);
}

#[test]
fn equal_glasses_have_one_list() {
    let registry = Registry::new();
    offer(&registry, app("g"), Scope::Global, &["c"]).unwrap();
    for device in ["d1", "d2"] {
        offer(&registry, Source::Device(device.into()), Scope::Device(device.into()), &["lamp.on", "lamp.off"])
            .unwrap();
    }
    let list = |user: &str, device: &str| registry.snapshot(user, Some(device)).for_client(ClientClass::Internal);
    assert!(Arc::ptr_eq(&list("ann", "d1"), &list("bob", "d2")), "equal by content is one by address");
    // The list is shared, but each device keeps its own tools.
    let source = |device: &str| registry.snapshot("ann", Some(device)).find("lamp.on").unwrap().source.clone();
    assert_ne!(source("d1"), source("d2"));
    let before = list("ann", "d1");
    offer(&registry, app("other"), Scope::User("cid".into()), &["x"]).unwrap();
    assert!(Arc::ptr_eq(&before, &list("ann", "d1")), "what changes for others changes nothing here");
    assert!(!Arc::ptr_eq(&before, &list("cid", "d1")));
}
