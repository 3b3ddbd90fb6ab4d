//! The assistant from end to end: a real gateway with a scripted provider and simulated glasses.

mod context;
mod disturbed;
mod photos;
mod preamble;
mod programs;
pub mod provider;
mod speech;
mod summaries;

use std::time::Duration;

use firmware_sim::Glasses;
use gateway::control::{Answer as Told, Request};
use serde_json::{Value, json};

use self::provider::{Answer, Asked, Provider, names};
use crate::{
    mcp::{self, fixture},
    world::{WAIT, World, answered, text},
};

/// The settings of a model of this kind at a branch of the provider.
fn model(provider: &Provider, kind: &str, branch: &str) -> String {
    format!("kind = \"{kind}\"\nbase_url = \"{}\"\nmodel = \"scripted\"\n", provider.url(branch))
}

/// Types a request; returns everything that was shown and said as the answer.
async fn ask(glasses: &mut Glasses, request: &str) -> String {
    text(glasses, request).await;
    answered(glasses).await.replace('\n', " ")
}

/// Whether one of these words was said or shown.
fn has(told: &str, words: &[&str]) -> bool {
    words.iter().any(|words| told.contains(words))
}

/// Checks that all of these are in a request, in this order, whatever its protocol.
fn in_order(asked: &Asked, wanted: &[&str]) {
    let body = asked.body.to_string();
    let mut from = 0;
    for words in wanted {
        let found = body[from..].find(words);
        from += found.unwrap_or_else(|| panic!("{words:?} behind {from} at {}: {body}", asked.branch)) + words.len();
    }
}

/// The record of a turn, which is written a moment after its answer was played.
async fn record(world: &World, number: u32) -> Value {
    let looked = async {
        loop {
            let Told::Turns { turns } = world.ask(Request::Turns { count: 8 }).await.expect("turns") else {
                panic!("no turns");
            };
            if let Some(turn) = turns.into_iter().find(|turn| turn["turn"] == json!(number)) {
                return turn;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT, looked).await.expect("a record")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_reaches_eye_and_ear_and_a_call_its_tool() {
    let provider = Provider::start().await;
    let world = World::with(&format!("[model]\n{}", model(&provider, "chat_completions", "one"))).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then("one", Answer::Says("The capital of France is Paris.", 40, 8));
    let told = ask(&mut glasses, "what is the capital of France").await;
    assert!(told.contains("paris"), "{told}");
    let first = provider.until(1).await;
    assert!(first.path.ends_with("/chat/completions"), "{}", first.path);
    in_order(&first, &["smart glasses", "what is the capital of France"]);

    provider.then("one", Answer::Calls("note.add", json!({"text": "buy oat milk"})));
    provider.then("one", Answer::Says("I have noted it.", 60, 6));
    let told = ask(&mut glasses, "remember the milk").await;
    assert!(told.contains("noted"), "{told}");
    assert_eq!(world.notes(), ["buy oat milk"]);
    in_order(&provider.until(3).await, &["Paris", "remember the milk", "buy oat milk"]);
    let turn = record(&world, 2).await;
    assert_eq!(
        (&turn["requests"], &turn["model_rank"], &turn["restarts"]),
        (&json!(2), &json!(0), &json!(0)),
        "{turn}"
    );
    assert!(turn["tools_offered"].as_u64() > Some(5) && turn["tools_revision"].as_u64() > Some(0), "{turn}");
    assert!(turn["tools_known"].as_u64() >= turn["tools_offered"].as_u64(), "{turn}");
    assert!(turn["request_sent_us"].as_u64() >= turn["final_us"].as_u64() && turn["final_us"].is_u64(), "{turn}");
    assert_eq!(turn["input_tokens"], json!(60), "{turn}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_with_every_other_provider() {
    let provider = Provider::start().await;
    let kinds = ["chat_completions", "anthropic", "gemini", "responses"];
    let fallbacks: String =
        kinds[1..].iter().map(|kind| format!("[[fallback]]\n{}", model(&provider, kind, kind))).collect();
    let first = model(&provider, kinds[0], kinds[0]);
    let world = World::with(&format!("[model]\n{first}{fallbacks}")).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let mut told = Vec::new();
    for (number, kind) in kinds.iter().enumerate() {
        // The previous provider has no more answers: it fails.
        let request = format!("remember number {number}");
        provider.then(kind, Answer::Calls("note.add", json!({"text": format!("item {number}")})));
        provider.then(kind, Answer::Says("It is noted, dear wearer.", 10, 5));
        told.push(ask(&mut glasses, &request).await);
        assert!(has(&told[number], &["noted", &format!("item {number}")]), "{kind}: {told:?}");
        // The whole history is there, with calls and results, in the format of this provider.
        let asked = provider.asked();
        let last = asked.last().expect("a request");
        assert_eq!(&last.branch, kind);
        let mut wanted = Vec::new();
        for before in 0..=number {
            wanted.push(format!("remember number {before}"));
            wanted.push(format!("item {before}"));
        }
        in_order(last, &wanted.iter().map(String::as_str).collect::<Vec<_>>());
    }
    assert_eq!(world.notes(), ["item 3", "item 2", "item 1", "item 0"]);
    let news: Vec<bool> = told.iter().map(|told| told.contains("my usual model is away")).collect();
    assert_eq!(news, [false, true, false, false], "{told:?}");
    let other = |asked: &Asked| asked.body.to_string();
    let last = |kind: &str| provider.asked().iter().rfind(|asked| asked.branch == kind).map(other).expect("asked");
    assert!(last("anthropic").contains("tool_use") && last("anthropic").contains("tool_result"));
    assert!(last("gemini").contains("functionCall") && last("gemini").contains("functionResponse"));
    assert!(last("responses").contains("function_call_output"));
}

#[tokio::test(flavor = "multi_thread")]
async fn when_every_model_is_down_the_box_answers_and_says_so_once() {
    let provider = Provider::start().await;
    let (one, two) = (model(&provider, "chat_completions", "one"), model(&provider, "chat_completions", "two"));
    let world = World::with(&format!("[model]\n{one}[[fallback]]\n{two}")).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then("two", Answer::Says("Paris.", 5, 5));
    let told = ask(&mut glasses, "what is the capital of France").await;
    assert!(told.contains("my usual model is away") && told.contains("paris"), "{told}");
    let told = ask(&mut glasses, "set a timer for ten minutes").await;
    assert!(told.contains("my model is away") && has(&told, &["ten minutes", "10:00", "10 min"]), "{told}");
    let requests = provider.asked().len();
    let told = ask(&mut glasses, "set a timer for five minutes").await;
    assert!(!told.contains("model is away") && has(&told, &["five minutes", "5:00", "5 min"]), "{told}");
    assert_eq!(provider.asked().len(), requests, "nobody is asked again so soon");
    assert!(provider.asked().iter().any(|asked| asked.branch == "two"));
    assert_eq!(record(&world, 3).await["model_rank"], json!(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_days_money_ends_and_commands_go_on() {
    let provider = Provider::start().await;
    let priced = format!("{}price = {{ input = 1.0, output = 1.0 }}\n", model(&provider, "chat_completions", "one"));
    let world = World::with(&format!("[model]\n{priced}[budgets]\nmoney_per_day = 0.002\n")).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then("one", Answer::Says("Paris.", 1_500, 600)).then("one", Answer::Says("Rome.", 1, 1));
    let told = ask(&mut glasses, "what is the capital of France").await;
    assert!(told.contains("paris"), "{told}");
    let told = ask(&mut glasses, "set a timer for ten minutes").await;
    assert!(told.contains("today's budget is used up") && has(&told, &["ten minutes", "10:00", "10 min"]), "{told}");
    let told = ask(&mut glasses, "set a timer for five minutes").await;
    assert!(!told.contains("budget") && has(&told, &["five minutes", "5:00", "5 min"]), "{told}");
    assert_eq!(provider.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_a_server_come_and_go_between_two_requests() {
    let provider = Provider::start().await;
    let server = fixture::serve().await;
    let settings = format!(
        // All tools are offered: their selection is not tested here.
        "[model]\n{}[router]\ntools = 1000\n[mcp]\nservers.fixture = {{ url = \"http://{server}/\" }}\n",
        model(&provider, "chat_completions", "one")
    );
    let world = World::with(&settings).await;
    mcp::up(&world, "fixture").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let offers = |asked: &Asked, name: &str| names(&asked.body).iter().any(|known| known.contains(name));
    let change = || async {
        let mut changes = world.gateway().services().registry.changes();
        changes.mark_unchanged();
        changes
    };
    for (number, come, gone) in [(1, "test_changed_1", "test_changed_0"), (2, "test_changed_2", "test_changed_1")] {
        let mut changes = change().await;
        provider.then("one", Answer::Calls("fixture.test_trigger_tool_change", json!({})));
        provider.then("one", Answer::Says("They have changed.", 5, 5));
        ask(&mut glasses, "change your tools").await;
        // The server reports it asynchronously.
        let told = tokio::time::timeout(WAIT, async {
            let registry = &world.gateway().services().registry;
            while registry.snapshot("wearer", None).find(&format!("fixture.{come}")).is_none() {
                changes.changed().await.expect("a registry");
            }
        });
        told.await.expect("the tool comes");
        // A removed tool is called nevertheless.
        provider.then("one", Answer::Calls("fixture.test_changed_1", json!({})));
        provider.then("one", Answer::Says("Here it is.", 5, 5));
        ask(&mut glasses, "use the new one").await;
        let asked = provider.asked();
        let (first, then) = (&asked[asked.len() - 2], &asked[asked.len() - 1]);
        assert!(offers(first, come) && !offers(first, gone), "{number}: {:?}", names(&first.body));
        if number == 2 {
            in_order(then, &["No tool named", "Tools that are offered now: ", "test_changed_2"]);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_tools_count_at_once_where_the_operator_wants_it() {
    let provider = Provider::start().await;
    let world = World::with(&format!("[model]\n{}", model(&provider, "chat_completions", "one"))).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then("one", Answer::Hangs).then("one", Answer::Says("Without notes.", 5, 5));
    text(&mut glasses, "what can you do").await;
    let first = provider.until(1).await;
    let offers = |asked: &Asked| names(&asked.body).iter().any(|name| name.contains("note") && name.contains("add"));
    assert!(offers(&first));
    // Without a change nothing restarts: the next request is the one after the change.
    world.ask(Request::ApplyTools { user: None }).await.expect("told");
    let off = Request::SwitchTool { user: "wearer".into(), name: "note.add".into(), on: false };
    world.ask(off).await.expect("switched off");
    world.ask(Request::ApplyTools { user: Some("wearer".into()) }).await.expect("told");
    let second = provider.until(2).await;
    assert!(!offers(&second), "{:?}", names(&second.body));
    in_order(&second, &["what can you do"]);
    let told = answered(&mut glasses).await;
    assert!(told.contains("without notes"), "{told}");
    let turn = record(&world, 1).await;
    assert_eq!((&turn["restarts"], &turn["requests"]), (&json!(1), &json!(2)), "{turn}");
}
