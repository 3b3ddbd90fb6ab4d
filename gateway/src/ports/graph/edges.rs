//! A node with its edges.

use gateway_core::vocab::{Message, Part};
use tools::inspection::graph::{EDGES_MAX, Edge, Node, NodeId, NodeType};

use super::{
    nodes::{
        Call, SKILL, Stored, app_node, call_node, chat_node, device_node, message_node, note_node, skill_node,
        summary_node, user_node,
    },
    to_source,
};
use crate::store::{Conversation, Error};

/// Milliseconds between a message and a call of the same tool that count as one: calls carry no number of their message.
const CALL_MS_MAX: i64 = 60_000;

fn edge(kind: &'static str, to: NodeId) -> Edge {
    Edge { kind, to: to.to_string() }
}

/// The node with its edges.
type Found = Option<(Node, Vec<Edge>)>;

impl Stored<'_> {
    pub(super) fn details(&self, id: &NodeId) -> Result<Found, Error> {
        let mut found = match id.kind {
            NodeType::User => (id.key == self.user).then(|| self.of_user()).transpose()?,
            NodeType::Chat => self.chat(id)?.map(|chat| (chat_node(&chat), of_chat(&chat))),
            NodeType::Summary => self.chat(id)?.and_then(|chat| {
                Some((summary_node(&chat)?, vec![edge("of_chat", NodeId::new(NodeType::Chat, chat.id))]))
            }),
            NodeType::Message => self.of_message(id)?,
            NodeType::Document if id.key.starts_with(SKILL) => {
                let skills = self.skills.all();
                skills.iter().map(skill_node).find(|node| node.id == *id).map(|node| (node, vec![self.to_user()]))
            }
            NodeType::Document => {
                let note = id.number().map(|number| self.store.disk().note(self.user, number)).transpose()?.flatten();
                note.zip(id.number()).map(|(note, number)| (note_node(number, &note), vec![self.to_user()]))
            }
            NodeType::Device => {
                let device = self.store.disk().device(&id.key)?.filter(|device| device.user == self.user);
                device.map(|device| (device_node(&id.key, &device), vec![self.to_user()]))
            }
            NodeType::App => {
                self.apps()?.iter().find(|app| **app == id.key).map(|app| (app_node(app), vec![self.to_user()]))
            }
            NodeType::ToolCall => {
                let call = self.calls()?.into_iter().find(|(number, _)| Some(*number) == id.number());
                call.map(|call| (call_node(&call), self.of_call(&call)))
            }
            // Not in the store.
            NodeType::Log => None,
        };
        if let Some((_, edges)) = &mut found {
            edges.truncate(EDGES_MAX);
        }
        Ok(found)
    }

    fn to_user(&self) -> Edge {
        edge("of_user", NodeId::new(NodeType::User, self.user))
    }

    fn chat(&self, id: &NodeId) -> Result<Option<Conversation>, Error> {
        id.number().map(|number| self.store.disk().conversation(self.user, number)).transpose().map(Option::flatten)
    }

    fn of_user(&self) -> Result<(Node, Vec<Edge>), Error> {
        let disk = self.store.disk();
        let mut edges = Vec::new();
        edges.extend(self.devices()?.iter().map(|(id, _)| edge("has_device", NodeId::new(NodeType::Device, id))));
        edges.extend(self.apps()?.iter().map(|app| edge("has_app", NodeId::new(NodeType::App, app))));
        let chats = disk.conversations(self.user)?;
        edges.extend(chats.iter().rev().map(|chat| edge("has_chat", NodeId::new(NodeType::Chat, chat.id))));
        let notes = disk.notes(self.user, EDGES_MAX, |_| true)?;
        edges.extend(notes.iter().map(|(id, _)| edge("has_note", NodeId::new(NodeType::Document, id))));
        let skills = self.skills.all();
        edges.extend(skills.iter().map(|skill| edge("has_skill", skill_node(skill).id)));
        Ok((user_node(self.user), edges))
    }

    fn of_message(&self, id: &NodeId) -> Result<Found, Error> {
        let Some(number) = id.number() else { return Ok(None) };
        let disk = self.store.disk();
        let stored = disk.messages_from(self.user, number, 1)?.into_iter().find(|(other, _)| *other == number);
        let Some((node, message)) = stored.and_then(|(id, record)| message_node(id, &record)) else { return Ok(None) };
        let chats = disk.conversations(self.user)?;
        let chat = chats.iter().find(|chat| chat.ids().contains(&number));
        let mut edges: Vec<Edge> =
            chat.map(|chat| edge("of_chat", NodeId::new(NodeType::Chat, chat.id))).into_iter().collect();
        let tools = called(&message);
        if !tools.is_empty() {
            let at = node.wall_ms.unwrap_or_default();
            let is_its = |(_, record): &&Call| {
                tools.contains(&record.tool.as_str()) && record.wall_ms.abs_diff(at) <= CALL_MS_MAX.unsigned_abs()
            };
            let calls = self.calls()?;
            edges.extend(calls.iter().filter(is_its).map(|(id, _)| edge("calls", NodeId::new(NodeType::ToolCall, id))));
        }
        Ok(Some((node, edges)))
    }

    fn of_call(&self, (_, record): &Call) -> Vec<Edge> {
        let mut edges = vec![self.to_user()];
        edges.extend(to_source(&record.source));
        let device = record.device.as_ref().map(|device| edge("on_device", NodeId::new(NodeType::Device, device)));
        edges.extend(device);
        edges
    }
}

fn of_chat(chat: &Conversation) -> Vec<Edge> {
    let summary = chat.summary.as_ref().map(|_| edge("has_summary", NodeId::new(NodeType::Summary, chat.id)));
    let messages = chat.ids().rev().map(|id| edge("has_message", NodeId::new(NodeType::Message, id)));
    summary.into_iter().chain(messages.take(EDGES_MAX)).collect()
}

/// Names of the tools that a message calls.
fn called(message: &Message) -> Vec<&str> {
    message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::ToolCall { call } => Some(call.name.as_str()),
            _ => None,
        })
        .collect()
}
