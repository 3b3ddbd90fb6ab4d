//! What a request to a model contains besides the conversation, and what of the conversation leaves the box.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use gateway::control::{
    Request,
    apps::{AppsRequest, Given},
};
use http_body_util::{BodyExt as _, Full};
use hyper::{Response, body::Incoming};
use serde_json::{Value, json};

use super::{
    ask, model,
    photos::stands,
    provider::{Answer, Provider},
};
use crate::{
    http,
    mcp::{self, fixture},
    world::World,
};

/// A built-in tool's guidance.
const BUILT_IN: &str = "Use calculator.evaluate for every calculation; do not do sums yourself.";
/// That of a tool of the MCP server.
const OF_SERVER: &str = "Sample only what the wearer asked for.";
/// That of an app's tool.
const OF_APP: &str = "Read the list aloud only when asked.";

/// The server of an app; keeps the calls that it gets.
async fn app_server() -> (String, Arc<Mutex<Vec<Value>>>) {
    let (listener, address) = http::bind().await;
    let calls: Arc<Mutex<Vec<Value>>> = Arc::default();
    let kept = calls.clone();
    http::serve(listener, move |request: hyper::Request<Incoming>| {
        let kept = kept.clone();
        async move {
            let is_call = request.method() == "POST" && request.uri().path() == "/tool";
            let body = request.into_body().collect().await.expect("a body").to_bytes();
            if is_call {
                kept.lock().unwrap().push(serde_json::from_slice(&body).expect("JSON"));
            }
            let answer = json!({"success": true, "status": "success", "content": "Found.", "reply": "Found."});
            let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
            response.headers_mut().insert("content-type", "application/json".parse().expect("a value"));
            response
        }
    });
    (format!("http://{address}"), calls)
}

/// Installs an app with one tool, which needs no session.
async fn install(world: &World, package: &str, url: &str, more: Value) {
    let mut manifest = json!({
        "packageName": package, "name": package, "publicUrl": url,
        "tools": [{
            "name": "look", "description": "Looks something up.", "inputSchema": {"type": "object", "properties": {}},
            "mentraExtensions": {"activateApp": false, "guidance": OF_APP}
        }]
    });
    for (key, value) in more.as_object().expect("fields") {
        manifest[key] = value.clone();
    }
    let given = Given { manifest: manifest.to_string(), ..Given::default() };
    world.ask(Request::Apps { request: AppsRequest::Add(given) }).await.expect("installed");
}

#[tokio::test(flavor = "multi_thread")]
async fn guidance_of_every_source_is_in_the_requests_to_every_provider() {
    let provider = Provider::start().await;
    let server = fixture::serve().await;
    let kinds = ["chat_completions", "anthropic", "gemini", "responses"];
    let fallbacks: String =
        kinds[1..].iter().map(|kind| format!("[[fallback]]\n{}", model(&provider, kind, kind))).collect();
    let world = World::with(&format!(
        "[model]\n{}{fallbacks}[router]\ntools = 1000\n[mcp]\nservers.fixture = {{ url = \"http://{server}/\" }}\n",
        model(&provider, kinds[0], kinds[0])
    ))
    .await;
    mcp::up(&world, "fixture").await;
    let (url, _) = app_server().await;
    install(&world, "com.example.told", &url, json!({})).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let counts = || {
        let asked = provider.asked();
        let last = asked.last().expect("a request");
        let body = last.body.to_string();
        (last.branch.clone(), [BUILT_IN, OF_SERVER, OF_APP].map(|guidance| body.matches(guidance).count()))
    };
    for kind in kinds {
        // The previous provider has no more answers: it fails.
        provider.then(kind, Answer::Says("Paris.", 5, 5));
        ask(&mut glasses, "what is the capital of France").await;
        assert_eq!(counts(), (kind.to_owned(), [1, 1, 1]));
    }
    // Guidance of a tool that is not offered is not sent.
    for (name, left) in [("com.example.told.look", [1, 1, 0]), ("fixture.test_sampling", [1, 0, 0])] {
        let switch = Request::SwitchTool { user: "wearer".into(), name: name.into(), on: false };
        world.ask(switch).await.expect("switched off");
        provider.then("responses", Answer::Says("Rome.", 5, 5));
        ask(&mut glasses, "what is the capital of Italy").await;
        assert_eq!(counts().1, left, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_gets_the_conversation_only_if_it_declares_that_it_needs_it() {
    let provider = Provider::start().await;
    let model = model(&provider, "chat_completions", "one");
    let world = World::with(&format!("[model]\n{model}[router]\ntools = 1000\n")).await;
    let (url, calls) = app_server().await;
    let needs = json!({"toolCall": "mcp", "permissions": [{"type": "CONVERSATION_HISTORY"}]});
    install(&world, "com.example.told", &url, needs).await;
    install(&world, "com.example.other", &url, json!({"permissions": ["ALL"]})).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    provider.then("one", Answer::Says("Paris.", 5, 5));
    ask(&mut glasses, "what is the capital of France").await;
    for tool in ["com.example.told.look", "com.example.other.look"] {
        provider.then("one", Answer::Calls(tool, json!({})));
    }
    provider.then("one", Answer::Says("It was found.", 5, 5));
    ask(&mut glasses, "what else is there to see").await;
    // An operator's call belongs to no conversation.
    let by_hand =
        Request::CallTool { user: "wearer".into(), name: "com.example.told.look".into(), arguments: json!({}) };
    world.ask(by_hand).await.expect("a result");
    let calls = calls.lock().unwrap().clone();
    let [told, other, by_hand] = calls.as_slice() else { panic!("{calls:#?}") };
    let said = told["context"]["conversationHistory"].as_array().expect("the conversation");
    let said: Vec<_> = said.iter().map(|said| (said["role"].as_str(), said["content"].as_str())).collect();
    let wanted =
        [("user", "what is the capital of France"), ("assistant", "Paris."), ("user", "what else is there to see")];
    assert_eq!(said, wanted.map(|(role, text)| (Some(role), Some(text))));
    assert!(other["toolId"] == "look" && !other.to_string().contains("onversation"), "{other}");
    assert!(!other.to_string().contains("France"), "{other}");
    assert_eq!(by_hand["context"]["conversationHistory"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_has_a_servers_secret_in_it() {
    const PLANTED: &str = "sk-planted-4711";
    let provider = Provider::start().await;
    let world = World::with(&format!(
        "[model]\n{}[mcp]\nservers.absent = {{ command = \"/no/such/server\", args = [\"--token\", {PLANTED:?}] }}\n",
        model(&provider, "chat_completions", "one")
    ))
    .await;
    let mut glasses = world.glasses("wss", "glasses").await;
    for (at, words) in ["what does sk-planted-4711 mean", "what is the capital of France"].into_iter().enumerate() {
        provider.then("one", Answer::Says("I cannot tell.", 5, 5));
        ask(&mut glasses, words).await;
        let body = provider.until(at + 1).await.body.to_string();
        assert!(body.contains("what does [secret] mean") && !body.contains(PLANTED), "{body}");
    }
    // The conversation itself is unchanged.
    world.gateway().services().store.settled().await.expect("written");
    assert!(stands(&world.data(), PLANTED.as_bytes()));
}
