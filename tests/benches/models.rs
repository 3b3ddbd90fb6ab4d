//! What the gateway adds to a model: from the wearer's accepted words to the request on the wire, from the first token
//! on the wire to the first text for the display and the first speech; beside a Python agent on the same server.
//!
//! `cargo xtask bench models [--rounds N] [--tools N] [--no-python]`
//!
//! The server is in this process and answers at once, over a connection that is kept. A request is on the wire when its
//! first bytes are read there; a token, right before it is written. The words are typed at the simulated glasses, so that
//! no recogniser is in between; the way from the glasses to the gateway is told apart. Two gateways: one whose tools all
//! are part of every request, so that the provider's maximum is offered with the same list again and again, and one whose
//! tools are routed, so that each sentence brings another list. The Python agent (pydantic-ai) has no wearer: its time begins
//! where it is asked and ends where it is handed the first text.

#[path = "../it/cache.rs"]
mod cache;
mod common;

use std::{
    process::Command,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result};
use async_trait::async_trait;
use common::{TestGateway, argument, row, until};
use firmware_sim::transport::Scheme;
use gateway::clock;
use gateway_core::vocab::{ToolCall, ToolFlags, ToolResult, ToolSpec};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tools::{
    registry::{RunContext, Runner},
    source::{Scope, Source},
};

const TURN_MAX: Duration = Duration::from_secs(30);
/// From the connection of the glasses to the first words.
const SILENCE_AT_FIRST: Duration = Duration::from_secs(2);
/// Turns before the first that counts: connections are made and caches filled.
const WARM_UP: usize = 3;

/// One request, in nanoseconds of the system's clock and microseconds of the gateway's.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    request: (i64, u64),
    first_token: (i64, u64),
    bytes: usize,
}

type Log = Arc<Mutex<Vec<Served>>>;

fn now() -> (i64, u64) {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
    (wall, clock::mono_us())
}

/// A server of chat completions that says the same to everyone.
async fn serve(log: Log) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/v1", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            tokio::spawn(answer_all(stream, log.clone()));
        }
    });
    Ok(url)
}

async fn answer_all(mut stream: TcpStream, log: Log) -> Option<()> {
    loop {
        let mut served = read_request(&mut stream).await?;
        let chunk = |data: &str| format!("{:x}\r\ndata: {data}\n\n\r\n", data.len() + 8);
        let delta = |text: &str| chunk(&json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string());
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.ok()?;
        // The head is not the token.
        tokio::time::sleep(Duration::from_millis(5)).await;
        served.first_token = now();
        // A whole clause, so that what speech waits for is not the model.
        stream.write_all(delta("You look splendid today. And ").as_bytes()).await.ok()?;
        log.lock().ok()?.push(served);
        for word in ["so ", "does ", "the ", "weather."] {
            tokio::time::sleep(Duration::from_millis(5)).await;
            stream.write_all(delta(word).as_bytes()).await.ok()?;
        }
        let stop = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string();
        let end = chunk(&stop) + &chunk("[DONE]") + "0\r\n\r\n";
        stream.write_all(end.as_bytes()).await.ok()?;
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Served> {
    let mut served = Served::default();
    let mut text = Vec::new();
    let mut buffer = vec![0; 65_536];
    loop {
        let length = stream.read(&mut buffer).await.ok().filter(|length| *length > 0)?;
        if text.is_empty() {
            served.request = now();
        }
        text.extend_from_slice(&buffer[..length]);
        let Some(head_end) = text.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&text[..head_end]).to_lowercase();
        let body: usize = head.split("content-length: ").nth(1)?.lines().next()?.trim().parse().ok()?;
        if text.len() >= head_end + 4 + body {
            served.bytes = body;
            return Some(served);
        }
    }
}

struct Echo;

#[async_trait]
impl Runner for Echo {
    async fn run(&self, _: RunContext, _: ToolCall) -> ToolResult {
        ToolResult::said("done")
    }
}

/// What the tools have to do with, and the wearer's words.
const THINGS: [&str; 10] =
    ["milk", "train", "piano", "garden", "passport", "laundry", "dentist", "birthday", "invoice", "bicycle"];

fn spec(number: usize, always: bool) -> ToolSpec {
    ToolSpec {
        name: format!("bench.tool.{number}"),
        description: format!(
            "Adds a reminder about the {} for the user, and says when it will ring.",
            THINGS[number % THINGS.len()]
        ),
        input_schema: json!({"type": "object", "required": ["text"], "additionalProperties": false, "properties": {
            "text": {"type": "string", "description": "What to be reminded of"},
            "time": {"type": "string", "description": "When, as ISO 8601"},
            "kind": {"type": "string", "enum": ["once", "daily", "weekly"]},
            "urgent": {"type": "boolean"}}}),
        flags: ToolFlags { always, ..ToolFlags::default() },
        ..ToolSpec::default()
    }
}

fn main() -> Result<()> {
    let profile = if cfg!(debug_assertions) { "dev" } else { "optimised" };
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{profile} profile, load {}", load.split_whitespace().take(3).collect::<Vec<_>>().join(" "));
    common::runtime()?.block_on(run())
}

async fn run() -> Result<()> {
    let rounds: usize = argument("--rounds").map_or(Ok(50), |rounds| rounds.parse())?;
    let tools: usize = argument("--tools").map_or(Ok(200), |tools| tools.parse())?;
    let log = Log::default();
    let url = serve(log.clone()).await?;
    for always in [true, false] {
        ours(&url, &log, (tools, always), rounds).await?;
    }
    if !std::env::args().any(|argument| argument == "--no-python") {
        log.lock().map_err(|_| anyhow::anyhow!("the log is poisoned"))?.clear();
        let lines = tokio::task::spawn_blocking(move || python(&url, tools, rounds)).await??;
        theirs(&lines, &log)?;
    }
    Ok(())
}

async fn ours(url: &str, log: &Log, (tools, always): (usize, bool), rounds: usize) -> Result<()> {
    let model = format!(
        "[model]\nkind = \"chat_completions\"\nbase_url = {url:?}\nmodel = \"mock\"\ntools = true\ncommands_offline = false\n"
    );
    let gateway = TestGateway::start(&model).await?;
    let specs = (0..tools).map(|number| spec(number, always)).collect();
    gateway.running.services().registry.register(Source::App("bench".into()), Scope::Global, specs, Arc::new(Echo))?;
    let mut glasses = gateway.glasses(gateway.options(Scheme::Ws, "models")?, "models").await?;
    // A wearer takes at least that long to say something; the models are prepared meanwhile.
    tokio::time::sleep(SILENCE_AT_FIRST).await;
    let (mut accepted, mut sent, mut asked, mut shown, mut spoken, mut clause) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut last = None;
    for round in 0..rounds + WARM_UP {
        let known = gateway.turns(&glasses).len();
        glasses.forget();
        let typed = clock::mono_us();
        glasses.text(&format!("Tell me something nice about the {}.", THINGS[round % THINGS.len()])).await?;
        anyhow::ensure!(until(TURN_MAX, || gateway.turns(&glasses).len() > known).await, "no answer in time");
        let turn = gateway.turns(&glasses).pop().context("a turn")?;
        let served =
            log.lock().map_err(|_| anyhow::anyhow!("the log is poisoned"))?.last().copied().context("a request")?;
        let since = |later: Option<u64>, earlier: Option<u64>| Some(later? as i64 - earlier? as i64);
        let on_wire = since(Some(served.request.1), turn.final_us);
        if round == 0 {
            let ms = on_wire.map_or(f64::NAN, |us| us as f64 / 1e3);
            println!("first request after the start: {ms:.2} ms from the accepted words to the wire");
        }
        last = Some((turn.tools_known, turn.tools_offered, served.bytes));
        if round < WARM_UP {
            continue;
        }
        accepted.extend(since(turn.final_us, Some(typed)));
        sent.extend(since(turn.request_sent_us, turn.final_us));
        asked.extend(on_wire);
        shown.extend(since(turn.first_display_us, Some(served.first_token.1)));
        let tts = turn.tts_us.map_or(0, |tts| tts as i64);
        spoken.extend(since(turn.first_frame_us, Some(served.first_token.1)).map(|us| us - tts));
        clause.extend(since(turn.first_frame_us, turn.first_clause_us).map(|us| us - tts));
    }
    let (known, offered, bytes) = last.context("no rounds")?;
    let (known, offered) = (known.unwrap_or_default(), offered.unwrap_or_default());
    let kind = if always { "all part of every request" } else { "routed" };
    println!("gateway, {tools} tools {kind}; known {known}, offered {offered}, {bytes} bytes a request:");
    row("typed at the glasses -> words accepted", accepted);
    row("words accepted -> taken up by the connection", sent);
    row("words accepted -> request on the wire", asked);
    row("first token on the wire -> first display text", shown);
    row("first token on the wire -> speech, less synthesis", spoken);
    row("first clause -> speech, less synthesis", clause);
    glasses.goodbye().await;
    gateway.running.stop().await;
    Ok(())
}

fn theirs(lines: &[Value], log: &Log) -> Result<()> {
    let served = log.lock().map_err(|_| anyhow::anyhow!("the log is poisoned"))?.clone();
    anyhow::ensure!(served.len() == lines.len(), "{} requests for {} rounds", served.len(), lines.len());
    let (mut asked, mut shown) = (Vec::new(), Vec::new());
    for (line, served) in lines.iter().zip(&served).skip(WARM_UP) {
        let at = |key: &str| line[key].as_i64().with_context(|| format!("no {key} in {line}"));
        asked.push((served.request.0 - at("asked_ns")?) / 1_000);
        shown.push((at("text_ns")? - served.first_token.0) / 1_000);
    }
    println!(
        "pydantic-ai, the same number of tools, {} bytes a request:",
        served.last().map_or(0, |served| served.bytes)
    );
    row("asked -> request on the wire", asked);
    row("first token on the wire -> first text handed out", shown);
    Ok(())
}

/// Installs the agent where a later run finds it, and runs it.
fn python(url: &str, tools: usize, rounds: usize) -> Result<Vec<Value>> {
    let output = Command::new(cache::python("pydantic-ai", "agent_requirements.txt"))
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/python/agent_latency.py"))
        .args([url, &tools.to_string(), &(rounds + WARM_UP).to_string()])
        .output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(|line| serde_json::from_str(line).context("a line of the agent")).collect()
}
