//! Version 1.x of the SDK, where its wire protocol differs from that of 2.x. No registry offers the package any more,
//! so that the test sends its messages itself.

use device_protocol::{ButtonAction, ButtonId};
use firmware_sim::Seen;
use serde_json::json;
use tools::apps::manifest::App;

use super::fake::{KEY, PACKAGE, Socket, Stage};
use crate::world::{USER, floor, until};

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_knows_only_the_names_of_the_first_sdk_runs() {
    let _floor = floor().await;
    let mut stage = Stage::with(|app| App {
        permissions: vec!["ALL".into()],
        settings: vec![json!({"key": "lang", "type": "text", "label": "Lang", "defaultValue": "en"})],
        ..app
    })
    .await;
    let starting = stage.starting(PACKAGE);
    let request = stage.app.got("session_request", 0).await.json();
    let (url, session) = (request["augmentOSWebsocketUrl"].as_str().unwrap(), request["sessionId"].as_str().unwrap());
    // 1.x derives its REST address by removing this suffix.
    let base = url.strip_suffix("/tpa-ws").unwrap().replace("ws://", "http://");
    let (ws, ack) = Socket::init(url, session, PACKAGE, KEY).await;
    assert_eq!(starting.await.unwrap(), Ok(true));
    assert_eq!((&ack["type"], &ack["settings"][0]["value"]), (&json!("tpa_connection_ack"), &json!("en")));
    assert!(ack["augmentosSettings"]["metricSystemEnabled"].is_boolean());
    let mut socket = Socket::of(ws);

    socket.subscribe(&["transcription:en-US", "button_press", "notification_dismissed"]).await;
    let refusal = socket.of_type("tpa_connection_error").await;
    assert!(refusal["message"].as_str().unwrap().starts_with("notification_dismissed"), "{refusal}");
    stage.glasses.press(ButtonId::Main, ButtonAction::Press).await.unwrap();
    assert_eq!(socket.stream("button_press").await["data"]["pressType"], "short");
    // Device state messages would be an error for it: it gets none.
    stage.glasses.battery(55).await.unwrap();
    socket.subscribe(&["glasses_battery_update"]).await;
    socket.settled_without("device_state_update").await;
    let layout = json!({"layoutType": "text_wall", "text": "From the first"});
    socket.send(json!({"type": "display_event", "packageName": PACKAGE, "view": "main", "layout": layout})).await;
    let drawn = |event: &firmware_sim::Event| matches!(&event.seen, Seen::Display { text, .. } if text.contains("From the first"));
    until(&mut stage.glasses, "the wall of text", drawn).await;
    let url = format!("{}/tpa-ws/api/tts?text=Spoken+by+the+first", base.replace("http://", "https://"));
    socket.send(json!({"type": "audio_play_request", "requestId": "r1", "audioUrl": url})).await;
    assert_eq!(socket.of_type("audio_play_response").await["success"], true);
    socket.send(json!({"type": "tpa_user_discovery"})).await;
    assert_eq!(socket.of_type("tpa_connection_error").await["code"], "NOT_AVAILABLE");
    let settings = format!("{base}/appsettings/user/{PACKAGE}");
    let answer = reqwest::Client::new().get(&settings).bearer_auth(session).send().await.unwrap();
    assert!(answer.status().is_success());

    let apps = stage.world.gateway().services().apps.clone();
    let stopping = tokio::spawn(async move { tools::ports::AppHost::stop(&*apps, USER, PACKAGE).await });
    assert_eq!(stage.app.got("stop_request", 0).await.json()["reason"], "user_disabled");
    socket.close().await;
    assert_eq!(stopping.await.unwrap(), Ok(true));
}
