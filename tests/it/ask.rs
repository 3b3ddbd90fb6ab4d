//! `lorgnette ask`: text in, the streamed answer out, on the same path as glasses.

use std::{process::Stdio, sync::Arc, time::Duration};

use async_trait::async_trait;
use device_protocol::{Up, up};
use gateway::{
    control::{Answer, Request},
    store::{MessageRecord, Write},
};
use gateway_core::vocab::{ErrorCode, Message, Role, ToolCall, ToolFlags, ToolResult, ToolSpec};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};
use tools::{
    registry::{RunContext, Runner},
    source::{Scope, Source},
};

use crate::{
    peer::{Peer, Said, frame},
    process::{FOR_A_TERMINAL, acted_on, binary, configure, fails, lorgnette, succeeds},
    world::{USER, WAIT, World},
};

/// Interval of heartbeats, in tests that wait for many of them.
const HEARTBEAT_MS: u32 = 1_500;

/// A tool source: one tool succeeds at once, one is slow, one fails, one never returns, one is hostile.
struct Doors;

#[async_trait]
impl Runner for Doors {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        match call.name.as_str() {
            "cellar.enter" => context.cancel.cancelled().await,
            // Ten heartbeats: more than three times the timeout of a silent device.
            "stairs.climb" => tokio::time::sleep(Duration::from_millis(10 * u64::from(HEARTBEAT_MS))).await,
            "ladder.climb" => return ToolResult::failed(ErrorCode::ExecutionError, "The third rung broke.", false),
            "bell.ring" => return ToolResult::said(FOR_A_TERMINAL),
            _ => {}
        }
        ToolResult::said("The door is open.")
    }
}

fn doors(world: &World) {
    let tool = |name: &str, phrase: &str, requires_approval: bool| ToolSpec {
        name: name.to_owned(),
        description: "Opens a door.".to_owned(),
        input_schema: json!({"type": "object", "properties": {}}),
        phrases: vec![gateway_core::vocab::Phrases { language: "en".into(), templates: vec![phrase.into()] }],
        approval: requires_approval.then(|| "Open the door?".to_owned()),
        flags: ToolFlags { requires_approval, read_only: !requires_approval, ..ToolFlags::default() },
        ..ToolSpec::default()
    };
    let specs = vec![
        tool("door.open", "open the door", true),
        tool("cellar.enter", "enter the cellar", false),
        tool("stairs.climb", "climb the stairs", false),
        tool("ladder.climb", "climb the ladder", false),
        tool("bell.ring", "ring the bell", false),
    ];
    let registry = &world.gateway().services().registry;
    registry.register(Source::App("doors".into()), Scope::Global, specs, Arc::new(Doors)).expect("registered");
}

/// The events of one request.
async fn asked(world: &World, arguments: &[&str]) -> Vec<Value> {
    let file = configure(&world.data(), "").display().to_string();
    let mut line = vec!["ask", "--config", &file, "--json"];
    line.extend(arguments);
    let text = succeeds(&line).await;
    text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

fn text_of(events: &[Value]) -> String {
    let mut told = String::new();
    for event in events.iter().filter(|event| event["event"] == "text") {
        if event["anew"] == true {
            told.clear();
        }
        told.push_str(event["text"].as_str().unwrap_or_default());
    }
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_answered_with_the_tools_and_history_of_the_user() {
    let world = World::start().await;
    let events = asked(&world, &["take", "a", "note:", "buy", "milk"]).await;
    assert!(text_of(&events).contains("buy milk"), "{events:?}");
    assert!(events.iter().any(|event| event["event"] == "tool" && event["label"] == "Take a note"), "{events:?}");
    assert_eq!(events.last().expect("events")["event"], "done");
    assert_eq!(world.notes(), ["buy milk"]);
    // A tool's card is shown, and the turn is recorded as any other.
    let shown = asked(&world, &["what are my notes?"]).await;
    assert!(shown.iter().any(|event| event["event"] == "shown" || text_of(&shown).contains("buy milk")), "{shown:?}");
    let Answer::Turns { turns } = world.ask(Request::Turns { count: 10 }).await.expect("the turns") else {
        panic!("no turns");
    };
    assert_eq!(turns.len(), 2);
    assert!(turns.iter().all(|turn| turn["transport"] == "text"), "{turns:?}");
    // It is a device only while it asks, and is not listed as one. It leaves, and the history is written, after the
    // answer was delivered.
    let services = world.gateway().services().clone();
    let kept = tokio::time::timeout(WAIT, async {
        loop {
            services.store.settled().await.expect("the store");
            let stored = services.store.disk().messages(USER, 100).expect("the history");
            if services.roster.all().is_empty() && stored.iter().any(|message| message.json.contains("buy milk")) {
                return;
            }
        }
    });
    kept.await.expect("the device goes and the history is kept");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_asked_in_text() {
    let world = World::start().await;
    doors(&world);
    for (answer, yes) in [("--yes", true), ("--no", false)] {
        let events = asked(&world, &[answer, "open the door"]).await;
        let question = events.iter().find(|event| event["event"] == "question").expect("a question");
        assert_eq!(question["title"], "Doors: door open");
        let settled = events.iter().find(|event| event["event"] == "settled").expect("settled");
        assert_eq!((&settled["yes"], &settled["id"]), (&json!(yes), &question["id"]));
        assert_eq!(text_of(&events).contains("The door is open."), yes, "{events:?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_may_take_longer_than_many_heartbeats() {
    let world = World::tuned("", |config| {
        config.conversation.heartbeat_ms = HEARTBEAT_MS;
        config.conversation.silent_ms_max = 3 * HEARTBEAT_MS;
    })
    .await;
    doors(&world);
    let events = asked(&world, &["climb the stairs"]).await;
    assert!(text_of(&events).contains("The door is open."), "{events:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_heartbeat_answers_a_heartbeat() {
    const BEATS: usize = 200;
    let world = World::start().await;
    let mut peer = Peer::welcomed(&world, "wss", "peer").await;
    for _ in 0..BEATS {
        peer.raw(frame(0, Up::Heartbeat(up::Heartbeat { echo_us: 0, held_us: 0 }))).await;
    }
    peer.control(Up::TextInput(up::TextInput { text: "what is two plus two" })).await;
    let mut answers = 0;
    loop {
        match peer.next().await {
            Said::Other("heartbeat") => answers += 1,
            // Follows everything that was sent before it.
            Said::Other("speech_start") => break,
            Said::Other(_) => {}
            said => panic!("{said:?}"),
        }
    }
    // Some may be due meanwhile, by the gateway's own clock.
    assert!(answers < BEATS / 4, "{answers} heartbeats");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_fails_says_why() {
    let world = World::start().await;
    doors(&world);
    let events = asked(&world, &["climb the ladder"]).await;
    let failed = events.iter().find(|event| event["state"] == "failed").expect("a failure");
    assert_eq!((&failed["label"], &failed["why"]), (&json!("Doors: ladder climb"), &json!("The third rung broke.")));
    let file = configure(&world.data(), "").display().to_string();
    let output = lorgnette(&["ask", "climb the ladder", "--config", &file]).await;
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(told.contains("[Doors: ladder climb failed: The third rung broke.]"), "{told}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_app_or_a_model_says_acts_on_no_terminal() {
    let world = World::start().await;
    doors(&world);
    let file = configure(&world.data(), "").display().to_string();
    let told = succeeds(&["ask", "ring the bell", "--config", &file]).await;
    assert!(told.contains("wide") && acted_on(&told).is_empty(), "{told:?}");
    // Of another user, whose conversation nobody goes on with.
    let said = serde_json::to_string(&Message::text(Role::Assistant, FOR_A_TERMINAL)).expect("JSON");
    let (user, title) = ("reader".to_owned(), FOR_A_TERMINAL.to_owned());
    let messages = vec![MessageRecord { wall_ms: 0, json: said }];
    let store = &world.gateway().services().store;
    store.write(Write::AppendMessages { user: user.clone(), messages, title }).await.expect("stored");
    let id = store.disk().conversations(&user).expect("conversations").remove(0).id.to_string();
    let shown = succeeds(&["conversations", "show", &id, "--user", &user, "--config", &file]).await;
    assert!(shown.contains(r"Lorgnette: wide\u001b[2J") && acted_on(&shown).is_empty(), "{shown:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_a_question_waits_for_an_answer_from_elsewhere() {
    let world = World::start().await;
    doors(&world);
    let file = configure(&world.data(), "").display().to_string();
    for yes in [true, false] {
        let arguments = ["ask", "open the door", "--config", &file];
        let asking = lorgnette(&arguments);
        let answering = async {
            let open = async {
                loop {
                    if let Ok(Answer::Approvals { approvals }) = world.ask(Request::Approvals).await
                        && let Some(question) = approvals.first()
                    {
                        return question.id;
                    }
                    tokio::task::yield_now().await;
                }
            };
            let id = tokio::time::timeout(WAIT, open).await.expect("a question");
            world.ask(Request::AnswerApproval { id, yes }).await.expect("the answer counts");
            id
        };
        let (output, id) = tokio::join!(asking, answering);
        let (out, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(told.contains(&format!("lorgnette approvals approve {id}")), "{told}");
        assert_eq!(output.status.success(), yes, "{out}{told}");
        assert_eq!(out.contains("The door is open."), yes, "{out}");
        assert_eq!(told.contains("a yes was needed"), !yes, "{told}");
    }
    world.stop().await;
}

/// All but the last begin no turn, and most leave the state of the conversation as it is.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_answer_does_not_depend_on_the_state_of_the_conversation() {
    let world = World::tuned("", |config| config.conversation.follow_up_ms = 0).await;
    for (words, answer) in [
        ("stop translating", "I am not translating."),
        ("translate what they say", "ranslat"),
        ("repeat that", "I have not said anything yet."),
        ("unmute", "unmute"),
        ("mute", ""),
        ("what is two plus two", "4"),
    ] {
        let events = asked(&world, &[words]).await;
        assert!(text_of(&events).contains(answer), "{words}: {events:?}");
        assert_eq!(events.last().expect("events")["event"], "done", "{words}");
    }
    world.stop().await;
}

/// The command, waiting for a tool that never returns, and its output.
async fn entering(world: &World) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(binary())
        .args(["ask", "--json", "enter the cellar", "--config"])
        .arg(configure(&world.data(), ""))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the command");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let started = tokio::time::timeout(WAIT, async {
        while !lines.next_line().await.expect("its output").expect("a line").contains("cellar enter") {}
    });
    started.await.expect("the tool runs");
    (child, lines)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_a_stop_cuts_off_is_not_complete() {
    let world = World::start().await;
    doors(&world);
    let (mut child, mut lines) = entering(&world).await;
    world.stop().await;
    let rest = tokio::time::timeout(WAIT, async {
        let mut rest = Vec::new();
        while let Some(line) = lines.next_line().await.expect("its output") {
            rest.push(line);
        }
        rest
    });
    let rest = rest.await.expect("it ends");
    assert!(!rest.iter().any(|line| line.contains("\"done\"")), "{rest:?}");
    assert!(!child.wait().await.expect("it ends").success());
}

/// Ctrl-C ends the command; the gateway notices and cancels the turn.
#[tokio::test(flavor = "multi_thread")]
async fn who_goes_away_cancels_the_turn() {
    let world = World::start().await;
    doors(&world);
    let (mut child, _lines) = entering(&world).await;
    let id = child.id().expect("it runs").to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().await.expect("kill").success());
    assert!(!child.wait().await.expect("it ends").success());
    let services = world.gateway().services().clone();
    let outcome = tokio::time::timeout(WAIT, async {
        loop {
            if let Some(turn) = services.telemetry.turns.last(1).pop() {
                return serde_json::to_value(turn).expect("a record")["outcome"].clone();
            }
            tokio::task::yield_now().await;
        }
    });
    let outcome = outcome.await.expect("the turn ends");
    assert_ne!(outcome, "completed", "{outcome}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gateway_it_says_what_to_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = configure(&folder.path().join("data"), "").display().to_string();
    let told = fails(&["ask", "--config", &file, "hello"]).await;
    assert!(told.contains("lorgnette serve"), "{told}");
}
