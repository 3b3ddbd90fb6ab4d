//! Programs that a model writes, from its request to what the wearer hears.

use std::path::Path;

use firmware_sim::Seen;
use gateway::control::{Answer as Told, Request};
use serde_json::json;

use super::{
    ask, has, in_order, model,
    provider::{Answer, Asked, Provider, names},
};
use crate::{
    process::binary,
    world::{USER, World, answered, pause, text, until},
};

/// A gateway whose model may write programs.
async fn world(provider: &Provider, mode: &str) -> World {
    let settings = format!(
        "[model]\n{}[code]\nenabled = true\nlocal_models = true\nmode = \"{mode}\"\n",
        model(provider, "chat_completions", "one")
    );
    World::tuned(&settings, |config| config.models.code.executable = Some(binary())).await
}

fn program(source: &str) -> Answer {
    Answer::Calls("code.run", json!({"code": source}))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_calls_tools_and_only_its_outcome_reaches_the_model() {
    let provider = Provider::start().await;
    let world = world(&provider, "beside").await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then("one", Answer::Calls("code.api", json!({"module": "@capabilities/note-add"})));
    provider.then(
        "one",
        program(
            "import { noteAdd } from '@capabilities/note-add';\n\
             import { noteList } from '@capabilities/note-list';\n\
             import { csv, fs } from '@lorgnette/std';\n\
             interface Note { id: number; text: string }\n\
             for (const text of ['buy oat milk', 'call the dentist', 'buy bread']) await noteAdd({ text });\n\
             const { notes } = (await noteList({})) as { notes: Note[] };\n\
             console.log('seen', notes.length);\n\
             await fs.writeFile('notes/all.csv', csv.stringify(notes.map(({ text }) => ({ text }))));\n\
             export default notes.filter((note: Note) => note.text.startsWith('buy')).map((note) => note.text).sort();\n",
        ),
    );
    provider.then("one", Answer::Says("You want to buy oat milk and bread.", 60, 6));
    let told = ask(&mut glasses, "what do I want to buy").await;
    assert!(has(&told, &["oat milk and bread"]), "{told}");
    assert_eq!(world.notes(), ["buy bread", "call the dentist", "buy oat milk"]);
    let asked = provider.until(3).await;
    let offered = names(&asked.body);
    assert!(offered.iter().any(|name| name.starts_with("code") && name.ends_with("run")), "{offered:?}");
    assert!(offered.len() > 10, "all tools beside: {offered:?}");
    in_order(&asked, &["export function noteAdd", "seen 3\\n[\\\"buy bread\\\",\\\"buy oat milk\\\"]"]);
    assert!(!asked.body.to_string().contains("\\\"id\\\":"), "notes as the tool told them: {}", asked.body);
    let file = world.data().join("workspace").join(USER).join("notes/all.csv");
    let table = std::fs::read_to_string(file).expect("the program's file");
    let mut lines: Vec<&str> = table.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["buy bread", "buy oat milk", "call the dentist", "text"]);
    // Each call is recorded.
    let Told::Usage { users } = world.ask(Request::Usage { user: None, since_wall_ms: 0 }).await.expect("records")
    else {
        panic!("no records");
    };
    let calls: Vec<_> = users.values().flatten().map(|usage| (usage.tool.as_str(), usage.calls)).collect();
    assert!(calls.contains(&("note.add", 3)) && calls.contains(&("code.run", 1)), "{calls:?}");
    assert!(calls.contains(&("std.fs.writeFile", 1)), "{calls:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_in_a_program_is_answered_and_an_error_reaches_the_model_with_its_line() {
    let provider = Provider::start().await;
    let world = world(&provider, "instead").await;
    let mut glasses = world.glasses("quic", "glasses").await;
    provider.then("one", Answer::Calls("note.add", json!({"text": "not offered"})));
    provider.then(
        "one",
        program(
            "import { noteAdd } from '@capabilities/note-add';\n\
             import { noteClear } from '@capabilities/note-clear';\n\
             await noteAdd({ text: 'old' });\n\
             await noteClear();\n\
             await noteAdd({ text: 'new' });\n\
             await noteAdd({ txt: 'wrong' });\n",
        ),
    );
    provider.then("one", Answer::Says("Your notes are new, but for one.", 60, 6));
    text(&mut glasses, "renew my notes").await;
    until(&mut glasses, "the question", |event| matches!(event.seen, Seen::ApprovalRequest { .. })).await;
    // What was typed before the question could be read does not answer it.
    pause(&glasses).await;
    glasses.text("yes").await.expect("typed");
    let told = answered(&mut glasses).await;
    assert!(has(&told, &["but for one"]), "{told}");
    assert_eq!(world.notes()[0], "new");
    let asked = provider.until(3).await;
    assert_eq!(names(&asked.body).len(), 2, "{:?}", names(&asked.body));
    // The modules are named instead of the tools, in the same words for each request.
    let told = |asked: &Asked| {
        let system = asked.body["messages"][0]["content"].as_str().unwrap_or_default();
        system.split("Local time is").next().unwrap_or_default().to_owned()
    };
    let all: Vec<String> = provider.asked().iter().map(told).collect();
    assert!(all.iter().all(|told| told == &all[0]), "{all:#?}");
    assert!(all[0].contains("Modules for code.run") && all[0].contains(" note-{add,"), "{}", all[0]);
    in_order(&asked, &["Error in line 6", "note.add"]);
}

/// The outcome of a program that the gateway's own executable runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_is_ready_before_the_first_program() {
    let provider = Provider::start().await;
    let world = world(&provider, "beside").await;
    let has_child = || {
        let tasks = std::fs::read_dir("/proc").expect("processes");
        tasks.flatten().any(|task| {
            let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
            let command = std::fs::read(task.path().join("cmdline")).unwrap_or_default();
            status.contains(&format!("PPid:\t{}\n", std::process::id()))
                && String::from_utf8_lossy(&command).contains("code-sandbox")
        })
    };
    assert!(Path::new("/proc/self").exists() && has_child());
    world.stop().await;
}
