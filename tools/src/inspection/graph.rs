//! What is stored of a user as a graph of nodes and edges, as the tools read it. Edges are computed, not stored.

use std::{collections::BTreeMap, fmt, str::FromStr};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::ports::PortError;

/// Nodes of an answer, if the query names no number.
pub const NODES_USUAL: usize = 20;
/// Nodes of an answer at most.
pub const NODES_MAX: usize = 100;
/// Characters of a node's text in a list, so that a list fits into a result; details have the whole text.
pub const LISTED_CHARS_MAX: usize = 200;
/// Characters of a node's text in its details.
pub const TEXT_CHARS_MAX: usize = 16_000;
/// Edges of a node's details at most, the newest first.
pub const EDGES_MAX: usize = 200;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeType {
    /// A conversation.
    Chat,
    /// A message of one.
    Message,
    /// What the old messages of a conversation come to.
    Summary,
    /// A note, or a skill.
    Document,
    /// Whose data these are.
    User,
    /// Glasses of the user.
    Device,
    /// A mini-app that the user runs.
    App,
    /// A finished call of a tool.
    ToolCall,
    /// A line of the log about the user.
    Log,
}

impl NodeType {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Chat,
        Self::Message,
        Self::Summary,
        Self::Document,
        Self::User,
        Self::Device,
        Self::App,
        Self::ToolCall,
        Self::Log,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Message => "message",
            Self::Summary => "summary",
            Self::Document => "document",
            Self::User => "user",
            Self::Device => "device",
            Self::App => "app",
            Self::ToolCall => "tool_call",
            Self::Log => "log",
        }
    }
}

impl FromStr for NodeType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("`{text}` is no type of nodes: there are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// The name of a node: its type and what the type calls it, `chat:12`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId {
    /// What the node stands for.
    pub kind: NodeType,
    /// Its number or name.
    pub key: String,
}

impl NodeId {
    /// Of this type and name.
    pub fn new(kind: NodeType, key: impl fmt::Display) -> Self {
        Self { kind, key: key.to_string() }
    }

    /// Its number; `None`: its type has names, or this is none.
    pub fn number(&self) -> Option<u64> {
        self.key.parse().ok()
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.key)
    }
}

impl FromStr for NodeId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, key) = text.split_once(':').unwrap_or((text, ""));
        let kind = kind.parse()?;
        if key.is_empty() {
            return Err("an id is a type and a name, such as chat:12".to_owned());
        }
        Ok(Self { kind, key: key.to_owned() })
    }
}

/// A stored object of a user, such as a message, a note or a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Unique in the graph.
    pub id: NodeId,
    /// A line about it.
    pub title: Option<String>,
    /// What it says.
    pub text: Option<String>,
    /// When it came to be or last changed, in milliseconds since the Unix epoch; `None`: nobody noted it.
    pub wall_ms: Option<i64>,
}

/// An edge to another node, or to something that is none, such as `mcp:files`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    /// What it means: `has_message`, `calls`, `of_app`.
    pub kind: &'static str,
    /// Where it leads.
    pub to: String,
}

/// Conditions of a search; all of them must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeQuery {
    /// Of this type only.
    pub kind: Option<NodeType>,
    /// With all of these words in title or text.
    pub words: Option<String>,
    /// How many at most, the newest of each type first.
    pub limit: usize,
}

/// What is stored of a user, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphStats {
    /// Nodes by type.
    pub by_type: BTreeMap<NodeType, u64>,
    /// Edges between them.
    pub edges: u64,
    /// Bytes of the store of all users.
    pub size_bytes: u64,
    /// When the newest of them came to be, in milliseconds since the Unix epoch.
    pub last_wall_ms: Option<i64>,
}

/// What is stored of a user. Nothing of others is found.
#[async_trait]
pub trait Graph: Send + Sync {
    /// The nodes that are wanted.
    async fn search(&self, user: &str, query: NodeQuery) -> Result<Vec<Node>, PortError>;
    /// A node with its edges; `None`: the user has no such node.
    async fn node(&self, user: &str, id: NodeId) -> Result<Option<(Node, Vec<Edge>)>, PortError>;
    /// How many nodes and edges the user has, and how large the store is.
    async fn stats(&self, user: &str) -> Result<GraphStats, PortError>;
}
