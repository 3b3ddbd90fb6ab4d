//! Programs that are disturbed in the middle: by the wearer, by a lost link, by an erasure, by kills.

use device_protocol::{ButtonAction, ButtonId, Choice};
use firmware_sim::{Glasses, Seen};
use gateway::control::{Request, memory::MemoryRequest};
use serde_json::json;

use super::{
    in_order, model,
    provider::{Answer, Provider},
};
use crate::{
    process::{Process, binary},
    shop::{SETTINGS, Shop},
    world::{self, USER, World, text, until},
};

/// A program with a change before the door, and one behind it.
const THROUGH_THE_DOOR: &str = "import { shop } from '@capabilities/shop';\n\
    await shop.addItem({ item: 'bread' });\n\
    await shop.openDoor();\n\
    await shop.addItem({ item: 'milk' });\n\
    export default 'both';\n";

/// What is shown meanwhile: the door's own words.
const DOOR: &str = "Shop: waiting at the door ...";

/// The same with a second change in front of the door: when it begins, the outcome of the first one is on the disk.
const AFTER_A_NOTE: &str = "import { shop } from '@capabilities/shop';\n\
    import { noteAdd } from '@capabilities/note-add';\n\
    await shop.addItem({ item: 'bread' });\n\
    await noteAdd({ text: 'bought bread' });\n\
    await shop.openDoor();\n\
    await shop.addItem({ item: 'milk' });\n\
    export default 'both';\n";

fn settings(provider: &Provider) -> String {
    let model = model(provider, "chat_completions", "one");
    format!("[model]\n{model}[code]\nenabled = true\nlocal_models = true\nmode = \"instead\"\n{SETTINGS}")
}

async fn world(provider: &Provider, shop: &Shop) -> World {
    world_with(&settings(provider), shop).await
}

async fn world_with(settings: &str, shop: &Shop) -> World {
    let tune = |config: &mut gateway::config::Config| {
        config.models.code.executable = Some(binary());
        shop.put(&config.data_dir);
    };
    World::tuned(settings, tune).await
}

fn program(source: &str) -> Answer {
    Answer::Calls("code.run", json!({"code": source}))
}

/// Waits for a question; its number and what it asks.
async fn question(glasses: &mut Glasses) -> (u32, String) {
    match until(glasses, "a question", |event| matches!(event.seen, Seen::ApprovalRequest { .. })).await {
        Seen::ApprovalRequest { approval, message, .. } => (approval, message),
        _ => unreachable!("it was picked"),
    }
}

/// Waits until this was said or shown.
async fn told(glasses: &mut Glasses, words: &str) {
    let tells = |event: &firmware_sim::Event| match &event.seen {
        Seen::SpeechStart { text, .. } | Seen::Display { text, .. } => text.replace('\n', " ").contains(words),
        _ => false,
    };
    until(glasses, words, tells).await;
}

/// The labels of calls that run, since the beginning.
fn activities(glasses: &Glasses) -> Vec<String> {
    let labels = glasses.log().since(0).into_iter().filter_map(|event| match event.seen {
        Seen::ToolActivity { label, state, .. } if state == "started" => Some(label),
        _ => None,
    });
    labels.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_question_is_about_one_call_with_its_arguments_and_a_no_is_an_error_of_the_program() {
    let (provider, shop) = (Provider::start().await, Shop::start().await);
    let world = world(&provider, &shop).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then(
        "one",
        program(
            "import { shop } from '@capabilities/shop';\n\
             const ends = [];\n\
             for (const list of ['party', 'party', 'garden']) {\n\
               try { await shop.deleteList({ list }); ends.push('deleted'); }\n\
               catch (error) { ends.push(error.code); }\n\
               await shop.addItem({ item: `after ${list}` });\n\
             }\n\
             export default ends;\n",
        ),
    );
    provider.then("one", Answer::Says("The garden is gone, as you wished.", 60, 6));
    text(&mut glasses, "tidy up my lists").await;
    // The same question again is a question again, and a yes to one is none to another.
    for (list, choice) in [("party", Choice::Yes), ("party", Choice::No), ("garden", Choice::Yes)] {
        let (number, message) = question(&mut glasses).await;
        assert!(message.contains(&format!("Delete the list \"{list}\"?")), "{message}");
        glasses.approve(number, choice).await.expect("tapped");
        until(&mut glasses, "its end", |event| matches!(event.seen, Seen::ApprovalSettled { .. })).await;
    }
    told(&mut glasses, "The garden is gone").await;
    let deleted = shop.calls().into_iter().filter(|(function, _)| function == "deleteList").map(|(_, list)| list);
    assert_eq!(deleted.collect::<Vec<_>>(), [json!({"list": "party"}), json!({"list": "garden"})]);
    assert_eq!(shop.items(), ["after party", "after party", "after garden"]);
    in_order(&provider.until(2).await, &["deleted\\\",\\\"APPROVAL_DENIED\\\",\\\"deleted"]);
}

/// It lasts as long as a question does.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_answers_is_an_error_and_the_programs_time_stands_still_meanwhile() {
    let (provider, shop) = (Provider::start().await, Shop::start().await);
    let world = world(&provider, &shop).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let source = "import { shop } from '@capabilities/shop';\n\
        const end = await shop.deleteList({ list: 'party' }).catch((error) => error.code);\n\
        await shop.addItem({ item: 'cake' });\n\
        export default end;\n";
    provider.then("one", Answer::Calls("code.run", json!({"code": source, "timeout_ms": 15_000})));
    provider.then("one", Answer::Says("I left your list as it is.", 60, 6));
    text(&mut glasses, "delete the party list").await;
    question(&mut glasses).await;
    told(&mut glasses, "I left your list").await;
    in_order(&provider.until(2).await, &["\\\"APPROVAL_EXPIRED\\\""]);
    assert_eq!(shop.items(), ["cake"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tools_own_words_are_shown_for_a_call_outside_of_programs() {
    let (provider, shop) = (Provider::start().await, Shop::start().await);
    let world = world_with(&settings(&provider).replace("instead", "beside"), &shop).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then("one", Answer::Calls("shop.openDoor", json!({})));
    provider.then("one", Answer::Says("The door is open.", 60, 6));
    text(&mut glasses, "go to the shop and open its door").await;
    let is_shown =
        |event: &firmware_sim::Event| matches!(&event.seen, Seen::ToolActivity { label, .. } if label == DOOR);
    until(&mut glasses, "what it does", is_shown).await;
    shop.open();
    told(&mut glasses, "The door is open").await;
    assert_eq!(activities(&glasses), ["Shop: open door", DOOR]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_interrupted_program_has_done_is_said_and_the_model_reads_it() {
    let (provider, shop) = (Provider::start().await, Shop::start().await);
    let world = world(&provider, &shop).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then("one", program(THROUGH_THE_DOOR));
    text(&mut glasses, "buy bread and milk").await;
    shop.knocked().await;
    // The first line at once, the next one as soon as the first could be read.
    until(
        &mut glasses,
        "what it does",
        |event| matches!(&event.seen, Seen::ToolActivity { label, .. } if label == DOOR),
    )
    .await;
    assert_eq!(activities(&glasses), ["Run a program", "Shop: adding item ...", DOOR]);
    glasses.press(ButtonId::Main, ButtonAction::Press).await.expect("pressed");
    until(
        &mut glasses,
        "the end of the sign",
        |event| matches!(&event.seen, Seen::ToolActivity { state, .. } if state == "cancelled"),
    )
    .await;
    told(&mut glasses, "Already done: Add item.").await;
    shop.open();
    provider.then("one", Answer::Says("Bread is in the basket, milk is not.", 60, 6));
    text(&mut glasses, "how far did you get").await;
    told(&mut glasses, "milk is not").await;
    in_order(
        &provider.until(2).await,
        &["It has made 1 change: do not repeat it.", "item", "bread", "how far did you get"],
    );
    assert_eq!(shop.items(), ["bread"]);
    // What the program did was on the display only.
    let spoken = glasses.log().since(0).into_iter().any(|event| {
        matches!(&event.seen, Seen::SpeechStart { text, .. } | Seen::SpeechHeard { text, .. } if text.contains("adding item"))
    });
    assert!(!spoken, "{:#?}", glasses.log().since(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_goes_on_while_the_link_is_lost() {
    let (provider, shop) = (Provider::start().await, Shop::start().await);
    let world = world(&provider, &shop).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then("one", program(THROUGH_THE_DOOR));
    provider.then("one", Answer::Says("Both are in the basket.", 60, 6));
    text(&mut glasses, "buy bread and milk").await;
    shop.knocked().await;
    glasses.cut().await.expect("cut");
    until(&mut glasses, "the cut", |event| matches!(event.seen, Seen::LinkLost { .. })).await;
    shop.open();
    provider.until(2).await;
    glasses.reconnect(None).await.expect("it tries");
    let welcome = until(&mut glasses, "a welcome", |event| matches!(event.seen, Seen::Welcome { .. })).await;
    assert!(matches!(welcome, Seen::Welcome { resumed: true, .. }), "{welcome:?}");
    told(&mut glasses, "Both are in the basket").await;
    assert_eq!(shop.items(), ["bread", "milk"]);
    let ends = glasses
        .log()
        .since(0)
        .into_iter()
        .filter(|event| matches!(&event.seen, Seen::ToolActivity { state, .. } if state == "finished"));
    assert_eq!(ends.count(), 1, "its line has gone from the display");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_of_the_user_ends_a_program() {
    let (provider, shop) = (Provider::start().await, Shop::start().await);
    let world = world(&provider, &shop).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let before = "import { fs } from '@lorgnette/std';\nawait fs.writeFile('secret.txt', 'a secret');\n";
    provider.then("one", program(&format!("{before}{THROUGH_THE_DOOR}")));
    text(&mut glasses, "buy bread and milk").await;
    shop.knocked().await;
    let file = world.data().join("workspace").join(USER).join("secret.txt");
    assert!(file.exists());
    let request = MemoryRequest::EraseUser { user: USER.into(), devices: false };
    world.ask(Request::Memory { request }).await.expect("erased");
    until(&mut glasses, "the end", |event| matches!(event.seen, Seen::Goodbye { .. } | Seen::LinkLost { .. })).await;
    shop.open();
    assert!(!file.exists());
    // The devices stay paired; the next program begins with nothing.
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then("one", program("import { fs } from '@lorgnette/std';\nexport default (await fs.list()).length;\n"));
    provider.then("one", Answer::Says("There is nothing.", 60, 6));
    text(&mut glasses, "what is in my files").await;
    told(&mut glasses, "There is nothing").await;
    let asked = provider.until(3).await;
    assert!(!asked.body.to_string().contains("bread"), "{}", asked.body);
    assert_eq!(shop.items(), ["bread"]);
}

/// The processes of programs that this one has started.
fn sandboxes(parent: u32) -> Vec<String> {
    let of = |pid: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        status.contains(&format!("PPid:\t{parent}\n")) && String::from_utf8_lossy(&command).contains("code-sandbox")
    };
    let all = std::fs::read_dir("/proc").expect("processes").flatten();
    all.filter_map(|entry| entry.file_name().into_string().ok()).filter(|pid| of(pid)).collect()
}

async fn kill_9(pids: &[String]) {
    let killed = tokio::process::Command::new("kill").arg("-9").args(pids).status().await;
    assert!(killed.expect("kill").success(), "{pids:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_whose_process_is_killed_is_an_error_and_the_next_one_runs() {
    let (provider, shop) = (Provider::start().await, Shop::start().await);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    shop.put(&data);
    let gateway = Process::start(&data, &settings(&provider), &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    provider.then("one", program(THROUGH_THE_DOOR));
    provider.then("one", Answer::Says("Something went wrong behind the bread.", 60, 6));
    text(&mut glasses, "buy bread and milk").await;
    shop.knocked().await;
    // That of the program, and the one that waits for the next program.
    let pids = sandboxes(gateway.id());
    assert!(!pids.is_empty());
    kill_9(&pids).await;
    // A call that was begun runs to its end.
    shop.open();
    told(&mut glasses, "Something went wrong").await;
    in_order(&provider.until(2).await, &["the program broke off", "It has made 1 change: do not repeat it."]);
    assert_eq!(shop.items(), ["bread"]);
    provider.then("one", program("export default 6 * 7;"));
    provider.then("one", Answer::Says("It is forty-two.", 60, 6));
    text(&mut glasses, "what is six times seven").await;
    told(&mut glasses, "forty-two").await;
    in_order(&provider.until(4).await, &["\"42\""]);
    glasses.goodbye().await;
    gateway.terminate().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_not_run_again_after_a_kill_9_of_the_gateway_and_what_it_did_is_told() {
    let (provider, shop) = (Provider::start().await, Shop::start().await);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    shop.put(&data);
    let gateway = Process::start(&data, &settings(&provider), &[]).await;
    let mut glasses = world::connect(&data, gateway.options()).await;
    provider.then("one", program(AFTER_A_NOTE));
    text(&mut glasses, "buy bread and milk").await;
    shop.knocked().await;
    let pids = sandboxes(gateway.id());
    gateway.kill().await;
    until(&mut glasses, "a lost link", |event| matches!(event.seen, Seen::LinkLost { .. })).await;
    // Its process has ended with it.
    let gone = async {
        while pids.iter().any(|pid| std::path::Path::new(&format!("/proc/{pid}/exe")).exists()) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(world::WAIT, gone).await.expect("they end");
    let gateway = Process::start(&data, &settings(&provider), &[]).await;
    let target = format!("wss://{}/glasses", gateway.web).parse().expect("an address");
    glasses.forget();
    glasses.reconnect(Some(target)).await.expect("it tries");
    until(&mut glasses, "a welcome", |event| matches!(event.seen, Seen::Welcome { .. })).await;
    told(&mut glasses, "Run a program (already done: Shop: add item").await;
    shop.open();
    provider.then("one", Answer::Says("Bread may be in the basket.", 60, 6));
    text(&mut glasses, "what is in my basket").await;
    told(&mut glasses, "Bread may be").await;
    assert_eq!(shop.items(), ["bread"]);
    glasses.goodbye().await;
    gateway.terminate().await;
}
