//! Tests of the graph over a real store and a real log.

use gateway_core::vocab::{ClientClass, Message, Part, Role, ToolCall};
use tools::{inspection::graph::EDGES_MAX, ledger::Record};

use super::*;
use crate::{
    store::{DeviceRecord, Kind, MessageRecord, NoteRecord, Write},
    telemetry::log,
};

struct Fixture {
    folder: tempfile::TempDir,
    store: Store,
    graph: StoredGraph,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store"), 16).unwrap();
        let logs = log::Logs::open_larger(&folder.path().join("log"), 1_000).unwrap();
        let skills = Arc::new(SkillStore::new(vec![folder.path().join("skills")]));
        let graph = StoredGraph { logs: StoredLogs { logs, store: store.clone() }, skills };
        Self { folder, store, graph }
    }

    async fn say(&self, user: &str, wall_ms: i64, message: &Message) {
        let json = serde_json::to_string(message).unwrap();
        let (messages, title) = (vec![MessageRecord { wall_ms, json }], message.plain_text());
        self.store.write(Write::AppendMessages { user: user.into(), messages, title }).await.unwrap();
    }

    async fn ids(&self, kind: Option<NodeType>, words: Option<&str>, limit: usize) -> Vec<String> {
        let query = NodeQuery { kind, words: words.map(str::to_owned), limit };
        let found = self.graph.search("ann", query).await.unwrap();
        found.iter().map(|node| node.id.to_string()).collect()
    }

    async fn edges(&self, id: &str) -> Vec<String> {
        let (_, edges) = self.graph.node("ann", id.parse().unwrap()).await.unwrap().unwrap();
        edges.iter().map(|edge| format!("{} {}", edge.kind, edge.to)).collect()
    }
}

fn record(user: &str, wall_ms: i64) -> Record {
    Record {
        wall_ms,
        user: user.to_owned(),
        device: Some("d1".to_owned()),
        client: ClientClass::Internal,
        turn: Some(1),
        tool: "files.read".to_owned(),
        source: "mcp:files".to_owned(),
        took_ms: 5,
        error: None,
        asked: false,
        approval: None,
        program: None,
        bytes_in: 1,
        bytes_out: 2,
    }
}

/// Things of two users: ann's are numbered as expected, bob's must never be found.
async fn filled() -> Fixture {
    let fixture = Fixture::new();
    for (user, device) in [("ann", "d1"), ("bob", "d2")] {
        let paired = DeviceRecord {
            key: [0; 32],
            name: format!("{user}'s glasses"),
            user: user.to_owned(),
            model: "G1".to_owned(),
            paired_wall_ms: 1,
            revoked: false,
        };
        fixture.store.write(Write::PutDevice { id: device.to_owned(), device: paired }).await.unwrap();
        fixture.say(user, 1_000, &Message::text(Role::User, "Sell the boat?")).await;
        let call = ToolCall { id: "c".into(), name: "files.read".into(), arguments: serde_json::json!({}) };
        fixture.say(user, 2_000, &Message { role: Role::Assistant, parts: vec![Part::ToolCall { call }] }).await;
        fixture.say(user, 3_000, &Message::text(Role::Assistant, "Boats are expensive.")).await;
        let summary = Write::PutSummary { user: user.into(), text: "About a boat.".into(), behind: 1 };
        fixture.store.write(summary).await.unwrap();
        let note = NoteRecord { text: "Paint the boat\nblue".to_owned(), created_wall_ms: 4_000 };
        fixture.store.write(Write::AddNote { user: user.into(), note }).await.unwrap();
        let put = |kind, key: &[u8], value| Write::PutRow { kind, owner: user.to_owned(), key: key.to_vec(), value };
        fixture.store.write(put(Kind::AppSessions, b"com.example.sail", Vec::new())).await.unwrap();
        let value = serde_json::to_vec(&record(user, 2_500)).unwrap();
        let call = Write::AppendRowWithin { kind: Kind::Ledger, owner: user.to_owned(), value, rows_max: 10 };
        fixture.store.write(call).await.unwrap();
    }
    fixture
}

#[tokio::test]
async fn nodes_are_found_by_type_and_words_and_are_the_users_own() {
    let fixture = filled().await;
    let all = fixture.ids(None, None, 100).await;
    let expected = [
        "chat:1",
        "message:3",
        "message:2",
        "message:1",
        "summary:1",
        "document:1",
        "user:ann",
        "device:d1",
        "app:com.example.sail",
        "tool_call:1",
    ];
    assert_eq!(all, expected);
    let about_boats = ["chat:1", "message:3", "message:1", "summary:1", "document:1"];
    assert_eq!(fixture.ids(None, Some("boat"), 100).await, about_boats);
    assert_eq!(fixture.ids(Some(NodeType::Message), None, 2).await, ["message:3", "message:2"]);
    assert_eq!(fixture.ids(None, None, 3).await, expected[..3]);
    assert!(fixture.ids(Some(NodeType::Device), Some("bob"), 9).await.is_empty());
}

#[tokio::test]
async fn edges_lead_to_what_belongs_together() {
    let fixture = filled().await;
    let of_user = ["has_device device:d1", "has_app app:com.example.sail", "has_chat chat:1", "has_note document:1"];
    assert_eq!(fixture.edges("user:ann").await, of_user);
    let of_chat = ["has_summary summary:1", "has_message message:3", "has_message message:2", "has_message message:1"];
    assert_eq!(fixture.edges("chat:1").await, of_chat);
    assert_eq!(fixture.edges("message:2").await, ["of_chat chat:1", "calls tool_call:1"]);
    assert_eq!(fixture.edges("message:1").await, ["of_chat chat:1"]);
    assert_eq!(fixture.edges("tool_call:1").await, ["of_user user:ann", "of_mcp mcp:files", "on_device device:d1"]);
    assert_eq!(fixture.edges("summary:1").await, ["of_chat chat:1"]);
    for id in ["document:1", "device:d1", "app:com.example.sail"] {
        assert_eq!(fixture.edges(id).await, ["of_user user:ann"], "{id}");
    }
    // Others' and absent ones.
    for id in
        ["user:bob", "device:d2", "chat:2", "message:9", "document:x", "app:none", "tool_call:2", "log:x", "log:5"]
    {
        assert_eq!(fixture.graph.node("ann", id.parse().unwrap()).await.unwrap(), None, "{id}");
    }
}

#[tokio::test]
async fn skills_are_documents_of_each_user() {
    let fixture = filled().await;
    let folder = fixture.folder.path().join("skills/sailing");
    std::fs::create_dir_all(&folder).unwrap();
    let text = "---\nname: sailing\ndescription: How to sail.\n---\nMind the boom.\n";
    std::fs::write(folder.join("SKILL.md"), text).unwrap();
    assert!(fixture.graph.skills.refresh());
    assert_eq!(fixture.ids(Some(NodeType::Document), None, 9).await, ["document:1", "document:skill:sailing"]);
    assert_eq!(fixture.ids(None, Some("boom"), 9).await, ["document:skill:sailing"], "by what it says");
    assert_eq!(fixture.ids(Some(NodeType::Document), None, 1).await, ["document:1"]);
    let (node, edges) = fixture.graph.node("ann", "document:skill:sailing".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(node.title.as_deref(), Some("sailing"));
    assert_eq!(node.text.as_deref(), Some("How to sail.\n\nMind the boom.\n"));
    assert_eq!(edges, [Edge { kind: "of_user", to: "user:ann".to_owned() }]);
    assert_eq!(fixture.edges("user:ann").await.last().unwrap(), "has_skill document:skill:sailing");
    assert_eq!(fixture.graph.node("ann", "document:skill:none".parse().unwrap()).await.unwrap(), None);
    let stats = fixture.graph.stats("ann").await.unwrap();
    assert_eq!((stats.by_type[&NodeType::Document], stats.edges), (2, 10));
}

#[tokio::test]
async fn numbers_and_lists_have_their_limits() {
    let fixture = filled().await;
    let stats = fixture.graph.stats("ann").await.unwrap();
    assert_eq!(stats.by_type.values().sum::<u64>(), 10);
    // Of the user 4, of the chat 4, of the call 1.
    assert_eq!((stats.edges, stats.last_wall_ms), (9, Some(4_000)));
    assert!(stats.size_bytes > 0);
    for number in 0..EDGES_MAX + 50 {
        fixture.say("ann", 5_000, &Message::text(Role::User, format!("word {number}"))).await;
    }
    assert_eq!(fixture.edges("chat:1").await.len(), EDGES_MAX);
    assert_eq!(fixture.ids(Some(NodeType::Message), Some("word 0"), 9).await, ["message:4"]);
    assert_eq!(fixture.graph.stats("carol").await.unwrap().by_type.values().sum::<u64>(), 1, "the user alone");
}
