//! Tests with a collector on this machine, which decodes by OpenTelemetry's own definitions.

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::any,
};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use tokio::net::TcpListener;
use tower_service::Service as _;

use super::*;
use crate::runtime::spawn;

/// What a collector has got, and what it answers.
#[derive(Clone)]
struct Collector {
    got: mpsc::Sender<(String, ExportTraceServiceRequest)>,
    answer: StatusCode,
}

async fn take(State(collector): State<Collector>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let kind = headers[CONTENT_TYPE].to_str().unwrap().to_owned();
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    collector.got.send((kind, request)).await.unwrap();
    collector.answer
}

/// An exporter, and what hands turns to it.
fn traces(to: Url) -> (Traces, Exporter) {
    drop(rustls::crypto::ring::default_provider().install_default());
    Traces::new(to).unwrap()
}

/// Its address, and what comes.
async fn collector(answer: StatusCode) -> (Url, mpsc::Receiver<(String, ExportTraceServiceRequest)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = format!("http://{}/v1/traces", listener.local_addr().unwrap()).parse().unwrap();
    let (got, comes) = mpsc::channel(8);
    let router = Router::new().route("/v1/traces", any(take)).with_state(Collector { got, answer });
    spawn("collector", async move {
        while let Ok((stream, _)) = listener.accept().await {
            let router = router.clone();
            let service = service_fn(move |request: Request<Incoming>| router.clone().call(request));
            spawn("connection", async move {
                drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
            });
        }
    });
    (to, comes)
}

/// Nobody listens there.
fn nowhere() -> Url {
    "http://127.0.0.1:1/v1/traces".parse().unwrap()
}

fn record(turn: u32) -> TurnRecord {
    TurnRecord { turn, outcome: "completed", final_us: Some(10), heard_us: Some(90), ..TurnRecord::default() }
}

#[tokio::test]
async fn a_collector_gets_turns_as_traces() {
    let (to, mut comes) = collector(StatusCode::OK).await;
    let (turns, exporter) = traces(to);
    let stop = CancellationToken::new();
    turns.take(&record(1));
    turns.take(&record(2));
    let running = spawn("otlp", exporter.run(stop.clone()));
    let (kind, request) = comes.recv().await.unwrap();
    assert_eq!(kind, "application/x-protobuf");
    let [of_gateway] = request.resource_spans.as_slice() else { panic!("{request:?}") };
    let resource = of_gateway.resource.as_ref().unwrap();
    assert!(resource.attributes.iter().any(|attribute| attribute.key == "service.name"), "{resource:?}");
    let spans = &of_gateway.scope_spans[0].spans;
    assert_eq!(spans.iter().map(|span| span.name.as_str()).collect::<Vec<_>>(), ["turn", "turn"]);
    assert_ne!(spans[0].trace_id, spans[1].trace_id, "a trace for each turn");
    // What waits when the gateway stops is sent, too.
    turns.take(&record(3));
    stop.cancel();
    running.await.unwrap();
    assert_eq!(comes.recv().await.unwrap().1.resource_spans[0].scope_spans[0].spans.len(), 1);
    assert_eq!(turns.counts(), (3, 0));
}

#[tokio::test]
async fn what_a_collector_does_not_take_is_counted() {
    let (to, mut comes) = collector(StatusCode::SERVICE_UNAVAILABLE).await;
    for (to, is_there) in [(to, true), (nowhere(), false)] {
        let (turns, exporter) = traces(to);
        let stop = CancellationToken::new();
        turns.take(&record(1));
        let running = spawn("otlp", exporter.run(stop.clone()));
        if is_there {
            comes.recv().await.unwrap();
        }
        stop.cancel();
        running.await.unwrap();
        assert_eq!(turns.counts(), (0, 1));
    }
}

#[tokio::test]
async fn whoever_ends_a_turn_never_waits() {
    let (turns, exporter) = traces(nowhere());
    for turn in 0..300 {
        turns.take(&record(turn));
    }
    assert_eq!(turns.counts(), (0, 300 - WAITING_MAX as u64));
    drop(exporter);
    turns.take(&record(300));
    assert_eq!(turns.counts(), (0, 301 - WAITING_MAX as u64));
}
