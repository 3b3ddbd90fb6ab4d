//! Tests of the view: no change separates a call from its results.

use alloc::{format, vec};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::vocab::{Role, ToolCall, ToolResult};

fn text(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn call(ids: &[&str]) -> Message {
    let call =
        |id: &&str| Part::ToolCall { call: ToolCall { id: (*id).into(), name: "x".into(), arguments: json!({}) } };
    Message { role: Role::Assistant, parts: ids.iter().map(call).collect() }
}

fn result(id: &str) -> Message {
    let result = Part::ToolResult { call_id: id.into(), result: ToolResult::said("done") };
    Message { role: Role::Tool, parts: vec![result] }
}

/// `hello`, calls a and b with their results, `bye`.
fn conversation() -> Vec<Message> {
    vec![text("hello"), call(&["a", "b"]), result("a"), result("b"), text("bye")]
}

fn seen(view: ContextView) -> Vec<alloc::string::String> {
    let word = |message: &Message| match message.parts.first() {
        Some(Part::Text { text }) => text.clone(),
        Some(Part::ToolCall { .. }) => "call".into(),
        Some(Part::ToolResult { call_id, .. }) => call_id.clone(),
        _ => "?".into(),
    };
    view.into_messages().iter().map(word).collect()
}

#[test]
fn changes_are_for_the_places_of_the_conversation() {
    let mut view = ContextView::new(conversation());
    assert_eq!(view.insert_before(0, text("first")), Ok(()));
    assert_eq!(view.insert_before(4, text("now")), Ok(()));
    assert_eq!(view.insert_before(5, text("later")), Ok(()));
    assert_eq!(view.insert_before(5, text("last")), Ok(()));
    assert_eq!(view.replace_at(0, text("HELLO")), Ok(()));
    assert_eq!(view.insert_before(6, text("beyond")), Err(Refused::NoSuchPlace));
    assert_eq!(seen(view), ["first", "HELLO", "call", "a", "b", "now", "bye", "later", "last"]);
}

#[test]
fn a_call_and_its_results_stay_together() {
    let mut view = ContextView::new(conversation());
    assert_eq!(view.insert_before(2, text("x")), Ok(()));
    assert_eq!(view.insert_before(4, text("y")), Ok(()));
    assert_eq!(view.replace_at(1, call(&["a"])), Err(Refused::PartsAPair));
    assert_eq!(view.replace_at(2, result("b")), Err(Refused::PartsAPair));
    assert_eq!(view.replace_at(3, result("b")), Ok(()));
    assert_eq!(seen(view), ["hello", "x", "call", "a", "b", "y", "bye"]);
    let mut view = ContextView::new(conversation());
    assert_eq!(view.delete_at(3), Ok(()));
    assert_eq!(view.replace_at(1, call(&["a", "b"])), Err(Refused::NoSuchPlace));
    assert_eq!(seen(view), ["hello", "bye"]);
}

/// A conversation of turns with steps of parallel calls, whose results come in one message or one by one.
fn random() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec((0..3_usize, 1..4_usize, any::<bool>()), 1..6).prop_map(|turns| {
        let mut messages = Vec::new();
        let mut id = 0;
        for (steps, calls, together) in turns {
            messages.push(text("question"));
            for _ in 0..steps {
                let ids: Vec<_> = (id..id + calls).map(|id| format!("{id}")).collect();
                id += calls;
                let names: Vec<&str> = ids.iter().map(|id| id.as_str()).collect();
                messages.push(call(&names));
                if together {
                    let parts = names.iter().flat_map(|id| result(id).parts).collect();
                    messages.push(Message { role: Role::Tool, parts });
                } else {
                    messages.extend(names.iter().map(|id| result(id)));
                }
            }
            messages.push(Message::text(Role::Assistant, "answer"));
        }
        messages
    })
}

proptest! {
    #[test]
    fn nothing_comes_between_a_call_and_its_results(
        messages in random(),
        changes in prop::collection::vec((0..3_u8, any::<prop::sample::Index>()), 0..12),
    ) {
        let mut view = ContextView::new(messages.clone());
        for (kind, at) in changes {
            let at = at.index(messages.len());
            let _refused_or_not = match kind {
                0 => view.insert_before(at, text("put in")),
                1 => view.delete_at(at),
                _ => view.replace_at(at, text("put in")),
            };
        }
        // Calls without a result so far; while there are any, only results may follow.
        let mut open: Vec<alloc::string::String> = Vec::new();
        for message in view.into_messages() {
            let results = message.parts.iter().any(|part| matches!(part, Part::ToolResult { .. }));
            prop_assert!(open.is_empty() || results, "something stands between");
            for part in message.parts {
                match part {
                    Part::ToolCall { call } => open.push(call.id),
                    Part::ToolResult { call_id, .. } => {
                        let place = open.iter().position(|id| *id == call_id);
                        prop_assert!(place.is_some(), "a result without its call");
                        open.remove(place.unwrap_or_default());
                    }
                    _ => {}
                }
            }
        }
        prop_assert!(open.is_empty(), "a call without its result");
    }
}
