//! MCP clients that write programs: they are asked about the calls of their programs, and follow what these do.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use firmware_sim::Seen;
use gateway::control::{Answer, Request};
use gateway_core::vocab::{AnsweredBy, ApprovalOutcome};
use rmcp::{
    ClientHandler, ErrorData, ServiceExt as _,
    model::{
        CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
        Implementation, ProgressNotificationParam, ProtocolVersion,
    },
    service::{NotificationContext, RequestContext, RoleClient, RunningService},
    transport::StreamableHttpClientTransport,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::{
    process::binary,
    shop::{SETTINGS, Shop},
    world::{USER, WAIT, World, until},
};

/// A client that gives these answers, one after another, or cannot be asked.
#[derive(Clone, Default)]
pub(super) struct Client {
    can_be_asked: bool,
    answers: Arc<Mutex<Vec<bool>>>,
    /// The questions so far.
    pub(super) asked: watch::Sender<Vec<String>>,
    /// It thinks before each answer while this is set.
    pub(super) thinks: watch::Sender<bool>,
    progress: watch::Sender<Vec<(f64, String)>>,
}

impl Client {
    /// One that thinks before it gives this answer.
    pub(super) fn thinking(answer: bool) -> Self {
        let client = Self { can_be_asked: true, ..Self::default() };
        client.answers.lock().unwrap().push(answer);
        client.thinks.send_replace(true);
        client
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let capabilities = match self.can_be_asked {
            true => ClientCapabilities::builder().enable_elicitation().build(),
            false => ClientCapabilities::default(),
        };
        let mut config = ClientConfig::new(capabilities, Implementation::new("writer", "1"));
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(&request).expect("JSON");
        let message = request["message"].as_str().unwrap_or_default().to_owned();
        self.asked.send_modify(|asked| asked.push(message));
        // The sender is a part of this client.
        drop(self.thinks.subscribe().wait_for(|thinks| !thinks).await);
        let yes = {
            let mut answers = self.answers.lock().unwrap();
            // A stream that is resumed may repeat the last question.
            if answers.len() > 1 { answers.remove(0) } else { answers.first().copied().unwrap_or_default() }
        };
        let action = if yes { ElicitationAction::Accept } else { ElicitationAction::Decline };
        let result = ElicitResult::new(action);
        Ok(if yes { result.with_content(json!({"approve": true})) } else { result })
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        let news = (params.progress, params.message.unwrap_or_default());
        self.progress.send_modify(|progress| progress.push(news));
    }
}

pub(super) type Connected = RunningService<RoleClient, Client>;

async fn connect(world: &World, client: Client) -> Connected {
    connect_to(world.web(), client).await
}

/// A session with the gateway behind this address.
pub(super) async fn connect_to(address: SocketAddr, client: Client) -> Connected {
    let transport = StreamableHttpClientTransport::from_uri(format!("http://{address}/mcp"));
    tokio::time::timeout(WAIT, client.serve(transport)).await.expect("in time").expect("a session")
}

/// What came of a program: whether it is an error, and its text.
pub(super) async fn run(connected: &Connected, source: &str) -> (bool, String) {
    let mut params = CallToolRequestParams::new("code.run");
    params.arguments = json!({"code": source}).as_object().cloned();
    let called = tokio::time::timeout(WAIT, connected.peer().call_tool(params)).await;
    let result = serde_json::to_value(called.expect("in time").expect("a result")).expect("JSON");
    (result["isError"] == true, result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}

/// A gateway that offers the shop to clients without a key.
pub(super) async fn world(shop: &Shop) -> World {
    let settings = format!("[code]\nenabled = true\n[mcp]\nwithout_key = true\n{SETTINGS}");
    World::tuned(&settings, |config| {
        config.models.code.executable = Some(binary());
        shop.put(&config.data_dir);
    })
    .await
}

const TWO_LISTS: &str = "import { shop } from '@capabilities/shop';\n\
    const ends = [];\n\
    for (const list of ['party', 'garden']) {\n\
      ends.push(await shop.deleteList({ list }).then(() => 'deleted', (error) => error.code));\n\
    }\n\
    export default ends;\n";

/// The lists that the shop was told to delete.
pub(super) fn deleted(shop: &Shop) -> Vec<Value> {
    shop.calls().into_iter().filter(|(function, _)| function == "deleteList").map(|(_, list)| list).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_asked_about_each_call_of_its_program() {
    let shop = Shop::start().await;
    let world = world(&shop).await;
    let client = Client { can_be_asked: true, ..Client::default() };
    *client.answers.lock().unwrap() = vec![true, false];
    let connected = connect(&world, client.clone()).await;
    let (failed, text) = run(&connected, TWO_LISTS).await;
    assert!(!failed && text == "[\"deleted\",\"APPROVAL_DENIED\"]", "{text}");
    assert_eq!(deleted(&shop), [json!({"list": "party"})]);
    let asked = client.asked.borrow().clone();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for (list, words) in ["party", "garden"].into_iter().zip(&asked) {
        assert!(words.contains(&format!("Delete the list \"{list}\"?")), "{words}");
    }
    let request = Request::Decisions { user: Some(USER.to_owned()), since_wall_ms: i64::MIN };
    let Answer::Decisions { decisions, .. } = world.ask(request).await.expect("decisions") else { panic!("none") };
    let made: Vec<_> =
        decisions.iter().filter_map(|record| record.approval.as_ref()).map(|made| made.outcome).collect();
    assert_eq!(made, [ApprovalOutcome::Denied, ApprovalOutcome::Approved], "the newest first");
    assert!(decisions.iter().all(|record| record.approval.as_ref().is_some_and(|made| made.by == AnsweredBy::Client)));
    assert!(decisions.iter().all(|record| record.program.is_some()), "{decisions:?}");
    connected.cancel().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_client_cannot_be_asked_the_wearer_is() {
    let shop = Shop::start().await;
    let world = world(&shop).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    let connected = connect(&world, Client::default()).await;
    let wearer = async {
        for (list, choice) in [("party", device_protocol::Choice::No), ("garden", device_protocol::Choice::Yes)] {
            let seen = until(&mut glasses, "a question", |event| matches!(event.seen, Seen::ApprovalRequest { .. }));
            let Seen::ApprovalRequest { approval, message, .. } = seen.await else { unreachable!("it was picked") };
            assert!(message.contains(&format!("Delete the list \"{list}\"?")), "{message}");
            glasses.approve(approval, choice).await.expect("tapped");
            until(&mut glasses, "its end", |event| matches!(event.seen, Seen::ApprovalSettled { .. })).await;
        }
    };
    let ((failed, text), ()) = tokio::join!(run(&connected, TWO_LISTS), wearer);
    assert!(!failed && text == "[\"APPROVAL_DENIED\",\"deleted\"]", "{text}");
    assert_eq!(deleted(&shop), [json!({"list": "garden"})]);
    connected.cancel().await.expect("closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_follows_what_its_program_does() {
    let shop = Shop::start().await;
    let world = world(&shop).await;
    let client = Client { can_be_asked: true, ..Client::default() };
    let connected = connect(&world, client.clone()).await;
    let source = "import { shop } from '@capabilities/shop';\n\
        await shop.addItem({ item: 'bread' });\n\
        await shop.readPrices();\n";
    let (failed, text) = run(&connected, source).await;
    assert!(!failed, "{text}");
    let expected = [(1.0, "Shop: adding item ...".to_owned()), (2.0, "Shop: reading prices ...".to_owned())];
    let mut seen = client.progress.subscribe();
    let told = seen.wait_for(|progress| expected.iter().all(|line| progress.contains(line)));
    let told = tokio::time::timeout(WAIT, told).await.expect("in time").expect("a client").len();
    assert_eq!(told, 2);
    connected.cancel().await.expect("closed");
}
