//! What is stored of a user, and the skills, as a graph, for the tools of an operator's programs. Every read has a maximum, and
//! runs on the threads for long reads.

mod edges;
mod nodes;

use std::sync::Arc;

use async_trait::async_trait;
use tools::{
    inspection::{
        graph::{Edge, Graph, GraphStats, LISTED_CHARS_MAX, Node, NodeId, NodeQuery, NodeType},
        logs::{LogEntry, LogFilter, LogQuery, LogScope, Logs as _},
    },
    matching,
    ports::PortError,
};

use self::nodes::Stored;
use super::{logs::StoredLogs, stores::port};
use crate::{
    skills::SkillStore,
    store::{Error, Store},
    text::crop,
};

/// The store, the log and the skills.
pub(crate) struct StoredGraph {
    /// The log, with the store.
    pub logs: StoredLogs,
    /// Skills, which are files.
    pub skills: Arc<SkillStore>,
}

impl StoredGraph {
    async fn read<R: Send + 'static>(
        &self,
        user: &str,
        work: impl FnOnce(&Stored<'_>) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, PortError> {
        let (user, skills) = (user.to_owned(), self.skills.clone());
        let read = self.logs.store.read(move |store: &Store| work(&Stored { store, user: &user, skills: &skills }));
        read.await.map_err(port)
    }

    /// Lines of the log about the user: of those about nobody, none are the user's.
    async fn lines(&self, user: &str, filter: LogFilter, limit: usize) -> Result<Vec<LogEntry>, PortError> {
        let scope = LogScope::User { user: user.to_owned(), devices: Vec::new() };
        let query = LogQuery { filter, limit: limit.saturating_mul(LINES_PER_NODE), scope, ..LogQuery::default() };
        let page = self.logs.query(query).await?;
        let own = page.logs.into_iter().filter(|line| line.source != "gateway");
        Ok(own.take(limit).collect())
    }
}

/// Lines that are looked at for each one of the user's.
const LINES_PER_NODE: usize = 8;

/// A line of the log as a node, by its time: within a millisecond, the newest line.
fn node_of(line: &LogEntry) -> Node {
    Node {
        id: NodeId::new(NodeType::Log, line.wall_ms),
        title: Some(format!("{} {}", line.level.name(), line.context)),
        text: Some(line.message.clone()),
        wall_ms: Some(line.wall_ms),
    }
}

#[async_trait]
impl Graph for StoredGraph {
    async fn search(&self, user: &str, query: NodeQuery) -> Result<Vec<Node>, PortError> {
        let (limit, wanted) = (query.limit, query.clone());
        let mut found = self.read(user, move |stored| stored.search(&wanted)).await?;
        if query.kind.is_none_or(|kind| kind == NodeType::Log) && found.len() < limit {
            let lines = self.lines(user, LogFilter { text: query.words, ..LogFilter::default() }, limit).await?;
            found.extend(lines.iter().map(node_of));
        }
        found.truncate(limit);
        Ok(found)
    }

    async fn node(&self, user: &str, id: NodeId) -> Result<Option<(Node, Vec<Edge>)>, PortError> {
        if id.kind != NodeType::Log {
            return self.read(user, move |stored| stored.details(&id)).await;
        }
        let Some(wall_ms) = id.key.parse::<i64>().ok() else { return Ok(None) };
        let before_wall_ms = Some(wall_ms.saturating_add(1));
        let filter = LogFilter { since_wall_ms: Some(wall_ms), before_wall_ms, ..LogFilter::default() };
        let lines = self.lines(user, filter, 1).await?;
        Ok(lines.first().map(|line| {
            let edge = to_source(&line.source);
            (node_of(line), edge.into_iter().collect())
        }))
    }

    async fn stats(&self, user: &str) -> Result<GraphStats, PortError> {
        let mut stats = self.read(user, |stored| stored.stats()).await?;
        let scope = LogScope::User { user: user.to_owned(), devices: Vec::new() };
        let lines = tools::inspection::logs::Logs::stats(&self.logs, scope).await?;
        let of_nobody = lines.by_source.get("gateway").copied().unwrap_or_default();
        let own = lines.total_logs.saturating_sub(of_nobody);
        stats.by_type.insert(NodeType::Log, own);
        stats.edges += own;
        Ok(stats)
    }
}

/// To what a call or a line is of: `app:PACKAGE`, `device:ID`, or `mcp:SERVER`, which is no node.
fn to_source(source: &str) -> Option<Edge> {
    let kind = match source.split_once(':')?.0 {
        "app" => "of_app",
        "device" => "of_device",
        "mcp" => "of_mcp",
        _ => return None,
    };
    Some(Edge { kind, to: source.to_owned() })
}

/// Whether a node has all words.
fn has(node: &Node, words: Option<&str>) -> bool {
    let Some(words) = words else { return true };
    let both = format!("{} {}", node.title.as_deref().unwrap_or_default(), node.text.as_deref().unwrap_or_default());
    matching::matches(&both, words)
}

/// One line about a longer text.
fn line(text: &str) -> String {
    crop(text.lines().next().unwrap_or_default(), LISTED_CHARS_MAX).to_owned()
}

#[cfg(test)]
mod tests;
