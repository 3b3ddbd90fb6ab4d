//! Watched resources and calls at servers that answer, that do not, and that forget the session.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::{Method, Request, Response, StatusCode, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, DiscoverRequestMethod, DiscoverResult,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService,
        session::{SessionManager as _, local::LocalSessionManager},
    },
};
use serde_json::json;
use tokio::{io::duplex, net::TcpListener, time::Instant};

use super::*;
use crate::{
    mcp::{
        client::{
            Failure, OnBehalf, Pool, State,
            child::MESSAGE_BYTES_MAX,
            keep,
            link::{FORGOTTEN, Running},
            test_support::{self, downstream},
        },
        config,
    },
    registry::Registry,
};

const URI: &str = "test://notes/today";
const LIMIT: Duration = Duration::from_millis(REQUEST_MS_MAX);

/// A server with a resource.
#[derive(Clone)]
struct Fixture {
    /// What it was asked.
    seen: Sender<Vec<String>>,
    /// How many requests to subscribe or unsubscribe it answers, before it keeps silent.
    answers: usize,
    is_modern: bool,
    /// How many subscriptions it ends at once.
    ends: usize,
}

impl Fixture {
    fn new(answers: usize) -> Self {
        Self { seen: Sender::new(Vec::new()), answers, is_modern: false, ends: 0 }
    }

    fn see(&self, what: &str) {
        self.seen.send_modify(|seen| seen.push(what.to_owned()));
    }

    fn count(&self, what: &str) -> usize {
        self.seen.borrow().iter().filter(|seen| *seen == what).count()
    }

    /// Waits until it has seen this as often as that.
    async fn has_seen(&self, what: &str, times: usize) {
        let mut seen = self.seen.subscribe();
        drop(seen.wait_for(|seen| seen.iter().filter(|seen| *seen == what).count() >= times).await);
    }

    async fn answer(&self, what: &str) -> Result<(), ErrorData> {
        self.see(what);
        if self.count("subscribe") + self.count("unsubscribe") > self.answers {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_resources_subscribe();
        ServerConfig::new(capabilities.build())
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let refused = ErrorData::method_not_found::<DiscoverRequestMethod>();
        let versions = self.supported_protocol_versions().into_owned();
        self.is_modern.then(|| DiscoverResult::from_server_info(versions, self.get_info())).ok_or(refused)
    }

    async fn on_initialized(&self, _context: NotificationContext<RoleServer>) {
        self.see("initialized");
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.see("list");
        Ok(ListToolsResult::with_all_items(Vec::new()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.see(&request.name);
        if request.name == "wait" {
            std::future::pending::<()>().await;
        }
        let text = if request.name == "large" { "x".repeat(MESSAGE_BYTES_MAX) } else { "done".to_owned() };
        let result = json!({ "content": [{ "type": "text", "text": text }] });
        Ok(CallToolResponse::Complete(serde_json::from_value(result).unwrap()))
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answer("subscribe").await
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answer("unsubscribe").await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.see("listen");
        drop(context.sink().notify_resource_updated(URI).await);
        if self.count("listen") <= self.ends {
            return Ok(());
        }
        context.cancelled().await;
        self.see("cancelled");
        Ok(())
    }
}

/// Connects it with the fixture.
async fn connect(server: &Arc<Downstream>, fixture: &Fixture) -> Running {
    let (near, far) = duplex(64 * 1024);
    let served = rmcp::serve_server(fixture.clone(), far);
    tokio::spawn(async move { drop(served.await.unwrap().waiting().await) });
    test_support::connect(server, near, fixture.is_modern).await
}

/// Waits until nobody takes care of a watched resource any more.
async fn nothing_watched(server: &Downstream) {
    server.tracker.close();
    server.tracker.wait().await;
    assert!(lock(&server.watched).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_is_asked_once_for_all_that_watch_and_let_go_after_the_last() {
    let (server, fixture) = (downstream(), Fixture::new(usize::MAX));
    let _running = connect(&server, &fixture).await;
    let first = server.watch(URI).unwrap();
    first.clone().asked().await;
    let second = server.watch(URI).unwrap();
    second.clone().asked().await;
    drop(first);
    assert_eq!(*fixture.seen.borrow(), ["initialized", "subscribe"]);
    drop(second);
    nothing_watched(&server).await;
    assert_eq!(*fixture.seen.borrow(), ["initialized", "subscribe", "unsubscribe"]);
}

#[tokio::test(start_paused = true)]
async fn who_watches_again_before_the_server_was_let_go_is_subscribed_again() {
    let (server, fixture) = (downstream(), Fixture::new(usize::MAX));
    let _running = connect(&server, &fixture).await;
    server.watch(URI).unwrap().asked().await;
    fixture.has_seen("unsubscribe", 1).await;
    let again = server.watch(URI).unwrap();
    fixture.has_seen("subscribe", 2).await;
    drop(again);
    nothing_watched(&server).await;
    assert_eq!(fixture.count("unsubscribe"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_holds_up_a_watch_and_its_end_for_a_limited_time() {
    let (server, fixture) = (downstream(), Fixture::new(0));
    let _running = connect(&server, &fixture).await;
    let began = Instant::now();
    server.watch(URI).unwrap().asked().await;
    assert_eq!(began.elapsed().as_secs(), LIMIT.as_secs());
    nothing_watched(&server).await;
    assert_eq!(fixture.count("unsubscribe"), 1);
    assert_eq!(began.elapsed().as_secs(), 2 * LIMIT.as_secs());
}

#[tokio::test(start_paused = true)]
async fn what_is_watched_without_a_connection_is_subscribed_with_each_new_one() {
    let (server, fixture) = (downstream(), Fixture::new(1));
    let watch = server.watch(URI).unwrap();
    watch.clone().asked().await;
    let first = connect(&server, &fixture).await;
    fixture.has_seen("subscribe", 1).await;
    let second = connect(&server, &fixture).await;
    // It is not answered any more.
    fixture.has_seen("subscribe", 2).await;
    let _third = connect(&server, &fixture).await;
    fixture.has_seen("subscribe", 3).await;
    drop((first, second));
    // The gateway stops: nothing is waited for.
    let began = Instant::now();
    server.stop.cancel();
    nothing_watched(&server).await;
    assert_eq!(began.elapsed().as_secs(), 0);
    drop(watch);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_listened_to_until_nobody_watches() {
    let (server, mut fixture) = (downstream(), Fixture::new(0));
    fixture.is_modern = true;
    let _running = connect(&server, &fixture).await;
    let mut changes = server.changes.subscribe();
    let watch = server.watch(URI).unwrap();
    watch.clone().asked().await;
    let updated = ServerChange::Updated { server: "notes".to_owned(), uri: URI.to_owned() };
    assert_eq!(changes.recv().await, Ok(updated));
    drop(watch);
    fixture.has_seen("cancelled", 1).await;
    nothing_watched(&server).await;
    assert_eq!(*fixture.seen.borrow(), ["listen", "cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_ends_subscriptions_is_asked_again_after_growing_pauses() {
    let (server, mut fixture) = (downstream(), Fixture::new(0));
    (fixture.is_modern, fixture.ends) = (true, 3);
    let _running = connect(&server, &fixture).await;
    let mut changes = server.changes.subscribe();
    let (began, watch) = (Instant::now(), server.watch(URI).unwrap());
    fixture.has_seen("listen", 4).await;
    assert!((7..=14).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    // Each of the renewed ones is a change, too: one may have been missed.
    for _ in 0..7 {
        assert!(matches!(changes.recv().await, Ok(ServerChange::Updated { .. })));
    }
    drop(watch);
    fixture.has_seen("cancelled", 1).await;
    nothing_watched(&server).await;
    assert_eq!(fixture.count("listen"), 4);
}

#[tokio::test(start_paused = true)]
async fn what_a_modern_server_has_is_listed_again_after_each_end_of_the_subscription_to_changes() {
    let (server, mut fixture) = (downstream(), Fixture::new(0));
    (fixture.is_modern, fixture.ends) = (true, 2);
    let running = connect(&server, &fixture).await;
    let (own, link) = (server.clone(), server.link().unwrap());
    let served = tokio::spawn(async move { keep::serve(&own, running, link, &Arc::new(Registry::new())).await });
    fixture.has_seen("listen", 3).await;
    fixture.has_seen("list", 3).await;
    server.stop.cancel();
    served.await.unwrap();
    assert_eq!(fixture.count("listen"), 3);
}

#[tokio::test(start_paused = true)]
async fn beyond_the_maximum_only_what_is_watched_already_can_be_watched() {
    let server = downstream();
    let mut watches: Vec<_> = (0..WATCHED_MAX).map(|n| server.watch(&format!("test://{n}")).unwrap()).collect();
    assert!(server.watch(URI).is_none());
    watches.push(server.watch("test://0").unwrap());
    drop(watches);
    nothing_watched(&server).await;
    assert!(server.watch(URI).is_some());
}

/// A fixture that is served over HTTP.
struct Served {
    fixture: Fixture,
    url: String,
    sessions: Arc<LocalSessionManager>,
}

impl Served {
    /// `takes_get`: it has a stream for what belongs to no request.
    async fn new(fixture: Fixture, takes_get: bool) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let (served, sessions) = (fixture.clone(), Arc::<LocalSessionManager>::default());
        let service = StreamableHttpService::new(
            move || Ok(served.clone()),
            sessions.clone(),
            StreamableHttpServerConfig::default(),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = service.clone();
                let answer = service_fn(move |request: Request<Incoming>| {
                    let service = service.clone();
                    async move {
                        if request.method() == Method::GET && !takes_get {
                            let mut refused = Response::new(Empty::<Bytes>::new().boxed());
                            *refused.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                            return Ok::<_, Infallible>(refused);
                        }
                        Ok(service.handle(request).await)
                    }
                });
                let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
                tokio::spawn(async move { drop(served.await) });
            }
        });
        Self { fixture, url: format!("http://{address}/"), sessions }
    }

    /// Starts a client of it.
    fn pool(&self) -> Arc<Pool> {
        let file = json!({ "mcpServers": { "notes": { "url": self.url } } }).to_string();
        Pool::start(config::check_file(&file, &|_| None).unwrap(), None, &Arc::new(Registry::new()))
    }

    /// Forgets all sessions, as with a restart.
    async fn forget(&self) {
        let ids: Vec<_> = self.sessions.sessions.read().await.keys().cloned().collect();
        for id in ids {
            self.sessions.close_session(&id).await.unwrap();
        }
    }
}

async fn call(server: Arc<Downstream>, tool: &str) -> Result<CallToolResult, Failure> {
    server.call_tool(tool, json!({}), &OnBehalf::default(), LIMIT).await
}

/// Real connections: their clock is the real one. It is a limit here, and nothing waits for it to pass.
#[tokio::test]
async fn a_server_that_does_not_answer_a_subscription_is_restarted_all_the_same() {
    let served = Served::new(Fixture::new(1), true).await;
    let (fixture, pool) = (&served.fixture, served.pool());
    let watch = pool.server("notes").unwrap().watch(URI).unwrap();
    let restarted = async {
        fixture.has_seen("subscribe", 1).await;
        for connection in 2..=3 {
            let status = pool.restart("notes").await.unwrap();
            assert!(matches!(status.state, State::Up(_)), "{status:?}");
            fixture.has_seen("subscribe", connection).await;
        }
    };
    timeout(LIMIT, restarted).await.expect("it is not waited for");
    assert_eq!(fixture.count("initialized"), 3);
    drop(watch);
    pool.stop().await;
}

#[tokio::test]
async fn a_server_that_forgets_the_session_is_listed_and_subscribed_anew_and_an_open_call_may_have_been_done() {
    let served = Served::new(Fixture::new(usize::MAX), true).await;
    let (fixture, pool) = (&served.fixture, served.pool());
    let server = pool.server("notes").unwrap().clone();
    let watch = server.watch(URI).unwrap();
    let renewed = async {
        fixture.has_seen("subscribe", 1).await;
        let open = tokio::spawn(call(server.clone(), "wait"));
        fixture.has_seen("wait", 1).await;
        served.forget().await;
        let outcome = open.await.unwrap();
        assert!(matches!(outcome, Err(Failure::Broken(_))), "{outcome:?}");
        fixture.has_seen("list", 2).await;
        fixture.has_seen("subscribe", 2).await;
    };
    timeout(LIMIT, renewed).await.expect("it is connected again");
    let down = pool.statuses().remove(0).last_down.map(|(why, _)| why);
    assert_eq!(down.as_deref(), Some(FORGOTTEN));
    drop(watch);
    pool.stop().await;
}

#[tokio::test]
async fn a_call_that_is_refused_with_its_session_is_made_over_the_next_connection() {
    let served = Served::new(Fixture::new(usize::MAX), false).await;
    let (fixture, pool) = (&served.fixture, served.pool());
    let server = pool.server("notes").unwrap().clone();
    let watch = server.watch(URI).unwrap();
    let called = async {
        fixture.has_seen("subscribe", 1).await;
        let open = tokio::spawn(call(server.clone(), "wait"));
        fixture.has_seen("wait", 1).await;
        served.forget().await;
        call(server.clone(), "add").await.expect("it was not run before");
        let outcome = open.await.unwrap();
        assert!(matches!(outcome, Err(Failure::Broken(_))), "{outcome:?}");
        fixture.has_seen("subscribe", 2).await;
    };
    timeout(LIMIT, called).await.expect("it is connected again");
    assert_eq!((fixture.count("initialized"), fixture.count("wait"), fixture.count("add")), (2, 1, 1));
    drop(watch);
    pool.stop().await;
}

#[tokio::test]
async fn an_answer_over_http_that_is_too_large_is_told_as_such_and_the_next_one_is_read() {
    let served = Served::new(Fixture::new(usize::MAX), true).await;
    let (fixture, pool) = (&served.fixture, served.pool());
    let server = pool.server("notes").unwrap().clone();
    let watch = server.watch(URI).unwrap();
    let called = async {
        fixture.has_seen("subscribe", 1).await;
        let outcome = call(server.clone(), "large").await;
        assert!(matches!(outcome, Err(Failure::TooLarge)), "{outcome:?}");
        call(server.clone(), "add").await.expect("the connection stays");
    };
    timeout(LIMIT, called).await.expect("it answers");
    assert_eq!((fixture.count("large"), fixture.count("initialized")), (1, 1));
    drop(watch);
    pool.stop().await;
}
