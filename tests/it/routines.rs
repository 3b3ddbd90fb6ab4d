//! Programs for people, on a running gateway: runs are shown and repeated, kept as routines, and run by a phrase.

use std::path::Path;

use firmware_sim::{Glasses, Seen};
use gateway::control::{Answer as Told, Request, programs::ProgramsRequest};
use serde_json::{Value, json};

use crate::{
    assistant::provider::{Answer, Provider, names},
    process::{Process, binary, fails, succeeds},
    restart::written,
    shop::{self, Shop},
    world::{self, USER, WAIT, World, answered, pause, text, until},
};

const CODE: &str = "[code]\nenabled = true\nlocal_models = true\n";
/// Lists notes; where there are more than two it adds another one, which it did not do when it was kept.
const SUMMARY: &str = "import { noteAdd } from '@capabilities/note-add';
import { noteList } from '@capabilities/note-list';
import { fs } from '@lorgnette/std';
const { notes } = (await noteList({})) as { notes: { text: string }[] };
console.log(`You have ${notes.length} notes.`);
await fs.writeFile('summary.txt', String(notes.length));
if (notes.length > 2) await noteAdd({ text: 'too many' });
export default 'Have a nice day!';";

/// The commands of an operator of this gateway.
struct Operator(String);

impl Operator {
    fn of(data: &Path) -> Self {
        Self(data.with_extension("toml").display().to_string())
    }

    fn words<'a>(&'a self, words: &[&'a str]) -> Vec<&'a str> {
        words.iter().copied().chain(["--config", self.0.as_str()]).collect()
    }

    async fn says(&self, words: &[&str]) -> String {
        succeeds(&self.words(words)).await
    }

    async fn fails(&self, words: &[&str]) -> String {
        fails(&self.words(words)).await
    }

    async fn run(&self, program: &str) -> String {
        self.says(&["tools", "call", "code.run", &json!({"code": program}).to_string()]).await
    }

    async fn note(&self, note: &str) {
        self.says(&["tools", "call", "note.add", &json!({"text": note}).to_string()]).await;
    }
}

/// Types a request, and waits until all of these words were said or shown, whatever else is said before.
async fn hears(glasses: &mut Glasses, request: &str, words: &[&str]) {
    text(glasses, request).await;
    learns(glasses, words).await;
}

fn has(told: &str, words: &[&str]) -> bool {
    words.iter().any(|words| told.contains(words))
}

/// Waits until all of these words were said or shown.
async fn learns(glasses: &mut Glasses, words: &[&str]) {
    let mut missing = words.to_vec();
    until(glasses, &format!("{words:?}"), |event| {
        if let Seen::SpeechStart { text, .. } | Seen::Display { text, .. } = &event.seen {
            let text = text.to_lowercase().replace('\n', " ");
            missing.retain(|words| !text.contains(words));
        }
        missing.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_becomes_a_routine_that_a_phrase_runs_also_after_a_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut gateway = Process::start(&data, CODE, &[]).await;
    let operator = Operator::of(&data);
    assert!(operator.says(&["code", "runs"]).await.starts_with("0 runs"));
    operator.note("buy oat milk").await;
    let broken = json!({"code": "const x = 1;\nconst y: string = null;\ny.length;"}).to_string();
    operator.fails(&["tools", "call", "code.run", &broken]).await;
    assert!(operator.run(SUMMARY).await.contains("You have 1 notes."));

    let runs = operator.says(&["code", "runs"]).await;
    let lines: Vec<&str> = runs.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("     2  ") && lines[1].contains("EXECUTION_ERROR"), "{runs}");
    let shown = operator.says(&["code", "show", "2"]).await;
    for words in
        ["    1  import { noteAdd }", "done", "note.list {}", "std.fs.writeFile", "  | You have 1 notes.", "nice day"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let shown = operator.says(&["code", "show", "1"]).await;
    assert!(shown.contains(">   3  y.length;") && shown.contains("error in line 3"), "{shown}");
    let error = operator.fails(&["code", "keep", "1", "--name", "broken", "--phrase", "run it all"]).await;
    assert!(error.contains("failed in line 3"), "{error}");

    let keep = ["code", "keep", "2", "--name", "morning-summary", "--phrase", "Run my morning summary"];
    let kept = operator.says(&keep).await;
    assert!(kept.contains("version 1") && kept.contains("may call note.list, std.fs.writeFile"), "{kept}");
    let taken = ["code", "keep", "2", "--name", "other", "--phrase", "run my morning summary"];
    let error = operator.fails(&taken).await;
    assert!(error.contains("routine.morning-summary understands it"), "{error}");

    for round in 0..2 {
        let mut glasses = world::connect(&data, gateway.options()).await;
        let notes = format!("you have {} notes", round + 1);
        hears(&mut glasses, "run my morning summary", &[&notes, "have a nice day"]).await;
        glasses.goodbye().await;
        operator.note("call the dentist").await;
        if round == 0 {
            gateway.kill().await;
            gateway = Process::start(&data, CODE, &[]).await;
        }
    }
    // It would call what it did not when it was kept.
    let mut glasses = world::connect(&data, gateway.options()).await;
    hears(&mut glasses, "please run my morning summary", &["may not call note.add"]).await;
    let notes = operator.says(&["tools", "call", "note.list"]).await;
    assert!(!notes.contains("too many"), "{notes}");

    // By hand it may: that is a new run, which can be kept in its place.
    let again = operator.says(&["code", "run", "2"]).await;
    assert!(again.contains("run 2 again") && again.contains("note.add"), "{again}");
    let all: Vec<Value> = operator
        .says(&["code", "runs", "--json"])
        .await
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!((&all[0]["again_of"], &all[1]["routine"]["name"]), (&json!(2), &json!("morning-summary")));
    let newest = all[0]["id"].to_string();
    let kept = operator.says(&["code", "keep", &newest, "--name", "morning-summary"]).await;
    assert!(kept.contains("version 2") && kept.contains("note.add"), "{kept}");
    hears(&mut glasses, "run my morning summary", &["have a nice day"]).await;
    let restored = operator.says(&["code", "routine", "restore", "morning-summary", "1"]).await;
    assert!(restored.contains("version 3"), "{restored}");
    let shown = operator.says(&["code", "routine", "show", "morning-summary"]).await;
    assert!(shown.contains("version 3") && shown.contains("restore morning-summary 2"), "{shown}");
    glasses.goodbye().await;

    // All of it belongs to the user.
    let export = operator.says(&["users", "export", USER]).await;
    assert!(export.contains("\"kind\":\"runs\"") && export.contains("\"kind\":\"routines\""));
    operator.says(&["users", "erase", USER, "--yes"]).await;
    assert!(operator.says(&["code", "runs"]).await.starts_with("0 runs"));
    assert!(operator.says(&["code", "routines"]).await.starts_with("0 routines"));
    let mut glasses = world::connect(&data, gateway.options()).await;
    text(&mut glasses, "run my morning summary").await;
    let nothing = answered(&mut glasses).await;
    assert!(!nothing.contains("nice day") && has(&nothing, &["no command", "did not"]), "{nothing}");
    glasses.goodbye().await;
    gateway.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_a_kill_9_has_cut_off_is_shown_with_what_it_had_done() {
    let shop = Shop::start().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    shop.put(&data);
    let settings = format!("{CODE}{}", shop::SETTINGS);
    let gateway = Process::start(&data, &settings, &[]).await;
    let operator = Operator::of(&data);
    let program = "import { shop } from '@capabilities/shop';\n\
                   await shop.addItem({ item: 'bread' });\nawait shop.openDoor();\nawait shop.addItem({ item: 'milk' });\n";
    let arguments = json!({"code": program}).to_string();
    let call = ["tools", "call", "code.run", &arguments];
    let killed = async {
        shop.knocked().await;
        // The outcome of the first call is on the disk.
        written(&gateway).await;
        gateway.kill().await;
    };
    tokio::join!(operator.fails(&call), killed);
    let gateway = Process::start(&data, &settings, &[]).await;
    let runs = operator.says(&["code", "runs"]).await;
    let first = runs.lines().next().unwrap_or_default();
    assert!(first.contains("? ms") && first.contains("1 calls  cut off"), "{runs}");
    let shown = operator.says(&["code", "show", "1"]).await;
    for words in [
        "    3  await shop.openDoor();",
        "done            ? ms  shop.addItem {\"item\":\"bread\"}",
        "left out: what it printed, and its calls that only read",
        "error: the gateway was stopped in the middle of this program",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("{\"item\":\"milk\"}"), "{shown}");
    let keep = ["code", "keep", "1", "--name", "shopping", "--phrase", "do the shopping"];
    assert!(operator.fails(&keep).await.contains("only one that ran to its end can be kept"));
    // By hand it runs from its beginning.
    shop.open();
    let again = operator.says(&["code", "run", "1"]).await;
    assert!(again.contains("run 1 again") && again.contains("\"milk\""), "{again}");
    assert_eq!(shop.items(), ["bread", "bread", "milk"]);
    gateway.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_of_the_standard_library_are_told_of_a_program_that_failed() {
    let world = World::tuned(CODE, |config| config.models.code.executable = Some(binary())).await;
    let program = "import { fs } from '@lorgnette/std';\nawait fs.readFile('none').catch(() => 0);\n\
                   await fs.writeFile('a.txt', 'x');\nawait fs.mkdir('/etc').catch(() => 0);\nthrow new Error('no more');";
    let request = Request::CallTool { user: USER.into(), name: "code.run".into(), arguments: json!({"code": program}) };
    let Ok(Told::ToolResult { result, .. }) = world.ask(request).await else { panic!("no result") };
    let account = "Done:\n- std.fs.writeFile {\"";
    assert!(
        result.content.contains(account) && result.content.contains("Failed:\n- std.fs.mkdir"),
        "{}",
        result.content
    );
    assert!(result.say.is_some_and(|say| say.contains("Already done: Write a file.")));
    let request = ProgramsRequest::Show { user: USER.into(), id: 1 };
    let Ok(Told::Records { records }) = world.ask(Request::Programs { request }).await else { panic!("no run") };
    let outcomes: Vec<_> = records[0]["calls"].as_array().expect("calls").iter().map(|call| &call["outcome"]).collect();
    assert_eq!(outcomes, ["done", "failed"]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_in_a_routine_is_asked_each_time() {
    let world = World::tuned(CODE, |config| config.models.code.executable = Some(binary())).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let program =
        "import { noteClear } from '@capabilities/note-clear';\nawait noteClear();\nexport default 'All gone.';";
    let request = Request::CallTool { user: USER.into(), name: "code.run".into(), arguments: json!({"code": program}) };
    let asking = world.ask(request);
    let yes = async {
        until(&mut glasses, "the question", |event| matches!(event.seen, Seen::ApprovalRequest { .. })).await;
        pause(&glasses).await;
        glasses.text("yes").await.expect("typed");
    };
    let (ran, ()) = tokio::join!(asking, yes);
    assert!(matches!(ran, Ok(Told::ToolResult { result, .. }) if result.error.is_none()));
    let keep = ProgramsRequest::Keep {
        user: USER.into(),
        id: 1,
        name: "tidy".into(),
        phrases: vec!["tidy my notes up".into()],
    };
    world.ask(Request::Programs { request: keep }).await.expect("kept");
    text(&mut glasses, "tidy my notes up").await;
    until(&mut glasses, "the question", |event| matches!(event.seen, Seen::ApprovalRequest { .. })).await;
    pause(&glasses).await;
    glasses.text("no").await.expect("typed");
    learns(&mut glasses, &["couldn't finish tidy"]).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_run_again_by_hand_is_stopped_when_its_operator_leaves() {
    let world = World::tuned(CODE, |config| config.models.code.executable = Some(binary())).await;
    // Without glasses only this operator is asked.
    let mut events = world.gateway().services().approvals.watch().expect("a place");
    let mut next = async || tokio::time::timeout(WAIT, events.recv()).await.expect("in time").expect("an event");
    let program = "import { noteClear } from '@capabilities/note-clear';\nawait noteClear();";
    let request = Request::CallTool { user: USER.into(), name: "code.run".into(), arguments: json!({"code": program}) };
    let denied = async {
        let id = next().await.id;
        world.ask(Request::AnswerApproval { id, yes: false }).await.expect("taken");
        assert_eq!(next().await.outcome.as_deref(), Some("denied"));
    };
    let (ran, ()) = tokio::join!(world.ask(request), denied);
    ran.expect("a result");
    let request = ProgramsRequest::Run { user: USER.into(), id: 1 };
    let operator = world.send(&Request::Programs { request }).await;
    assert_eq!(next().await.outcome, None);
    drop(operator);
    assert_eq!(next().await.outcome.as_deref(), Some("cancelled"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_keeps_the_last_program_of_the_conversation_if_the_wearer_agrees() {
    let provider = Provider::start().await;
    let settings = format!(
        "[model]\nkind = \"chat_completions\"\nbase_url = \"{}\"\nmodel = \"scripted\"\ncommands_offline = true\n\
         [router]\ntools = 1000\n{CODE}",
        provider.url("one")
    );
    let world = World::tuned(&settings, |config| config.models.code.executable = Some(binary())).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let keep = || {
        let arguments = json!({"name": "evening-list", "phrases": ["read my evening list"]});
        provider.then("one", Answer::Calls("code.keep", arguments));
    };
    keep();
    provider.then("one", Answer::Says("There is nothing to keep.", 5, 5));
    text(&mut glasses, "keep what you did this evening").await;
    agree(&mut glasses).await;
    answered(&mut glasses).await;
    assert!(provider.until(2).await.body.to_string().contains("no program ran in this conversation"));

    let program = "import { noteAdd } from '@capabilities/note-add';\nimport { noteList } from '@capabilities/note-list';\n\
                   await noteAdd({ text: 'lock the door' });\nconst { notes } = await noteList({});\nexport default notes[0].text;";
    provider.then("one", Answer::Calls("code.run", json!({"code": program})));
    provider.then("one", Answer::Says("You have to lock the door.", 5, 5));
    hears(&mut glasses, "what is to be done this evening, think about it", &["you have to lock the door"]).await;
    keep();
    provider.then("one", Answer::Says("It is kept.", 5, 5));
    text(&mut glasses, "keep what you did this evening").await;
    let question = agree(&mut glasses).await;
    for words in ["evening-list", "read my evening list", "It may call: note add; note list."] {
        assert!(question.contains(words), "{words}: {question}");
    }
    answered(&mut glasses).await;
    assert!(provider.until(6).await.body.to_string().contains("I have kept evening list"));

    // By its phrase no model is asked, and the next request of a model offers it.
    hears(&mut glasses, "Read my evening list.", &["lock the door"]).await;
    assert_eq!((provider.asked().len(), world.notes().len()), (6, 2));
    provider.then("one", Answer::Calls("routine.evening-list", json!({})));
    provider.then("one", Answer::Says("It is done again.", 5, 5));
    hears(&mut glasses, "do whatever you did before once more, thanks", &["done again"]).await;
    let offered = names(&provider.until(7).await.body);
    assert!(offered.iter().any(|name| name.contains("routine") && name.contains("evening")), "{offered:?}");
    assert_eq!(world.notes().len(), 3);
    world.stop().await;
}

/// Waits for a question and answers yes; what was asked.
async fn agree(glasses: &mut Glasses) -> String {
    let asked = until(glasses, "the question", |event| matches!(event.seen, Seen::ApprovalRequest { .. })).await;
    // What was typed before the question could be read does not answer it.
    pause(glasses).await;
    glasses.text("yes").await.expect("typed");
    format!("{asked:?}")
}
