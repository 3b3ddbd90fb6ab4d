//! Tests of the questions for consent, for all kinds of tools and arguments.

use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::vocab::{ToolCall, ToolSpec};
use serde_json::json;

use super::*;
use crate::{
    limits::PROGRESS_CHARS_MAX,
    registry::{Registry, RunContext, Runner},
    source::{Scope, Source},
};

struct Never;

#[async_trait]
impl Runner for Never {
    async fn run(&self, _context: RunContext, _call: ToolCall) -> ToolResult {
        unreachable!("it is only asked about")
    }
}

fn registered(source: Source, local_name: &str, spec: ToolSpec) -> Arc<Registered> {
    let registry = Registry::new();
    let spec = ToolSpec { name: "x.y".into(), ..spec };
    registry.register_named(source, Scope::Global, vec![(spec, local_name.to_owned())], Arc::new(Never)).unwrap();
    Arc::clone(registry.snapshot("u", None).find("x.y").unwrap())
}

fn asked(source: Source, local_name: &str, spec: ToolSpec, arguments: &Value) -> Question {
    question(&registered(source, local_name, spec), arguments)
}

fn of(required: &[&str], description: &str) -> ToolSpec {
    ToolSpec {
        description: description.to_owned(),
        input_schema: json!({"type": "object", "required": required}),
        ..ToolSpec::default()
    }
}

fn pantry() -> Source {
    Source::Mcp("pantry".to_owned())
}

#[test]
fn a_question_says_what_will_be_done_to_what() {
    let question = asked(
        pantry(),
        "delete_item",
        of(&["item"], "Delete an item."),
        &json!({"everything_else_too": true, "item": "rice"}),
    );
    assert_eq!(question.title, "Delete item with Pantry?");
    assert_eq!(question.said, "Delete item with Pantry? Item \"rice\", everything else too.");
    assert_eq!(question.shown, "item: \"rice\"\neverything else too: yes");
    let question = from_outside(question, false);
    assert_eq!(question.title, "Somebody at the gateway asks");
    assert_eq!(
        question.whole(),
        "Somebody at the gateway asks\nDelete item with Pantry?\nitem: \"rice\"\neverything else too: yes"
    );
    assert_eq!(
        question.said,
        "Somebody at the gateway asks: Delete item with Pantry? Item \"rice\", everything else too."
    );
}

#[test]
fn what_a_tool_says_of_itself_is_told_where_it_says_more_than_its_name() {
    for (title, description, said) in [
        (
            None,
            "Overwrites the calendar on the server. With care.",
            "Sync with Pantry? Overwrites the calendar on the server.",
        ),
        (Some("Sync calendars"), "Sync the calendars.", "Sync calendars with Pantry?"),
        (Some("\u{202e}Sync\u{1b}"), "Sync.", "Sync with Pantry?"),
    ] {
        let spec = ToolSpec { title: title.map(str::to_owned), ..of(&[], description) };
        assert_eq!(asked(pantry(), "sync", spec, &json!({})).said, said);
    }
    let app = asked(Source::App("com.example.todo".into()), "deleteList", of(&[], "x"), &json!({"name": "shopping"}));
    assert_eq!(app.title, "Delete list with Todo?");
    let glasses = asked(Source::Device("9f3c".into()), "photo.take", of(&[], "x"), &json!({}));
    assert_eq!((glasses.title.as_str(), glasses.shown.as_str()), ("Photo take?", "x."));
}

#[test]
fn a_question_of_the_tools_own_stands_and_what_it_leaves_out_is_shown() {
    let spec = ToolSpec { approval: Some("Add {item}?".into()), ..of(&["item"], "Adds.") };
    for (arguments, said, shown) in [
        (json!({"item": "milk"}), "Add \"milk\"?", "Add \"milk\"?"),
        (json!({"item": "milk", "shop": "Lidl"}), "Add \"milk\"?", "Add \"milk\"?\nshop: \"Lidl\""),
        // A value that is changed for speech is displayed unchanged.
        (json!({"item": "mi\u{202e}lk"}), "Add \"milk\"?", "Add \"milk\"?\nitem: \"mi<U+202E>lk\""),
        (json!({"item": ["a", "b"]}), "Add a and b?", "Add a and b?\nitem: [\"a\",\"b\"]"),
    ] {
        let question = asked(pantry(), "add", spec.clone(), &arguments);
        assert_eq!(question.title, "Pantry: add");
        assert_eq!((question.said.as_str(), question.shown.as_str()), (said, shown));
    }
    let long = asked(pantry(), "add", spec, &json!({"item": "m".repeat(130)}));
    assert!(long.shown.ends_with(&format!("\nitem: \"{}\"", "m".repeat(130))), "{}", long.shown);
}

#[test]
fn of_many_and_long_arguments_it_is_told_how_much_is_left_out() {
    let many: serde_json::Map<String, Value> = (10..74).map(|n| (format!("p{n}"), json!("x".repeat(700)))).collect();
    let question = asked(pantry(), "send", of(&[], "Sends."), &many.into());
    assert!(question.said.contains("60 more"), "{}", question.said);
    assert!(question.said.len() <= MESSAGE_BYTES_MAX && question.shown.len() <= QUESTION_BYTES_MAX);
    assert!(question.shown.contains("(300 more characters)"), "{}", question.shown);
    assert!(question.shown.ends_with(" more arguments, which have no room here)"), "{}", question.shown);
}

#[test]
fn a_servers_own_words_are_told_as_its_own() {
    let question = from_server("pantry", "Really\u{1b}[2J delete\n\u{202e}all?");
    assert_eq!(question.title, "Pantry asks");
    assert_eq!(question.said, "Pantry asks: Really[2J delete all?");
    assert_eq!(question.shown, "Really<U+001B>[2J delete <U+202E>all?");
}

#[test]
fn what_a_call_does_is_told_in_its_own_words_if_they_can_be_filled() {
    let of = |progress: &str| {
        let spec = ToolSpec { progress: Some(progress.to_owned()), ..of(&[], "Adds.") };
        registered(pantry(), "add item", spec)
    };
    let arguments = json!({"item": "oat\nmilk", "count": 2, "none": null});
    for (progress, line) in [
        ("Reading your calendar", "Pantry: reading your calendar ..."),
        ("Reading your calendar...", "Pantry: reading your calendar ..."),
        ("Putting {count} of {item} in", "Pantry: putting 2 of \"oat milk\" in ..."),
        ("Looking for {none}", "Pantry: adding item ..."),
        ("Looking for {other}", "Pantry: adding item ..."),
        ("...", "Pantry: adding item ..."),
    ] {
        assert_eq!(of(progress).doing(&arguments), line);
    }
    let long = of("Reading {item}").doing(&json!({"item": "x".repeat(1_000)}));
    assert!(long.starts_with("Pantry: reading") && long.chars().count() <= PROGRESS_CHARS_MAX, "{long}");
}
