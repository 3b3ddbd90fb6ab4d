//! An independent client, written from PROTOCOL.md alone, performs one turn with a real gateway.

use std::{path::Path, process::Stdio, sync::mpsc::sync_channel};

use audio::wav;
use firmware_sim::{microphone::CLIP_HZ, voice};
use gateway::control::{Answer, Request};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader},
    process::Command,
};

use super::ear;
use crate::cache;
use crate::world::{USER, WAIT, World, floor};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python");

/// Runs the client for one turn; returns its summary, and the transcribed answer.
async fn speak(world: &World, python: &Path, extra: &[&str]) -> (serde_json::Value, String) {
    let wav_file = world.folder().join("said.wav");
    let heard = world.folder().join("heard.wav");
    let pcm = voice::speak("Hey Mentra, set a timer for ten minutes.").await.expect("the voice");
    wav::write(&wav_file, &pcm, CLIP_HZ).expect("a WAV");
    let mut client = Command::new(python)
        .arg(format!("{FOLDER}/client.py"))
        .arg(world.address("ws"))
        .args(["--key".as_ref(), world.folder().join("python.key").as_os_str()])
        .args(["--wav".as_ref(), wav_file.as_os_str()])
        .args(["--heard".as_ref(), heard.as_os_str()])
        .args(extra)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the client");
    let mut stdout = client.stdout.take().expect("piped");
    let mut lines = BufReader::new(client.stderr.take().expect("piped")).lines();
    let (told, words) = sync_channel(1);
    let operator = async {
        let mut all = String::new();
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(code) = line.strip_prefix("pairing code ") {
                let request = Request::PairCode { code: code.to_owned(), user: USER.to_owned(), name: String::new() };
                world.ask(request).await.expect("the code is taken");
            }
            all += &line;
            all.push('\n');
        }
        told.send(all).expect("room for one");
    };
    let mut summary = String::new();
    let finished =
        tokio::time::timeout(2 * WAIT, async { tokio::join!(stdout.read_to_string(&mut summary), operator) });
    finished.await.expect("the client ends").0.expect("its output");
    let status = client.wait().await.expect("the client's status");
    let errors = words.recv().unwrap_or_default();
    assert!(status.success(), "{status}: {summary} {errors}");
    let pcm = wav::read(&heard, audio::frame::RATE_HZ).expect("what was heard");
    (serde_json::from_str(&summary).expect("JSON"), ear::words(&pcm, audio::frame::RATE_HZ))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_in_python_speaks_a_turn_in_both_forms() {
    let _floor = floor().await;
    let python = tokio::task::spawn_blocking(|| cache::python("python", "requirements.txt")).await.expect("a Python");
    let world = World::start().await;
    // The later runs are paired already.
    for extra in [&[][..], &["--json"]] {
        let (summary, sound) = speak(&world, &python, extra).await;
        assert_eq!(summary["ok"], true, "{summary}");
        let transcript = summary["transcripts"].to_string().to_lowercase();
        assert!(transcript.contains("timer"), "{summary}");
        assert!(summary["played_sent"].as_u64().is_some_and(|count| count > 0), "{summary}");
        assert!(sound.contains("10 minutes") || sound.contains("ten minutes"), "{sound} {summary}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn glasses_that_let_the_talk_button_go_are_not_waited_for() {
    const SILENCE_MS: u64 = 2_500;
    let _floor = floor().await;
    let python = tokio::task::spawn_blocking(|| cache::python("python", "requirements.txt")).await.expect("a Python");
    let keys = ["silence_ms", "silence_command_ms", "silence_complete_ms", "silence_incomplete_ms"];
    let settings: String = keys.iter().map(|key| format!("{key} = {SILENCE_MS}\n")).collect();
    let world = World::with(&format!("[hearing]\n{settings}")).await;
    // The input ends with the words; `audio_end` follows them.
    let (summary, _) = speak(&world, &python, &["--silence-ms", "0"]).await;
    assert!(summary["transcripts"].to_string().to_lowercase().contains("timer"), "{summary}");
    let Answer::Turns { turns } = world.ask(Request::Turns { count: 1 }).await.expect("turns") else {
        panic!("no turns");
    };
    // Without that message the utterance does not end before the silence does.
    let at_us = |name: &str| turns[0][name].as_u64().expect("a time");
    assert!(at_us("end_decided_us") - at_us("last_voice_us") < SILENCE_MS * 1_000, "{turns:?}");
}
