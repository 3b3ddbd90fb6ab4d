//! Messages on an app's socket: JSON text frames, one message each, in the format of `@mentra/sdk`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::APP_SOCKET_PATH;

/// Longest text frame from an app: a bitmap of 1 MB in base64, with its envelope.
pub(crate) const FRAME_BYTES_MAX: usize = 2 * 1024 * 1024;

/// A message from an app. Unknown messages are [`FromApp::Other`]; unknown fields are ignored.
#[allow(missing_docs, reason = "the fields are those of the wire")]
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum FromApp {
    /// The first frame.
    TpaConnectionInit {
        #[serde(default)]
        session_id: String,
        #[serde(default)]
        package_name: String,
        #[serde(default)]
        api_key: String,
    },
    /// The first frame of 3.x on a reconnected socket.
    Reconnect {
        #[serde(default)]
        session_id: String,
        #[serde(default)]
        package_name: String,
        #[serde(default)]
        api_key: String,
    },
    /// The complete list of subscribed streams.
    SubscriptionUpdate {
        #[serde(default)]
        subscriptions: Vec<Subscription>,
    },
    /// Draw.
    DisplayEvent {
        #[serde(default)]
        view: Option<String>,
        layout: Value,
        #[serde(default)]
        duration_ms: Option<f64>,
        #[serde(default)]
        force_display: bool,
    },
    /// The app's line of the dashboard.
    DashboardContentUpdate {
        #[serde(default)]
        content: Value,
        /// Its views: `main`, `expanded`, or both. None: `main`.
        #[serde(default)]
        modes: Option<Vec<String>>,
    },
    /// For MentraOS' own dashboard app only.
    DashboardModeChange {},
    /// Likewise.
    DashboardSystemUpdate {},
    /// Play a sound or, with a URL of the gateway, speak.
    AudioPlayRequest {
        request_id: String,
        audio_url: String,
        #[serde(default)]
        volume: Option<f32>,
        #[serde(default)]
        stop_other_audio: bool,
        #[serde(default)]
        track_id: Option<f32>,
    },
    /// Stop what it plays, or one track of it.
    AudioStopRequest {
        #[serde(default)]
        track_id: Option<f32>,
    },
    /// 3.x: pieces of sound follow as binary frames.
    AudioStreamStart { stream_id: String },
    /// 3.x: no more pieces follow.
    AudioStreamEnd { stream_id: String },
    /// Take a photo.
    PhotoRequest {
        request_id: String,
        #[serde(default)]
        save_to_gallery: bool,
        #[serde(default)]
        custom_webhook_url: Option<String>,
        #[serde(default)]
        auth_token: Option<String>,
    },
    /// Request the wearer's location.
    LocationPollRequest {
        #[serde(default)]
        correlation_id: String,
    },
    /// The LED of the frame.
    RgbLedControl {
        #[serde(default)]
        request_id: String,
    },
    /// The camera's field of view, for 3.x.
    CameraFovSet {},
    /// Start streaming video to an address.
    RtmpStreamRequest {},
    /// The end of it.
    RtmpStreamStop {},
    /// The same in 3.x.
    StreamRequest {},
    /// Likewise.
    StreamStop {},
    /// Start streaming video through a server.
    ManagedStreamRequest {},
    /// The end of it.
    ManagedStreamStop {},
    /// Request the state of video streams.
    StreamStatusCheck {
        #[serde(default)]
        request_id: Option<String>,
    },
    /// Ask the wearer to set up WiFi for the glasses.
    RequestWifiSetup {},
    /// Send to all users of this app.
    #[serde(alias = "tpa_broadcast_message")]
    AppBroadcastMessage {},
    /// Send to one of them.
    #[serde(alias = "tpa_direct_message")]
    AppDirectMessage {
        #[serde(default)]
        message_id: String,
        #[serde(default)]
        target_user_id: String,
    },
    /// Request the other users of this app.
    #[serde(alias = "tpa_user_discovery")]
    AppUserDiscovery {},
    /// Join a room of users.
    #[serde(alias = "tpa_room_join")]
    AppRoomJoin {},
    /// Leave that room again.
    #[serde(alias = "tpa_room_leave")]
    AppRoomLeave {},
    /// Give up the session.
    OwnershipRelease {
        #[serde(default)]
        reason: String,
    },
    /// Heartbeat of 3.x.
    Ping {},
    /// Anything else.
    #[serde(other)]
    Other,
}

/// One item of a subscription list.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Subscription {
    /// Its name alone.
    Name(String),
    /// A name with options.
    Rated {
        /// Name of the stream.
        stream: String,
    },
}

impl Subscription {
    /// The name, byte for byte.
    pub(crate) fn into_name(self) -> String {
        match self {
            Self::Name(name) | Self::Rated { stream: name } => name,
        }
    }
}

/// Wall time in the apps' format.
pub(crate) fn time(wall_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(wall_ms).map_or_else(|_| String::new(), |at| format!("{at:.3}"))
}

/// The webhook's body. Both URL keys: 2.x and 3.x read the first, 1.x knows only the second.
pub(crate) fn session_request(session: &str, user: &str, url: &str, wall_ms: i64) -> Value {
    let old =
        url.strip_suffix(APP_SOCKET_PATH).map_or_else(|| url.to_owned(), |base| format!("{base}{}", super::PATH_OLD));
    json!({
        "type": "session_request",
        "sessionId": session,
        "userId": user,
        "timestamp": time(wall_ms),
        "mentraOSWebsocketUrl": url,
        "augmentOSWebsocketUrl": old,
    })
}

/// The webhook's body for stopping an app.
pub(crate) fn stop_request(session: &str, user: &str, reason: &str, wall_ms: i64) -> Value {
    json!({
        "type": "stop_request",
        "sessionId": session,
        "userId": user,
        "reason": reason,
        "timestamp": time(wall_ms),
    })
}

/// The answer to the first frame. `system`: the gateway's settings.
pub(crate) fn connection_ack(
    session: &str,
    settings: &[Value],
    system: &Value,
    capabilities: &Value,
    wall_ms: i64,
) -> Value {
    json!({
        "type": "tpa_connection_ack",
        "sessionId": session,
        "settings": settings,
        "mentraosSettings": system,
        "augmentosSettings": system,
        "capabilities": capabilities,
        "timestamp": time(wall_ms),
    })
}

/// An error and its reason. The socket stays open.
pub(crate) fn error(code: &str, message: &str, wall_ms: i64) -> Value {
    json!({"type": "tpa_connection_error", "code": code, "message": message, "timestamp": time(wall_ms)})
}

/// Rejects a reconnected socket of 3.x, which then does not retry.
pub(crate) fn reconnect_rejected(message: &str, wall_ms: i64) -> Value {
    json!({"type": "reconnect_rejected", "code": "NOT_RUNNING", "message": message, "timestamp": time(wall_ms)})
}

/// A stream that the app's permissions do not cover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Denied {
    /// As the app has named it.
    pub stream: String,
    /// The permission that the app's manifest must request.
    pub required_permission: &'static str,
    /// As text.
    pub message: String,
}

/// Streams that the app's permissions do not cover.
pub(crate) fn permission_error(details: &[Denied], wall_ms: i64) -> Value {
    json!({
        "type": "permission_error",
        "message": "some subscriptions need permissions that the app's manifest does not ask for",
        "details": details,
        "timestamp": time(wall_ms),
    })
}

/// Data of a stream, under the exact name of the app's subscription.
pub(crate) fn data_stream(session: &str, stream: &str, data: Map<String, Value>, wall_ms: i64) -> Value {
    let mut data = data;
    data.insert("timestamp".to_owned(), time(wall_ms).into());
    json!({
        "type": "data_stream",
        "sessionId": session,
        "streamType": stream,
        "data": data,
        "timestamp": time(wall_ms),
    })
}

/// The two messages about changed settings. The first one makes 2.x forget the gateway's settings, so the second always
/// follows.
pub(crate) fn settings_update(
    package: &str,
    session: &str,
    settings: &[Value],
    system: &Value,
    wall_ms: i64,
) -> [Value; 2] {
    [
        json!({
            "type": "settings_update",
            "packageName": package,
            "sessionId": session,
            "settings": settings,
            "timestamp": time(wall_ms),
        }),
        json!({
            "type": "augmentos_settings_update",
            "sessionId": session,
            "settings": system,
            "timestamp": time(wall_ms),
        }),
    ]
}

/// The result of an `audio_play_request`: the length of a file in seconds, or why it was not played.
pub(crate) fn audio_play_response(request: &str, outcome: Result<Option<f64>, &str>) -> Value {
    let mut answer = json!({"type": "audio_play_response", "requestId": request, "success": outcome.is_ok()});
    let told = match outcome {
        Ok(seconds) => seconds.map(|seconds| ("duration", seconds.into())),
        Err(error) => Some(("error", error.into())),
    };
    if let (Some((name, value)), Some(fields)) = (told, answer.as_object_mut()) {
        fields.insert(name.to_owned(), value);
    }
    answer
}

/// The result of a photo, for 3.x, which expects it as a message: the picture is a data URL.
pub(crate) fn photo_response(request: &str, outcome: Result<&str, &str>, kept: bool, wall_ms: i64) -> Value {
    let mut answer = json!({
        "type": "photo_response",
        "requestId": request,
        "success": outcome.is_ok(),
        "savedToGallery": outcome.is_ok() && kept,
        "timestamp": time(wall_ms),
    });
    let (name, value) = match outcome {
        Ok(url) => ("photoUrl", url.into()),
        Err(why) => ("error", json!({"code": "PHOTO_FAILED", "message": why})),
    };
    if let Some(fields) = answer.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_1_and_2_both_urls_and_both_paths() {
        let body = session_request("s-1", "ann", "ws://127.0.0.1:8460/app-ws", 1_795_297_645_144);
        assert_eq!(body["mentraOSWebsocketUrl"], "ws://127.0.0.1:8460/app-ws");
        assert_eq!(body["augmentOSWebsocketUrl"], "ws://127.0.0.1:8460/tpa-ws");
        assert_eq!(body["timestamp"], "2026-11-21T21:47:25.144Z");
        assert_eq!((&body["sessionId"], &body["userId"]), (&json!("s-1"), &json!("ann")));
    }

    #[test]
    fn rule_4_both_settings_in_the_acknowledgement() {
        let system = json!({"metricSystemEnabled": true});
        let ack = connection_ack("s", &[json!({"key": "k", "value": 1})], &system, &json!({"hasDisplay": true}), 0);
        assert_eq!(ack["mentraosSettings"], system);
        assert_eq!(ack["augmentosSettings"], system);
        assert_eq!(ack["settings"][0]["value"], 1);
        assert_eq!(ack["capabilities"]["hasDisplay"], true);
    }

    #[test]
    fn what_published_apps_send_is_understood() {
        let parse = |text: &str| serde_json::from_str::<FromApp>(text).unwrap();
        let text = r#"{"timestamp":"2026-11-21T21:47:26.044Z","sessionId":"","type":"display_event","packageName":"a","view":"main","layout":{"layoutType":"text_wall","text":"x"},"durationMs":5000}"#;
        assert!(matches!(parse(text), FromApp::DisplayEvent { duration_ms: Some(5000.0), force_display: false, .. }));
        let text = r#"{"type":"subscription_update","packageName":"a","subscriptions":["transcription:fr-FR?hints=en%2Cja",{"stream":"location_stream","rate":"realtime"}],"sessionId":"s"}"#;
        let FromApp::SubscriptionUpdate { subscriptions } = parse(text) else { panic!() };
        let names: Vec<String> = subscriptions.into_iter().map(Subscription::into_name).collect();
        assert_eq!(names, ["transcription:fr-FR?hints=en%2Cja", "location_stream"]);
        assert_eq!(parse(r#"{"type":"app_of_tomorrow","roomId":"r"}"#), FromApp::Other);
        assert_eq!(parse(r#"{"type":"tpa_room_join","roomId":"r"}"#), FromApp::AppRoomJoin {});
        let stop = FromApp::AudioStopRequest { track_id: Some(2.0) };
        assert_eq!(parse(r#"{"type":"audio_stop_request","trackId":2}"#), stop);
        let text = r#"{"type":"audio_play_request","requestId":"r","audioUrl":"http://a/b.mp3","volume":0.5,"stopOtherAudio":true,"trackId":1}"#;
        assert!(matches!(
            parse(text),
            FromApp::AudioPlayRequest { volume: Some(0.5), stop_other_audio: true, track_id: Some(1.0), .. }
        ));
    }

    #[test]
    fn what_came_of_a_sound_and_of_a_photo() {
        let wanted = json!({"type": "audio_play_response", "requestId": "r", "success": true, "duration": 1.5});
        assert_eq!(audio_play_response("r", Ok(Some(1.5))), wanted);
        assert_eq!(audio_play_response("r", Ok(None)).get("duration"), None);
        assert_eq!(audio_play_response("r", Err("no"))["error"], "no");
        let failed = photo_response("r", Err("no camera"), true, 0);
        assert_eq!((&failed["success"], &failed["savedToGallery"]), (&json!(false), &json!(false)));
        assert_eq!(failed["error"]["message"], "no camera");
    }

    #[test]
    fn every_frame_of_the_recorded_kinds_parses() {
        for kind in ["rgb_led_control", "rtmp_stream_request", "managed_stream_request", "ping", "stream_status_check"]
        {
            let text = format!(r#"{{"type":"{kind}","packageName":"a","sessionId":"unknown-session-id"}}"#);
            assert_ne!(serde_json::from_str::<FromApp>(&text).unwrap(), FromApp::Other, "{kind}");
        }
    }
}
