//! Tests of the choice of tools; its quality is measured on tests/data/router.

use std::sync::Arc;

use gateway_core::vocab::{Message, Part, Phrases, Role, ToolCall, ToolFlags, ToolSpec};
use serde_json::json;

use super::*;
use crate::test_support::picture;

fn tool(name: &str, description: &str, always: bool) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.into(),
        description: description.into(),
        input_schema: json!({"type": "object", "properties": {}}),
        flags: ToolFlags { always, ..ToolFlags::default() },
        ..ToolSpec::default()
    })
}

fn fixture() -> Specs {
    let mut tools =
        vec![tool("clock.time", "Tells the time.", true), tool("weather.now", "Weather: rain and wind.", false)];
    tools.extend(
        (0..30).map(|number| tool(&format!("zoo.{number:02}"), &format!("Feeds animal number x{number}."), false)),
    );
    tools.into()
}

fn names(choice: &Choice) -> Vec<&str> {
    choice.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// A router that takes every matching word: the minimum score is tested on the table.
fn eager() -> Router {
    Router::new(Config { score_min: 0.1, ..Config::default() })
}

fn said(now: &str) -> Query {
    Query { now: now.into(), ..Query::default() }
}

#[test]
fn words_choose_and_what_is_always_on_stays() {
    let choice = Router::default().choose(&fixture(), &said("Is there any rain?"), 128);
    assert_eq!((names(&choice), choice.reason), (vec!["clock.time", "weather.now"], Reason::Words));
}

#[test]
fn in_doubt_all_are_offered_up_to_the_maximum_of_the_provider() {
    let (router, fixture) = (Router::default(), fixture());
    let choice = router.choose(&fixture, &said("Tell me a joke."), 128);
    assert_eq!((choice.tools.len(), choice.reason), (32, Reason::Doubt));
    let choice = router.choose(&fixture, &said("Tell me a joke."), 4);
    assert_eq!(names(&choice), ["clock.time", "weather.now", "zoo.00", "zoo.01"]);
}

#[test]
fn few_tools_are_never_routed() {
    let few: Specs = fixture()[..13].into();
    let choice = Router::default().choose(&few, &said("rain"), 128);
    assert!(Arc::ptr_eq(&choice.tools, &few) && choice.reason == Reason::Few);
}

#[test]
fn what_was_called_lately_stays_and_what_was_said_before_helps() {
    let mut messages = vec![Message::text(Role::User, "How is the wind?")];
    let call = ToolCall { id: "1".into(), name: "zoo.07".into(), arguments: json!({}) };
    messages.push(Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] });
    messages.push(Message::text(Role::User, "And tomorrow?"));
    let said = Query::of(&messages);
    assert_eq!((said.now.as_str(), said.before.as_str()), ("And tomorrow?", "How is the wind?"));
    messages.push(picture());
    assert_eq!(Query::of(&messages), said, "a picture that a tool returned is not the wearer's");
    let choice = eager().choose(&fixture(), &said, 128);
    assert_eq!(names(&choice), ["clock.time", "zoo.07", "weather.now"]);
}

#[test]
fn calls_count_for_three_turns_after_their_own_and_within_it_the_list_stays_the_same() {
    let turn = |number: u8| {
        let call = ToolCall { id: "1".into(), name: format!("zoo.{number:02}"), arguments: json!({}) };
        let called = Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] };
        [Message::text(Role::User, format!("Is there any rain or wind on day {number}?")), called]
    };
    let messages: Vec<Message> = (0..5).flat_map(turn).collect();
    let (first, behind_the_call) = (Query::of(&messages[..9]), Query::of(&messages));
    assert_eq!(first.called, ["zoo.03", "zoo.02", "zoo.01"]);
    let offered = |said: &Query| Router::default().choose(&fixture(), said, 128).tools;
    assert_eq!(offered(&first), offered(&behind_the_call));
}

#[test]
fn a_phrase_counts_though_the_description_is_silent() {
    let mut tools = fixture().to_vec();
    let mut spec = ToolSpec::clone(&tools[20]);
    let templates = vec!["release the {animal} [into the meadow]".into()];
    spec.phrases = vec![Phrases { language: "en".into(), templates }];
    tools[20] = Arc::new(spec);
    let choice = eager().choose(&tools.into(), &said("Release the goats!"), 128);
    assert_eq!(names(&choice), ["clock.time", "zoo.18"]);
}

proptest::proptest! {
    #[test]
    fn whatever_is_said_no_tool_is_offered_twice_and_none_beyond_the_maximum(now in ".{0,60}", max in 1_usize..40) {
        let fixture = fixture();
        let choice = Router::default().choose(&fixture, &said(&now), max);
        let mut seen = names(&choice);
        seen.sort_unstable();
        let count = seen.len();
        seen.dedup();
        assert_eq!(count, seen.len());
        assert!(count <= max && count > 0);
    }
}
