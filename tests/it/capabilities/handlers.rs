//! Files with handlers: what they may do, how they end, and what hostile ones cannot do.

use std::{path::Path, sync::Arc, time::Duration};

use gateway::control::{Answer, Request, client};
use gateway_core::vocab::{ClientClass, ErrorCode, ToolCall, ToolResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tools::{
    call::CallContext,
    code::{JAVASCRIPT_BYTES_MAX, TYPESCRIPT_BYTES_MAX},
};

use super::servers::Servers;
use crate::{
    process::{Process, binary, configure, fails, succeeds},
    world::{USER, WAIT, World},
};

/// How long a call is waited for.
const CALL_WAIT: Duration = Duration::from_secs(180);
const IMPORT: &str = "import { defineTool } from '@lorgnette/capabilities';\n";

/// A file whose functions have these bodies.
fn file(name: &str, functions: &[(&str, &str)]) -> String {
    let functions = functions.iter().map(|(name, body)| {
        format!("{name}: {{ annotations: {{ readOnlyHint: true }}, handler: async (p: any) => {{ {body} }} }},\n")
    });
    format!(
        "{IMPORT}export default defineTool({{ name: '{name}', functions: {{ {} }} }});\n",
        functions.collect::<String>()
    )
}

/// A gateway with these files.
pub(super) async fn world(files: &[(&str, String)], more: &str) -> World {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, source) in files {
        std::fs::write(folder.path().join(name), source).expect("a file");
    }
    let settings = format!("[capabilities]\nglobal = [{:?}]\n{more}", folder.path().display().to_string());
    World::tuned(&settings, |config| config.models.code.executable = Some(binary())).await
}

/// The result of a call, waited for as long as the command waits: a program that computes until its limit takes long where the
/// processor has other work.
pub(super) async fn result(world: &World, name: &str, arguments: Value) -> ToolResult {
    let call = Request::CallTool { user: USER.to_owned(), name: name.to_owned(), arguments };
    let data = world.data();
    let asked = tokio::task::spawn_blocking(move || client::converse(&data, &call, CALL_WAIT));
    match asked.await.expect("the client").expect("an answer") {
        (Answer::ToolResult { result, .. }, _) => *result,
        (answer, _) => panic!("{answer:?}"),
    }
}

/// The code and the message of a call that fails.
async fn failed(world: &World, name: &str) -> (ErrorCode, String) {
    let error = result(world, name, json!({})).await.error.unwrap_or_else(|| panic!("{name} succeeded"));
    (error.code, error.message)
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_json_and_errors_are_those_of_the_tool() {
    let body = |name, body| (name, body);
    let source = file(
        "odd",
        &[
            body("text", "return 'plain';"),
            body("number", "return 7;"),
            body("nothing", ""),
            body("list", "return [1, { a: new Date(0) }];"),
            body("throws", "throw new Error('The line is closed.');"),
            body("throwsText", "throw 'no';"),
            body("function", "return () => 1;"),
            body("cycle", "const a: any = {}; a.a = a; return a;"),
            body("large", "return 'x'.repeat(100_000);"),
            body("endless", "for (;;) {}"),
            body("pending", "await new Promise(() => {});"),
            body("memory", "const all = []; for (;;) all.push('x'.repeat(100_000) + all.length);"),
            body("output", "for (let n = 0; n < 50; n += 1) console.log('y'.repeat(100_000)); return 'printed';"),
            body("host", "return (await fetch('https://api.example.com/')).text();"),
            body(
                "others",
                "const { call } = await import('@lorgnette/bridge'); return call('@capabilities/note-add', 'noteAdd', {});",
            ),
            body("globals", "return [typeof process, typeof require, typeof setTimeout, typeof fetch, typeof print];"),
        ],
    );
    // The computing time is over first, also where it takes long.
    let source = source.replace("annotations:", "timeoutMs: 120_000, annotations:");
    let world = world(&[("odd.ts", source), ("odd.d.ts", "export {};".to_owned())], "").await;
    let data = async |name: &str| result(&world, &format!("odd.{name}"), json!({})).await;
    let text = data("text").await;
    assert_eq!((text.content.as_str(), text.data), ("plain", Some(json!("plain"))));
    assert_eq!(data("number").await.data, Some(json!(7)));
    let nothing = data("nothing").await;
    assert!(!nothing.is_error() && nothing.data.is_none(), "{nothing:?}");
    assert_eq!(data("list").await.data, Some(json!([1, {"a": "1970-01-01T00:00:00.000Z"}])));
    assert_eq!(data("output").await.data, Some(json!("printed")));
    let globals = data("globals").await.data;
    assert_eq!(globals, Some(json!(["undefined", "undefined", "undefined", "function", "function"])));
    for (name, code, words) in [
        ("throws", ErrorCode::ExecutionError, "The line is closed."),
        ("throwsText", ErrorCode::ExecutionError, "threw no"),
        ("function", ErrorCode::ExecutionError, "function"),
        ("cycle", ErrorCode::ExecutionError, "circular"),
        ("large", ErrorCode::ExecutionError, "100002 bytes; a handler may return 65536"),
        ("endless", ErrorCode::Timeout, "took too long"),
        ("pending", ErrorCode::ExecutionError, "nothing settles"),
        ("memory", ErrorCode::ExecutionError, "memory"),
        ("host", ErrorCode::ExecutionError, "capabilities.policy.odd.hosts"),
        ("others", ErrorCode::ExecutionError, "calls no other capabilities"),
    ] {
        let (found, message) = failed(&world, &format!("odd.{name}")).await;
        assert!(found == code && message.contains(words), "{name}: {found:?} {message}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_calls_of_a_program_run_their_handlers_while_it_waits() {
    let servers = Servers::start().await;
    let source = file("many", &[("get", "await fetch(p.url); return p.n;")]);
    let source = source.replace(
        "annotations:",
        "timeoutMs: 120_000, parameters: { n: { type: 'number' }, url: { type: 'string' } }, annotations:",
    );
    let settings = format!("{}[code]\nenabled = true\n", servers.policy("many"));
    let world = world(&[("many.ts", source)], &settings).await;
    let program = format!(
        "import {{ many }} from '@capabilities/many';\n\
         const all = Array.from({{ length: 24 }}, (_, n) => many.get({{ n, url: 'http://{}/schedule' }}));\n\
         export default (await Promise.all(all)).reduce((sum, n) => sum + n, 0);\n",
        servers.trains
    );
    // Four such programs at a time keep all places of programs while their handlers need some.
    let arguments = json!({"code": program, "timeout_ms": 110_000});
    let run = || result(&world, "code.run", arguments.clone());
    let (a, b, c, d) = tokio::join!(run(), run(), run(), run());
    for outcome in [a, b, c, d] {
        assert_eq!(outcome.data.as_ref().map(|data| data["result"].clone()), Some(json!(276)), "{outcome:?}");
    }
    assert_eq!(servers.asked.lock().unwrap().len(), 96);
    world.stop().await;
}

/// The processes of this test's sandboxes.
fn processes() -> usize {
    let is_one = |task: &std::fs::DirEntry| {
        let status = std::fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let command = std::fs::read(task.path().join("cmdline")).unwrap_or_default();
        status.contains(&format!("PPid:\t{}\n", std::process::id()))
            && String::from_utf8_lossy(&command).contains("code-sandbox")
    };
    std::fs::read_dir("/proc").expect("processes").flatten().filter(is_one).count()
}

/// Waits until only the process is left that is ready for the next program.
async fn settled() {
    let looked = async {
        while processes() > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT, looked).await.expect("the processes end");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_stops_a_handler_that_changes_nothing_and_a_timeout_every_one() {
    let servers = Servers::start().await;
    let get = format!("await fetch('http://{}/never');", servers.trains);
    let post = get.replace("');", "', { method: 'POST' });");
    let source = file("slow", &[("get", &get), ("post", &post)]);
    let source = source
        .replace(
            "post: { annotations: { readOnlyHint: true }",
            "post: { timeoutMs: 8_000, annotations: { idempotentHint: true }",
        )
        .replace("get: { annotations: { readOnlyHint: true }", "get: { timeoutMs: 120_000");
    let world = world(&[("slow.ts", source)], &servers.policy("slow")).await;
    let call = async |name: &str, wanted: usize| {
        let cancel = CancellationToken::new();
        let context = CallContext {
            user: USER.to_owned(),
            device: None,
            session: None,
            turn: None,
            cancel: cancel.clone(),
            default_timeout: WAIT,
            client: ClientClass::Internal,
            caller: None,
            conversation: Arc::default(),
            language: None,
            session_lease: None,
            watcher: None,
        };
        let call = ToolCall { id: name.to_owned(), name: format!("slow.{name}"), arguments: json!({}) };
        let executor = world.gateway().services().executor.clone();
        let asked = async {
            while servers.asked.lock().unwrap().len() < wanted {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(executor.call(context, call), asked);
        let error = result.error.expect("it cannot succeed");
        settled().await;
        (error.code, error.message)
    };
    // Nobody knows what the server has done, but the handler has asked for nothing that changes.
    let (code, message) = call("get", 1).await;
    assert_eq!(code, ErrorCode::Cancelled, "{message}");
    // A change that has begun is not interrupted: its time ends it.
    let (code, message) = call("post", 2).await;
    assert!(code == ErrorCode::Timeout && message.contains("unknown"), "{code:?} {message}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_in_javascript_and_defaults_of_parameters() {
    // As a bundler writes it: one file, with what a package had.
    let bundle = "import { defineTool as d } from \"@agent-spaces/capabilities\";\n\
        var __defProp = Object.defineProperty; var pad = (text, length) => String(text).padStart(length, \"0\");\n\
        export default d({ name: \"pads\", functions: { pad: { parameters: { text: { type: \"string\" }, length: \
        { type: \"integer\", default: 3 } }, returns: { type: \"string\" }, handler: ({ text, length }) => \
        pad(text, length) } } });\n";
    let world = world(&[("pads.mjs", bundle.to_owned())], "").await;
    assert_eq!(result(&world, "pads.pad", json!({"text": "7"})).await.data, Some(json!("007")));
    assert_eq!(result(&world, "pads.pad", json!({"text": "7", "length": 2})).await.data, Some(json!("07")));
    let wrong = result(&world, "pads.pad", json!({})).await;
    assert_eq!(wrong.error.map(|error| error.code), Some(ErrorCode::InvalidArguments));
    world.stop().await;
}

/// As long as the limits of files allow.
#[tokio::test(flavor = "multi_thread")]
async fn long_files_are_read_and_their_handlers_run() {
    let lines = |bytes_max: usize, line: &dyn Fn(usize) -> String| {
        let mut text = String::new();
        for at in 0.. {
            let next = line(at);
            if text.len() + next.len() > bytes_max - 1_024 {
                break;
            }
            text.push_str(&next);
        }
        text
    };
    let typed = |at: usize| {
        format!(
            "interface T{at} {{ a: string; b?: {{ c: number }}[] }}\nconst f{at} = (t: T{at}): string => t.a + '{at}';\n"
        )
    };
    let plain = |at: usize| format!("var f{at} = function (a, b) {{ return a ? a.length + b[{at}] : \"{at}\"; }};\n");
    let define = "defineTool({ name: 'NAME', functions: { f: { handler: () => f7({ a: 'x', length: 1 }, Array(9).fill(2)) } } });";
    let file = |name: &str, text: String| format!("{IMPORT}{text}{}", define.replace("NAME", name));
    let files = [
        ("long.ts", file("long", lines(TYPESCRIPT_BYTES_MAX, &typed))),
        ("longer.mjs", file("longer", lines(JAVASCRIPT_BYTES_MAX, &plain))),
    ];
    assert!(files[0].1.len() > 260_000 && files[1].1.len() > 1_040_000);
    let world = world(&files, "").await;
    assert_eq!(result(&world, "long.f", json!({})).await.data, Some(json!("x7")));
    assert_eq!(result(&world, "longer.f", json!({})).await.data, Some(json!(3)));
    world.stop().await;
}

/// What `check` says about one file.
pub(super) async fn checked(folder: &Path, name: &str, source: &str, more: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, source).expect("the file");
    let settings = format!("[capabilities]\nglobal = [{:?}]\n{more}", path.display().to_string());
    let config = configure(&folder.join("data"), &settings).display().to_string();
    fails(&["check", "--config", &config]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn check_tells_what_is_wrong_with_a_file_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let one = |rest: &str| format!("{IMPORT}defineTool({{ name: 'a', functions: {{ f: {rest} }} }});");
    let long = "x".repeat(300_000);
    for (name, source, words) in [
        ("syntax.ts", "const a: number = ;".to_owned(), vec!["syntax.ts: line 1, column 19: SyntaxError"]),
        ("enum.ts", "enum A { B }".to_owned(), vec!["line 1", "enum"]),
        ("none.ts", "export const a = 1;".to_owned(), vec!["calls defineTool nowhere"]),
        ("handler.ts", one("{ description: 'x' }"), vec!["line 2", "functions.f needs a handler"]),
        ("loop.ts", format!("{IMPORT}for (;;) {{}}"), vec!["loop.ts", "it did not end"]),
        ("wait.ts", "await new Promise(() => {});".to_owned(), vec!["nothing settles"]),
        ("node.mjs", "import a from 'a';\nimport fs from 'node:fs';".to_owned(), vec!["line 1", "'a'", "bundle it"]),
        ("fs.js", "\nimport { readFileSync } from \"node:fs\";".to_owned(), vec!["line 2", "node:fs", "Node.js"]),
        ("net.ts", "await fetch('https://api.example.com');".to_owned(), vec!["by handlers only"]),
        ("print.ts", "for (let n = 0; n < 50; n += 1) console.log('y'.repeat(100_000));".to_owned(), vec!["nowhere"]),
        ("huge.ts", one(&format!("{{ description: '{}', handler() {{}} }}", &long[..100_000])), vec!["at most 65536"]),
        ("long.ts", format!("// {long}"), vec!["at most 262144"]),
        (
            "schema.ts",
            one("{ parameters: { p: { type: 'text' } }, handler() {} }"),
            vec!["'a", "/functions/f/parameters"],
        ),
        (
            "json.ts",
            one("{ parameters: { p: { type: Symbol('a') } }, handler() {} }"),
            vec!["line 2", "p.type is no JSON"],
        ),
        (
            "field.ts",
            one("{ requireApproval: true, handler() {} }"),
            vec!["line 2", "/functions/f/requireApproval", "no such field"],
        ),
        ("carrier.ts", format!("{IMPORT}defineTool({{ name: 'a', mcp: 'b', functions: {{}} }});"), vec!["'/mcp'"]),
        ("built.ts", one("{ handler() {} }").replace("'a'", "'timer'").replace("f:", "set:"), vec!["built-in tool"]),
    ] {
        let told = checked(folder.path(), name, &source, "").await;
        assert!(words.iter().all(|words| told.contains(words)), "{name}: {words:?}: {told}");
        assert!(told.contains("the section [capabilities] has 1 problem"), "{told}");
    }
    let policy = "[capabilities.policy.b]\nhosts = [\"api.example.com\"]\n";
    let told = checked(folder.path(), "a.ts", &one("{ handler() {} }"), policy).await;
    assert!(told.contains("capabilities.policy.b") && told.contains("defines the capability 'b'"), "{told}");
    let policy = policy.replace("policy.b", "policy.a").replace("api.example.com", "https://x");
    let told = checked(folder.path(), "a.ts", &one("{ handler() {} }"), &policy).await;
    assert!(told.contains("capabilities.policy.a.hosts[0] ('https://x'): not a host"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_knows_files_with_handlers() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(data.join("capabilities")).unwrap();
    let trains = data.join("capabilities").join("trains.ts");
    std::fs::write(&trains, include_str!("train-schedule.ts")).unwrap();
    let settings = "[capabilities]\nglobal = [\"trains\"]\n\
        [capabilities.policy.trainSchedule]\nhosts = [\"api.trains.com\"]\n";
    let gateway = Process::start(&data, settings, &[]).await;
    let config = data.with_extension("toml").display().to_string();
    let said = async |words: &[&str]| succeeds(&[words, &["--config", &config][..]].concat()).await;
    assert!(said(&["check"]).await.contains("capabilities  trainSchedule\n"));
    let list = said(&["capabilities", "list"]).await;
    assert!(list.contains("@capabilities/train-schedule  getSchedule getTrainDetails\n"), "{list}");
    let shown = said(&["capabilities", "show", "train-schedule"]).await;
    assert!(shown.contains("getSchedule(params?: GetScheduleParams): Promise<Trip[]>;"), "{shown}");
    let out = folder.path().join("out");
    said(&["capabilities", "build", "--out", out.to_str().expect("UTF-8")]).await;
    let meta = std::fs::read_to_string(out.join("train-schedule/0.0.0/meta.json")).expect("the metadata");
    let meta: Value = serde_json::from_str(&meta).expect("JSON");
    assert_eq!(
        (&meta["source"], &meta["functions"]["getSchedule"]["tool"]),
        (&json!("sdk"), &json!("trainSchedule.getSchedule"))
    );
    assert!(gateway.terminate().await.0.success());
    // Two files of this name: nobody guesses which one is meant.
    std::fs::write(trains.with_extension("json"), "{}").unwrap();
    let told = fails(&["check", "--config", &config]).await;
    assert!(told.contains("trains.json") && told.contains("keep one of both"), "{told}");
}
