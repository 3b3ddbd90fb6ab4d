//! Tests of memory, instructions, conversations and skills through the executor, with in-memory stores.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use gateway_core::vocab::{ClientClass, Content, ErrorCode, ToolResult};
use serde_json::{Value, json};

use crate::{
    executor::Executor,
    limits::ITEM_CHARS_MAX,
    matching,
    memory::{
        Conversations, FACT_CHARS_MAX, FACTS_MAX, FoundMessage, INSTRUCTIONS_MAX, Memory, Photos, Skill, Skills,
        THAT_US_MAX, Text, Texts,
    },
    ports::{PortError, Ports},
    registry::Registry,
    test_support::{World, call, context},
};

#[derive(Default)]
struct Kept {
    last: AtomicU64,
    texts: Mutex<Vec<(String, Text)>>,
    begun: AtomicU64,
    photos_since: Mutex<Vec<(String, i64)>>,
}

#[async_trait]
impl Texts for Kept {
    async fn add(&self, user: &str, text: &str) -> Result<Text, PortError> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let text = Text { id, text: text.into(), created_wall_ms: 0, changed_wall_ms: 0 };
        self.texts.lock().unwrap().insert(0, (user.into(), text.clone()));
        Ok(text)
    }

    async fn list(&self, user: &str) -> Result<Vec<Text>, PortError> {
        let texts = self.texts.lock().unwrap();
        Ok(texts.iter().filter(|(owner, _)| owner == user).map(|(_, text)| text.clone()).collect())
    }

    async fn get(&self, user: &str, id: u64) -> Result<Option<Text>, PortError> {
        Ok(Texts::list(self, user).await?.into_iter().find(|text| text.id == id))
    }

    async fn change(&self, user: &str, id: u64, text: &str) -> Result<Option<Text>, PortError> {
        for (owner, kept) in self.texts.lock().unwrap().iter_mut() {
            if owner == user && kept.id == id {
                kept.text = text.into();
                return Ok(Some(kept.clone()));
            }
        }
        Ok(None)
    }

    async fn remove(&self, user: &str, id: u64) -> Result<Option<Text>, PortError> {
        let found = self.get(user, id).await?;
        self.texts.lock().unwrap().retain(|(owner, text)| owner != user || text.id != id);
        Ok(found)
    }
}

#[async_trait]
impl Conversations for Kept {
    async fn begin(&self, _user: &str) -> Result<(), PortError> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn search(&self, _user: &str, query: &str, limit: usize) -> Result<Vec<FoundMessage>, PortError> {
        // Saturday, 21 November 2026, 12:00 in New York.
        let said = |by_wearer: bool, text: &str| FoundMessage {
            conversation: 3,
            title: "The boat".into(),
            by_wearer,
            text: text.into(),
            wall_ms: 1_795_280_400_000,
        };
        let mut all = vec![said(false, "Noted: sell the boat."), said(true, "Should I sell the boat?")];
        all.retain(|said| matching::matches(&said.text, query));
        all.truncate(limit);
        Ok(all)
    }
}

#[async_trait]
impl Photos for Kept {
    /// There is one photo.
    async fn delete_last(&self, user: &str, since_wall_ms: i64) -> Result<bool, PortError> {
        let mut asked = self.photos_since.lock().unwrap();
        asked.push((user.to_owned(), since_wall_ms));
        Ok(asked.len() == 1)
    }
}

#[async_trait]
impl Skills for Kept {
    async fn list(&self, tools: &BTreeSet<String>) -> Result<Vec<Skill>, PortError> {
        assert!(tools.contains("skill.read"), "it is told what is offered");
        Ok(vec![Skill { name: "bike-repair".into(), description: "How to mend a bike.".into() }])
    }

    async fn read(&self, name: &str, file: Option<&str>) -> Result<Option<String>, PortError> {
        assert_eq!(name, "bike-repair");
        Ok(match file {
            None => Some("Take the wheel off. See parts.md.".into()),
            Some("parts.md") => Some("A wheel.".into()),
            Some(_) => None,
        })
    }
}

struct Fixture {
    world: Arc<World>,
    kept: Arc<Kept>,
    executor: Executor,
}

impl Fixture {
    fn new() -> Self {
        let world = World::usual();
        let kept = Arc::new(Kept::default());
        let memory = Memory {
            facts: kept.clone(),
            instructions: Arc::new(Kept::default()),
            conversations: kept.clone(),
            photos: kept.clone(),
            skills: kept.clone(),
            ..Memory::default()
        };
        let ports = Ports { memory, ..world.ports() };
        let executor = Executor::new(Arc::new(Registry::with_built_ins().unwrap()), ports);
        Self { world, kept, executor }
    }

    async fn run(&self, name: &str, arguments: Value) -> ToolResult {
        self.executor.call(context(), call(name, arguments)).await
    }

    /// The spoken text; the call must succeed.
    async fn say(&self, name: &str, arguments: Value) -> String {
        let result = self.run(name, arguments.clone()).await;
        assert!(!result.is_error(), "{name} {arguments}: {result:?}");
        assert!(result.show.is_some() && result.data.is_some());
        result.say.expect("words")
    }
}

#[tokio::test]
async fn facts_are_remembered_found_corrected_and_forgotten() {
    let fixture = Fixture::new();
    assert_eq!(fixture.say("memory.list", json!({})).await, "I remember nothing about you yet.");
    let car = json!({"text": "my car is on level three"});
    assert_eq!(fixture.say("memory.create", car.clone()).await, "I'll remember: my car is on level three.");
    assert_eq!(fixture.say("memory.create", car).await, "I know already: my car is on level three.");
    fixture.say("memory.create", json!({"text": "Lena is vegetarian"})).await;
    let say = fixture.say("memory.list", json!({})).await;
    assert_eq!(say, "I remember 2 things. Lena is vegetarian. My car is on level three.");
    let about = |query: &str| json!({"query": query});
    assert_eq!(fixture.say("memory.search", about("car")).await, "My car is on level three.");
    assert_eq!(fixture.say("memory.search", about("where the car is")).await, "My car is on level three.");
    assert_eq!(fixture.say("memory.search", about("boat")).await, "I remember nothing about boat.");
    assert_eq!(fixture.say("memory.get", json!({"id": 2})).await, "Lena is vegetarian.");
    assert_eq!(fixture.say("memory.get", json!({"id": 9})).await, "There is no memory number 9.");

    let new = json!({"query": "car", "text": "my car is on level two"});
    assert_eq!(fixture.say("memory.update", new).await, "Changed: my car is on level two.");
    assert_eq!(fixture.say("memory.delete", about("last")).await, "Forgotten: my car is on level two.");
    assert_eq!(fixture.say("memory.search", about("car")).await, "I remember nothing about car.");
    assert_eq!(fixture.say("memory.delete", about("last")).await, "What should I forget?");
    assert_eq!(fixture.say("memory.restore", json!({})).await, "I remember again: my car is on level two.");
    assert_eq!(fixture.say("memory.restore", json!({})).await, "There is nothing that I have just forgotten.");
    let nothing = fixture.say("memory.update", json!({"id": 77, "text": "x"})).await;
    assert_eq!(nothing, "I don't know what to change. Tell me to remember it.");
}

#[tokio::test]
async fn nothing_is_forgotten_that_was_not_meant() {
    let fixture = Fixture::new();
    for text in ["my car is red", "Paul's car is blue"] {
        fixture.say("memory.create", json!({"text": text})).await;
    }
    let result = fixture.run("memory.delete", json!({"query": "car"})).await;
    let say = result.say.as_deref();
    assert_eq!(say, Some("Which one should I forget: Paul's car is blue or my car is red?"));
    assert!(result.content.starts_with("Nothing was changed"), "{}", result.content);
    // "That" expires after a while.
    fixture.world.pass(THAT_US_MAX / 1_000_000 + 1);
    assert_eq!(fixture.say("memory.delete", json!({})).await, "What should I forget?");
    fixture.say("memory.search", json!({"query": "Paul"})).await;
    assert_eq!(fixture.say("memory.delete", json!({})).await, "Forgotten: Paul's car is blue.");
    fixture.world.pass(THAT_US_MAX / 1_000_000 + 1);
    assert_eq!(fixture.say("memory.restore", json!({})).await, "There is nothing that I have just forgotten.");
    assert_eq!(fixture.kept.texts.lock().unwrap().len(), 1);
    // Another user's facts are not touched.
    let mut other = context();
    other.user = "bob".into();
    let result = fixture.executor.call(other, call("memory.delete", json!({"id": 1}))).await;
    assert_eq!(result.say.as_deref(), Some("There is no memory number 1."));
}

#[tokio::test]
async fn a_fact_that_is_forgotten_is_read_out_in_full() {
    let fixture = Fixture::new();
    // The longest one, in letters of four bytes.
    let fact = "\u{10480}".repeat(FACT_CHARS_MAX);
    fixture.say("memory.create", json!({"text": fact})).await;
    let result = fixture.run("memory.delete", json!({"query": "last"})).await;
    assert_eq!(result.say, Some(format!("Forgotten: {fact}.")));
    let is_short = matches!(&result.show, Some(Content::Card { text, .. }) if text.len() <= ITEM_CHARS_MAX);
    assert!(is_short, "{:?}", result.show);
}

#[tokio::test]
async fn instructions_and_conversations_are_the_wearers_alone() {
    let fixture = Fixture::new();
    for (client, name, allowed) in [
        (ClientClass::External, "memory.list", true),
        (ClientClass::Copilot, "memory.list", false),
        (ClientClass::External, "prompt.add", false),
        (ClientClass::Copilot, "prompt.add", false),
        (ClientClass::External, "conversation.search", false),
        (ClientClass::Copilot, "personality.get", true),
        (ClientClass::External, "skill.read", false),
    ] {
        let (_, offered) = fixture.executor.offered("ada", Some("glasses"), client);
        assert_eq!(offered.iter().any(|spec| spec.name == name), allowed, "{client:?} {name}");
        let mut from = context();
        from.client = client;
        let result = fixture.executor.call(from, call(name, json!({"text": "x"}))).await;
        let denied = result.error.is_some_and(|error| error.code == ErrorCode::PermissionDenied);
        assert_eq!(denied, !allowed, "{client:?} {name}");
    }
}

#[tokio::test]
async fn memory_has_an_end() {
    let fixture = Fixture::new();
    for number in 0..FACTS_MAX {
        fixture.kept.add("ada", &format!("fact {number}")).await.unwrap();
    }
    let result = fixture.run("memory.create", json!({"text": "one more"})).await;
    assert_eq!(result.error.map(|error| error.code), Some(ErrorCode::ExecutionError));
    assert_eq!(fixture.kept.texts.lock().unwrap().len(), FACTS_MAX);
    let say = fixture.say("memory.list", json!({})).await;
    assert!(say.starts_with("I remember 1000 things. The latest five: Fact 999. "), "{say}");
    let result = fixture.run("memory.create", json!({"text": "x".repeat(501)})).await;
    assert_eq!(result.error.map(|error| error.code), Some(ErrorCode::InvalidArguments));
}

#[tokio::test]
async fn instructions_are_kept_listed_and_dropped() {
    let fixture = Fixture::new();
    assert_eq!(fixture.say("prompt.list", json!({})).await, "You have given me no standing instructions.");
    let one = json!({"how": "Always answer", "text": "in one sentence"});
    assert_eq!(fixture.say("prompt.add", one).await, "From now on: Always answer in one sentence.");
    fixture.say("prompt.add", json!({"text": "use metric units"})).await;
    let say = fixture.say("prompt.list", json!({})).await;
    assert_eq!(say, "You gave me 2 instructions. Use metric units. Always answer in one sentence.");
    assert_eq!(
        fixture.say("prompt.delete", json!({"query": "sentence"})).await,
        "No longer: Always answer in one sentence."
    );
    assert_eq!(
        fixture.say("prompt.delete", json!({"query": "sentence"})).await,
        "I find no instruction about sentence."
    );
    for number in 1..INSTRUCTIONS_MAX {
        fixture.say("prompt.add", json!({"text": format!("rule {number}")})).await;
    }
    let result = fixture.run("prompt.add", json!({"text": "one more"})).await;
    assert_eq!(result.error.map(|error| error.code), Some(ErrorCode::ExecutionError));
    assert_eq!(fixture.say("prompt.delete", json!({"query": "all"})).await, "I dropped 32 instructions.");
    assert_eq!(fixture.say("prompt.delete", json!({"query": "all"})).await, "I find no instruction about all.");
}

#[tokio::test]
async fn the_last_photo_is_deleted_and_the_pictures_of_the_turn_are_withdrawn() {
    let fixture = Fixture::new();
    for say in ["I deleted the last photo.", "There is no photo of the last ten minutes."] {
        let result = fixture.run("photo.delete", json!({})).await;
        assert_eq!((result.say.as_deref(), result.withdraws_pictures()), (Some(say), true));
    }
    let since_wall_ms = fixture.world.ports().clock.now().wall_ms - 600_000;
    let asked = ("ada".to_owned(), since_wall_ms);
    assert_eq!(*fixture.kept.photos_since.lock().unwrap(), [asked.clone(), asked]);
}

#[tokio::test]
async fn conversations_and_skills_are_spoken_of() {
    let fixture = Fixture::new();
    fixture.say("conversation.new", json!({})).await;
    assert_eq!(fixture.kept.begun.load(Ordering::Relaxed), 1);
    let say = fixture.say("conversation.search", json!({"query": "boat"})).await;
    assert_eq!(say, "You said at noon: Should I sell the boat?");
    let say = fixture.say("conversation.search", json!({"query": "plane"})).await;
    assert_eq!(say, "We have not talked about plane.");

    assert_eq!(fixture.say("skill.list", json!({})).await, "I have 1 skill: bike-repair.");
    let result = fixture.run("skill.read", json!({"name": "bike repair"})).await;
    assert_eq!(result.content, "Take the wheel off. See parts.md.");
    assert_eq!(result.say.as_deref(), Some("Bike-repair: How to mend a bike."));
    let result = fixture.run("skill.read", json!({"name": "bike-repair", "file": "parts.md"})).await;
    assert_eq!(result.content, "A wheel.");
    for wrong in [json!({"name": "cooking"}), json!({"name": "bike-repair", "file": "../x"})] {
        let result = fixture.run("skill.read", wrong).await;
        assert_eq!(result.error.map(|error| error.code), Some(ErrorCode::InvalidArguments));
    }
    assert_eq!(fixture.say("personality.get", json!({})).await, "Be brief.");
}
