//! A gateway that is killed or upgraded under its glasses: they go on with the next one.

use std::path::Path;

use device_protocol::{ButtonAction, ButtonId, Choice};
use firmware_sim::{Event, Glasses, Options, Seen, transport::Target};
use gateway::{
    control::{Answer, Request},
    ports::records::StoredLedger,
};
use gateway_core::vocab::{ApprovalOutcome, ErrorCode, ToolResult};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    durability::power,
    process::Process,
    world::{self, WAIT, answered, ask, floor, pause, text, understood, until},
};

const FAULTY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/mcp_faulty.py");
const HELD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/it/restart/held.c");

fn target(gateway: &Process) -> Option<Target> {
    Some(format!("wss://{}/glasses", gateway.web).parse().expect("an address"))
}

/// Goes on with the gateway that runs now.
async fn comes_back(glasses: &mut Glasses, gateway: &Process) {
    glasses.forget();
    glasses.reconnect(target(gateway)).await.expect("it tries");
    let welcome = until(glasses, "a welcome", |event| matches!(event.seen, Seen::Welcome { .. })).await;
    assert!(matches!(welcome, Seen::Welcome { resumed: false, .. }), "what was in memory is gone");
}

async fn loses_its_link(glasses: &mut Glasses) {
    until(glasses, "a lost link", |event| matches!(event.seen, Seen::LinkLost { .. })).await;
}

/// Texts of speeches and of the display since the reader's position.
fn said(glasses: &Glasses) -> String {
    let texts = glasses.log().since(glasses.mark()).into_iter().filter_map(|event| match event.seen {
        Seen::Display { text, .. } | Seen::SpeechStart { text, .. } => Some(text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

pub fn is_listening(event: &Event) -> bool {
    matches!(&event.seen, Seen::Listening { state, .. } if state == "listening")
}

fn is_attentive(event: &Event) -> bool {
    matches!(&event.seen, Seen::Listening { state, .. } if state == "wake")
}

/// Waits until all that was stored before is on the disk: the answer comes after a write.
pub async fn written(gateway: &Process) {
    let mut stream = TcpStream::connect(gateway.web).await.expect("it listens");
    let request = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// The wearer's notes, and how the wearer's questions ended, oldest first: read from the data of a gateway that has stopped.
async fn left_in(data: &Path) -> (Vec<String>, Vec<ApprovalOutcome>) {
    let folder = data.to_path_buf();
    let read = move || {
        let store = gateway::store::Store::open(&folder.join("store"), 1_024).expect("the store");
        let notes = store.disk().notes(world::USER, 100, |_| true).expect("the notes");
        (notes, StoredLedger(store).records(world::USER, i64::MIN).expect("the ledger"))
    };
    let (notes, records) = tokio::task::spawn_blocking(read).await.expect("read");
    let made = records.into_iter().rev().filter_map(|record| record.approval.map(|made| made.outcome));
    (notes.into_iter().map(|(_, note)| note.text).collect(), made.collect())
}

pub async fn notes(data: &Path) -> Vec<String> {
    left_in(data).await.0
}

/// The gateway is killed while a sentence is said over a link of the glasses with these options: it is understood all the same,
/// and carried out once.
pub async fn is_understood_over_a_kill_9(change: impl FnOnce(&mut Options)) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut options = gateway.options();
    change(&mut options);
    let mut glasses = world::connect(&data, options).await;
    let pcm = firmware_sim::voice::speak("Hey Mentra, take a note: buy oat milk.").await.expect("a voice");
    let killing = async {
        glasses.log().find(0, is_listening).await;
        gateway.kill().await;
        Process::start(&data, "", &[]).await
    };
    let (said, gateway) = tokio::join!(glasses.say_pcm("a note", &pcm, None), killing);
    said.expect("said");
    comes_back(&mut glasses, &gateway).await;
    let transcript = understood(&mut glasses).await;
    assert!(transcript.contains("note") && transcript.contains("milk"), "{transcript}");
    answered(&mut glasses).await;
    glasses.goodbye().await;
    gateway.kill().await;
    assert_eq!(notes(&data).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sentence_is_heard_over_a_kill_9() {
    let _floor = floor().await;
    is_understood_over_a_kill_9(|_| ()).await;
}

/// More than the 10 s that all glasses keep, as over several restarts.
#[tokio::test(flavor = "multi_thread")]
async fn a_sentence_that_nobody_could_hear_for_twelve_seconds_is_heard() {
    let _floor = floor().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    let [question, note] = ["Hey Mentra, what is twelve times three?", "Hey Mentra, take a note: buy oat milk."];
    // By the end of it the gateway has told the glasses with what it has dealt.
    let pcm = firmware_sim::voice::speak(question).await.expect("a voice");
    glasses.say_pcm("a question", &pcm, None).await.expect("said");
    answered(&mut glasses).await;
    pause(&glasses).await;
    let (mark, pcm) = (glasses.log().mark(), firmware_sim::voice::speak(note).await.expect("a voice"));
    let killing = async {
        glasses.log().find(mark, is_listening).await;
        gateway.kill().await;
    };
    let (said, ()) = tokio::join!(glasses.say_pcm("a note", &pcm, None), killing);
    said.expect("said");
    for _ in 0..6 {
        pause(&glasses).await;
    }
    let gateway = Process::start(&data, "", &[]).await;
    comes_back(&mut glasses, &gateway).await;
    let transcript = understood(&mut glasses).await;
    assert!(transcript.contains("note") && transcript.contains("milk"), "{transcript}");
    answered(&mut glasses).await;
    glasses.goodbye().await;
    gateway.kill().await;
    assert_eq!(notes(&data).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_before_a_kill_9_is_done_once_or_said_not_to_be_known() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    // Its session is on disk by then.
    text(&mut glasses, "what is two plus two?").await;
    answered(&mut glasses).await;
    for (number, moment) in ["typed", "thinking", "speaking"].into_iter().enumerate() {
        text(&mut glasses, &format!("take a note: number {number}")).await;
        if moment != "typed" {
            let reached = |event: &Event| matches!(&event.seen, Seen::Listening { state, .. } if state == moment);
            until(&mut glasses, moment, reached).await;
        }
        gateway.kill().await;
        loses_its_link(&mut glasses).await;
        gateway = Process::start(&data, "", &[]).await;
        comes_back(&mut glasses, &gateway).await;
        let mark = glasses.mark();
        let seen = answered(&mut glasses).await;
        let told = seen.contains("i was restarted");
        assert!(told || moment != "speaking", "{moment}: {seen}; {:?}", glasses.log().since(mark));
        // What has been dealt with is over: the next request stands alone.
        text(&mut glasses, "what is twelve times three?").await;
        assert!(answered(&mut glasses).await.contains("36"));
    }
    glasses.goodbye().await;
    gateway.kill().await;
    let notes = notes(&data).await;
    for number in 0..3 {
        assert!(notes.iter().filter(|note| note.contains(&number.to_string())).count() <= 1, "{notes:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_are_still_muted_after_an_upgrade() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut options = gateway.options();
    options.reconnect = true;
    let mut glasses = world::connect(&data, options).await;
    glasses.mute(true).await.expect("muted");
    until(&mut glasses, "muted", |event| matches!(&event.seen, Seen::Listening { state, .. } if state == "muted"))
        .await;
    gateway.terminate().await;
    loses_its_link(&mut glasses).await;
    let gateway = Process::start(&data, "", &[]).await;
    comes_back(&mut glasses, &gateway).await;
    until(&mut glasses, "muted", |event| matches!(&event.seen, Seen::Listening { state, .. } if state == "muted"))
        .await;
    assert!(!said(&glasses).contains("I was restarted"), "nothing was under way");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stood_on_the_display_stands_there_again_after_a_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    text(&mut glasses, "set a timer for ten minutes").await;
    answered(&mut glasses).await;
    written(&gateway).await;
    gateway.kill().await;
    loses_its_link(&mut glasses).await;
    let gateway = Process::start(&data, "", &[]).await;
    comes_back(&mut glasses, &gateway).await;
    // With the new session their display has become empty.
    let is_timer = |event: &Event| matches!(&event.seen, Seen::Display { text, .. } if text.starts_with("Timer\n"));
    until(&mut glasses, "the timer", is_timer).await;
    glasses.goodbye().await;
    gateway.kill().await;
}

/// Presses long, until the gateway says that it listens like this.
async fn hold(glasses: &mut Glasses, wanted: &str) {
    glasses.forget();
    glasses.press(ButtonId::Main, ButtonAction::LongPress).await.expect("pressed");
    until(glasses, wanted, |event| matches!(&event.seen, Seen::Listening { state, .. } if state == wanted)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_press_is_done_once_over_a_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    // Its session is on disk by then.
    text(&mut glasses, "what is two plus two?").await;
    answered(&mut glasses).await;
    // Before it is acknowledged, as a rule: that takes up to a second.
    hold(&mut glasses, "muted").await;
    written(&gateway).await;
    gateway.kill().await;
    loses_its_link(&mut glasses).await;
    let gateway = Process::start(&data, "", &[]).await;
    comes_back(&mut glasses, &gateway).await;
    until(&mut glasses, "muted", |event| matches!(&event.seen, Seen::Listening { state, .. } if state == "muted"))
        .await;
    let mark = glasses.mark();
    // Behind all that is repeated.
    text(&mut glasses, "what is twelve times three?").await;
    answered(&mut glasses).await;
    let is_open = |event: &Event| matches!(&event.seen, Seen::Listening { state, .. } if state != "muted");
    assert!(!glasses.log().since(mark).iter().any(is_open), "{:#?}", glasses.log().since(mark));
    glasses.goodbye().await;
    gateway.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_while_the_gateway_was_muted_is_not_heard_after_a_kill_9() {
    let _floor = floor().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    hold(&mut glasses, "muted").await;
    // These glasses send on, and keep what they send.
    world::say(&mut glasses, "Hey Mentra, take a note: call the doctor.").await;
    pause(&glasses).await;
    hold(&mut glasses, "idle").await;
    written(&gateway).await;
    gateway.kill().await;
    loses_its_link(&mut glasses).await;
    let gateway = Process::start(&data, "", &[]).await;
    comes_back(&mut glasses, &gateway).await;
    pause(&glasses).await;
    world::say(&mut glasses, "Hey Mentra, take a note: buy oat milk.").await;
    answered(&mut glasses).await;
    glasses.goodbye().await;
    gateway.kill().await;
    let notes = notes(&data).await;
    assert!(notes.len() == 1 && notes[0].to_lowercase().contains("milk"), "{notes:?}");
}

/// Waits for a question; its number.
fn is_muted(event: &Event) -> bool {
    matches!(&event.seen, Seen::Listening { state, .. } if state == "muted")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gateway_muted_is_muted_in_a_session_that_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    hold(&mut glasses, "muted").await;
    // They begin anew, as after a crash: without a goodbye, and without their token.
    let mut anew = world::connect(&data, gateway.options()).await;
    until(&mut anew, "muted", is_muted).await;
    written(&gateway).await;
    gateway.kill().await;
    // So they do after a restart.
    let gateway = Process::start(&data, "", &[]).await;
    let mut restarted = world::connect(&data, gateway.options()).await;
    until(&mut restarted, "muted", is_muted).await;
    // Whoever switches them off and on again finds them as they come.
    restarted.goodbye().await;
    let mut switched_on = world::connect(&data, gateway.options()).await;
    text(&mut switched_on, "what is two plus two?").await;
    answered(&mut switched_on).await;
    assert!(!switched_on.log().since(0).iter().any(is_muted), "{:#?}", switched_on.log().since(0));
    switched_on.goodbye().await;
    gateway.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gateway_muted_is_muted_after_a_kill_9_where_nothing_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let no_resume = "[limits]\nresume_s = 0\n";
    let gateway = Process::start(&data, no_resume, &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    hold(&mut glasses, "muted").await;
    written(&gateway).await;
    gateway.kill().await;
    let gateway = Process::start(&data, no_resume, &[]).await;
    let mut restarted = world::connect(&data, gateway.options()).await;
    until(&mut restarted, "muted", is_muted).await;
    hold(&mut restarted, "idle").await;
    written(&gateway).await;
    gateway.kill().await;
    let gateway = Process::start(&data, no_resume, &[]).await;
    let mut open = world::connect(&data, gateway.options()).await;
    text(&mut open, "what is two plus two?").await;
    answered(&mut open).await;
    assert!(!open.log().since(0).iter().any(is_muted), "{:#?}", open.log().since(0));
    open.goodbye().await;
    gateway.kill().await;
}

async fn question(glasses: &mut Glasses) -> u32 {
    match until(glasses, "a question", |event| matches!(event.seen, Seen::ApprovalRequest { .. })).await {
        Seen::ApprovalRequest { approval, .. } => approval,
        _ => unreachable!("it was picked"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_asked_before_a_restart_is_asked_again_and_nothing_runs_before_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut gateway = Process::start(&data, "", &[]).await;
    let mut options = gateway.options();
    options.reconnect = true;
    let mut glasses = world::connect(&data, options).await;
    text(&mut glasses, "take a note: buy oat milk").await;
    answered(&mut glasses).await;
    for (upgrade, choice) in [(true, Choice::No), (false, Choice::Yes)] {
        text(&mut glasses, "delete all my notes").await;
        let before = question(&mut glasses).await;
        written(&gateway).await;
        match upgrade {
            true => drop(gateway.terminate().await),
            false => drop(gateway.kill().await),
        }
        loses_its_link(&mut glasses).await;
        gateway = Process::start(&data, "", &[]).await;
        comes_back(&mut glasses, &gateway).await;
        let mark = glasses.mark();
        let again = question(&mut glasses).await;
        let news =
            |event: &Event| matches!(&event.seen, Seen::SpeechStart { text, .. } if text.contains("I was restarted,"));
        assert!(glasses.log().since(mark).iter().any(news), "{:#?}", glasses.log().since(mark));
        // An answer to the question of before is none.
        glasses.approve(before, Choice::Yes).await.expect("tapped");
        // It can be read by then.
        until(&mut glasses, "the question's voice", |event| matches!(event.seen, Seen::FirstSound { .. })).await;
        pause(&glasses).await;
        glasses.approve(again, choice).await.expect("tapped");
        answered(&mut glasses).await;
        text(&mut glasses, "what are my notes").await;
        let left = answered(&mut glasses).await;
        assert_eq!(left.contains("oat milk"), choice == Choice::No, "{left}");
    }
    glasses.goodbye().await;
    gateway.kill().await;
    let (notes, decisions) = left_in(&data).await;
    assert!(notes.is_empty(), "{notes:?}");
    let made: Vec<_> = decisions.into_iter().filter(|outcome| *outcome != ApprovalOutcome::Cancelled).collect();
    assert_eq!(made, [ApprovalOutcome::Denied, ApprovalOutcome::Approved]);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_asked_is_asked_again_after_a_second_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    text(&mut glasses, "take a note: buy oat milk").await;
    answered(&mut glasses).await;
    text(&mut glasses, "delete all my notes").await;
    question(&mut glasses).await;
    for kill in 1..=2 {
        written(&gateway).await;
        gateway.kill().await;
        loses_its_link(&mut glasses).await;
        gateway = Process::start(&data, "", &[]).await;
        comes_back(&mut glasses, &gateway).await;
        let news =
            |event: &Event| matches!(&event.seen, Seen::SpeechStart { text, .. } if text.contains("I was restarted,"));
        until(&mut glasses, "the news", news).await;
        let was_asked = |event: &Event| matches!(event.seen, Seen::ApprovalRequest { .. });
        let log = glasses.log().since(glasses.mark());
        assert!(kill == 2 || !log.iter().any(was_asked), "the first process was to die before that: {log:#?}");
    }
    let again = question(&mut glasses).await;
    until(&mut glasses, "the question's voice", |event| matches!(event.seen, Seen::FirstSound { .. })).await;
    pause(&glasses).await;
    glasses.approve(again, Choice::Yes).await.expect("tapped");
    answered(&mut glasses).await;
    glasses.goodbye().await;
    gateway.kill().await;
    let (notes, decisions) = left_in(&data).await;
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(decisions.into_iter().filter(|outcome| *outcome == ApprovalOutcome::Approved).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_answer_no_wake_word_is_needed_over_a_kill_9() {
    let _floor = floor().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    text(&mut glasses, "what is two plus two?").await;
    until(&mut glasses, "attention", is_attentive).await;
    written(&gateway).await;
    gateway.kill().await;
    loses_its_link(&mut glasses).await;
    let gateway = Process::start(&data, "", &[]).await;
    comes_back(&mut glasses, &gateway).await;
    until(&mut glasses, "attention", is_attentive).await;
    world::say(&mut glasses, "What is twelve times three?").await;
    understood(&mut glasses).await;
    assert!(answered(&mut glasses).await.contains("36"));
    glasses.goodbye().await;
    gateway.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_typed_before_the_session_is_on_the_disk_is_done_after_a_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let (data, held) = (folder.path().join("data"), folder.path().join("held"));
    let library = power::compile(folder.path(), HELD).display().to_string();
    let slow = [("LD_PRELOAD", &*library), ("HELD", held.to_str().expect("UTF-8"))];
    let gateway = Process::start(&data, "", &slow).await;
    // Paired, and gone again.
    world::connect(&data, gateway.options()).await.goodbye().await;
    std::fs::write(&held, "").expect("written");
    let mut glasses = world::connect(&data, gateway.options()).await;
    text(&mut glasses, "take a note: buy oat milk").await;
    // So many control frames are acknowledged at once, where they are.
    for percent in 0..20 {
        glasses.battery(percent).await.expect("told");
    }
    glasses.mute(true).await.expect("muted");
    until(&mut glasses, "muted", |event| matches!(&event.seen, Seen::Listening { state, .. } if state == "muted"))
        .await;
    gateway.kill().await;
    std::fs::remove_file(&held).expect("removed");
    loses_its_link(&mut glasses).await;
    let gateway = Process::start(&data, "", &[]).await;
    comes_back(&mut glasses, &gateway).await;
    assert!(answered(&mut glasses).await.contains("oat milk"));
    glasses.goodbye().await;
    gateway.kill().await;
    assert_eq!(notes(&data).await.len(), 1);
}

/// The tools of an MCP server as the wearer is offered them, and the revision.
async fn offered(data: &Path, source: &str) -> (Vec<Value>, u64) {
    let request = Request::Tools { user: world::USER.to_owned() };
    let Ok(Answer::Tools { tools }) = ask(data, request).await else { panic!("no tools") };
    let tools = tools.iter().filter(|tool| tool.source == source).map(|tool| json!(tool)).collect();
    let Ok(Answer::Status { status }) = ask(data, Request::Status).await else { panic!("no status") };
    (tools, status.tools_revision)
}

async fn called(data: &Path, name: &str) -> ToolResult {
    let request = Request::CallTool { user: world::USER.to_owned(), name: name.to_owned(), arguments: json!({}) };
    match ask(data, request).await {
        Ok(Answer::ToolResult { result, .. }) => *result,
        other => panic!("{other:?}"),
    }
}

/// Calls a tool until its server has started and answers.
async fn answers(data: &Path, name: &str) {
    let told = async { while called(data, name).await.is_error() {} };
    tokio::time::timeout(WAIT, told).await.expect("its server answers");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_and_their_revision_outlive_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let with = |command: &str| {
        let server =
            format!("servers.faulty = {{ command = {command:?}, args = [{FAULTY:?}], approval = \"changes\" }}");
        format!("[mcp]\n{server}\n[tools]\nclients.\"faulty.process\" = [\"internal\"]\n")
    };
    let mut gateway = Process::start(&data, &with("python3"), &[]).await;
    answers(&data, "faulty.process").await;
    let off = Request::SwitchTool { user: world::USER.to_owned(), name: "faulty.touch".to_owned(), on: false };
    ask(&data, off).await.expect("switched off");
    let (known, mut revision) = offered(&data, "mcp:faulty").await;
    assert!(known.len() > 10 && known.iter().any(|tool| tool["off"] == true), "{known:?}");
    assert!(known.iter().any(|tool| tool["clients_configured"] == true), "{known:?}");
    for upgrade in [true, false] {
        match upgrade {
            true => drop(gateway.terminate().await),
            false => {
                written(&gateway).await;
                drop(gateway.kill().await);
            }
        }
        // The server does not start: what is offered is what was stored.
        gateway = Process::start(&data, &with("/no/such/server"), &[]).await;
        let (again, next) = offered(&data, "mcp:faulty").await;
        assert_eq!(again, known);
        assert!(next > revision, "{next} after {revision}");
        revision = next;
        let error = called(&data, "faulty.process").await.error.expect("no server");
        assert_eq!((error.code, error.retryable), (ErrorCode::AppNotAvailable, true), "{error:?}");
    }
    gateway.terminate().await;
    let gateway = Process::start(&data, &with("python3"), &[]).await;
    answers(&data, "faulty.process").await;
    let (again, next) = offered(&data, "mcp:faulty").await;
    assert_eq!(again, known);
    assert!(next > revision, "{next} after {revision}");
    gateway.terminate().await;
    // It is not configured any more.
    let gateway = Process::start(&data, "", &[]).await;
    assert_eq!(offered(&data, "mcp:faulty").await.0, Vec::<Value>::new());
    gateway.terminate().await;
}

/// How often the faulty server has begun what never ends.
fn stalled(notes: &Path) -> usize {
    std::fs::read_to_string(notes).unwrap_or_default().lines().filter(|line| *line == "stalled").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_a_kill_9_cuts_off_is_told_by_its_name_and_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let (data, notes) = (folder.path().join("data"), folder.path().join("notes"));
    let arguments = json!([FAULTY, "", notes.display().to_string()]);
    let settings = format!(
        "[mcp]\nservers.faulty = {{ command = \"python3\", args = {arguments}, \
         phrases = {{ stall = [\"stall the works\"] }} }}\n"
    );
    let gateway = Process::start(&data, &settings, &[]).await;
    answers(&data, "faulty.process").await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    // Its session is on disk by then.
    text(&mut glasses, "what is two plus two?").await;
    answered(&mut glasses).await;
    written(&gateway).await;
    text(&mut glasses, "stall the works").await;
    let begun = async {
        while stalled(&notes) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, begun).await.expect("the tool runs");
    gateway.kill().await;
    loses_its_link(&mut glasses).await;
    let gateway = Process::start(&data, &settings, &[]).await;
    comes_back(&mut glasses, &gateway).await;
    let told = |event: &Event| match &event.seen {
        Seen::SpeechHeard { complete: true, text, .. } => {
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            words.contains("I was restarted before I was done. I don't know whether this was done: Faulty: stall.")
        }
        _ => false,
    };
    until(&mut glasses, "what nobody knows", told).await;
    // Its server runs again, and was called for nothing else.
    answers(&data, "faulty.process").await;
    assert_eq!(stalled(&notes), 1);
    glasses.goodbye().await;
    gateway.kill().await;
}
