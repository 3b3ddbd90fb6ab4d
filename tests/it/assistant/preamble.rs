//! The assistant in addition to its answer: a preamble while a tool takes long, follow-ups, silence if a tool uses the
//! display itself, and a restart of the turn if tools change.

use std::sync::Arc;

use async_trait::async_trait;
use firmware_sim::{Event, Glasses, Seen};
use gateway::control::Request;
use gateway_core::vocab::{ClientClass, Content, ToolCall, ToolFlags, ToolResult, ToolSpec};
use serde_json::{Value, json};
use tokio::sync::watch;
use tools::{
    registry::{RunContext, Runner},
    source::{Scope, Source},
};

use super::{
    has, model,
    provider::{Answer, Provider, names},
    record,
};
use crate::world::{USER, World, text, until};

/// How long the core waits for a tool before the preamble, in microseconds.
const PREAMBLE_US: u64 = 1_000_000;
/// What the core has the voice say when the tool takes long.
const PREAMBLE: &str = "let me check";
/// The follow-up that the tool suggests.
pub const NEXT: &str = "what about tomorrow";

/// A weather tool that answers when the test allows it.
struct Weather {
    may_answer: watch::Receiver<bool>,
    result: ToolResult,
}

#[async_trait]
impl Runner for Weather {
    async fn run(&self, context: RunContext, _call: ToolCall) -> ToolResult {
        let mut may_answer = self.may_answer.clone();
        tokio::select! {
            allowed = may_answer.wait_for(|may| *may) => drop(allowed.expect("a test")),
            () = context.cancel.cancelled() => {}
        }
        self.result.clone()
    }
}

fn source() -> Source {
    Source::App("weather".into())
}

/// Registers the tool; it answers once the sender sends `true`.
pub fn weather(world: &World, result: ToolResult) -> watch::Sender<bool> {
    let (allow, may_answer) = watch::channel(false);
    let spec = ToolSpec {
        name: "weather.look".into(),
        description: "Looks at the weather.".into(),
        input_schema: json!({"type": "object", "properties": {}}),
        flags: ToolFlags { read_only: true, ..ToolFlags::default() },
        // The limit of the test itself.
        timeout_ms: Some(60_000),
        ..ToolSpec::default()
    };
    let registry = &world.gateway().services().registry;
    let registered = registry.register(source(), Scope::Global, vec![spec], Arc::new(Weather { may_answer, result }));
    registered.expect("registered");
    allow
}

/// A gateway whose model is the provider's branch `one`, with every tool offered.
pub async fn world(provider: &Provider, settings: &str) -> World {
    let model = model(provider, "chat_completions", "one");
    World::with(&format!("[model]\n{model}[router]\ntools = 1000\n{settings}")).await
}

/// The text that begins to be spoken with an event, in lower case: a caption is that of a speech's first clause.
fn said(event: &Event) -> Option<String> {
    match &event.seen {
        Seen::SpeechStart { text, .. } => Some(text.to_lowercase()),
        _ => None,
    }
}

/// The text that is shown with an event, in lower case and on one line.
pub fn shown(event: &Event) -> Option<String> {
    match &event.seen {
        Seen::Display { text, .. } => Some(text.to_lowercase().replace('\n', " ")),
        _ => None,
    }
}

/// Everything that was spoken since a position in the log.
fn all_said(glasses: &Glasses, from: u64) -> String {
    glasses.log().since(from).iter().filter_map(said).collect::<Vec<_>>().join(" ")
}

/// Everything that was shown since a position in the log.
fn all_shown(glasses: &Glasses, from: u64) -> Vec<String> {
    glasses.log().since(from).iter().filter_map(shown).collect()
}

fn waited_us(turn: &Value) -> u64 {
    let at = |stage: &str| turn[stage].as_u64().unwrap_or_else(|| panic!("{stage}: {turn}"));
    at("tool_end_us") - at("tool_start_us")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_is_said_only_where_a_tool_takes_its_time() {
    let provider = Provider::start().await;
    let world = world(&provider, "").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let allow = weather(&world, ToolResult::said("It rains in Paris."));
    let calls = || {
        provider.then("one", Answer::Calls("weather.look", json!({})));
        provider.then("one", Answer::Says("Paris is wet.", 5, 5));
    };

    // The tool waits until the preamble was spoken: it comes once, and is not shown.
    calls();
    let from = glasses.mark();
    text(&mut glasses, "how is the weather").await;
    until(&mut glasses, "the word", |event| said(event).is_some_and(|said| said.contains(PREAMBLE))).await;
    assert_eq!(provider.asked().len(), 1, "the tool has not answered yet");
    allow.send_replace(true);
    until(&mut glasses, "the answer", |event| shown(event).is_some_and(|shown| shown.contains("paris is wet"))).await;
    let turn = record(&world, 1).await;
    assert!(waited_us(&turn) >= PREAMBLE_US, "{turn}");
    assert_eq!(all_said(&glasses, from).matches(PREAMBLE).count(), 1);
    let drawn = all_shown(&glasses, from);
    assert!(!drawn.iter().any(|drawn| drawn.contains(PREAMBLE)), "{drawn:?}");
    // The preamble is not in the model's history.
    assert!(!provider.asked()[1].body.to_string().to_lowercase().contains(PREAMBLE));

    // An immediate result has no preamble, unless the machine needed a second for it.
    calls();
    let from = glasses.mark();
    text(&mut glasses, "how is the weather now").await;
    until(&mut glasses, "the answer", |event| shown(event).is_some_and(|shown| shown.contains("paris is wet"))).await;
    let turn = record(&world, 2).await;
    let told = all_said(&glasses, from);
    assert!(!told.contains(PREAMBLE) || waited_us(&turn) >= PREAMBLE_US, "{told}: {turn}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_speaks_for_itself_is_not_talked_over() {
    let provider = Provider::start().await;
    let world = world(&provider, "").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let show = Some(Content::Text { text: "Rain until noon".into() });
    let result = ToolResult { handled_display: true, show, ..ToolResult::said("It rains.") };
    weather(&world, ToolResult { say: None, ..result }).send_replace(true);
    provider.then("one", Answer::Calls("weather.look", json!({})));
    let from = glasses.mark();
    text(&mut glasses, "show me the weather").await;
    until(&mut glasses, "the tool's own", |event| shown(event).is_some_and(|shown| shown.contains("rain until noon")))
        .await;
    let turn = record(&world, 1).await;
    assert_eq!((&turn["outcome"], &turn["requests"]), (&json!("completed"), &json!(1)), "{turn}");
    // The next answer is the first that is spoken: events come in order.
    provider.then("one", Answer::Says("Paris.", 5, 5));
    text(&mut glasses, "what is the capital of France").await;
    until(&mut glasses, "an answer", |event| said(event).is_some()).await;
    let told = all_said(&glasses, from);
    assert!(told.starts_with("paris"), "{told}");
    // The model's history contains the call.
    let again = provider.until(2).await.body.to_string();
    assert!(again.contains("weather_look") && again.contains("It rains."), "{again}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_switched_off_under_way_counts_at_once() {
    let provider = Provider::start().await;
    let world = world(&provider, "[assistant]\napply_tools_now = true\n").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    for answer in [Answer::Begins("I could note"), Answer::Begins("I cannot"), Answer::Says("Noted it is.", 5, 5)] {
        provider.then("one", answer);
    }
    let offers = |number: usize| {
        let asked = &provider.asked()[number];
        names(&asked.body).iter().any(|name| name.contains("note") && name.contains("add"))
    };
    let switch = |on| Request::SwitchTool { user: USER.to_owned(), name: "note.add".to_owned(), on };
    let revision = || {
        let services = world.gateway().services();
        services.executor.offered(USER, None, ClientClass::Internal).0
    };
    let half = |words: &'static str| move |event: &Event| shown(event).is_some_and(|shown| shown.contains(words));
    text(&mut glasses, "what can you do").await;
    until(&mut glasses, "half an answer", half("i could note")).await;
    let before = revision();
    world.ask(switch(false)).await.expect("switched off");
    assert!(revision() > before, "what is offered has changed");
    provider.until(2).await;
    until(&mut glasses, "another half", half("i cannot")).await;
    // Another user's switch changes nothing here.
    let other = Request::SwitchTool { user: "somebody".to_owned(), name: "note.*".to_owned(), on: false };
    world.ask(other).await.expect("switched off");
    world.ask(switch(true)).await.expect("switched on");
    provider.until(3).await;
    assert_eq!([offers(0), offers(1), offers(2)], [true, false, true]);
    until(&mut glasses, "the whole answer", |event| said(event).is_some_and(|said| said.contains("noted it is"))).await;
    let turn = record(&world, 1).await;
    assert_eq!((&turn["restarts"], &turn["requests"]), (&json!(2), &json!(3)), "{turn}");
    assert_eq!(turn["tools_revision"].as_u64(), Some(revision()), "{turn}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_change_under_way_count_at_once() {
    let provider = Provider::start().await;
    let world = world(&provider, "[assistant]\napply_tools_now = true\n").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    for answer in [Answer::Begins("I cannot see"), Answer::Begins("Now I"), Answer::Says("Look outside.", 5, 5)] {
        provider.then("one", answer);
    }
    let offers = |number: usize| {
        let asked = &provider.asked()[number];
        names(&asked.body).iter().any(|name| name.contains("weather"))
    };
    let from = glasses.mark();
    let half = |words: &'static str| move |event: &Event| shown(event).is_some_and(|shown| shown.contains(words));
    text(&mut glasses, "how is the weather").await;
    until(&mut glasses, "half an answer", half("i cannot see")).await;
    // A tool is added while the model answers.
    let _allow = weather(&world, ToolResult::said("It rains."));
    provider.until(2).await;
    until(&mut glasses, "another half", half("now i")).await;
    // It is removed again.
    world.gateway().services().registry.unregister(&source(), &Scope::Global).expect("it was there");
    provider.until(3).await;
    assert_eq!([offers(0), offers(1), offers(2)], [false, true, false]);
    until(&mut glasses, "the whole answer", |event| said(event).is_some_and(|said| said.contains("look outside")))
        .await;

    // The same turn with the same history.
    let turn = record(&world, 1).await;
    assert_eq!((&turn["restarts"], &turn["requests"]), (&json!(2), &json!(3)), "{turn}");
    assert_eq!(turn["outcome"], "completed");
    let history: Vec<Value> = provider
        .asked()
        .iter()
        .map(|asked| {
            let messages = asked.body["messages"].as_array().expect("messages");
            messages.iter().filter(|message| message["role"] != "system").cloned().collect()
        })
        .collect();
    let first = history[0].as_array().expect("messages");
    assert!(
        first.len() == 1 && first[0]["content"].as_str().expect("text").ends_with("how is the weather"),
        "{first:?}"
    );
    assert!(history.iter().all(|messages| *messages == history[0]), "{history:?}");
    // Nothing is said twice, and nothing of the withdrawn answer.
    let told = all_said(&glasses, from);
    assert_eq!(told.matches("look outside").count(), 1, "{told}");
    assert!(!has(&told, &["cannot see", "now i"]), "{told}");
    let last = all_shown(&glasses, from).pop().unwrap_or_default();
    assert!(!has(&last, &["cannot see", "now i"]), "{last}");
    world.stop().await;
}
