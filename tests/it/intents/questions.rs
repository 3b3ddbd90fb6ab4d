//! Commands with missing parts, the answers to questions about them, and utterances that continue a command.

use std::sync::Arc;

use chat_models::{
    ChatModel, Request,
    intents::{Decision, Engine},
};
use gateway_core::vocab::{CommandMatch, Pending, ToolCall, ToolFlags, ToolSpec};
use serde_json::{Value, json};

use super::fixture::{request, tool, tools};

/// The tools of the fixture, and others: of an MCP server, a mini-app and glasses.
fn all() -> Arc<[Arc<ToolSpec>]> {
    let phrases = ["water the {plant}", "water {plant} (for|during) {seconds:duration}"];
    let water = json!({"plant": {"type": "string", "title": "Plant"}, "seconds": {"type": "integer"}});
    let heat = json!({"level": {"type": "string", "enum": ["low", "medium", "very_high"]}});
    let feed =
        json!({"animal": {"type": "string", "description": "The animal to feed."}, "twice": {"type": "boolean"}});
    let mut list = tools().to_vec();
    list.push(tool("garden.water", water, &["plant"], &phrases).into());
    list.push(tool("oven.heat", heat, &["level"], &["heat the oven [to {level}]"]).into());
    list.push(tool("zoo.feed", feed, &["animal", "twice"], &["feed the {animal}"]).into());
    list.into()
}

fn with(text: &str, pending: Option<Pending>) -> Request {
    Request { pending, ..request(text, &all()) }
}

/// Says these one after the other, each as the answer to the last question; returns the questions, and the call at the
/// end.
fn dialogue(sentences: &[&str]) -> (Vec<String>, Option<(String, Value)>) {
    let engine = Engine::new();
    let (mut asked, mut pending) = (Vec::new(), None);
    for sentence in sentences {
        match engine.decide(&with(sentence, pending.take())) {
            Decision::Ask(text, open) => {
                asked.push(text);
                pending = Some(open);
            }
            Decision::Calls(mut calls) => {
                assert_eq!(calls.len(), 1, "{sentences:?}");
                let call = calls.remove(0);
                return (asked, Some((call.name, call.arguments)));
            }
            Decision::Say(_) => return (asked, None),
        }
    }
    (asked, None)
}

#[test]
fn what_is_missing_is_asked_for_and_filled_in() {
    for (sentences, questions, name, arguments) in [
        (&["Set a timer.", "Ten minutes."][..], &["For how long?"][..], "timer.set", json!({"seconds": 600})),
        (&["Set a timer", "for ten minutes."], &["For how long?"], "timer.set", json!({"seconds": 600})),
        (&["Set a timer please.", "make it ten minutes"], &["For how long?"], "timer.set", json!({"seconds": 600})),
        (
            &["Start a timer for", "Let's say, two hours, please."],
            &["For how long?"],
            "timer.set",
            json!({"seconds": 7200}),
        ),
        (&["Take a note.", "Buy milk."], &["What should the note say?"], "note.add", json!({"text": "Buy milk"})),
        (
            &["Remind me.", "To call Ben.", "In ten minutes."],
            &["What should I remind you of?", "When should I remind you?"],
            "reminder.set",
            json!({"text": "call Ben", "in_seconds": 600}),
        ),
        (
            // The time can be said first.
            &["Remind me.", "In ten minutes.", "Call Ben."],
            &["What should I remind you of?", "What should I remind you of?"],
            "reminder.set",
            json!({"text": "Call Ben", "in_seconds": 600}),
        ),
        (
            &["Remind me.", "Call Ben.", "At five."],
            &["What should I remind you of?", "When should I remind you?"],
            "reminder.set",
            json!({"text": "Call Ben", "at": "2026-05-13T17:00"}),
        ),
        (
            &["Remind me to call Ben.", "Tomorrow at eight."],
            &["When should I remind you?"],
            "reminder.set",
            json!({"text": "call Ben", "at": "2026-05-14T08:00"}),
        ),
        (&["Water the", "the ferns"], &["Which plant?"], "garden.water", json!({"plant": "the ferns"})),
        (
            &["Heat the oven.", "Very high."],
            &["Which level: low, medium or very high?"],
            "oven.heat",
            json!({"level": "very_high"}),
        ),
        (
            &["Feed the.", "penguins", "Yes, please."],
            &["The animal to feed?", "Twice, yes or no?"],
            "zoo.feed",
            json!({"animal": "penguins", "twice": true}),
        ),
    ] {
        let (asked, call) = dialogue(sentences);
        assert_eq!(asked, questions, "{sentences:?}");
        assert_eq!(call, Some((name.to_owned(), arguments)), "{sentences:?}");
    }
}

#[test]
fn another_command_is_that_command() {
    for (sentences, name) in [
        (["Set a timer.", "What time is it?"], "clock.time"),
        (["Take a note.", "Turn the volume up."], "audio.volume"),
        (["Heat the oven.", "Set a timer for ten minutes."], "timer.set"),
    ] {
        let (_, call) = dialogue(&sentences);
        assert_eq!(call.map(|(name, _)| name).as_deref(), Some(name), "{sentences:?}");
    }
    let (asked, _) = dialogue(&["Set a timer.", "Take a note."]);
    assert_eq!(asked, ["For how long?", "What should the note say?"]);
}

#[test]
fn the_same_is_asked_twice_at_most() {
    let (asked, call) = dialogue(&["Set a timer.", "Purple elephants.", "Green ones.", "Ten minutes."]);
    assert_eq!(asked, ["For how long?", "I did not understand that. For how long?"]);
    assert_eq!(call, None);
}

/// What follows a command without a part, and the answer to the question about it: calls, one more question ("?"), or
/// nothing ("-").
fn answered(engine: &Engine, language: &str, command: &str, answer: &str) -> (String, Value) {
    let tools = super::tools_once();
    let ask = |said: &str, pending| {
        engine.decide(&Request { language: language.to_owned(), pending, ..request(said, &tools) })
    };
    let Decision::Ask(_, pending) = ask(command, None) else { panic!("{command} asks nothing") };
    match ask(answer, Some(pending)) {
        Decision::Calls(mut calls) if calls.len() == 1 => {
            let call = calls.remove(0);
            (call.name, call.arguments)
        }
        Decision::Calls(calls) => panic!("{answer}: {calls:?}"),
        Decision::Ask(..) => ("?".to_owned(), json!({})),
        Decision::Say(_) => ("-".to_owned(), json!({})),
    }
}

#[test]
fn an_answer_is_taken_or_declined_or_asked_for_again() {
    let engine = Engine::new();
    for line in include_str!("../../data/intents/answers.tsv").lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[language, command, answer, name, arguments] = &cells[..] else { panic!("five cells: {line}") };
        let expected = (name.to_owned(), serde_json::from_str::<Value>(arguments).expect(line));
        assert_eq!(answered(&engine, language, command, answer), expected, "{language}: {command} {answer}");
    }
}

/// Held out: only numbers are printed, so that nobody makes rules for its rows.
#[test]
fn of_further_answers_those_with_a_part_are_taken() {
    let engine = Engine::new();
    let (mut given, mut missed, mut none, mut taken) = (0, 0, 0, 0);
    let table = include_str!("../../data/intents/answers_held_out.tsv");
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[language, command, answer, sign] = &cells[..] else { panic!("four cells: {line}") };
        let (name, _) = answered(&engine, language, command, answer);
        let is_call = name != "?" && name != "-";
        if sign == "+" {
            (given, missed) = (given + 1, missed + u32::from(!is_call));
        } else {
            (none, taken) = (none + 1, taken + u32::from(is_call));
        }
    }
    println!("{missed} of {given} answers were not taken, {taken} of {none} that are none were");
    // What is said in place of a note is one, unless it is known to be none.
    assert!(given > 10 && missed * 5 <= given && none > 10 && taken * 3 <= none * 2);
}

#[test]
fn thanks_and_greetings_are_answered_and_thanks_are_no_answer() {
    let engine = Engine::new();
    for (language, said) in
        [("en", "Thank you very much!"), ("de", "Danke."), ("es", "Muchas gracias."), ("fr", "Merci.")]
    {
        let asked = Request { language: language.to_owned(), ..with(said, None) };
        assert_eq!(engine.decide(&asked), Decision::Say("You're welcome.".to_owned()), "{said}");
    }
    for (language, said) in [("en", "Good morning."), ("de", "Hallo!"), ("es", "Buenos días."), ("fr", "Bonjour.")] {
        let asked = Request { language: language.to_owned(), ..with(said, None) };
        assert_eq!(engine.decide(&asked), Decision::Say("Hello. What can I do for you?".to_owned()), "{said}");
    }
    for said in ["Thank Ben.", "No thanks needed, but why?", "Please."] {
        assert_ne!(engine.decide(&with(said, None)), Decision::Say("You're welcome.".to_owned()), "{said}");
    }
    let (asked, _) = dialogue(&["Set a timer.", "Thanks."]);
    assert_eq!(asked.len(), 2, "the question is still open");
}

#[test]
fn who_may_say_no_declines_nothing_by_it() {
    let (asked, call) = dialogue(&["Feed the.", "penguins", "No."]);
    assert_eq!(asked.len(), 2);
    assert_eq!(call, Some(("zoo.feed".to_owned(), json!({"animal": "penguins", "twice": false}))));
    let (asked, call) = dialogue(&["Heat the oven.", "No, thanks."]);
    assert_eq!((asked.len(), call), (1, None), "it is no level");
}

#[test]
fn answers_are_understood_as_such_before_they_are_taken() {
    let engine = Engine::new();
    let matched = |text: &str, pending| engine.match_command(&with(text, pending)).map(|found| found.matched);
    let asked = |text: &str| match engine.decide(&with(text, None)) {
        Decision::Ask(_, pending) => Some(pending),
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(matched("Set a timer.", None), Some(CommandMatch::Incomplete));
    assert_eq!(matched("Ten minutes.", None), Some(CommandMatch::None));
    assert_eq!(matched("Ten minutes.", asked("Set a timer.")), Some(CommandMatch::Exact));
    assert_eq!(matched("Purple elephants.", asked("Set a timer.")), Some(CommandMatch::None));
    assert_eq!(matched("No, thanks.", asked("Set a timer.")), Some(CommandMatch::Exact));
    assert_eq!(matched("Buy milk.", asked("Take a note.")), Some(CommandMatch::FreeText));
    assert_eq!(matched("To call Ben.", asked("Remind me.")), Some(CommandMatch::Incomplete));
}

/// The call for an utterance that may continue an earlier one, of which this was done.
fn after(words: &str, done: &[(&str, Value)], text: &str) -> Option<(String, Value)> {
    let call = |(name, arguments): &(&str, Value)| ToolCall {
        id: "c".into(),
        name: (*name).into(),
        arguments: arguments.clone(),
    };
    let done = done.iter().map(call).collect();
    let pending = Pending { words: words.into(), done, ..Pending::default() };
    match Engine::new().decide(&with(text, Some(pending))) {
        Decision::Calls(mut calls) if calls.len() == 1 => calls.pop().map(|call| (call.name, call.arguments)),
        _ => None,
    }
}

#[test]
fn more_words_complete_a_command_and_nothing_is_done_twice() {
    let up = || ("audio.volume", json!({"change": "up"}));
    let ten = || ("timer.set", json!({"seconds": 600}));
    for (words, done, text, expected) in [
        ("turn the volume up", vec![up()], "to sixty percent.", Some(("audio.volume", json!({"level": 60})))),
        ("Set a timer.", vec![], "For ten minutes.", Some(ten())),
        // A call that has run and cannot be corrected.
        ("Set a timer for ten minutes", vec![ten()], "and thirty seconds", None),
        ("Take a note: buy milk", vec![("note.add", json!({"text": "buy milk"}))], "and eggs", None),
        ("Turn the volume up", vec![up()], "a bit", None),
        // A command of its own.
        ("Set a timer for ten minutes", vec![ten()], "what time is it", Some(("clock.time", json!({})))),
        ("turn the volume up", vec![up()], "Turn the volume up.", Some(up())),
    ] {
        let expected = expected.map(|(name, arguments)| (name.to_owned(), arguments));
        assert_eq!(after(words, &done, text), expected, "{words} + {text}");
    }
}

#[test]
fn what_a_tool_may_do_again_may_be_completed() {
    let engine = Engine::new();
    let spec = |flags| {
        let properties = json!({"place": {"type": "string"}});
        ToolSpec { flags, ..tool("weather.now", properties, &[], &["what is the weather [in {place}]"]) }
    };
    let plain = ToolFlags::default();
    for (flags, runs) in [
        (plain, false),
        (ToolFlags { read_only: true, ..plain }, true),
        (ToolFlags { idempotent: true, ..plain }, true),
    ] {
        let call = ToolCall { id: "c".into(), name: "weather.now".into(), arguments: json!({}) };
        let pending = Pending { words: "What is the weather?".into(), done: vec![call], ..Pending::default() };
        let tools: Arc<[Arc<ToolSpec>]> = vec![Arc::new(spec(flags))].into();
        let decided = engine.decide(&Request { pending: Some(pending), ..request("in Berlin", &tools) });
        assert_eq!(matches!(decided, Decision::Calls(_)), runs, "{flags:?}");
    }
}
