//! What memory costs: the context of one request with 1,000 facts, a search through conversations, an erasure by copy.
//!
//! `cargo xtask bench memory`
//!
//! The store is a real one, in the folder for temporary files: an erasure takes what that folder's disk takes.

use std::{
    collections::BTreeMap,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use gateway::{
    ports::{
        context::{ContextBuilder, Personalities},
        memory::{StoredTexts, search},
    },
    skills::SkillStore,
    store::{MessageRecord, NoteRecord, Scope, Store, Write},
};
use gateway_core::vocab::{Message, Role, ToolSpec};
use tools::{
    memory::{FACTS_MAX, INSTRUCTIONS_MAX, Texts as _},
    registry::Specs,
};

const USER: &str = "ann";
const REQUESTS: usize = 2_000;
const TOOLS: usize = 200;
const MESSAGES: usize = 20_000;
const NOTE_BYTES: usize = 64 * 1024;
const NOTES: usize = 1_600;

fn row(name: &str, mut spans: Vec<Duration>) {
    spans.sort();
    let at = |share: usize| spans.get(spans.len() * share / 100).copied().unwrap_or_default();
    println!("{name:<58} median {:>10.3?}  p99 {:>10.3?}", at(50), at(99));
}

#[tokio::main]
async fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store = Store::open(&folder.path().join("store"), 1024)?;
    let facts = Arc::new(StoredTexts::facts(store.clone()));
    let instructions = Arc::new(StoredTexts::instructions(store.clone()));
    let subjects = ["car", "boat", "bike", "cat", "brother", "garden", "desk", "guitar", "kettle", "ladder"];
    for number in 0..FACTS_MAX {
        let subject = subjects.get(number % subjects.len()).copied().unwrap_or_default();
        facts.add(USER, &format!("my {subject} number {number} is in the place {}", number / 7)).await?;
    }
    for number in 0..INSTRUCTIONS_MAX {
        instructions.add(USER, &format!("Rule {number}: be brief about it")).await?;
    }
    let tools: Specs = (0..TOOLS)
        .map(|number| Arc::new(ToolSpec { name: format!("bench.tool_{number}"), ..ToolSpec::default() }))
        .collect();
    let personalities = Arc::new(Personalities::new(&BTreeMap::new()));
    let skills = Arc::new(SkillStore::new(Vec::new()));
    let context = ContextBuilder::new(facts.clone(), instructions, personalities, skills);
    let said = [Message::text(Role::User, "Where did I put the ladder that my brother gave me?")];
    let mut spans = Vec::new();
    for _ in 0..REQUESTS {
        let began = Instant::now();
        black_box(context.system(USER, &said, "gpt-5", (&tools, None)));
        spans.push(began.elapsed());
    }
    row("context of one request: 1,000 facts, 200 tools", spans);
    let mut spans = Vec::new();
    for _ in 0..REQUESTS / 100 {
        facts.changed(USER);
        let began = Instant::now();
        black_box(context.system(USER, &said, "gpt-5", (&tools, None)));
        spans.push(began.elapsed());
    }
    row("  the first one after a change of the facts", spans);

    for number in 0..MESSAGES / 20 {
        let message = |at: usize| {
            let role = if at.is_multiple_of(2) { Role::User } else { Role::Assistant };
            let json =
                serde_json::to_string(&Message::text(role, format!("sentence {number} {at} about the weather")))?;
            Ok(MessageRecord { wall_ms: 0, json })
        };
        let messages = (0..20).map(message).collect::<Result<_>>()?;
        store.write(Write::BeginConversation { user: USER.to_owned(), wall_ms: 0 }).await?;
        store.write(Write::AppendMessages { user: USER.to_owned(), messages, title: "t".to_owned() }).await?;
    }
    let began = Instant::now();
    black_box(search(&store, USER, "sentence zebra", 10)?);
    println!("{:<58} {:>17.3?}", "a search that finds nothing in 20,000 messages", began.elapsed());

    for _ in 0..NOTES {
        let note = NoteRecord { text: "x".repeat(NOTE_BYTES), created_wall_ms: 0 };
        store.write(Write::AddNote { user: "other".to_owned(), note }).await?;
    }
    let began = Instant::now();
    store.erase(Scope::User { user: USER.to_owned(), devices: true }).await?;
    println!("{:<58} {:>17.3?}", "an erasure beside 100 MB of another user's", began.elapsed());
    Ok(())
}
