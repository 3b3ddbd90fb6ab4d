//! Foreign MCP clients and servers with the gateway between them.

use serde_json::{Value, json};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::{cancellable, up};
use crate::{programs::Programs, world::World};

const PEERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/mcp_peers.py");

async fn said(command: &mut Command) -> String {
    let output = command.kill_on_drop(true).output().await.expect("it runs");
    let words = [output.stdout, output.stderr].concat();
    let words = String::from_utf8_lossy(&words).into_owned();
    assert!(output.status.success(), "{command:?}: {words}");
    words
}

#[tokio::test(flavor = "multi_thread")]
async fn published_clients_and_servers_work() {
    let tools = Programs::mcp();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hello.txt"), "hello from a file").unwrap();
    let node = tools.node().display().to_string();
    let script =
        |name: &str| tools.script(&format!("@modelcontextprotocol/server-{name}/dist/index.js")).display().to_string();
    let shared = folder.path().display().to_string();
    let graph = folder.path().join("graph.json").display().to_string();
    let world = World::with(&format!(
        "[mcp]\nwithout_key = true\n\
         servers.everything = {{ command = {node:?}, args = [{:?}] }}\n\
         servers.filesystem = {{ command = {node:?}, args = [{:?}, {shared:?}] }}\n\
         servers.memory = {{ command = {node:?}, args = [{:?}], env = {{ MEMORY_FILE_PATH = {graph:?} }} }}\n",
        script("everything"),
        script("filesystem"),
        script("memory"),
    ))
    .await;
    for server in ["everything", "filesystem", "memory"] {
        up(&world, server).await;
    }
    let entity = json!({ "entities": [{ "name": "oven", "entityType": "thing", "observations": ["is on"] }] });
    for (tool, arguments, wanted) in [
        ("everything.echo", json!({ "message": "hello" }), "hello"),
        ("filesystem.read_text_file", json!({ "path": format!("{shared}/hello.txt") }), "hello from a file"),
        ("memory.create_entities", entity, "oven"),
        ("memory.read_graph", json!({}), "is on"),
    ] {
        let result = cancellable(&world, tool, arguments, None, CancellationToken::new()).await;
        assert!(result.content.contains(wanted) && !result.is_error(), "{tool}: {result:?}");
    }
    let url = format!("http://{}/mcp", world.web());
    println!("{}", said(Command::new(tools.python()).args([PEERS, &url])).await);
    let inspector = |arguments: &[&str]| {
        let mut command = Command::new(tools.node());
        command.arg(tools.script("@modelcontextprotocol/inspector/clients/launcher/build/index.js"));
        command.args(["--cli", &url, "--transport", "http"]).args(arguments).env("HOME", folder.path());
        command
    };
    let listed: Value = serde_json::from_str(&said(&mut inspector(&["--method", "tools/list"])).await).expect("JSON");
    let names: Vec<&str> =
        listed["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"clock.time") && names.contains(&"filesystem.read_text_file"), "{names:?}");
    assert!(names.is_sorted());
    let call = ["--method", "tools/call", "--tool-name", "everything.echo", "--tool-arg", "message=inspected"];
    assert!(said(&mut inspector(&call)).await.contains("inspected"));
}
