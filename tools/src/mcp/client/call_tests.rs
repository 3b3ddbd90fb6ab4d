//! Calls to a server that asks the wearer.

use gateway_core::vocab::ApprovalOutcome;
use rmcp::{
    RoleServer, ServerHandler,
    model::{CallToolResponse, ElicitRequestParams, ServerCapabilities, ServerConfig},
    service::RequestContext,
};
use serde_json::json;
use tokio::{io::duplex, sync::Notify};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    mcp::client::test_support::{connect, downstream},
    ports::{Consent, Decision, Ports},
    registry::Registry,
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
