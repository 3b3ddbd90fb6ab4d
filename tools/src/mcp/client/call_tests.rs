//! Calls to a server that asks the wearer, and to one that quotes what it was sent.

#![expect(deprecated, reason = "revisions before 2026-07-28 have logging")]

use gateway_core::vocab::ApprovalOutcome;
use rmcp::{
    RoleServer, ServerHandler,
    model::{
        CallToolResponse, ElicitRequestParams, GetPromptResponse, LoggingLevel, LoggingMessageNotificationParam,
        ProgressNotificationParam, ReadResourceResponse, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use serde_json::json;
use tokio::{
    io::duplex,
    sync::{Notify, watch},
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    caller::{Caller, NotAsked},
    mcp::client::test_support::{connect, downstream},
    ports::{Consent, Decision, Ports},
    registry::Registry,
    secret::Secret,
    test_support::{World, call, context},
};

/// A wearer who is asked, and says nothing.
#[derive(Default)]
struct Silent {
    asked: Notify,
    withdrawn: Notify,
}

#[async_trait]
impl Consent for Silent {
    async fn ask(&self, _request: ConsentRequest, cancel: CancellationToken) -> Decision {
        self.asked.notify_one();
        cancel.cancelled().await;
        self.withdrawn.notify_one();
        ApprovalOutcome::Cancelled.into()
    }
}

/// A server that asks during a call, and answers the call as soon as the wearer hears the question.
struct Hasty(Arc<Silent>);

impl ServerHandler for Hasty {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let form = json!({ "mode": "form", "message": "Really?", "requestedSchema": {
            "type": "object", "properties": { "ok": { "type": "boolean" } } } });
        let question: ElicitRequestParams = serde_json::from_value(form).unwrap();
        let peer = context.peer.clone();
        tokio::spawn(async move { drop(peer.create_elicitation(question).await) });
        self.0.asked.notified().await;
        let result = json!({ "content": [{ "type": "text", "text": "done" }] });
        Ok(CallToolResponse::Complete(serde_json::from_value(result).unwrap()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_is_withdrawn_when_its_call_is_over() {
    let (server, wearer) = (downstream(), Arc::<Silent>::default());
    let (near, far) = duplex(64 * 1024);
    let served = rmcp::serve_server(Hasty(wearer.clone()), far);
    tokio::spawn(async move { drop(served.await.unwrap().waiting().await) });
    let _running = connect(&server, near, false).await;
    let from = context();
    let run = RunContext {
        user: from.user,
        device: from.device,
        session: from.session,
        called_wall_ms: 0,
        turn: from.turn,
        local_name: "do".into(),
        flags: Default::default(),
        activated: false,
        deadline: Duration::from_secs(10),
        cancel: from.cancel.clone(),
        ports: Ports { consent: wearer.clone(), ..World::usual().ports() },
        offered: Registry::new().snapshot("ada", None),
        conversation: Arc::default(),
        language: None,
        caller: None,
        program: None,
        calls: None,
    };
    let result = McpRunner::new(server.clone()).run(run, call("notes.do", json!({}))).await;
    assert_eq!((result.content.as_str(), result.error), ("done", None));
    timeout(Duration::from_secs(1), wearer.withdrawn.notified()).await.expect("nobody waits for an answer");
    assert!(!from.cancel.is_cancelled());
}

/// A secret that a server quotes whenever it says something.
const PLANTED: &str = "planted-4711";

/// A client that is told everything of its calls, and answers nothing.
#[derive(Debug)]
struct Attentive(watch::Sender<Vec<Value>>);

impl Attentive {
    fn hear(&self, said: Value) {
        self.0.send_modify(|all| all.push(said));
    }
}

#[async_trait]
impl Caller for Attentive {
    async fn consent(&self, _request: &ConsentRequest, _cancel: &CancellationToken) -> Option<ApprovalOutcome> {
        None
    }

    fn capabilities(&self) -> Value {
        json!({ "elicitation": {} })
    }

    async fn ask(&self, requests: BTreeMap<String, Value>) -> Result<BTreeMap<String, Value>, NotAsked> {
        self.hear(json!(requests));
        Err(NotAsked::Silent)
    }

    fn progress(&self, _done: f64, _total: Option<f64>, message: Option<String>) {
        self.hear(json!(message));
    }

    fn log_level(&self) -> Option<String> {
        Some("debug".to_owned())
    }

    fn log(&self, message: Value) {
        self.hear(message);
    }

    fn keep(&self, exact: Exact) {
        self.hear(json!(format!("{exact:?}")));
    }

    fn is_operator(&self) -> bool {
        false
    }
}

/// A server that quotes the secret.
struct Leaky(Arc<Attentive>);

impl Leaky {
    fn refusal() -> ErrorData {
        ErrorData::internal_error(format!("not with {PLANTED}"), Some(json!({ "key": PLANTED })))
    }
}

impl ServerHandler for Leaky {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources();
        ServerConfig::new(capabilities.enable_completions().enable_logging().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "quote" {
            let result = json!({ "content": [{ "type": "text", "text": format!("It is {PLANTED}.") }] });
            return Ok(CallToolResponse::Complete(serde_json::from_value(result).unwrap()));
        }
        let token = context.meta.get_progress_token().expect("a token");
        let progress = ProgressNotificationParam::new(token, 1.0).with_message(format!("with {PLANTED}"));
        drop(context.peer.notify_progress(progress).await);
        let log = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!({ "key": PLANTED }));
        drop(context.peer.notify_logging_message(log).await);
        let form = json!({ "mode": "form", "message": format!("May I use {PLANTED}?"), "requestedSchema": {
            "type": "object", "properties": {} } });
        let question: ElicitRequestParams = serde_json::from_value(form).unwrap();
        drop(context.peer.create_elicitation(question).await);
        let mut heard = self.0.0.subscribe();
        drop(heard.wait_for(|heard| heard.len() >= 3).await);
        Err(Self::refusal())
    }

    async fn get_prompt(
        &self,
        _request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        Err(Self::refusal())
    }

    async fn read_resource(
        &self,
        _request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Err(Self::refusal())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        match request.argument.value.as_str() {
            "quote" => Ok(serde_json::from_value(json!({ "completion": { "values": [PLANTED] } })).unwrap()),
            _ => Err(Self::refusal()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_that_a_server_says_contains_the_secrets_that_it_was_sent() {
    let (server, client) = (downstream(), Arc::new(Attentive(watch::Sender::new(Vec::new()))));
    server.secrets.keep(&Secret::new(PLANTED));
    let (near, far) = duplex(64 * 1024);
    let served = rmcp::serve_server(Leaky(client.clone()), far);
    tokio::spawn(async move { drop(served.await.unwrap().waiting().await) });
    let _running = connect(&server, near, false).await;
    let behalf = OnBehalf { caller: Some(client.clone()), wearer: None };
    let wait = Duration::from_secs(10);
    let begun = |value: &str| -> CompleteRequestParams {
        let reference = json!({ "type": "ref/prompt", "name": "p" });
        serde_json::from_value(json!({ "ref": reference, "argument": { "name": "a", "value": value } })).unwrap()
    };
    let failures = [
        server.call_tool("ask", json!({}), &behalf, wait).await.unwrap_err(),
        server.get_prompt(GetPromptRequestParams::new("p"), &behalf, wait).await.unwrap_err(),
        server.read_resource(ReadResourceRequestParams::new("test://r"), &behalf, wait).await.unwrap_err(),
        server.complete(begun("refuse"), wait).await.unwrap_err(),
    ];
    for failure in failures {
        match failure {
            Failure::Refused(error) => {
                assert_eq!((&*error.message, error.data), ("not with [secret]", Some(json!({ "key": "[secret]" }))));
            }
            other => panic!("{other:?}"),
        }
    }
    let heard = client.0.borrow().clone();
    assert_eq!(heard.len(), 3, "{heard:?}");
    for said in heard.iter().map(Value::to_string) {
        assert!(said.contains("[secret]") && !said.contains(PLANTED), "{said}");
    }
    assert_eq!(server.complete(begun("quote"), wait).await.unwrap().completion.values, ["[secret]"]);
    let result = convert::result(server.call_tool("quote", json!({}), &behalf, wait).await.unwrap());
    assert_eq!(result.content, "It is [secret].");
}

#[tokio::test]
async fn a_line_is_redacted_before_it_is_cut() {
    let server = downstream();
    server.secrets.keep(&Secret::new(PLANTED));
    // The last bytes that are kept are the first ones of the secret.
    server.wrote(&format!("{}{PLANTED}", "x".repeat(1_018)));
    let lines = server.words.all();
    assert!(lines.len() == 1 && !lines[0].1.contains("pla"), "{lines:?}");
}
