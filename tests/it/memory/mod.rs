//! The stored data of a wearer: remembered and forgotten on request, available on other glasses and after `kill -9`,
//! and erased completely.

mod fence;
mod server;

use std::{fs, path::Path};

use firmware_sim::{Glasses, Options, Seen};
use gateway::store::{NoteRecord, Store, Write};
use serde_json::Value;
use server::Server;

use crate::{
    process::{Process, fails, succeeds},
    world::{self, WAIT, answered, text, until},
};

/// Glasses of the same wearer under this name.
fn options(gateway: &Process, data: &Path, name: &str) -> Options {
    let target = format!("wss://{}/glasses", gateway.web).parse().expect("an address");
    let mut options = Options::new(target, &data.with_extension(name));
    options.reconnect = false;
    options.profile.echo_cancelled = true;
    options
}

async fn glasses(gateway: &Process, data: &Path, name: &str) -> Glasses {
    world::connect(data, options(gateway, data, name)).await
}

/// Types a request; returns the answer in lower case.
async fn ask(glasses: &mut Glasses, request: &str) -> String {
    text(glasses, request).await;
    answered(glasses).await
}

async fn run(data: &Path, words: &[&str]) -> String {
    let config = data.with_extension("toml").display().to_string();
    succeeds(&[words, &["--config", &config]].concat()).await
}

/// Waits until these words are found: a turn is stored when it is over, a moment after it was played.
async fn kept(data: &Path, words: &str) {
    let found = async { while !run(data, &["conversations", "search", words]).await.contains(words) {} };
    tokio::time::timeout(WAIT, found).await.expect("it is kept");
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_remembered_outlives_kill_9_and_is_forgotten_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut one = glasses(&gateway, &data, "one").await;
    let said = ask(&mut one, "Remember that my car is on level three").await;
    assert!(said.contains("i'll remember") && said.contains("level three"), "{said}");
    gateway.kill().await;

    // Other glasses, another process.
    let gateway = Process::start(&data, "", &[]).await;
    let mut two = glasses(&gateway, &data, "two").await;
    let said = ask(&mut two, "What do you remember about my car?").await;
    assert!(said.contains("my car is on level three"), "{said}");
    let said = ask(&mut two, "Forget that.").await;
    assert!(said.contains("forgotten"), "{said}");
    let said = ask(&mut two, "Bring that memory back").await;
    assert!(said.contains("remember again"), "{said}");
    let said = ask(&mut two, "Forget that").await;
    assert!(said.contains("forgotten"), "{said}");
    gateway.kill().await;

    let gateway = Process::start(&data, "", &[]).await;
    let mut one = glasses(&gateway, &data, "one").await;
    let said = ask(&mut one, "What do you remember about my car?").await;
    assert!(said.contains("nothing about"), "{said}");
    gateway.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_on_other_glasses_and_the_model_is_told_what_matters() {
    let server = Server::start().await;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let skill = folder.path().join("skills/knots");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: knots\ndescription: How to tie knots.\n---\nUse a rope.\n").unwrap();
    let settings = format!(
        "[model]\nkind = \"chat_completions\"\nbase_url = \"{}\"\nmodel = \"testling-1\"\ncommands_offline = true\n\
         [assistant.personality]\ntestling = \"Speak like a pirate.\"\n[skills]\nfolders = [{:?}]\n",
        server.url(),
        folder.path().join("skills").display().to_string()
    );
    let gateway = Process::start(&data, &settings, &[]).await;
    let mut one = glasses(&gateway, &data, "one").await;
    for command in
        ["Remember that my parrot is called Otto", "Remember that I was born in Rome", "Always answer in rhymes"]
    {
        ask(&mut one, command).await;
    }
    ask(&mut one, "Does the sea freeze?").await;
    kept(&data, "the sea freeze").await;
    gateway.kill().await;

    let gateway = Process::start(&data, &settings, &[]).await;
    let mut two = glasses(&gateway, &data, "two").await;
    ask(&mut two, "And does a parrot mind that?").await;
    let asked = server.last();
    for told in
        ["Speak like a pirate.", "Always answer in rhymes", "my parrot is called Otto", "knots: How to tie knots."]
    {
        assert!(asked.contains(told), "{told}: {asked}");
    }
    assert!(asked.contains("Does the sea freeze?"), "the conversation goes on: {asked}");
    assert!(!asked.contains("- I was born in Rome"), "what has nothing to do with it is not told: {asked}");

    // On request a new conversation begins, without earlier messages for the model.
    ask(&mut two, "Start a new conversation").await;
    ask(&mut two, "How deep is a fjord?").await;
    let asked = server.last();
    assert!(!asked.contains("sea freeze") && asked.contains("fjord"), "{asked}");

    let all = lines(&run(&data, &["conversations", "list", "--json"]).await);
    let [first, second] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(first["title"], "Remember that my parrot is called Otto");
    assert_eq!(second["title"], "How deep is a fjord?");
    let shown = run(&data, &["conversations", "show", "2"]).await;
    assert!(shown.contains("You: How deep is a fjord?\nLorgnette: Aye."), "{shown}");
    let found = run(&data, &["conversations", "search", "sea freezes"]).await;
    assert!(found.contains("Does the sea freeze?"), "{found}");
    let exported = run(&data, &["conversations", "export", "--text"]).await;
    assert!(exported.contains("sea freeze") && exported.contains("fjord"), "{exported}");

    // One is erased; the wearer continues the other.
    let words = run(&data, &["conversations", "erase", "1"]).await;
    assert!(words.contains("erased 1 conversation"), "{words}");
    assert_eq!(counts(&data, ["sea freeze"]), [0]);
    ask(&mut two, "Are fjords cold?").await;
    let all = lines(&run(&data, &["conversations", "list", "--json"]).await);
    assert!(all.len() == 1 && all[0]["id"] == 2, "{all:?}");
    // So is the current one: what the wearer says next is no part of the other.
    ask(&mut two, "Start a new conversation").await;
    ask(&mut two, "How deep is a loch?").await;
    kept(&data, "deep is a loch").await;
    run(&data, &["conversations", "erase", "3"]).await;
    ask(&mut two, "How deep is a lagoon?").await;
    kept(&data, "deep is a lagoon").await;
    let all = lines(&run(&data, &["conversations", "list", "--json"]).await);
    let ids: Vec<_> = all.iter().map(|one| one["id"].as_u64()).collect();
    assert!(ids == [Some(2), Some(4)] && all[1]["title"] == "How deep is a lagoon?", "{all:?}");
    let skills = run(&data, &["skills"]).await;
    assert!(skills.contains("knots"), "{skills}");
    gateway.kill().await;
}

/// How often each word occurs in the files below a folder, ignoring case.
pub fn counts<const N: usize>(folder: &Path, words: [&str; N]) -> [usize; N] {
    let mut found = [0; N];
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let meta = path.symlink_metadata().expect("what it is");
        let more = if meta.is_dir() {
            counts(&path, words)
        } else if meta.is_file() {
            let bytes = fs::read(&path).expect("its bytes").to_ascii_lowercase();
            // Invalid UTF-8 is replaced; the words are plain ASCII.
            let text = String::from_utf8_lossy(&bytes);
            words.map(|word| text.matches(word).count())
        } else {
            [0; N]
        };
        found.iter_mut().zip(more).for_each(|(found, more)| *found += more);
    }
    found
}

/// Words that only the wearer says, one for each kind of data.
const PLANTED: [&str; 5] = ["quokka", "tapir", "axolotl", "narwhal", "pangolin"];

async fn plant(glasses: &mut Glasses) {
    for request in [
        "take a note the quokka has a hat",
        "remember that my tapir is in the orchard",
        "remind me in two hours to feed the axolotl",
        "always answer like a narwhal",
        // Not a command, and kept in the conversation.
        "pangolin pangolin pangolin",
    ] {
        ask(glasses, request).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_of_a_user_is_exported_and_erased() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut one = glasses(&gateway, &data, "one").await;
    plant(&mut one).await;
    let file = folder.path().join("export.jsonl");
    run(&data, &["users", "export", "wearer", "--out", &file.display().to_string()]).await;
    let exported = fs::read_to_string(&file).unwrap();
    let kinds: Vec<String> = lines(&exported).iter().map(|line| line["kind"].as_str().unwrap().to_owned()).collect();
    for kind in ["user", "device", "note", "reminder", "message", "conversations", "facts", "instructions", "ledger"] {
        assert!(kinds.iter().any(|other| other == kind), "{kind}: {kinds:?}");
    }
    for (word, found) in PLANTED.iter().zip(counts(&data, PLANTED)) {
        assert!(exported.contains(word) && found > 0, "{word}");
    }
    let config = data.with_extension("toml").display().to_string();
    let error = fails(&["users", "erase", "wearer", "--config", &config]).await;
    assert!(error.contains("--yes"), "{error}");
    assert!(counts(&data, PLANTED)[0] > 0);

    one.forget();
    let words = run(&data, &["users", "erase", "wearer", "--yes"]).await;
    assert!(words.contains("everything of wearer is erased; the devices stay paired"), "{words}");
    until(&mut one, "a goodbye", |event| matches!(event.seen, Seen::Goodbye { .. })).await;
    assert_eq!(counts(&data, PLANTED), [0; PLANTED.len()]);
    // The same glasses start again.
    let mut one = glasses(&gateway, &data, "one").await;
    let said = ask(&mut one, "What do you remember?").await;
    assert!(said.contains("nothing about you"), "{said}");
    let said = ask(&mut one, "read my notes").await;
    assert!(said.contains("no notes"), "{said}");

    // With the pairing: they must show a code again.
    run(&data, &["users", "erase", "wearer", "--devices", "--yes"]).await;
    let devices = run(&data, &["devices", "list"]).await;
    assert!(!devices.contains(one.fingerprint()), "{devices}");
    assert!(run(&data, &["users", "list"]).await.is_empty());
    assert!(gateway.terminate().await.0.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erasure_that_is_killed_in_the_middle_is_finished_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let mut one = glasses(&gateway, &data, "one").await;
    plant(&mut one).await;
    one.goodbye().await;
    assert!(gateway.terminate().await.0.success());
    // Another user has so much data that the copy takes long.
    let store = Store::open(&data.join("store"), 1024).expect("the store opens");
    for _ in 0..200 {
        let note = NoteRecord { text: "x".repeat(256 * 1024), created_wall_ms: 0 };
        store.write(Write::AddNote { user: "other".to_owned(), note }).await.expect("a note");
    }
    drop(store);
    let gateway = Process::start(&data, "", &[]).await;
    let config = data.with_extension("toml").display().to_string();
    let erase = tokio::spawn(async move { fails(&["users", "erase", "wearer", "--yes", "--config", &config]).await });
    let record = data.join("erasing.json");
    let begun = async {
        while !data.join("store.new").exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, begun).await.expect("it begins");
    gateway.kill().await;
    drop(erase.await);
    let there = counts(&data, PLANTED);
    assert!(record.exists() && !there.contains(&0), "it was killed in the middle: {there:?}");

    let gateway = Process::start(&data, "", &[]).await;
    assert_eq!(counts(&data, PLANTED), [0; PLANTED.len()]);
    assert!(!record.exists() && !data.join("store.new").exists());
    assert!(gateway.terminate().await.0.success());
    let store = Store::open(&data.join("store"), 1024).expect("the store opens");
    assert_eq!(store.disk().notes("other", 1_000, |_| true).expect("notes").len(), 200);
}
