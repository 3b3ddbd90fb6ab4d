//! What the gateway has for the turns that are cut: a tool that asks, one that takes its time, and a mini-app. Each counts.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use gateway::control::apps::{AppsRequest, Given};
use gateway::control::{Request, client};
use gateway_core::vocab::{Phrases, ToolCall, ToolFlags, ToolResult, ToolSpec};
use mini_app_kit::{App, Call, Layout, Session, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;
use tools::registry::{RunContext, Runner};
use tools::source::{Scope, Source};

use crate::common::TestGateway;

/// How long the slow tool takes, in milliseconds.
pub const SLOW_MS: u64 = 4_000;
/// How long the app takes.
const APP: Duration = Duration::from_secs(2);
const KEY: &str = "0123456789abcdef";

/// What was done, by user and what it is.
#[derive(Clone, Default)]
pub struct Done(Arc<Mutex<BTreeMap<(String, &'static str), u64>>>);

impl Done {
    fn add(&self, user: &str, what: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry((user.to_owned(), what)).or_default() += 1;
    }

    /// How often this was begun for this user.
    pub fn count(&self, user: &str, what: &'static str) -> u64 {
        let done = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        done.get(&(user.to_owned(), what)).copied().unwrap_or(0)
    }
}

/// A request that one of the tools here carries out.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// What is typed.
    pub request: &'static str,
    /// Words of its answer.
    pub answer: &'static str,
    /// What [`Done`] counts.
    pub tool: &'static str,
}

pub const WIPE: Asked =
    Asked { request: "wipe the bench list", answer: "list is empty", tool: "com.example.bench.wipe" };
pub const POLISH: Asked = Asked { request: "polish the lens", answer: "is polished", tool: "com.example.bench.polish" };
pub const SHELVE: Asked =
    Asked { request: "shelve the parcel", answer: "on the shelf", tool: "com.example.shelf.shelve" };
/// Sessions of the app, as [`Done`] counts them.
pub const SESSIONS: &str = "com.example.shelf";

#[async_trait]
impl Runner for Done {
    async fn run(&self, context: RunContext, call: ToolCall) -> ToolResult {
        if call.name == WIPE.tool {
            self.add(&context.user, WIPE.tool);
            return ToolResult::said("The bench list is empty now.");
        }
        self.add(&context.user, POLISH.tool);
        sleep(Duration::from_millis(SLOW_MS)).await;
        ToolResult::said("The lens is polished.")
    }
}

fn spec(asked: Asked, flags: ToolFlags) -> ToolSpec {
    ToolSpec {
        name: asked.tool.to_owned(),
        description: format!("Does this: {}.", asked.request),
        input_schema: json!({"type": "object", "properties": {}}),
        phrases: vec![Phrases { language: "en".to_owned(), templates: vec![asked.request.to_owned()] }],
        approval: flags.requires_approval.then(|| "Wipe the bench list?".to_owned()),
        flags,
        ..ToolSpec::default()
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Puts the tools and the app into this gateway.
pub async fn set(gateway: &TestGateway) -> Result<Done> {
    let done = Done::default();
    let changes = ToolFlags { persistent: true, ..ToolFlags::default() };
    let specs = vec![
        spec(WIPE, ToolFlags { requires_approval: true, ..changes }),
        spec(POLISH, ToolFlags { slow: true, ..changes }),
    ];
    let registry = &gateway.running.services().registry;
    registry.register(Source::Mcp("bench".to_owned()), Scope::Global, specs, Arc::new(done.clone()))?;

    let (calls, sessions) = (done.clone(), done.clone());
    let shelve = move |call: Call, _: Nothing| {
        let calls = calls.clone();
        async move {
            calls.add(&call.user, SHELVE.tool);
            sleep(APP).await;
            call.session()?.show(Layout::text("On the shelf"))?;
            Ok::<_, ToolError>("It is on the shelf.")
        }
    };
    let opened = move |session: Session| {
        sessions.add(session.user(), SESSIONS);
        async move { session.ended().await }
    };
    let shelve = Tool::new("shelve", "Puts the parcel on the shelf.", shelve).phrase(SHELVE.request).draws();
    let app = App::new(SESSIONS, "Shelf").description("Keeps parcels.").key(KEY).tool(shelve).on_session(opened);
    let manifest = app.manifest("http://127.0.0.1:9").to_string();
    let bound = app.bind("127.0.0.1:0").await?;
    let url = Some(format!("http://{}", bound.address()));
    tokio::spawn(bound.serve());
    let given = Given { manifest, url, api_key: Some(KEY.to_owned()), ..Given::default() };
    let data = gateway.folder.path().join("gateway");
    let add = Request::Apps { request: AppsRequest::Add(given) };
    tokio::task::spawn_blocking(move || client::ask(&data, &add)).await??;
    Ok(done)
}
