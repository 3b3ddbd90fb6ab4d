//! Which modules a model is told of.

use gateway_core::vocab::{Role, ToolCall, ToolSpec};
use serde_json::json;

use super::*;
use crate::{
    code::{
        Engine, Sandbox,
        std::{StdHost, StdPolicy},
        tools::tools,
    },
    permissions::ConfiguredClients,
    registry::{Registry, RunContext, Runner},
    secret::Secrets,
    source::{Scope, Source},
    test_support::{World, picture},
    workspace::NoWorkspace,
};

struct Never;

#[async_trait::async_trait]
impl Runner for Never {
    async fn run(&self, _context: RunContext, _call: ToolCall) -> gateway_core::vocab::ToolResult {
        unreachable!("nothing is called")
    }
}

/// A registry with the built-in tools, and those for programs.
fn executor() -> Executor {
    let (world, secrets) = (World::usual(), Secrets::default());
    let library = StdHost::new(StdPolicy::default(), Arc::new(NoWorkspace), world.ports().clock, None, secrets.clone());
    let given = tools(&Engine::new(Sandbox::new("/nonexistent".as_ref()), library.unwrap(), Arc::default()));
    let registry = Registry::with_built_ins_and(given.into(), ConfiguredClients::new(), secrets).unwrap();
    Executor::new(Arc::new(registry), world.ports())
}

/// Offers tools of an MCP server.
fn serve(executor: &Executor, server: &str, tools: impl Iterator<Item = (String, String)>) {
    let tool = |(name, description): (String, String)| {
        let spec = ToolSpec {
            name: format!("{server}.{name}"),
            description,
            input_schema: json!({"type": "object", "properties": {"text": {"type": "string"}}}),
            ..ToolSpec::default()
        };
        (spec, name)
    };
    let source = Source::Mcp(server.to_owned());
    executor.registry().register_named(source, Scope::Global, tools.map(tool).collect(), Arc::new(Never)).unwrap();
}

fn said(words: &str) -> [Message; 1] {
    [Message::text(Role::User, words)]
}

#[test]
fn all_modules_are_named_the_same_whatever_is_said() {
    let (executor, modules) = (executor(), Modules::default());
    let told = |words: &str| modules.told(&executor, "ada", "g1", &said(words)).unwrap();
    let list = told("what do I want to buy");
    assert!(list.is_whole && list == told("set a timer"), "{list:?}");
    assert!(list.text.starts_with(HEADING) && list.text.contains("\n@lorgnette/std: fs"), "{}", list.text);
    assert!(list.text.contains(": app-{list,start,stop}, calculator-evaluate, "), "{}", list.text);
    assert!(list.text.contains(", timer-{cancel,extend,list,set}\n"), "{}", list.text);
    assert!(!list.text.contains("code-{") && list.text.contains(", code-keep, "), "{}", list.text);
    // A server with several functions has a line.
    serve(&executor, "slack", ["list_channels", "post_message"].map(|name| (name.into(), "Talks.".into())).into_iter());
    let more = told("hello");
    assert!(more.text.contains("\n@capabilities/mcp-slack: listChannels, postMessage\n"), "{}", more.text);
    assert!(more.is_whole && more.text.contains(", timer-{"), "{}", more.text);
}

#[test]
fn names_with_the_same_first_word_stand_together() {
    for (names, written) in [
        (vec!["clock-time", "note-add", "note-list"], "clock-time, note-{add,list}"),
        (vec!["note", "note-add", "note-list-all", "notes"], "note, note-{add,list-all}, notes"),
        (vec!["note-add", "note"], "note-add, note"),
        (vec![], ""),
    ] {
        assert_eq!(together(&names), written);
    }
}

#[test]
fn of_many_modules_those_are_named_that_the_words_speak_for() {
    let (executor, modules) = (executor(), Modules::default());
    for server in 0..40 {
        let names = (0..12).map(|at| (format!("handle_thing_number_{server}_{at}"), "Does a thing.".to_owned()));
        let own = (server == 7).then(|| ("feed_penguins".to_owned(), "Feeds the penguins of the zoo.".to_owned()));
        serve(&executor, &format!("server{server}"), names.chain(own));
    }
    let told = |messages: &[Message]| modules.told(&executor, "ada", "g1", messages).unwrap();
    let list = told(&said("please feed the penguins"));
    assert!(!list.is_whole && list.text.len() < ALL_BYTES_MAX, "{}", list.text);
    assert!(list.text.contains("\n@capabilities/mcp-server7: feedPenguins, handleThing"), "{}", list.text);
    assert!(
        list.text.contains(" more\n") && list.text.ends_with("more modules; code.api lists all\n"),
        "{}",
        list.text
    );
    assert!(!list.text.contains("server9:"), "{}", list.text);
    // What a program of the last turns imported stays, whatever is said.
    let code = "import { server9 } from '@capabilities/mcp-server9';\nimport x from \"@capabilities/none\";";
    let call = ToolCall { id: "c1".into(), name: RUN.into(), arguments: json!({ "code": code }) };
    let before = Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] };
    let first = said("first")[0].clone();
    let during = told(&[first.clone(), before.clone()]);
    assert!(!during.text.contains("mcp-server9:") && during == told(std::slice::from_ref(&first)), "{}", during.text);
    assert_eq!(during, told(&[first.clone(), before.clone(), picture()]), "a picture begins no turn");
    let list = told(&[first, before, said("and again")[0].clone()]);
    assert!(list.text.contains("\n@capabilities/mcp-server9: handle"), "{}", list.text);
    assert!(!list.text.contains("none"), "{}", list.text);
}

#[test]
fn who_runs_no_programs_is_told_of_none() {
    let registry = Registry::with_built_ins().unwrap();
    let executor = Executor::new(Arc::new(registry), World::usual().ports());
    assert_eq!(Modules::default().told(&executor, "ada", "g1", &said("hello")), None);
}
