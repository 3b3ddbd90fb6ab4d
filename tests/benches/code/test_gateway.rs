//! A gateway with programs, and tools behind its MCP servers' names.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use anyhow::{Context as _, Result, anyhow};
use async_trait::async_trait;
use gateway::{
    config,
    serve::{self, Running},
};
use gateway_core::vocab::{ClientClass, ToolCall, ToolFlags, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tools::{
    call::CallContext,
    executor::Executor,
    registry::{RunContext, Runner},
    source::{Scope, Source},
};

/// The user of all calls.
pub const USER: &str = "wearer";
/// Bytes of the report that the tool of this name returns.
pub static REPORT_BYTES: AtomicUsize = AtomicUsize::new(0);

const TOOLS: &str = include_str!("../../data/mcp_tools.json");

/// A gateway and its folder.
#[derive(Clone)]
pub struct TestGateway {
    pub executor: Executor,
    running: Arc<(Running, tempfile::TempDir)>,
    next: Arc<AtomicU64>,
}

#[derive(Deserialize)]
struct File {
    tools: Vec<Given>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    name: String,
    description: String,
    input_schema: Value,
}

struct Bench;

#[async_trait]
impl Runner for Bench {
    async fn run(&self, _context: RunContext, call: ToolCall) -> ToolResult {
        match call.name.as_str() {
            "bench.report" => {
                let report = report();
                REPORT_BYTES.store(report.len(), Ordering::Relaxed);
                ToolResult { content: report, ..ToolResult::default() }
            }
            _ => ToolResult { data: Some(call.arguments), ..ToolResult::said("done") },
        }
    }
}

/// 200 kB, of which one line is of interest.
fn report() -> String {
    let line = |number: u32| match number {
        3_210 => "TOTAL: 4711 CHF\n".to_owned(),
        _ => format!("{number:05} an entry of no interest that fills a line\n"),
    };
    (0..4_200).map(line).collect()
}

impl TestGateway {
    /// Starts it, with a server whose tools answer at once.
    pub async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let text = format!(
            "data_dir = {:?}\nlisten.web = \"127.0.0.1:0\"\nlisten.quic = \"127.0.0.1:0\"\n[code]\nenabled = true\n\
             [limits]\ntool_calls_per_min = 0\ntool_calls_per_min_per_source = 0\n",
            folder.path().join("data"),
        );
        let config = config::check(&text, "bench").map_err(|problems| anyhow!("{problems:?}"))?;
        let running = serve::start(config).await?;
        let executor = running.services().executor.clone();
        let spec = |name: &str| {
            let spec = ToolSpec {
                name: format!("bench.{name}"),
                description: "Answers at once.".to_owned(),
                input_schema: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
                flags: ToolFlags { read_only: true, ..ToolFlags::default() },
                ..ToolSpec::default()
            };
            (spec, name.to_owned())
        };
        let named = ["look", "report"].map(spec).into();
        let source = Source::Mcp("bench".to_owned());
        executor.registry().register_named(source, Scope::Global, named, Arc::new(Bench))?;
        Ok(Self { executor, running: Arc::new((running, folder)), next: Arc::default() })
    }

    /// Stops the gateway and removes its folder, unless a clone is still in use.
    pub async fn stop(self) {
        if let Some((running, _folder)) = Arc::into_inner(self.running) {
            running.stop().await;
        }
    }

    /// Runs a program.
    pub async fn run(&self, source: &str) -> ToolResult {
        self.call("code.run", json!({ "code": source })).await
    }

    /// Calls a tool.
    pub async fn call(&self, name: &str, arguments: Value) -> ToolResult {
        let context = CallContext {
            session: None,
            user: USER.to_owned(),
            device: None,
            turn: None,
            cancel: CancellationToken::new(),
            default_timeout: std::time::Duration::from_secs(60),
            conversation: Arc::default(),
            language: None,
            client: ClientClass::Internal,
            caller: None,
            session_lease: None,
            watcher: None,
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed).to_string();
        self.executor.call(context, ToolCall { id, name: name.to_owned(), arguments }).await
    }

    /// Offers tools of MCP servers, so that there are this many besides those for programs; the number of built-in ones.
    pub fn offer(&self, count: usize) -> Result<usize> {
        let file: File = serde_json::from_str(TOOLS)?;
        let registry = self.executor.registry();
        registry.unregister(&Source::Mcp("bench".to_owned()), &Scope::Global);
        let (mut at, mut left, mut built_in) = (0, 0, 0);
        loop {
            let source = Source::Mcp(server(at));
            registry.unregister(&source, &Scope::Global);
            if at == 0 {
                built_in = registry.common().specs.len().saturating_sub(2);
                left = count.checked_sub(built_in).context("more tools")?;
            }
            if left == 0 {
                return Ok(built_in);
            }
            let given = file.tools.iter().take(left);
            let named: Vec<_> = given.map(|tool| named(&server(at), tool)).collect();
            left -= named.len();
            registry.register_named(source, Scope::Global, named, Arc::new(Bench))?;
            at += 1;
        }
    }
}

fn server(at: usize) -> String {
    if at == 0 { "github".to_owned() } else { format!("github{}", at + 1) }
}

fn named(server: &str, tool: &Given) -> (ToolSpec, String) {
    let spec = ToolSpec {
        name: format!("{server}.{}", tool.name),
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
        ..ToolSpec::default()
    };
    (spec, tool.name.clone())
}
