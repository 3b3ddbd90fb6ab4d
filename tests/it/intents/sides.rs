//! Sentences that tools of several sources match: which tool is called, when the wearer is asked, and what is stored.

use std::sync::Arc;

use chat_models::{
    ChatModel, Request,
    intents::{self, Decision, Engine},
};
use gateway_core::vocab::{
    AppPresence, CommandMatch, ModelEvent, Pending, Preference, Scene, SceneApp, Side, ToolSpec,
};
use serde_json::{Value, json};

use super::fixture::{request, tool, tools};

fn built_in(group: &str) -> Side {
    Side::BuiltIn(Some(group.into()))
}

fn app(name: &str) -> Side {
    Side::App(format!("com.example.{name}"))
}

/// A kitchen clock with timers, an app and a server with lists, and an app for reminders.
fn all() -> Arc<[Arc<ToolSpec>]> {
    let text = |name: &str| json!({name: {"type": "string"}});
    let of = |side: Side, spec: ToolSpec| Arc::new(ToolSpec { side, ..spec });
    let minutes = json!({"minutes": {"type": "number"}});
    let cook = ["(set|start) a timer for {minutes} minutes", "cancel the timer"];
    let mut list = tools().to_vec();
    list.push(of(app("clock"), tool("clock.cook", minutes, &[], &cook)));
    list.push(of(app("lists"), tool("lists.add", text("item"), &["item"], &["(add|put) {item} (to|on) my list"])));
    list.push(of(app("todo"), tool("todo.add", text("task"), &["task"], &["add {task} to my list"])));
    list.push(of(app("todo"), tool("todo.remind", text("task"), &["task"], &["remind me to {task}"])));
    let files = Side::Mcp("home-files".into());
    list.push(of(files, tool("files.add", text("line"), &["line"], &["add {line} to my shopping list"])));
    list.into()
}

/// The installed apps, with these states.
fn scene(present: &[(&str, AppPresence)]) -> Scene {
    let names = [("clock", "Kitchen Clock"), ("lists", "Lists"), ("todo", "Todo")];
    let apps = names.map(|(package, name)| SceneApp {
        package: format!("com.example.{package}"),
        name: name.into(),
        presence: present.iter().find(|(of, _)| *of == package).map_or(AppPresence::Idle, |(_, presence)| *presence),
    });
    Scene { apps: apps.to_vec(), ..Scene::default() }
}

fn with(text: &str, scene: &Scene, pending: Option<Pending>) -> Request {
    Request { pending, scene: Arc::new(scene.clone()), ..request(text, &all()) }
}

#[derive(Debug, PartialEq)]
enum Said {
    Calls(String, Value),
    Asks(String),
    Nothing,
}

fn say(text: &str, scene: &Scene, pending: Option<Pending>) -> (Said, Option<Pending>) {
    match Engine::new().decide(&with(text, scene, pending)) {
        Decision::Calls(mut calls) => {
            assert_eq!(calls.len(), 1, "{text}");
            let call = calls.remove(0);
            (Said::Calls(call.name, call.arguments), None)
        }
        Decision::Ask(text, pending) => (Said::Asks(text), Some(pending)),
        Decision::Say(_) => (Said::Nothing, None),
    }
}

fn called(text: &str, scene: &Scene) -> String {
    match say(text, scene, None).0 {
        Said::Calls(name, _) => name,
        Said::Asks(question) => question,
        Said::Nothing => "nothing".into(),
    }
}

const TIMER: &str = "Set a timer for ten minutes.";
const ADD: &str = "Add milk to my list.";
const WHICH_TIMER: &str = "With Kitchen Clock or with the built-in timers?";
const WHICH_LIST: &str = "With Todo or with Lists?";

#[test]
fn the_side_that_is_alive_takes_it() {
    use AppPresence::{Idle, InFront, Running};
    let busy = |lives: &[_]| Scene { busy: vec![built_in("timers")], ..scene(lives) };
    for (sentence, scene, expected) in [
        (TIMER, scene(&[("clock", InFront)]), "clock.cook"),
        (TIMER, scene(&[("clock", Running)]), "clock.cook"),
        (TIMER, busy(&[]), "timer.set"),
        (TIMER, busy(&[("clock", InFront)]), WHICH_TIMER),
        (TIMER, scene(&[]), WHICH_TIMER),
        // The state of an unrelated app does not matter.
        (TIMER, scene(&[("todo", InFront)]), WHICH_TIMER),
        (ADD, busy(&[]), WHICH_LIST),
        (ADD, scene(&[("lists", Running), ("todo", InFront)]), "todo.add"),
        (ADD, scene(&[("lists", InFront), ("todo", Running)]), "lists.add"),
        (ADD, scene(&[("lists", Running), ("todo", Idle)]), "lists.add"),
        (ADD, scene(&[("lists", Running), ("todo", Running)]), WHICH_LIST),
        // Only one tool matches.
        ("Put milk on my list.", scene(&[("todo", InFront)]), "lists.add"),
        ("What time is it?", scene(&[("todo", InFront)]), "clock.time"),
    ] {
        assert_eq!(called(sentence, &scene), expected, "{sentence} {scene:?}");
    }
}

#[test]
fn where_nothing_is_alive_more_words_of_its_own_count() {
    let idle = scene(&[]);
    assert_eq!(called("Add milk to my shopping list.", &idle), "files.add");
    assert_eq!(called("Remind me to call Ben at five.", &idle), "reminder.set");
    // A foreground app takes what it matches. If it only runs, the wearer is asked: otherwise the time is lost.
    let in_front = scene(&[("todo", AppPresence::InFront)]);
    assert_eq!(called("Remind me to call Ben at five.", &in_front), "todo.remind");
    let runs = scene(&[("todo", AppPresence::Running)]);
    assert_eq!(called("Remind me to call Ben at five.", &runs), "With Todo or with the built-in reminders?");
    // Without its time it is an incomplete reminder, and the source is still asked.
    assert_eq!(called("Remind me to call Ben.", &idle), "With Todo or with the built-in reminders?");
}

#[test]
fn the_wearer_can_say_with_what() {
    let idle = scene(&[]);
    let cook = |minutes: i64| Said::Calls("clock.cook".into(), json!({"minutes": minutes}));
    let add = |name: &str, property: &str| Said::Calls(name.into(), json!({property: "milk"}));
    for (sentence, expected) in [
        ("Set a timer for ten minutes with Kitchen Clock.", cook(10)),
        ("Set a timer for ten minutes with the kit chen clock, please.", cook(10)),
        ("In the Kitchen Clock app, set a timer for ten minutes.", cook(10)),
        ("Using Todo, add milk to my list.", add("todo.add", "task")),
        ("Using to do add milk to my list", add("todo.add", "task")),
        ("Add milk to my list in Lists.", add("lists.add", "item")),
        ("Add milk to my shopping list with home files.", add("files.add", "line")),
        (
            "Set a timer for ten minutes with the built-in one.",
            Said::Calls("timer.set".into(), json!({"seconds": 600})),
        ),
        ("Remind me to call Ben with the built-in reminders.", Said::Asks("When should I remind you?".into())),
        ("Remind me to call Ben with Todo.", Said::Calls("todo.remind".into(), json!({"task": "call Ben"}))),
        // A source that cannot be called is not offered.
        (
            "Remind me to play with Lists at five.",
            Said::Calls("reminder.set".into(), json!({"text": "play with Lists", "at": "2026-05-13T17:00"})),
        ),
    ] {
        assert_eq!(say(sentence, &idle, None).0, expected, "{sentence}");
    }
    // The states and preferences of other sources do not count then.
    let other = Scene {
        preferences: Arc::new([Preference { side: built_in("timers"), over: app("clock") }]),
        busy: vec![built_in("timers")],
        ..scene(&[])
    };
    assert_eq!(called("Set a timer for ten minutes with Kitchen Clock.", &other), "clock.cook");
}

#[test]
fn doubt_is_asked_and_the_answer_chooses() {
    let idle = scene(&[]);
    for (answer, expected) in [
        ("Todo.", "todo.add"),
        ("With to do, please.", "todo.add"),
        ("Lists.", "lists.add"),
        ("The Lists app.", "lists.add"),
        ("The second one.", "lists.add"),
    ] {
        let (asked, pending) = say(ADD, &idle, None);
        assert_eq!(asked, Said::Asks(WHICH_LIST.into()));
        let Said::Calls(name, arguments) = say(answer, &idle, pending).0 else { panic!("{answer}") };
        assert_eq!(name, expected, "{answer}");
        assert_eq!(arguments.as_object().and_then(|all| all.values().next()), Some(&json!("milk")));
    }
    for answer in ["The built-in one.", "built in", "The timers."] {
        let (_, pending) = say(TIMER, &idle, None);
        assert_eq!(say(answer, &idle, pending).0, Said::Calls("timer.set".into(), json!({"seconds": 600})), "{answer}");
    }
    let (_, pending) = say(ADD, &idle, None);
    let again = Said::Asks(format!("I did not understand that. {WHICH_LIST}"));
    assert_eq!(say("Purple elephants.", &idle, pending).0, again);
    // The missing part is asked for afterwards.
    let (_, pending) = say("Remind me to call Ben.", &idle, None);
    let (asked, pending) = say("The built-in one.", &idle, pending);
    assert_eq!(asked, Said::Asks("When should I remind you?".into()));
    let expected = json!({"text": "call Ben", "in_seconds": 600});
    assert_eq!(say("In ten minutes.", &idle, pending).0, Said::Calls("reminder.set".into(), expected));
}

#[test]
fn a_choice_is_told_to_be_kept() {
    let idle = scene(&[]);
    let (_, pending) = say(ADD, &idle, None);
    let request = with("Todo.", &idle, pending);
    for events in [Engine::new().answer_on_box(&request), Engine::new().answer_command(&request)] {
        let events = events.expect("it is understood");
        let chosen = Preference { side: app("todo"), over: app("lists") };
        assert_eq!(events[0], ModelEvent::Chosen(chosen));
        assert!(matches!(&events[1], ModelEvent::ToolCall(call) if call.name == "todo.add"), "{events:?}");
    }
    // With or without a model, the question is which source is meant, and the words are a command.
    let ask = with(ADD, &idle, None);
    let events = Engine::new().answer_command(&ask).expect("no model is asked");
    assert!(matches!(&events[0], ModelEvent::Question { text, .. } if text == WHICH_LIST), "{events:?}");
    assert_eq!(Engine::new().match_command(&ask).map(|found| found.matched), Some(CommandMatch::FreeText));
    let timer = Engine::new().match_command(&with(TIMER, &idle, None));
    assert_eq!(timer.map(|found| found.matched), Some(CommandMatch::Exact));
}

#[test]
fn what_was_chosen_holds_for_all_that_both_understand() {
    let chosen = |side: &Side, over: &Side| Preference { side: side.clone(), over: over.clone() };
    let prefers = |all: &[Preference], lives: &[_]| Scene { preferences: all.into(), ..scene(lives) };
    let (todo, lists, reminders) = (app("todo"), app("lists"), built_in("reminders"));
    let for_todo = [chosen(&todo, &lists), chosen(&todo, &reminders)];
    for sentence in ["Remind me to call Ben.", "Remind me to call Ben at five."] {
        assert_eq!(called(sentence, &prefers(&for_todo, &[])), "todo.remind", "{sentence}");
    }
    assert_eq!(called(ADD, &prefers(&for_todo, &[])), "todo.add");
    assert_eq!(called(ADD, &prefers(&for_todo, &[("lists", AppPresence::Running)])), "todo.add");
    // The foreground app is meant.
    assert_eq!(called(ADD, &prefers(&for_todo, &[("lists", AppPresence::InFront)])), "lists.add");
    // A preference for reminders does not apply to timers.
    assert_eq!(called(TIMER, &prefers(&[chosen(&reminders, &app("clock"))], &[])), WHICH_TIMER);
    assert_eq!(called(TIMER, &prefers(&[chosen(&Side::default(), &app("clock"))], &[])), "timer.set");
    let built = prefers(&[chosen(&reminders, &todo)], &[]);
    assert_eq!(called("Remind me to call Ben.", &built), "When should I remind you?");
}

/// An app's own sentence that is switched off, so that its tool is not offered. Another tool takes it only if its own
/// sentences cover everything that was said, and dictated text is kept verbatim.
#[test]
fn what_is_switched_off_is_not_guessed_at() {
    let said = |text: &str| say(text, &Scene::default(), None).0;
    let kept = |text: &str| Said::Calls("memory.create".into(), json!({"text": text}));
    assert_eq!(said("Keep in mind the dentist."), kept("the dentist"), "memory's words, but for \u{201c}that\u{201d}");
    for sentence in ["Keep the dentist in mind.", "Keep the dentist.", "Mind the dentist.", "The dentist at noon."] {
        assert_eq!(said(sentence), Said::Nothing, "{sentence}");
    }
}

#[test]
fn a_sentence_is_explained() {
    let idle = scene(&[]);
    let explain = |text: &str, scene: &Scene, offered: &[Arc<ToolSpec>]| {
        let request = Request { tools: offered.into(), ..with(text, scene, None) };
        Engine::new().explain(&request, &all())
    };
    let tools = all();
    let asked = explain(ADD, &idle, &tools);
    let names: Vec<&str> = asked.calls.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!((asked.said.as_str(), names), (WHICH_LIST, vec!["todo.add", "lists.add"]));

    let taken = explain(ADD, &scene(&[("lists", AppPresence::InFront)]), &tools);
    assert_eq!(taken.calls.len(), 1);
    assert_eq!((taken.calls[0].tool.as_str(), &taken.calls[0].arguments), ("lists.add", &json!({"item": "milk"})));
    assert_eq!(taken.calls[0].template.as_deref(), Some("(add|put) {item} (to|on) my list"));
    assert_eq!((taken.how.as_str(), taken.why.as_deref()), ("as it is written", Some("Lists is in front")));
    let near = |explained: &intents::Explanation, tool: &str| {
        let near = explained.near.iter().find(|near| near.tool == tool).map(|near| near.reason.clone());
        near.unwrap_or_else(|| panic!("{tool}: {:?}", explained.near))
    };
    assert_eq!(near(&taken, "todo.add"), "understands it as well, but Lists is in front");

    let off: Vec<Arc<ToolSpec>> = tools.iter().filter(|tool| tool.name != "lists.add").cloned().collect();
    let without = explain("Put milk on my list.", &idle, &off);
    assert!(without.calls.is_empty() && !without.said.is_empty(), "{without:?}");
    assert_eq!(near(&without, "lists.add"), "is switched off for this user, or not offered here");
    assert!(without.near.iter().any(|near| near.reason == "no sentence of it fits"), "{without:?}");

    let lacks = explain("Add to my list.", &scene(&[("todo", AppPresence::InFront)]), &tools);
    assert_eq!((lacks.calls[0].tool.as_str(), lacks.how.as_str()), ("todo.add", "as the beginning of a command"));
    assert_eq!(near(&lacks, "lists.add"), "lacks item");
}
