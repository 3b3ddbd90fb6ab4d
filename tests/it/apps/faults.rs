//! Apps that misbehave, and strangers: no other app or device is affected.

use firmware_sim::{Glasses, Options, Seen};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::fake::{PACKAGE, Reply, Socket, Stage};
use crate::{process::Process, world::until};

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_webhook_answers_only_the_socket_counts() {
    let stage = Stage::new().await;
    for (number, answer) in [Reply::Garbage, Reply::Endless, Reply::Never].into_iter().enumerate() {
        stage.app.answers(answer);
        let starting = stage.starting(PACKAGE);
        let request = stage.app.got("session_request", number).await.json();
        let socket = Socket::dial(&request, PACKAGE).await;
        assert_eq!(starting.await.unwrap(), Ok(true));
        stage.app.answers(Reply::Success);
        let apps = stage.world.gateway().services().apps.clone();
        let stopping =
            tokio::spawn(async move { tools::ports::AppHost::stop(&*apps, crate::world::USER, PACKAGE).await });
        stage.app.got("stop_request", number).await;
        socket.close().await;
        assert_eq!(stopping.await.unwrap(), Ok(true));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_never_dials_fails_in_time_and_a_dead_server_at_once() {
    let stage = Stage::new().await;
    let why = stage.starting(PACKAGE).await.unwrap().unwrap_err();
    assert!(why.contains("in time"), "{why}");
    let mut gone = stage.app.manifest();
    gone.package = "com.example.gone".into();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    gone.public_url = format!("http://{free}");
    stage.world.gateway().admin().installed.add(gone).await.unwrap();
    let why = stage.starting("com.example.gone").await.unwrap().unwrap_err();
    assert!(why.contains("does not answer"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_on_the_socket_is_answered_and_a_flood_ends_with_the_socket() {
    let stage = Stage::new().await;
    let mut socket = stage.run().await;
    let nonsense = [
        "",
        "{",
        "[]",
        "null",
        "\"x\"",
        r#"{"type":7}"#,
        r#"{"type":"display_event"}"#,
        r#"{"type":"subscription_update","subscriptions":{"a":1}}"#,
        r#"{"type":"audio_play_request"}"#,
    ];
    for text in nonsense {
        assert!(socket.send_text(text.to_owned()).await);
        assert_eq!(socket.of_type("tpa_connection_error").await["code"], "MALFORMED_MESSAGE", "{text}");
    }
    // Unknown future messages, and messages of MentraOS itself: ignored without an error.
    for kind in ["brand_new_thing", "app_room_join", "dashboard_mode_change", "request_wifi_setup"] {
        socket.send(json!({"type": kind, "deep": {"er": [1, 2, 3]}})).await;
    }
    socket.settled().await;
    let deep = format!("{{\"type\":\"display_event\",\"layout\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    assert!(socket.send_text(deep).await);
    assert_eq!(socket.of_type("tpa_connection_error").await["code"], "MALFORMED_MESSAGE");
    // A frame of 10 MB is not read.
    let _ = socket.send_text("x".repeat(10 * 1024 * 1024)).await;
    drop(socket.closed().await);
    // The app counts as lost and is started again; the gateway continues.
    let request = stage.app.got("session_request", 1).await.json();
    let mut again = Socket::dial(&request, PACKAGE).await;
    again.settled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_sends_too_much_is_not_listened_to_for_the_rest_of_the_second() {
    let stage = Stage::new().await;
    let mut socket = stage.run().await;
    for _ in 0..2_000 {
        socket.send(json!({"type": "dashboard_content_update", "content": "x", "modes": ["main"]})).await;
    }
    // Messages beyond the limit are dropped: the request is repeated until one in a later second is answered.
    let mut asked = 0;
    loop {
        asked += 1;
        assert!(asked < 10_000, "it is never heard again");
        socket.send(json!({"type": "stream_status_check"})).await;
        let answer =
            tokio::time::timeout(std::time::Duration::from_millis(100), socket.of_type("stream_status_check_response"));
        if let Ok(answer) = answer.await {
            assert_eq!(answer["hasActiveStream"], false);
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_sends_too_many_bytes_is_closed_and_told() {
    for text in [false, true] {
        let stage = Stage::new().await;
        let socket = stage.run().await;
        // Each frame may be as large.
        let frame = match text {
            true => Message::text(format!("{{\"type\":\"{}\"}}", "x".repeat(1_000_000))),
            false => Message::binary(vec![7; 1_000_000]),
        };
        // Not with 1008 (rule 14).
        assert_eq!(socket.flood(frame).await.map(|frame| u16::from(frame.code)), Some(1013));
        let logs = stage.logs().await;
        assert!(logs.iter().any(|fault| fault.message.contains("bytes in a second")), "{logs:#?}");
    }
}

/// Whoever could write any number of lines would push all others out of the stored log.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_do_not_fill_the_log() {
    /// Some are logged at once, and then one a second.
    const STRANGERS: usize = 40;
    drop(rustls::crypto::ring::default_provider().install_default());
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let gateway = Process::start(&data, "", &[]).await;
    let url = format!("ws://{}/app-ws", gateway.web);
    for number in 0..STRANGERS {
        let mut socket = Socket::of(Socket::open(&url).await);
        socket.send(json!({"type": "ping"})).await;
        assert_eq!(socket.of_type("tpa_connection_error").await["code"], "MALFORMED_MESSAGE");
        let options = Options { state: folder.path().join(number.to_string()), ..gateway.options() };
        let mut glasses = Glasses::start(options).unwrap();
        until(&mut glasses, "it waits", |event| matches!(event.seen, Seen::PairingCode { .. })).await;
    }
    let (status, log) = gateway.terminate().await;
    assert!(status.success(), "{status}");
    for line in ["an app's socket was refused", "a new device waits for pairing"] {
        let count = log.iter().filter(|logged| logged.contains(line)).count();
        let left_out = log.iter().any(|logged| logged.contains(line) && !logged.contains("left_out=0"));
        assert!(count > 0 && (count < STRANGERS || left_out), "{count} times: {line}");
    }
}
