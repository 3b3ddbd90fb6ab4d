//! What people say, sentence templates, and what is to be spoken.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use audio::{
    models::{catalogue, default_dir},
    tts::{CLAUSE_CHARS_MAX, Voice},
};
use chat_models::{
    Request, Tools,
    intents::{Decision, Engine, check, is_understood},
};
use gateway_core::vocab::{Message, Phrases, Role, Timestamp, ToolSpec};
use serde_json::{Value, json};
use tools::{
    code::routine::Routine,
    fuzzing, phrases,
    programs::{OfRoutine, PHRASE_BYTES_MAX, PHRASES_MAX, ROUTINE_NAME_BYTES_MAX, check_name, phrase},
    registry,
};

/// Wednesday, 2026-05-13 14:30 at UTC+2.
const NOW: Timestamp = Timestamp { mono_us: 0, wall_ms: 1_778_675_400_000, offset_s: 7_200 };

/// Two sentences, one after the other if they are two lines: the second answers a question about the first.
pub fn utterance(bytes: &[u8]) {
    static ENGINE: LazyLock<(Engine, Tools)> =
        LazyLock::new(|| (Engine::new(), tools::builtin::all().0.into_iter().map(Arc::new).collect()));
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (engine, tools) = &*ENGINE;
    let mut request = Request { tools: tools.clone(), now: NOW, ..Request::default() };
    for line in text.splitn(2, '\n') {
        request.messages.push(Message::text(Role::User, line));
        match engine.decide(&request) {
            Decision::Calls(calls) => {
                assert!(!calls.is_empty());
                for call in calls {
                    let tool = tools.iter().find(|tool| tool.name == call.name).expect("an offered tool");
                    let schema = tools::schema::Schema::compile(&tool.input_schema).expect("a built-in schema");
                    if let Err(violation) = schema.check(&call.arguments) {
                        panic!("{} {}: {violation:?}", call.name, call.arguments);
                    }
                }
                return;
            }
            Decision::Ask(question, pending) => {
                assert!(!question.trim().is_empty());
                request.pending = Some(pending);
            }
            Decision::Say(said) => {
                assert!(said.len() <= 2_048, "{said}");
                return;
            }
        }
    }
    drop(fuzzing::calculation(text));
}

/// Templates of a foreign tool in the first line, a sentence in the second, its schema behind them.
pub fn template(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.splitn(3, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (template, sentence, schema) = (next(), next(), next());
    let input_schema = serde_json::from_str::<Value>(schema).unwrap_or_else(|_| {
        json!({"type": "object", "properties": {
            "text": {"type": "string"}, "count": {"type": "integer"}, "yes": {"type": "boolean"},
            "which": {"type": "string", "enum": ["one", "two"]},
        }})
    });
    let ours = phrases::check(template, &input_schema);
    let tool = ToolSpec {
        name: "a.b".into(),
        description: "A tool.".into(),
        input_schema,
        phrases: vec![Phrases { language: "en".into(), templates: vec![template.to_owned()] }],
        ..ToolSpec::default()
    };
    if tools::registry::check(&tool).is_ok() {
        assert_eq!(ours, Ok(()), "the registry takes what the check refuses");
        drop(phrases::example(&tool, "en"));
    }
    drop(check(&tool));
    let messages = vec![Message::text(Role::User, sentence)];
    let request = Request { messages, tools: [Arc::new(tool)].into(), now: NOW, ..Request::default() };
    drop(Engine::new().decide(&request));
}

/// What a model may keep of a program: a name in the first line, a phrase in each of the others. What is accepted makes a
/// tool that can be registered, whose title can be shown, and which each of its phrases calls. A phrase with a word of
/// its own is accepted.
pub fn routine(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.split('\n');
    let name = lines.next().unwrap_or_default();
    let phrases: Vec<String> = lines.take(PHRASES_MAX).filter_map(|line| phrase(line).ok()).collect();
    for kept in &phrases {
        assert!(kept.len() <= PHRASE_BYTES_MAX && !kept.contains(char::is_control), "{kept:?}");
        assert_eq!(phrase(kept).as_ref(), Ok(kept), "what is kept can be kept");
    }
    if check_name(name).is_err() {
        return;
    }
    assert!((1..=ROUTINE_NAME_BYTES_MAX).contains(&name.len()));
    let of = OfRoutine { name: name.to_owned(), version: 1 };
    let mut routine = Routine { of, source: String::new(), phrases, tools: BTreeMap::new() };
    let tool = Arc::new(routine.spec("en"));
    routine.phrases.retain(|phrase| {
        let accepted = !gateway_core::is_command(phrase) && is_understood(&tool, "en", phrase);
        let has_own_word = phrase.split(' ').any(|word| word == "summary");
        assert!(accepted || !has_own_word || gateway_core::is_command(phrase), "{phrase:?} is refused");
        accepted
    });
    let spec = routine.spec("en");
    registry::check(&spec).expect("a tool that can be registered");
    assert_eq!(check(&spec).len(), 0, "phrases that can be compiled");
    let tools: Tools = [Arc::new(spec)].into();
    for said in &routine.phrases {
        let request = Request {
            messages: vec![Message::text(Role::User, said)],
            tools: tools.clone(),
            now: NOW,
            ..Request::default()
        };
        let Decision::Calls(calls) = Engine::new().decide(&request) else { panic!("{said:?} calls nothing") };
        assert_eq!(calls.first().map(|call| call.name.as_str()), Some(&*routine.tool()), "{said:?}");
    }
}

/// A clause of a model, in phonemes.
pub fn clause(bytes: &[u8]) {
    static VOICE: LazyLock<Voice> =
        LazyLock::new(|| Voice::load(&default_dir().join(catalogue::HIBARI)).expect("`cargo xtask fetch` installs it"));
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match VOICE.phoneme_ids(text) {
        Ok(stretches) => {
            assert!(stretches.iter().all(|ids| !ids.is_empty() && ids.len() <= 400));
            let ids: usize = stretches.iter().map(Vec::len).sum();
            assert!(ids <= 200 * (text.len() + 1), "{ids} phonemes of {} bytes", text.len());
        }
        Err(_) => assert!(text.chars().count() > CLAUSE_CHARS_MAX),
    }
}
