//! Starting, stopping, losing and reconnecting apps.

use device_protocol::{ButtonAction, ButtonId};
use firmware_sim::Seen;
use gateway::apps::feed::Event;
use gateway_core::vocab::AppState;
use serde_json::json;
use tokio_tungstenite::tungstenite::{Message, protocol::CloseFrame};
use tools::{apps::manifest::App, ports::AppHost as _};

use super::fake::{FakeApp, KEY, PACKAGE, Reply, Socket, Stage};
use crate::{
    process::Process,
    world::{USER, WAIT, connect, until},
};

#[tokio::test(flavor = "multi_thread")]
async fn rule_11_what_runs_is_not_called_again() {
    let stage = Stage::new().await;
    let mut socket = stage.run().await;
    assert_eq!(stage.starting(PACKAGE).await.unwrap(), Ok(false));
    let apps = &stage.world.gateway().services().apps;
    assert_eq!(apps.activate(USER, PACKAGE, std::time::Duration::from_secs(5)).await, Ok(false));
    socket.settled().await;
    assert_eq!(stage.app.history(), ["session_request"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_13_a_stop_goes_by_webhook_and_then_by_closing_with_1000() {
    let stage = Stage::new().await;
    // An app that closes by itself, as the SDK does.
    let socket = stage.run().await;
    let apps = stage.world.gateway().services().apps.clone();
    let stopping = tokio::spawn(async move { AppStop(apps).stop().await });
    let request = stage.app.got("stop_request", 0).await.json();
    assert_eq!((&request["reason"], &request["sessionId"]), (&json!("user_disabled"), &json!(socket.session)));
    socket.close().await;
    assert!(stopping.await.unwrap());
    // Apps that do not: close code 1000 would make the SDK run its `onStop` a second time if it has received its stop.
    // An app that was too slow to answer has received it.
    let cases = [(Reply::Success, 4001), (Reply::Status(500), 4001), (Reply::Never, 4001), (Reply::Status(404), 1000)];
    for (number, (answer, code)) in cases.into_iter().enumerate() {
        stage.app.answers(Reply::Success);
        let mut socket = stage.run().await;
        stage.app.answers(answer);
        let apps = stage.world.gateway().services().apps.clone();
        let stopping = tokio::spawn(async move { AppStop(apps).stop().await });
        stage.app.got("stop_request", number + 1).await;
        socket.of_type("app_stopped").await;
        let closed = socket.closed().await.expect("a close frame");
        assert_eq!((u16::from(closed.code), closed.reason.as_str()), (code, "App stopped"));
        assert!(stopping.await.unwrap());
    }
}

struct AppStop(std::sync::Arc<gateway::apps::host::Host>);

impl AppStop {
    async fn stop(&self) -> bool {
        tools::ports::AppHost::stop(&*self.0, USER, PACKAGE).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_15_a_socket_that_breaks_is_taken_up_again_and_its_app_called_anew() {
    let stage = Stage::new().await;
    let socket = stage.run().await;
    let (session, url) = (socket.session.clone(), format!("ws://{}/app-ws", stage.world.web()));
    drop(socket);
    let (ws, ack) = Socket::init(&url, &session, PACKAGE, KEY).await;
    assert_eq!(ack["type"], "tpa_connection_ack", "{ack}");
    let broken = Socket::of(ws);
    let request = stage.app.got("session_request", 1).await.json();
    assert_eq!(request["sessionId"], json!(session));
    // As the SDK does: it closes the old socket and connects again.
    let mut again = Socket::dial(&request, PACKAGE).await;
    broken.close().await;
    again.subscribe(&["button_press"]).await;
    again.settled().await;
    stage.glasses.press(ButtonId::VolumeUp, ButtonAction::Press).await.unwrap();
    again.stream("button_press").await;
    assert_eq!(stage.app.history(), ["session_request", "stop_request", "session_request"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_whose_socket_broke_during_its_speech_is_told_on_the_next_one_once() {
    let mut stage = Stage::new().await;
    let mut socket = stage.run().await;
    let (session, url) = (socket.session.clone(), format!("ws://{}/app-ws", stage.world.web()));
    let long = "One+thing+after+another+was+said.+".repeat(40);
    socket
        .send(json!({"type": "audio_play_request", "packageName": PACKAGE, "sessionId": session, "requestId": "spoken",
            "audioUrl": format!("https://127.0.0.1/api/tts?text={long}"), "stopOtherAudio": true}))
        .await;
    until(&mut stage.glasses, "the app's words", |event| matches!(event.seen, Seen::FirstSound { .. })).await;
    drop(socket);
    let (ws, ack) = Socket::init(&url, &session, PACKAGE, KEY).await;
    assert_eq!(ack["type"], "tpa_connection_ack", "{ack}");
    // Its session is stopped and begun anew, which ends what it says: while this socket stands, or when it is gone.
    let mut broken = Socket::of(ws);
    let mut told = Vec::new();
    while let Some(Message::Text(text)) = broken.next().await {
        let message: serde_json::Value = serde_json::from_str(&text).unwrap();
        told.extend((message["type"] == "audio_play_response").then_some(message));
    }
    let request = stage.app.got("session_request", 1).await.json();
    let mut again = Socket::dial(&request, PACKAGE).await;
    if told.is_empty() {
        told.push(again.of_type("audio_play_response").await);
    }
    again.settled_without("audio_play_response").await;
    let [answer] = told.as_slice() else { panic!("{told:#?}") };
    assert_eq!((&answer["requestId"], &answer["success"]), (&json!("spoken"), &json!(false)), "{answer}");
}

/// Apps that override `onStop` without `super.onStop` leave the SDK's socket open, which reconnects when it breaks. All
/// sessions of an app have one name: the old and the new socket would displace each other without end.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_gives_way_to_another_is_told_not_to_dial_again() {
    let stage = Stage::new().await;
    let socket = stage.run().await;
    let (session, url) = (socket.session.clone(), format!("ws://{}/app-ws", stage.world.web()));
    drop(socket);
    let code = |closed: Option<CloseFrame>| closed.map(|frame| u16::from(frame.code));
    let (ws, _) = Socket::init(&url, &session, PACKAGE, KEY).await;
    assert_eq!(code(Socket::of(ws).closed().await), Some(4001));
    let request = stage.app.got("session_request", 1).await.json();
    let mut again = Socket::dial(&request, PACKAGE).await;
    again.settled().await;
    // An old socket that had not given up yet, next to the new one.
    let (ws, _) = Socket::init(&url, &session, PACKAGE, KEY).await;
    assert_eq!(code(again.closed().await), Some(4001));
    assert_eq!(code(Socket::of(ws).closed().await), Some(4001));
    let request = stage.app.got("session_request", 2).await.json();
    Socket::dial(&request, PACKAGE).await.settled().await;
    let anew = ["stop_request", "session_request"];
    assert_eq!(stage.app.history(), [["session_request"].as_slice(), &anew, &anew].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_is_installed_anew_while_it_runs_is_admitted_anew() {
    let stage = Stage::new().await;
    let installed = &stage.world.gateway().admin().installed;
    let code = |closed: Option<CloseFrame>| closed.map(|frame| u16::from(frame.code));
    let mut socket = stage.run().await;
    let (session, url) = (socket.session.clone(), format!("ws://{}/app-ws", stage.world.web()));
    socket.subscribe(&["transcription:en-US"]).await;
    // What does not concern its connection leaves it alone.
    installed.add(App { description: "Lists more.".into(), ..stage.app.manifest() }).await.unwrap();
    socket.settled().await;
    installed.add(App { permissions: Vec::new(), ..stage.app.manifest() }).await.unwrap();
    assert_eq!(code(socket.closed().await), Some(1012));
    let (ws, ack) = Socket::init(&url, &session, PACKAGE, KEY).await;
    assert_eq!(ack["type"], "tpa_connection_ack", "{ack}");
    let broken = Socket::of(ws);
    let request = stage.app.got("session_request", 1).await.json();
    let mut socket = Socket::dial(&request, PACKAGE).await;
    broken.close().await;
    socket.subscribe(&["transcription:en-US", "button_press"]).await;
    assert_eq!(socket.of_type("permission_error").await["details"][0]["requiredPermission"], "MICROPHONE");
    let text = "not for it".into();
    stage.world.gateway().services().apps.feeds.of(USER).tell(|| Event::Transcript {
        utterance: "u".into(),
        text,
        language: "en",
        others: [].into(),
        last: true,
        start_ms: 0,
        end_ms: 1,
    });
    stage.glasses.press(ButtonId::VolumeUp, ButtonAction::Press).await.unwrap();
    let next = socket.of_type("data_stream").await;
    assert_eq!(next["streamType"], "button_press", "{next}");
    // With another key it does not come back.
    installed.add(App { api_key_sha256: "00".repeat(32), ..stage.app.manifest() }).await.unwrap();
    assert_eq!(code(socket.closed().await), Some(1012));
    let (_, answer) = Socket::init(&url, &session, PACKAGE, KEY).await;
    assert_eq!(answer["code"], "INVALID_API_KEY", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_whose_server_was_away_is_tried_again_until_it_is_back() {
    let mut stage = Stage::new().await;
    let socket = stage.run().await;
    let address = stage.app.address;
    // The whole server is stopped for longer than any SDK retries.
    stage.app = FakeApp::start("com.example.other").await;
    drop(socket);
    let apps = stage.world.gateway().services().apps.clone();
    let away = async {
        while apps.states(USER).get(PACKAGE) != Some(&AppState::Away) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, away).await.expect("it is tried again");
    let why = stage.starting(PACKAGE).await.unwrap().unwrap_err();
    assert_eq!(why, "its server does not answer; it is tried again until it is stopped");
    let listener = tokio::net::TcpListener::bind(address).await.expect("its port is free");
    let back = FakeApp::on(listener, PACKAGE);
    let request = back.got("session_request", 0).await.json();
    Socket::dial(&request, PACKAGE).await.settled().await;
    assert_eq!(back.count("stop_request"), 0, "it knows of no session");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_stays_away_is_started_anew() {
    let stage = Stage::new().await;
    let socket = stage.run().await;
    drop(socket);
    let request = stage.app.got("session_request", 1).await.json();
    assert_eq!(stage.app.history(), ["session_request", "stop_request", "session_request"]);
    let mut socket = Socket::dial(&request, PACKAGE).await;
    socket.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_gives_its_session_up_is_left_alone() {
    let stage = Stage::new().await;
    let mut socket = stage.run().await;
    socket.send(json!({"type": "ownership_release", "reason": "clean_shutdown"})).await;
    socket.settled().await;
    socket.close().await;
    let apps = &stage.world.gateway().services().apps;
    let gone = async {
        while !apps.states(USER).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, gone).await.unwrap();
    assert_eq!(stage.app.history(), ["session_request"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_app_in_front_and_only_on_glasses_that_can() {
    let stage = Stage::new().await;
    let socket = stage.run().await;
    let other = FakeApp::start("com.example.map").await;
    let mut needy = FakeApp::start("com.example.needy").await.manifest();
    needy.hardware_required = vec!["DISPLAY".into(), "LIGHT".into()];
    let installed = &stage.world.gateway().admin().installed;
    installed.add(other.manifest()).await.unwrap();
    installed.add(needy).await.unwrap();
    let refused = stage.starting("com.example.needy").await.unwrap().unwrap_err();
    assert!(refused.contains("LIGHT"), "{refused}");

    let starting = stage.starting("com.example.map");
    let request = other.got("session_request", 0).await.json();
    let stopped = stage.app.got("stop_request", 0).await.json();
    assert_eq!(stopped["reason"], "system_stop");
    socket.close().await;
    let _map = Socket::dial(&request, "com.example.map").await;
    assert_eq!(starting.await.unwrap(), Ok(true));
    let states = stage.world.gateway().services().apps.states(USER);
    assert_eq!(states.keys().collect::<Vec<_>>(), ["com.example.map"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_15_a_gateway_that_is_killed_and_comes_back_calls_its_apps_anew() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let app = FakeApp::start(PACKAGE).await;
    let gateway = Process::start(&data, "", &[]).await;
    // The port must stay the same: the app reconnects to the address that it was given.
    let port = gateway.web.port();
    let glasses = connect(&data, gateway.options()).await;
    let manifest = json!({"packageName": PACKAGE, "name": "List", "description": "Lists.", "version": "1",
        "publicUrl": "http://127.0.0.1:1", "settings": [], "permissions": []});
    super::install(&data, manifest.to_string(), format!("http://{}", app.address), KEY).await;
    let (place, request) = (data.clone(), app.got("session_request", 0));
    let starting = tokio::spawn(async move { super::start(&place, PACKAGE).await });
    let request = request.await.json();
    let mut socket = Socket::dial(&request, PACKAGE).await;
    socket.settled().await;
    starting.await.unwrap();
    gateway.kill().await;
    assert!(socket.closed().await.is_none(), "a killed gateway says nothing");
    drop(glasses);

    let gateway = Process::start_at(&data, port).await;
    let url = request["mentraOSWebsocketUrl"].as_str().unwrap();
    let (ws, ack) = Socket::init(url, request["sessionId"].as_str().unwrap(), PACKAGE, KEY).await;
    assert_eq!(ack["type"], "tpa_connection_ack", "{ack}");
    let mut socket = Socket::of(ws);
    socket.settled().await;
    assert_eq!(app.history(), ["session_request"], "nobody is there to see it");
    let _glasses = connect(&data, gateway.options()).await;
    let request = app.got("session_request", 1).await.json();
    assert_eq!(app.history(), ["session_request", "stop_request", "session_request"]);
    socket.close().await;
    let socket = Socket::dial(&request, PACKAGE).await;
    // A gateway that stops regularly tells its apps to reconnect.
    let (_, closed) = tokio::join!(gateway.terminate(), socket.closed());
    assert_eq!(closed.map(|frame| u16::from(frame.code)), Some(1012));
}

/// The app's own request has an answer, whatever becomes of the gateway.
#[tokio::test(flavor = "multi_thread")]
async fn an_app_is_told_what_a_killed_gateway_has_not_said_to_its_end() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let app = FakeApp::start(PACKAGE).await;
    let gateway = Process::start(&data, "", &[]).await;
    let port = gateway.web.port();
    let mut glasses = connect(&data, gateway.options()).await;
    let manifest = json!({"packageName": PACKAGE, "name": "List", "description": "Lists.", "version": "1",
        "publicUrl": "http://127.0.0.1:1", "settings": [], "permissions": []});
    super::install(&data, manifest.to_string(), format!("http://{}", app.address), KEY).await;
    let (place, request) = (data.clone(), app.got("session_request", 0));
    let starting = tokio::spawn(async move { super::start(&place, PACKAGE).await });
    let request = request.await.json();
    let mut socket = Socket::dial(&request, PACKAGE).await;
    socket.settled().await;
    starting.await.unwrap();
    let long = "One+thing+after+another+was+said.+".repeat(40);
    for (request, alone) in [("spoken", true), ("waits", false)] {
        socket
            .send(json!({"type": "audio_play_request", "packageName": PACKAGE, "sessionId": "x", "requestId": request,
                "audioUrl": format!("https://127.0.0.1/api/tts?text={long}"), "stopOtherAudio": alone}))
            .await;
    }
    socket.settled().await;
    until(&mut glasses, "the app's words", |event| matches!(event.seen, Seen::FirstSound { .. })).await;
    // Writes reach the disk in order.
    let url = format!("http://{}/api/sdk/simple-storage/{USER}", gateway.web);
    let put =
        reqwest::Client::new().put(url).bearer_auth(format!("{PACKAGE}:{KEY}")).json(&json!({"data": {"a": "b"}}));
    assert!(put.send().await.unwrap().status().is_success());
    gateway.kill().await;
    assert!(socket.closed().await.is_none(), "a killed gateway says nothing");
    drop(glasses);

    let gateway = Process::start_at(&data, port).await;
    let url = request["mentraOSWebsocketUrl"].as_str().unwrap();
    for told in [["spoken", "waits"].as_slice(), &[]] {
        let (ws, ack) = Socket::init(url, request["sessionId"].as_str().unwrap(), PACKAGE, KEY).await;
        assert_eq!(ack["type"], "tpa_connection_ack", "{ack}");
        let mut socket = Socket::of(ws);
        for request in told {
            let answer = socket.of_type("audio_play_response").await;
            assert_eq!((&answer["requestId"], &answer["success"]), (&json!(request), &json!(false)));
            assert!(answer["error"].as_str().is_some_and(|why| why.contains("restarted")), "{answer}");
        }
        // Once.
        socket.settled_without("audio_play_response").await;
        socket.close().await;
    }
    gateway.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_start_says_why() {
    let stage = Stage::new().await;
    let elsewhere = FakeApp::start("com.example.elsewhere").await;
    let cases = [
        (Reply::Status(500), "status 500"),
        (Reply::Status(404), "status 404"),
        (Reply::Redirect(format!("http://{}/webhook", elsewhere.address)), "elsewhere"),
    ];
    for (answer, wanted) in cases {
        stage.app.answers(answer);
        let why = stage.starting(PACKAGE).await.unwrap().unwrap_err();
        assert!(why.contains(wanted), "{why}");
    }
    assert!(elsewhere.history().is_empty(), "the user's name went to another server");
    let unknown = stage.starting("com.example.unknown").await.unwrap().unwrap_err();
    assert!(unknown.contains("com.example.unknown"), "{unknown}");
}
