//! Tests for all built-in tools: registration, separation of users, errors of a store, and any arguments.

use gateway_core::vocab::ErrorCode;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Fixture;
use crate::{
    call::CallContext,
    phrases,
    ports::PortError,
    registry::Registry,
    test_support::{call, context},
};

#[test]
fn each_has_an_example() {
    let registry = Registry::with_built_ins().expect("valid definitions");
    for spec in registry.snapshot("u", Some("d")).specs.iter() {
        let example = phrases::example(spec, "en").expect("an example");
        assert!(!example.contains(['{', '[', '(', '|']), "{example}");
        assert!(spec.phrases[0].templates.len() >= 3, "{}", spec.name);
    }
}

#[tokio::test]
async fn another_users_things_are_not_there() {
    let fixture = Fixture::usual();
    fixture.say("timer.set", json!({"seconds": 60})).await;
    fixture.say("note.add", json!({"text": "secret"})).await;
    let mut bob = context();
    bob.user = "bob".into();
    for (name, say) in [("timer.list", "No timers are running."), ("note.list", "You have no notes.")] {
        let result = fixture.executor.call(bob.clone(), call(name, json!({}))).await;
        assert_eq!(result.say.as_deref(), Some(say));
    }
    let all = call("timer.cancel", json!({"all": true}));
    fixture.executor.call(bob, all).await;
    assert_eq!(fixture.timers(), 1);
}

#[tokio::test]
async fn a_store_that_fails_is_told_and_changes_nothing() {
    let fixture = Fixture::usual();
    fixture.say("timer.set", json!({"seconds": 600})).await;
    for (error, code, say) in [
        (PortError::Full("disk".into()), ErrorCode::ExecutionError, "I couldn't save that: the storage is full."),
        (
            PortError::ReadOnly("disk".into()),
            ErrorCode::ExecutionError,
            "I couldn't save that: the storage can't be written to.",
        ),
        (PortError::Unavailable("store".into()), ErrorCode::AppNotAvailable, "I can't get at that right now."),
        (
            PortError::Failed("x".repeat(5_000)),
            ErrorCode::ExecutionError,
            "Sorry, that didn't work. Nothing was changed.",
        ),
    ] {
        *fixture.world.failure.lock().unwrap() = Some(error);
        for (name, arguments) in [
            ("note.add", json!({"text": "a"})),
            ("note.list", json!({})),
            ("note.search", json!({"query": "a"})),
            ("note.delete", json!({"query": "a"})),
            ("timer.set", json!({"seconds": 1})),
            ("timer.list", json!({})),
            ("timer.cancel", json!({})),
            ("timer.extend", json!({"seconds": 60})),
            ("reminder.set", json!({"text": "a", "in_seconds": 1})),
            ("reminder.list", json!({})),
            ("reminder.cancel", json!({})),
        ] {
            assert_eq!(fixture.fail(name, arguments).await, (code, say.into()), "{name}");
        }
    }
    assert_eq!(fixture.timers(), 1);
}

#[tokio::test]
async fn help_is_made_of_what_is_offered() {
    let fixture = Fixture::usual();
    let result = fixture.run("help.show", json!({})).await;
    let say = "You can say, for example: set a timer for ten minutes, remind me in ten minutes to check the oven, take a note to buy milk or what time is it.";
    assert_eq!(result.say.as_deref(), Some(say));
    assert_eq!(result.follow_ups.len(), 5);
    assert!(result.content.contains("what is 12 times 7"), "{}", result.content);
}

#[tokio::test]
async fn help_has_sentences_of_the_language_in_which_it_is_asked() {
    let fixture = Fixture::usual();
    let asked = CallContext { language: Some("de-CH".into()), ..context() };
    let result = fixture.executor.call(asked, call("help.show", json!({}))).await;
    let say = "You can say, for example: stell einen Timer auf zehn Minuten, erinnere mich in zehn Minuten daran dass die Nudeln fertig sind, mach eine Notiz Milch kaufen or wie spät ist es.";
    assert_eq!(result.say.as_deref(), Some(say));
    assert!(result.content.contains("was ist zwölf mal sieben"), "{}", result.content);
    assert!(result.content.contains("lösche das letzte Foto"), "{}", result.content);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[-+*/^!%().0-9a-z ]{0,40}".prop_map(Value::from),
        "-?[0-9]{1,6}-[0-9]{1,2}-[0-9]{1,2}T[0-9]{1,2}:[0-9]{2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::from))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]
    #[test]
    fn random_arguments_never_crash_a_tool(
        at in any::<prop::sample::Index>(),
        values in prop::collection::vec(any_json(), 3),
        keep in prop::collection::vec(any::<bool>(), 3),
    ) {
        let fixture = Fixture::usual();
        let snapshot = fixture.executor.registry().snapshot("ada", Some("glasses"));
        let spec = at.get(&snapshot.specs);
        let properties = spec.input_schema["properties"].as_object().expect("properties");
        let arguments: serde_json::Map<_, _> = properties
            .keys()
            .zip(values.into_iter().zip(keep))
            .filter(|(_, (_, keep))| *keep)
            .map(|(property, (value, _))| (property.clone(), value))
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("runtime");
        let result = runtime.block_on(fixture.run(&spec.name, Value::Object(arguments)));
        prop_assert!(!result.content.is_empty());
        prop_assert!(result.say.is_some());
        prop_assert!(!result.content.contains("crashed"), "{}", result.content);
    }
}
