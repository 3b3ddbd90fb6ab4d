//! Facts, standing instructions and conversations in the store, for the tools and the model's context.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use gateway_core::{
    input::UserInput,
    vocab::{Message, Role},
};
use serde::{Deserialize, Serialize};
use tools::{
    matching,
    memory::{Conversations, FACTS_MAX, FoundMessage, INSTRUCTIONS_MAX, Index, Text, Texts},
    ports::PortError,
};

use super::stores::port;
use crate::{
    clock,
    store::{Conversation, Kind, MessageRecord, Store, Write},
    users::{UserMessage, Users},
};

/// Messages that one search scans, newest first: a second's work on a small box.
const SEARCHED_MAX: usize = 20_000;
/// Users whose texts are kept in memory: as many as there may be on one box.
const USERS_MAX: usize = 1_024;

/// Short texts of one kind of rows.
pub struct StoredTexts {
    store: Store,
    kind: Kind,
    max: usize,
    read: Mutex<Read>,
}

/// Cache of what was read, since every request to a model needs it.
#[derive(Default)]
struct Read {
    /// Counts changes: data read before a change is not cached after it.
    changes: u64,
    users: BTreeMap<String, Arc<Index>>,
}

#[derive(Serialize, Deserialize)]
struct Row {
    text: String,
    created_wall_ms: i64,
    changed_wall_ms: i64,
}

impl StoredTexts {
    /// Facts about users.
    pub fn facts(store: Store) -> Self {
        Self { store, kind: Kind::Facts, max: FACTS_MAX, read: Mutex::default() }
    }

    /// Users' standing instructions.
    pub fn instructions(store: Store) -> Self {
        Self { store, kind: Kind::Instructions, max: INSTRUCTIONS_MAX, read: Mutex::default() }
    }

    /// All texts of a user.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn index(&self, user: &str) -> Result<Arc<Index>, crate::store::Error> {
        let changes = {
            let read = self.cache();
            if let Some(known) = read.users.get(user) {
                return Ok(known.clone());
            }
            read.changes
        };
        // More than are accepted: two tools may have added at the same time.
        let rows = self.store.disk().numbered(self.kind, user, self.max.saturating_mul(2))?;
        let mut texts: Vec<Text> = rows.iter().filter_map(|(id, value)| text_of(*id, value)).collect();
        texts.reverse();
        let index = Arc::new(Index::new(texts));
        let mut read = self.cache();
        if read.changes == changes {
            if read.users.len() >= USERS_MAX {
                read.users.pop_first();
            }
            read.users.insert(user.to_owned(), index.clone());
        }
        Ok(index)
    }

    /// The user's texts have changed in the store.
    pub fn changed(&self, user: &str) {
        let mut read = self.cache();
        read.changes += 1;
        read.users.remove(user);
    }

    fn cache(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, user: &str, write: Write) -> Result<u64, PortError> {
        let written = self.store.write(write).await.map_err(port);
        self.changed(user);
        written
    }

    fn value(text: &str, created_wall_ms: i64) -> (Text, Vec<u8>) {
        let row = Row { text: text.to_owned(), created_wall_ms, changed_wall_ms: clock::wall_ms() };
        let value = serde_json::to_vec(&row).unwrap_or_default();
        (Text { id: 0, text: row.text, created_wall_ms, changed_wall_ms: row.changed_wall_ms }, value)
    }

    fn find(&self, user: &str, id: u64) -> Result<Option<Text>, PortError> {
        let row = self.store.disk().row(self.kind, user, &id.to_be_bytes()).map_err(port)?;
        Ok(row.and_then(|value| text_of(id, &value)))
    }
}

fn text_of(id: u64, value: &[u8]) -> Option<Text> {
    let Row { text, created_wall_ms, changed_wall_ms } = serde_json::from_slice(value).ok()?;
    Some(Text { id, text, created_wall_ms, changed_wall_ms })
}

#[async_trait]
impl Texts for StoredTexts {
    async fn add(&self, user: &str, text: &str) -> Result<Text, PortError> {
        let (text, value) = Self::value(text, clock::wall_ms());
        let id = self.write(user, Write::AddRow { kind: self.kind, owner: user.to_owned(), value }).await?;
        Ok(Text { id, ..text })
    }

    async fn list(&self, user: &str) -> Result<Vec<Text>, PortError> {
        Ok(self.index(user).map_err(port)?.texts().to_vec())
    }

    async fn get(&self, user: &str, id: u64) -> Result<Option<Text>, PortError> {
        self.find(user, id)
    }

    async fn change(&self, user: &str, id: u64, text: &str) -> Result<Option<Text>, PortError> {
        let Some(before) = self.find(user, id)? else { return Ok(None) };
        let (text, value) = Self::value(text, before.created_wall_ms);
        let (owner, key) = (user.to_owned(), id.to_be_bytes().to_vec());
        self.write(user, Write::PutRow { kind: self.kind, owner, key, value }).await?;
        Ok(Some(Text { id, ..text }))
    }

    async fn remove(&self, user: &str, id: u64) -> Result<Option<Text>, PortError> {
        let found = self.find(user, id)?;
        let (owner, key) = (user.to_owned(), id.to_be_bytes().to_vec());
        let removed = self.write(user, Write::RemoveRow { kind: self.kind, owner, key }).await?;
        Ok(found.filter(|_| removed == 1))
    }
}

/// Conversations in the store; the current one is known to the user's machine.
pub(crate) struct StoredConversations {
    /// Where their messages are.
    pub store: Store,
    /// The users' machines.
    pub users: Arc<Users>,
}

#[async_trait]
impl Conversations for StoredConversations {
    async fn begin(&self, user: &str) -> Result<(), PortError> {
        let message = UserMessage::from(UserInput::NewConversation);
        let stopping = |_| PortError::Unavailable("the gateway is stopping".to_owned());
        self.users.mailbox(user).map_err(port)?.send(message).await.map_err(stopping)
    }

    async fn search(&self, user: &str, query: &str, limit: usize) -> Result<Vec<FoundMessage>, PortError> {
        let (user, query) = (user.to_owned(), query.to_owned());
        self.store.read(move |store| search(store, &user, &query, limit)).await.map_err(port)
    }
}

/// Messages that contain all words of the query, newest first.
///
/// # Errors
/// The store cannot be read.
pub fn search(store: &Store, user: &str, query: &str, limit: usize) -> Result<Vec<FoundMessage>, crate::store::Error> {
    let mut found = Vec::new();
    let mut looked_at = 0;
    for conversation in store.disk().conversations(user)?.iter().rev() {
        for (message, wall_ms) in spoken(store, user, conversation)?.into_iter().rev() {
            looked_at += 1;
            let by_wearer = message.role == Role::User;
            let text = message.plain_text();
            if (by_wearer || message.role == Role::Assistant) && matching::matches(&text, query) {
                let title = conversation.title.clone();
                found.push(FoundMessage { conversation: conversation.id, title, by_wearer, text, wall_ms });
            }
            if found.len() >= limit || looked_at >= SEARCHED_MAX {
                return Ok(found);
            }
        }
    }
    Ok(found)
}

/// The messages of a conversation, with their times of storage.
///
/// # Errors
/// The store cannot be read.
pub fn spoken(
    store: &Store,
    user: &str,
    conversation: &Conversation,
) -> Result<Vec<(Message, i64)>, crate::store::Error> {
    let read = |record: MessageRecord| Some((serde_json::from_str(&record.json).ok()?, record.wall_ms));
    Ok(store.disk().messages_of(user, conversation)?.into_iter().filter_map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn texts_are_kept_in_order_and_numbers_are_not_given_twice() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let facts = StoredTexts::facts(store.clone());
        assert_eq!(facts.add("ann", "one").await.unwrap().id, 1);
        assert_eq!(facts.add("ann", "two").await.unwrap().id, 2);
        assert_eq!(facts.add("bob", "other").await.unwrap().id, 1);
        let changed = facts.change("ann", 1, "uno").await.unwrap().unwrap();
        assert_eq!((changed.id, changed.text.as_str()), (1, "uno"));
        assert_eq!(facts.change("ann", 7, "x").await.unwrap(), None);
        assert_eq!(facts.remove("ann", 2).await.unwrap().unwrap().text, "two");
        assert_eq!(facts.remove("ann", 2).await.unwrap(), None);
        assert_eq!(facts.add("ann", "three").await.unwrap().id, 3, "2 was given");
        for facts in [&facts, &StoredTexts::facts(store.clone())] {
            let texts: Vec<_> = facts.index("ann").unwrap().texts().iter().map(|text| text.text.clone()).collect();
            assert_eq!(texts, ["three", "uno"]);
        }
        assert!(StoredTexts::instructions(store).index("ann").unwrap().texts().is_empty());
    }

    #[tokio::test]
    async fn what_was_said_is_found_by_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        for (wall_ms, role, text) in [
            (1, Role::User, "Should I sell the boat?"),
            (2, Role::Assistant, "Boats are expensive."),
            (3, Role::Tool, "boat"),
            (4, Role::User, "And the car?"),
        ] {
            let message = Message::text(role, text);
            let json = serde_json::to_string(&message).unwrap();
            let write = Write::AppendMessages {
                user: "ann".into(),
                messages: vec![MessageRecord { wall_ms, json }],
                title: message.plain_text(),
            };
            store.write(write).await.unwrap();
        }
        let found = search(&store, "ann", "boat", 9).unwrap();
        assert_eq!(found.iter().map(|said| said.wall_ms).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(found[0].title, "Should I sell the boat?");
        assert!(found[1].by_wearer && !found[0].by_wearer);
        assert_eq!(search(&store, "ann", "boat", 1).unwrap().len(), 1);
        assert!(search(&store, "ann", "plane", 9).unwrap().is_empty());
        assert!(search(&store, "bob", "boat", 9).unwrap().is_empty());
    }
}
