//! The nodes of a user.

use gateway_core::vocab::{Message, Role};
use tools::{
    inspection::graph::{GraphStats, Node, NodeId, NodeQuery, NodeType},
    ledger::Record,
};

use super::{has, line, to_source};
use crate::{
    skills::{Found, SkillStore},
    store::{Conversation, DeviceRecord, Error, Kind, MessageRecord, NoteRecord, Store},
};

/// Messages, notes and calls of one kind that are looked at, the newest first.
const LOOKED_AT_MAX: usize = 10_000;
/// Messages that are read at once.
const BATCH: u64 = 500;
/// Mini-apps of a user: more than can run.
const APPS_MAX: usize = 256;

/// What is stored of a user.
pub(super) struct Stored<'s> {
    pub(super) store: &'s Store,
    pub(super) user: &'s str,
    /// For all users.
    pub(super) skills: &'s SkillStore,
}

/// Before the name of a skill in its id: notes have numbers.
pub(super) const SKILL: &str = "skill:";

/// A call of a tool by its number.
pub(super) type Call = (u64, Record);

pub(super) fn user_node(user: &str) -> Node {
    Node { id: NodeId::new(NodeType::User, user), title: Some(user.to_owned()), text: None, wall_ms: None }
}

pub(super) fn chat_node(chat: &Conversation) -> Node {
    let title = Some(chat.title.clone()).filter(|title| !title.is_empty());
    Node { id: NodeId::new(NodeType::Chat, chat.id), title, text: None, wall_ms: Some(chat.last_wall_ms) }
}

pub(super) fn summary_node(chat: &Conversation) -> Option<Node> {
    let summary = chat.summary.as_ref()?;
    let title = Some(chat.title.clone()).filter(|title| !title.is_empty());
    let (id, text) = (NodeId::new(NodeType::Summary, chat.id), Some(summary.text.clone()));
    Some(Node { id, title, text, wall_ms: Some(chat.last_wall_ms) })
}

/// `None`: its row is no message.
pub(super) fn message_node(id: u64, record: &MessageRecord) -> Option<(Node, Message)> {
    let message: Message = serde_json::from_str(&record.json).ok()?;
    let title = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let text = Some(message.plain_text()).filter(|text| !text.is_empty());
    let id = NodeId::new(NodeType::Message, id);
    Some((Node { id, title: Some(title.to_owned()), text, wall_ms: Some(record.wall_ms) }, message))
}

pub(super) fn note_node(id: u64, note: &NoteRecord) -> Node {
    Node {
        id: NodeId::new(NodeType::Document, id),
        title: Some(line(&note.text)),
        text: Some(note.text.clone()),
        wall_ms: Some(note.created_wall_ms),
    }
}

pub(super) fn skill_node(skill: &Found) -> Node {
    Node {
        id: NodeId::new(NodeType::Document, format_args!("{SKILL}{}", skill.head.name)),
        title: Some(skill.head.name.clone()),
        text: Some(format!("{}\n\n{}", skill.head.description, skill.body)),
        wall_ms: None,
    }
}

pub(super) fn device_node(id: &str, device: &DeviceRecord) -> Node {
    let state = if device.revoked { "revoked" } else { "paired" };
    Node {
        id: NodeId::new(NodeType::Device, id),
        title: Some(device.name.clone()),
        text: Some(format!("{}, {state}", device.model)),
        wall_ms: Some(device.paired_wall_ms),
    }
}

pub(super) fn app_node(package: &str) -> Node {
    Node { id: NodeId::new(NodeType::App, package), title: Some(package.to_owned()), text: None, wall_ms: None }
}

pub(super) fn call_node((id, record): &Call) -> Node {
    let outcome = record.error.map_or_else(|| "ok".to_owned(), |error| format!("{error:?}"));
    Node {
        id: NodeId::new(NodeType::ToolCall, id),
        title: Some(record.tool.clone()),
        text: Some(format!("{} ms, {outcome}, source {}", record.took_ms, record.source)),
        wall_ms: Some(record.wall_ms),
    }
}

impl Stored<'_> {
    pub(super) fn devices(&self) -> Result<Vec<(String, DeviceRecord)>, Error> {
        let all = self.store.disk().devices()?.into_iter();
        Ok(all.filter(|(_, device)| device.user == self.user).collect())
    }

    /// Packages of mini-apps that run, or are to run again.
    pub(super) fn apps(&self) -> Result<Vec<String>, Error> {
        let keys = self.store.disk().keys(Kind::AppSessions, self.user, APPS_MAX)?;
        Ok(keys.into_iter().filter_map(|key| String::from_utf8(key).ok()).collect())
    }

    /// The newest calls, newest first.
    pub(super) fn calls(&self) -> Result<Vec<Call>, Error> {
        let rows = self.store.disk().rows_backwards(Kind::Ledger, self.user, b"", LOOKED_AT_MAX)?;
        let call = |(key, value): &(Vec<u8>, Vec<u8>)| {
            let id = u64::from_be_bytes(*key.last_chunk::<8>()?);
            Some((id, serde_json::from_slice(value).ok()?))
        };
        Ok(rows.iter().filter_map(call).collect())
    }

    /// Tells `take` of the newest messages, newest first, until it has enough.
    fn messages(&self, chats: &[Conversation], mut take: impl FnMut(Node) -> bool) -> Result<(), Error> {
        let mut looked_at = 0;
        for chat in chats.iter().rev() {
            let ids = chat.ids();
            let mut end = ids.end;
            while end > ids.start {
                let first = end.saturating_sub(BATCH).max(ids.start);
                let count = usize::try_from(end - first).unwrap_or(usize::MAX);
                let batch = self.store.disk().messages_from(self.user, first, count)?;
                for (id, record) in batch.iter().rev().filter(|(id, _)| (first..end).contains(id)) {
                    looked_at += 1;
                    let wants_more = message_node(*id, record).is_none_or(|(node, _)| take(node));
                    if !wants_more || looked_at >= LOOKED_AT_MAX {
                        return Ok(());
                    }
                }
                end = first;
            }
        }
        Ok(())
    }

    /// The newest of each type that is wanted.
    pub(super) fn search(&self, query: &NodeQuery) -> Result<Vec<Node>, Error> {
        let words = query.words.as_deref();
        let mut found: Vec<Node> = Vec::new();
        let chats = self.store.disk().conversations(self.user)?;
        let wanted = NodeType::ALL.into_iter().filter(|kind| query.kind.is_none_or(|only| only == *kind));
        for kind in wanted {
            let room = query.limit.saturating_sub(found.len());
            if room == 0 {
                break;
            }
            let mut take = |nodes: &mut dyn Iterator<Item = Node>| {
                found.extend(nodes.filter(|node| has(node, words)).take(room));
            };
            match kind {
                NodeType::Chat => take(&mut chats.iter().rev().map(chat_node)),
                NodeType::Summary => take(&mut chats.iter().rev().filter_map(summary_node)),
                NodeType::User => take(&mut std::iter::once(user_node(self.user))),
                NodeType::Device => take(&mut self.devices()?.iter().map(|(id, device)| device_node(id, device))),
                NodeType::App => take(&mut self.apps()?.iter().map(|package| app_node(package))),
                NodeType::ToolCall => take(&mut self.calls()?.iter().map(call_node)),
                NodeType::Document => {
                    let notes = self.store.disk().notes(self.user, LOOKED_AT_MAX, |_| true)?;
                    let notes = notes.iter().map(|(id, note)| note_node(*id, note));
                    take(&mut notes.chain(self.skills.all().iter().map(skill_node)));
                }
                NodeType::Message => {
                    let mut own = Vec::new();
                    self.messages(&chats, |node| {
                        own.extend(Some(node).filter(|node| has(node, words)));
                        own.len() < room
                    })?;
                    found.extend(own);
                }
                // Not in the store.
                NodeType::Log => {}
            }
        }
        Ok(found)
    }

    /// Numbers, without those of the log.
    pub(super) fn stats(&self) -> Result<GraphStats, Error> {
        let disk = self.store.disk();
        let chats = disk.conversations(self.user)?;
        let (devices, apps, calls) = (self.devices()?, self.apps()?, self.calls()?);
        let notes = disk.notes(self.user, LOOKED_AT_MAX, |_| true)?;
        let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let messages = chats.iter().map(|chat| chat.messages).fold(0, u64::saturating_add);
        let summaries = count(chats.iter().filter(|chat| chat.summary.is_some()).count());
        let newest = chats.iter().map(|chat| chat.last_wall_ms);
        let newest = newest.chain(notes.iter().map(|(_, note)| note.created_wall_ms));
        let newest = newest.chain(calls.iter().map(|(_, call)| call.wall_ms));
        let (chats, documents) = (count(chats.len()), count(notes.len() + self.skills.all().len()));
        let (devices, apps, own_calls) = (count(devices.len()), count(apps.len()), count(calls.len()));
        let of_sources = calls.iter().filter(|(_, call)| to_source(&call.source).is_some()).count();
        let (size_bytes, _) = self.store.used()?;
        let last_wall_ms = newest.max();
        Ok(GraphStats {
            by_type: [
                (NodeType::Chat, chats),
                (NodeType::Message, messages),
                (NodeType::Summary, summaries),
                (NodeType::Document, documents),
                (NodeType::User, 1),
                (NodeType::Device, devices),
                (NodeType::App, apps),
                (NodeType::ToolCall, own_calls),
            ]
            .into(),
            // The user has chats, documents, devices and apps; chats have messages and summaries; calls have a source.
            edges: chats + documents + devices + apps + messages + summaries + count(of_sources),
            size_bytes,
            last_wall_ms,
        })
    }
}
