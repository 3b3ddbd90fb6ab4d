//! `apps logs`: requests that were refused to an app and requests that it refused, each with its cause.

use gateway::{
    control::{Request, apps::AppsRequest},
    identity::operators::Role,
};
use gateway_core::vocab::ErrorCode;
use serde_json::json;
use tools::apps::manifest::App;

use super::fake::{File, KEY, PACKAGE, Reply, Socket, Stage};
use crate::{
    console::Visitor,
    process::{FOR_A_TERMINAL, acted_on, configure, succeeds},
    world::USER,
};

#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_failures_are_kept_with_their_requests_and_without_secrets() {
    let stage = Stage::with(|app| App { permissions: vec!["CAMERA".into()], ..app }).await;
    // A server that does not start the app, and an author who confused the keys.
    stage.app.answers(Reply::Status(503));
    stage.starting(PACKAGE).await.unwrap().unwrap_err();
    stage.app.answers(Reply::Success);
    let starting = stage.starting(PACKAGE);
    let request = stage.app.got("session_request", 1).await.json();
    let (url, session) = (request["mentraOSWebsocketUrl"].as_str().unwrap(), request["sessionId"].as_str().unwrap());
    drop(Socket::init(url, session, PACKAGE, "wr0ng-key").await);
    starting.await.unwrap().unwrap_err();
    let mut socket = stage.run().await;

    socket.subscribe(&["audio_chunk", "video"]).await;
    socket.of_type("permission_error").await;
    socket.subscribe(&["audio_chunk", "video", "button_press"]).await;
    socket.send(json!({"type": "display_event", "layout": {"layoutType": "hologram"}})).await;
    socket.send(json!({"type": "rtmp_stream_request", "rtmpUrl": "rtmp://live.example/app/stream-s3cret"})).await;
    let photo = json!({"type": "photo_request", "requestId": "p1", "authToken": "t0ken"});
    let mut elsewhere = photo.clone();
    elsewhere["customWebhookUrl"] = json!("http://127.0.0.1:9/steal?sig=sign4ture");
    socket.send(elsewhere).await;
    assert!(socket.send_text(format!("{{\"type\":\"display_event\",\"apiKey\":\"{KEY}\"")).await);
    socket.settled().await;
    // A photo upload that the app's own server rejects.
    stage.app.serves("/photo-upload", File::Status(500));
    socket.send(photo).await;
    stage.app.got("/photo-upload", 0).await;
    let logs = loop {
        let logs = stage.logs().await;
        if logs.last().is_some_and(|fault| fault.message.contains("status 500")) {
            break logs;
        }
        tokio::task::yield_now().await;
    };

    let kinds: Vec<(&str, ErrorCode)> = logs.iter().map(|fault| (fault.what.as_str(), fault.code)).collect();
    let wanted = [
        ("start", ErrorCode::AppNotAvailable),
        ("socket", ErrorCode::PermissionDenied),
        ("subscription_update", ErrorCode::PermissionDenied),
        ("subscription_update", ErrorCode::ExecutionError),
        ("display_event", ErrorCode::ExecutionError),
        ("rtmp_stream_request", ErrorCode::ExecutionError),
        ("photo_request", ErrorCode::PermissionDenied),
        ("frame", ErrorCode::InvalidArguments),
        ("photo_request", ErrorCode::HttpError),
    ];
    assert_eq!(kinds, wanted, "{logs:#?}");
    assert!(logs[0].request.contains("session_request") && logs[1].message.contains("INVALID_API_KEY"), "{logs:#?}");
    assert!(logs[3].request.contains("video") && logs[4].request.contains("hologram"));
    assert!(logs[6].request.contains("127.0.0.1:9/steal") && logs[8].request.contains("p1"), "{logs:#?}");
    let all = format!("{logs:?}");
    for secret in [KEY, "wr0ng-key", "stream-s3cret", "t0ken", "sign4ture"] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_app_sends_acts_on_no_terminal() {
    let stage = Stage::new().await;
    let mut socket = stage.run().await;
    socket.send(json!({"type": "display_event", "layout": {"layoutType": FOR_A_TERMINAL}})).await;
    socket.settled().await;
    while stage.logs().await.is_empty() {
        tokio::task::yield_now().await;
    }
    let file = configure(&stage.world.data(), "").display().to_string();
    let printed = succeeds(&["apps", "logs", PACKAGE, "--config", &file]).await;
    assert!(printed.contains("wide") && acted_on(&printed).is_empty(), "{printed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_never_dials_stands_in_the_log() {
    let stage = Stage::new().await;
    stage.starting(PACKAGE).await.unwrap().unwrap_err();
    let logs = stage.logs().await;
    assert_eq!((logs.len(), logs[0].what.as_str()), (1, "start"), "{logs:#?}");
    assert!(logs[0].request.contains("session_request"), "{logs:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_of_the_console_sees_the_kind_of_a_fault_and_none_of_its_words() {
    let stage = Stage::new().await;
    stage.app.answers(Reply::Status(503));
    stage.starting(PACKAGE).await.unwrap().unwrap_err();
    let fault = stage.logs().await.pop().unwrap();
    assert_eq!(fault.code, ErrorCode::AppNotAvailable);
    let shown = async |role: Role| {
        let visitor = Visitor::signed_in(&stage.world, role).await;
        visitor.text(&format!("/console/apps/of?package={PACKAGE}")).await
    };
    let (viewer, operator) = (shown(Role::Viewer).await, shown(Role::Operator).await);
    assert!(viewer.contains("APP_NOT_AVAILABLE") && !viewer.contains("answered the start"), "{viewer}");
    assert!(operator.contains("answered the start"), "{fault:?}: {operator}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_stops_the_app_in_order_and_starts_it_anew() {
    let stage = Stage::new().await;
    let socket = stage.run().await;
    let before = socket.session.clone();
    let request = AppsRequest::Restart { package: PACKAGE.into(), user: USER.into() };
    let played = async {
        let stopped = stage.app.got("stop_request", 0).await.json();
        assert_eq!((&stopped["reason"], &stopped["sessionId"]), (&json!("user_disabled"), &json!(before)));
        socket.close().await;
        let request = stage.app.got("session_request", 1).await.json();
        Socket::dial(&request, PACKAGE).await
    };
    let (done, mut again) = tokio::join!(stage.world.ask(Request::Apps { request }), played);
    done.unwrap();
    assert_eq!(again.session, before, "apps keep what they have by it");
    again.settled().await;
    assert_eq!(stage.app.history(), ["session_request", "stop_request", "session_request"]);
    // The same command starts an app that does not run.
    let request = AppsRequest::Restart { package: "com.example.unknown".into(), user: USER.into() };
    assert!(stage.world.ask(Request::Apps { request }).await.unwrap_err().contains("com.example.unknown"));
}
