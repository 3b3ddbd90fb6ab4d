//! Clients whose link is lost while they are asked about a call of their program.

use std::{net::SocketAddr, time::Duration};

use gateway::control::{Answer, Request, programs::ProgramsRequest};
use gateway_core::vocab::{ApprovalOutcome, ClientClass};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines, copy_bidirectional},
    net::{TcpStream, UnixStream},
    sync::watch,
};

use super::programs::{Client, Connected, connect_to, deleted, run, world};
use crate::{
    http,
    shop::Shop,
    world::{USER, WAIT, World},
};

const PROGRAM: &str = "import { shop } from '@capabilities/shop';\n\
    const end = await shop.deleteList({ list: 'party' }).then(() => 'deleted', (error) => error.code);\n\
    await shop.addItem({ item: end });\n\
    export default end;\n";

/// A way to the gateway that can be cut: its connections end, and no new one is taken until it is mended.
struct Way {
    address: SocketAddr,
    is_cut: watch::Sender<bool>,
    /// Its connections.
    open: watch::Sender<usize>,
}

impl Way {
    async fn to(gateway: SocketAddr) -> Self {
        let (listener, address) = http::bind().await;
        let (is_cut, open) = (watch::Sender::new(false), watch::Sender::new(0));
        let way = Self { address, is_cut: is_cut.clone(), open: open.clone() };
        tokio::spawn(async move {
            while let Ok((mut here, _)) = listener.accept().await {
                // Before the look: whoever waits for all to end sees it.
                open.send_modify(|open| *open += 1);
                let mut cut = is_cut.subscribe();
                if *cut.borrow_and_update() {
                    drop(here);
                    open.send_modify(|open| *open -= 1);
                    continue;
                }
                let open = open.clone();
                tokio::spawn(async move {
                    let mut there = TcpStream::connect(gateway).await.expect("the gateway");
                    tokio::select! {
                        _ = copy_bidirectional(&mut here, &mut there) => {}
                        _ = cut.changed() => {}
                    }
                    drop((here, there));
                    open.send_modify(|open| *open -= 1);
                });
            }
        });
        way
    }

    /// Ends its connections, and waits for that: what is sent over one that is about to end may be lost.
    async fn cut(&self) {
        self.is_cut.send_replace(true);
        let mut open = self.open.subscribe();
        tokio::time::timeout(WAIT, open.wait_for(|open| *open == 0)).await.expect("in time").expect("its own");
    }

    /// Takes connections again.
    fn mend(&self) {
        self.is_cut.send_replace(false);
    }

    /// Waits until the client follows its session and a call that goes on.
    async fn is_followed(&self) {
        let mut open = self.open.subscribe();
        tokio::time::timeout(WAIT, open.wait_for(|open| *open >= 2)).await.expect("in time").expect("its own");
    }
}

/// A client over this way that has been asked about its program's call, and thinks; its program's outcome.
async fn asked(way: &Way, answer: bool) -> (Client, tokio::task::JoinHandle<(Connected, (bool, String))>) {
    let client = Client::thinking(answer);
    let connected = connect_to(way.address, client.clone()).await;
    let running = tokio::spawn(async move {
        let outcome = run(&connected, PROGRAM).await;
        (connected, outcome)
    });
    let mut questions = client.asked.subscribe();
    let asked = tokio::time::timeout(WAIT, questions.wait_for(|asked| !asked.is_empty())).await;
    assert!(asked.expect("in time").expect("a client")[0].contains("Delete the list \"party\"?"));
    drop(questions);
    (client, running)
}

/// The record of the only program, once it has ended.
async fn ended(world: &World) -> Value {
    let looked = async {
        loop {
            let request = Request::Programs { request: ProgramsRequest::Show { user: USER.to_owned(), id: 1 } };
            if let Ok(Answer::Records { mut records }) = world.ask(request).await {
                return records.remove(0);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WAIT, looked).await.expect("the program ends")
}

/// Nothing was done, and the records say how it ended.
async fn nothing_was_done(world: &World, shop: &Shop) {
    let run = ended(world).await;
    assert_eq!(run["error"]["code"], "CANCELLED", "{run}");
    let call = &run["calls"][0];
    assert_eq!((&call["tool"], &call["outcome"]), (&json!("shop.deleteList"), &json!("not_begun")), "{run}");
    assert!(call["error"].as_str().is_some_and(|words| words.contains("nothing was done")), "{run}");
    assert_eq!(run["calls"].as_array().map(Vec::len), Some(1), "{run}");
    assert!(shop.calls().is_empty(), "{:?}", shop.calls());
    let request = Request::Decisions { user: Some(USER.to_owned()), since_wall_ms: i64::MIN };
    let Answer::Decisions { decisions, .. } = world.ask(request).await.expect("decisions") else { panic!("none") };
    let made: Vec<_> = decisions.iter().filter_map(|record| record.approval.as_ref()).collect();
    assert!(made.iter().all(|made| made.outcome == ApprovalOutcome::Cancelled), "{made:?}");
    assert_eq!(made.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_after_the_link_is_back_counts_once_and_the_outcome_is_told() {
    let shop = Shop::start().await;
    let world = world(&shop).await;
    let way = Way::to(world.web()).await;
    let (client, running) = asked(&way, true).await;
    way.cut().await;
    assert!(deleted(&shop).is_empty());
    way.mend();
    way.is_followed().await;
    client.thinks.send_replace(false);
    let (connected, (failed, text)) = running.await.expect("an outcome");
    assert!(!failed && text == "\"deleted\"", "{text}");
    assert_eq!((deleted(&shop), shop.items()), (vec![json!({"list": "party"})], vec!["deleted".to_owned()]));
    let asked = client.asked.borrow().clone();
    assert!(asked.iter().all(|question| question.contains("\"party\"")), "{asked:?}");
    connected.cancel().await.expect("closed");
    world.stop().await;
}

/// Waits at the door of the shop, and asks nobody.
const WAITING: &str = "import { shop } from '@capabilities/shop';\n\
    await shop.openDoor({});\n\
    await shop.addItem({ item: 'bread' });\n\
    export default 'bought';\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_comes_while_the_link_is_cut_is_told_when_it_is_back() {
    let shop = Shop::start().await;
    let world = world(&shop).await;
    let way = Way::to(world.web()).await;
    let connected = connect_to(way.address, Client::default()).await;
    let running = tokio::spawn(async move {
        let outcome = run(&connected, WAITING).await;
        (connected, outcome)
    });
    shop.knocked().await;
    way.cut().await;
    shop.open();
    let record = ended(&world).await;
    assert!(record["error"].is_null(), "{record}");
    way.mend();
    let (connected, (failed, text)) = running.await.expect("an outcome");
    assert!(!failed && text == "\"bought\"", "{text}");
    assert_eq!(shop.items(), ["bread"], "once");
    // The session goes on: its own stream and further calls.
    assert_eq!(run(&connected, WAITING).await, (false, "\"bought\"".to_owned()));
    connected.cancel().await.expect("closed");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_after_the_link_is_back_is_a_no() {
    let shop = Shop::start().await;
    let world = world(&shop).await;
    let way = Way::to(world.web()).await;
    let (client, running) = asked(&way, false).await;
    way.cut().await;
    way.mend();
    way.is_followed().await;
    client.thinks.send_replace(false);
    let (connected, (failed, text)) = running.await.expect("an outcome");
    assert!(!failed && text == "\"APPROVAL_DENIED\"", "{text}");
    assert_eq!((deleted(&shop), shop.items()), (Vec::new(), vec!["APPROVAL_DENIED".to_owned()]));
    connected.cancel().await.expect("closed");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_ends_its_session_has_not_agreed() {
    let shop = Shop::start().await;
    let world = world(&shop).await;
    let way = Way::to(world.web()).await;
    let client = Client::thinking(true);
    let connected = connect_to(way.address, client.clone()).await;
    let peer = connected.peer().clone();
    let running = tokio::spawn(async move {
        let mut params = rmcp::model::CallToolRequestParams::new("code.run");
        params.arguments = json!({"code": PROGRAM}).as_object().cloned();
        peer.call_tool(params).await
    });
    let mut questions = client.asked.subscribe();
    tokio::time::timeout(WAIT, questions.wait_for(|asked| !asked.is_empty())).await.expect("in time").expect("one");
    connected.cancel().await.expect("closed");
    nothing_was_done(&world, &shop).await;
    // What it says afterwards is an answer to nothing.
    client.thinks.send_replace(false);
    assert!(running.await.expect("an end").is_err());
    assert!(shop.calls().is_empty());
    world.stop().await;
}

/// A session over plain HTTP, for what the library's client does not do.
struct Plain {
    gateway: SocketAddr,
    session: String,
}

impl Plain {
    async fn open(gateway: SocketAddr) -> Self {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
        let mut plain = Self { gateway, session: String::new() };
        let reply = plain.post(&hello).await;
        let session = reply.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        plain.session = format!("Mcp-Session-Id: {}\r\n", session.expect("a session").trim());
        plain.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        plain
    }

    /// Everything that comes back.
    async fn post(&self, message: &Value) -> String {
        let body = message.to_string();
        let headers = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        let mut reply = self.send("POST", &headers, &body).await;
        let mut text = String::new();
        let read = reply.read_to_string(&mut text);
        tokio::time::timeout(WAIT, read).await.expect("in time").expect("text");
        text
    }

    /// A stream of events behind this one.
    async fn get(&self, last_event_id: Option<&str>) -> Lines<BufReader<TcpStream>> {
        let headers = last_event_id.map_or_else(String::new, |id| format!("Last-Event-ID: {id}\r\n"));
        BufReader::new(self.send("GET", &headers, "").await).lines()
    }

    async fn send(&self, method: &str, headers: &str, body: &str) -> TcpStream {
        let (address, session) = (self.gateway, &self.session);
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Accept: application/json, text/event-stream\r\n{session}{headers}\r\n{body}"
        );
        let mut stream = TcpStream::connect(address).await.expect("the gateway");
        stream.write_all(request.as_bytes()).await.expect("sent");
        stream
    }
}

/// The status of a response.
async fn status(lines: &mut Lines<BufReader<TcpStream>>) -> u16 {
    let line =
        tokio::time::timeout(WAIT, lines.next_line()).await.expect("in time").expect("a line").expect("a status");
    line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

/// The id of the first event of which the data contain this; `None`: the stream ends before.
async fn event(lines: &mut Lines<BufReader<TcpStream>>, wanted: &str) -> Option<String> {
    let looked = async {
        let (mut id, mut is_wanted) = (None, false);
        while let Some(line) = lines.next_line().await.expect("a line") {
            if let Some(named) = line.strip_prefix("id:") {
                id = Some(named.trim().to_owned());
            }
            is_wanted |= line.starts_with("data:") && line.contains(wanted);
            if line.is_empty() && std::mem::take(&mut is_wanted) {
                return id.take();
            }
        }
        None
    };
    tokio::time::timeout(WAIT, looked).await.expect("in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_gets_what_came_before_it_was_followed_and_nothing_of_another_one() {
    let shop = Shop::start().await;
    let world = world(&shop).await;
    let (one, other) = (Plain::open(world.web()).await, Plain::open(world.web()).await);
    let switch = |on| Request::SwitchTool { user: USER.to_owned(), name: "note.delete".to_owned(), on };
    world.ask(switch(false)).await.expect("switched");
    let listed = one.post(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await;
    assert!(listed.contains("note.add") && !listed.contains("note.delete"), "{listed}");
    let first = event(&mut one.get(None).await, "list_changed").await.expect("it is told");
    // That connection is gone; what comes now is told once the client is back, and the first event is not told again.
    world.ask(switch(true)).await.expect("switched");
    let second = event(&mut one.get(Some(&first)).await, "list_changed").await.expect("it is told");
    assert_ne!(first, second);
    for id in [first.as_str(), second.as_str(), "nothing.1", "x"] {
        assert_eq!(status(&mut other.get(Some(id)).await).await, 405, "{id} is of no event of this session");
    }
    // Nothing follows an answer; a client that asked for more would come again and again.
    let refused = other.post(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/none"})).await;
    let last = refused.lines().filter_map(|line| line.strip_prefix("id:")).next_back().expect("an event").trim();
    assert!(refused.contains("\"error\""), "{refused}");
    assert_eq!(status(&mut other.get(Some(last)).await).await, 405, "{last}");
    world.stop().await;
}

/// As `lorgnette mcp` that is killed.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_on_the_control_socket_that_is_gone_has_not_agreed() {
    let shop = Shop::start().await;
    let world = world(&shop).await;
    let stream = UnixStream::connect(gateway::control::socket_path(&world.data())).await.expect("the socket");
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let request = Request::Mcp { user: USER.to_owned(), class: ClientClass::Internal };
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "t", "version": "1"}});
    write.write_all(format!("{}\n", serde_json::to_value(request).expect("JSON")).as_bytes()).await.expect("sent");
    tokio::time::timeout(WAIT, lines.next_line()).await.expect("in time").expect("a line").expect("it is admitted");
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "code.run", "arguments": {"code": PROGRAM}}}),
    ] {
        write.write_all(format!("{message}\n").as_bytes()).await.expect("sent");
    }
    let question = async {
        loop {
            let line = lines.next_line().await.expect("a line").expect("more");
            if line.contains("elicitation/create") {
                return line;
            }
        }
    };
    let question = tokio::time::timeout(WAIT, question).await.expect("a question in time");
    assert!(question.contains("Delete the list"), "{question}");
    drop((lines, write));
    nothing_was_done(&world, &shop).await;
    world.stop().await;
}
