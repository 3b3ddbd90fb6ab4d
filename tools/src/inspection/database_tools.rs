//! `search_nodes`, `get_node_details` and `get_database_stats`: what is stored of the calling user.

use std::sync::Arc;

use async_trait::async_trait;
use gateway_core::vocab::ToolResult;
use serde_json::{Value, json};

use super::{
    DATABASE,
    form::{Inspects, reads, told},
    graph::{Graph, LISTED_CHARS_MAX, NODES_MAX, NODES_USUAL, Node, NodeId, NodeQuery, NodeType, TEXT_CHARS_MAX},
    moment,
    query_logs::wrong,
};
use crate::{
    arguments::{Arguments, Refusal},
    builtin::Definition,
    registry::RunContext,
    spoken,
};

/// Characters of the words and ids that are asked for.
const WORDS_CHARS_MAX: usize = 200;

fn first_chars(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// A node with so many characters of its text.
fn row(user: &str, node: &Node, chars_max: usize) -> Value {
    let mut row = json!({"id": node.id.to_string(), "type": node.id.kind, "user": user});
    for (name, text) in [("title", &node.title), ("text", &node.text)] {
        if let Some(text) = text {
            row[name] = first_chars(text, chars_max).into();
        }
    }
    if let Some(wall_ms) = node.wall_ms {
        row["at"] = moment::written(wall_ms).into();
    }
    row
}

pub(super) struct SearchNodes(pub(super) Arc<dyn Graph>);

#[async_trait]
impl Inspects for SearchNodes {
    const CATEGORY: &'static str = DATABASE;

    fn definition(&self) -> Definition {
        Definition {
            properties: json!({
                "node_type": {"type": "string", "enum": NodeType::ALL.map(NodeType::name), "description": "All without it."},
                "query": {"type": "string", "description": "Words in title or text; all of them must be there."},
                "limit": {"type": "integer", "minimum": 1, "maximum": NODES_MAX, "description": "Nodes; 20 without it."},
            }),
            ..reads(
                "search_nodes",
                "Search what is stored",
                "Finds what is stored of the calling user: chats, messages, summaries, documents (notes, skills), devices, running \
                 mini-apps, calls of tools, lines of the log. The newest of each type come first; texts are cut to 200 \
                 characters.",
            )
        }
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let kind = arguments.text_optional("node_type", WORDS_CHARS_MAX)?;
        let limit = arguments.integer("limit").map_or(NODES_USUAL, |limit| usize::try_from(limit).unwrap_or(1));
        let query = NodeQuery {
            kind: kind.map(|kind| kind.parse()).transpose().map_err(wrong)?,
            words: arguments.text_optional("query", WORDS_CHARS_MAX)?,
            limit: limit.clamp(1, NODES_MAX),
        };
        let nodes = self.0.search(&context.user, query).await?;
        let rows: Vec<Value> = nodes.iter().map(|node| row(&context.user, node, LISTED_CHARS_MAX)).collect();
        let say = format!("{} found.", spoken::count(rows.len(), "entry"));
        Ok(told(json!({"count": rows.len(), "nodes": rows}), say))
    }
}

pub(super) struct GetNodeDetails(pub(super) Arc<dyn Graph>);

#[async_trait]
impl Inspects for GetNodeDetails {
    const CATEGORY: &'static str = DATABASE;

    fn definition(&self) -> Definition {
        Definition {
            properties: json!({"node_id": {"type": "string", "description": "From search_nodes, such as chat:12."}}),
            required: &["node_id"],
            ..reads(
                "get_node_details",
                "Show what is stored",
                "Shows one node of what is stored of the calling user, with its text and its edges to other nodes.",
            )
        }
    }

    async fn run(&self, context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let text = arguments.text_required("node_id", WORDS_CHARS_MAX, "Which one?")?;
        let id: NodeId = text.parse().map_err(wrong)?;
        let Some((node, edges)) = self.0.node(&context.user, id).await? else {
            return Err(Refusal::arguments(format!("there is no `{text}` of this user"), "There is no such entry."));
        };
        let mut data = row(&context.user, &node, TEXT_CHARS_MAX);
        data["edges"] = json!(edges);
        Ok(told(data, "Here it is."))
    }
}

pub(super) struct GetDatabaseStats(pub(super) Arc<dyn Graph>);

#[async_trait]
impl Inspects for GetDatabaseStats {
    const CATEGORY: &'static str = DATABASE;

    fn definition(&self) -> Definition {
        reads(
            "get_database_stats",
            "Count what is stored",
            "Counts what is stored of the calling user by type, and the edges between it; and the bytes of the store, which \
             all users share.",
        )
    }

    async fn run(&self, context: &RunContext, _arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let stats = self.0.stats(&context.user).await?;
        let total = stats.by_type.values().copied().fold(0, u64::saturating_add);
        let by_type: serde_json::Map<String, Value> =
            stats.by_type.iter().map(|(kind, count)| (kind.name().to_owned(), json!(count))).collect();
        let data = json!({
            "total_nodes": total,
            "by_type": by_type,
            "total_edges": stats.edges,
            // Those of tools are kept in memory.
            "total_embeddings": 0,
            "database_size_bytes": stats.size_bytes,
            "last_updated": stats.last_wall_ms.map(moment::written),
        });
        Ok(told(data, format!("{total} entries are stored.")))
    }
}
