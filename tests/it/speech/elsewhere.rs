//! Recognition at a server and speech by a program, through a running gateway: while they answer, and when they stop to.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

use audio::{models, tts::Voice, wav};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request as HttpRequest, Response, StatusCode, body::Incoming};

use super::ear;
use crate::{
    http,
    world::{USER, World, answered, floor, pause, say, text, understood},
};

/// What the server understands, whatever is said.
const UNDERSTOOD: &str = "Hey Mentra, what is twelve times three?";
/// What is really said.
const SAID: &str = "Hey Mentra, set a timer for ten minutes.";

/// What the server understands where it is told that German is spoken.
const UNDERSTOOD_IN_GERMAN: &str = "Hey Mentra, was ist zwölf mal drei?";

/// A server that recognises the same sentence in every sound, until it is dead.
#[derive(Clone, Default)]
struct Server {
    dead: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
}

/// Whether a form has this language.
fn is_in(body: &[u8], language: &str) -> bool {
    let field = format!("name=\"language\"\r\n\r\n{language}\r\n");
    body.windows(field.len()).any(|window| window == field.as_bytes())
}

impl Server {
    async fn start() -> (Self, String) {
        let (listener, address) = http::bind().await;
        let server = Self::default();
        let answering = server.clone();
        http::serve(listener, move |request| {
            let server = answering.clone();
            async move { server.answer(request).await }
        });
        (server, format!("http://{address}/v1"))
    }

    async fn answer(&self, request: HttpRequest<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.expect("a body").to_bytes();
        let is_sound = path == "/v1/audio/transcriptions" && body.windows(4).any(|window| window == b"WAVE");
        self.requests.fetch_add(1, Relaxed);
        let (status, answer) = match (is_sound, self.dead.load(Relaxed)) {
            (false, _) => (StatusCode::NOT_FOUND, String::new()),
            (true, true) => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
            (true, false) => {
                let text = if is_in(&body, "de") { UNDERSTOOD_IN_GERMAN } else { UNDERSTOOD };
                (StatusCode::OK, serde_json::json!({ "text": text }).to_string())
            }
        };
        let mut response = Response::new(Full::new(Bytes::from(answer)));
        *response.status_mut() = status;
        response
    }
}

async fn metrics(world: &World) -> String {
    let url = format!("http://{}/metrics", world.web());
    reqwest::get(url).await.expect("an answer").text().await.expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_recognises_instead_and_when_it_dies_the_box_does() {
    let _floor = floor().await;
    let (server, url) = Server::start().await;
    let remote = format!("remote = {{ base_url = \"{url}\", model = \"m\", use = \"instead\", timeout_ms = 9000 }}");
    let world = World::with(&format!("[hearing]\n{remote}\n")).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    say(&mut glasses, SAID).await;
    assert!(understood(&mut glasses).await.contains("twelve times three"));
    assert!(answered(&mut glasses).await.contains("36"));
    pause(&glasses).await;

    server.dead.store(true, Relaxed);
    say(&mut glasses, SAID).await;
    let transcript = understood(&mut glasses).await;
    assert!(transcript.contains("timer") && !transcript.contains("twelve"), "{transcript}");
    assert!(answered(&mut glasses).await.contains("ten minutes"));

    let metrics = metrics(&world).await;
    for outcome in ["answered", "failed"] {
        let sample = format!(
            "lorgnette_engine_requests_total{{part=\"recognition\",place=\"elsewhere\",outcome=\"{outcome}\"}} "
        );
        let count = metrics.lines().find_map(|line| line.strip_prefix(&sample));
        assert!(count.is_some_and(|count| count != "0"), "{sample} in\n{metrics}");
    }
    for series in [
        "lorgnette_engine_seconds{part=\"recognition\",place=\"elsewhere\",quantile=\"0.5\"}",
        "lorgnette_engine_rests",
    ] {
        assert!(metrics.contains(series), "{series} in\n{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_box_without_weights_has_everything_recognised_at_the_server() {
    let _floor = floor().await;
    let (server, url) = Server::start().await;
    let hearing = format!(
        "[hearing]\nmodel = \"/nonexistent/weights.bin\"\nsecond_model = \"\"\n\
         remote = {{ base_url = \"{url}\", model = \"m\", use = \"fallback\" }}\n"
    );
    let world = World::with(&hearing).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    say(&mut glasses, SAID).await;
    assert!(understood(&mut glasses).await.contains("twelve times three"));
    assert!(answered(&mut glasses).await.contains("36"));
    assert!(server.requests.load(Relaxed) >= 1);
    let metrics = metrics(&world).await;
    assert!(!metrics.contains("part=\"recognition\",place=\"here\""), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_a_language_of_his_own_is_heard_and_read_in_it() {
    let _floor = floor().await;
    let (_server, url) = Server::start().await;
    let hearing = |user: &str| {
        format!(
            "[hearing]\nlanguages = {{ {user} = \"de\" }}\n\
             remote = {{ base_url = \"{url}\", model = \"m\", use = \"instead\", timeout_ms = 9000 }}\n"
        )
    };
    // The glasses say that they speak English.
    for (user, heard, is_german) in [(USER, "zwölf mal drei", true), ("somebody", "twelve times three", false)] {
        let world = World::with(&hearing(user)).await;
        let mut glasses = world.glasses("wss", "glasses").await;
        say(&mut glasses, SAID).await;
        let transcript = understood(&mut glasses).await;
        assert!(transcript.contains(heard), "{transcript}");
        assert!(answered(&mut glasses).await.contains("36"));
        pause(&glasses).await;
        glasses.forget();
        text(&mut glasses, "wie spät ist es").await;
        let answer = answered(&mut glasses).await;
        assert_eq!(answer.contains("it's "), is_german, "{answer}");
    }
}

/// A recording of a sentence that the gateway never says by itself.
fn record(file: &Path) {
    let voice = Voice::load(&models::default_dir().join("hibari")).expect("the voice");
    let pcm = voice.synthesize("The yellow banana fell into the river.", 1.0).expect("sound");
    wav::write(file, &pcm, Voice::RATE_HZ).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_speaks_and_when_it_fails_the_own_voice_does() {
    let _floor = floor().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("banana.wav");
    record(&file);
    let script = format!("cat > /dev/null; exec cat {}", file.display());
    let world =
        World::with(&format!("[voice]\nother = {{ command = [\"sh\", \"-c\", {script:?}], use = \"all\" }}\n")).await;
    let mut glasses = world.glasses("wss", "glasses").await;
    text(&mut glasses, "what is twelve times three").await;
    assert!(answered(&mut glasses).await.contains("36"));
    let sound = ear::heard(&glasses.heard());
    assert!(sound.contains("banana") && !sound.contains("36"), "{sound}");

    std::fs::remove_file(&file).expect("removed");
    let before = glasses.heard().len();
    text(&mut glasses, "what is twelve times three").await;
    assert!(answered(&mut glasses).await.contains("36"));
    let sound = ear::heard(&glasses.heard()[before..]);
    assert!(["36", "thirty-six", "thirty six"].iter().any(|word| sound.contains(word)), "{sound}");
    let elsewhere = metrics(&world).await;
    for line in [
        "lorgnette_engine_requests_total{part=\"speech\",place=\"elsewhere\",outcome=\"answered\"} 1",
        "lorgnette_engine_requests_total{part=\"speech\",place=\"elsewhere\",outcome=\"failed\"} 1",
    ] {
        assert!(elsewhere.lines().any(|other| other == line), "{line} in\n{elsewhere}");
    }
}
