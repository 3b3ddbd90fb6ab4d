//! Capabilities from files: a real HTTP server carries out their calls, for the users that they are for.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use gateway::control::{
    Answer, Request,
    apps::{AppsRequest, Given, Listed},
    attempt::Tried,
};
use gateway_core::vocab::{ApprovalOutcome, ErrorCode, ToolResult};
use http_body_util::{BodyExt as _, Full};
use hyper::Response;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    apps::fake::{FakeApp, KEY},
    http,
    mcp::{fixture, up},
    process::{Process, fails, succeeds},
    world::{USER, World},
};

/// The example of the source document, with its slip, and where its calls go.
fn train_schedule(url: &str) -> Value {
    json!({
        "name": "trainSchedule",
        "description": "Get train schedule information",
        "version": "1.0.0",
        "functions": [
            {
                "name": "getSchedule",
                "description": "Get all scheduled trains",
                "parameters": {"type": "object", "properties": {
                    "station": {"type": "string", "description": "Filter by station name"},
                    "date": {"type": "string", "format": "date", "description": "Date to check (YYYY-MM-DD)"}
                }},
                "returns": {"type": "array", "items": {"type": "object", "properties": {
                    "id": {"type": "string"}, "hour": {"type": "integer"}, "minute": {"type": "integer"},
                    "destination": {"type": "string"}, "platform": {"type": "string"}
                }}},
                "sentenceTemplates": ["which trains leave from {station}"]
            },
            {
                "name": "getTrainDetails",
                "description": "Get details for a specific train",
                "parameters": {"type": "object", "properties": {"trainId": {"type": "string", "required": true}},
                    "required": ["trainId"]},
                "returns": {"type": "object", "properties": {
                    "id": {"type": "string"}, "operator": {"type": "string"}, "stops": {"type": "array"}
                }}
            }
        ],
        "config": {"requiresApproval": false, "rateLimit": {"requests": 100, "period": "minute"}},
        "endpoint": {"url": url, "headers": {"Authorization": "Bearer planted-${NO_SUCH_KEY:-4711}"}}
    })
}

/// What a server was sent: the header `Authorization`, and the body.
type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// A server that answers every call, with the secret that it was sent.
async fn server() -> (String, Seen) {
    let seen = Seen::default();
    let (listener, address) = http::bind().await;
    let book = seen.clone();
    http::serve(listener, move |request| {
        let book = book.clone();
        async move {
            let key = request.headers().get("authorization").and_then(|key| key.to_str().ok()).unwrap_or_default();
            let key = key.to_owned();
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            let call: Value = serde_json::from_slice(&body).expect("JSON");
            let reply = match call["function"].as_str() {
                Some("getSchedule") => {
                    json!({"status": "success", "reply": [{"id": "1", "destination": "Bern", "via": key}]})
                }
                Some("getTrainDetails") => json!({"success": true, "content": "Train 1 is on time."}),
                Some("fail") => json!({"status": "error", "message": "The line is closed."}),
                Some("garbage") => json!({"id": 5}),
                _ => json!({"status": "success", "reply": "done"}),
            };
            book.lock().unwrap().push((key, call));
            let json = Full::new(Bytes::from(reply.to_string()));
            Response::builder().header("content-type", "application/json").body(json).expect("a response")
        }
    });
    (format!("http://{address}/calls"), seen)
}

/// A folder with files of these contents; the reference of each in a configuration.
fn files(contents: &[&Value]) -> (TempDir, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |(at, content): (usize, &&Value)| {
        let path: PathBuf = folder.path().join(format!("{at}.json"));
        std::fs::write(&path, content.to_string()).expect("a file");
        format!("{:?}", path.display().to_string())
    };
    let references = contents.iter().enumerate().map(write).collect();
    (folder, references)
}

async fn result(world: &World, user: &str, name: &str, arguments: Value) -> ToolResult {
    let call = Request::CallTool { user: user.to_owned(), name: name.to_owned(), arguments };
    match world.ask(call).await.expect("an answer") {
        Answer::ToolResult { result, .. } => *result,
        answer => panic!("{answer:?}"),
    }
}

async fn code(world: &World, user: &str, name: &str, arguments: Value) -> Option<ErrorCode> {
    result(world, user, name, arguments).await.error.map(|error| error.code)
}

async fn offered(world: &World, user: &str) -> Vec<String> {
    match world.ask(Request::Tools { user: user.to_owned() }).await.expect("a list") {
        Answer::Tools { tools } => tools.into_iter().map(|tool| tool.spec.name).collect(),
        answer => panic!("{answer:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_are_carried_out_by_their_server() {
    let (url, seen) = server().await;
    let function = |name: &str| json!({"name": name});
    let odd = json!({"name": "odd", "functions": [function("fail"), function("garbage")], "endpoint": {"url": url}});
    let weather = json!({"type": "function", "function": {"name": "get_weather", "parameters": {
        "type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}},
        "endpoint": {"url": url}});
    let (_folder, files) = files(&[&train_schedule(&url), &odd, &weather]);
    let world = World::with(&format!("[capabilities]\nglobal = [{}]\n", files.join(", "))).await;

    let trains = result(&world, USER, "trainSchedule.getSchedule", json!({"station": "Central"})).await;
    assert!(trains.error.is_none(), "{trains:?}");
    // It has quoted the key.
    assert_eq!(trains.data, Some(json!([{"id": "1", "destination": "Bern", "via": "Bearer [secret]"}])));
    let details = result(&world, USER, "trainSchedule.getTrainDetails", json!({"trainId": "1"})).await;
    assert_eq!(details.content, "Train 1 is on time.");
    assert_eq!(result(&world, USER, "get_weather", json!({"location": "Bern"})).await.content, "done");
    {
        let seen = seen.lock().unwrap();
        let bodies: Vec<&Value> = seen.iter().map(|(_, body)| body).collect();
        let body =
            |function: &str, parameters: Value| json!({"function": function, "parameters": parameters, "userId": USER});
        let wanted = [
            body("getSchedule", json!({"station": "Central"})),
            body("getTrainDetails", json!({"trainId": "1"})),
            body("get_weather", json!({"location": "Bern"})),
        ];
        assert_eq!(bodies, wanted.iter().collect::<Vec<_>>());
        assert_eq!((seen[0].0.as_str(), seen[2].0.as_str()), ("Bearer planted-4711", ""));
    }
    // What does not fit is not sent, and odd answers are told.
    let wrong = result(&world, USER, "trainSchedule.getTrainDetails", json!({})).await;
    assert_eq!(wrong.error.map(|error| error.code), Some(ErrorCode::InvalidArguments));
    assert_eq!(seen.lock().unwrap().len(), 3);
    let failed = result(&world, USER, "odd.fail", json!({})).await;
    assert_eq!(failed.say.as_deref(), Some("The line is closed."));
    let garbage = result(&world, USER, "odd.garbage", json!({})).await;
    assert!(garbage.content.contains("not understood") && garbage.is_error(), "{garbage:?}");

    // The offline engine understands the sentence of a function, and the ledger names its source.
    let text = "which trains leave from central".to_owned();
    let request = AppsRequest::Try { text, user: USER.to_owned(), device: None, run: true };
    match world.ask(Request::Apps { request }).await {
        Ok(Answer::Tried { tried: Tried::Calls(calls) }) => {
            assert_eq!(calls[0].tool, "trainSchedule.getSchedule");
            assert!(calls[0].result.as_ref().is_some_and(|result| !result.is_error()), "{calls:?}");
        }
        other => panic!("{other:?}"),
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_limit_holds_for_a_capability_and_a_call_asks_with_its_own_words() {
    let (url, seen) = server().await;
    let mut trains = train_schedule(&url);
    trains["config"]["rateLimit"]["requests"] = 2.into();
    let files_of = json!({"name": "fileSystem", "endpoint": {"url": url}, "functions": [{
        "name": "deleteFile",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        "requiresApproval": true, "approvalMessage": "Delete file: {path}?"
    }]});
    let (_folder, files) = files(&[&trains, &files_of]);
    let world = World::with(&format!("[capabilities]\nglobal = [{}]\n", files.join(", "))).await;
    assert_eq!(code(&world, USER, "trainSchedule.getSchedule", json!({})).await, None);
    assert_eq!(code(&world, USER, "trainSchedule.getTrainDetails", json!({"trainId": "1"})).await, None);
    let limited = Some(ErrorCode::RateLimited);
    assert_eq!(code(&world, USER, "trainSchedule.getSchedule", json!({})).await, limited);
    assert_eq!(code(&world, USER, "trainSchedule.getTrainDetails", json!({"trainId": "1"})).await, limited);
    assert_eq!(code(&world, "bob", "trainSchedule.getSchedule", json!({})).await, None);
    assert_eq!(seen.lock().unwrap().len(), 3);

    // Nobody can be asked here: the question is not put, and the file stays.
    assert_eq!(
        code(&world, USER, "fileSystem.deleteFile", json!({"path": "important.txt"})).await,
        Some(ErrorCode::ApprovalExpired)
    );
    assert_eq!(seen.lock().unwrap().len(), 3);
    let asked = Request::Decisions { user: Some(USER.to_owned()), since_wall_ms: i64::MIN };
    let Ok(Answer::Decisions { decisions, .. }) = world.ask(asked).await else { panic!("no decisions") };
    let [decision] = decisions.as_slice() else { panic!("{decisions:?}") };
    assert_eq!(decision.approval.as_ref().map(|made| made.outcome), Some(ApprovalOutcome::Unasked));
    assert_eq!(decision.source, "capability:fileSystem");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_for_one_user_is_neither_seen_nor_called_by_another() {
    let (url, seen) = server().await;
    let address = fixture::serve().await;
    let simple = json!({"name": "texts", "mcp": "fixture", "functions": [{"name": "test_simple_text"}]});
    let (_folder, files) = files(&[&train_schedule(&url), &simple]);
    let world = World::with(&format!(
        "[capabilities.users.ada]\nuse = [{}, \"app:com.example.configured\"]\n\
         [mcp.servers.fixture]\nurl = \"http://{address}/\"\nusers = [\"ada\"]\n",
        files.join(", ")
    ))
    .await;
    up(&world, "fixture").await;
    let has = async |user: &str, tool: &str| offered(&world, user).await.iter().any(|name| name == tool);
    for tool in ["trainSchedule.getSchedule", "texts.test_simple_text", "fixture.test_simple_text"] {
        assert!(has("ada", tool).await && !has("bob", tool).await, "{tool}");
        assert_eq!(code(&world, "ada", tool, json!({})).await, None, "{tool}");
        assert_eq!(code(&world, "bob", tool, json!({})).await, Some(ErrorCode::ToolNotFound), "{tool}");
    }
    assert_eq!(seen.lock().unwrap().len(), 1);
    let texts = result(&world, "ada", "texts.test_simple_text", json!({})).await;
    assert_eq!(texts.content, "This is a simple text response for testing.");
    apps(&world).await;
    // What was known of the server comes back in the same scope.
    let world = world.again().await;
    assert!(!offered(&world, "bob").await.iter().any(|name| name.starts_with("fixture.")));
    world.stop().await;
}

/// An app that is installed for one user, and one that the configuration leaves to her.
async fn apps(world: &World) {
    let (app, other) = (FakeApp::start("com.example.hers").await, FakeApp::start("com.example.configured").await);
    let given = |app: &FakeApp, users: &[&str], all_users: bool| Given {
        manifest: json!({"packageName": app.package, "name": app.package.rsplit('.').next(),
            "publicUrl": format!("http://{}", app.address),
            "tools": [{"id": "add", "description": "Adds.", "activateApp": false}]})
        .to_string(),
        api_key: Some(KEY.to_owned()),
        users: users.iter().map(|user| (*user).to_owned()).collect(),
        all_users,
        ..Given::default()
    };
    let add = async |given: Given| match world.ask(Request::Apps { request: AppsRequest::Add(given) }).await {
        Ok(Answer::Done { message }) => message,
        other => panic!("{other:?}"),
    };
    let told = add(given(&app, &["ada"], false)).await;
    assert!(told.contains("\nfor ada only\n"), "{told}");
    assert!(add(given(&other, &[], false)).await.contains("\nfor ada only\n"));
    for package in [&app.package, &other.package] {
        let tool = format!("{package}.add");
        let has = async |user: &str| offered(world, user).await.contains(&tool);
        assert!(has("ada").await && !has("bob").await, "{tool}");
        assert_eq!(code(world, "bob", &tool, json!({})).await, Some(ErrorCode::ToolNotFound));
        let start = AppsRequest::Start { package: package.clone(), user: "bob".to_owned() };
        let refused = world.ask(Request::Apps { request: start }).await.unwrap_err();
        assert!(refused.contains("is not for bob"), "{refused}");
    }
    let listed = async || -> Vec<Listed> {
        match world.ask(Request::Apps { request: AppsRequest::List }).await {
            Ok(Answer::Apps { apps }) => apps,
            other => panic!("{other:?}"),
        }
    };
    let users: Vec<Vec<String>> = listed().await.into_iter().map(|app| app.users).collect();
    assert_eq!(users, [["ada"], ["ada"]]);
    // Installed again it stays hers, until it is for all.
    assert!(add(given(&app, &[], false)).await.contains("for ada only"));
    assert!(!add(given(&app, &[], true)).await.contains("only"));
    let tool = "com.example.hers.add".to_owned();
    assert!(offered(world, "bob").await.contains(&tool) && offered(world, "ada").await.contains(&tool));
    assert!(add(given(&app, &["bob"], false)).await.contains("for bob only"));
    assert!(offered(world, "bob").await.contains(&tool) && !offered(world, "ada").await.contains(&tool));
}

fn write(path: &Path, content: &Value) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder");
    std::fs::write(path, content.to_string()).expect("the file");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_shows_a_capability_and_refuses_one_that_nobody_carries_out() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write(&data.join("capabilities/trains.json"), &train_schedule("http://127.0.0.1:1/"));
    let gateway = Process::start(&data, "[capabilities]\nglobal = [\"trains\"]\n", &[]).await;
    let config = data.with_extension("toml").display().to_string();
    let with = |words: &[&str]| -> Vec<String> {
        words.iter().chain(&["--config", &config]).map(ToString::to_string).collect()
    };
    let said =
        |words: Vec<String>| async move { succeeds(&words.iter().map(String::as_str).collect::<Vec<_>>()).await };
    let list = said(with(&["tools", "list"])).await;
    assert!(list.contains("trainSchedule.getSchedule") && list.contains("capability:trainSchedule"), "{list}");
    let list = said(with(&["capabilities", "list"])).await;
    assert!(list.contains("@capabilities/train-schedule  getSchedule getTrainDetails\n"), "{list}");
    let shown = said(with(&["capabilities", "show", "train-schedule"])).await;
    assert!(shown.contains("export const trainSchedule") && shown.contains("station?: string"), "{shown}");
    said(with(&["capabilities", "build"])).await;
    let meta = std::fs::read_to_string(data.join("capabilities/train-schedule/1.0.0/meta.json")).expect("built");
    let meta: Value = serde_json::from_str(&meta).expect("JSON");
    assert_eq!((&meta["source"], &meta["policy"]["rateLimit"]["calls"]), (&json!("sdk"), &json!(100)));
    let checked = said(with(&["check"])).await;
    assert!(checked.contains("capabilities  trainSchedule"), "{checked}");
    assert!(gateway.terminate().await.0.success());

    let mut idle = train_schedule("");
    idle.as_object_mut().expect("an object").remove("endpoint");
    write(&data.join("capabilities/trains.json"), &idle);
    let words = with(&["check"]);
    let error = fails(&words.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert!(error.contains("'trainSchedule'") && error.contains("add \"endpoint\""), "{error}");
}
