//! The rules of the wire protocol, each with its number.

use device_protocol::{ButtonAction, ButtonId, Gesture};
use firmware_sim::Seen;
use gateway_core::vocab::{ToolCall, ToolSpec};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::Message;
use tools::apps::manifest::{App, AppTool};

use super::fake::{KEY, PACKAGE, Socket, Stage};
use crate::world::{USER, answered, floor, say, until};

fn with_settings(mut app: App) -> App {
    app.settings = vec![
        json!({"key": "lang", "type": "text", "label": "Lang", "defaultValue": "en"}),
        json!({"key": "loud", "type": "toggle", "label": "Loud"}),
    ];
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_1_to_4_and_10_an_app_is_started_by_its_webhook_and_runs_by_its_socket() {
    let stage = Stage::with(with_settings).await;
    // The SDK answers its webhook only when `onSession` has returned, which may be never.
    stage.app.answers(super::fake::Reply::Never);
    let starting = stage.starting(PACKAGE);
    let request = stage.app.got("session_request", 0).await.json();
    let url = format!("ws://{}/app-ws", stage.world.web());
    assert_eq!(request["mentraOSWebsocketUrl"], json!(url));
    assert_eq!(request["augmentOSWebsocketUrl"], json!(url.replace("/app-ws", "/tpa-ws")));
    assert_eq!(request["userId"], USER);
    let socket = Socket::dial(&request, PACKAGE).await;
    assert_eq!(starting.await.unwrap(), Ok(true));
    let ack = &socket.ack;
    assert_eq!(ack["sessionId"], request["sessionId"]);
    assert_eq!(ack["mentraosSettings"], ack["augmentosSettings"]);
    assert!(
        ack["mentraosSettings"]["metricSystemEnabled"].is_boolean()
            && ack["mentraosSettings"]["userTimezone"].is_string()
    );
    assert_eq!((&ack["settings"][0]["value"], &ack["settings"][1]["value"]), (&json!("en"), &Value::Null));
    assert_eq!(ack["capabilities"]["hasDisplay"], true);
    assert_eq!(ack["capabilities"]["modelName"], "Lorgnette simulator");
    // The old path works in the same way.
    let old = request["augmentOSWebsocketUrl"].as_str().unwrap();
    let (_, ack) = Socket::init(old, request["sessionId"].as_str().unwrap(), PACKAGE, KEY).await;
    assert_eq!(ack["type"], "tpa_connection_ack");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_5_6_and_12_streams_of_live_glasses_under_the_apps_own_names() {
    let _floor = floor().await;
    let mut stage = Stage::new().await;
    let mut socket = stage.run().await;
    socket.of_type("device_state_update").await;
    // A burst, as the SDK sends it; the last one counts.
    socket.subscribe(&[]).await;
    socket.subscribe(&["VAD"]).await;
    let all = [
        "transcription:en-US?hints=en%2Cja",
        "VAD",
        "button_press",
        "touch_event:forward_swipe",
        "glasses_battery_update",
        "audio_chunk",
        "custom_cmd",
        "translation:es-ES-to-en-US",
        "phone_notification",
    ];
    socket.subscribe(&all).await;
    let refused = socket.of_type("permission_error").await;
    assert_eq!(refused["details"][0]["requiredPermission"], "READ_NOTIFICATIONS");
    let unserved = socket.of_type("tpa_connection_error").await;
    assert_eq!(unserved["code"], "STREAM_NOT_AVAILABLE");
    assert!(unserved["message"].as_str().unwrap().contains("translation:es-ES-to-en-US"), "{unserved}");
    // An empty list this soon means that the SDK restarts.
    socket.subscribe(&[]).await;
    socket.settled().await;

    stage.glasses.press(ButtonId::Main, ButtonAction::LongPress).await.unwrap();
    let pressed = socket.stream("button_press").await;
    assert_eq!((&pressed["data"]["buttonId"], &pressed["data"]["pressType"]), (&json!("main"), &json!("long")));
    // The button also mutes; a second press unmutes.
    stage.glasses.press(ButtonId::Main, ButtonAction::LongPress).await.unwrap();
    socket.stream("button_press").await;
    stage.glasses.touch(Gesture::SwipeBack).await.unwrap();
    stage.glasses.touch(Gesture::SwipeForward).await.unwrap();
    let touched = socket.stream("touch_event:forward_swipe").await;
    assert_eq!(touched["data"]["gesture_name"], "forward_swipe");
    stage.glasses.battery(55).await.unwrap();
    let battery = socket.stream("glasses_battery_update").await;
    assert_eq!(battery["data"]["level"], 55);

    say(&mut stage.glasses, "The train to the mountains leaves at seven in the morning.").await;
    let sound = socket.sound().await;
    assert!(!sound.is_empty() && sound.len() % 2 == 0, "{}", sound.len());
    let voice = socket.stream("VAD").await;
    assert_eq!(voice["data"]["status"], true);
    let name = "transcription:en-US?hints=en%2Cja";
    // A busy machine may skip partial transcripts, but never the final one.
    let first = socket.stream(name).await;
    let whole = if first["data"]["isFinal"] == true {
        first.clone()
    } else {
        socket.find("a final", |message| message["streamType"] == name && message["data"]["isFinal"] == true).await
    };
    let text = whole["data"]["text"].as_str().unwrap().to_lowercase();
    assert!(text.contains("train") && text.contains("mountain"), "{text}");
    assert_eq!(
        (&whole["data"]["transcribeLanguage"], &whole["data"]["utteranceId"]),
        (&json!("en-US"), &first["data"]["utteranceId"])
    );
    assert!(whole["data"]["endTime"].as_u64() > whole["data"]["startTime"].as_u64(), "{whole}");
    assert_eq!(whole["sessionId"], json!(socket.session));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_to_an_app_that_listens_is_left_to_it() {
    let _floor = floor().await;
    let mut stage = Stage::new().await;
    let mut socket = stage.run().await;
    socket.subscribe(&["transcription:en-US"]).await;
    socket.settled().await;
    say(&mut stage.glasses, "Hey Mentra, what time is it?").await;
    answered(&mut stage.glasses).await;
    until(&mut stage.glasses, "the follow-up window", open_window).await;
    say(&mut stage.glasses, "The red queen goes home.").await;
    let (transcript, addressed) = said(&mut stage.glasses).await;
    assert!(transcript.to_lowercase().contains("queen") && !addressed, "{transcript}");
    let is_final = |message: &serde_json::Value| {
        message["streamType"] == "transcription:en-US"
            && message["data"]["isFinal"] == true
            && message["data"]["text"].as_str().is_some_and(|text| text.to_lowercase().contains("queen"))
    };
    socket.find("what was said to it", is_final).await;
    // It had no effect: the next answer is the one to the next request.
    say(&mut stage.glasses, "Hey Mentra, set a timer for ten minutes.").await;
    let answer = answered(&mut stage.glasses).await;
    assert!(answer.contains("10 minutes") || answer.contains("ten minutes"), "{answer}");
    assert!(!answer.contains("command"), "{answer}");
    until(&mut stage.glasses, "the follow-up window", open_window).await;

    // If the app no longer listens, the same words are a request after an answer.
    socket.subscribe(&["button_press"]).await;
    socket.settled().await;
    say(&mut stage.glasses, "The red queen goes home.").await;
    assert!(said(&mut stage.glasses).await.1);
}

fn open_window(event: &firmware_sim::Event) -> bool {
    matches!(&event.seen, Seen::Listening { state, .. } if state == "wake")
}

/// The final transcript, and whether it was addressed to the assistant.
async fn said(glasses: &mut firmware_sim::Glasses) -> (String, bool) {
    match until(glasses, "a transcript", |event| matches!(event.seen, Seen::Transcript { is_final: true, .. })).await {
        Seen::Transcript { text, addressed, .. } => (text, addressed),
        _ => unreachable!(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_stays_with_apps_that_may_hear() {
    let _floor = floor().await;
    let mut stage = Stage::with(|app| App { permissions: Vec::new(), ..app }).await;
    let mut socket = stage.run().await;
    socket.subscribe(&["transcription:en-US", "VAD", "audio_chunk", "button_press"]).await;
    let refused = socket.of_type("permission_error").await;
    assert_eq!(refused["details"].as_array().unwrap().len(), 3);
    say(&mut stage.glasses, "Nobody else is to hear this.").await;
    until(&mut stage.glasses, "a transcript", |event| matches!(event.seen, Seen::Transcript { is_final: true, .. }))
        .await;
    stage.glasses.press(ButtonId::Main, ButtonAction::Press).await.unwrap();
    loop {
        match socket.next().await.expect("the button") {
            Message::Binary(_) => panic!("sound came through"),
            Message::Text(text) => {
                let message: Value = serde_json::from_str(&text).unwrap();
                match message["streamType"].as_str() {
                    Some("button_press") => return,
                    Some(other) => panic!("{other} came through"),
                    None => {}
                }
            }
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_7_frames_are_routed_by_connection_and_every_layout_is_drawn() {
    let mut stage = Stage::new().await;
    let mut socket = stage.run().await;
    let layouts = [
        (json!({"layoutType": "text_wall", "text": "Milk and eggs"}), "milk and eggs"),
        (json!({"layoutType": "double_text_wall", "topText": "Upper half", "bottomText": "Lower half"}), "lower half"),
        (json!({"layoutType": "reference_card", "title": "Shopping", "text": "Four things"}), "four things"),
    ];
    for (layout, wanted) in layouts {
        socket.send(json!({"type": "display_event", "sessionId": "", "packageName": "another.app", "view": "main", "layout": layout, "durationMs": 60_000})).await;
        until(
            &mut stage.glasses,
            wanted,
            |event| matches!(&event.seen, Seen::Display { text, .. } if text.to_lowercase().contains(wanted)),
        )
        .await;
    }
    // These glasses draw text only: an image is replaced by a text that says so.
    let pixel = "Qk1CAAAAAAAAAD4AAAAoAAAAAQAAAAEAAAABAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAP///wCAAAAA";
    for layout in [
        json!({"layoutType": "bitmap_view", "data": pixel}),
        json!({"layoutType": "text_wall", "text": "between"}),
        json!({"layoutType": "bitmap_animation", "frames": [pixel, pixel], "interval": 200, "repeat": true}),
    ] {
        socket.send(json!({"type": "display_event", "view": "main", "layout": layout})).await;
        let wanted = layout["text"].as_str().unwrap_or("(picture)").to_owned();
        until(
            &mut stage.glasses,
            &wanted,
            |event| matches!(&event.seen, Seen::Display { text, .. } if text.contains(&wanted)),
        )
        .await;
    }
    socket.send(json!({"type": "display_event", "layout": {"layoutType": "clear_view"}})).await;
    until(&mut stage.glasses, "nothing", |event| matches!(&event.seen, Seen::Display { text, .. } if text.is_empty()))
        .await;
    socket.send(json!({"type": "display_event", "layout": {"layoutType": "hologram"}})).await;
    assert_eq!(socket.of_type("tpa_connection_error").await["code"], "LAYOUT_NOT_AVAILABLE");
    // Every form of a session name that SDKs send.
    socket
        .send(
            json!({"type": "rgb_led_control", "sessionId": "unknown-session-id", "requestId": "led_1", "action": "on"}),
        )
        .await;
    assert_eq!(socket.of_type("rgb_led_control_response").await["requestId"], "led_1");
    socket.send(json!({"type": "managed_stream_request", "packageName": PACKAGE, "quality": "720p"})).await;
    assert_eq!(socket.of_type("managed_stream_status").await["status"], "error");
    socket.send(json!({"type": "location_poll_request", "correlationId": "poll_1"})).await;
    let refusal = socket.of_type("tpa_connection_error").await;
    assert_eq!((&refusal["code"], &refusal["correlationId"]), (&json!("LOCATION_NOT_AVAILABLE"), &json!("poll_1")));
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_8_and_9_a_tool_is_called_after_the_acknowledgement_for_the_webhooks_user() {
    let name = "com.example.list.add_item";
    let stage = Stage::with(|mut app| {
        let spec = ToolSpec {
            name: name.into(),
            description: "Adds an item.".into(),
            input_schema: json!({"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}),
            app: Some(PACKAGE.into()),
            ..ToolSpec::default()
        };
        app.tools = vec![AppTool { local_name: "add_item".into(), spec }];
        app
    })
    .await;
    let services = stage.world.gateway().services().clone();
    let calling = tokio::spawn(async move {
        let context = super::context();
        services
            .executor
            .call(context, ToolCall { id: "1".into(), name: name.into(), arguments: json!({"item": "milk"}) })
            .await
    });
    let request = stage.app.got("session_request", 0).await.json();
    assert_eq!(stage.app.count("/tool"), 0);
    let _socket = Socket::dial(&request, PACKAGE).await;
    let call = stage.app.got("/tool", 0).await.json();
    assert_eq!(call["userId"], request["userId"]);
    assert_eq!((&call["toolId"], &call["toolParameters"]), (&json!("add_item"), &json!({"item": "milk"})));
    let result = calling.await.unwrap();
    assert!(!result.is_error(), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_14_and_16_who_is_refused_is_told_and_closed_but_never_with_1008() {
    let stage = Stage::new().await;
    let starting = stage.starting(PACKAGE);
    let request = stage.app.got("session_request", 0).await.json();
    let (url, session) = (request["mentraOSWebsocketUrl"].as_str().unwrap(), request["sessionId"].as_str().unwrap());
    let cases = [
        ("some other session", PACKAGE, "wrong", "INVALID_API_KEY"),
        ("some other session", PACKAGE, "", "INVALID_API_KEY"),
        ("some other session", PACKAGE, KEY, "SESSION_NOT_FOUND"),
        ("some other session", "com.example.other", KEY, "APP_NOT_STARTED"),
    ];
    for (session, package, key, code) in cases {
        let (ws, answer) = Socket::init(url, session, package, key).await;
        assert_eq!((&answer["type"], &answer["code"]), (&json!("tpa_connection_error"), &json!(code)));
        let closed = Socket::of(ws).closed().await.expect("a close frame");
        assert_eq!(u16::from(closed.code), 1000);
    }
    // The right socket is not affected.
    let _socket = Socket::dial(&request, PACKAGE).await;
    assert_eq!(starting.await.unwrap(), Ok(true));
    for (package, key, code) in [(PACKAGE, "wrong", "INVALID_API_KEY"), ("com.example.other", KEY, "APP_NOT_STARTED")] {
        let (_, answer) = Socket::init(url, session, package, key).await;
        assert_eq!(answer["code"], json!(code));
    }
    assert_eq!(stage.starting(PACKAGE).await.unwrap(), Ok(false), "it still runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_17_speak_is_said_by_the_glasses_and_answered_when_it_was_heard() {
    let _floor = floor().await;
    let mut stage = Stage::new().await;
    let mut socket = stage.run().await;
    let speak = |request: &str, url: &str| {
        json!({"type": "audio_play_request", "packageName": PACKAGE, "sessionId": "x", "requestId": request,
            "audioUrl": url, "volume": 1, "stopOtherAudio": true, "trackId": 2})
    };
    socket.send(speak("r1", "https://127.0.0.1:1/api/tts?text=Two+items+%26+a+bag&voice_id=v1")).await;
    let answer = socket.of_type("audio_play_response").await;
    assert_eq!((&answer["requestId"], &answer["success"]), (&json!("r1"), &json!(true)), "{answer}");
    until(
        &mut stage.glasses,
        "the speech",
        |event| matches!(&event.seen, Seen::SpeechHeard { text, complete: true, .. } if text.contains("Two items")),
    )
    .await;
    socket.send(speak("r2", "http://127.0.0.1:9/a.mp3")).await;
    let answer = socket.of_type("audio_play_response").await;
    assert_eq!((&answer["requestId"], &answer["success"]), (&json!("r2"), &json!(false)));
    // Stopped in the middle, it is answered as not played.
    let long = "one two three four five six seven eight nine ten. ".repeat(20).replace(' ', "+");
    socket.send(speak("r3", &format!("https://127.0.0.1:1/api/tts?text={long}"))).await;
    until(&mut stage.glasses, "it begins", |event| matches!(&event.seen, Seen::FirstSound { .. })).await;
    socket.send(json!({"type": "audio_stop_request", "packageName": PACKAGE, "sessionId": "x"})).await;
    let answer = socket.of_type("audio_play_response").await;
    assert_eq!((&answer["requestId"], &answer["success"]), (&json!("r3"), &json!(false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_18_stray_tls_bytes_disturb_nobody() {
    let stage = Stage::new().await;
    let mut socket = stage.run().await;
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03garbage"[..], b"\x16", b"\x16\x03\x01\x00\x02\x01\x00"]
    {
        let mut stream = tokio::net::TcpStream::connect(stage.world.web()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        drop(stream.read_to_end(&mut Vec::new()).await);
    }
    let health = reqwest::get(format!("{}/healthz", stage.base())).await.unwrap();
    assert!(health.status().is_success());
    socket.settled().await;
}
