//! HTTP requests of apps, photos, and settings.

use device_protocol::{Decoded, Down, Frame, Sensors, Up, decode_down, up};
use firmware_sim::{Seen, identity::Identity};
use gateway::{
    control::{Request, apps::AppsRequest, memory},
    store::{Kind, Store},
};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tools::apps::manifest::App;

use super::fake::{KEY, PACKAGE, Stage};
use crate::{
    durability::power,
    peer::Peer,
    process::Process,
    world::{USER, ask, connect, until},
};

async fn json_of(response: reqwest::Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or(Value::Null)
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_19_simple_storage_and_what_else_apps_ask() {
    let stage = Stage::new().await;
    let socket = stage.run().await;
    let client = Client::new();
    let bearer = format!("{PACKAGE}:{KEY}");
    // 2.x removes `/app-ws` from its URL; 1.x removes `/tpa-ws`, or keeps an unknown suffix.
    for base in [stage.base(), format!("{}/app-ws", stage.base()), format!("{}/tpa-ws", stage.base())] {
        let url = format!("{base}/api/sdk/simple-storage/{USER}");
        let put = |url: String, body: Value| client.put(url).bearer_auth(&bearer).json(&body).send();
        let read = || async { json_of(client.get(&url).bearer_auth(&bearer).send().await.unwrap()).await };
        assert_eq!(put(url.clone(), json!({"data": {"k": "v1", "n": 7}})).await.unwrap().status(), StatusCode::OK);
        assert_eq!(put(format!("{url}/a%2Fb"), json!({"value": "v2"})).await.unwrap().status(), StatusCode::OK);
        assert_eq!(read().await, json!({"success": true, "data": {"k": "v1", "n": 7, "a/b": "v2"}}));
        client.delete(format!("{url}/k")).bearer_auth(&bearer).send().await.unwrap();
        assert_eq!(read().await["data"], json!({"n": 7, "a/b": "v2"}));
        client.delete(&url).bearer_auth(&bearer).send().await.unwrap();
        assert_eq!(read().await["data"], json!({}));
        // Requests without the app's key neither read nor write anything.
        for wrong in ["", "x", &format!("{PACKAGE}:wrong"), &format!("com.example.other:{KEY}")] {
            let answer = client.get(&url).bearer_auth(wrong).send().await.unwrap();
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{wrong}");
        }
    }
    let url = format!("{}/api/sdk/simple-storage/{USER}", stage.base());
    let put = |body: String| client.put(&url).bearer_auth(&bearer).body(body).send();
    let large = "x".repeat(100_001);
    assert_eq!(put(json!({"data": {"k": large}}).to_string()).await.unwrap().status(), StatusCode::BAD_REQUEST);
    let many: serde_json::Map<String, Value> =
        (0..12).map(|at| (format!("k{at}"), json!("x".repeat(90_000)))).collect();
    let answer = put(json!({"data": many}).to_string()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    for nonsense in ["", "[]", "{\"data\": 3}", "{"] {
        assert_eq!(put(nonsense.into()).await.unwrap().status(), StatusCode::BAD_REQUEST, "{nonsense}");
    }
    // Whether there is such a user, for whom the app has not run, cannot be told.
    let mut ring = stage.world.options("ws", "ring");
    ring.profile.display = None;
    let fingerprint = Identity::load_or_make(&ring.state).unwrap().fingerprint();
    let request = Request::PairFingerprint { fingerprint, user: "somebody".into(), name: String::new() };
    stage.world.ask(request).await.unwrap();
    let _ring = stage.world.connect(ring).await;
    let mut told = Vec::new();
    for user in ["somebody", "nobody"] {
        let url = format!("{}/api/sdk/simple-storage/{user}", stage.base());
        let read = client.get(&url).bearer_auth(&bearer).send().await.unwrap();
        let put = client.put(&url).bearer_auth(&bearer).body(r#"{"data": {"k": 1}}"#).send().await.unwrap();
        assert_eq!((read.status(), put.status()), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND), "{user}");
        told.push((json_of(read).await, json_of(put).await));
    }
    assert_eq!(told[0], told[1]);

    let settings = format!("{}/appsettings/user/{PACKAGE}", stage.base());
    let answer = client.get(&settings).bearer_auth(&socket.session).send().await.unwrap();
    assert_eq!(json_of(answer).await["settings"], json!([]));
    assert_eq!(client.get(&settings).bearer_auth("guess").send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    let permissions = client.get(format!("{}/api/public/permissions/{PACKAGE}", stage.base())).send().await.unwrap();
    let wanted = json!({"packageName": PACKAGE, "permissions": [{"type": "MICROPHONE"}]});
    assert_eq!(json_of(permissions).await, wanted);
}

/// Keys of the `PUT` that is killed.
const KEYS: usize = 500;

/// The gateway is killed when the first commit of a `PUT` of many keys is on the disk: all of them are there then.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_app_stores_at_once_is_there_whole_or_not_at_all_after_kill_9() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let library = power::compile(folder.path(), power::FORGETFUL).display().to_string();
    let journal = folder.path().join("data.journal");
    let shown = journal.display().to_string();
    let gateway = Process::start(&data, "", &[("LD_PRELOAD", &library), ("JOURNAL", &shown)]).await;
    drop(connect(&data, gateway.options()).await);
    let manifest = json!({"packageName": PACKAGE, "name": "List", "description": "Lists.", "version": "1",
        "publicUrl": "http://127.0.0.1:1", "settings": [], "permissions": []});
    super::install(&data, manifest.to_string(), "http://127.0.0.1:1".to_owned(), KEY).await;
    // Nobody answers there; but from now on the app has something to do with this user.
    let request = AppsRequest::Start { package: PACKAGE.to_owned(), user: USER.to_owned() };
    drop(ask(&data, Request::Apps { request }).await);
    let url = format!("http://{}/api/sdk/simple-storage/{USER}", gateway.web);
    let put = |generation: u32| {
        let values: serde_json::Map<String, Value> =
            (0..KEYS).map(|at| (format!("k{at}"), json!(generation))).collect();
        let request = Client::new().put(&url).bearer_auth(format!("{PACKAGE}:{KEY}"));
        request.json(&json!({ "data": values })).send()
    };
    assert_eq!(put(1).await.unwrap().status(), StatusCode::OK);
    let synced = || power::counts(&journal).1;
    let before = synced();
    let second = tokio::spawn(put(2));
    while synced() == before && !second.is_finished() {
        tokio::task::yield_now().await;
    }
    gateway.kill().await;
    second.abort();
    let store = Store::open(&data.join("store"), 64).unwrap();
    let rows = store.disk().rows(Kind::AppStorage, USER, b"", KEYS + 1).unwrap();
    let changed = rows.iter().filter(|(_, value)| value == b"2").count();
    assert!(rows.len() == KEYS && (changed == 0 || changed == KEYS), "{changed} of {}", rows.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_app_began_to_store_before_an_erasure_is_not_stored_after_it() {
    let stage = Stage::new().await;
    let _socket = stage.run().await;
    let body = json!({"value": "of the time before"}).to_string();
    let mut stream = TcpStream::connect(stage.world.web()).await.unwrap();
    let head = format!(
        "PUT /api/sdk/simple-storage/{USER}/k HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {PACKAGE}:{KEY}\r\n\
         content-length: {}\r\nexpect: 100-continue\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The gateway sends this when it begins to read the body.
    let mut went_on = [0; b"HTTP/1.1 100 Continue\r\n\r\n".len()];
    stream.read_exact(&mut went_on).await.unwrap();
    assert!(went_on.starts_with(b"HTTP/1.1 100"), "{}", String::from_utf8_lossy(&went_on));
    let request = memory::MemoryRequest::EraseUser { user: USER.into(), devices: false };
    stage.world.ask(Request::Memory { request }).await.unwrap();
    drop(stream.write_all(body.as_bytes()).await);
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer).await);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let store = &stage.world.gateway().services().store;
    store.settled().await.unwrap();
    assert!(store.disk().rows(Kind::AppStorage, USER, b"", 9).unwrap().is_empty(), "{answer}");
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("being erased"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_4_changed_settings_are_told_and_those_of_mentraos_follow() {
    let stage = Stage::with(|app| App {
        settings: vec![json!({"key": "lang", "type": "text", "label": "Lang", "defaultValue": "en"})],
        ..app
    })
    .await;
    let mut socket = stage.run().await;
    let set = |key: &str, value: Value| Request::Apps {
        request: AppsRequest::Set { package: PACKAGE.into(), user: USER.into(), key: key.into(), value },
    };
    stage.world.ask(set("lang", json!("fr"))).await.unwrap();
    let told = socket.of_type("settings_update").await;
    assert_eq!(told["settings"][0]["value"], "fr");
    let behind = match socket.next().await {
        Some(tokio_tungstenite::tungstenite::Message::Text(text)) => serde_json::from_str::<Value>(&text).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(behind["type"], "augmentos_settings_update");
    assert_eq!(behind["settings"]["metricSystemEnabled"], true);
    let refused = stage.world.ask(set("speed", json!(1))).await.unwrap_err();
    assert!(refused.contains("lang"), "{refused}");
    // The next session begins with this setting.
    drop(socket);
    let request = stage.app.got("session_request", 1).await.json();
    let again = super::fake::Socket::dial(&request, PACKAGE).await;
    assert_eq!(again.ack["settings"][0]["value"], "fr");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_photo_is_taken_by_the_glasses_and_delivered_to_the_app() {
    let mut stage = Stage::with(|app| App { permissions: vec!["CAMERA".into()], ..app }).await;
    let mut socket = stage.run().await;
    let ask = |request: &str| {
        json!({"type": "photo_request", "packageName": PACKAGE, "sessionId": "x",
        "requestId": request, "saveToGallery": false, "size": "small", "compress": "none"})
    };
    socket.send(ask("photo_1")).await;
    let upload = stage.app.got("/photo-upload", 0).await;
    let contains = |wanted: &[u8]| upload.body.windows(wanted.len()).any(|part| part == wanted);
    assert!(contains(b"photo_1") && contains(b"\x89PNG") && contains(b"name=\"photo\"; filename=\"photo.png\""));
    assert!(contains(b"image/png") && contains(b"photo_upload"));
    until(&mut stage.glasses, "the camera", |event| matches!(&event.seen, Seen::ToolCalled { .. })).await;
    let kept = stage.world.data().join("photos");
    assert!(!kept.exists(), "the wearer did not want it in the gallery");
    // Photos are not sent to other hosts.
    let mut elsewhere = ask("photo_2");
    elsewhere["customWebhookUrl"] = json!("http://127.0.0.1:9/steal");
    socket.send(elsewhere).await;
    assert_eq!(socket.of_type("tpa_connection_error").await["code"], "PERMISSION_DENIED");
}

/// The wearer presses the button while the glasses take a picture for an app.
#[tokio::test(flavor = "multi_thread")]
async fn a_photo_goes_to_the_app_whose_call_it_belongs_to() {
    let stage = Stage::with(|app| App { permissions: vec!["CAMERA".into()], ..app }).await;
    let mut glasses = Peer::connect(&stage.world, "ws", "glasses").await;
    glasses.capabilities.sensors = Sensors::CAMERA;
    glasses.shake().await;
    let mut socket = stage.run().await;
    socket.send(json!({"type": "photo_request", "requestId": "photo_1", "saveToGallery": false})).await;
    let call = called_camera(&mut glasses).await;
    for (photo, call, payload) in [(1, 0, b"of the button"), (2, call, b"for that call")] {
        let mime = "image/jpeg";
        let chunk = up::PhotoChunk { photo, call, index: 0, last: true, mime, payload };
        glasses.control(Up::PhotoChunk(chunk)).await;
    }
    let result = up::ToolResult { call, ok: true, content: "", data: r#"{"photo": 2}"#, error: "" };
    glasses.control(Up::ToolResult(result)).await;
    let upload = stage.app.got("/photo-upload", 0).await;
    let contains = |wanted: &[u8]| upload.body.windows(wanted.len()).any(|part| part == wanted);
    assert!(contains(b"for that call") && !contains(b"of the button"), "{}", String::from_utf8_lossy(&upload.body));
    // The wearer's own one is in the gallery, and no other.
    assert_eq!(gallery_with(&stage, b"of the button").await.len(), 1);
}

/// The call is over when its photo comes, and nobody waits for it any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_photo_that_is_not_to_be_kept_is_not_stored_behind_its_call_either() {
    let stage = Stage::with(|app| App { permissions: vec!["CAMERA".into()], ..app }).await;
    let mut glasses = Peer::connect(&stage.world, "ws", "glasses").await;
    glasses.capabilities.sensors = Sensors::CAMERA;
    glasses.shake().await;
    let mut socket = stage.run().await;
    let mut calls = Vec::new();
    for (request, keep) in [("photo_1", false), ("photo_2", true)] {
        socket.send(json!({"type": "photo_request", "requestId": request, "saveToGallery": keep})).await;
        let call = called_camera(&mut glasses).await;
        let result = up::ToolResult { call, ok: true, content: "", data: "", error: "" };
        glasses.control(Up::ToolResult(result)).await;
        calls.push(call);
    }
    let unknown = calls[1] + 1_000;
    let photos: [(u32, &[u8]); 4] =
        [(calls[0], b"looked at"), (unknown, b"of no call"), (calls[1], b"kept"), (0, b"of the button")];
    for (photo, (call, payload)) in (1..).zip(photos) {
        let chunk = up::PhotoChunk { photo, call, index: 0, last: true, mime: "image/jpeg", payload };
        glasses.control(Up::PhotoChunk(chunk)).await;
    }
    // They are stored in the order in which they come.
    let mut stored = gallery_with(&stage, b"of the button").await;
    stored.sort();
    assert_eq!(stored, [&b"kept"[..], b"of the button"]);
}

/// The glasses do not know that a piece of it is missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_photo_that_lacks_a_piece_is_not_told_to_be_taken() {
    let stage = Stage::with(|app| App { permissions: vec!["CAMERA".into()], ..app }).await;
    let mut glasses = Peer::connect(&stage.world, "ws", "glasses").await;
    glasses.capabilities.sensors = Sensors::CAMERA;
    glasses.shake().await;
    let mut socket = stage.run().await;
    socket.send(json!({"type": "photo_request", "requestId": "photo_1", "saveToGallery": false})).await;
    let call = called_camera(&mut glasses).await;
    for (index, last) in [(0, false), (2, true)] {
        let chunk = up::PhotoChunk { photo: 1, call, index, last, mime: "image/jpeg", payload: b"a piece" };
        glasses.control(Up::PhotoChunk(chunk)).await;
    }
    let result = up::ToolResult { call, ok: true, content: "Taken.", data: r#"{"photo": 1}"#, error: "" };
    glasses.control(Up::ToolResult(result)).await;
    let upload = stage.app.got("/photo-upload", 0).await;
    let body = String::from_utf8_lossy(&upload.body);
    assert!(body.contains("photo_error") && body.contains("not all of it came"), "{body}");
}

/// The number of the next call of the glasses' camera.
async fn called_camera(glasses: &mut Peer) -> u32 {
    loop {
        let bytes = glasses.receive().await.expect("a call");
        if let Ok(Decoded::Frame(Frame { message: Down::ToolCall(call), .. })) = decode_down(&bytes) {
            assert_eq!(call.name, "camera.photo");
            return call.call;
        }
    }
}

/// The wearer's stored photos, once this one is among them.
async fn gallery_with(stage: &Stage, photo: &[u8]) -> Vec<Vec<u8>> {
    let gallery = stage.world.data().join("photos").join(USER);
    loop {
        let files: Vec<_> = std::fs::read_dir(&gallery).into_iter().flatten().flatten().collect();
        let stored = files.iter().filter_map(|file| std::fs::read(file.path()).ok()).collect::<Vec<_>>();
        if stored.iter().any(|bytes| bytes == photo) {
            return stored;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_may_not_see_gets_no_photo() {
    let stage = Stage::new().await;
    let mut socket = stage.run().await;
    socket.send(json!({"type": "photo_request", "requestId": "photo_1"})).await;
    let refusal = socket.of_type("tpa_connection_error").await;
    assert_eq!(refusal["code"], "PERMISSION_DENIED");
    socket.settled().await;
    assert_eq!(stage.app.count("/photo-upload"), 0);
}
