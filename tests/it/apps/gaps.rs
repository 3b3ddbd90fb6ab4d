//! Features that the gateway lacks, or has in one form only: each request gets a defined answer.

use serde_json::{Value, json};
use tools::apps::manifest::App;

use super::fake::Stage;
use crate::world::World;

const HERE: &str = "[apps]\nlocation = { latitude = 52.5, longitude = 13.4, accuracy_m = 100 }\n";

fn with_location(app: App) -> App {
    App { permissions: vec!["LOCATION".into()], ..app }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_know_the_place_is_told_it() {
    let stage = Stage::on(World::with(HERE).await, with_location).await;
    let mut socket = stage.run().await;
    assert_eq!(socket.ack["mentraosSettings"]["permissions"]["location"], true);
    socket.send(json!({"type": "location_poll_request", "correlationId": "poll_1", "accuracy": "high"})).await;
    let place = socket.stream("location_update").await;
    let wanted = (&json!(52.5), &json!(13.4), &json!(100.0), &json!("poll_1"));
    let data = &place["data"];
    assert_eq!((&data["lat"], &data["lng"], &data["accuracy"], &data["correlationId"]), wanted);
    socket
        .send(json!({"type": "subscription_update", "subscriptions": [{"stream": "location_stream", "rate": "realtime"}]}))
        .await;
    assert_eq!(socket.stream("location_stream").await["data"]["lat"], 52.5);

    let stage = Stage::on(World::with(HERE).await, |app| app).await;
    let mut socket = stage.run().await;
    socket.send(json!({"type": "location_poll_request", "correlationId": "poll_2"})).await;
    let refusal = socket.of_type("tpa_connection_error").await;
    assert_eq!((&refusal["code"], &refusal["correlationId"]), (&json!("PERMISSION_DENIED"), &json!("poll_2")));
    socket.subscribe(&["location_update"]).await;
    let refused = socket.of_type("permission_error").await;
    assert_eq!(refused["details"][0]["requiredPermission"], "LOCATION");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_the_location_under_ever_new_names_keep_no_refusal_out_of_the_log() {
    let stage = Stage::on(World::with(HERE).await, with_location).await;
    let mut socket = stage.run().await;
    for round in 0..3 {
        let list: Vec<String> = (0..64).map(|n| format!("location_update?{round}.{n}")).collect();
        socket.subscribe(&list.iter().map(String::as_str).collect::<Vec<_>>()).await;
        for name in &list {
            socket.stream(name).await;
        }
    }
    socket.subscribe(&["vps_coordinates"]).await;
    assert_eq!(socket.of_type("tpa_connection_error").await["code"], "STREAM_NOT_AVAILABLE");
    let logs = stage.logs().await;
    assert!(logs.iter().any(|fault| fault.request.contains("vps_coordinates")), "{logs:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_else_that_an_sdk_sends_has_an_answer() {
    let stage = Stage::with(|app| App { permissions: vec!["ALL".into()], ..app }).await;
    let mut socket = stage.run().await;
    let cases: [(Value, &str, &str, &str); 13] = [
        (
            json!({"type": "dashboard_content_update", "content": "x", "modes": ["expanded"]}),
            "tpa_connection_error",
            "code",
            "DASHBOARD_MODE_NOT_AVAILABLE",
        ),
        (
            json!({"type": "dashboard_mode_change", "mode": "expanded"}),
            "tpa_connection_error",
            "code",
            "PERMISSION_DENIED",
        ),
        (
            json!({"type": "dashboard_system_update", "section": "topLeft"}),
            "tpa_connection_error",
            "code",
            "PERMISSION_DENIED",
        ),
        (json!({"type": "request_wifi_setup", "reason": "r"}), "tpa_connection_error", "code", "NOT_AVAILABLE"),
        (json!({"type": "camera_fov_set", "fov": 92}), "tpa_connection_error", "code", "NOT_AVAILABLE"),
        (json!({"type": "rtmp_stream_request", "rtmpUrl": "rtmp://a/b"}), "rtmp_stream_status", "status", "error"),
        (json!({"type": "rtmp_stream_stop"}), "rtmp_stream_status", "status", "stopped"),
        (json!({"type": "managed_stream_request"}), "managed_stream_status", "status", "error"),
        (json!({"type": "managed_stream_stop"}), "managed_stream_status", "status", "stopped"),
        (json!({"type": "stream_status_check", "requestId": "c1"}), "stream_status_check_response", "requestId", "c1"),
        (
            json!({"type": "app_direct_message", "messageId": "m1", "targetUserId": "u"}),
            "app_direct_message_response",
            "messageId",
            "m1",
        ),
        (json!({"type": "tpa_room_join", "roomId": "r"}), "tpa_connection_error", "code", "NOT_AVAILABLE"),
        (
            json!({"type": "location_poll_request", "correlationId": "p"}),
            "tpa_connection_error",
            "code",
            "LOCATION_NOT_AVAILABLE",
        ),
    ];
    for (message, kind, field, value) in cases {
        socket.send(message.clone()).await;
        let answer = socket.of_type(kind).await;
        assert_eq!(answer[field], value, "{message}: {answer}");
    }
    // The main line of the dashboard is shown; without a mode it is the main one.
    for modes in [json!(["main", "expanded"]), json!([]), Value::Null] {
        socket.send(json!({"type": "dashboard_content_update", "content": "x", "modes": modes})).await;
    }
    socket.settled().await;
    for stream in ["photo_taken", "phone_notification", "calendar_event", "phone_battery_update", "video"]
        .into_iter()
        .chain(["vps_coordinates", "rtmp_stream_status", "translation:en-US-to-fr-FR", "transcription:fr-FR"])
    {
        socket.subscribe(&[stream]).await;
        let refusal = socket.of_type("tpa_connection_error").await;
        assert_eq!(refusal["code"], "STREAM_NOT_AVAILABLE", "{stream}");
        assert!(refusal["message"].as_str().unwrap().starts_with(stream), "{refusal}");
    }
}
