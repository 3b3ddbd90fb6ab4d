//! Cached declarations change nothing but the time that a request takes.

mod common;

use std::sync::Arc;

use chat_models::{
    Request, Tools, anthropic::Anthropic, chat_completions::ChatCompletions, gemini::Gemini, provider::Provider,
    responses::Responses,
};
use common::request;
use gateway_core::vocab::{Message, Part, Role, ToolCall, ToolResult, ToolSpec};
use proptest::prelude::*;
use serde_json::json;

fn providers() -> [Box<dyn Provider>; 4] {
    use chat_models::{anthropic, chat_completions, gemini, responses};
    [
        Box::new(ChatCompletions::new(chat_completions::Options::new("m"))),
        Box::new(Responses::new(responses::Options::new("m"))),
        Box::new(Anthropic::new(anthropic::Options::new("m"))),
        Box::new(Gemini::new(gemini::Options::new("gemini-3-pro"))),
    ]
}

/// Few names, so that collisions and repetitions occur; a property that some providers rename, and a description that
/// distinguishes two tools of one name.
fn tool(name: &str, which: u32) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.to_owned(),
        description: format!("The tool {which}."),
        input_schema: json!({"type": "object", "properties": {
            format!("some-{which}"): {"type": "string"}, "free": {"type": "object"}}}),
        guidance: which.is_multiple_of(3).then(|| format!("Use {which} with care.")),
        ..ToolSpec::default()
    })
}

fn asked(tools: Tools, called: &[String]) -> Request {
    let mut request = request("Go on", &tools);
    for (at, name) in called.iter().enumerate() {
        let id = format!("c{at}");
        let call = ToolCall { id: id.clone(), name: name.clone(), arguments: json!({"some-1": "x", "free": {"a": 1}}) };
        request.messages.extend([
            Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] },
            Message {
                role: Role::Tool,
                parts: vec![Part::ToolResult { call_id: id, result: ToolResult::said("fine") }],
            },
        ]);
    }
    request.messages.push(Message::text(Role::User, "and now?"));
    request
}

fn some_name() -> impl Strategy<Value = String> {
    "[a./_]{1,3}"
}

proptest! {
    /// Lists of the same tools in any order and number, and conversations that have called anything: the result is the
    /// same with and without cached declarations.
    #[test]
    fn what_is_kept_changes_nothing(
        names in prop::collection::vec(some_name(), 1..8),
        questions in prop::collection::vec(
            (prop::collection::vec(any::<prop::sample::Index>(), 0..10), prop::collection::vec(some_name(), 0..4)),
            1..24,
        ),
    ) {
        let all: Vec<Arc<ToolSpec>> = (0..).zip(&names).map(|(which, name)| tool(name, which)).collect();
        let keeping = providers();
        for (chosen, called) in &questions {
            let tools: Tools = chosen.iter().map(|index| index.get(&all).clone()).collect();
            let request = asked(tools, called);
            for (keeps, fresh) in keeping.iter().zip(providers()) {
                prop_assert_eq!(keeps.render(&request), fresh.render(&request));
            }
        }
    }
}

/// A freed tool leaves its address to another, unless it is held.
#[test]
fn a_new_tool_is_never_taken_for_one_that_is_gone() {
    let keeping = providers();
    for which in 0..300 {
        let request = asked([tool("a", which)].into(), &[]);
        for provider in &keeping {
            let text = String::from_utf8(provider.render(&request).body.bytes().to_vec()).expect("UTF-8");
            assert!(text.contains(&format!("The tool {which}.")), "{}: {text}", provider.model());
        }
    }
}
