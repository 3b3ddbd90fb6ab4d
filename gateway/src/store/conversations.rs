//! A user's messages in conversations: each has a number, a title, its times, a run of messages, and what the old ones of
//! these come to.
//!
//! A row is JSON. A field that may be missing needs no new version of the store: a gateway that does not know it drops it
//! with the next message, and a summary is made again.

use std::ops::Range;

use heed::RwTxn;
use serde::{Deserialize, Serialize};

use super::{
    Disk, Error,
    copy::Scope,
    keys::{id_of, owner_of, user_key, user_prefix},
    opened::Opened,
    records::MessageRecord,
    rows::{COUNTER, Kind},
};

/// Stored conversations per user: three a day for a year. Beyond it, the oldest is removed.
const CONVERSATIONS_MAX: usize = 1_000;
/// Messages per conversation: a day of uninterrupted talking. The next message begins another conversation.
const MESSAGES_MAX: u64 = 2_000;

/// What is stored of a conversation besides its messages, which are rows of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// Its number, unique among all conversations that the user ever had.
    #[serde(skip)]
    pub id: u64,
    /// The wearer's first words.
    pub title: String,
    /// When it began, milliseconds since the Unix epoch.
    pub began_wall_ms: i64,
    /// When something was last said, likewise.
    pub last_wall_ms: i64,
    /// Id of its first message.
    pub first_message: u64,
    /// Its messages, tool calls and results included.
    pub messages: u64,
    /// What a model is told in the place of its old messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

impl Conversation {
    /// Ids of its messages.
    pub fn ids(&self) -> Range<u64> {
        self.first_message..self.first_message.saturating_add(self.messages)
    }
}

/// A summary of the beginning of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The model's words.
    pub text: String,
    /// Messages that it stands for.
    pub covers: u64,
}

fn of(row: &[u8], id: u64) -> Option<Conversation> {
    let conversation: Conversation = serde_json::from_slice(row).ok()?;
    Some(Conversation { id, ..conversation })
}

/// Whether a value of this table has its form: that of a conversation, or of the counter of their numbers.
pub(super) fn is_row(key: &[u8], value: &[u8]) -> bool {
    let is_counter = owner_of(key).is_some_and(|owner| key.len() == 1 + owner.len() + COUNTER.len());
    if is_counter { value.len() == size_of::<u64>() } else { of(value, 0).is_some() }
}

fn row(conversation: &Conversation) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(conversation).map_err(|_| Error::Damaged { database: "conversations" })
}

/// Begins one and returns its number.
pub(super) fn begin(disk: &Opened, txn: &mut RwTxn<'_>, user: &str, wall_ms: i64) -> Result<u64, Error> {
    begun(disk, txn, user, wall_ms).map(|new| new.id)
}

/// A new one, which is stored. Beyond the maximum, the oldest is removed.
fn begun(disk: &Opened, txn: &mut RwTxn<'_>, user: &str, wall_ms: i64) -> Result<Conversation, Error> {
    let (count, first) = disk.rows.first(txn, Kind::Conversations, user)?;
    if let Some((id, value)) = first.filter(|_| count >= CONVERSATIONS_MAX) {
        let oldest = value.and_then(|value| of(&value, id)).unwrap_or_default();
        for id in oldest.ids() {
            disk.messages.delete(txn, &user_key(user, id)?)?;
        }
        disk.rows.remove(txn, Kind::Conversations, user, &id.to_be_bytes())?;
    }
    let first_message = end_of_last(disk, txn, user)?;
    let new = Conversation { began_wall_ms: wall_ms, last_wall_ms: wall_ms, first_message, ..Conversation::default() };
    let id = disk.rows.add(txn, Kind::Conversations, user, &row(&new)?)?;
    Ok(Conversation { id, ..new })
}

/// Behind the ids of the newest conversation that can be read; the next message has none before it. The last messages may be
/// damaged, and an id that another conversation has would make its message one of that.
fn end_of_last(disk: &Opened, txn: &RwTxn<'_>, user: &str) -> Result<u64, Error> {
    let last = disk.rows.last(txn, Kind::Conversations, user)?;
    Ok(last.and_then(|(id, value)| of(&value, id)).map_or(0, |last| last.ids().end))
}

/// The conversation that was begun last. None where its row is damaged or it was erased: the ids of one conversation have no
/// gap, and what is said after an erasure is no part of an older one.
fn latest(disk: &Opened, txn: &RwTxn<'_>, user: &str) -> Result<Option<Conversation>, Error> {
    let begun = disk.rows.last_assigned(txn, Kind::Conversations, user)?;
    let last = disk.rows.last(txn, Kind::Conversations, user)?.filter(|(id, _)| *id >= begun);
    Ok(last.and_then(|(id, value)| of(&value, id)))
}

/// Stores messages, in the latest conversation; without one, in a new one.
pub(super) fn append(
    disk: &Opened,
    txn: &mut RwTxn<'_>,
    user: &str,
    messages: &[MessageRecord],
    title: &str,
) -> Result<(), Error> {
    let Some(newest) = messages.last() else { return Ok(()) };
    let (prefix, from) = (user_prefix(user)?, end_of_last(disk, txn, user)?);
    let first = disk.messages.next_number(txn, &prefix, from)?;
    let mut next = first;
    for message in messages {
        let id = disk.messages.next_number(txn, &prefix, next)?;
        disk.messages.put_record::<MessageRecord>(txn, &user_key(user, id)?, message)?;
        next = id.saturating_add(1);
    }
    let first_of = |last: &Conversation| if last.messages == 0 { first } else { last.first_message };
    let fits = |last: &Conversation| next.saturating_sub(first_of(last)) <= MESSAGES_MAX;
    let mut conversation = match latest(disk, txn, user)?.filter(fits) {
        Some(latest) => latest,
        None => begun(disk, txn, user, newest.wall_ms)?,
    };
    conversation.first_message = first_of(&conversation);
    // Where a damaged row keeps an id, it is one of this conversation: its ids have no gap.
    conversation.messages = next.saturating_sub(conversation.first_message);
    if conversation.title.is_empty() {
        title.clone_into(&mut conversation.title);
    }
    conversation.last_wall_ms = newest.wall_ms;
    disk.rows.put(txn, Kind::Conversations, user, &conversation.id.to_be_bytes(), &row(&conversation)?)
}

/// Stores the summary of the latest conversation without its newest `behind` messages.
pub(super) fn summarise(
    disk: &Opened,
    txn: &mut RwTxn<'_>,
    user: &str,
    text: &str,
    behind: usize,
) -> Result<u64, Error> {
    let Some(mut conversation) = latest(disk, txn, user)? else { return Ok(0) };
    let behind = u64::try_from(behind).unwrap_or(u64::MAX);
    // A long conversation continues in a new one, of which the summary covers nothing.
    let covers = conversation.messages.saturating_sub(behind);
    conversation.summary = Some(Summary { text: text.to_owned(), covers });
    disk.rows.put(txn, Kind::Conversations, user, &conversation.id.to_be_bytes(), &row(&conversation)?)?;
    Ok(1)
}

/// What an erasure of the conversation of this number leaves out; without one, of all. Known when nothing more is written
/// before the erasure: the conversation under way has more messages by then than when it was asked for.
pub(super) fn scope(disk: &Disk, user: String, id: Option<u64>) -> Result<Scope, Error> {
    let messages = match id {
        Some(id) => disk.conversation(&user, id)?.unwrap_or_default().ids(),
        // Including messages from before conversations were introduced.
        None => 0..u64::MAX,
    };
    Ok(Scope::Conversations { user, id, messages })
}

impl Disk {
    /// A user's conversations, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn conversations(&self, user: &str) -> Result<Vec<Conversation>, Error> {
        let rows = self.numbered(Kind::Conversations, user, CONVERSATIONS_MAX)?;
        Ok(rows.into_iter().filter_map(|(id, value)| of(&value, id)).collect())
    }

    /// The one of this number; `None`: there is none, or its row is damaged.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn conversation(&self, user: &str, id: u64) -> Result<Option<Conversation>, Error> {
        match self.row(Kind::Conversations, user, &id.to_be_bytes()) {
            Ok(value) => Ok(value.and_then(|value| of(&value, id))),
            Err(Error::Damaged { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The one that was begun last, in which the user goes on; `None`: it was erased or is damaged, or the user has none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn latest_conversation(&self, user: &str) -> Result<Option<Conversation>, Error> {
        // The counter comes first.
        let rows = self.rows_backwards(Kind::Conversations, user, b"", 2)?;
        let begun = rows.iter().find(|(key, _)| key == COUNTER).map_or(0, |(_, value)| id_of(value));
        let last = rows.iter().find(|(key, _)| key.len() == size_of::<u64>());
        Ok(last.and_then(|(key, value)| of(value, id_of(key))).filter(|last| last.id >= begun))
    }

    /// The messages of a conversation, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn messages_of(&self, user: &str, conversation: &Conversation) -> Result<Vec<MessageRecord>, Error> {
        self.messages_between(user, conversation.ids())
    }

    /// Of a conversation's newest `count` messages those that its summary does not cover, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn newest_of(
        &self,
        user: &str,
        conversation: &Conversation,
        count: u64,
    ) -> Result<Vec<MessageRecord>, Error> {
        let ids = conversation.ids();
        let covers = conversation.summary.as_ref().map_or(0, |summary| summary.covers);
        let first = ids.start.saturating_add(covers).max(ids.end.saturating_sub(count));
        self.messages_between(user, first..ids.end)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::store::{Store, Write};

    fn say(wall_ms: i64, texts: &[&str]) -> Write {
        let messages = texts.iter().map(|text| MessageRecord { wall_ms, json: (*text).to_owned() }).collect();
        Write::AppendMessages { user: "ann".into(), messages, title: texts[0].to_owned() }
    }

    fn texts(store: &Store, conversation: &Conversation) -> Vec<String> {
        let messages = store.disk().messages_of("ann", conversation).unwrap();
        messages.into_iter().map(|message| message.json).collect()
    }

    #[tokio::test]
    async fn only_the_newest_messages_are_read_that_no_summary_covers() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        assert!(store.disk().latest_conversation("ann").unwrap().is_none());
        store.write(say(1, &["before"])).await.unwrap();
        store.write(Write::BeginConversation { user: "ann".into(), wall_ms: 2 }).await.unwrap();
        store.write(say(3, &["a", "b", "c", "d"])).await.unwrap();
        let newest = |count| {
            let latest = store.disk().latest_conversation("ann").unwrap().unwrap();
            assert_eq!(Some(latest.clone()), store.disk().conversations("ann").unwrap().pop());
            let messages = store.disk().newest_of("ann", &latest, count).unwrap();
            messages.into_iter().map(|message| message.json).collect::<Vec<_>>()
        };
        assert_eq!(newest(9), ["a", "b", "c", "d"]);
        assert_eq!(newest(2), ["c", "d"]);
        store.write(Write::PutSummary { user: "ann".into(), text: "s".into(), behind: 3 }).await.unwrap();
        assert_eq!(newest(9), ["b", "c", "d"]);
        assert_eq!(newest(2), ["c", "d"]);
        store.write(Write::PutSummary { user: "ann".into(), text: "s".into(), behind: 0 }).await.unwrap();
        assert!(newest(9).is_empty());
    }

    #[tokio::test]
    async fn messages_belong_to_the_conversation_that_was_begun_last() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        store.write(say(1, &["a", "b"])).await.unwrap();
        store.write(say(2, &["c"])).await.unwrap();
        let begin = Write::BeginConversation { user: "ann".into(), wall_ms: 3 };
        assert_eq!(store.write(begin).await.unwrap(), 2);
        store.write(say(4, &["d", "e"])).await.unwrap();
        let all = store.disk().conversations("ann").unwrap();
        let [one, two] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((one.id, one.title.as_str(), one.began_wall_ms, one.last_wall_ms), (1, "a", 1, 2));
        assert_eq!((two.id, two.title.as_str(), two.began_wall_ms, two.last_wall_ms), (2, "d", 3, 4));
        assert_eq!(texts(&store, one), ["a", "b", "c"]);
        assert_eq!(texts(&store, two), ["d", "e"]);
        assert_eq!(store.disk().conversation("ann", 2).unwrap().as_ref(), Some(two));
        assert!(store.disk().conversations("bob").unwrap().is_empty());
    }

    #[tokio::test]
    async fn an_erasure_takes_what_was_said_in_its_conversation_until_then_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        store.write(say(1, &["a", "b"])).await.unwrap();
        store.write(Write::BeginConversation { user: "ann".into(), wall_ms: 2 }).await.unwrap();
        store.write(say(3, &["c"])).await.unwrap();
        let begin = Write::BeginConversation { user: "ann".into(), wall_ms: 5 };
        // Submitted in this order, and carried out in it.
        let (added, begun, other, erased) = tokio::join!(
            store.write(say(4, &["d"])),
            store.write(begin),
            store.write(say(6, &["e"])),
            store.erase_conversations("ann", Some(2), || ())
        );
        assert!(added.is_ok() && begun.is_ok() && other.is_ok() && erased.is_ok());
        let kept = |user: &str| -> Vec<String> {
            store.disk().messages(user, 9).unwrap().into_iter().map(|message| message.json).collect()
        };
        assert_eq!(kept("ann"), ["a", "b", "e"]);
        let all = store.disk().conversations("ann").unwrap();
        assert_eq!(all.iter().map(|one| (one.id, one.messages)).collect::<Vec<_>>(), [(1, 2), (3, 1)]);
        assert_eq!(texts(&store, &all[1]), ["e"]);
        // One that is not there has no messages.
        store.erase_conversations("ann", Some(2), || ()).await.unwrap();
        assert_eq!(kept("ann"), ["a", "b", "e"]);
        let (messages, title) = (vec![MessageRecord { wall_ms: 7, json: "of bob".into() }], String::new());
        store.write(Write::AppendMessages { user: "bob".into(), messages, title }).await.unwrap();
        store.erase_conversations("ann", None, || ()).await.unwrap();
        assert!(kept("ann").is_empty() && store.disk().conversations("ann").unwrap().is_empty());
        assert_eq!(kept("bob"), ["of bob"]);
    }

    #[tokio::test]
    async fn what_is_said_after_the_current_conversation_was_erased_is_no_part_of_an_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        store.write(say(1, &["a"])).await.unwrap();
        store.write(Write::BeginConversation { user: "ann".into(), wall_ms: 2 }).await.unwrap();
        store.write(say(3, &["b"])).await.unwrap();
        // Of the conversation that is erased: it arrives while the copy is made.
        let summary = Write::PutSummary { user: "ann".into(), text: "of b".into(), behind: 0 };
        let (forgotten, at_once) = oneshot::channel();
        let forget = move || forgotten.send(()).expect("somebody waits");
        let (erased, summed) = tokio::join!(store.erase_conversations("ann", Some(2), forget), store.write(summary));
        erased.unwrap();
        at_once.await.expect("it is the current one");
        assert_eq!(summed.unwrap(), 0, "there is nothing to sum up");
        assert_eq!(store.disk().latest_conversation("ann").unwrap(), None);
        store.write(say(4, &["c"])).await.unwrap();
        store.write(say(5, &["d"])).await.unwrap();
        let all = store.disk().conversations("ann").unwrap();
        let [one, three] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((one.id, one.summary.as_ref(), texts(&store, one)), (1, None, vec!["a".to_owned()]));
        assert_eq!((three.id, three.title.as_str(), texts(&store, three)), (3, "c", vec!["c".into(), "d".into()]));
        assert_eq!(store.disk().latest_conversation("ann").unwrap().as_ref(), Some(three));
        // An older one that is erased changes nothing for the current one.
        store.erase_conversations("ann", Some(1), || unreachable!("an older one")).await.unwrap();
        store.write(say(6, &["e"])).await.unwrap();
        let all = store.disk().conversations("ann").unwrap();
        assert_eq!(all.iter().map(|one| (one.id, one.messages)).collect::<Vec<_>>(), [(3, 3)]);
    }

    #[tokio::test]
    async fn a_summary_belongs_to_the_latest_conversation_and_to_its_old_messages() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 16).unwrap();
        let summary = |text: &str, behind| Write::PutSummary { user: "ann".into(), text: text.into(), behind };
        assert_eq!(store.write(summary("of nothing", 0)).await.unwrap(), 0);
        store.write(say(1, &["a", "b", "c"])).await.unwrap();
        store.write(summary("a and b", 1)).await.unwrap();
        store.write(say(2, &["d"])).await.unwrap();
        let kept = |text: &str, covers| Some(Summary { text: text.into(), covers });
        assert_eq!(store.disk().conversation("ann", 1).unwrap().unwrap().summary, kept("a and b", 2));
        store.write(summary("a to c", 1)).await.unwrap();
        store.write(Write::BeginConversation { user: "ann".into(), wall_ms: 3 }).await.unwrap();
        store.write(say(4, &["e"])).await.unwrap();
        // It covers more messages than the conversation has.
        store.write(summary("before e", 9)).await.unwrap();
        let all: Vec<_> = store.disk().conversations("ann").unwrap().into_iter().map(|one| one.summary).collect();
        assert_eq!(all, [kept("a to c", 3), kept("before e", 0)]);
        // Rows from before there were summaries can still be read.
        let old = br#"{"title":"t","began_wall_ms":1,"last_wall_ms":1,"first_message":1,"messages":2}"#;
        assert_eq!(of(old, 7).unwrap().summary, None);
    }

    #[tokio::test]
    async fn conversations_and_their_lengths_have_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), 64).unwrap();
        let many = vec!["x"; usize::try_from(MESSAGES_MAX).unwrap()];
        store.write(say(1, &many)).await.unwrap();
        store.write(say(2, &["next"])).await.unwrap();
        assert_eq!(store.disk().conversations("ann").unwrap().len(), 2);
        let last: Vec<_> = (0..CONVERSATIONS_MAX)
            .map(|_| {
                let (reply, answer) = tokio::sync::oneshot::channel();
                let begin = Write::BeginConversation { user: "ann".into(), wall_ms: 3 };
                store.submit(begin, move |result| drop(reply.send(result))).unwrap();
                answer
            })
            .collect();
        for answer in last {
            answer.await.unwrap().unwrap();
        }
        let all = store.disk().conversations("ann").unwrap();
        assert_eq!((all.len(), all[0].id), (CONVERSATIONS_MAX, 3), "numbers go on");
        assert!(store.disk().messages("ann", 9).unwrap().is_empty(), "their messages went with them");
    }
}
