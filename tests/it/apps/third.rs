//! Version 3.x of the SDK, by its recorded frames, with a fake app. The published package itself is in `sdk_third.rs`.

use firmware_sim::Seen;
use serde_json::{Value, json};
use tools::apps::manifest::App;

use super::fake::{File, KEY, PACKAGE, Socket, Stage};
use crate::world::{floor, until};

const SPEECH: &[u8] = include_bytes!("../../../audio/tests/data/speech-22050.mp3");
const STREAM: &str = "0d5e2f34-1111-4222-8333-944445555666";

fn init() -> Value {
    json!({"type": "tpa_connection_init", "packageName": PACKAGE, "apiKey": KEY, "sdkVersion": "3.0.0-hono.8"})
}

/// Starts the app as 3.x, up to the acknowledgement; also returns the webhook's request.
async fn run(stage: &Stage) -> (Socket, Value) {
    let starting = stage.starting(PACKAGE);
    let request = stage.app.got("session_request", 0).await.json();
    let (socket, ack) = Socket::dial_third(&request, PACKAGE, KEY, init()).await;
    assert_eq!((&ack["type"], &ack["sessionId"]), (&json!("tpa_connection_ack"), &request["sessionId"]));
    assert_eq!(starting.await.unwrap(), Ok(true));
    (socket, request)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_in_the_headers_is_acknowledged_and_taken_up_again() {
    let stage = Stage::new().await;
    let (mut socket, request) = run(&stage).await;
    assert!(socket.ack["mentraosSettings"]["timezone"].is_string());
    assert_eq!(socket.ack["mentraosSettings"]["permissions"]["microphone"], true);
    socket.settled().await;
    drop(socket);
    let again = json!({"type": "reconnect", "sessionId": request["sessionId"], "sdkVersion": "3.0.0-hono.8"});
    let (mut socket, ack) = Socket::dial_third(&request, PACKAGE, KEY, again.clone()).await;
    assert_eq!((&ack["type"], &ack["sessionId"]), (&json!("reconnect_ack"), &request["sessionId"]));
    assert_eq!(ack["capabilities"]["hasDisplay"], true);
    socket.settled().await;
    assert_eq!(stage.app.history(), ["session_request"], "it was not called back");

    // Without the key, or for a session that is over, it is rejected and does not reconnect.
    let (_, answer) = Socket::dial_third(&request, PACKAGE, "wrong", again.clone()).await;
    assert_eq!((&answer["type"], &answer["code"]), (&json!("reconnect_rejected"), &json!("NOT_RUNNING")));
    let mut over = request.clone();
    over["sessionId"] = json!("another-session");
    let (_, answer) = Socket::dial_third(&over, PACKAGE, KEY, again).await;
    assert_eq!(answer["type"], "reconnect_ack", "its frame names the session, too: {answer}");
    let (_, answer) = Socket::dial_third(&over, PACKAGE, KEY, json!({"type": "reconnect"})).await;
    assert_eq!(answer["type"], "reconnect_rejected", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_sound_is_played_when_it_has_ended() {
    let _floor = floor().await;
    let mut stage = Stage::new().await;
    let (mut socket, _) = run(&stage).await;
    socket.send(json!({"type": "audio_stream_start", "streamId": STREAM, "contentType": "audio/mpeg"})).await;
    let ready = socket.of_type("audio_stream_ready").await;
    assert_eq!(ready["streamId"], STREAM);
    let request = format!("stream_{STREAM}");
    let play = json!({"type": "audio_play_request", "requestId": request, "audioUrl": ready["streamUrl"],
        "volume": 1, "stopOtherAudio": true, "trackId": 1});
    socket.send(play).await;
    for piece in SPEECH.chunks(1_000) {
        socket.send_bytes([STREAM.as_bytes(), piece].concat()).await;
    }
    socket.send(json!({"type": "audio_stream_end", "streamId": STREAM})).await;
    let answer = socket.of_type("audio_play_response").await;
    assert_eq!((&answer["requestId"], &answer["success"]), (&json!(request), &json!(true)), "{answer}");
    until(&mut stage.glasses, "the sound", |event| matches!(event.seen, Seen::SpeechHeard { complete: true, .. }))
        .await;
    // Speech is requested by a path without a host.
    let url = "/api/tts?text=Third+time";
    socket.send(json!({"type": "audio_play_request", "requestId": "r2", "audioUrl": url, "volume": 1})).await;
    assert_eq!(socket.of_type("audio_play_response").await["success"], true);
    // An aborted stream is answered.
    socket.send(json!({"type": "audio_stream_start", "streamId": STREAM})).await;
    let ready = socket.of_type("audio_stream_ready").await;
    socket.send(json!({"type": "audio_play_request", "requestId": "r3", "audioUrl": ready["streamUrl"]})).await;
    socket.send(json!({"type": "audio_stop_request"})).await;
    let answer = socket.of_type("audio_play_response").await;
    assert_eq!((&answer["requestId"], &answer["success"]), (&json!("r3"), &json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_for_a_stream_is_answered_once() {
    let stage = Stage::new().await;
    let (mut socket, request) = run(&stage).await;
    let start = || json!({"type": "audio_stream_start", "streamId": STREAM});
    socket.send(start()).await;
    let ready = socket.of_type("audio_stream_ready").await;
    let play =
        |request: &str| json!({"type": "audio_play_request", "requestId": request, "audioUrl": ready["streamUrl"]});
    let failed = |answer: Value, request: &str| {
        assert_eq!((&answer["requestId"], &answer["success"]), (&json!(request), &json!(false)), "{answer}");
    };
    // Another request for the same stream, and another stream of the same number.
    socket.send(play("r1")).await;
    socket.send(play("r2")).await;
    failed(socket.of_type("audio_play_response").await, "r1");
    socket.send(start()).await;
    failed(socket.of_type("audio_play_response").await, "r2");
    socket.of_type("audio_stream_ready").await;
    // The socket is lost before the stream has ended.
    socket.send(play("r3")).await;
    socket.settled_without("audio_play_response").await;
    drop(socket.leave().await);
    let again = json!({"type": "reconnect", "sessionId": request["sessionId"], "sdkVersion": "3.0.0-hono.8"});
    let (mut socket, ack) = Socket::dial_third(&request, PACKAGE, KEY, again).await;
    assert_eq!(ack["type"], "reconnect_ack", "{ack}");
    failed(socket.of_type("audio_play_response").await, "r3");
    socket.settled_without("audio_play_response").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_photo_comes_as_a_message() {
    let stage = Stage::with(|app| App { permissions: vec!["CAMERA".into()], ..app }).await;
    // Its server does not know a request that the session has made.
    stage.app.serves("/photo-upload", File::Status(404));
    let (mut socket, _) = run(&stage).await;
    socket.send(json!({"type": "photo_request", "requestId": "photo_1", "size": "medium", "compress": "none"})).await;
    let photo = socket.of_type("photo_response").await;
    assert_eq!((&photo["requestId"], &photo["success"]), (&json!("photo_1"), &json!(true)));
    assert!(photo["photoUrl"].as_str().unwrap().starts_with("data:image/png;base64,iVBOR"), "{photo}");
    stage.app.got("/photo-upload", 0).await;
    assert!(stage.logs().await.is_empty());
    socket.send(json!({"type": "stream_request", "streamUrl": "rtmp://a/b"})).await;
    assert_eq!(socket.of_type("stream_status").await["status"], "error");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_photo_whose_socket_is_lost_meanwhile_comes_on_the_next_one() {
    let stage = Stage::with(|app| App { permissions: vec!["CAMERA".into()], ..app }).await;
    stage.app.serves("/photo-upload", File::Status(404));
    let (mut socket, request) = run(&stage).await;
    socket.settled().await;
    socket.send(json!({"type": "photo_request", "requestId": "photo_1", "size": "medium", "compress": "none"})).await;
    let came = socket.leave().await;
    let again = json!({"type": "reconnect", "sessionId": request["sessionId"], "sdkVersion": "3.0.0-hono.8"});
    let (mut socket, ack) = Socket::dial_third(&request, PACKAGE, KEY, again).await;
    assert_eq!(ack["type"], "reconnect_ack", "{ack}");
    // A camera that is faster than the loss is answered there.
    let photo = match came.into_iter().find(|message| message["type"] == "photo_response") {
        Some(photo) => photo,
        None => socket.of_type("photo_response").await,
    };
    assert_eq!((&photo["requestId"], &photo["success"]), (&json!("photo_1"), &json!(true)));
}
