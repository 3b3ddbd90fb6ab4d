//! Recognition and speech at a server: requests as the API's reference has them, and hostile answers.

mod common;

use std::time::Duration;

use chat_models::{
    audio_api::{AudioApi, Failed, Settings, Sound, SoundForm, Speech, Transcript},
    auth::Key,
    http::SetupError,
};
use common::server::{Act, Server, serve, status};

const KEY: &str = "sk-planted-123";

fn api(server: &Server, deadline: Duration) -> AudioApi {
    drop(rustls::crypto::ring::default_provider().install_default());
    let key = Key::new(KEY).expect("a key");
    let (base_url, model) = (server.url.clone(), "some-model".to_owned());
    AudioApi::new(Settings { base_url, model, key: Some(key), deadline }).expect("a client")
}

fn transcript(text: &str, language: Option<&str>) -> Transcript {
    Transcript { text: text.to_owned(), language: language.map(str::to_owned) }
}

/// Whether a request wants its answer in this form.
fn is_asked_for(request: &str, form: &str) -> bool {
    request.contains(&format!("name=\"response_format\"\r\n\r\n{form}\r\n"))
}

const PATIENT: Duration = Duration::from_secs(60);
const BRIEF: Duration = Duration::from_secs(1);

fn speech(form: SoundForm) -> Speech<'static> {
    Speech { text: "Guten Tag.", voice: Some("anna"), speed: 1.25, form }
}

#[tokio::test]
async fn requests_are_those_of_the_reference() {
    let server = serve(vec![
        status("200 OK", "content-type: application/json\r\n", r#"{"text": "What time is it?"}"#),
        status("200 OK", "content-type: application/json\r\n", r#"{"text": "Hello.", "language": "english"}"#),
        status("200 OK", "content-type: audio/pcm\r\n", "abcd"),
        status("200 OK", "content-type: audio/wav\r\n", "RIFF"),
    ])
    .await;
    let api = api(&server, PATIENT);
    let heard = api.transcribe(b"RIFF-planted".to_vec(), Some("de"), "Hey Mentra, good morning.").await;
    assert_eq!(heard, Ok(transcript("What time is it?", None)));
    assert_eq!(api.transcribe(vec![0], None, "").await, Ok(transcript("Hello.", Some("english"))));
    assert_eq!(api.speak(speech(SoundForm::Pcm)).await, Ok(Sound::Samples(b"abcd".to_vec())));
    let plain = Speech { voice: None, speed: 1.0, ..speech(SoundForm::Wav) };
    assert_eq!(api.speak(plain).await, Ok(Sound::File(b"RIFF".to_vec())));

    let asked = server.requests.lock().expect("unpoisoned").clone();
    assert!(asked.iter().all(|asked| asked.contains(&format!("authorization: Bearer {KEY}"))), "{asked:?}");
    assert!(asked[0].starts_with("POST /v1/audio/transcriptions HTTP/1.1\r\n"), "{}", asked[0]);
    for part in [
        "name=\"file\"; filename=\"audio.wav\"\r\ncontent-type: audio/wav\r\n\r\nriff-planted\r\n",
        "name=\"model\"\r\n\r\nsome-model\r\n",
        "name=\"response_format\"\r\n\r\njson\r\n",
        "name=\"language\"\r\n\r\nde\r\n",
        "name=\"prompt\"\r\n\r\nhey mentra, good morning.\r\n",
    ] {
        assert!(asked[0].to_lowercase().contains(part), "{part} in {}", asked[0]);
    }
    assert!(!asked[1].contains("\"language\"") && !asked[1].contains("\"prompt\""), "{}", asked[1]);
    assert!(is_asked_for(&asked[1], "verbose_json"), "{}", asked[1]);
    let body = |index: usize| {
        let (head, body) = asked[index].split_once("\r\n\r\n").expect("a body");
        assert!(head.starts_with("POST /v1/audio/speech HTTP/1.1\r\n"), "{head}");
        serde_json::from_str::<serde_json::Value>(body).expect("JSON")
    };
    let wanted = serde_json::json!({"model": "some-model", "input": "Guten Tag.", "response_format": "pcm", "voice": "anna", "speed": 1.25});
    assert_eq!(body(2), wanted);
    let wanted = serde_json::json!({"model": "some-model", "input": "Guten Tag.", "response_format": "wav"});
    assert_eq!(body(3), wanted);
}

#[tokio::test]
async fn a_server_that_tells_no_language_is_asked_for_the_text_alone_from_then_on() {
    let hello = || status("200 OK", "content-type: application/json\r\n", r#"{"text": "Hello."}"#);
    let refused = || status("400 Bad Request", "", "");
    // Sound that it refuses in any form says nothing of the form.
    let server = serve(vec![refused(), refused(), refused(), hello(), hello()]).await;
    let api = api(&server, PATIENT);
    assert_eq!(api.transcribe(vec![0; 64], None, "").await, Err(Failed::Status(400)));
    for _ in 0..2 {
        assert_eq!(api.transcribe(vec![0; 64], None, "").await, Ok(transcript("Hello.", None)));
    }
    let asked = server.requests.lock().expect("unpoisoned").clone();
    let forms: Vec<bool> = asked.iter().map(|request| is_asked_for(request, "verbose_json")).collect();
    assert_eq!(forms, [true, false, true, false, false]);
}

#[tokio::test]
async fn no_answer_of_a_server_is_more_than_an_error() {
    let long_text = format!("{{\"text\": \"{}\"}}", "x".repeat(300_000));
    let cases: Vec<(Vec<Act>, Failed)> = vec![
        (status("401 Unauthorized", "", "you said hello"), Failed::Status(401)),
        (status("500 Oops", "", ""), Failed::Status(500)),
        (status("302 Found", "location: http://127.0.0.1:9/\r\n", ""), Failed::Status(302)),
        (status("200 OK", "", "not JSON"), Failed::Answer("is no JSON object with `text`")),
        (status("200 OK", "", &long_text), Failed::Answer("is longer than any such answer")),
        // Less than was promised.
        (
            vec![Act::Send(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"text\"".to_vec()), Act::Close],
            Failed::Answer("broke off"),
        ),
    ];
    for (acts, expected) in cases {
        let server = serve(vec![acts]).await;
        let failed = api(&server, PATIENT).transcribe(vec![0; 64], None, "").await.expect_err("it fails");
        assert_eq!(failed, expected);
        let said = failed.to_string();
        assert!(!said.contains("hello") && !said.contains("planted") && !said.contains("127.0.0.1"), "{said}");
    }
    let cases: Vec<(Vec<Act>, Failed)> = vec![
        (status("200 OK", "content-type: audio/pcm\r\n", ""), Failed::Answer("is empty")),
        (status("200 OK", "content-type: application/json\r\n", "{}"), Failed::Answer("is text in place of sound")),
        (
            status("200 OK", "content-type: audio/pcm\r\n", &"x".repeat(7 << 20)),
            Failed::Answer("is longer than any such answer"),
        ),
    ];
    for (acts, expected) in cases {
        let server = serve(vec![acts]).await;
        assert_eq!(api(&server, PATIENT).speak(speech(SoundForm::Pcm)).await, Err(expected));
    }
}

#[tokio::test]
async fn a_slow_server_costs_the_deadline_and_a_given_up_request_its_connection() {
    let begun = b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{".to_vec();
    for acts in [vec![Act::Hang], vec![Act::Send(begun), Act::Hang]] {
        let mut server = serve(vec![acts]).await;
        let api = api(&server, BRIEF);
        assert_eq!(api.transcribe(vec![0; 64], None, "").await, Err(Failed::Late(BRIEF)));
        server.hung_up.recv().await.expect("the connection is closed");
    }
    let mut server = serve(vec![vec![Act::Hang]]).await;
    let api = api(&server, PATIENT);
    let asked = async {
        while server.requests.lock().expect("unpoisoned").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = api.speak(speech(SoundForm::Wav)) => panic!("{answer:?}"),
        () = asked => {}
    }
    server.hung_up.recv().await.expect("the connection is closed");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_by_its_error_only() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let settings = |base_url: &str| Settings {
        base_url: base_url.to_owned(),
        model: "m".to_owned(),
        key: None,
        deadline: PATIENT,
    };
    let api = AudioApi::new(settings("http://127.0.0.1:1/v1")).expect("a client");
    let failed = api.transcribe(vec![0; 64], None, "").await.expect_err("nobody is there");
    assert!(matches!(&failed, Failed::Unreachable(why) if why.contains("refused")), "{failed}");
    for bad in ["host/v1", "ftp://host", "http://"] {
        assert!(matches!(AudioApi::new(settings(bad)), Err(SetupError::Url(_))), "{bad}");
    }
}
