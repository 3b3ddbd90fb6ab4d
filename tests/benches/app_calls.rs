//! What a call to a mini-app costs beyond a direct POST to the same app: through the executor, with and without its journal.
//!
//! `cargo xtask bench app_calls [--calls N]`
//!
//! The app is one of the Rust kit in this process; the three ways of calling it take turns, so that what disturbs one
//! disturbs all. The gateway is a real one with its store in the folder for temporary files: the commit of an intent
//! takes what that folder's disk takes.

mod common;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, ensure};
use common::{TestGateway, argument};
use gateway_core::vocab::{ClientClass, ToolCall, Turn};
use mini_app_kit::{App, Call, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tools::{apps::import, call::CallContext};

const USER: &str = "wearer";

#[derive(Deserialize, JsonSchema)]
struct Words {
    /// What is said again.
    words: String,
}

async fn echo(_: Call, words: Words) -> Result<String, ToolError> {
    Ok(words.words)
}

fn app() -> App {
    App::new("com.example.echo", "Echo").tool(Tool::new("look", "Says it again.", echo).read_only()).tool(Tool::new(
        "change",
        "Says it again, and might have changed something.",
        echo,
    ))
}

fn main() -> Result<()> {
    common::calibrate("before")?;
    common::runtime()?.block_on(run())?;
    common::calibrate("after")
}

async fn run() -> Result<()> {
    let calls: usize = argument("--calls").map_or(Ok(2_000), |calls| calls.parse())?;
    // As many as come: what is measured is not the limit.
    let gateway = TestGateway::start("[limits]\ntool_calls_per_min = 0\ntool_calls_per_min_per_source = 0").await?;
    let app = app();
    let manifest = app.manifest("http://127.0.0.1:1").to_string();
    let bound = app.bind("127.0.0.1:0").await?;
    let url = format!("http://{}", bound.address());
    tokio::spawn(bound.serve());
    let given = import::Given { public_url: Some(url.clone()), api_key_sha256: "0".repeat(64), ..Default::default() };
    let (app, _) = import::read(&manifest, &given).map_err(|problems| anyhow!("{problems:?}"))?;
    gateway.running.admin().installed.add(app).await?;

    let client = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
    let body = json!({"toolId": "look", "toolParameters": {"words": "hello"}, "userId": USER,
        "timestamp": "2026-11-21T21:47:25.395Z", "activeSession": null})
    .to_string();
    let mut ways: [(&str, Vec<Duration>); 3] =
        [("direct POST", vec![]), ("executor", vec![]), ("executor, journal", vec![])];
    for round in 0..calls + 50 {
        for turn in 0..ways.len() {
            // Another one goes first each time: what comes behind a commit finds cold caches.
            let at = (round + turn * (1 + round / ways.len() % 2)) % ways.len();
            let began = Instant::now();
            match at {
                0 => direct(&client, &url, &body).await?,
                1 => through(&gateway, "com.example.echo.look", round).await?,
                _ => through(&gateway, "com.example.echo.change", round).await?,
            }
            // The first rounds open connections and warm caches.
            if round >= 50 {
                ways[at].1.push(began.elapsed());
            }
        }
    }
    println!("{calls} calls each way, in turns; microseconds");
    println!("{:<20} {:>8} {:>8} {:>8}", "", "p50", "p95", "p99");
    let mut medians = Vec::new();
    for (name, times) in &mut ways {
        times.sort_unstable();
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e6;
        println!("{name:<20} {:>8.0} {:>8.0} {:>8.0}", at(0.5), at(0.95), at(0.99));
        medians.push(at(0.5));
    }
    println!(
        "the executor adds {:.0} µs at the median, the journal {:.0} µs",
        medians[1] - medians[0],
        medians[2] - medians[1]
    );
    gateway.running.stop().await;
    Ok(())
}

async fn direct(client: &reqwest::Client, url: &str, body: &str) -> Result<()> {
    let request = client.post(format!("{url}/tool")).header("content-type", "application/json").body(body.to_owned());
    let answer: Value = serde_json::from_slice(&request.send().await?.bytes().await?)?;
    ensure!(answer["reply"] == "hello", "{answer}");
    Ok(())
}

async fn through(gateway: &TestGateway, tool: &str, round: usize) -> Result<()> {
    let context = CallContext {
        user: USER.to_owned(),
        device: Some("bench".to_owned()),
        session: Some("bench".to_owned()),
        turn: Some(Turn { id: u32::try_from(round + 1)?, revision: 0 }),
        cancel: CancellationToken::new(),
        default_timeout: Duration::from_secs(10),
        conversation: Arc::default(),
        language: None,
        client: ClientClass::Internal,
        caller: None,
        session_lease: None,
        watcher: None,
    };
    let call = ToolCall { id: format!("{tool}-{round}"), name: tool.to_owned(), arguments: json!({"words": "hello"}) };
    let result = gateway.running.services().executor.call(context, call).await;
    ensure!(result.say.as_deref() == Some("hello"), "{result:?}");
    Ok(())
}
