//! Audio files that apps play: fetched, decoded, played, refused.

use std::sync::OnceLock;

use audio::{
    asr::{Config, Engine, Options},
    models::{self, catalogue},
    wav,
};
use firmware_sim::{Glasses, Seen};
use serde_json::{Value, json};

use super::fake::{File, PACKAGE, Socket, Stage};
use crate::world::{floor, say, until};

/// The project's own voice, encoded by LAME: "The train to the mountains leaves at seven in the morning."
const SPEECH: &[u8] = include_bytes!("../../../audio/tests/data/speech-22050.mp3");
/// Two tones, encoded by LAME.
const TONES: &[u8] = include_bytes!("../../../audio/tests/data/tones-mono-22050-vbr.mp3");
/// The recogniser's sample rate.
const HEARING_HZ: u32 = 16_000;

fn play(request: &str, url: &str, volume: f64, track: u8) -> Value {
    json!({"type": "audio_play_request", "packageName": PACKAGE, "sessionId": "x", "requestId": request,
        "audioUrl": url, "volume": volume, "stopOtherAudio": true, "trackId": track})
}

/// The outcome of a request.
async fn outcome(socket: &mut Socket, request: &str) -> Value {
    socket.find(request, |message| message["type"] == "audio_play_response" && message["requestId"] == request).await
}

/// The last played speech, at the recogniser's rate.
fn heard(glasses: &Glasses) -> Vec<i16> {
    let heard = glasses.heard();
    let last = heard.last().expect("something was heard");
    wav::convert(&last.pcm, last.rate_hz, HEARING_HZ).expect("a rate")
}

fn loudness(pcm: &[i16]) -> f64 {
    (pcm.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / pcm.len() as f64).sqrt()
}

fn transcribe(pcm: &[i16]) -> String {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    let engine = ENGINE.get_or_init(|| {
        let entry = catalogue::find(catalogue::WHISPER_TINY_EN).expect("a known model");
        let path = models::path_of(entry, &models::default_dir());
        Engine::load(&path, Config::default()).expect("the model; `cargo xtask fetch`")
    });
    let heard = engine.decoder().expect("a decoder").transcribe(pcm, &Options::default()).expect("a transcript");
    heard.text.to_lowercase()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_file_is_heard_as_it_is_and_its_length_told() {
    let _floor = floor().await;
    let stage = Stage::new().await;
    let mut socket = stage.run().await;
    let url = stage.app.serves("/sounds/train.mp3", File::Bytes(SPEECH.to_vec()));
    socket.send(play("r1", &url, 1.0, 0)).await;
    let answer = outcome(&mut socket, "r1").await;
    assert_eq!(answer["success"], true, "{answer}");
    let seconds = answer["duration"].as_f64().unwrap();
    assert!((2.7..3.0).contains(&seconds), "{seconds}");
    let pcm = heard(&stage.glasses);
    let text = tokio::task::spawn_blocking(move || transcribe(&pcm)).await.unwrap();
    assert!(text.contains("train") && text.contains("mountains") && text.contains("morning"), "{text}");

    // A path on the app's own server suffices; WAV works as well, and so does a lower volume.
    let url = stage.app.serves("/tones.mp3", File::Bytes(TONES.to_vec()));
    socket.send(play("r2", &url, 1.0, 0)).await;
    assert_eq!(outcome(&mut socket, "r2").await["success"], true);
    let loud = loudness(&heard(&stage.glasses));
    let tones = audio::sound_file::decode(TONES, HEARING_HZ, 10).unwrap();
    // The link uses a speech codec, which changes the loudness of tones.
    assert!((loud / loudness(&tones) - 1.0).abs() < 0.3, "{loud} for {}", loudness(&tones));
    let file = tempfile::NamedTempFile::new().unwrap();
    wav::write(file.path(), &tones, HEARING_HZ).unwrap();
    stage.app.serves("/tones.wav", File::Bytes(std::fs::read(file.path()).unwrap()));
    socket.send(play("r3", "/tones.wav", 0.25, 0)).await;
    assert_eq!(outcome(&mut socket, "r3").await["success"], true);
    let quiet = loudness(&heard(&stage.glasses));
    assert!((quiet / loud / 0.25 - 1.0).abs() < 0.3, "{quiet} for a quarter of {loud}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_sound_or_elsewhere_is_answered_and_stands_in_the_log() {
    let stage = Stage::new().await;
    let mut socket = stage.run().await;
    let app = &stage.app;
    let elsewhere = super::fake::FakeApp::start("com.example.elsewhere").await;
    let other = elsewhere.serves("/a.mp3", File::Bytes(TONES.to_vec()));
    let cases = [
        (app.serves("/none.mp3", File::Status(404)), "status 404"),
        (app.serves("/page.mp3", File::Bytes(b"<!doctype html>".to_vec())), "neither an MP3 nor a WAV"),
        (app.serves("/half.mp3", File::Bytes(b"ID3\x04\0\0\0\0\0\x02xx".to_vec())), "damaged"),
        (app.serves("/moved.mp3", File::Elsewhere(other.clone())), "another host"),
        (app.serves("/endless.mp3", File::Endless), "more than 10 MiB"),
        (format!("{other}?key=s3cret"), "own server"),
        ("http://192.168.0.1/a.mp3".to_owned(), "public address"),
        ("ftp://files.example/a.mp3".to_owned(), "http and https only"),
    ];
    for (number, (url, wanted)) in cases.iter().enumerate() {
        let request = format!("r{number}");
        socket.send(play(&request, url, 1.0, 0)).await;
        let answer = outcome(&mut socket, &request).await;
        assert_eq!(answer["success"], false, "{answer}");
        assert!(answer["error"].as_str().unwrap().contains(wanted), "{wanted}: {answer}");
    }
    assert_eq!(elsewhere.count("/a.mp3"), 0, "another server was asked");
    // A redirect on the same host is followed.
    let there = app.serves("/there.mp3", File::Bytes(TONES.to_vec()));
    let url = app.serves("/here.mp3", File::Elsewhere(there));
    let logs = stage.logs().await;
    assert_eq!(logs.len(), cases.len(), "{logs:#?}");
    for (fault, (_, wanted)) in logs.iter().zip(&cases) {
        assert_eq!(fault.what, "audio_play_request");
        assert!(fault.message.contains(wanted) && fault.request.contains("requestId"), "{fault:?}");
        assert!(!fault.request.contains("s3cret"), "{fault:?}");
    }
    socket.send(play("here", &url, 1.0, 0)).await;
    assert_eq!(outcome(&mut socket, "here").await["success"], true);
}

/// If an app requests three sounds in quick succession, either the last one or all of them in order are to be played.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_app_says_last_is_heard_last() {
    let _floor = floor().await;
    let mut stage = Stage::new().await;
    let mut socket = stage.run().await;
    let words = |request: &str, alone: bool| {
        let url = format!("https://127.0.0.1/api/tts?text=This+is+number+{request}.");
        let mut play = play(request, &url, 1.0, 2);
        play["stopOtherAudio"] = json!(alone);
        play
    };
    // More than may wait: requests that are displaced do not wait any longer.
    let hasty = ["a", "b", "c", "d", "e", "f", "g"];
    for request in hasty {
        socket.send(words(request, true)).await;
    }
    for _ in hasty {
        let answer = socket.of_type("audio_play_response").await;
        assert_eq!(answer["success"], json!(answer["requestId"] == "g"), "{answer}");
    }
    assert_eq!(stage.logs().await, [], "nothing of it is a fault");

    let mark = stage.glasses.log().mark();
    for request in ["four", "five", "six"] {
        socket.send(words(request, false)).await;
    }
    for _ in 0..3 {
        assert_eq!(socket.of_type("audio_play_response").await["success"], true);
    }
    let said = stage.glasses.log().since(mark).into_iter().filter_map(|event| match event.seen {
        Seen::SpeechStart { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), ["four", "five", "six"].map(|number| format!("This is number {number}.")));

    // A slow file is displaced by a later request.
    let endless = stage.app.serves("/endless.mp3", File::Endless);
    socket.send(play("seven", &endless, 1.0, 2)).await;
    socket.send(words("eight", true)).await;
    assert_eq!(outcome(&mut socket, "seven").await["success"], false);
    assert_eq!(outcome(&mut socket, "eight").await["success"], true);
    until(
        &mut stage.glasses,
        "the last word",
        |event| matches!(&event.seen, Seen::SpeechHeard { text, .. } if text == "This is number eight."),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_wait_for_the_file_that_was_requested_before_them() {
    let _floor = floor().await;
    let stage = Stage::new().await;
    let mut socket = stage.run().await;
    let file = stage.app.serves("/tones.mp3", File::Bytes(TONES.to_vec()));
    let missing = stage.app.serves("/none.mp3", File::Status(404));
    let words = "https://127.0.0.1/api/tts?text=Done.".to_owned();
    for (request, url) in [("file", file), ("missing", missing), ("words", words)] {
        let mut play = play(request, &url, 0.1, 0);
        play["stopOtherAudio"] = json!(false);
        socket.send(play).await;
    }
    let mut heard = Vec::new();
    for _ in 0..3 {
        let answer = socket.of_type("audio_play_response").await;
        if answer["success"] == true {
            heard.push(answer["requestId"].clone());
        }
    }
    assert_eq!(heard, ["file", "words"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_glasses_those_that_came_last_speak() {
    let _floor = floor().await;
    let stage = Stage::new().await;
    let mut socket = stage.run().await;
    // Whatever the order of their fingerprints.
    let mut others = Vec::new();
    for name in ["second", "third"] {
        let mut glasses = stage.world.glasses("ws", name).await;
        let url = format!("https://127.0.0.1/api/tts?text=These+are+the+{name}+ones.");
        socket.send(play(name, &url, 1.0, 2)).await;
        assert_eq!(outcome(&mut socket, name).await["success"], true);
        let said =
            |event: &firmware_sim::Event| matches!(&event.seen, Seen::SpeechHeard { text, .. } if text.contains(name));
        until(&mut glasses, "the words", said).await;
        others.push(glasses);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_ends_by_its_track_by_another_sound_and_by_the_wearers_word() {
    let _floor = floor().await;
    let mut stage = Stage::new().await;
    let mut socket = stage.run().await;
    let long: Vec<i16> = (0..HEARING_HZ * 40).map(|at| ((at % 40) as i16 - 20) * 300).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    wav::write(file.path(), &long, HEARING_HZ).unwrap();
    let url = stage.app.serves("/long.wav", File::Bytes(std::fs::read(file.path()).unwrap()));
    let short = stage.app.serves("/tones.mp3", File::Bytes(TONES.to_vec()));
    let begun = |event: &firmware_sim::Event| matches!(event.seen, Seen::FirstSound { .. });

    socket.send(play("r1", &url, 0.1, 1)).await;
    until(&mut stage.glasses, "the sound", begun).await;
    let stop = |track: Value| json!({"type": "audio_stop_request", "packageName": PACKAGE, "trackId": track});
    // A stop of another track does not affect it.
    socket.send(stop(json!(0))).await;
    socket.settled().await;
    socket.send(stop(json!(1))).await;
    assert_eq!(outcome(&mut socket, "r1").await["success"], false);

    socket.send(play("r2", &url, 0.1, 1)).await;
    until(&mut stage.glasses, "the sound", begun).await;
    socket.send(play("r3", &short, 0.1, 0)).await;
    assert_eq!(outcome(&mut socket, "r2").await["success"], false);
    assert_eq!(outcome(&mut socket, "r3").await["success"], true);

    stage.glasses.forget();
    socket.send(play("r4", &url, 0.1, 1)).await;
    until(&mut stage.glasses, "the sound", begun).await;
    say(&mut stage.glasses, "Hey Mentra, stop.").await;
    // After a stop by the wearer it counts as played.
    let answer = outcome(&mut socket, "r4").await;
    let told =
        until(&mut stage.glasses, "its end", |event| matches!(event.seen, Seen::SpeechHeard { complete: false, .. }));
    told.await;
    assert_eq!(answer["requestId"], "r4");
    // A stop is not logged as a fault of the app.
    assert!(stage.logs().await.is_empty());
}
