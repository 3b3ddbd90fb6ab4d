//! What calls of tools cost: 10,000 tools registered, listed and looked up; a call with and without its records.
//!
//! `cargo xtask bench tools`
//!
//! The executor's overhead is what a call through it takes beyond calling the tool's runner directly. The store is a
//! real one, in the folder for temporary files: its commits take what that folder's disk takes.

#[path = "common/nobody.rs"]
mod nobody;

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use gateway::ports::{
    journal::StoredJournal,
    records::{StoredLedger, StoredSwitches},
};
use gateway::store::Store;
use gateway_core::vocab::{ClientClass, RateLimit, ToolCall, ToolFlags, ToolResult, ToolSpec, Turn};
use nobody::ports;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tools::{
    RateLimits,
    call::CallContext,
    executor::{CallRecords, Executor},
    journal::{Intent, Journal, Past},
    ports::PortError,
    registry::{Registry, RunContext, Runner},
    source::{Scope, Source},
};

const TOOLS: usize = 10_000;
const SOURCES: usize = 100;
const CALLS: usize = 20_000;
const COMMITS: usize = 300;
const PARALLEL: usize = 1_000;

/// A journal that forgets, at no cost.
struct Forgetful;

#[async_trait]
impl Journal for Forgetful {
    fn recall(&self, _: &Intent) -> Result<Option<Past>, PortError> {
        Ok(None)
    }
    async fn begin(&self, _: &Intent) -> Result<(), PortError> {
        Ok(())
    }
    fn finish(&self, _: &Intent, _: &ToolResult) {}
}

struct Echo;

#[async_trait]
impl Runner for Echo {
    async fn run(&self, _context: RunContext, call: ToolCall) -> ToolResult {
        ToolResult { data: Some(call.arguments), ..ToolResult::said("done") }
    }
}

/// An app that takes its time.
struct Slow;

#[async_trait]
impl Runner for Slow {
    async fn run(&self, _context: RunContext, _call: ToolCall) -> ToolResult {
        tokio::time::sleep(Duration::from_millis(200)).await;
        ToolResult::said("at last")
    }
}

fn spec(name: &str, flags: ToolFlags) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "Adds a reminder for the user, and says when it will ring.".to_owned(),
        input_schema: json!({"type": "object", "required": ["text"], "additionalProperties": false, "properties": {
            "text": {"type": "string", "description": "What to be reminded of"},
            "time": {"type": "string", "description": "When, as ISO 8601"},
            "urgent": {"type": "boolean"}}}),
        flags,
        ..ToolSpec::default()
    }
}

fn context(number: usize) -> CallContext {
    CallContext {
        user: "wearer".into(),
        device: Some("glasses".into()),
        session: Some("bench".into()),
        turn: Some(Turn { id: u32::try_from(number).unwrap_or(0), revision: 0 }),
        cancel: CancellationToken::new(),
        default_timeout: Duration::from_secs(30),
        conversation: Arc::default(),
        language: None,
        client: ClientClass::Internal,
        caller: None,
        session_lease: None,
        watcher: None,
    }
}

fn call(name: &str) -> ToolCall {
    ToolCall { id: "call-1".into(), name: name.into(), arguments: json!({"text": "buy milk", "urgent": true}) }
}

fn main() -> Result<()> {
    registry()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(executor())?;
    runtime.block_on(parallel())
}

/// Prints the median and the 99th percentile of some spans of time.
fn row(what: &str, mut spans: Vec<Duration>) -> Duration {
    spans.sort();
    let at = |share: f64| spans.get((spans.len() as f64 * share) as usize).copied().unwrap_or_default();
    println!("{what:<58} median {:>10.3?}   p99 {:>10.3?}   n {}", at(0.5), at(0.99), spans.len());
    at(0.5)
}

fn registry() -> Result<()> {
    println!("{TOOLS} tools of {SOURCES} sources");
    let registry = Registry::new();
    let offer = |source: usize| {
        let each = TOOLS / SOURCES;
        let specs = (0..each).map(|tool| spec(&format!("com.example.app{source}.tool{tool}"), ToolFlags::default()));
        registry.register(Source::App(format!("app{source}")), Scope::Global, specs.collect(), Arc::new(Echo))
    };
    let mut registered = Vec::new();
    for source in 0..SOURCES {
        let began = Instant::now();
        offer(source)?;
        registered.push(began.elapsed());
    }
    row("register 100 tools of one source", registered);
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for round in 0..50 {
        offer(round % SOURCES)?;
        let began = Instant::now();
        black_box(registry.snapshot("wearer", Some("glasses")).for_client(ClientClass::Internal));
        cold.push(began.elapsed());
        let began = Instant::now();
        black_box(registry.snapshot("wearer", Some("glasses")).for_client(ClientClass::Internal));
        warm.push(began.elapsed());
    }
    row("list for one session, first after a change", cold);
    row("list for one session, nothing changed", warm);
    let snapshot = registry.snapshot("wearer", Some("glasses"));
    let names: Vec<String> = snapshot.specs.iter().map(|spec| spec.name.clone()).collect();
    let began = Instant::now();
    black_box(snapshot.find("nothing"));
    println!("{:<58} once   {:>10.3?}", "look-up by name, the first after a change", began.elapsed());
    let rounds = (0..20).map(|_| {
        let began = Instant::now();
        // A stride that visits all of them in no order that a cache likes.
        for step in 0..TOOLS {
            black_box(snapshot.find(&names[step * 7_919 % TOOLS]));
        }
        began.elapsed() / TOOLS as u32
    });
    row("look-up by name, mean of 10,000", rounds.collect());
    Ok(())
}

async fn measure(executor: &Executor, name: &str, calls: usize, session: &AtomicU32) -> Vec<Duration> {
    let mut spans = Vec::with_capacity(calls);
    for _ in 0..calls {
        let number = session.fetch_add(1, Ordering::Relaxed);
        let (context, call) = (context(number as usize), call(name));
        let began = Instant::now();
        black_box(executor.call(context, call).await);
        spans.push(began.elapsed());
    }
    spans
}

async fn executor() -> Result<()> {
    println!("a call of a tool that answers at once");
    let registry = Arc::new(Registry::with_built_ins()?);
    let reading = ToolFlags { read_only: true, ..ToolFlags::default() };
    let kept = ToolFlags { persistent: true, ..ToolFlags::default() };
    let specs = vec![spec("bench.read", reading), spec("bench.change", ToolFlags::default()), spec("bench.kept", kept)];
    registry.register(Source::App("bench".into()), Scope::Global, specs, Arc::new(Echo))?;
    let snapshot = registry.snapshot("wearer", Some("glasses"));
    let tool = snapshot.find("bench.read").context("the tool")?;
    let mut direct = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let run = RunContext {
            conversation: Arc::default(),
            language: None,
            caller: None,
            program: None,
            calls: None,
            user: "wearer".into(),
            device: Some("glasses".into()),
            session: None,
            called_wall_ms: 0,
            turn: None,
            local_name: tool.local_name.clone(),
            flags: tool.spec.flags,
            activated: false,
            deadline: Duration::from_secs(30),
            cancel: CancellationToken::new(),
            ports: ports(),
            offered: Arc::clone(&snapshot),
        };
        let call = call("bench.read");
        let began = Instant::now();
        black_box(tool.runner.run(run, call).await);
        direct.push(began.elapsed());
    }
    row("the runner alone", direct);

    let next = AtomicU32::new(1);
    let plain = Executor::new(registry.clone(), ports());
    row("executor, no records", measure(&plain, "bench.change", CALLS, &next).await);
    let records = CallRecords { journal: Some(Arc::new(Forgetful)), ..CallRecords::default() };
    let fake = Executor::with_records(registry.clone(), ports(), records);
    row("executor, a journal that costs nothing", measure(&fake, "bench.change", CALLS, &next).await);

    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path(), 256)?;
    let many = Some(RateLimit { calls: 1_000_000, per_ms: 1_000 });
    let records = CallRecords {
        journal: Some(Arc::new(StoredJournal::new(store.clone(), CancellationToken::new()))),
        ledger: Some(Arc::new(StoredLedger(store.clone()))),
        switches: Some(Arc::new(StoredSwitches::load(store, registry.clone())?)),
        limits: RateLimits { per_user: many, per_source: many },
        ..CallRecords::default()
    };
    let whole = Executor::with_records(registry, ports(), records);
    row("executor, limits and switches, only reading", measure(&whole, "bench.read", CALLS, &next).await);
    row("executor, all records, the intent on disk first", measure(&whole, "bench.kept", COMMITS, &next).await);
    row("built-in calculator, all records", measure_built_in(&whole).await);
    let (mut spans, began) = (Vec::new(), Instant::now());
    let calls = (0..COMMITS).map(|number| {
        let whole = whole.clone();
        let context = CallContext { session: Some("together".into()), ..context(number) };
        tokio::spawn(async move {
            let began = Instant::now();
            black_box(whole.call(context, call("bench.kept")).await);
            began.elapsed()
        })
    });
    for call in calls.collect::<Vec<_>>() {
        spans.push(call.await?);
    }
    let each = began.elapsed() / COMMITS as u32;
    row("all records, 300 calls at once (group commits)", spans);
    println!("{:<58} mean   {each:>10.3?}", "  of which each takes");
    Ok(())
}

async fn measure_built_in(executor: &Executor) -> Vec<Duration> {
    let mut spans = Vec::with_capacity(CALLS / 10);
    for number in 0..CALLS / 10 {
        let call = ToolCall {
            id: format!("c{number}"),
            name: "calculator.evaluate".into(),
            arguments: json!({"expression": "6*7"}),
        };
        let began = Instant::now();
        black_box(executor.call(context(number), call).await);
        spans.push(began.elapsed());
    }
    spans
}

/// Resident memory of this process in KiB.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

async fn parallel() -> Result<()> {
    println!("{PARALLEL} calls at once to an app that takes 200 ms");
    let registry = Arc::new(Registry::new());
    let flags = ToolFlags { read_only: true, ..ToolFlags::default() };
    registry.register(Source::App("slow".into()), Scope::Global, vec![spec("slow.tool", flags)], Arc::new(Slow))?;
    let executor = Executor::new(registry, ports());
    for round in 0..3 {
        let (before, began) = (resident_kib(), Instant::now());
        let calls: Vec<_> = (0..PARALLEL)
            .map(|number| {
                let executor = executor.clone();
                tokio::spawn(async move { executor.call(context(number), call("slow.tool")).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let grown = resident_kib().zip(before).map(|(now, before)| now.saturating_sub(before));
        for call in calls {
            black_box(call.await?);
        }
        println!("  round {round}: all done after {:.0?}, memory grew by {grown:?} KiB", began.elapsed());
    }
    Ok(())
}
